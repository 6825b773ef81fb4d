"""Random Fourier features: a shift-invariant kernel as waves of random frequency."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from empirisk import kernels, state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.kernels.base import Kernel, require_whole
from empirisk.maps.streamed import StreamedMap


def _normal(kernel: Kernel, shape: tuple[int, int], random: np.random.Generator) -> NDArray:
    return random.normal(size=shape)


def _cauchy(kernel: Any, shape: tuple[int, int], random: np.random.Generator) -> NDArray:
    """Cauchy in every column for the 1-norm; for the 2-norm the same in every direction."""
    draws = random.normal(size=shape)
    return draws / np.abs(random.normal(size=shape if kernel.norm == 1 else (1, shape[1])))


#: The law of the frequencies: the Fourier transform of the kernel of width 1.
LAWS: dict[type[Kernel], Callable[..., NDArray]] = {kernels.Gaussian: _normal, kernels.Laplacian: _cauchy}


class RandomFourier(StreamedMap):
    """phi(x) = sqrt(2/rank) (cos <v_1, x>, sin <v_1, x>, cos <v_2, x>, ...) with random frequencies v.

    The frequencies follow the Fourier transform of the kernel, so phi(x)' phi(z) has the mean k(x, z); its deviation
    falls as 1/sqrt(rank). The law is normal for `kernels.Gaussian` and Cauchy for `kernels.Laplacian`.

    Parameters
    ----------
    kernel : str or Kernel
        A Gaussian or a Laplacian kernel.
    rank : int
        Number of features, even.
    random_state : int, RandomState or None
        Seed of the frequencies.

    Attributes
    ----------
    frequencies_ : array, d x rank/2
        The v, as columns.
    error_ : float
        |K - Phi Phi'| / |K| in the Frobenius norm, on a sample of the rows.
    kernel_ : Kernel
        The fitted kernel.

    Examples
    --------
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> er.maps.RandomFourier("gaussian", rank=1000, random_state=0).fit(X).error_ < 0.1
    True
    """

    _state = state.State(
        lambda its: None if its["rank"] == 2 * its["frequencies_"].shape[1] else "rank has no frequencies",
        rank=state.size("width"),
        frequencies_=state.array("f", "columns", None),
    )

    projection_ = None

    def __init__(self, kernel: Any = "gaussian", rank: int = 100, *, random_state: Any = None):
        self.kernel = kernel
        self.rank = rank
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> "RandomFourier":
        """Draw the frequencies."""
        require_whole(self.rank, "rank", 2)
        if self.rank % 2:
            raise EmpiriskError(f"rank={self.rank!r} must be even: every frequency has a sine and a cosine.")
        kernel: Any = kernels.find(self.kernel)
        law = LAWS.get(type(kernel))
        if law is None:
            raise Unsuitable(
                f"kernel={self.kernel!r} has no random Fourier features here; use a Gaussian or Laplacian kernel, or "
                "maps.Nystrom, which takes every kernel."
            )
        self.kernel_ = clone(kernel)
        _, items = self._items(X, reset=True)
        random = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        draws = law(self.kernel_, (items.shape[1], int(self.rank) // 2), random)
        self.frequencies_ = (draws / getattr(self.kernel_, "width_", self.kernel_.width)).astype(items.dtype)
        self.error_ = self._measure(items, random)
        return self

    def basis(self) -> NDArray:
        """The frequencies."""
        return self.frequencies_

    def raw(self, items: Any, basis: NDArray) -> NDArray:
        """The waves of every row."""
        angles = np.asarray(items @ basis)
        out = np.empty((angles.shape[0], 2 * angles.shape[1]), angles.dtype)
        np.cos(angles, out=out[:, ::2])
        np.sin(angles, out=out[:, 1::2])
        out *= out.dtype.type(np.sqrt(2.0 / self.rank))
        return out

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.rank)
