"""Making a dual point feasible, so that its value is a true lower bound.

A solver's dual point may leave the domain of the conjugates by rounding, miss the balance sum_i u_i = 0 of a free
intercept, or have A'u outside of the domain of R*, which for l1 is |A'u|_inf <= l1. Each is repaired here with small
moves, largest where the point has most slack.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from empirisk.linalg import lapack
from empirisk.linalg.coupled import Coupling, JointColumns, negligible_columns
from empirisk.linalg.factor import Cholesky, normal_equations
from empirisk.linalg.gradients import JointGradients
from empirisk.linalg.namespace import namespace, with_entries
from empirisk.linalg.rowspace import RowSpace, RowVector
from empirisk.linalg.threads import interruptible_call
from empirisk.problem import CHEAP, Array, Problem
from empirisk.settings import settings

EPSILON = np.finfo(float).eps
#: How much of [A, 1]'u, in units of |A| |u|, is paid for as rounding: more would let large weights below the bound.
ROUNDING = 1e-14
#: How far below zero rounding may leave a share of one.
SIMPLEX_ROUNDING = 1e-14
#: A share that opens a way where shares are zero, and costs less than any tolerance.
TRACE = 1e-9
#: Squared residual at which conjugate gradients have all digits.
EXACT = 1e-26
#: Cuts after which the point is taken to be out of reach; balancing, which is cheaper, gets more.
ROUNDS, BALANCE_ROUNDS = 10, 40
#: Unknowns whose normal matrix is factored in about a second.
DIRECT = 3000


def feasible(problem: Problem, u: RowVector) -> tuple[RowVector, Array]:
    """A dual point near u that satisfies every constraint, and its correlations A'u."""
    repair = _repair_joint if problem.classes else _repair_scalar
    u = repair(problem, u)
    correlations = problem.design.tdot(u)
    if problem.penalty.zero:
        return u, correlations
    if problem.penalty.cone and _is_in_cone(problem, u, correlations):
        return u, correlations
    share = problem.norm.feasible_share(-correlations)
    if share == 1:
        return u, correlations
    return problem.rowspace.map(lambda u: share * u, u), share * correlations


def _repair_scalar(problem: Problem, u: RowVector) -> RowVector:
    low, high = problem.bounds()
    u = _clip(problem.rowspace, low, high, u)
    if problem.penalty.zero:
        return _orthogonalise(problem, u, low, high)
    return _balance(problem, u, low, high, -problem.tilt) if problem.intercept else u


def _clip(rows: RowSpace, low: RowVector, high: RowVector, u: RowVector) -> RowVector:
    return rows.map(lambda low, high, u: namespace(u).clip(u, low, high), low, high, u)


def _crossed(rows: RowSpace, low: RowVector, high: RowVector, u: RowVector) -> int:
    """How many u_i are outside of their bounds."""
    return rows.number(lambda low, high, u: (u < low) | (u > high), low, high, u)


def _slack(problem: Problem, u: RowVector, low: RowVector, high: RowVector) -> RowVector:
    """How far each u_i is from its bounds: (u - low)(high - u)/(high - low), or the limits of that."""

    def slack(u: Array, low: Array, high: Array, scale: Array) -> Array:
        xp, below, above = namespace(u), u - low, high - u
        with np.errstate(invalid="ignore"):
            slack = below * above / (below + above)
        if xp is np and np.isfinite(slack).all():
            return slack
        slack = xp.where(xp.isinf(above), below, xp.where(xp.isinf(below), above, slack))
        return xp.where(xp.isinf(slack), scale, xp.nan_to_num(slack))

    return problem.rowspace.map(slack, u, low, high, problem.scale)


