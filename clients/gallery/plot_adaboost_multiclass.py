"""AdaBoost of small trees on three classes, its errors by rounds, and the weights of its members."""

from sklearn.datasets import make_gaussian_quantiles
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

X, y = make_gaussian_quantiles(n_samples=2_000, n_features=10, n_classes=3, random_state=1)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.7, random_state=42)
weak_learner = DecisionTreeClassifier(max_leaf_nodes=8)
n_estimators = 300
adaboost_clf = AdaBoostClassifier(estimator=weak_learner, n_estimators=n_estimators, random_state=42)
adaboost_clf.fit(X_train, y_train)
dummy_clf = DummyClassifier()


def misclassification_error(y_true, y_pred):
    """The share of wrong classes."""
    return 1 - accuracy_score(y_true, y_pred)


weak_error = misclassification_error(y_test, weak_learner.fit(X_train, y_train).predict(X_test))
dummy_error = misclassification_error(y_test, dummy_clf.fit(X_train, y_train).predict(X_test))
errors = [misclassification_error(y_test, y_pred) for y_pred in adaboost_clf.staged_predict(X_test)]
shown = [len(adaboost_clf), adaboost_clf.estimator_errors_.shape, adaboost_clf.estimator_weights_.shape]
result = {"shown": shown, "better": bool(errors[-1] < weak_error < dummy_error), "rounds": len(errors)}
