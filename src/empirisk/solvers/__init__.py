"""Solvers: how the equation is minimised. Each is usable by name; the default is picked by `choose`."""

from empirisk.parts import by_name, resolve
from empirisk.solvers.ascent import DualAscent
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.closed import ClosedForm
from empirisk.solvers.coordinate import CoordinateDescent
from empirisk.solvers.decomposition import Decomposition
from empirisk.solvers.descent import GradientDescent
from empirisk.solvers.doubly_stochastic import DoublyStochastic
from empirisk.solvers.factored import Factored
from empirisk.solvers.interior import InteriorPoint
from empirisk.solvers.joint import JointNewton
from empirisk.solvers.kernel_newton import KernelNewton
from empirisk.solvers.kernel_perceptron import KernelPerceptron
from empirisk.solvers.newton import Newton
from empirisk.solvers.proximal import Proximal
from empirisk.solvers.smoothing import SmoothingNewton
from empirisk.solvers.steep import DualNewton
from empirisk.solvers.stochastic import SGD

__all__ = [
    "SGD",
    "ClosedForm",
    "CoordinateDescent",
    "Decomposition",
    "DoublyStochastic",
    "DualAscent",
    "DualNewton",
    "Factored",
    "GradientDescent",
    "InteriorPoint",
    "JointNewton",
    "KernelNewton",
    "KernelPerceptron",
    "Newton",
    "Proximal",
    "SmoothingNewton",
    "Solver",
    "Watch",
    "find",
]

NAMES = by_name(
    (
        ClosedForm,
        CoordinateDescent,
        Decomposition,
        DoublyStochastic,
        DualAscent,
        DualNewton,
        Factored,
        GradientDescent,
        InteriorPoint,
        JointNewton,
        KernelNewton,
        KernelPerceptron,
        Newton,
        Proximal,
        SGD,
        SmoothingNewton,
    )
)


def find(solver: str | Solver) -> Solver:
    """The solver that an object is or a name stands for.

    >>> find("newton")
    Newton()
    """
    return resolve(solver, NAMES, "solver", Solver)
