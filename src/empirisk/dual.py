"""Making a dual point feasible, so that its value is a true lower bound.

A solver's dual point may leave the domain of the conjugates by rounding, miss the balance sum_i u_i = 0 of a free
intercept, or have A'u outside of the domain of R*, which for l1 is |A'u|_inf <= l1. Each is repaired here with small
moves, largest where the point has most slack.
"""

from collections.abc import Callable, Iterator
from functools import reduce

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import solve_triangular

from empirisk.linalg import blocks, lapack
from empirisk.linalg.coupled import Coupling, JointColumns, negligible_columns
from empirisk.linalg.factor import Cholesky, normal_equations
from empirisk.linalg.gradients import JointGradients
from empirisk.linalg.threads import patiently
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


def feasible(problem: Problem, u: Array) -> tuple[Array, Array]:
    """A dual point near u that satisfies every constraint, and its correlations A'u."""
    repair = _repair_joint if problem.classes else _repair_scalar
    u = repair(problem, u)
    correlations = problem.design.tdot(u)
    if problem.penalty.zero:
        return u, correlations
    share = problem.norm.feasible_share(correlations)
    return (u, correlations) if share == 1 else (share * u, share * correlations)


def _repair_scalar(problem: Problem, u: Array) -> Array:
    low, high = problem.bounds()
    u = blocks.rowwise(np.clip, u, low, high)
    if problem.penalty.zero:
        return _orthogonalise(problem, u, low, high)
    return _balance(u, low, high, problem.scale, -problem.tilt) if problem.intercept else u


def _slack(u: Array, low: Array, high: Array, scale: Array) -> Array:
    """How far each u_i is from its bounds: (u - low)(high - u)/(high - low), or the limits of that."""

    def slack(u: Array, low: Array, high: Array, scale: Array) -> Array:
        below, above = u - low, high - u
        with np.errstate(invalid="ignore"):
            slack = below * above / (below + above)
        if np.isfinite(slack).all():
            return slack
        slack = np.where(np.isinf(above), below, np.where(np.isinf(below), above, slack))
        return np.where(np.isinf(slack), scale, np.nan_to_num(slack))

    return blocks.rowwise(slack, u, low, high, scale)


def _balance(u: Array, low: Array, high: Array, scale: Array, aim: float) -> Array:
    """Shift u inside its bounds so that it sums to ``aim``."""
    slack = _slack(u, low, high, scale)
    total = slack.sum()
    if total > 0:
        share, moved = (u.sum() - aim) / total, np.empty_like(u)

        def move(rows: slice) -> int:
            inner = moved[rows]
            np.subtract(u[rows], share * slack[rows], out=inner)
            return int(np.count_nonzero((inner < low[rows]) | (inner > high[rows])))

        if blocks.sum_of_rows(move, len(u)) == 0:
            # What rounding has left of the sum is taken off the entry with most slack.
            moved[np.argmax(slack)] -= moved.sum() - aim
            return moved
    return _shift_to_sum(u, low, high, scale, aim)


def _shift_to_sum(u: Array, low: Array, high: Array, scale: Array, aim: float) -> Array:
    """clip(u + t scale) with t found by bisection: succeeds, since sum(low) <= aim <= sum(high)."""
    reach = 1.0
    while np.clip(u - reach * scale, low, high).sum() > aim or np.clip(u + reach * scale, low, high).sum() < aim:
        reach *= 2
        if reach > 1e300:  # rounding has put the aim just beyond all lower or all upper bounds
            return low if low.sum() > aim else high
    left, right = -reach, reach
    # A double has 53 bits: as many halvings find the place, with a few to spare.
    for _ in range(60):
        middle = 0.5 * (left + right)
        if middle in (left, right):
            break
        left, right = (middle, right) if np.clip(u + middle * scale, low, high).sum() < aim else (left, middle)
    below, above = np.clip(u + left * scale, low, high), np.clip(u + right * scale, low, high)
    lower, upper = below.sum(), above.sum()
    share = (aim - lower) / (upper - lower) if upper > lower else 0.0
    return below + share * (above - below)


def _orthogonalise(problem: Problem, u: Array, low: Array, high: Array) -> Array:
    """Move u into the null space of [A, 1]' without leaving its bounds; zero if that fails."""
    if problem.design.implicit:
        return np.zeros_like(u)
    rows, columns = problem.design.shape
    if rows <= columns:
        projected = _null_space_part(problem, u)
        inside = np.all((projected >= low) & (projected <= high))
        return projected if inside and _is_orthogonal(problem, projected) else np.zeros_like(u)
    restore = _restoring_by_qr if rows * columns**2 <= CHEAP else _restoring
    inside = False
    # Each round brings the bounds into play that the one before has crossed; few are needed where it works at all.
    for _ in range(30):
        slack = _slack(u, low, high, problem.scale)
        if not slack.any():
            break
        u, inside = _moved(problem, u, restore(problem, slack), low, high)
        if inside:
            break
    if inside and restore is _restoring and not _is_orthogonal(problem, u) and _fits_densely(problem):
        # Not the bounds but the digits of the normal equations have ended it.
        u, _ = _moved(problem, u, _restoring_by_qr(problem, slack), low, high)
    return u if _is_orthogonal(problem, u) else np.zeros_like(u)


