"""From the neighbourhood of a solution to the solution: solve the equations of the corners that hold it.

Near the optimum an interior-point iterate shows which predictions stand at a corner and which weights are zero. With
those fixed, what is left is a linear system, whose solution is exact to rounding.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.lapack import least_squares
from empirisk.problem import Array, Point, Problem

#: Unknowns up to which least squares take about a second.
LARGEST = 2000


@dataclass(frozen=True)
class ActiveSet:
    """What holds the solution.

    Attributes
    ----------
    slopes : array of n
        The dual point, with 0 in place of the unknown part of rows at a corner.
    rows, targets : arrays
        Rows at a corner, and the prediction there.
    free : array of int
        Columns whose weight is not zero.
    pull : array
        The l1 slope of the free weights.
    bends : array of n
        Curvature of the smooth part of the loss; ``slopes`` are those at ``predictions``.
    predictions : array of n
        Where the smooth slopes were taken.
    """

    slopes: Array
    rows: NDArray[np.intp]
    targets: Array
    free: NDArray[np.intp]
    pull: Array
    bends: Array
    predictions: Array


def crossover(problem: Problem, held: ActiveSet) -> Point | None:
    """The point at which exactly the rows of the active set are at their kinks; None if the system is too large."""
    size = len(held.rows) + (0 if problem.penalty.l2 > 0 and not held.bends.any() else len(held.free))
    if size > LARGEST or len(held.rows) == 0:
        return None
    if problem.design.on_device and len(held.rows) > len(held.free) + 1:  # at a corner there are as many as unknowns
        return None
    corner = problem.design.rows(held.rows).columns(held.free)
    known = problem.design.tdot(held.slopes)[held.free] + held.pull
    imbalance = float(held.slopes.sum())
    if held.bends.any():
        w, b, v = _curved(problem, held, corner, known, imbalance)
    elif problem.penalty.l2 > 0:
        w, b, v = _ridged(problem, held, corner, known, imbalance)
    else:
        w, b, v = _straight(problem, held, corner, known, imbalance)
    if not (np.all(np.isfinite(w)) and np.all(np.isfinite(v))):
        return None
    weights = np.zeros(problem.width)
    weights[held.free] = w
    point = Point(weights, b)
    u = held.slopes + held.bends * (problem.predict(point) - held.predictions)
    u[held.rows] += v
    return Point(weights, b, u)


def _ridged(problem: Problem, held: ActiveSet, corner: Array, known: Array, imbalance: float):
    """w = -(known + corner'v) / l2 and corner w + b = targets, sum of v = -imbalance."""
    l2, size = problem.penalty.l2, len(held.rows)
    unknowns = size + problem.intercept
    matrix = np.ones((unknowns, unknowns))
    matrix[:size, :size], matrix[size:, size:] = -corner @ corner.T / l2, 0.0
    right = np.append(held.targets + corner @ known / l2, -imbalance)
    v, b = np.split(_symmetric(matrix, right[:unknowns]), [size])
    return -(known + corner.T @ v) / l2, float(b.sum()), v


def _straight(problem: Problem, held: ActiveSet, corner: Array, known: Array, imbalance: float):
    """Without curvature: corner w + b = targets of minimum norm, and corner'v = -known, sum of v = -imbalance."""
    if problem.intercept:
        centre, level = corner.mean(axis=0), float(held.targets.mean())
        w = least_squares(corner - centre, held.targets - level)
        both = np.vstack([corner.T, np.ones(len(held.rows))])
        return w, level - float(centre @ w), least_squares(both, -np.append(known, imbalance))
    return least_squares(corner, held.targets), 0.0, least_squares(corner.T, -known)


def _curved(problem: Problem, held: ActiveSet, corner: Array, known: Array, imbalance: float):
    """The full system in w, b and v, where the smooth part of the loss bends."""
    columns, size, extra = len(held.free), len(held.rows), int(problem.intercept)
    matrix = np.zeros((columns + extra + size, columns + extra + size))
    right = np.zeros(len(matrix))
    matrix[:columns, :columns] = problem.design.gram(held.bends)[np.ix_(held.free, held.free)]
    matrix.flat[: columns * len(matrix) : len(matrix) + 1] += problem.penalty.l2
    bent = held.bends * held.predictions
    right[:columns] = problem.design.tdot(bent)[held.free] - known
    last = columns + extra
    matrix[last:, :columns], matrix[:columns, last:] = corner, corner.T
    right[last:] = held.targets
    if extra:
        matrix[columns, :columns] = matrix[:columns, columns] = problem.design.tdot(held.bends)[held.free]
        matrix[columns, columns] = held.bends.sum()
        matrix[last:, columns] = matrix[columns, last:] = 1.0
        right[columns] = float(bent.sum()) - imbalance
    solution = _symmetric(matrix, right)
    return solution[:columns], float(solution[columns]) if extra else 0.0, solution[last:]


def _symmetric(matrix: Array, right: Array) -> Array:
    """Solve an indefinite symmetric system, scaled to rows of size one, by least squares: it may be singular."""
    largest = np.abs(matrix).max(axis=1)
    size = np.sqrt(np.where(largest > 0, largest, 1.0))
    return least_squares(matrix / size[:, None] / size, right / size) / size
