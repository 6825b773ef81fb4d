"""Is it a kernel? Symmetric, positive semidefinite, and if not, a witness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from empirisk.errors import EmpiriskError, NotAKernel
from empirisk.kernels.base import Kernel
from empirisk.kernels.callables import Callable
from empirisk.kernels.items import as_matrix, size
from empirisk.linalg.threads import interruptible_call
from empirisk.protocols import learns_with_machine
from empirisk.settings import require

TESTED = 300  # rows whose eigenvalues take a few milliseconds
#: How negative an eigenvalue may be, relative to the largest, where machines are given a Gram matrix or a function.
FEW_DIGITS = 1e-6


@dataclass(frozen=True)
class Report:
    """What `check` found about a Gram matrix.

    Attributes
    ----------
    symmetric : bool
        Whether K = K' up to rounding.
    asymmetry : float
        The largest |K_ij - K_ji|.
    smallest, largest : float
        The extreme eigenvalues of the symmetric part (K + K') / 2.
    witness : ndarray
        A unit vector a with a' K a = smallest: negative if K is no Gram matrix of a kernel.
    tolerance : float
        How far below zero rounding alone may push the smallest eigenvalue.
    positive : bool
        Whether the smallest eigenvalue is not below -tolerance.

    Examples
    --------
    >>> bool(er.kernels.check([[1.0, 0.5], [0.5, 1.0]]))
    True
    """

    symmetric: bool
    asymmetry: float
    smallest: float
    largest: float
    witness: NDArray
    tolerance: float

    @property
    def positive(self) -> bool:
        return self.smallest >= -self.tolerance

    @property
    def verdict(self) -> str:
        """The finding as a sentence."""
        if not self.symmetric:
            return f"not a kernel: k(x, z) and k(z, x) differ by {self.asymmetry:.3g}."
        if not self.positive:
            return (
                f"not a kernel: the Gram matrix has the eigenvalue {self.smallest:.3g} (largest {self.largest:.3g}), "
                "so the witness a gives a' K a < 0."
            )
        return f"symmetric and positive semidefinite on these items: the smallest eigenvalue is {self.smallest:.3g}."

    def __bool__(self) -> bool:
        return self.symmetric and self.positive

    def __str__(self) -> str:
        return self.verdict


def check(kernel: Any, X: Any = None) -> Report:
    """Test a kernel, or any function of two items, on data; or test a Gram matrix.

    A kernel passes on every data set; that one passes on a data set is evidence, that it fails is proof.

    Parameters
    ----------
    kernel : Kernel, callable or square array
        What to test; an array is a Gram matrix.
    X : data, optional
        The items on which a kernel or a function is tested.

    >>> print(check(lambda x, z: -abs(x[0] - z[0]), [[0.0], [1.0], [3.0]]))
    not a kernel: the Gram matrix has the eigenvalue -4.11 (largest 3.2), so the witness a gives a' K a < 0.
    """
    if X is None:
        if isinstance(kernel, Kernel) or callable(kernel):
            raise EmpiriskError("X=None: give the items on which the kernel is to be tested.")
        return _report(as_matrix(kernel, False, "K"))
    kernel = kernel if isinstance(kernel, Kernel) else Callable(kernel)
    kernel = clone(kernel).fit(X)
    items = kernel.prepare(X)
    # Asked for as a block between two sets, which is not made symmetric.
    return _report(kernel.between(items, items))


def _report(K: NDArray) -> Report:
    if K.shape[0] != K.shape[1]:
        raise EmpiriskError(f"K has shape {K.shape}, but a Gram matrix is square.")
    require(4 * K.size * 8, "The eigenvalues of the Gram matrix", "test on fewer items")
    precision = float(np.finfo(K.dtype).eps)
    asymmetry = float(np.abs(K - K.T).max())
    scale = float(np.abs(K).max())
    even = 0.5 * (K.astype(np.float64) + K.T)
    values, vectors = interruptible_call(lambda: np.linalg.eigh(even), len(K))
    # Entries are off by a few units in the last place, which moves eigenvalues by the norm of that error matrix.
    tolerance = 8 * precision * len(K) * scale
    return Report(
        symmetric=asymmetry <= 64 * precision * scale,
        asymmetry=asymmetry,
        smallest=float(values[0]),
        largest=float(values[-1]),
        witness=vectors[:, 0],
        tolerance=tolerance,
    )


def require_semidefinite(kernel: Kernel, items: Any) -> None:
    """Raise `NotAKernel` if a kernel without a guarantee is not positive semidefinite on some prepared items."""
    rows = size(items)
    some = np.arange(rows)
    if rows > TESTED:
        some = np.sort(np.random.default_rng(0).choice(rows, TESTED, replace=False))
    for part, group in kernel.summands(items):
        if not part.certain:
            sample = group[some]
            refuse(_report(part.between(sample, sample)), f"features={part!r}")


def refuse(report: Report, name: str) -> None:
    """Raise `NotAKernel` unless the finding could come from values that were computed with few digits."""
    if not report.symmetric or report.smallest < -max(report.tolerance, FEW_DIGITS * abs(report.largest)):
        raise NotAKernel(f"{name} is {report.verdict}")


def require_kernel(K: ArrayLike, name: str = "K") -> None:
    """Raise `NotAKernel`, with the offending eigenvalue, unless K is symmetric and positive semidefinite.

    The error calls it ``name``.

    >>> require_kernel([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    empirisk.errors.NotAKernel: K is not a kernel: the Gram matrix has the eigenvalue -1 (largest 3), so the witness a \
gives a' K a < 0. [ER013]
    """
    report = _report(as_matrix(K, False, name))
    if not report:
        raise NotAKernel(f"{name} is {report.verdict}")


def runs_on_devices(kernel: Kernel, rows: Any) -> bool:
    """Whether a kernel needs nothing of such rows but its expression, which devices evaluate.

    >>> runs_on_devices(er.kernels.Gaussian("median"), np.eye(3))
    True
    """
    if learns_with_machine(kernel) or kernel.reads_rows or not kernel.certain:
        return False
    few = np.asarray(rows[:2])
    probe = clone(kernel).fit(few)
    return probe.expression(probe.prepare(few)) is not None
