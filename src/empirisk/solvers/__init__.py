"""Solvers: how the equation is minimised. Each is usable by name; the default is picked by `choose`."""

from empirisk.parts import by_name, resolve
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.closed.closed_form import ClosedForm
from empirisk.solvers.closed.non_negative import NonNegative
from empirisk.solvers.columns.coordinate_descent import CoordinateDescent
from empirisk.solvers.columns.working_groups import WorkingGroups
from empirisk.solvers.corners.envelope import Envelope
from empirisk.solvers.corners.interior_point import InteriorPoint
from empirisk.solvers.first_order.gradient_descent import GradientDescent
from empirisk.solvers.first_order.proximal import Proximal
from empirisk.solvers.newton.newton import Newton
from empirisk.solvers.newton.proximal_newton import ProximalNewton
from empirisk.solvers.rows.decomposition import Decomposition
from empirisk.solvers.rows.dual_ascent import DualAscent
from empirisk.solvers.stochastic.doubly_stochastic import DoublyStochastic
from empirisk.solvers.stochastic.early_stopping import EarlyStopping
from empirisk.solvers.stochastic.passive_aggressive import PassiveAggressive
from empirisk.solvers.stochastic.perceptron import Perceptron
from empirisk.solvers.stochastic.sgd import SGD

__all__ = [
    "SGD",
    "ClosedForm",
    "CoordinateDescent",
    "Decomposition",
    "DoublyStochastic",
    "DualAscent",
    "EarlyStopping",
    "Envelope",
    "GradientDescent",
    "InteriorPoint",
    "Newton",
    "NonNegative",
    "PassiveAggressive",
    "Perceptron",
    "Proximal",
    "ProximalNewton",
    "Solver",
    "Watch",
    "WorkingGroups",
    "find",
]

NAMES = by_name(Solver, globals())
del NAMES["early_stopping"]  # it is made around a solver, of which it changes the answer


def find(solver: str | Solver) -> Solver:
    """The solver that an object is or a name stands for.

    >>> find("newton")
    Newton()
    """
    return resolve(solver, NAMES, "solver", Solver)
