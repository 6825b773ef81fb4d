"""Kernels: similarities that a machine takes in its slot ``features``, and the algebra that builds them."""

from importlib import import_module
from typing import Any

from empirisk.kernels.algebra import exp, polynomial
from empirisk.kernels.base import Kernel
from empirisk.kernels.callables import Callable
from empirisk.kernels.checks import Report, check, require_kernel
from empirisk.kernels.distributions import ExpectedLikelihood, MeanEmbedding
from empirisk.kernels.graphs import Diffusion, RandomWalk, WeisfeilerLehman
from empirisk.kernels.precomputed import Precomputed
from empirisk.kernels.strings import Spectrum, Subsequence
from empirisk.kernels.vectors import Anova, Gaussian, Laplacian, Linear, Polynomial
from empirisk.kernels.wrappers import Centred, Normalised, centre, pairwise_product, pairwise_sum
from empirisk.parts import by_name, resolve

#: What users write. Sums, products, powers and kernels of some columns are made by operators and methods.
__all__ = [
    "Anova",
    "Callable",
    "Centred",
    "Diffusion",
    "ExpectedLikelihood",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "MeanEmbedding",
    "Normalised",
    "Polynomial",
    "Precomputed",
    "RandomWalk",
    "Report",
    "Spectrum",
    "Subsequence",
    "Tangent",
    "WeisfeilerLehman",
    "centre",
    "check",
    "exp",
    "find",
    "pairwise_product",
    "pairwise_sum",
    "polynomial",
    "require_kernel",
]

#: By their names the kernels of a distance take the median distance for their width: one fits no data but by chance.
NAMES = by_name(Kernel, globals()) | {
    "gaussian": lambda: Gaussian("median"),
    "laplacian": lambda: Laplacian("median"),
}


def find(kernel: Any, argument: str = "kernel") -> Kernel:
    """The kernel that an object is, a name stands for, or a function computes; ``argument`` is what errors call it.

    >>> find("gaussian")
    Gaussian('median')
    """
    if callable(kernel) and not isinstance(kernel, (Kernel, type)):
        return Callable(kernel)
    return resolve(kernel, NAMES, argument, Kernel)


def __getattr__(name: str) -> Any:
    if name == "Tangent":  # a kernel of networks, which are above this room and need packages of their own
        return import_module("empirisk.nets.tangent").Tangent
    raise AttributeError(f"empirisk.kernels has no {name!r}; it has {__all__}.", name=name)