def _balance(problem: Problem, u: RowVector, low: RowVector, high: RowVector, aim: float) -> RowVector:
    """Shift u inside its bounds so that it sums to ``aim``."""
    rows, slack = problem.rowspace, _slack(problem, u, low, high)
    total = float(rows.total(slack))
    if total > 0:
        share = (float(rows.total(u)) - aim) / total
        moved = rows.map(lambda slack, u: u - share * slack, slack, u)
        if _crossed(rows, low, high, moved) == 0:
            # What rounding has left of the sum is taken off the entry with most slack.
            return rows.add_at_largest(moved, slack, aim - float(rows.total(moved)))
    return _shift_to_sum(problem, u, low, high, aim)


def _shift_to_sum(problem: Problem, u: RowVector, low: RowVector, high: RowVector, aim: float) -> RowVector:
    """clip(u + t scale) with t found by bisection: succeeds, since sum(low) <= aim <= sum(high)."""
    rows, reach = problem.rowspace, 1.0

    def shifted(t: float) -> RowVector:
        return _clip(rows, low, high, rows.map(lambda scale, u: u + t * scale, problem.scale, u))

    def total(t: float) -> float:
        return float(rows.total(shifted(t)))

    while total(-reach) > aim or total(reach) < aim:
        reach *= 2
        if reach > 1e300:  # rounding has put the aim just beyond all lower or all upper bounds
            return low if float(rows.total(low)) > aim else high
    left, right = -reach, reach
    # A double has 53 bits: as many halvings find the place, with a few to spare.
    for _ in range(60):
        middle = 0.5 * (left + right)
        if middle in (left, right):
            break
        left, right = (middle, right) if total(middle) < aim else (left, middle)
    lower, upper = total(left), total(right)
    share = (aim - lower) / (upper - lower) if upper > lower else 0.0
    return rows.map(lambda below, above: below + share * (above - below), shifted(left), shifted(right))


def _zeros(problem: Problem) -> RowVector:
    return problem.rowspace.constant(np.zeros(problem.width[1:]))


def _orthogonalise(problem: Problem, u: RowVector, low: RowVector, high: RowVector) -> RowVector:
    """Move u into the null space of [A, 1]' without leaving its bounds; zero if that fails."""
    if problem.design.implicit:
        return _zeros(problem)
    rows, columns = problem.design.shape
    if rows <= columns:
        projected = _null_space_part(problem, u)
        inside = _crossed(problem.rowspace, low, high, projected) == 0
        return projected if inside and _is_orthogonal(problem, projected) else _zeros(problem)
    restore = _restoring_by_qr if rows * columns**2 <= CHEAP and not problem.design.on_device else _restoring
    inside = False
    # Each round brings the bounds into play that the one before has crossed; few are needed where it works at all.
    for _ in range(30):
        slack = _slack(problem, u, low, high)
        if problem.rowspace.extremes(slack)[1] <= 0:
            break
        u, inside = _moved(problem, u, restore(problem, slack), low, high)
        if inside:
            break
    if inside and restore is _restoring and not _is_orthogonal(problem, u) and _fits_densely(problem):
        # Not the bounds but the digits of the normal equations have ended it.
        u, _ = _moved(problem, u, _restoring_by_qr(problem, slack), low, high)
    return u if _is_orthogonal(problem, u) else _zeros(problem)


def _moved(
    problem: Problem, u: RowVector, move: Callable[[Array, float], RowVector], low: RowVector, high: RowVector
) -> tuple[RowVector, bool]:
    """u after three moves, of which the last two take out rounding, cut at its bounds; and whether none was crossed."""
    rows, moved = problem.rowspace, u
    for _ in range(3):
        change = move(problem.design.tdot(moved), float(rows.total(moved)))
        moved = rows.map(lambda change, u: u - change, change, moved)
    return _clip(rows, low, high, moved), _crossed(rows, low, high, moved) == 0


def _fits_densely(problem: Problem) -> bool:
    """Whether the rows are in memory, which has room for all columns, for a copy to be factored, and to spare."""
    room = 24 * problem.design.shape[0] * problem.design.shape[1] <= settings().memory
    return room and problem.design.in_memory and not problem.design.on_device


