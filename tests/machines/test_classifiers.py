"""Classifiers: labels of any type, several classes, weights, geometry, the hard margin."""

import cvxpy
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import empirisk as er

SCHEMES = ("one_vs_rest", "one_vs_one", "error_correcting", "joint")


@pytest.mark.row("E5")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_every_multiclass_scheme_learns(scheme, loss):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    machine = er.Classifier(loss=loss, multiclass=scheme, random_state=0).fit(X, names)
    assert machine.score(X, names) > 0.93
    assert machine.decision_function(X).shape == (150, 3)
    assert set(machine.predict(X)) <= set(names)
    machines = {"one_vs_rest": 3, "one_vs_one": 3, "error_correcting": 3, "joint": 3}[scheme]
    assert machine.coef_.shape == (machines, 4)


@pytest.mark.row("E5")
def test_codes_separate_many_classes():
    X, y = make_blobs(400, centers=12, n_features=5, random_state=0)
    machine = er.SVM(multiclass="error_correcting", random_state=0).fit(X, y)
    assert len(machine.codes_) == 36
    assert machine.score(X, y) > 0.9
    assert er.SVM(multiclass="one_vs_one").fit(X, y).coef_.shape == (66, 5)


@pytest.mark.parametrize("labels", [[0, 1], [-1.0, 1.0], ["b", "a"], [True, False], [10, 20]])
def test_labels_of_any_type(labels):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([labels[0], labels[0], labels[1], labels[1]])
    machine = er.SVM(C=10).fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), y)
    assert machine.classes_.dtype == np.unique(y).dtype
    assert machine.decision_function(X).shape == (4,)


