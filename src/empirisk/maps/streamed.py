"""Maps with many columns for many rows: phi(X) is made block by block and never kept where it would not fit."""

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from empirisk import state
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import size, take, validated
from empirisk.lazy import lazy
from empirisk.linalg.design import DenseDesign, Design
from empirisk.linalg.threads import in_threads
from empirisk.settings import require, settings

Array = NDArray[np.float64]
BLOCK_BYTES = 1 << 25  # features made at a time: they stay in the cache of the last level
FORMATS = ("csr", "csc")
FLOATS = (np.float64, np.float32)
SAMPLE = 500  # rows whose Gram matrix is compared with the exact one, in a fraction of a second
ROWS_AT_ONCE = 512  # for one thread: fixed, so that the sums are the same for any number of them


class StreamedMap(TransformerMixin, BaseEstimator):
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
    kernel_: Kernel
    projection_: Array | None
    n_features_in_: int

    def basis(self) -> Any:
        """What raw features are computed with, made once for many blocks of items."""
        raise NotImplementedError

    def raw(self, items: Any, basis: Any) -> NDArray:
        """The raw features of prepared items."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """The number of raw features."""
        raise NotImplementedError

    def _items(self, X: Any, reset: bool = False) -> tuple[Any, Any]:
        """X, checked if it holds vectors, and ready for the kernel, which with ``reset`` is fitted to it first."""
        vectors = self.kernel_.takes == "vectors"
        rows = X
        if vectors:
            formats = FORMATS if self.kernel_.sparse else False
            rows = validate_data(self, X, accept_sparse=formats, dtype=FLOATS, reset=reset)
        with validated() if vectors else nullcontext():
            if reset:
                self.kernel_.fit(X)  # names of columns stand in X alone
            return rows, self.kernel_.prepare(rows)

    def _measure(self, items: Any, random: np.random.Generator) -> float:
        """The relative error of the Gram matrix of some of the items."""
        rows = size(items)
        count = min(rows, SAMPLE, int(np.sqrt(settings().memory / 64)))
        chosen = take(items, np.sort(random.choice(rows, count, replace=False)))
        exact = np.asarray(self.kernel_.between(chosen), dtype=np.float64)
        phi = np.asarray(self._projected(self.raw(chosen, self.basis())), dtype=np.float64)
        return float(np.linalg.norm(exact - phi @ phi.T) / max(np.linalg.norm(exact), np.finfo(float).tiny))

    def _projected(self, raw: NDArray) -> NDArray:
        return raw if self.projection_ is None else project(raw, self.projection_.astype(raw.dtype, copy=False))

    def transform(self, X: ArrayLike) -> NDArray:
        """phi(x) of each row."""
        check_is_fitted(self)
        (_, items), basis = self._items(X), self.basis()
        out: NDArray | None = None
        for rows in row_blocks(size(items), self.width):
            block = self._projected(self.raw(take(items, rows), basis))
            out = np.empty((size(items), block.shape[1]), block.dtype) if out is None else out
            out[rows] = block
        return np.empty((0, self.width)) if out is None else out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names such as ``nystrom0``."""
        check_is_fitted(self)
        columns = self.width if self.projection_ is None else self.projection_.shape[1]
        return np.array([f"{type(self).__name__.lower()}{j}" for j in range(columns)], dtype=object)

    def products(self, X: Any, w: Array) -> Array:
        """phi(X) w, without keeping phi(X)."""
        check_is_fitted(self)
        return StreamedDesign(self, self._items(X)[1]).dot(w)

    def streamed(self, X: Any) -> "StreamedDesign | None":
        """What stands for phi(X) where it is too large to be kept; None where it is not."""
        wide = 8 * _num_samples(X) * self.width > settings().memory // 4
        return StreamedDesign(self, self._items(X)[1]) if wide else None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "error_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class StreamedDesign(Design):
    """phi(X) - 1 shift', a block of rows at a time: every product is one pass over the rows."""

    def __init__(self, features: StreamedMap, items: Any, shift: Array | None = None):
        self._features, self._items, self._shift = features, items, shift
        self._basis = features.basis()
        projection = features.projection_
        self._projection = None if projection is None else projection.astype(np.float64, copy=False)
        self.shape = (size(items), features.width if projection is None else projection.shape[1])

    @property
    def shift(self):
        return self._shift

    @lazy
    def X(self) -> Array:
        """phi(X), whole, for solvers that go from row to row."""
        rows, columns = self.shape
        require(8 * rows * columns, f"The features of {rows} rows", "use a smaller rank, or solver='auto'")
        return np.concatenate(
            [block if self._projection is None else project(block, self._projection) for _, block in self._blocks()]
        )

    def _blocks(self):
        for rows in row_blocks(self.shape[0], self._features.width):
            yield rows, self._features.raw(take(self._items, rows), self._basis).astype(np.float64, copy=False)

    def _inward(self, w: Array) -> Array:
        return w if self._projection is None else self._projection @ w

    def _outward(self, v: Array) -> Array:
        return v if self._projection is None else self._projection.T @ v

    def dot(self, w):
        inward, out = self._inward(w), np.empty((self.shape[0], *w.shape[1:]))
        for rows, block in self._blocks():
            out[rows] = block @ inward
        return out if self._shift is None else out - self._shift @ w

    def tdot(self, u):
        total = np.zeros((self._features.width, *u.shape[1:]))
        for rows, block in self._blocks():
            total += block.T @ u[rows]
        total = self._outward(total)
        return total if self._shift is None else total - np.multiply.outer(self._shift, u.sum(axis=0))

    def through(self, w, b, slopes):
        inward, f = self._inward(w), np.empty(self.shape[0])
        u, total = np.empty_like(f), np.zeros(self._features.width)
        level = b if self._shift is None else b - float(self._shift @ w)
        for rows, block in self._blocks():
            f[rows] = block @ inward + level
            u[rows] = slopes(rows, f[rows])
            total += block.T @ u[rows]
        total = self._outward(total)
        return f, u, total if self._shift is None else total - self._shift * u.sum()

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
            features = block if self._projection is None else project(block, self._projection)
            yield rows, features if self._shift is None else features - self._shift

    def outer(self, weights=None):
        A = self.columns(slice(None))
        return A @ A.T if weights is None else (A * weights) @ A.T

    def squared_columns(self, weights=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        return sum(weights[rows] @ features**2 for rows, features in self._rows_of_features())

    def squared_rows(self):
        return np.concatenate([np.einsum("ij,ij->i", A, A) for _, A in self._rows_of_features()])

    def columns(self, chosen):
        return np.asfortranarray(np.concatenate([features[:, chosen] for _, features in self._rows_of_features()]))

    def centred(self):
        means = StreamedDesign(self._features, self._items).tdot(np.ones(self.shape[0])) / self.shape[0]
        return StreamedDesign(self._features, self._items, means)

    def rows(self, chosen):
        items = take(self._items, chosen)
        if 8 * size(items) * self._features.width > settings().memory // 4:
            return StreamedDesign(self._features, items, self._shift)
        return DenseDesign(StreamedDesign(self._features, items).columns(slice(None)), self._shift)


def project(raw: NDArray, projection: NDArray) -> NDArray:
    """raw @ projection, over fixed slices of rows in threads: the bits do not depend on the number of threads."""
    out = np.empty((len(raw), projection.shape[1]), raw.dtype)

    def run(start: int) -> None:
        rows = slice(start, start + ROWS_AT_ONCE)
        np.matmul(raw[rows], projection, out=out[rows])

    in_threads(run, range(0, len(raw), ROWS_AT_ONCE))
    return out


def row_blocks(rows: int, width: int) -> list[slice]:
    """Slices of rows whose features take 32 megabytes, or a small part of the budget."""
    step = max(64, min(BLOCK_BYTES, settings().memory // 32) // (8 * max(width, 1)))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
