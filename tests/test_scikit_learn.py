"""What the page about scikit-learn says: counterparts, names of parameters, and tables that are up to date."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import empirisk as er
from empirisk.names import CLASSES
from tools.scikit_learn import PAGE, counterparts, missing, page


def test_the_tables_of_the_page_are_up_to_date():
    assert PAGE.read_text() == page(), "python -m tools.scikit_learn"


def test_every_parameter_that_is_missing_is_answered_by_a_sentence_about_it():
    """No list of all parameters, and no name that merely looks alike."""
    assert len(counterparts()) >= 45
    vague = [each for each in missing() if each[1].startswith(("its parameters are", "the closest one", "it has none"))]
    assert not vague


def test_class_names_of_scikit_learn_are_answered():
    for name, ours in CLASSES.items():
        with pytest.raises(AttributeError) as caught:
            getattr(er, name)
        assert f"write er.{ours}" in str(caught.value)


X, Y = load_iris(return_X_y=True)
TWO = Y[:100]
APART = np.random.default_rng(0).normal(size=(40, 3))  # no two distances are equal
STUMP = {"n_estimators": 4, "random_state": 0}
#: Ours, theirs, the rows and targets, attributes with the same numbers, and attributes and methods that are there.
ATTRIBUTES = [
    (er.SVM(features=er.kernels.Gaussian("scale")), SVC(), (X[:100], TWO), "classes_ n_features_in_",
     "n_support_ support_ support_vectors_ dual_coef_ intercept_ n_iter_ dual_gap_"),
    (er.LeastSquares(), LinearRegression(), (X, X[:, 0] + Y), "coef_ intercept_ rank_ singular_", "dual_gap_"),
    (er.Ridge(0.5), Ridge(1.0), (X, Y), "coef_ intercept_", "n_iter_ dual_gap_"),
    (er.NearestCentroid(), NearestCentroid(), (X, Y), "centroids_ classes_", ""),
    (er.KNNClassifier(), KNeighborsClassifier(), (X, Y), "classes_ n_samples_fit_",
     "kneighbors kneighbors_graph predict_log_proba"),
    (er.TreeClassifier(max_depth=2), DecisionTreeClassifier(max_depth=2, random_state=0), (X[:100], TWO),
     "classes_ n_features_in_", "apply decision_path get_depth get_n_leaves feature_importances_ predict_log_proba "
     "cost_complexity_pruning_path"),
    (er.ForestClassifier(**STUMP), RandomForestClassifier(**STUMP), (X, Y), "classes_",
     "apply decision_path estimators_ oob_score_ oob_decision_function_ feature_importances_ oob_importances_ "
     "predict_log_proba"),
    (er.BoostingClassifier(n_estimators=4), GradientBoostingClassifier(n_estimators=4), (X, Y),
     "classes_ n_estimators_",
     "apply staged_predict staged_predict_proba staged_decision_function feature_importances_ n_iter_"),
    (er.AdaBoostClassifier(n_estimators=4), AdaBoostClassifier(n_estimators=4), (X, Y), "classes_",
     "estimators_ estimator_weights_ estimator_errors_ staged_predict staged_predict_proba staged_score "
     "feature_importances_ predict_log_proba"),
    (er.BaggingClassifier(n_estimators=3, random_state=0), BaggingClassifier(n_estimators=3), (X, Y), "classes_",
     "estimators_ estimators_features_ oob_score_ predict_log_proba"),
    (er.KMeans(3, init=X[:3], n_init=1, shifts=0), KMeans(3, init=X[:3], n_init=1, tol=0), (X,),
     "cluster_centers_ inertia_ labels_", "n_iter_"),
    (er.Hierarchical("ward", n_clusters=3), AgglomerativeClustering(3, compute_distances=True), (APART,),
     "n_clusters_ n_leaves_ distances_", "children_ labels_"),
    (er.GaussianMixture(1), GaussianMixture(1), (X,), "means_ weights_ covariances_",
     "precisions_ precisions_cholesky_ n_iter_ converged_ lower_bound_"),
    (er.PCA(2), PCA(2), (X,), "mean_ explained_variance_ explained_variance_ratio_ singular_values_ noise_variance_ "
     "n_components_ n_samples_", "components_ score score_samples get_covariance get_precision"),
]  # fmt: skip


def test_fitted_attributes_have_the_names_and_numbers_of_scikit_learn():
    wrong = []
    for ours, theirs, data, equal, there in ATTRIBUTES:
        ours.fit(*data)
        theirs.fit(*data)
        wrong += [(ours, name, "is missing") for name in f"{equal} {there}".split() if not hasattr(ours, name)]
        for name in equal.split():
            found, wanted = (np.asarray(getattr(machine, name, np.nan)) for machine in (ours, theirs))
            same = found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-5, atol=1e-5)
            wrong += [] if same else [(ours, name, found, wanted)]
    assert not wrong


def _small(machine):
    """A machine of few members or parts, of either library."""
    few = {"n_estimators": 2, "n_components": 2, "n_atoms": 2, "rank": 2, "max_iter": 20}
    few |= {"estimators": [("a", DecisionTreeRegressor() if is_regressor(machine) else DecisionTreeClassifier())]}
    known = machine.get_params(deep=False)
    return machine.set_params(**{name: value for name, value in few.items() if name in known})


def test_attributes_and_methods_that_are_missing_are_on_the_page():
    """Whatever a fitted estimator of scikit-learn has in public is here by that name, or told on the page."""
    told, untold = re.findall(r"`([^`]+)`", PAGE.read_text().partition("## Fitted attributes")[2]), set()
    some, classes = X[40:110], Y[40:110]
    for theirs, _, written in counterparts():
        other = theirs([]) if "Voting" in theirs.__name__ else theirs()
        named = written if "(" in written else f"{written}()"
        ours = eval(f"er.{named}", {"er": er, "kernel": er.kernels.Gaussian(1.0)})
        target = classes if is_classifier(other) else 1.0 + classes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for machine in (other, ours):
                _small(machine).fit(some, target)
            public = {name for name in dir(other) if not name.startswith("_") and hasattr(other, name)}
            learned = {name for name in public if name.endswith("_") or callable(getattr(other, name))}
            lacking = {name for name in learned - set(other.get_params()) if not hasattr(ours, name)}
        untold |= {(theirs.__name__, name) for name in lacking if not {name, f"{name}()"} & {*told}}
    assert not untold


#: Machines, and parameters of scikit-learn's that they have by its name.
PARAMETERS = {
    "KNNClassifier KNNRegressor": "n_neighbors weights",
    "TreeClassifier TreeRegressor": "max_depth max_leaf_nodes min_samples_split min_samples_leaf min_impurity_decrease "
    "ccp_alpha max_features criterion class_weight",
    "ForestClassifier ForestRegressor": "n_estimators max_leaf_nodes min_samples_split min_weight_fraction_leaf "
    "max_samples bootstrap oob_score warm_start n_jobs",
    "BaggingClassifier BaggingRegressor": "estimator n_estimators max_samples max_features oob_score warm_start n_jobs",
    "BoostingClassifier BoostingRegressor": "learning_rate max_leaf_nodes l2_regularization monotonic_cst "
    "interaction_cst n_iter_no_change validation_fraction early_stopping subsample warm_start max_bins",
    "VoteClassifier": "estimators voting weights n_jobs",
    "AdaBoostClassifier": "estimator n_estimators learning_rate warm_start",
    "GaussianMixture": "n_components covariance_type reg_covar n_init warm_start",
    "Hierarchical": "n_clusters linkage distance_threshold",
    "KMeans": "n_clusters init n_init max_iter",
    "ElasticNet": "l1_ratio positive",
    "LeastSquares Ridge Lasso": "positive fit_intercept",
    "PCA": "n_components whiten",
}
#: Pairs of machines whose answers are the same: one in each spelling.
SPELLED = [
    (er.SVM(features="rbf"), er.SVM(features="gaussian")),
    (er.SVM(features="poly"), er.SVM(features="polynomial")),
    (er.GaussianMixture(2, covariance_type="diag", random_state=0),
     er.GaussianMixture(2, covariance_type="diagonal", random_state=0)),
    (er.Regressor(loss="squared_error"), er.Regressor(loss="squared")),
    (er.BoostingRegressor(loss="absolute_error", n_estimators=3),
     er.BoostingRegressor(loss="absolute", n_estimators=3)),
    (er.TreeRegressor(criterion="squared_error"), er.TreeRegressor(criterion="squared")),
    (er.ForestClassifier(3, criterion="log_loss", random_state=0),
     er.ForestClassifier(3, criterion="entropy", random_state=0)),
    (er.ForestClassifier(3, class_weight="balanced_subsample", random_state=0),
     er.ForestClassifier(3, class_weight="balanced", random_state=0)),
    (er.Classifier(loss="log_loss", penalty="elasticnet"), er.Classifier(loss="logistic", penalty="elastic_net")),
    (er.LogisticRegression(penalty=None), er.LogisticRegression(C=np.inf)),
    (er.SVM(features="gaussian"), er.SVM(features=er.kernels.Gaussian("median"))),
    (er.SVM(features=er.kernels.Gaussian("scale")),
     er.SVM(features=er.kernels.Gaussian.from_gamma(1 / (4 * X[50:].var())))),
    (er.OneClassSVM(), er.OneClassSVM(features=er.kernels.Gaussian("median"))),
    (er.ForestClassifier(3, max_samples=50, random_state=0), er.ForestClassifier(3, max_samples=0.5, random_state=0)),
]  # fmt: skip


def test_parameters_have_the_names_of_scikit_learn():
    wrong = []
    for machines, names in PARAMETERS.items():
        for machine in machines.split():
            given = getattr(er, machine)().get_params(deep=False)
            wrong += [(machine, name) for name in names.split() if name not in given and not _of_classes(machine, name)]
    assert not wrong


def _of_classes(machine, name):
    """Regressors have no weights of classes, and forests of numbers one criterion."""
    return machine.endswith("Regressor") and name in ("class_weight", "criterion")


def test_values_have_both_spellings():
    wrong = []
    for one, other in SPELLED:
        found = [machine.fit(X[50:], Y[50:]).predict(X[50:]) for machine in (one, other)]
        wrong += [] if np.allclose(*found) else [one]
    assert not wrong


def test_defaults_that_users_know():
    assert er.KMeans(n_init="auto", random_state=0).fit(X).cluster_centers_.shape == (8, 4)
    assert er.PCA().fit(X).components_.shape == (4, 4)
    vote = er.VoteClassifier([("a", er.SVM()), ("b", er.TreeClassifier())]).set_params(a__C=3.0, b="drop")
    assert vote.get_params()["a__C"] == 3.0
    assert list(vote.fit(X, Y).named_estimators_) == ["a"]
    for machine in (er.LeastSquares, er.Ridge, er.Lasso, er.ElasticNet):
        assert (machine(positive=True).fit(X, -X[:, 0]).coef_ >= 0).all()


def test_importances_of_forests_are_those_of_impurity():
    forest = er.ForestClassifier(5, random_state=0).fit(X, Y)
    assert forest.feature_importances_.sum() == pytest.approx(1.0)
    trees = np.mean([tree.feature_importances_ for tree in forest], axis=0)
    assert forest.feature_importances_ == pytest.approx(trees)
    assert forest.oob_importances_.shape == (4,)


def test_ensembles_are_lists_of_their_members_and_may_leave_out_what_is_out_of_bag():
    for machine in (
        er.ForestClassifier(4),
        er.BaggingClassifier(n_estimators=4),
        er.AdaBoostClassifier(n_estimators=4),
    ):
        assert machine
        assert len(machine.fit(X, Y)) == len(list(machine)) == 4
    for machine in (er.ForestRegressor(4, random_state=0), er.BaggingRegressor(n_estimators=4, random_state=0)):
        told = machine.fit(X, Y).predict(X)
        assert machine.oob_score_ > 0
        machine.set_params(oob_score=False).fit(X, Y)
        assert not hasattr(machine, "oob_score_")
        assert np.array_equal(machine.predict(X), told)
        with pytest.raises(er.errors.EmpiriskError, match="oob_score='yes' must be True or False"):
            machine.set_params(oob_score="yes").fit(X, Y)


def test_single_precision_stays_where_it_does_there():
    few = X.astype(np.float32)
    pairs = [
        (er.LogisticRegression(), LogisticRegression(), "predict_proba"),
        (er.Ridge(), Ridge(), "predict"),
        (er.Lasso(), Lasso(alpha=0.1), "predict"),
        (er.Ridge(features=er.kernels.Gaussian(1.0)), KernelRidge(kernel="rbf"), "predict"),
        (er.Regressor(loss="poisson"), PoissonRegressor(), "predict"),
        (er.PCA(2), PCA(2), "transform"),
        (er.KMeans(3, random_state=0), KMeans(3), "transform"),
        (er.GaussianMixture(2, random_state=0), GaussianMixture(2), "predict_proba"),
        (er.maps.Nystrom(rank=5), Nystroem(n_components=5), "transform"),
        (er.maps.Polynomial(2), PolynomialFeatures(2), "transform"),
    ]
    for ours, theirs, method in pairs:
        found, wanted = (getattr(machine.fit(few, Y.astype(np.float32)), method)(few) for machine in (ours, theirs))
        assert found.dtype == wanted.dtype == np.float32, ours
