"""Ground truth: the optimal value of the equation by a general convex solver, written from the catalogue's formulas."""

import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy import sparse

from empirisk import losses, penalties
from tests import naive
from tests.catalog import AS_CVXPY

ACCURACY = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}


def _best_value(problem):
    """The optimal value; where rounding leaves the solver no step to its last digit, one digit fewer will do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the solution may be inaccurate
        best = problem.solve(solver=cp.CLARABEL, **ACCURACY)
    if problem.status != cp.OPTIMAL_INACCURATE:
        return best
    fewer = {name: 10 * value for name, value in ACCURACY.items() if name.startswith("tol")}
    return problem.solve(solver=cp.CLARABEL, **ACCURACY | fewer)


def _deviance_terms(loss, y, f):
    a, c = 2 - loss.power, loss.power - 1
    up = cp.exp(a * f) / a if a else f
    # Rows of zero have no second power: one times zero would cost the solver its digits.
    some = np.flatnonzero(y > 0)
    own = np.eye(len(y))[:, some] * y[some]
    down = own @ cp.exp(-c * f[some]) / c if c else -cp.multiply(y, f)
    at_one = (1 / a if a else 0.0) + (y / c if c else 0.0)
    return 2 * (up + down - at_one) + naive.deviance(loss, y, np.zeros(len(y))).astype(float)


def _joint_terms(loss, y, F):
    onehot = np.eye(F.shape[1])[y.astype(int)]
    own = cp.sum(cp.multiply(onehot, F), axis=1)
    if loss.name() == "softmax":
        return cp.log_sum_exp(F, axis=1) - own
    if loss.name() == "soft_crammer_singer":
        scaled = (F + loss.margin * (1 - onehot)) / loss.temperature
        return loss.temperature * cp.log_sum_exp(scaled, axis=1) - own
    return cp.max(F + (1 - onehot), axis=1) - own


def optimum(loss, penalty, C, X, y, weights, intercept, classes=0) -> float:
    """The smallest value of R(w) + C sum_i c_i loss(y_i, f_i)."""
    return float(_solved(loss, penalty, C, X, y, weights, intercept, classes)[0])


class Found(NamedTuple):
    """w and b of the general solver, and whether it calls them optimal without reserve."""

    point: tuple[np.ndarray, np.ndarray]
    optimal: bool


def minimiser(loss, penalty, C, X, y, weights, intercept, classes=0) -> Found:
    """Where that value is attained, as far as the general solver can tell; the best constant where it gives up."""
    with warnings.catch_warnings():
        # Its doubts are in the status, and what is made of them is the caller's business.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            _, w, b, status = _solved(loss, penalty, C, X, y, weights, intercept, classes)
        except cp.SolverError:
            w, status = None, cp.SOLVER_ERROR
    if w is None:
        width = X.shape[1]
        return Found((np.zeros((width, classes) if classes else width), np.zeros(classes or ())), False)
    return Found((w, b), status == cp.OPTIMAL)


def constrained_optima(loss, penalty, radii, X, y, weights, intercept, classes=0) -> list[float]:
    """For each radius the smallest sum of losses subject to R(w) <= radius, to eight digits, or seven at the least."""
    w, _, true, terms = _parts(loss, X, y, intercept, classes)
    size, radius = _penalty(penalties.find(penalty), true, w.shape), cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(weights, terms))), [size <= radius])
    found = []
    for radius.value in radii:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            try:
                best = problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
            except cp.SolverError:
                best = problem.solve(solver=cp.SCS, eps=1e-9, max_iters=100_000)
        found.append(float(best))
    return found


def _penalty(penalty, w, shape):
    """R(w), of groups of columns too."""
    if penalty.name() == "group_l1":
        groups, columns = penalty.blocks(shape[0]), int(np.prod(shape[1:]))
        rows = cp.reshape(w, (shape[0], columns), order="F")
        return cp.sum(
            [
                np.sqrt(columns * np.sum(groups == g)) * cp.norm(cp.vec(rows[groups == g], order="F"))
                for g in np.unique(groups)
            ]
        )
    return penalty.l1 * cp.sum(cp.abs(w)) + 0.5 * penalty.l2 * cp.sum_squares(w)


def _solved(loss, penalty, C, X, y, weights, intercept, classes):
    w, b, true, terms = _parts(loss, X, y, intercept, classes)
    value = _penalty(penalties.find(penalty), true, w.shape)
    problem = cp.Problem(cp.Minimize(value + C * cp.sum(cp.multiply(weights, terms))))
    best = _best_value(problem)
    if w.value is None:
        return best, None, None, problem.status
    constant = b.value if intercept else np.zeros(classes or ())
    found = np.reshape(true.value, w.shape)  # without columns CVXPY loses the classes
    centre, sizes = _scales(X, intercept)
    return best, found, constant - (centre / sizes) @ w.value, problem.status


def _scales(X, intercept):
    """The centre and the sizes of the columns."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    sizes = np.maximum(np.sqrt((X**2).mean(axis=0)), 1e-300)
    return X.mean(axis=0) if intercept else np.zeros(X.shape[1]), sizes


def _parts(loss, X, y, intercept, classes):
    """The variables w, in units of the columns, and b; the true weights; and the losses of the rows."""
    loss = losses.find(loss)
    # Columns of size one help the solver; the penalty sees the true weights.
    centre, sizes = _scales(X, intercept)
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    w = cp.Variable((X.shape[1], classes) if classes else X.shape[1])
    b = cp.Variable(classes if classes else ()) if intercept else 0.0
    scaled = (X - centre) / sizes
    true = cp.multiply(1 / sizes[:, None], w) if classes else cp.multiply(1 / sizes, w)
    f = scaled @ w + (np.ones((len(X), 1)) @ cp.reshape(b, (1, classes), order="F") if classes and intercept else b)
    if classes:
        terms = _joint_terms(loss, y, f)
    elif loss.positive:
        terms = _deviance_terms(loss, y, f)
    else:
        terms = AS_CVXPY[loss.name()](cp, loss, f - y if "regression" in loss.tasks else cp.multiply(y, f))
    return w, b, true, terms
