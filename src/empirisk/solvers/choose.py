"""Which solver for which problem: one table, read from the top; the first row that fits is taken."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from empirisk.problem import Problem
from empirisk.settings import settings
from empirisk.solvers.base import EXPLICIT, JOINT, Solver
from empirisk.solvers.closed.closed_form import ClosedForm
from empirisk.solvers.closed.factored import Factored
from empirisk.solvers.closed.non_negative import NonNegative
from empirisk.solvers.columns.coordinate_descent import CoordinateDescent
from empirisk.solvers.columns.working_groups import WorkingGroups
from empirisk.solvers.corners.envelope import Envelope
from empirisk.solvers.corners.interior_point import InteriorPoint
from empirisk.solvers.first_order.proximal import Proximal
from empirisk.solvers.newton.newton import Newton
from empirisk.solvers.newton.proximal_newton import ProximalNewton
from empirisk.solvers.rows.decomposition import Decomposition
from empirisk.solvers.rows.dual_ascent import DualAscent

#: A normal matrix of so many rows is factored in about a second.
MATRIX = 3000
#: Entries of a design below which a normal matrix of all rows takes milliseconds.
LARGE = 100_000
#: Weights whose normal matrix is factored in milliseconds.
WEIGHTS = 256
#: So many samples have their eigenvectors computed in about ten seconds.
FACTORABLE = 3000


def always(problem: Problem) -> bool:
    """Whatever the size."""
    return True


def small(problem: Problem) -> bool:
    """Whether a normal matrix, by columns or by rows, is cheap to make and factor."""
    size = min(problem.design.shape)
    if problem.design.streams and not problem.design.implicit:
        return True  # products do where a matrix would be large
    return size <= MATRIX and 32 * size**2 <= settings().memory  # four matrices of doubles


def long_with_corners(problem: Problem) -> bool:
    """Whether there are many more rows than columns, enough of both for the cheaper steps to pay, and corners."""
    rows, columns = problem.design.shape
    return not problem.loss.smooth and rows >= 8 * columns and rows * columns >= LARGE and small(problem)


def smooth(problem: Problem) -> bool:
    """Whether a loss without corners has a small normal matrix."""
    return problem.loss.smooth and small(problem)


def steep(problem: Problem) -> bool:
    """Whether the curvature of the loss has no bounds, so that plain Newton steps may fail."""
    return problem.loss.steep


def sparse_weights(problem: Problem) -> bool:
    """Whether the penalty sets weights to zero."""
    return not problem.penalty.smooth


def many_columns(problem: Problem) -> bool:
    """Whether there are so many weights that those which are zero should not cost anything."""
    return math.prod(problem.width) > WEIGHTS


def factorable(problem: Problem) -> bool:
    """Whether an eigendecomposition is cheap; also where no other solver is left."""
    return problem.design.shape[0] <= FACTORABLE or bool(Decomposition().refusal(problem))


def not_smooth(problem: Problem) -> bool:
    """Whether Newton's method cannot do it; where that stalls, rounding is met, and smaller steps meet it too."""
    return bool(Newton().refusal(problem))


def rows_with_corners(problem: Problem) -> bool:
    """Whether the rows are explicit and Newton's method cannot do it."""
    return EXPLICIT.holds(problem) and not_smooth(problem)


def in_passes(problem: Problem) -> bool:
    """Whether the rows are seen in passes alone: in files, or on a device where other solvers would copy them here."""
    single_numbers = sparse_weights(problem) or not (problem.loss.smooth or small(problem))
    return not problem.design.in_memory or (problem.design.on_device and single_numbers)


class Row(NamedTuple):
    """A solver, when it is taken, and why."""

    solver: type[Solver]
    fits: Callable[[Problem], bool]
    reason: str


TABLE = (
    Row(ProximalNewton, in_passes, "rows that are seen in passes: Newton's method on all of them, one pass a step"),
    Row(ClosedForm, always, "squared loss without l1: a linear system"),
    Row(NonNegative, small, "squared loss, weights that are not negative: linear systems of active sets"),
    Row(Envelope, steep, "curvature without bounds: Newton's method on envelopes of the loss"),
    Row(Newton, always, "smooth loss and penalty: Newton's method"),
    Row(WorkingGroups, many_columns, "norms of groups of many columns: an interior-point method on working sets"),
    Row(InteriorPoint, JOINT.holds, "joint loss with corners: an interior-point method on all classes at once"),
    Row(CoordinateDescent, sparse_weights, "smooth loss with l1: coordinate descent on a working set"),
    Row(Decomposition, always, "corners behind a kernel: decomposition of the dual into working sets"),
    Row(Factored, factorable, "a kernel that fits into memory: the machine on its factor"),
    Row(Envelope, long_with_corners, "corners, and many more rows than columns: Newton's method on rounded corners"),
    Row(Envelope, smooth, "a smooth loss that resisted: Newton's method on envelopes of the loss"),
    Row(InteriorPoint, small, "corners, and few rows or columns: an interior-point method"),
    Row(DualAscent, rows_with_corners, "corners with l2, many rows and columns: dual coordinate ascent"),
    Row(Proximal, not_smooth, "no special structure: a proximal method"),
)


def ranked(problem: Problem) -> Iterator[tuple[Solver, str]]:
    """The solvers that fit the problem and do not refuse it, best first, each with the reason."""
    for row in TABLE:
        if row.fits(problem) and not (solver := row.solver()).refusal(problem):
            yield solver, row.reason


def choose(problem: Problem) -> tuple[Solver, str]:
    """The first of `ranked`: some row takes every convex problem."""
    return next(ranked(problem))
