"""Learning on the fly: `partial_fit` and `warm_start` of the machines of the equation."""

import time

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.problem import Point

pytestmark = pytest.mark.row("L16")


def rows(n=400, columns=4, seed=0, offset=0.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, columns))
    w = random.normal(size=columns)
    return X + offset, X @ w + 0.5 * random.normal(size=n)


def classes_of(score, count=2):
    edges = np.quantile(score, np.arange(1, count) / count)
    return np.array(list("abcde"))[np.searchsorted(edges, score)]


def in_parts(machine, X, y, parts=8, passes=1, **first):
    for _ in range(passes):
        for part in np.array_split(np.arange(X.shape[0]), parts):
            machine.partial_fit(X[part], y[part], **first)
    return machine


def objective(machine, X, y):
    """The sum of the objectives of the problems of a fit, at the weights that the machine has."""
    weights, constants = np.atleast_2d(machine.coef_), np.atleast_1d(machine.intercept_)
    total, at = 0.0, 0
    for problem in clone(machine).problems(X, y):
        count = max(problem.classes, 1)
        w, b = weights[at : at + count].T, constants[at : at + count]
        at += count
        shift = problem.design.shift
        b = b if shift is None else b + shift @ w
        point = Point(w, b) if problem.classes else Point(w[:, 0], float(b[0]))
        total += problem.primal(point)
    return total


# --- what the steps lead to -------------------------------------------------------------------------------------------

CLASSIFIERS = [
    er.SVM(C=1.0),
    er.LogisticRegression(C=0.1),
    er.LogisticRegression(C=1.0, multiclass="one_vs_rest"),
    er.Classifier("squared_hinge", multiclass="one_vs_one", C=0.1),
    er.Classifier("crammer_singer", C=1.0),
    er.LeastSquaresClassifier(),
    er.Classifier("logistic", penalty="elastic_net", C=0.1),
]
REGRESSORS = [er.Ridge(C=0.01), er.Lasso(C=1.0), er.LeastSquares(), er.SVR(C=1.0), er.Regressor("absolute", C=1.0)]


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("machine", CLASSIFIERS, ids=repr)
def test_classifiers_come_near_the_minimum_over_all_rows(machine, offset):
    X, score = rows(10_000, offset=offset)
    y = classes_of(score, 3)
    best = clone(machine).fit(X, y).certificate_.primal
    found = in_parts(clone(machine).set_params(solver=er.solvers.SGD(average=True)), X, y, classes=list("cba"))
    assert best <= objective(found, X, y) <= 1.1 * best


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("machine", REGRESSORS, ids=repr)
def test_regressors_come_near_the_minimum_over_all_rows(machine, offset):
    X, y = rows(10_000, offset=offset)
    best = clone(machine).fit(X, y).certificate_.primal
    found = in_parts(clone(machine).set_params(solver=er.solvers.SGD(average=True)), X, y)
    assert best <= objective(found, X, y) <= 1.1 * best


@pytest.mark.parametrize("parts", [1, 20, 500])
def test_calls_may_have_many_rows_or_one(parts):
    X, y = rows(500, offset=5.0)
    best = er.Ridge(C=1.0).fit(X, y).certificate_.primal
    machine = er.Ridge(C=1.0, solver=er.solvers.SGD(average=True))
    assert objective(in_parts(machine, X, y, parts, passes=2), X, y) <= 1.1 * best


def test_one_step_is_the_gradient_of_the_mean_over_all_rows_so_far():
    X, y = rows(30)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=30)
    first, second = slice(0, 10), slice(10, 30)
    solver = er.solvers.SGD(batch_size=100, rate=0.05, schedule="constant", shuffle=False)
    machine = er.Ridge(C=0.3, solver=solver, fit_intercept=False)
    w = np.zeros(4)
    for part in (first, second):
        machine.partial_fit(X[part], y[part], sample_weight=weights[part])
        so_far = weights[: part.stop]
        mean = (weights[part] / so_far.mean()) @ (2 * (X[part] @ w - y[part])[:, None] * X[part]) / len(X[part])
        w = w - 0.05 * (mean + w / (0.3 * so_far.sum()))
        np.testing.assert_allclose(machine.coef_, w, rtol=1e-12)
    np.testing.assert_allclose(machine.seen_, [[30, weights.sum()]])