@pytest.mark.row("L8")
def test_logistic_regression_is_sklearns():
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = er.LogisticRegression(C=0.3, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.row("L9")
def test_softmax_is_sklearns():
    from sklearn.linear_model import LogisticRegression

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = er.LogisticRegression(C=0.3, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.row("L11")
def test_svm_is_libsvms_linear_machine():
    from sklearn.svm import SVC

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = er.SVM(C=0.1).fit(X, y)
    theirs = SVC(kernel="linear", C=0.1, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    support = er.Hyperplane.of(ours).support(X, y, ours.classes_)
    np.testing.assert_array_equal(support, np.sort(theirs.support_))


@pytest.mark.row("L14")
def test_least_squares_classifier_is_one_hot_regression():
    X, y = load_iris(return_X_y=True)
    ours = er.LeastSquaresClassifier().fit(X, y)
    regression = er.LeastSquares().fit(X, np.eye(3)[y])
    np.testing.assert_allclose(ours.coef_, 2 * regression.coef_, atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), regression.predict(X).argmax(axis=1))


@pytest.mark.row("L1")
def test_nearest_centroid_is_the_nearest_mean():
    X, y = load_iris(return_X_y=True)
    machine = er.NearestCentroid().fit(X, y)
    means = np.stack([X[y == k].mean(axis=0) for k in range(3)])
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(machine.predict(X), nearest)
    two = er.NearestCentroid().fit(X[:100], y[:100])
    np.testing.assert_allclose(two.coef_[0], 2 * (means[1] - means[0]))
    np.testing.assert_allclose(two.intercept_, means[0] @ means[0] - means[1] @ means[1])


@pytest.mark.row("L2")
def test_perceptron_stops_when_separable():
    X, y = make_blobs(100, centers=[[-3, -3], [3, 3]], random_state=0)
    for average in (False, True):
        machine = er.Perceptron(average=average, random_state=0).fit(X, y)
        assert machine.score(X, y) == 1.0
    assert machine.certificate_.converged
    assert machine.certificate_.primal == 0


@pytest.mark.row("L10")
def test_hard_margin_is_the_widest_street():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0], [5.0, 5.0]])
    y = np.array([0, 0, 1, 1, 1])
    machine = er.SVM(C=np.inf).fit(X, y)
    np.testing.assert_allclose(machine.coef_, [[1.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(machine.intercept_, [-1.0], atol=1e-6)
    assert np.inf == machine.C_
    plane = er.Hyperplane.of(machine)
    assert plane.margins(X, y, machine.classes_).min() == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(plane.support(X, y, machine.classes_), [0, 1, 2, 3])


@pytest.mark.row("L10")
def test_hard_margin_names_the_evidence_where_there_is_none():
    X = np.array([[0.0], [2.0], [1.0], [3.0], [9.0]])
    y = np.array([0, 0, 1, 1, 1])
    with pytest.raises(er.errors.NotSeparable, match=r"no hyperplane separates.*rows.*use a finite C") as caught:
        er.SVM(C=np.inf).fit(X, y)
    assert {1, 2} <= set(caught.value.rows)
    random = np.random.default_rng(0)
    with pytest.raises(er.errors.NotSeparable):
        er.SVM(C=np.inf).fit(random.normal(size=(200, 3)), random.integers(2, size=200))


@pytest.mark.row("L10")
@pytest.mark.parametrize("penalty", ["l2", "l1", er.penalties.ElasticNet(0.3)], ids=str)
def test_the_hard_margin_of_all_classes_together_is_that_of_cvxpy(penalty):
    """C = inf is no leave to drop the penalty: the smallest R whose scores put the own class ahead by one."""
    random = np.random.default_rng(0)
    X, weights = random.normal(size=(30, 3)), 10.0 ** random.uniform(-3, 3, 30)
    y, norm = (X @ random.normal(size=(3, 4))).argmax(axis=1), er.penalties.find(penalty)
    machine = er.SVM(C=np.inf, multiclass="joint", penalty=penalty).fit(X, y, sample_weight=weights)
    W, b = cvxpy.Variable((3, 4)), cvxpy.Variable((1, 4))
    F = X @ W + np.ones((30, 1)) @ b
    ahead = [F[i, y[i]] - F[i, j] >= 1 for i in range(30) for j in range(4) if j != y[i]]
    size = norm.l1 * cvxpy.sum(cvxpy.abs(W)) + norm.l2 / 2 * cvxpy.sum_squares(W)
    best = cvxpy.Problem(cvxpy.Minimize(size), ahead).solve(solver=cvxpy.CLARABEL)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert np.inf == machine.C_
    scores = machine.decision_function(X)
    assert np.max(er.losses.CrammerSinger().value(y, scores)) < 1e-6
    with pytest.raises(er.errors.NotSeparable, match="no score of each class separates"):
        machine.fit(X, random.permutation(y))
    behind = er.SVM(C=np.inf, multiclass="joint", features="linear")
    if penalty == "l2":
        assert behind.fit(X, y).certificate_.primal == pytest.approx(best, rel=1e-6)
        with pytest.raises(er.errors.NotSeparable, match="no score of each class separates"):
            behind.fit(X, random.permutation(y))


@pytest.mark.row("L10")
def test_weights_have_no_say_in_a_hard_margin():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(4, 3)), np.full((4, 2), 1e6)])
    y, weights = [0, 0, 0, 1], [2e-2, 1.7e8, 1.7e7, 6e2]
    machine = er.SVM(C=np.inf, fit_intercept=False, tol=1e-8)
    even = clone(machine).fit(X, y)
    for rows in X, csr_matrix(X):
        weighted = clone(machine).fit(rows, y, sample_weight=weights)
        assert weighted.certificate_.converged
        assert weighted.certificate_.primal == pytest.approx(even.certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(weighted.decision_function(rows), even.decision_function(X), atol=1e-4)
    with pytest.raises(er.errors.NotSeparable):
        machine.fit(X[[0, 1, 2, 0], :3], y, sample_weight=weights)


@pytest.mark.filterwarnings("ignore:.*did not reach tol:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [4, 15, 17, 21, 23])
def test_a_hard_margin_is_found_however_loose_the_tolerance(seed):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(12, 1)) @ random.normal(size=(1, 5)), random.integers(0, 2, 12)
    y[:2] = 0, 1
    machine = er.SVM(C=np.inf, features=er.kernels.Gaussian("median"), fit_intercept=False, tol=1e-3).fit(X, y)
    assert np.min((2 * y - 1) * machine.decision_function(X)) > 1 - machine.tol


@pytest.mark.row("E7")
def test_hyperplane_geometry():
    plane = er.Hyperplane(np.array([3.0, 4.0]), 5.0)
    X = np.array([[1.0, 2.0], [-3.0, 0.5]])
    np.testing.assert_allclose(plane.decision(X), X @ plane.w + 5)
    np.testing.assert_allclose(plane.distance(X), (X @ plane.w + 5) / 5)
    np.testing.assert_allclose(plane.decision(plane.project(X)), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(X - plane.project(X), axis=1), np.abs(plane.distance(X)))
    low, high = plane.supporting
    np.testing.assert_allclose(low.decision(X), plane.decision(X) + 1)
    np.testing.assert_allclose(high.decision(X), plane.decision(X) - 1)
    with pytest.raises(ValueError, match="not zero"):
        er.Hyperplane(np.zeros(2))
    with pytest.raises(ValueError, match="outside the 1"):
        er.Hyperplane.of(er.SVM().fit(X, [0, 1]), index=3)
    with pytest.raises(ValueError, match="labels other than"):
        plane.margins(X, [1, 7])


def test_class_weights_are_sample_weights():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    by_class = er.SVM(class_weight={0: 3.0}).fit(X, y)
    by_row = er.SVM().fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-7)
    balanced = er.LogisticRegression(class_weight="balanced").fit(X, y)
    factors = len(y) / (2 * np.bincount(y))
    np.testing.assert_allclose(balanced.coef_, er.LogisticRegression().fit(X, y, factors[y]).coef_, atol=1e-6)


