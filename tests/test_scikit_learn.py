"""What the page about scikit-learn says: counterparts, names of parameters, and tables that are up to date."""

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

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
