"""Maps that stand for a kernel, Nystrom and random Fourier: phi(X) is made block by block where it would not fit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from empirisk import kernels, state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.kernels.base import Kernel, require_whole
from empirisk.kernels.checks import runs_on_devices
from empirisk.kernels.expression import Expression
from empirisk.kernels.items import in_memory, size, validated
from empirisk.lazy import lazy
from empirisk.linalg import tiled
from empirisk.linalg.accelerator import accelerator, lie_on_device, rows_on_device
from empirisk.linalg.blocks import slices
from empirisk.linalg.design import Array, DenseDesign, Design, design_of
from empirisk.linalg.foreign import in_its_kind
from empirisk.linalg.lapack import invert_triangle
from empirisk.linalg.threads import interruptible_call, parallel_map, single_threaded_blas
from empirisk.maps.explicit import FLOATS, FloatMap
from empirisk.protocols import learns_with_machine
from empirisk.settings import require, settings
from empirisk.stop import Stopped, check_stop, stopping
from empirisk.validation import available_if, count_columns, in_memory_of_numpy, validate_data

if TYPE_CHECKING:
    from empirisk.fits.fit import Fit, SolverRun
    from empirisk.problem import Problem

Made = TypeVar("Made")
Late = Callable[[], bool] | None
BLOCK_BYTES = 1 << 25  # features made at a time: they stay in the cache of the last level
FORMATS = ("csr", "csc")
SAMPLE = 500  # rows whose Gram matrix is compared with the exact one, in a fraction of a second
MEASURED = 4e10  # products with the projection that the sample may cost: a second of a processor
MANY_LANDMARKS = 2000  # from which their eigenvalues take seconds, and a device is asked for a triangular factor
ROWS_AT_ONCE = 512  # for one thread: fixed, so that the sums are the same for any number of them


class StreamedMap(FloatMap):
    """An explicit map phi(x) = P' raw(x) that stands for a kernel: raw features of each row, and a projection.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that is approximated, fitted.
    projection_ : array or None
        P, one row per raw feature; None is the identity.
    error_ : float
        |K - Phi Phi'| / |K| in the Frobenius norm, on a sample of the rows that the map was fitted on.
    """

    _state = state.State(kernel_=state.part(Kernel, columns="columns"), error_=state.number(finite=False))

    kernel: Any
    on_devices: ClassVar[bool] = True
    kernel_: Kernel
    projection_: Array | None
    n_features_in_: int

    def basis(self) -> Any:
        """What raw features are computed with, made once for many blocks of items."""
        raise NotImplementedError

    def raw(self, items: Any, basis: Any) -> NDArray[Any]:
        """The raw features of prepared items."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """The number of raw features."""
        raise NotImplementedError

    def expressions(self, items: Any) -> tuple[Expression | None, Expression | None]:
        """The raw features between prepared items and the basis, as expressions of both sides for devices."""
        return None, None

    def _items(self, X: Any, reset: bool = False) -> tuple[Any, Any]:
        """X, checked if it holds vectors, and ready for the kernel, which with ``reset`` is fitted to it first."""
        vectors = self.kernel_.takes == "vectors"
        held = rows_on_device(X) if vectors else None
        if held is not None and runs_on_devices(self.kernel_, held):
            count_columns(self, held, reset=reset)
            X = rows = held
        elif vectors:
            formats = FORMATS if self.kernel_.sparse else False
            X = in_memory_of_numpy(X)
            rows = validate_data(self, X, accept_sparse=formats, dtype=FLOATS, reset=reset)
        else:
            rows = X
        with validated() if vectors else nullcontext():
            if reset:
                self.kernel_.fit(X)  # names of columns stand in X alone
            return rows, self.kernel_.prepare(rows)

    def _measure(self, items: Any, random: np.random.Generator) -> float:
        """The relative error of the Gram matrix of some of the items."""
        rows = size(items)
        count = min(rows, SAMPLE, int(np.sqrt(settings().memory / 64)))
        if self.projection_ is not None:
            count = min(count, max(int(MEASURED / self.width**2), 16))
        chosen = in_memory(items[np.sort(random.choice(rows, count, replace=False))])
        exact = np.asarray(self.kernel_.between(chosen), dtype=np.float64)
        device = None if self.projection_ is None else accelerator(float(count) * self.width**2)
        design = None if device is None else device.streamed_design(self, chosen)
        if design is None:
            phi = np.asarray(self.projected(self.raw(chosen, self.basis())), dtype=np.float64)
            found = phi @ phi.T
        else:
            found = design.outer()
        return float(np.linalg.norm(exact - found) / max(np.linalg.norm(exact), np.finfo(float).tiny))

    def projected(self, raw: NDArray) -> NDArray[Any]:
        """phi(x) from the raw features."""
        return raw if self.projection_ is None else project(raw, self.projection_.astype(raw.dtype, copy=False))

    @in_its_kind
    @single_threaded_blas()
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """phi(x) of each row."""
        check_is_fitted(self)
        (_, items), basis = self._items(X), self.basis()
        if lie_on_device(items):
            return cast(NDArray, self._design(items).X)
        out: NDArray | None = None
        for rows in row_blocks(size(items), self.width):
            check_stop()
            block = self.projected(self.raw(items[rows], basis))
            out = np.empty((size(items), block.shape[1]), block.dtype) if out is None else out
            out[rows] = block
        return np.empty((0, self.width)) if out is None else out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names such as ``nystrom0``."""
        check_is_fitted(self)
        columns = self.width if self.projection_ is None else self.projection_.shape[1]
        return np.array([f"{type(self).__name__.lower()}{j}" for j in range(columns)], dtype=object)

    @single_threaded_blas()
    def products(self, X: Any, w: Array) -> Array:
        """phi(X) w, without keeping phi(X)."""
        check_is_fitted(self)
        return self._design(self._items(X)[1]).dot(w)

    def _design(self, items: Any, late: Late = None) -> StreamedDesign:
        """What stands for phi(X): on the device in force, if there is one and the map can run there."""
        device = accelerator(float(size(items)) * self.width, items)
        found = None if device is None else device.streamed_design(self, items)
        return StreamedDesign(self, items, late=late) if found is None else found

    def mapped(self, X: Any, late: Late = None) -> NDArray | StreamedDesign:
        """phi(X); or what stands for it, where it is too large to be kept, or it is too late to make it."""
        wide = 8 * _num_samples(X) * self.width > settings().memory // 4
        held = rows_on_device(X)
        if wide or accelerator(float(_num_samples(X)) * self.width, held) is not None:
            design = self._design(self._items(X)[1], late)
            if wide or design.streams:
                return design
        made = _unless(late, lambda: self.transform(X))
        return StreamedDesign(self, self._items(X)[1], late=late) if made is None else made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "error_")