def _restoring(problem: Problem, slack: RowVector) -> Callable[[Array, float], RowVector]:
    """The map from A'u and 1'u to the smallest slack * f with [A, 1]'(u - slack * f) = 0, by normal equations."""
    system = normal_equations(problem.design, slack, np.zeros(problem.design.shape[1]), problem.intercept)

    def move(sums: Array, total: float) -> RowVector:
        f = system.solve(sums, total if problem.intercept else 0.0)[2]
        return problem.rowspace.map(lambda slack, f: slack * f, slack, f)

    return move


def _restoring_by_qr(problem: Problem, slack: RowVector) -> Callable[[Array, float], RowVector]:
    """The same by an orthogonal factor, which keeps twice as many digits where columns nearly depend on each other."""
    slack = problem.rowspace.gathered(slack)
    root = np.sqrt(slack / slack.max())
    matrix = root[:, None] * _with_ones(problem)
    sizes = np.sqrt(np.sum(matrix * matrix, axis=0))
    kept = np.flatnonzero(sizes > 0)
    q, r, chosen = lapack.column_basis(matrix[:, kept] / sizes[kept], len(slack) * EPSILON)
    kept = kept[chosen]

    def move(sums: Array, total: float) -> RowVector:
        wanted = (np.append(sums, total) if problem.intercept else sums)[kept] / sizes[kept]
        return problem.rowspace.scattered(root * (q @ solve_triangular(r, wanted, trans="T")))

    return move


def _is_orthogonal(problem: Problem, u: RowVector) -> bool:
    """Whether [A, 1]'u is zero up to rounding, column by column."""
    rows = problem.rowspace
    size = rows.norm(u)
    sums = np.abs(problem.design.tdot(u))
    allowed = ROUNDING * size * problem.design.stored_lengths
    balanced = not problem.intercept or abs(float(rows.total(u))) <= ROUNDING * size * np.sqrt(rows.count)
    return bool(np.all(sums <= allowed) and balanced)


def _is_in_cone(problem: Problem, u: RowVector, correlations: Array) -> bool:
    """Whether A'u >= 0 up to rounding, column by column and class by class."""
    allowed = ROUNDING * problem.rowspace.norm(u) * problem.design.stored_lengths
    return bool(np.all(-allowed <= correlations.T))


def _null_space_part(problem: Problem, u: RowVector) -> RowVector:
    """The part of u orthogonal to the columns of A (and to 1), when there are at least as many columns as rows."""
    basis = _column_space(problem)
    # Twice: the first time leaves the rounding of the part that is taken off, which may be all of u.
    part = reduce(lambda left, _: left - basis @ (basis.T @ left), range(2), problem.rowspace.gathered(u))
    return problem.rowspace.scattered(part)


def _column_space(problem: Problem) -> Array:
    """An orthonormal basis of the columns of A (and of 1), by a pivoted QR of columns of length one.

    What is left of any column beside the basis is rounding of its length as it is stored. A Gram matrix of the rows,
    which needs less memory, would lose half of the digits: directions of singular values below 1e-8 of the largest.
    """
    if not _fits_densely(problem):
        return _leading_eigenvectors(problem)
    sizes = problem.design.stored_lengths
    if problem.intercept:
        sizes = np.append(sizes, np.sqrt(problem.rowspace.count))
    return lapack.column_basis(_with_ones(problem)[:, sizes > 0] / sizes[sizes > 0], 0.5 * ROUNDING)[0]


def _with_ones(problem: Problem) -> Array:
    """A, and a column of ones beside it where there is an intercept."""
    matrix = problem.rowspace.gathered(problem.design.columns(slice(None)))
    return np.hstack([matrix, np.ones((len(matrix), 1))]) if problem.intercept else matrix


def _leading_eigenvectors(problem: Problem) -> Array:
    """The same basis, to half of the digits, from the products of the rows."""
    matrix = problem.design.outer()
    if problem.intercept:
        matrix = matrix + matrix.diagonal().mean()
    values, vectors = interruptible_call(lambda: np.linalg.eigh(matrix), len(matrix))
    return vectors[:, values > len(matrix) * EPSILON * values[-1]]