@pytest.mark.parametrize("solver", ["auto", "passive_aggressive"])
def test_rows_without_weight_are_as_if_they_were_not_there(solver):
    X, y = rows(60)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    machine = er.SVR(C=0.5, penalty="none", solver=solver)
    with_all = clone(machine).partial_fit(X, y, sample_weight=weights)
    with_some = clone(machine).partial_fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(with_all.coef_, with_some.coef_)


@pytest.mark.parametrize("solver", ["auto", er.solvers.SGD(adapt="adam", average=True), "passive_aggressive"])
def test_sparse_rows_and_dense_ones_may_take_turns(solver):
    X, y = rows(600)
    X[np.abs(X) < 0.7] = 0.0
    machine = er.SVR(C=0.1, penalty="none", solver=solver)
    for number, part in enumerate(np.array_split(np.tile(np.arange(600), 4), 48)):
        machine.partial_fit(sparse.csr_array(X[part]) if number % 2 else X[part], y[part])
    best = er.SVR(C=0.1, penalty="none").fit(X, y).certificate_.primal
    assert objective(machine, X, y) < 1.5 * best


def test_a_fit_is_gone_on_from_and_not_thrown_away():
    X, y = rows(3000)
    machine = er.Ridge(C=1.0).fit(X[:2900], y[:2900])
    before = machine.coef_.copy()
    machine.partial_fit(X[2900:], y[2900:])
    np.testing.assert_allclose(machine.seen_, [[3000, 3000]])
    assert 0 < np.abs(machine.coef_ - before).max() < 0.1
    assert not hasattr(er.SVM().fit(X, y > 0).partial_fit(X, y > 0), "support_vectors_")


def test_a_feature_map_learns_from_the_first_call():
    X, y = rows(800, offset=3.0)
    machine = er.Ridge(C=1.0, features=StandardScaler())
    in_parts(machine, X, y)
    np.testing.assert_allclose(machine.features_.mean_, X[:100].mean(axis=0))
    assert machine.score(X, y) > 0.8
    kernel = er.maps.RandomFourier(er.kernels.Gaussian(2.0), rank=50, random_state=0)
    wavy = er.SVM(features=kernel, C=10.0)
    labels = np.linalg.norm(X - 3.0, axis=1) > 1.9
    assert in_parts(wavy, X, labels, passes=20, classes=[False, True]).score(X, labels) > 0.85


def test_several_targets_and_labels():
    X, y = rows(1500)
    Y = np.column_stack([y, -2 * y])
    machine = in_parts(er.Ridge(C=1.0), X, Y)
    np.testing.assert_allclose(machine.predict(X)[:, 1], -2 * machine.predict(X)[:, 0], atol=0.2)
    labels = np.column_stack([y > 0, y > 1]).astype(int)
    marked = in_parts(er.LogisticRegression(), X, labels)
    assert (marked.predict(X) == labels).mean() > 0.85
    with pytest.raises(EmpiriskError, match="columns of labels in some calls"):
        marked.partial_fit(X, labels[:, 0])
    with pytest.raises(EmpiriskError, match="2 functions, and this call asks for 1"):
        machine.partial_fit(X, y)


def test_calls_may_lack_classes():
    X, score = rows(900)
    y = classes_of(score, 3)
    machine = er.Classifier("squared_hinge", multiclass="one_vs_one", class_weight={"a": 2.0})
    order = np.argsort(y, kind="stable")
    for part in np.array_split(order, 9):  # every call has one class or two
        machine.partial_fit(X[part], y[part], classes=["a", "b", "c"])
    assert machine.predict(X).shape == (900,)
    assert machine.classes_.tolist() == ["a", "b", "c"]


def test_the_perceptron_moves_at_mistakes_alone():
    X, score = rows(200)
    y = np.sign(score)
    w, b = np.zeros(4), 0.0
    machine = er.Perceptron(random_state=0)
    order = np.argsort(X @ np.random.default_rng(np.random.RandomState(0).randint(2**31)).normal(size=4))
    machine.partial_fit(X, y, classes=[-1.0, 1.0])
    for i in order:
        if y[i] * (X[i] @ w + b) <= 0:
            w, b = w + y[i] * X[i], b + y[i]
    np.testing.assert_allclose(machine.coef_[0], w)
    np.testing.assert_allclose(machine.intercept_, [b])