def _moved(problem: Problem, u: Array, move: Callable, low: Array, high: Array) -> tuple[Array, bool]:
    """u after three moves, of which the last two take out rounding, cut at its bounds; and whether none was crossed."""
    moved = u
    for _ in range(3):
        moved = moved - move(problem.design.tdot(moved), float(moved.sum()))
    inside = np.clip(moved, low, high)
    return inside, np.array_equal(inside, moved)


def _fits_densely(problem: Problem) -> bool:
    """Whether there is memory for all columns, a copy of them to be factored, and room to spare."""
    return 24 * problem.design.shape[0] * problem.design.shape[1] <= settings().memory


def _restoring(problem: Problem, slack: Array) -> Callable[[Array, float], Array]:
    """The map from A'u and 1'u to the smallest slack * f with [A, 1]'(u - slack * f) = 0, by normal equations."""
    system = normal_equations(problem.design, slack, np.zeros(problem.design.shape[1]), problem.intercept)
    return lambda sums, total: slack * system.solve(sums, total if problem.intercept else 0.0)[2]


def _restoring_by_qr(problem: Problem, slack: Array) -> Callable[[Array, float], Array]:
    """The same by an orthogonal factor, which keeps twice as many digits where columns nearly depend on each other."""
    root = np.sqrt(slack / slack.max())
    matrix = root[:, None] * _with_ones(problem)
    sizes = np.sqrt(np.sum(matrix * matrix, axis=0))
    kept = np.flatnonzero(sizes > 0)
    q, r, chosen = lapack.column_basis(matrix[:, kept] / sizes[kept], len(slack) * EPSILON)
    kept = kept[chosen]

    def move(sums: Array, total: float) -> Array:
        wanted = (np.append(sums, total) if problem.intercept else sums)[kept] / sizes[kept]
        return root * (q @ solve_triangular(r, wanted, trans="T"))

    return move


def _is_orthogonal(problem: Problem, u: Array) -> bool:
    """Whether [A, 1]'u is zero up to rounding, column by column."""
    size = float(np.linalg.norm(u))
    sums = np.abs(problem.design.tdot(u))
    allowed = ROUNDING * size * problem.design.stored_lengths
    balanced = not problem.intercept or abs(float(u.sum())) <= ROUNDING * size * np.sqrt(len(u))
    return bool(np.all(sums <= allowed) and balanced)


def _null_space_part(problem: Problem, u: Array) -> Array:
    """The part of u orthogonal to the columns of A (and to 1), when there are at least as many columns as rows."""
    basis = _column_space(problem)
    # Twice: the first time leaves the rounding of the part that is taken off, which may be all of u.
    return reduce(lambda left, _: left - basis @ (basis.T @ left), range(2), u)


def _column_space(problem: Problem) -> Array:
    """An orthonormal basis of the columns of A (and of 1), by a pivoted QR of columns of length one.

    What is left of any column beside the basis is rounding of its length as it is stored. A Gram matrix of the rows,
    which needs less memory, would lose half of the digits: directions of singular values below 1e-8 of the largest.
    """
    if not _fits_densely(problem):
        return _leading_eigenvectors(problem)
    sizes = problem.design.stored_lengths
    if problem.intercept:
        sizes = np.append(sizes, np.sqrt(len(problem.y)))
    return lapack.column_basis(_with_ones(problem)[:, sizes > 0] / sizes[sizes > 0], 0.5 * ROUNDING)[0]


def _with_ones(problem: Problem) -> Array:
    """A, and a column of ones beside it where there is an intercept."""
    matrix = problem.design.columns(slice(None))
    return np.hstack([matrix, np.ones((len(matrix), 1))]) if problem.intercept else matrix


def _leading_eigenvectors(problem: Problem) -> Array:
    """The same basis, to half of the digits, from the products of the rows."""
    matrix = problem.design.outer()
    if problem.intercept:
        matrix = matrix + matrix.diagonal().mean()
    values, vectors = patiently(lambda: np.linalg.eigh(matrix), len(matrix))
    return vectors[:, values > len(matrix) * EPSILON * values[-1]]


