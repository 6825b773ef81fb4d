"""Mixtures of four kinds of covariances that begin at the means of the classes of iris."""

import numpy as np
from sklearn import datasets
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold

iris = datasets.load_iris()
skf = StratifiedKFold(n_splits=4)
train_index, test_index = next(iter(skf.split(iris.data, iris.target)))
X_train, y_train = iris.data[train_index], iris.target[train_index]
X_test, y_test = iris.data[test_index], iris.target[test_index]
n_classes = len(np.unique(y_train))
estimators = {
    cov_type: GaussianMixture(n_components=n_classes, covariance_type=cov_type, max_iter=20, random_state=0)
    for cov_type in ["spherical", "diag", "tied", "full"]
}
accuracy, shapes = {}, {}
for name, estimator in estimators.items():
    estimator.means_init = np.array([X_train[y_train == i].mean(axis=0) for i in range(n_classes)])
    estimator.fit(X_train)
    accuracy[name] = round(float(np.mean(estimator.predict(X_test).ravel() == y_test.ravel())), 1)
    shapes[name] = estimator.covariances_.shape
result = {"accuracy": accuracy, "shapes": shapes}