# --- passive-aggressive steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 3.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "absolute", "epsilon_insensitive"])
def test_a_passive_aggressive_step_is_the_nearest_fit_of_the_row(loss, C, intercept):
    X, score = rows(6, 3, seed=4)
    classification = loss in ("hinge", "squared_hinge")
    y = np.where(score > 0, 1.0, -1.0) if classification else score
    solver = er.solvers.PassiveAggressive()
    shared = {"penalty": "none", "C": C, "solver": solver, "fit_intercept": intercept}
    machine = er.Classifier(loss, **shared) if classification else er.Regressor(loss, **shared)
    more = {"classes": [-1.0, 1.0]} if classification else {}
    w, b, weight = np.zeros(3), 0.0, 1.7
    for i in range(6):
        machine.partial_fit(X[[i]], y[[i]], sample_weight=[weight], **more)
        v, c = cp.Variable(3), cp.Variable()
        f = v @ X[i] + c
        value = {
            "hinge": cp.pos(1 - y[i] * f),
            "squared_hinge": cp.square(cp.pos(1 - y[i] * f)),
            "squared": cp.square(f - y[i]),
            "absolute": cp.abs(f - y[i]),
            "epsilon_insensitive": cp.pos(cp.abs(f - y[i]) - 0.1),
        }[loss]
        near = cp.sum_squares(v - w) / 2 + cp.square(c - b) / 2 + C * weight * value
        cp.Problem(cp.Minimize(near), [] if intercept else [c == 0]).solve(solver="CLARABEL")
        w, b = np.asarray(v.value), float(c.value)
        np.testing.assert_allclose(np.ravel(machine.coef_), w, atol=1e-5)
        np.testing.assert_allclose(np.ravel(machine.intercept_), b, atol=1e-5)
        w, b = np.ravel(machine.coef_), float(np.ravel(machine.intercept_)[0])


def test_the_three_variants_have_the_steps_of_their_paper():
    X, score = rows(40, 3, seed=2)
    y = np.sign(score)

    def steps(tau):
        w = np.zeros(3)
        for x, sign in zip(X, y, strict=True):
            w = w + tau(max(0.0, 1 - sign * x @ w), x @ x) * sign * x
        return w

    shared = {"penalty": "none", "fit_intercept": False, "solver": er.solvers.PassiveAggressive(shuffle=False)}
    found = [
        er.SVM(np.inf, **shared).partial_fit(X, y, classes=[-1, 1]).coef_[0],
        er.SVM(0.2, **shared).partial_fit(X, y, classes=[-1, 1]).coef_[0],
        er.Classifier("squared_hinge", C=0.2, **shared).partial_fit(X, y, classes=[-1, 1]).coef_[0],
    ]
    np.testing.assert_allclose(found[0], steps(lambda loss, square: loss / square))
    np.testing.assert_allclose(found[1], steps(lambda loss, square: min(0.2, loss / square)))
    np.testing.assert_allclose(found[2], steps(lambda loss, square: loss / (square + 1 / (2 * 0.2))))


def test_passive_aggressive_fits_what_can_be_separated():
    X, _ = rows(200)
    X = X[np.abs(X[:, 0] - 0.5 * X[:, 1]) > 0.2]
    y = X[:, 0] - 0.5 * X[:, 1] > 0
    machine = er.SVM(C=1.0, penalty="none", solver="passive_aggressive").fit(X, y)
    assert machine.certificate_.converged
    assert machine.score(X, y) == 1.0
    assert machine.solver_ == "passive_aggressive"
    with pytest.raises(Unsuitable, match="it needs no penalty"):
        er.SVM(solver="passive_aggressive").fit(X, y)
    with pytest.raises(Unsuitable, match="it needs no penalty"):
        er.SVM(solver="passive_aggressive").partial_fit(X, y, classes=[False, True])


def test_averaged_weights_are_steadier():
    X, score = rows(2000)
    y = np.sign(score)
    near = er.SVM(penalty="none").fit(X, y).certificate_.primal
    losses = []
    for average in (False, True):
        solver = er.solvers.PassiveAggressive(average=average)
        machine = er.SVM(penalty="none", solver=solver).partial_fit(X, y, classes=[-1, 1])
        losses.append(objective(machine, X, y))
    assert near <= losses[1] < losses[0]