def _repair_joint(problem: Problem, u: Array) -> Array:
    """Rows into the simplex, then [A, 1]'u to zero; all zero if that fails."""
    scale = problem.scale[:, None]
    u = with_balanced_rows(problem, scale * problem.loss.shrink(problem.y, u / scale))
    if not problem.intercept and not problem.penalty.zero:
        return u
    if problem.design.implicit and problem.penalty.zero:
        return np.zeros_like(u)
    for moved in _with_vanishing_sums(problem, u):
        if _is_jointly_feasible(problem, moved):
            return moved
    return np.zeros_like(u)


def with_balanced_rows(problem: Problem, u: Array) -> Array:
    """u with minus the sum of the others as the own entry of each row: the difference p - s has fewer digits."""
    own = problem.y.astype(int)[:, None]
    np.put_along_axis(u, own, 0.0, axis=1)
    np.put_along_axis(u, own, -u.sum(axis=1, keepdims=True), axis=1)
    return u


def _with_vanishing_sums(problem: Problem, u: Array) -> Iterator[Array]:
    """Candidates with [A, 1]'u = 0 where there is no penalty, else with 1'u = 0."""
    shares = problem.loss.simplex_point(problem.y, u / problem.scale[:, None])
    if problem.penalty.zero:
        yield u
        rows, columns = problem.design.shape
        yield _null_space_part(problem, u) if rows <= columns else _restored(problem, shares)
        return
    frequencies = np.bincount(problem.y.astype(int), problem.weights, problem.classes) / problem.weights.sum()
    for trace in (0.0, TRACE):
        # The class frequencies on every row are balanced: a trace of them gives slack where shares are zero.
        yield _restored(problem, (1 - trace) * shares + trace * frequencies)


def _restored(problem: Problem, shares: Array) -> Array:
    """u = s (shares - onehot) moved by S f, S = diag(p) - p p'/s on each row, so that its sums vanish.

    Without a penalty f = A t + t0, else each class has its own t0. The last two moves are linear and therefore exact;
    where a linear move would leave the simplex, what would become negative is cut off, or the factors are e^f.
    """
    u = with_balanced_rows(problem, problem.scale[:, None] * shares)
    for _ in range(ROUNDS if problem.penalty.zero else BALANCE_ROUNDS):
        coupling = Coupling(problem.scale[:, None] * shares)
        try:
            restore = _all_sums(problem, coupling) if problem.penalty.zero else _column_sums(coupling)
        except LinAlgError:  # the shares have vanished to rounding
            return u
        f = restore(u)
        change = coupling(f)
        if np.all(change >= -coupling.shares):
            u = u + change
            return u + coupling(restore(u))
        f = f - (shares * f).sum(axis=1, keepdims=True)
        shares = shares * (np.maximum(1 + f, 0.0) if problem.penalty.zero else np.exp(f / max(1.0, np.abs(f).max())))
        shares = shares / shares.sum(axis=1, keepdims=True)
        u = with_balanced_rows(problem, problem.scale[:, None] * shares)
    return u


def _column_sums(coupling: Coupling) -> Callable[[Array], Array]:
    """The map from u to the f, one number for each class, with 1'(u + S f) = 0."""
    total = coupling.total()
    factor = Cholesky(total + total.diagonal().mean() / len(total))
    return lambda u: np.tile(factor.solve(-u.sum(axis=0)), (len(u), 1))


def _all_sums(problem: Problem, coupling: Coupling) -> Callable[[Array], Array]:
    """The map from u to the f = A t + t0 with [A, 1]'(u + S f) = 0."""
    design = problem.design
    if np.prod(problem.width) <= DIRECT:
        solve = JointColumns(design, coupling, np.zeros(problem.width), problem.intercept).solve
    else:
        gradients = JointGradients(design, 0.0, problem.intercept)
        gradients.renew(coupling)

        def solve(right: Array, constant: Array) -> tuple[Array, ...]:
            return gradients.solve(right, constant, lambda _, size, first: size <= EXACT * first, lambda: False)

    def restore(u: Array) -> Array:
        t, t0, *_ = solve(-design.tdot(u), -u.sum(axis=0))
        return design.dot(t) + t0

    return restore


def _is_jointly_feasible(problem: Problem, u: Array) -> bool:
    """Whether the rows of u lie in the simplex and the sums [A, 1]'u are zero, both up to rounding."""
    inside = problem.loss.simplex_point(problem.y, u / problem.scale[:, None]).min() >= -SIMPLEX_ROUNDING
    size = ROUNDING * float(np.linalg.norm(u))
    balanced = not problem.intercept or np.abs(u.sum(axis=0)).max() <= size * np.sqrt(len(u))
    if not (inside and balanced and problem.penalty.zero):
        return bool(inside and balanced)
    sums = np.abs(problem.design.tdot(u)).max(axis=1)
    allowed = size * problem.design.stored_lengths
    return bool(np.all((sums <= allowed) | negligible_columns(problem.design)))