@pytest.mark.row("L12")
def test_l1_machines_are_sparse():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for machine in (er.SVM(penalty="l1", C=0.02), er.LogisticRegression(penalty="l1", C=0.02)):
        weights = machine.fit(X, y).coef_
        assert 0 < (np.abs(weights) > 1e-9).sum() < 15
        assert machine.score(X, y) > 0.9
        assert machine.certificate_.converged


@pytest.mark.row("L15")
def test_joint_svm_beats_nothing_but_agrees_with_its_objective():
    X, y = load_iris(return_X_y=True)
    machine = er.SVM(multiclass="joint").fit(X, y)
    F = machine.decision_function(X)
    own = F[np.arange(150), y]
    loss = (F + (np.arange(3) != y[:, None]) - own[:, None]).max(axis=1)
    assert machine.certificate_.primal == pytest.approx(0.5 * (machine.coef_**2).sum() + loss.sum(), rel=1e-6)


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize(
    "machine",
    [er.SVM(), er.LogisticRegression(), er.Perceptron(), er.LeastSquaresClassifier(), er.NearestCentroid()],
    ids=repr,
)
def test_no_warning_at_defaults_on_bundled_data(machine, load, standardised):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X) if standardised else X
    assert machine.fit(X, y).score(X, y) > 0.6


@pytest.mark.row("L2")
@pytest.mark.parametrize("features", [None, er.kernels.Linear()], ids=str)
@pytest.mark.parametrize("average", [False, True])
def test_a_perceptron_that_cannot_separate_keeps_the_fewest_mistakes_and_says_so(features, average):
    X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
    machine = er.Perceptron(features=features, average=average).fit(X, y)
    assert not machine.certificate_.converged
    f = np.where(y == 1, 1, -1) * machine.decision_function(X)
    assert machine.certificate_.status == machine.stopped_ == "mistakes_left"
    assert f"not separable in 200 epochs: {(f <= 0).sum()} mistakes left" in machine.certificate_.reason
    assert (f <= 0).sum() <= 2
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = (X[:, 0] + random.normal(size=200) > 0).astype(int)
    machine = er.Perceptron(features=features, average=average).fit(X, y)
    assert machine.score(X, y) >= er.LogisticRegression().fit(X, y).score(X, y) - 0.06


@pytest.mark.row("E4")
@pytest.mark.parametrize(("loss", "classes"), [("logistic", 2), ("exponential", 2), ("soft_hinge", 2), ("softmax", 3)])
def test_separable_classes_without_a_penalty_have_no_minimiser(loss, classes):
    X, y = make_blobs(40, centers=classes, cluster_std=0.2, random_state=3)
    with pytest.warns(ConvergenceWarning, match=r"no minimiser exists.*separable.*use a penalty"):
        machine = er.Classifier(loss=loss, penalty="none").fit(X, y)
    assert not machine.certificate_.converged
    assert machine.score(X, y) == 1.0
    y[:4] = (y[:4] + 1) % classes  # now it exists
    machine = er.Classifier(loss=loss, penalty="none").fit(X, y)
    assert machine.certificate_.converged


def test_the_hyperplane_of_a_kernel_machine_is_refused_with_a_sentence():
    machine = er.SVM(features=er.kernels.Gaussian()).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    with pytest.raises(er.errors.Unsuitable, match="behind a kernel the hyperplane lies among the kernel's features"):
        er.Hyperplane.of(machine)


def test_a_hard_margin_through_the_origin_says_so_where_only_that_fails():
    X, y = np.array([[1.0], [2.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(er.errors.NotSeparable, match=r"through the origin .*use fit_intercept=True") as caught:
        er.SVM(C=np.inf, fit_intercept=False).fit(X, y)
    assert "hulls" not in str(caught.value)
    assert er.SVM(C=np.inf).fit(X, y).score(X, y) == 1.0
    with pytest.raises(er.errors.NotSeparable, match="convex hulls of the classes meet"):
        er.SVM(C=np.inf).fit(X, [0, 1, 0, 1])