# --- the contract -----------------------------------------------------------------------------------------------------


def test_nothing_is_claimed():
    X, y = rows()
    machine = in_parts(er.Ridge(), X, y)
    certificate = machine.certificate_
    assert not certificate.converged
    assert certificate.dual == -np.inf
    assert certificate.gap == certificate.relative_gap == np.inf
    assert certificate.status == machine.stopped_ == "partial_fit"
    assert machine.n_iter_ == len(machine.history_["loss"]) == 8
    assert machine.history_["loss"][-1] < machine.history_["loss"][0]


@pytest.mark.parametrize(
    "machine",
    [
        er.SVM(features=er.kernels.Gaussian()),
        er.SVM(features="gaussian"),
        er.LogisticRegression(solver="newton"),
        er.LogisticRegression(solver="unheard of"),
        er.Ridge(C="loo"),
        er.SVM(C="cv"),
        er.OneClassSVM(),
        er.KNNClassifier(),
    ],
    ids=repr,
)
def test_machines_that_need_all_rows_have_no_partial_fit(machine):
    assert not hasattr(machine, "partial_fit")


def test_bad_calls_are_refused_and_change_nothing():
    X, score = rows(50)
    y = classes_of(score)
    machine = er.SVM()
    with pytest.raises(EmpiriskError, match="classes must be passed on the first call"):
        machine.partial_fit(X, y)
    assert not hasattr(machine, "coef_")
    machine.partial_fit(X, y, classes=["b", "a"])
    before = {name: np.copy(value) for name, value in vars(machine).items() if isinstance(value, np.ndarray)}
    for bad, words in (
        (lambda: machine.partial_fit(X[:, :2], y), "X has 2 features, but SVM is expecting 4"),
        (lambda: machine.partial_fit(X, np.where(y == "a", "c", y)), "y holds c, not among the classes a, b"),
        (lambda: machine.partial_fit(X, y, classes=["a", "d"]), "not the same as on the last call"),
        (lambda: machine.partial_fit(X, y, sample_weight=np.zeros(50)), "zero for every row"),
        (lambda: machine.partial_fit(X * np.nan, y), "NaN"),
        (lambda: clone(machine).partial_fit(X, y, classes=["a"]), "at least two"),
        (lambda: er.SVM(class_weight="balanced").partial_fit(X, y, classes=["a", "b"]), "counts all rows"),
        (lambda: er.SVM(penalty=er.penalties.GroupL1(2)).partial_fit(X, y, classes=["a", "b"]), "it needs a penalty"),
        (lambda: er.SVM(np.inf).partial_fit(X, y, classes=["a", "b"]), "it needs a finite C"),
        (lambda: er.Ridge(solver=er.solvers.SGD(rate=1e9)).partial_fit(np.tile(X, (50, 1)), np.tile(score, 50)),
         "beyond all numbers"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words), np.errstate(all="ignore"):
            bad()
    for name, value in before.items():
        np.testing.assert_array_equal(vars(machine)[name], value)


SOLVERS = [
    "auto",
    er.solvers.SGD(adapt="adam", average=True),
    er.solvers.PassiveAggressive(average=True),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_file_in_the_midst_goes_on_to_the_same_bits(solver, tmp_path):
    X, score = rows(400, offset=2.0)
    y = classes_of(score, 3)
    machine = er.SVM(C=0.3, penalty="none", solver=solver)
    in_parts(machine, X[:200], y[:200], classes=["a", "b", "c"])
    er.save(machine, tmp_path / "a.model")
    loaded = er.load(tmp_path / "a.model")
    for one in (machine, loaded):
        in_parts(one, X[200:], y[200:])
    np.testing.assert_array_equal(machine.coef_, loaded.coef_)
    np.testing.assert_array_equal(machine.intercept_, loaded.intercept_)
    np.testing.assert_array_equal(machine.history_["loss"], loaded.history_["loss"])


def test_another_solver_goes_on_from_the_weights():
    X, y = rows(1000)
    machine = in_parts(er.SVR(C=0.1, penalty="none"), X, y)
    before = machine.coef_.copy()
    machine.set_params(solver="passive_aggressive").partial_fit(X[:1], y[:1])
    step = machine.coef_ - before
    assert np.abs(np.cross(step[:3], X[0, :3])).max() < 1e-12  # along the row
    machine.set_params(features=StandardScaler()).partial_fit(X, y)  # other features: anew
    assert machine.seen_[0, 0] == 1000


def test_a_call_ends_when_the_time_is_over():
    X, y = rows(200_000)
    machine = er.Ridge(solver=er.solvers.SGD(batch_size=1)).partial_fit(X[:10], y[:10])  # compiled
    machine.set_params(max_time=0.05)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="raise max_time, or give it fewer rows at a time"):
        machine.partial_fit(X, y)
    assert time.perf_counter() - begin < 1.0


# --- warm starts ------------------------------------------------------------------------------------------------------

WARM = [
    er.LogisticRegression(C=10.0),
    er.LogisticRegression(C=10.0, penalty="l1"),
    er.LogisticRegression(C=10.0, features=er.kernels.Gaussian(2.0)),
    er.SVM(C=10.0),
    er.SVM(C=10.0, solver="dual_ascent"),
    er.SVM(C=10.0, features=er.kernels.Gaussian(2.0)),
    er.Classifier("crammer_singer"),
    er.Classifier("squared_hinge", multiclass="one_vs_one", solver="gradient_descent", tol=1e-4),
    er.Lasso(C=1.0),
    er.Lasso(C=1.0, solver="proximal", tol=1e-5),
    er.SVR(C=10.0, features=er.kernels.Gaussian(2.0)),
    er.LeastAbsolute(),
    er.Ridge(C=10.0, features=er.kernels.Gaussian(2.0)),
    er.LogisticRegression(features=er.maps.Polynomial(2)),
]
# An interior-point method needs slack, which a solution without a dual value has not; the steps of a proximal gradient
# are too few to save one.
AS_MANY = {repr(er.LeastAbsolute()), repr(er.Lasso(C=1.0, solver="proximal", tol=1e-5))}


@pytest.mark.parametrize("machine", WARM, ids=repr)
def test_a_warm_start_finds_the_same_minimum_in_fewer_iterations(machine):
    X, score = rows(300)
    y = classes_of(score, 3) if is_classifier(machine) else score
    cold = clone(machine).fit(X, y)
    warm = clone(machine).set_params(warm_start=True).fit(X, y)
    assert warm.n_iter_ == cold.n_iter_
    warm.fit(X, y)
    assert warm.certificate_.converged
    assert warm.n_iter_ <= max(1, cold.n_iter_ - 1) or (repr(machine) in AS_MANY and warm.n_iter_ <= cold.n_iter_)
    np.testing.assert_allclose(warm.certificate_.primal, cold.certificate_.primal, rtol=3 * machine.tol)
    # A little more C: still the certified minimum.
    warm.set_params(C=1.1 * machine.C).fit(X, y)
    anew = clone(machine).set_params(C=1.1 * machine.C).fit(X, y)
    assert warm.certificate_.converged
    np.testing.assert_allclose(warm.certificate_.primal, anew.certificate_.primal, rtol=3 * machine.tol)


@pytest.mark.parametrize("machine", WARM, ids=repr)
def test_a_warm_start_on_other_rows_and_classes_is_no_harm(machine):
    X, score = rows(300)
    classifier = is_classifier(machine)
    warm = clone(machine).set_params(warm_start=True)
    for n, columns, count in ((300, 4, 3), (120, 4, 3), (200, 4, 2), (150, 3, 2)):
        y = classes_of(score[:n], count) if classifier else score[:n] * count
        warm.fit(X[:n, :columns], y)
        anew = clone(machine).fit(X[:n, :columns], y)
        assert warm.certificate_.converged
        np.testing.assert_allclose(warm.certificate_.primal, anew.certificate_.primal, rtol=3 * machine.tol)


def test_a_hard_margin_may_be_asked_for_a_warm_start():
    X, score = rows(100)
    X[:, 0] += 10 * np.sign(score)
    machine = er.SVM(C=np.inf, warm_start=True).fit(X, score > 0)
    np.testing.assert_allclose(machine.fit(X, score > 0).certificate_.primal, machine.certificate_.primal)


def test_warm_start_must_be_a_flag():
    with pytest.raises(EmpiriskError, match="warm_start='yes' must be True or False"):
        er.Ridge(warm_start="yes").fit(*rows())
