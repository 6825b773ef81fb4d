"""Group l1: its functions by brute force and identities, fits against CVXPY, the path, the search, the file."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.model_selection import GridSearchCV

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.penalties import L1, GroupL1
from tests.catalog import GROUPS

pytestmark = pytest.mark.row("E3")
every_penalty = pytest.mark.parametrize("penalty", GROUPS, ids=repr)
LABELS = ["a", "a", "b", "b", "b", "c"]
SMOOTH_MARGIN = ["logistic", "exponential", "squared_hinge", er.losses.SoftHinge(0.5, 0.3)]
SMOOTH_RESIDUAL = ["squared", er.losses.Power(1.3), er.losses.Power(3.5)]


def data(seed=0, rows=40):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 6)) * [1.0, 2.0, 0.5, 1.0, 1.0, 3.0]
    return X, X[:, 0] - X[:, 1] + 0.3 * random.normal(size=rows)


def members(penalty, count=6):
    blocks = penalty.blocks(count)
    return [np.flatnonzero(blocks == block) for block in np.unique(blocks)]


def naive(penalty, w):
    w = np.asarray(w, dtype=float)
    return sum(np.sqrt(w[group].size) * np.sqrt((w[group] ** 2).sum()) for group in members(penalty, len(w)))


@every_penalty
def test_value_and_prox_and_conjugate(penalty):
    random = np.random.default_rng(0)
    for shape in ((6,), (6, 3)):
        for _ in range(20):
            w, v = random.normal(size=(2, *shape)) * 2
            assert penalty.value(w) == pytest.approx(naive(penalty, w), rel=1e-13)
            step = random.uniform(0.05, 2.0)
            x = penalty.prox(w, step)
            # The prox satisfies its optimality condition, and no point nearby is better.
            assert np.all(penalty.distance(x, (w - x) / step) <= 1e-12 * (1 + np.abs(w) / step))
            reached = naive(penalty, x) + ((x - w) ** 2).sum() / (2 * step)
            for other in x + 0.01 * random.normal(size=(50, *shape)):
                assert naive(penalty, other) + ((other - w) ** 2).sum() / (2 * step) >= reached - 1e-12
            share = penalty.feasible_share(v)
            assert 0 < share <= 1
            assert penalty.conjugate(share * v) == 0
            assert share == 1 or penalty.conjugate((share + 1e-9) * v) == np.inf
            assert penalty.value(w) >= np.vdot(share * v, w) - 1e-12


@every_penalty
def test_critical_C_is_where_a_group_wakes_up(penalty):
    v = np.array([0.4, -2.5, 1.0, 0.2, 0.0, 3.0])
    critical, zero = penalty.critical_C(v), np.zeros(6)
    assert penalty.conjugate(-critical * (1 - 1e-12) * v) == 0
    assert penalty.conjugate(-critical * (1 + 1e-9) * v) == np.inf
    assert np.any(penalty.distance(zero, -critical * (1 + 1e-9) * v) > 0)
    assert penalty.critical_C(zero) == np.inf


def test_groups_of_one_column_are_l1():
    X, y = data()
    one, other = (er.Regressor("squared", penalty=penalty, C=0.05, tol=1e-10) for penalty in (GroupL1(), L1()))
    np.testing.assert_allclose(one.fit(X, y).coef_, other.fit(X, y).coef_, atol=1e-7)
    with pytest.raises(EmpiriskError, match="groups=0 of GroupL1 must be labels, or a number of columns"):
        er.Regressor("squared", penalty=GroupL1(0)).fit(X, y)
    with pytest.raises(EmpiriskError, match=r"has shape \(2,\), and the features have 6 columns; give one label"):
        er.Regressor("squared", penalty=GroupL1([0, 1])).fit(X, y)


def cvxpy_loss(name, y, f):
    if name == "squared":
        return cp.sum_squares(y - f)
    if name == "logistic":
        return cp.sum(cp.logistic(cp.multiply(-y, f)))
    return cp.sum(cp.square(cp.pos(1 - cp.multiply(y, f))))


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 0.1, 5.0])
def test_the_optimum_is_that_of_cvxpy(loss, C):
    X, t = data()
    y = t if loss == "squared" else np.sign(t)
    penalty = GroupL1(LABELS)
    w, b = cp.Variable(6), cp.Variable()
    value = sum(np.sqrt(len(group)) * cp.norm(w[group]) for group in members(penalty))
    problem = cp.Problem(cp.Minimize(value + C * cvxpy_loss(loss, y, X @ w + b)))
    problem.solve(solver=cp.CLARABEL)
    estimator = er.Regressor if loss == "squared" else er.Classifier
    machine = estimator(loss, penalty=penalty, C=C, tol=1e-9).fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(np.ravel(machine.coef_), w.value, atol=2e-4)
    for group in members(penalty):
        zero = np.ravel(machine.coef_)[group] == 0
        assert zero.all() or not zero.any()


@pytest.mark.parametrize("loss", SMOOTH_MARGIN + SMOOTH_RESIDUAL, ids=repr)
def test_every_smooth_loss_is_certified(loss):
    X, t = data(1)
    regression = loss in SMOOTH_RESIDUAL
    estimator, y = (er.Regressor, t) if regression else (er.Classifier, np.sign(t))
    machine = estimator(loss, penalty=GroupL1(LABELS), C=0.1).fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.relative_gap <= 1e-6


def test_a_joint_loss_takes_columns_for_all_classes():
    X, t = data(2, rows=60)
    y = np.digitize(t, [-1.0, 1.0])
    penalty = GroupL1(LABELS)
    machine = er.LogisticRegression(multiclass="joint", penalty=penalty, C=0.05, tol=1e-8).fit(X, y)
    assert machine.certificate_.converged
    silent = [group for group in members(penalty) if not machine.coef_[:, group].any()]
    assert 0 < len(silent) < 3
    assert all(machine.coef_[:, group].all() for group in members(penalty) if machine.coef_[:, group].any())

    def objective(packed):
        w, b = packed[:18].reshape(6, 3), packed[18:]
        f = X @ w + b
        loss = np.log(np.exp(f - f[np.arange(60), y][:, None]).sum(axis=1)).sum()
        return naive(penalty, w) + 0.05 * loss

    start = np.append(machine.coef_.T.ravel(), machine.intercept_)
    found = minimize(objective, start + 0.01, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6})
    assert machine.certificate_.primal <= found.fun + 1e-9
    assert machine.certificate_.primal == pytest.approx(objective(start), rel=1e-12)


def test_path_critical_C_search_and_file(tmp_path):
    X, y = data(3)
    machine = er.Regressor("squared", penalty=GroupL1(LABELS))
    path = er.selection.path(machine, X, y, Cs=12)
    awake = [len({LABELS[j] for j in np.flatnonzero(np.abs(coef) > 0)}) for coef in path.coefs]
    assert awake[0] == 0
    assert awake[-1] == 3
    assert all(certificate.converged for certificate in path.certificates)
    (problem,) = machine.problems(X, y)
    assert path.Cs[0] == pytest.approx(problem.critical_C)
    below, above = (machine.set_params(C=factor * problem.critical_C).fit(X, y).coef_ for factor in (0.999, 1.01))
    assert not below.any()
    assert above.any()
    search = GridSearchCV(er.Regressor("squared", penalty=GroupL1()), {"penalty__groups": [1, 2, LABELS]}, cv=3)
    assert search.fit(X, y).best_params_["penalty__groups"] in (1, 2, LABELS)
    er.save(machine, tmp_path / "groups.model")
    again = er.load(tmp_path / "groups.model")
    assert again.penalty.groups == LABELS
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))


def test_solvers_that_cannot_are_named_before_any_work():
    X, y = data()
    for name in ("coordinate_descent", "newton", "interior_point", "dual_ascent", "sgd", "gradient_descent"):
        with pytest.raises(Unsuitable, match=rf"solver='{name}' cannot .*: it needs a .*takes 'proximal' here"):
            er.Regressor("squared", penalty=GroupL1(2), solver=name).fit(X, y)
    with pytest.raises(Unsuitable, match="needs the weights themselves, which a kernel does not give"):
        er.Regressor("squared", er.kernels.Gaussian(), penalty=GroupL1()).fit(X, y)


def test_groups_of_one_column_have_the_solvers_of_l1():
    """A proximal method takes thousands of steps where columns are alike and C is large."""
    random = np.random.default_rng(0)
    X = random.normal(size=(20, 5)) + 100.0
    y = X @ [1.0, -1.0, 0.0, 0.0, 2.0] + random.normal(size=20)
    for loss in ("absolute", "squared", "power"):
        penalties = ("l1", GroupL1(list("abcde")))
        one, other = (er.Regressor(loss, penalty=penalty, C=100.0).fit(X, y) for penalty in penalties)
        assert other.certificate_.converged
        assert other.solver_ == one.solver_ != "proximal"
        np.testing.assert_array_equal(one.coef_, other.coef_)
    assert isinstance(GroupL1().simplest((3, 2)), GroupL1)  # the weights of a column for two classes are a group
