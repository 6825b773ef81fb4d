"""Several kernels at once, with weights that are learned with the machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import kernels as families
from empirisk import state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import Parts, size
from empirisk.maps.kernel_weights import WeightSearch

if TYPE_CHECKING:
    from empirisk.fits.fit import Fit, Run
    from empirisk.problem import Problem

Array = NDArray[np.float64]
NEGLIGIBLE = 1e-12


class SeveralKernels(Kernel):
    """The kernel k(x, z) = sum_m beta_m k_m(x, z) with weights beta >= 0 that the machine learns.

    With |beta|_1 = 1 (``norm=1``, which selects kernels) or |beta|_2 = 1 (``norm=2``, which combines them) a machine
    in whose slot ``features`` this stands solves the joint problem

        min over beta, w, b:   l2/2 sum_m |w_m|^2 / beta_m  +  C sum_i c_i loss(y_i, sum_m <w_m, phi_m(x_i)> + b),

    which is convex. Its dual, on whose gap the certificate reports, is with s = C c

        max over u:   -1/(2 l2) | (u'K_1 u, ..., u'K_M u) |  -  sum_i s_i loss*(y_i, u_i / s_i),   sum_i u_i = 0,

    where |.| is the largest entry for norm 1 and the 2-norm for norm 2. Several outputs share the weights. Kernels of
    very different size should be scaled first, for instance with ``kernel.normalised()``. A C that the machine chooses,
    "loo" or "cv", is chosen at equal weights.

    Parameters
    ----------
    kernels : list of kernels
        The kernels k_m, or their names.
    norm : 1 or 2
        Which norm of the weights is one.

    Attributes
    ----------
    beta_ : array
        The learned weights.
    kernels_ : list of Kernel
        The fitted kernels.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> several = er.maps.SeveralKernels([er.kernels.Gaussian().on([0]), er.kernels.Gaussian().on([1])])
    >>> er.Ridge(features=several).fit(X, np.sin(X[:, 0])).features_.beta_.round(2)
    array([1., 0.])
    """

    _state = state.State(
        norm=state.whole(1, 2),
        kernels_=state.optional(state.several(state.part(Kernel, columns="columns"), "kernels")),
        beta_=state.optional(state.array("f8", "kernels", low=0)),
    )

    def __init__(self, kernels: Sequence[Any] = ("linear", "gaussian"), norm: int = 1):
        self.kernels = kernels
        self.norm = norm

    def _members(self) -> list[Kernel]:
        """The kernels that compute: the fitted copies if there are any."""
        return getattr(self, "kernels_", None) or [families.find(kernel) for kernel in self.kernels]

    @property
    def takes(self) -> str:
        self.check()
        kinds = {kernel.takes for kernel in self._members()}
        return kinds.pop() if len(kinds) == 1 else "objects"  # each on its own columns of a table

    @property
    def sparse(self) -> bool:
        return all(kernel.sparse for kernel in self._members())

    @property
    def weights(self) -> Array:
        """The weights: learned, or all equal."""
        count = len(self._members())
        return getattr(self, "beta_", np.full(count, count ** (-1.0 / self.norm)))

    def check(self):
        if isinstance(self.kernels, str) or not hasattr(self.kernels, "__len__") or len(self.kernels) == 0:
            raise EmpiriskError(f"kernels={self.kernels!r} must be a list of kernels, not empty.")
        if self.norm not in (1, 2):
            raise EmpiriskError(f"norm={self.norm!r} must be 1, which selects kernels, or 2, which combines them.")
        for kernel in self._members():
            kernel.check()
        kinds = {kernel.takes for kernel in self._members()} - {"objects"}
        if len(kinds) > 1:
            raise Unsuitable(
                f"kernels={self.kernels!r} take different items, {' and '.join(sorted(kinds))}; "
                "give each its column with .on(column)."
            )

    def fit(self, X, y=None):
        self.check()
        self.kernels_ = [clone(families.find(kernel)).fit(X) for kernel in self.kernels]
        return self

    def prepare(self, X):
        self.check()
        return Parts(*(kernel.prepare(X) for kernel in self._members()))

    def between(self, A, B=None, out=None):
        others = [None] * len(A.groups) if B is None else list(B)
        total: NDArray | None = None
        for beta, kernel, a, b in zip(self.weights, self._members(), A, others, strict=True):
            if beta > 0:
                block = kernel.between(a, b)
                block *= block.dtype.type(beta)
                total = block if total is None else np.add(total, block, out=total)
        total = np.zeros((size(A), size(A if B is None else B))) if total is None else total
        if out is None:
            return total
        out[...] = total
        return out

    def norms(self, A):
        members = zip(self.weights, self._members(), A, strict=True)
        return np.sum([beta * kernel.norms(a) for beta, kernel, a in members], axis=0)

    def summands(self, A):
        return list(zip(self._members(), A, strict=True))

    def scratch(self, rows, columns):
        return 8 * rows * columns + max(kernel.scratch(rows, columns) for kernel in self._members())

    def linear_part(self, A, beta):
        members = zip(self.weights, self._members(), A, strict=True)
        parts = [(weight, kernel.linear_part(a, beta)) for weight, kernel, a in members]
        known = [weight * part for weight, part in parts if part is not None]
        return np.sum(known, axis=0) if known else None

    def learn_with(self, problems: "list[Problem]", run: "Run") -> "tuple[list[Problem], list[Fit]]":
        """Learn the weights together with the machine whose problems these are."""
        if problems[0].penalty.l2 == 0:
            raise Unsuitable(
                f"features={self!r} has weights to learn, which needs penalty='l2'; give a sum of the kernels."
            )
        search = WeightSearch(self, problems, run)
        best = search.find()
        self.beta_ = best.beta
        return best.problems, search.certified(best)

    def largest(self, energies: Array) -> float:
        """max over the allowed beta of <energies, beta>, for energies >= 0: the dual norm."""
        return float(energies.max() if self.norm == 1 else np.linalg.norm(energies))

    def allowed(self, beta: Array) -> Array:
        """Weights >= 0 scaled to norm one, the negligible ones set to zero."""
        beta = np.maximum(beta, 0.0)
        beta = np.where(beta <= NEGLIGIBLE * beta.max(), 0.0, beta)
        return beta / np.linalg.norm(beta, self.norm)