def _repair_joint(problem: Problem, u: RowVector) -> RowVector:
    """Rows into the simplex, then [A, 1]'u to zero; all zero if that fails."""

    def inside(s: Array, y: Array, u: Array) -> Array:
        return with_balanced_rows(y, s[:, None] * problem.loss.shrink(y, u / s[:, None]))

    u = problem.rowspace.map(inside, problem.scale, problem.y, u, width=problem.classes)
    if not problem.intercept and not problem.penalty.zero:
        return u
    if problem.design.implicit and problem.penalty.zero:
        return _zeros(problem)
    for moved in _with_vanishing_sums(problem, u):
        if _is_jointly_feasible(problem, moved):
            return moved
    return _zeros(problem)


def with_balanced_rows(y: Array, u: Array) -> Array:
    """u with minus the sum of the others as the own entry of each row: the difference p - s has fewer digits."""
    own = y.astype(int)[:, None]
    u = with_entries(u, own, 0.0, axis=1)
    return with_entries(u, own, -u.sum(axis=1, keepdims=True), axis=1)


def _shares(problem: Problem, u: RowVector) -> RowVector:
    """The points of the simplex that u stands for."""

    def shares(s: Array, y: Array, u: Array) -> Array:
        return problem.loss.simplex_point(y, u / s[:, None])

    return problem.rowspace.map(shares, problem.scale, problem.y, u, width=problem.classes)


def _with_vanishing_sums(problem: Problem, u: RowVector) -> Iterator[RowVector]:
    """Candidates with [A, 1]'u = 0 where there is no penalty, else with 1'u = 0."""
    rows, shares = problem.rowspace, _shares(problem, u)
    if problem.penalty.zero:
        yield u
        count, columns = problem.design.shape
        yield _null_space_part(problem, u) if count <= columns else _restored(problem, shares)
        return
    frequencies = problem.class_weights / float(problem.rowspace.total(problem.weights))
    for trace in (0.0, TRACE):
        # The class frequencies on every row are balanced: a trace of them gives slack where shares are zero.
        mixed = rows.map(lambda p, trace=trace: (1 - trace) * p + trace * frequencies, shares)
        yield _restored(problem, mixed)


def _restored(problem: Problem, shares: RowVector) -> RowVector:
    """u = s (shares - onehot) moved by S f, S = diag(p) - p p'/s on each row, so that its sums vanish.

    Without a penalty f = A t + t0, else each class has its own t0. The last two moves are linear and therefore exact;
    where a linear move would leave the simplex, what would become negative is cut off, or the factors are e^f.
    """
    rows, free, scale, width = problem.rowspace, problem.penalty.zero, problem.scale, problem.classes

    def balanced(y: Array, s: Array, p: Array) -> Array:
        return with_balanced_rows(y, s[:, None] * p)

    def moved(s: Array, p: Array, f: Array) -> Array:
        return Coupling(s[:, None] * p)(f)

    def crossed(s: Array, p: Array, change: Array) -> NDArray[np.bool_]:
        return ~(change >= -s[:, None] * p)

    def centred(p: Array, f: Array) -> Array:
        return f - (p * f).sum(axis=1, keepdims=True)

    def cut(f: Array, p: Array) -> Array:
        p = p * (np.maximum(1 + f, 0.0) if free else np.exp(f / max(1.0, largest)))
        return p / p.sum(axis=1, keepdims=True)

    u = rows.map(balanced, problem.y, scale, shares, width=width)
    for _ in range(ROUNDS if free else BALANCE_ROUNDS):
        try:
            restore = (_all_sums if free else _column_sums)(problem, shares)
        except LinAlgError:  # the shares have vanished to rounding
            return u
        f = restore(u)
        change = rows.map(moved, scale, shares, f, width=width)
        if rows.number(crossed, scale, shares, change) == 0:
            u = rows.map(add, u, change, width=width)
            return rows.map(add, u, rows.map(moved, scale, shares, restore(u), width=width), width=width)
        f = rows.map(centred, shares, f, width=width)
        largest = max(np.abs(rows.extremes(f)))
        shares = rows.map(cut, f, shares, width=width)
        u = rows.map(balanced, problem.y, scale, shares, width=width)
    return u


