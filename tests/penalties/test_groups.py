"""Group l1: its functions by brute force and identities, fits against CVXPY, the path, the search, the file."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import empirisk as er
from empirisk import losses
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.penalties import L1, GroupL1
from tests.catalog import GROUPS, LOSSES
from tests.truth import optimum

pytestmark = pytest.mark.row("E3")
every_penalty = pytest.mark.parametrize("penalty", GROUPS, ids=repr)
#: The loss of the perceptron is least at w = 0, of which a fit warns.
LEARNABLE = [loss for loss in LOSSES if loss.convex and loss.name() != "perceptron"]
LABELS = ["a", "a", "b", "b", "b", "c"]


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


def machine_for(loss, t, **parameters):
    """A machine of the loss with its targets, those that CVXPY is given, and the number of classes of a joint loss."""
    if loss.joint:
        y = np.digitize(t, [-1.0, 1.0])
        return er.Classifier(loss, **parameters), y, y.astype(float), 3
    if "regression" in loss.tasks:
        y = np.exp(0.3 * t) if loss.positive else t
        return er.Regressor(loss, **parameters), y, y, 0
    return er.Classifier(loss, **parameters), np.sign(t), np.sign(t), 0


def assert_whole_groups(penalty, W):
    """The weights of a group are zero together, or none of them is."""
    for group in members(penalty, W.shape[1]):
        zero = W[:, group] == 0
        assert zero.all() or not zero.any()


@pytest.mark.parametrize("loss", LEARNABLE, ids=repr)
def test_the_optimum_is_that_of_cvxpy(loss):
    """For every loss of the list, with weights of rows, dense and sparse, with and without an intercept."""
    X, t = data()
    weights, penalty = np.random.default_rng(1).uniform(0.5, 2.0, len(X)), GroupL1(LABELS)
    for C, intercept, form in ((0.01, True, np.asarray), (0.1, False, sparse.csr_array), (5.0, True, sparse.csc_array)):
        machine, y, given, classes = machine_for(loss, t, penalty=penalty, C=C, fit_intercept=intercept)
        machine.fit(form(X), y, weights)
        best = optimum(loss, penalty, C, X, given, weights, intercept, classes)
        assert machine.certificate_.converged
        assert machine.certificate_.primal == pytest.approx(best, rel=1e-6)
        assert machine.solver_ == "interior_point"
        assert machine.certificate_.iterations < 100
        assert_whole_groups(penalty, np.atleast_2d(machine.coef_))


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "absolute", "softmax", "crammer_singer"])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of the general solver, to six digits all the same
def test_working_sets_of_many_columns_reach_the_optimum(loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 270))
    t, penalty, loss = X[:, :6].sum(axis=1) + random.normal(size=150), GroupL1(6), losses.find(loss)
    for C in (0.02, 0.5):
        machine, y, given, classes = machine_for(loss, t, penalty=penalty, C=C)
        best = optimum(loss, penalty, C, X, given, np.ones(150), True, classes)
        for form in (np.asarray, sparse.csr_array):
            machine.fit(form(X), y)
            assert machine.solver_ == "working_groups"
            assert machine.certificate_.converged
            assert machine.certificate_.primal == pytest.approx(best, rel=2e-6)
            W = np.atleast_2d(machine.coef_)
            assert_whole_groups(penalty, W)
            assert C > 0.1 or not W.all()


def test_working_sets_and_all_columns_at_once_agree():
    random = np.random.default_rng(2)
    X = random.normal(size=(80, 60)) * 10.0 ** random.uniform(-3, 3, 60)
    y = X @ random.normal(size=60) + random.normal(size=80)
    for C in (1e-6, 1e-3, 1.0):
        some, all_columns = (
            er.Regressor("squared", penalty=GroupL1(3), C=C, solver=solver, tol=1e-9).fit(X, y)
            for solver in ("working_groups", "interior_point")
        )
        assert some.certificate_.converged
        assert some.certificate_.primal == pytest.approx(all_columns.certificate_.primal, rel=1e-8)
    with pytest.raises(Unsuitable, match=r"working_groups.*it needs norms of groups of weights as penalty"):
        er.Ridge(solver="working_groups").fit(X, y)
    stopped = er.Regressor("squared", penalty=GroupL1(3), solver="working_groups", max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        stopped.fit(X, y)


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
    for name in ("coordinate_descent", "newton", "dual_ascent", "sgd", "gradient_descent"):
        with pytest.raises(Unsuitable, match=rf"solver='{name}' cannot .*: it needs a .*takes 'interior_point' here"):
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
