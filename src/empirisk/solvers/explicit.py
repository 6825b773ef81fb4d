"""Which solver for which problem with explicit features: one table, read from the top."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from empirisk.problem import Problem
from empirisk.settings import settings
from empirisk.solvers.ascent import DualAscent
from empirisk.solvers.base import Solver
from empirisk.solvers.closed import ClosedForm
from empirisk.solvers.coordinate import CoordinateDescent
from empirisk.solvers.interior import InteriorPoint
from empirisk.solvers.joint import JointNewton
from empirisk.solvers.newton import Newton
from empirisk.solvers.proximal import Proximal
from empirisk.solvers.smoothing import SmoothingNewton
from empirisk.solvers.steep import DualNewton

MATRIX = 3000
LARGE = 100_000


def small(problem: Problem) -> bool:
    """Whether a normal matrix, by columns or by rows, is cheap to make and factor."""
    size = min(problem.design.shape)
    return size <= MATRIX and 32 * size**2 <= settings().memory


def long(problem: Problem) -> bool:
    """Whether there are many more rows than columns, and enough of both for the cheaper steps to pay."""
    rows, columns = problem.design.shape
    return rows >= 8 * columns and rows * columns >= LARGE and small(problem)


class Row(NamedTuple):
    """A solver, when it is taken, and why."""

    solver: type[Solver]
    fits: Callable[[Problem], bool]
    reason: str


EXPLICIT = (
    Row(ClosedForm, lambda p: True, "squared loss without l1: a linear system"),
    Row(JointNewton, lambda p: True, "joint loss: Newton steps on all classes at once"),
    Row(DualNewton, lambda p: p.loss.steep, "curvature without bounds: Newton's method on proximal steps of the dual"),
    Row(Newton, lambda p: True, "smooth loss and penalty: Newton's method"),
    Row(CoordinateDescent, lambda p: p.penalty.l1 > 0, "smooth loss with l1: coordinate descent on a working set"),
    Row(SmoothingNewton, long, "corners, and many more rows than columns: Newton's method on rounded corners"),
    Row(InteriorPoint, small, "corners, and few rows or columns: an interior-point method"),
    Row(DualNewton, small, "a smooth loss that resisted: Newton's method on proximal steps of the dual"),
    Row(DualAscent, lambda p: True, "corners with l2, many rows and columns: dual coordinate ascent"),
    Row(Proximal, lambda p: True, "no special structure: a proximal method"),
)


def fitting_rows(table: tuple[Row, ...], problem: Problem) -> Iterator[tuple[Solver, str]]:
    """The solvers of a table that fit the problem and do not refuse it, best first, each with the reason."""
    for row in table:
        solver = row.solver()
        if not solver.refusal(problem) and row.fits(problem):
            yield solver, row.reason
