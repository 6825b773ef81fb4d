"""Which solver for which problem: two tables, read from the top; the first row that fits is taken."""

from collections.abc import Iterator

from empirisk.problem import Problem
from empirisk.solvers.base import Solver
from empirisk.solvers.closed import ClosedForm
from empirisk.solvers.decomposition import Decomposition
from empirisk.solvers.explicit import EXPLICIT, Row, fitting_rows
from empirisk.solvers.factored import Factored
from empirisk.solvers.kernel_newton import KernelNewton

FACTORABLE = 3000


def factorable(problem: Problem) -> bool:
    """Whether an eigendecomposition is cheap; also where no other solver is left."""
    return problem.design.shape[0] <= FACTORABLE or bool(Decomposition().refuses(problem))


IMPLICIT = (
    Row(ClosedForm, lambda p: True, "squared loss behind a kernel: one Cholesky factor"),
    Row(KernelNewton, lambda p: True, "smooth loss behind a kernel: Newton's method"),
    Row(Decomposition, lambda p: True, "corners behind a kernel: decomposition of the dual into working sets"),
    Row(Factored, factorable, "a kernel that fits into memory: the machine on its factor"),
)


def ranked(problem: Problem) -> Iterator[tuple[Solver, str]]:
    """The solvers that fit the problem and do not refuse it, best first."""
    return fitting_rows(IMPLICIT if problem.design.implicit else EXPLICIT, problem)


def choose(problem: Problem) -> tuple[Solver, str]:
    """The first of `ranked`; the last row of each table takes every convex problem."""
    return next(ranked(problem))
