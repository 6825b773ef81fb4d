"""Whether some direction lets losses fall for ever, so that without a penalty no point attains the infimum."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from empirisk.problem import Array, Point, Problem

#: Entries of the programme's matrix up to which it is solved in a moment.
SMALL = 200_000
SECONDS = 0.5  # a question that only words a warning may cost no more
#: Rounding of margins along a direction whose entries, times those of the columns, are at most one; and what is more.
ROUNDING, GROWTH = 1e-9, 1e-6
#: The smallest tolerance that the solver of linear programmes knows.
FEASIBLE = 1e-10
#: A smaller margin leaves a loss that counts beside those of the other samples: the fit has not gone far that way.
FAR = 8.0


def falling(problem: Problem) -> Array:
    """Which way the loss of each row falls for ever: +1 or -1, or 0 for neither; of labels the label.

    It does so as f grows if no slope of it is positive, and as f falls if none is negative.
    """
    low, high = problem.loss.domain(problem.y)
    return np.where(high == 0, 1.0, np.where(low == 0, -1.0, 0.0))


def margins(problem: Problem, f: Array) -> Array:
    """f the way the loss falls, or of a joint loss the score of the own class minus each other one.

    Where it has an intercept of its own, the score of a class without rows falls for ever, which separates nothing: it
    is left out.
    """
    if not problem.classes:
        return falling(problem) * f
    own = np.take_along_axis(f, problem.y.astype(int)[:, None], axis=1)
    others = _others(problem)
    return (own - f)[others]


def _others(problem: Problem) -> NDArray[np.bool_]:
    """For each row, the classes that are not its own; beside an intercept only those that have rows."""
    classes = np.arange(problem.classes)
    present = np.isin(classes, problem.y) if problem.intercept else True
    return present & (classes != problem.y[:, None])


def separable(problem: Problem, point: Point, converged: bool) -> bool:
    """Whether a direction lowers some loss for ever and raises none: the classes are separable, but for ties.

    Losses that do not fall for ever, as the deviance of a positive count, must not change along it.

    A point that gives every sample a positive margin shows it. Else a linear programme looks for the direction: where
    the fit did not converge, or has gone far in some direction. Large problems are left. One class alone is separated
    from nothing: its losses fall with the intercept, and w stays where it is.
    """
    if problem.intercept and np.ptp(problem.y) == 0:
        return False
    found = margins(problem, problem.predict(point))
    if found.min() > 0:
        return True
    if converged and found.max() < FAR:
        return False
    rows, columns = len(found), int(np.prod(problem.width))
    return rows * columns <= SMALL and _direction_exists(problem)


def _direction_exists(problem: Problem) -> bool:
    """Whether margins along some w and b are all zero or positive, and one is positive; f is fixed in other rows."""
    columns = problem.design.dot(np.eye(problem.design.shape[1]))
    sizes = np.abs(columns).max(axis=0)
    columns = columns[:, sizes > 0] / sizes[sizes > 0]
    if problem.intercept:
        columns = np.hstack([columns, np.ones((len(columns), 1))])
    matrix, fixed = _signed(problem, columns)
    if matrix.size == 0:
        return False
    found = linprog(
        -matrix.sum(axis=0),
        A_ub=-matrix,
        b_ub=np.zeros(len(matrix)),
        A_eq=fixed if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=(-1.0, 1.0),
        options={"time_limit": SECONDS, "primal_feasibility_tolerance": FEASIBLE},
    )
    if found.x is None:
        return False
    along = matrix @ found.x
    still = np.abs(fixed @ found.x).max(initial=0.0) <= ROUNDING
    return bool(still and along.min() >= -ROUNDING and along.max() >= GROWTH)


def _signed(problem: Problem, columns: Array) -> tuple[Array, Array]:
    """The matrix whose product with the weights are the margins, and the rows whose losses fall neither way."""
    if not problem.classes:
        signs = falling(problem)
        return (signs[:, None] * columns)[signs != 0], columns[signs == 0]
    labels = problem.y.astype(int)
    onehot = np.eye(problem.classes)
    pairs = np.argwhere(_others(problem))
    differences = [np.kron(columns[row], onehot[labels[row]] - onehot[other]) for row, other in pairs]
    return np.array(differences, dtype=np.float64), np.zeros((0, problem.classes * columns.shape[1]))