def _column_sums(problem: Problem, shares: RowVector) -> Callable[[RowVector], RowVector]:
    """The map from u to the f, one number for each class, with 1'(u + S f) = 0."""
    rows = problem.rowspace
    total = rows.sum(lambda s, p: Coupling(s[:, None] * p).total(), problem.scale, shares, width=problem.classes)
    factor = Cholesky(total + total.diagonal().mean() / len(total))
    return lambda u: rows.constant(factor.solve(-rows.total(u)))


def _all_sums(problem: Problem, shares: RowVector) -> Callable[[RowVector], RowVector]:
    """The map from u to the f = A t + t0 with [A, 1]'(u + S f) = 0."""
    design = problem.design
    solve = (_joint_solver if design.in_memory else _joint_solver_of_blocks)(problem, shares)

    def restore(u: RowVector) -> RowVector:
        t, t0, *_ = solve(-design.tdot(u), -problem.rowspace.total(u))
        return problem.rowspace.map(lambda f: f + t0, design.dot(t), width=problem.classes)

    return restore


def _joint_solver(problem: Problem, shares: Array) -> Callable[[Array, Array], tuple[Array, ...]]:
    """(t, t0, ...) for right-hand sides: directly where there are few unknowns, else by conjugate gradients."""
    design, coupling = problem.design, Coupling(problem.scale[:, None] * shares)
    if np.prod(problem.width) <= DIRECT:
        return JointColumns(design, coupling, np.zeros(problem.width), problem.intercept).solve
    gradients = JointGradients(design, 0.0, problem.intercept)
    gradients.renew(coupling)
    return lambda right, constant: gradients.solve(
        right, constant, lambda _, size, first: size <= EXACT * first, lambda: False
    )


def _joint_solver_of_blocks(problem: Problem, shares: RowVector) -> Callable[[Array, Array], tuple[Array, ...]]:
    """(t, t0) for right-hand sides, by the matrix that is added up where the rows lie."""

    def model(f: Array, s: Array, p: Array) -> tuple:
        return (), np.zeros(1), np.zeros_like(p), s[:, None] * p

    (columns, classes), design = problem.width, problem.design
    zeros = np.zeros((columns, classes)), np.zeros(classes)
    matrix = design.local_sums(*zeros, model, problem.scale, shares)[1][3]
    kept = np.append(~negligible_columns(design), problem.intercept)
    matrix = matrix[kept][:, :, kept]
    # Adding the same number to all classes changes nothing, and is given curvature of its own.
    matrix = (
        matrix + np.einsum("jkjk->j", matrix)[:, None, None, None] / classes**2 * np.eye(len(matrix))[:, None, :, None]
    )
    factor = Cholesky(matrix.reshape(len(matrix) * classes, -1))

    def solve(right: Array, constant: Array) -> tuple[Array, Array]:
        packed = np.vstack([right, constant])
        packed[kept] = factor.solve(packed[kept].ravel()).reshape(-1, classes)
        packed[~kept] = 0.0
        return packed[:-1], packed[-1]

    return solve


def _is_jointly_feasible(problem: Problem, u: RowVector) -> bool:
    """Whether the rows of u lie in the simplex and the sums [A, 1]'u are zero, both up to rounding."""
    rows = problem.rowspace
    inside = rows.extremes(_shares(problem, u))[0] >= -SIMPLEX_ROUNDING
    size = ROUNDING * rows.norm(u)
    balanced = not problem.intercept or np.abs(rows.total(u)).max() <= size * np.sqrt(rows.count)
    if not (inside and balanced and problem.penalty.zero):
        return bool(inside and balanced)
    sums = np.abs(problem.design.tdot(u)).max(axis=1)
    allowed = size * problem.design.stored_lengths
    return bool(np.all((sums <= allowed) | negligible_columns(problem.design)))
