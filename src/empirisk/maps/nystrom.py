"""The Nystrom map: a kernel seen through some landmarks."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.utils import _safe_indexing, check_random_state

from empirisk import kernels, state
from empirisk.errors import EmpiriskError
from empirisk.kernels.base import Kernel, require_whole
from empirisk.kernels.items import size, take
from empirisk.maps.streamed import StreamedMap

WAYS = ("uniform", "kmeans", "leverage")
ROWS_PER_CENTRE = 32
ROUNDS = 3
FLOOR = 1e-10
UNIFORM = 0.1
BLOCK_ENTRIES = 1 << 22


class Nystrom(StreamedMap):
    """phi(x) = L^-1/2 U' k(x, z) from landmarks z_1..z_m, with k(z_i, z_j) = (U L U')_ij.

    phi(x)' phi(z) is k(x, z) projected on the span of the landmarks: exact for them, and nowhere too large. A machine
    on these features costs O(n m^2) where the kernel machine would cost O(n^2) or more.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The kernel; a name or function as in the slot ``features`` of a machine.
    rank : int
        Number of landmarks m; all rows if there are fewer.
    landmarks : {"uniform", "kmeans", "leverage"} or array
        Rows drawn at random; centres of k-means; rows drawn by how much each adds to the others (approximate ridge
        leverage scores); or the landmarks themselves.
    random_state : int, RandomState or None
        Seed of the draw.

    Attributes
    ----------
    landmarks_ : array or list
        The landmarks.
    projection_ : array, m x r
        U L^-1/2, without the directions that are rounding.
    error_ : float
        |K - Phi Phi'| / |K| in the Frobenius norm, on a sample of the rows.
    kernel_ : Kernel
        The fitted kernel.

    Examples
    --------
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> phi = er.maps.Nystrom("gaussian", rank=20, random_state=0).fit(X)
    >>> phi.error_ < 1e-6, phi.transform(X).shape[0]
    (True, 200)
    """

    _state = state.State(
        landmarks_=state.items("landmarks", "columns"), projection_=state.array("f", "landmarks", "width")
    )

    def __init__(
        self,
        kernel: Any = "gaussian",
        rank: int = 100,
        landmarks: str | ArrayLike = "uniform",
        *,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.rank = rank
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> "Nystrom":
        """Choose the landmarks and factor their Gram matrix."""
        require_whole(self.rank, "rank", 1)
        self.kernel_ = clone(kernels.find(self.kernel))
        rows, items = self._items(X, reset=True)
        random = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self.landmarks_ = self._choose(rows, items, random)
        core = np.asarray(self.kernel_.between(self.basis()))
        values, vectors = np.linalg.eigh(core.astype(np.float64))
        kept = values > len(core) * np.finfo(core.dtype).eps * max(values[-1], 0.0)
        self.projection_ = vectors[:, kept] / np.sqrt(values[kept])
        self.error_ = self._measure(items, random)
        return self

    def _choose(self, X: Any, items: Any, random: np.random.Generator) -> Any:
        if not isinstance(self.landmarks, str):
            return self.landmarks
        if self.landmarks not in WAYS:
            raise EmpiriskError(f"landmarks={self.landmarks!r} must be one of {WAYS}, or the landmarks themselves.")
        rank = min(int(self.rank), size(items))
        if self.landmarks == "kmeans":
            return _centres(self.kernel_, X if self.kernel_.takes == "vectors" else items, rank, random)
        chances = None if self.landmarks == "uniform" else leverage(self.kernel_, items, rank, random)
        return _safe_indexing(X, np.sort(random.choice(size(items), rank, replace=False, p=chances)))

    def basis(self) -> Any:
        """The landmarks, ready for the kernel."""
        return self.kernel_.prepare(self.landmarks_)

    def raw(self, items: Any, basis: Any) -> NDArray:
        """k(x, z) to every landmark."""
        return self.kernel_.between(items, basis)

    @property
    def width(self) -> int:
        """The number of landmarks."""
        return size(self.landmarks_)


def _centres(kernel: Kernel, X: Any, rank: int, random: np.random.Generator) -> NDArray:
    """The centres of k-means, on a sample of the rows."""
    if getattr(X, "ndim", 0) != 2:
        raise EmpiriskError(f"landmarks='kmeans' needs vectors, and {kernel!r} has other items; use 'uniform'.")
    rows = X.shape[0]
    sample = np.sort(random.choice(rows, min(rows, ROWS_PER_CENTRE * rank), replace=False))
    means = KMeans(rank, n_init=1, max_iter=20, random_state=int(random.integers(2**31))).fit(X[sample])
    return means.cluster_centers_.astype(X.dtype, copy=False)


def leverage(kernel: Kernel, items: Any, rank: int, random: np.random.Generator) -> NDArray:
    """Chances of the rows by approximate ridge leverage scores, (K (K + ridge)^-1)_ii.

    A subset S, drawn with chances p, stands for all rows with weights 1/(m p); the score of x is then
    (k(x, x) - k(x, S) (K_SS + ridge m p)^-1 k(S, x)) / ridge. The first subset is uniform, the later ones follow the
    scores.
    """
    rows = size(items)
    norms = np.asarray(kernel.norms(items), dtype=np.float64)
    chances = np.full(rows, 1.0 / rows)
    for _ in range(ROUNDS):
        chosen = np.sort(random.choice(rows, rank, replace=False, p=chances))
        subset, shares = take(items, chosen), rank * chances[chosen]
        core = np.asarray(kernel.between(subset), dtype=np.float64)
        values = np.linalg.eigvalsh(core / np.sqrt(np.outer(shares, shares)))
        # What the smaller half of the directions leaves over, spread over all landmarks.
        ridge = max(float(values[: rank // 2].sum()) / rank, FLOOR * float(norms.sum()) / rows)
        core.flat[:: rank + 1] += ridge * shares
        weight = linalg.solve_triangular(linalg.cholesky(core, lower=True), np.eye(rank), lower=True).T
        scores = norms.copy()
        step = max(64, BLOCK_ENTRIES // rank)
        for start in range(0, rows, step):
            part = slice(start, start + step)
            scores[part] -= np.sum((kernel.between(take(items, part), subset) @ weight) ** 2, axis=1)
        scores = np.clip(scores / ridge, 0.0, 1.0)
        total = float(scores.sum())
        chances = (1 - UNIFORM) * scores / total + UNIFORM / rows if total > 0 else chances
        chances /= chances.sum()
    return chances
