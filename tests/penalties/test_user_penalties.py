"""Penalties that a user writes: value, prox and conjugate are enough to be solved, certified and searched."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import empirisk as er
from empirisk.certificate import verify
from empirisk.penalties import Penalty
from empirisk.problem import Point

pytestmark = pytest.mark.row("E3")


class WeightedL1(Penalty):
    """sum_j strength_j |w_j|, nothing stated that need not be."""

    separable = True

    def __init__(self, strengths=1.0):
        self.strengths = strengths

    def value(self, w):
        return float(np.sum(np.asarray(self.strengths) * np.abs(w)))

    def prox(self, w, step):
        limit = step * np.asarray(self.strengths)
        return np.sign(w) * np.maximum(np.abs(w) - limit, 0.0)

    def conjugate(self, v):
        return 0.0 if np.all(np.abs(v) <= np.asarray(self.strengths)) else np.inf


class Box(Penalty):
    """No cost up to |w_j| = limit, and no weight beyond."""

    separable = True

    def __init__(self, limit=1.0):
        self.limit = limit

    def value(self, w):
        return 0.0 if np.abs(w).max(initial=0.0) <= self.limit else np.inf

    def prox(self, w, step):
        return np.clip(w, -self.limit, self.limit)

    def conjugate(self, v):
        return float(self.limit * np.abs(v).sum())


class Rounded(Penalty):
    """sum_j sqrt(1 + w_j^2) - 1, whose prox has no formula: bisection finds it."""

    separable = True

    def value(self, w):
        return float((np.sqrt(1 + w * w) - 1).sum())

    def prox(self, w, step):
        low, high = np.minimum(w, 0.0), np.maximum(w, 0.0)
        for _ in range(80):
            middle = 0.5 * (low + high)
            above = middle + step * middle / np.sqrt(1 + middle**2) > w
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)

    def conjugate(self, v):
        return float((1 - np.sqrt(1 - v * v)).sum()) if np.abs(v).max(initial=0.0) <= 1 else np.inf


class SmoothRounded(Rounded):
    """The same, with its derivatives stated."""

    smooth = True

    def gradient(self, w):
        return w / np.sqrt(1 + w * w)

    def curvature(self, w):
        return (1 + w * w) ** -1.5


class Length(Penalty):
    """|w|, not squared and not separable."""

    def value(self, w):
        return float(np.linalg.norm(w))

    def prox(self, w, step):
        size = np.linalg.norm(w)
        return w * max(1 - np.max(step) / size, 0.0) if size > 0 else w

    def conjugate(self, v):
        return 0.0 if np.linalg.norm(v) <= 1 else np.inf


STRENGTHS = [0.1, 1.0, 2.0, 0.5]
PENALTIES = [WeightedL1(STRENGTHS), Box(0.7), Rounded(), SmoothRounded(), Length()]


def as_cvxpy(penalty, w):
    """The penalty and its constraints."""
    if isinstance(penalty, WeightedL1):
        return cp.sum(cp.multiply(STRENGTHS, cp.abs(w))), []
    if isinstance(penalty, Box):
        return 0, [cp.abs(w) <= penalty.limit]
    if isinstance(penalty, Length):
        return cp.norm(w), []
    return sum(cp.norm(cp.hstack([1, w[j]])) - 1 for j in range(4)), []


def data(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(30, 4)) * [1.0, 0.5, 2.0, 1.0]
    return X, X @ [2.0, -1.0, 0.2, 0.0] + 0.3 * random.normal(size=30)


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute", "hinge"])
def test_the_optimum_is_that_of_cvxpy_and_certified(penalty, loss):
    X, t = data()
    regression = loss in ("squared", "absolute")
    y, C = t if regression else np.sign(t), 0.3
    w, b = cp.Variable(4), cp.Variable()
    f = X @ w + b
    losses = {
        "squared": lambda: cp.sum_squares(y - f),
        "absolute": lambda: cp.sum(cp.abs(y - f)),
        "logistic": lambda: cp.sum(cp.logistic(cp.multiply(-y, f))),
        "hinge": lambda: cp.sum(cp.pos(1 - cp.multiply(y, f))),
    }
    value, constraints = as_cvxpy(penalty, w)
    problem = cp.Problem(cp.Minimize(value + C * losses[loss]()), constraints)
    problem.solve(solver=cp.CLARABEL)
    machine = (er.Regressor if regression else er.Classifier)(loss, penalty=clone(penalty), C=C).fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(problem.value, rel=2e-6)


def test_derivatives_let_newton_in():
    X, y = data()
    slow = er.Classifier("logistic", penalty=Rounded(), tol=1e-10).fit(X, y > 0)
    fast = er.Classifier("logistic", penalty=SmoothRounded(), tol=1e-10).fit(X, y > 0)
    assert (slow.solver_, fast.solver_) == ("proximal", "newton")
    np.testing.assert_allclose(fast.coef_, slow.coef_, atol=1e-6)
    assert fast.n_iter_ < 15


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
def test_no_strengths_do_not_mean_no_penalty(penalty):
    """A penalty with l1 = l2 = 0 that is not zero: every solver of unpenalised problems leaves it alone."""
    X, y = data()
    assert (penalty.l1, penalty.l2) == (0.0, 0.0)
    assert not penalty.zero
    (problem,) = er.LeastSquares().problems(X, y)
    free = er.LeastSquares().fit(X, y)
    machine = er.Regressor("squared", penalty=clone(penalty), C=0.05, tol=1e-10).fit(X, y)
    assert np.linalg.norm(machine.coef_) < 0.95 * np.linalg.norm(free.coef_)
    assert machine.solver_ not in ("closed_form", "coordinate_descent", "interior_point")
    # The least-squares weights are no optimum of the penalised problem, and the certificate says so.
    (penalised,) = er.Regressor("squared", penalty=clone(penalty), C=0.05).problems(X, y)
    point = Point(free.coef_, float(problem.origin().b))
    assert verify(penalised, point).relative_gap > 1e-3


def test_a_penalty_below_zero_has_an_honest_bound():
    class Shifted(WeightedL1):
        def value(self, w):
            return super().value(w) - 100.0

        def conjugate(self, v):
            return super().conjugate(v) + 100.0

    X, y = data()
    machine = er.Regressor("squared", penalty=Shifted(1.0), C=0.1).fit(X, y)
    plain = er.Regressor("squared", penalty="l1", C=0.1).fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(plain.certificate_.primal - 100.0, abs=1e-4)
    assert machine.certificate_.dual <= plain.certificate_.primal - 100.0 + 1e-9


def test_critical_C_and_the_path_follow_from_the_conjugate():
    X, y = data()
    machine = er.Regressor("squared", penalty=WeightedL1(STRENGTHS))
    (problem,) = machine.problems(X, y)
    slopes = X.T @ (-2 * (y - y.mean()))
    assert problem.critical_C == pytest.approx((np.array(STRENGTHS) / np.abs(slopes)).min(), rel=1e-12)
    path = er.selection.path(machine, X, y, Cs=8)
    assert not path.coefs[0].any()
    assert (path.coefs[-1] != 0).sum() >= 3
    for penalty in (Box(), SmoothRounded()):
        (problem,) = er.Regressor("squared", penalty=penalty).problems(X, y)
        assert problem.critical_C == 0


def test_penalties_of_users_are_searched():
    X, y = data()
    search = GridSearchCV(er.Regressor("squared", penalty=Box()), {"penalty__limit": [0.1, 3.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"penalty__limit": 3.0}
    assert er.Regressor("squared", penalty=WeightedL1(), C="cv").fit(X, y).C_ > 0


def test_what_is_not_written_is_named():
    class Nothing(Penalty):
        pass

    X, y = data()
    with pytest.raises(er.errors.Unsuitable if hasattr(er, "errors") else Exception, match="states no"):
        er.Regressor("squared", penalty=Nothing()).fit(X, y)