class StreamedDesign(Design):
    """phi(X) - 1 shift', a block of rows at a time: every product is one pass over the rows.

    Where it is ``late``, a pass that would only make later ones better or cheaper is left out.
    """

    def __init__(self, features: StreamedMap, items: Any, shift: Array | None = None, late: Late = None):
        self._features, self._items, self.shift, self._late = features, items, shift, late
        self._basis = features.basis()
        projection = features.projection_
        self._projection = None if projection is None else projection.astype(np.float64, copy=False)
        self.shape = (size(items), features.width if projection is None else projection.shape[1])

    @lazy
    def X(self) -> Array:
        """phi(X), whole, for solvers that go from row to row."""
        rows, columns = self.shape
        require(8 * rows * columns, f"The features of {rows} rows", "use a smaller rank, or solver='auto'")
        return np.concatenate([self._features.projected(block) for _, block in self._blocks()])

    def _blocks(self):
        for rows in row_blocks(self.shape[0], self._features.width):
            check_stop()
            yield rows, self._features.raw(self._items[rows], self._basis).astype(np.float64, copy=False)

    def _inward(self, w: Array) -> Array:
        return w if self._projection is None else self._projection @ w

    def _outward(self, v: Array) -> Array:
        return v if self._projection is None else self._projection.T @ v

    def dot(self, w):
        inward, out = self._inward(w), np.empty((self.shape[0], *w.shape[1:]))
        for rows, block in self._blocks():
            out[rows] = block @ inward
        return out if self.shift is None else out - self.shift @ w

    def tdot(self, u):
        total = np.zeros((self._features.width, *u.shape[1:]))
        for rows, block in self._blocks():
            total += block.T @ u[rows]
        total = self._outward(total)
        return total if self.shift is None else total - np.multiply.outer(self.shift, u.sum(axis=0))

    def predict_and_correlate(self, w, b, slopes, *vectors):
        inward, f = self._inward(w), np.empty(self.shape[0])
        u, total = np.empty_like(f), np.zeros(self._features.width)
        level = b if self.shift is None else b - float(self.shift @ w)
        for rows, block in self._blocks():
            f[rows] = block @ inward + level
            u[rows] = slopes(*(vector[rows] for vector in vectors), f[rows])
            total += block.T @ u[rows]
        total = self._outward(total)
        return f, u, total if self.shift is None else total - self.shift * u.sum()

    def gram(self, weights=None):
        # Not P' (raw' raw) P: P is large where the landmarks are nearly dependent, and the sums would cancel.
        total = np.zeros((self.shape[1], self.shape[1]))
        for rows, features in self._rows_of_features():
            if weights is not None:
                used = np.flatnonzero(weights[rows])
                features = features[used] * np.sqrt(weights[rows][used])[:, None]
            total += features.T @ features
        return total

    def _rows_of_features(self):
        for rows, block in self._blocks():
            features = self._features.projected(block)
            yield rows, features if self.shift is None else features - self.shift

    def outer(self, weights=None):
        A = self.columns(slice(None))
        return tiled.outer(A if weights is None else A * np.sqrt(weights))

    def squared_columns(self, weights=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        return sum(weights[rows] @ features**2 for rows, features in self._rows_of_features())

    def squared_rows(self):
        return np.concatenate([np.einsum("ij,ij->i", A, A) for _, A in self._rows_of_features()])

    def columns(self, chosen):
        return np.asfortranarray(np.concatenate([features[:, chosen] for _, features in self._rows_of_features()]))

    def centred(self):
        plain = StreamedDesign(self._features, self._items)
        means = _unless(self._late, lambda: plain.tdot(np.ones(self.shape[0])) / self.shape[0])
        # Without means the machine is the same: a free intercept makes up for any shift.
        return StreamedDesign(self._features, self._items, means, self._late)

    def rows(self, chosen):
        items = self._items[chosen]
        wide = 8 * size(items) * self._features.width > settings().memory // 4
        plain = StreamedDesign(self._features, items)
        made = None if wide else _unless(self._late, lambda: plain.columns(slice(None)))
        if made is None:
            return StreamedDesign(self._features, items, self.shift, self._late)
        return DenseDesign(made, self.shift)


def _unless(late: Late, make: Callable[[], Made]) -> Made | None:
    """make(), or None where it is late before that is done."""
    if late is None:
        return make()
    try:
        with stopping(late):
            return make()
    except Stopped:
        return None


def project(raw: NDArray, projection: NDArray) -> NDArray:
    """raw @ projection, over fixed slices of rows in threads: the bits do not depend on the number of threads."""
    out = np.empty((len(raw), projection.shape[1]), raw.dtype)

    parallel_map(lambda rows: np.matmul(raw[rows], projection, out=out[rows]), slices(len(raw), ROWS_AT_ONCE))
    return out


def row_blocks(rows: int, width: int) -> list[slice]:
    """Slices of rows whose features take 32 megabytes, or a small part of the budget."""
    step = max(64, min(BLOCK_BYTES, settings().memory // 32) // (8 * max(width, 1)))
    return slices(rows, step)


def _learns_metric(features: Nystrom) -> bool:
    """Whether the kernel of a map has a metric to learn, which it does for the map."""
    return hasattr(features.kernel, "learn_before")


WAYS = ("uniform", "kmeans", "leverage")
ROWS_PER_CENTRE = 32  # enough to place a centre; more rows cost time and move it little
ROUNDS = 3  # of recursive sampling: scores settle after two
FLOOR = 1e-10  # of the mean k(x, x): a ridge below it would be rounding
UNIFORM = 0.1  # share of the chances that all rows have alike, so that none is left out by a bad estimate
BLOCK_ENTRIES = 1 << 22  # numbers of a block of k(x, z): 32 megabytes


@dataclass(eq=False, repr=False)
class Nystrom(StreamedMap):
    """phi(x) = L^-1/2 U' k(x, z) from landmarks z_1..z_m, with k(z_i, z_j) = (U L U')_ij.

    phi(x)' phi(z) is k(x, z) projected on the span of the landmarks: exact for them, and nowhere too large. A machine
    on these features costs O(n m^2) where the kernel machine would cost O(n^2) or more.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The kernel; a name or function as in the slot ``features`` of a machine. A `LearnedKernel` learns its metric
        with the machine in whose slot the map stands, and the landmarks are chosen after that.
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

    kernel: Any = "gaussian"
    rank: int = 100
    landmarks: str | ArrayLike = "uniform"
    _: KW_ONLY
    random_state: Any = None

    @state.renewing
    @single_threaded_blas()
    def fit(self, X: ArrayLike, y: Any = None) -> Nystrom:
        """Choose the landmarks and factor their Gram matrix."""
        require_whole(self.rank, "rank", 1)
        self.kernel_ = clone(kernels.find(self.kernel))
        if learns_with_machine(self.kernel_) and not _learns_metric(self):
            raise Unsuitable(
                f"kernel={self.kernel!r} learns with a machine, and only where it is all that features= holds; give "
                "Nystrom a kernel without weights to learn."
            )
        rows, items = self._items(X, reset=True)
        seed = check_random_state(self.random_state).randint(2**31)
        self._factor(rows, items, seed)
        if _learns_metric(self):
            self._unlearned = rows, seed
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows that wait for a machine to learn the metric."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_unlearned"}

    def _factor(self, rows: Any, items: Any, seed: int) -> None:
        """Choose the landmarks, factor their Gram matrix, and see how well they stand for the rows."""
        random = np.random.default_rng(seed)
        self.landmarks_ = self._choose(rows, items, random)
        self.projection_ = self._inverse_root(self.basis())
        self.error_ = self._measure(items, random)

    @available_if(_learns_metric)
    def learn_with(self, problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
        """Learn the metric of a `LearnedKernel` with the problems of a machine; they come back on its landmarks.

        Parameters
        ----------
        problems : list of Problem
            What the machine minimises, on the rows given to `fit`.
        run : SolverRun
            Solves problems with the solver and within the limits of the machine.
        """
        (rows, seed), kernel = self.__dict__.pop("_unlearned"), cast(Any, self.kernel_)

        def mapped() -> Design:
            self._factor(rows, self._items(rows)[1], seed)
            return design_of(self.mapped(rows))

        return kernel.learn_before(rows, problems, run, mapped)

    @property
    def cut(self) -> str | None:
        """Why the rounds of a metric were not let finish; None where they were, or none is learned."""
        return getattr(self.kernel_, "cut", None)

    def _inverse_root(self, landmarks: Any) -> Array:
        """P with P P' = K^-1 among the landmarks: by eigenvalues; of many, on a device, a triangular one."""
        device = accelerator(float(size(landmarks)) ** 3) if size(landmarks) > MANY_LANDMARKS else None
        found = None if device is None else device.inverse_root(self.kernel_, landmarks)
        if found is not None:
            return found
        core = np.asarray(self.kernel_.between(landmarks))
        values, vectors = interruptible_call(lambda: np.linalg.eigh(core.astype(np.float64)), len(core))
        kept = values > len(core) * np.finfo(core.dtype).eps * max(values[-1], 0.0)
        return vectors[:, kept] / np.sqrt(values[kept])

    def expressions(self, items):
        return self.kernel_.expression(items), self.kernel_.expression(self.basis())

    def _choose(self, X: Any, items: Any, random: np.random.Generator) -> Any:
        if not isinstance(self.landmarks, str):
            return deepcopy(self.landmarks)
        if self.landmarks not in WAYS:
            raise EmpiriskError(f"landmarks={self.landmarks!r} must be one of {WAYS}, or the landmarks themselves.")
        rank = min(int(self.rank), size(items))
        if self.landmarks == "kmeans":
            return _centres(self.kernel_, X if self.kernel_.takes == "vectors" else items, rank, random)
        chances = None if self.landmarks == "uniform" else leverage(self.kernel_, items, rank, random)
        chosen = np.sort(random.choice(size(items), rank, replace=False, p=chances))
        return in_memory_of_numpy(_safe_indexing(X, chosen))

    def basis(self) -> Any:
        """The landmarks, ready for the kernel."""
        return self.kernel_.prepare(self.landmarks_)

    def raw(self, items: Any, basis: Any) -> NDArray[Any]:
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
    from sklearn.cluster import KMeans  # importing it takes a while, and few need it

    means = KMeans(rank, n_init=1, max_iter=20, random_state=int(random.integers(2**31)))
    return interruptible_call(lambda: means.fit(in_memory_of_numpy(X[sample])), len(sample)).cluster_centers_.astype(
        X.dtype, copy=False
    )


def leverage(kernel: Kernel, items: Any, rank: int, random: np.random.Generator) -> NDArray:
    """Chances of the rows by approximate ridge leverage scores, (K (K + ridge)^-1)_ii.

    A subset S, drawn with chances p, stands for all rows with weights 1/(m p); the score of x is then
    (k(x, x) - k(x, S) (K_SS + ridge m p)^-1 k(S, x)) / ridge. The first subset is uniform, the later ones follow the
    scores.
    """
    rows = size(items)
    norms = np.asarray(kernel.diagonals(items), dtype=np.float64)
    chances = np.full(rows, 1.0 / rows)
    for _ in range(ROUNDS):
        chosen = np.sort(random.choice(rows, rank, replace=False, p=chances))
        subset, shares = in_memory(items[chosen]), rank * chances[chosen]
        core = np.array(kernel.between(subset), dtype=np.float64, order="C")
        scaled = core / np.sqrt(np.outer(shares, shares))
        values = interruptible_call(partial(np.linalg.eigvalsh, scaled), rank)
        # What the smaller half of the directions leaves over, spread over all landmarks; more than the rounding of
        # the kernel, which in single precision leaves eigenvalues well below zero.
        rounding = max(-2.0 * values[0], rank * np.finfo(float).eps * values[-1])
        ridge = max(float(values[: rank // 2].sum()) / rank, FLOOR * float(norms.sum()) / rows, float(rounding))
        core.flat[:: rank + 1] += ridge * shares
        tiled.factor(core)
        invert_triangle(core)
        weight = np.tril(core).T
        device = accelerator(0.0, items) if lie_on_device(items) else None
        scores = norms.copy()
        for part in slices(rows, max(64, BLOCK_ENTRIES // rank)):
            check_stop()
            if device is not None:
                scores[part] -= device.squares_of_sums(kernel, subset, weight, items[part])
            else:
                scores[part] -= np.sum((kernel.between(items[part], subset) @ weight) ** 2, axis=1)
        scores = np.clip(scores / ridge, 0.0, 1.0)
        total = float(scores.sum())
        chances = (1 - UNIFORM) * scores / total + UNIFORM / rows if total > 0 else chances
        chances /= chances.sum()
    return chances


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
    falls as 1/sqrt(rank). The law is normal for `kernels.Gaussian` and Cauchy for `kernels.Laplacian`. Of products
    <v, x> beyond 1e10 the waves know few digits: there rows as a sparse matrix give other features than dense ones.

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

    @state.renewing
    @single_threaded_blas()
    def fit(self, X: ArrayLike, y: Any = None) -> RandomFourier:
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

    def basis(self) -> NDArray[Any]:
        """The frequencies."""
        return self.frequencies_

    def raw(self, items: Any, basis: NDArray) -> NDArray[Any]:
        """The waves of every row."""
        angles = np.asarray(items @ basis)
        out = np.empty((angles.shape[0], 2 * angles.shape[1]), angles.dtype)
        np.cos(angles, out=out[:, ::2])
        np.sin(angles, out=out[:, 1::2])
        out *= out.dtype.type(np.sqrt(2.0 / self.rank))
        return out

    def expressions(self, items):
        if issparse(items):
            return None, None
        # A sine is the cosine of an angle less a quarter of a turn.
        waves = np.repeat(self.frequencies_.T, 2, axis=0)
        sides = (items, np.zeros(len(items))), (waves, np.tile([0.0, np.pi / 2], len(waves) // 2))
        factor = float(np.sqrt(2.0 / self.rank))
        angles = (Expression("less_rows", (Expression("product", rows=rows),), rows=less) for rows, less in sides)
        left, right = (Expression("cos", (angle,)).scaled(factor) for angle in angles)
        return left, right

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.rank)
