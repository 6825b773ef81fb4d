"""Principal components: the directions in which the data spread most, explicit or behind a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import _num_samples, check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_flag, check_time
from empirisk.contract.elsewhere import blockwise, elsewhere
from empirisk.contract.features import FLOATS, SUPPORT, Features, MapsFeatures, expansion
from empirisk.contract.inputs import Array, check_weights
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Singular, TooFewRows, Unsuitable
from empirisk.fits.fit import Limits, SolverRun
from empirisk.kernels.tiles import products as tiled_products
from empirisk.linalg.blocks import over_rows
from empirisk.linalg.design import DenseDesign, Design, SparseDesign, design_of
from empirisk.linalg.hashes import distinct_rows
from empirisk.linalg.lapack import largest_pairs
from empirisk.linalg.leading import RESTARTS, leading
from empirisk.linalg.threads import interruptible_call, single_threaded_blas
from empirisk.maps.implicit import kernel_sums
from empirisk.names import Estimator
from empirisk.parts import is_number
from empirisk.projections.probabilistic import ProbabilisticPCA
from empirisk.scale.fitting import weighted_rows
from empirisk.settings import require, settings
from empirisk.stop import Deadline, Ending, Stopped, interruptible, stopping
from empirisk.validation import check_array, in_memory_of_numpy

if TYPE_CHECKING:
    from empirisk.nets.network import Network

#: Multiplications up to which the full singular value decomposition takes milliseconds; it keeps all digits.
SMALL = 1e8
#: Rows of a matrix up to which its full decomposition takes milliseconds.
LEAST = 400
#: Pairs that count on top of those wanted, where the cost of products is estimated.
MORE = 15
#: Eigenpairs of a matrix by products with it are cheaper than all of them where it has so many rows for each.
FOR_PAIRS = 12
#: Products with the data are cheaper than the matrix where it would have so many rows for each pair.
FOR_PRODUCTS = 32
#: Pairs that the search for a share of the variance begins with.
FIRST = 16
#: What is smaller than this part of the terms that it was subtracted from is nothing.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
#: Codes that differ by less than this share of their size are the same: networks are stored in single precision.
SAME_CODES = 1e-6
#: Rows whose mean stands for a point that has no pre-image, and the ridge that their weights are found with.
NEIGHBOURS, RIDGE = 10, 1e-9
#: Sampled rows that are decomposed where max_time is too short for all.
SAMPLE = 400
#: No pre-image looks at more rows than this.
MOST_NEIGHBOURS = 200


@dataclass(eq=False, repr=False)
class PCA(
    ProbabilisticPCA, MapsFeatures, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator
):
    """Principal component analysis: orthonormal directions u that keep most of the variance,

        maximise  sum_i c_i <u, phi(x_i) - m>^2,   m = sum_i c_i phi(x_i) / sum_i c_i.

    ``transform`` gives the coordinates of phi(x) - m along them. With a kernel this is kernel PCA: u is a combination
    of the rows, scaled to unit length in the space of the kernel, and directions without variance are dropped.

    Parameters
    ----------
    n_components : int, float or None
        The number of directions; a share of the variance in (0, 1] that they must reach; or None for all.
    features : None, transformer or kernel
        The feature map phi, fitted inside, or a kernel. A network becomes an autoencoder: phi(x) are ``n_components``
        codes from which the rows can be rebuilt, and the directions are their principal axes.
    center : bool
        Whether the mean m is subtracted; without it the directions are the singular vectors of the rows themselves.
    whiten : bool
        Whether the coordinates are divided by their standard deviations.
    max_time : float or None
        Seconds after which the directions so far are kept; before there are any, those of a few rows.

    Attributes
    ----------
    components_ : array, k x d
        The directions, the largest entry of each positive. Behind a kernel they are given by ``dual_coef_`` (k x n) on
        ``support_vectors_`` instead.
    explained_variance_, explained_variance_ratio_ : arrays of k
        The variance along each direction, and its share of the whole. It divides by the sum of the weights, less one
        if the mean is subtracted.
    singular_values_ : array of k
        The singular values of the (centred, weighted) rows.
    mean_ : array of d
        m; zeros without ``center``; only where phi is explicit.
    n_components_ : int
        The number of directions.
    n_iter_, history_, stopped_ : int, dict, str
        Rounds of the search for directions, one where all are found at once; ``share``, the part of the variance that
        those of each round keep; and why it ended: "converged", "max_time", "interrupted" or "callback".

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.1]])
    >>> pca = er.PCA(1).fit(X)
    >>> pca.components_.round(2), pca.explained_variance_ratio_.round(3)
    (array([[0.44, 0.9 ]]), array([1.]))
    >>> np.abs(pca.inverse_transform(pca.transform(X)) - X).max() < 0.05
    np.True_
    >>> er.PCA(2, features=er.kernels.Gaussian(2.0)).fit_transform(X).shape
    (4, 2)
    """

    _state = state.State(
        forms=(
            ("components_", "mean_"),
            (*SUPPORT, "mean_coef_", "mean_products_", "mean_norm_"),
        ),
        whiten=state.flag(),
        n_components_=state.size("width"),
        n_samples_=state.optional(state.whole(1)),  # files of before 0.2 have none
        components_=state.array("f", "width", "mapped"),
        mean_=state.array("f", "mapped"),
        dual_coef_=state.array("f8", "width", "support"),
        mean_coef_=state.array("f8", "support"),
        mean_products_=state.array("f8", "width"),
        mean_norm_=state.number(),  # of a mean that is zero it is rounding, of either sign
        explained_variance_=state.array("f8", "width", low=0),
        explained_variance_ratio_=state.array("f8", "width", low=0),
        singular_values_=state.array("f8", "width", low=0),
        n_iter_=state.optional(state.whole()),
        history_=state.optional(state.mapping(state.array("f8", None, finite=False))),
        stopped_=state.optional(state.text()),
    )

    n_components: int | float | None = None
    features: Features = None
    center: bool = True
    whiten: bool = False
    _: KW_ONLY
    max_time: float | None = None

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> PCA:
        """Find the directions.

        Parameters
        ----------
        X : array, sparse matrix or items of the kernel
            The rows.
        y : ignored
            For scikit-learn's interface.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        self._check_flags()
        rebuilds = hasattr(self.features, "learn_to_rebuild")
        if not rebuilds:
            self._require_fixed_features()
        there = elsewhere(X)
        weights: Any  # of rows that are elsewhere, a vector of theirs
        if there is None:
            whole, ones = self._fit_map(X, np.ones(_num_samples(X)), sample_weight)
            weights = check_weights(sample_weight, len(ones))
            if rebuilds:
                whole = self._autoencoded(X, weights)
            rows = np.flatnonzero(weights > 0)
            weights = weights[rows]
            design, count = whole if len(rows) == whole.shape[0] else whole.rows(rows), len(ones)
        else:
            design, weights = weighted_rows(self, there, sample_weight)
            rows, count = np.empty(0, np.intp), design.shape[0]
        freedom = self._freedom(weights, count)
        wanted = self._wanted(min(design.shape))
        table = None if self.n_components or design.implicit or design.on_device else getattr(design, "X", None)
        if table is not None:
            # Rows that repeat span no more directions: weight 2 is the row twice here too.
            wanted = min(int(wanted), max(1, len(distinct_rows(table, weights)[0]) - bool(self.center)))
        watch = FitCallbacks(self, RESTARTS + 1, {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}})
        with interruptible():
            search = DirectionSearch(watch, Deadline(self.max_time))
            try:
                with stopping(search.deadline):
                    spread, total = self._find(design, rows, weights, wanted, search)
            except Stopped:
                spread, total = self._find_in_sample(design, rows, weights, wanted, search)
        self.singular_values_ = np.sqrt(spread)
        self.explained_variance_ = spread / freedom
        self.explained_variance_ratio_ = spread / total
        self.n_components_ = len(spread)
        self.n_samples_ = design.shape[0]
        if not (search.shares and search.deadline.reason):
            search.note(self.explained_variance_ratio_)
        self.n_iter_, self.history_ = len(search.shares), {"share": np.array(search.shares)}
        self.stopped_ = (
            search.deadline.reason or getattr(getattr(self, "features_", None), "cut", None) or Ending.CONVERGED
        )
        watch.close()
        warn_if_unfinished(self, search.deadline.reason, f"{self.n_iter_} rounds")
        return self

    def _find(
        self, design: Any, rows: NDArray, weights: Array, wanted: int | float, search: DirectionSearch
    ) -> tuple[Array, float]:
        """Keep the directions; returns their squared singular values, and the sum of all."""
        fit = self._fit_implicit if design.implicit else self._fit_explicit
        return fit(design, rows, weights, wanted, search)

    def _find_in_sample(
        self, design: Any, rows: NDArray, weights: Array, wanted: int | float, search: DirectionSearch
    ) -> tuple[Array, float]:
        """The directions of rows at equal distances, in the place of all."""
        count = max(SAMPLE, 0 if isinstance(wanted, float) else wanted)
        spaced = np.unique(np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.intp))
        some = spaced if design.in_memory else slice(None, None, -(-design.shape[0] // count))
        part, kept = design.rows(some), design.rowspace.take(weights, some)
        if part.implicit:  # its products alone, not those of all rows
            part.matrix = np.asarray(design.block(some, some), dtype=np.float64)
        spread, total = self._find(part, rows[some], kept, wanted, search)
        scale = float(weights.sum() / kept.sum())
        return scale * spread, scale * total

    def _autoencoded(self, X: Any, weights: Array) -> Design:
        """Codes of a network that has learned to rebuild the rows from as many numbers as directions are wanted."""
        if not isinstance(self.n_components, Integral):
            raise EmpiriskError(f"n_components={self.n_components!r} must be a whole number, the size of the codes.")
        with interruptible():
            run = SolverRun("auto", Limits(0.0, None, self.max_time))
            cast("Network", self.features_).learn_to_rebuild(int(self.n_components), weights, run)
        codes = self._mapped(X)
        if len(codes) > 1 and np.ptp(codes, axis=0).max() <= SAME_CODES * np.abs(codes).max():
            raise Singular(
                "The network gives the same codes for all rows: they are equal, or too few for the penalty on its "
                "weights; lower its decay."
            )
        return design_of(codes)

    # --- arguments ----------------------------------------------------------------------------------------------------

    def _check_flags(self) -> None:
        check_time(self.max_time)
        check_flag("center", self.center)
        check_flag("whiten", self.whiten)

    def _freedom(self, weights: Array, rows: int) -> float:
        """What the variance divides by."""
        total = float(weights.sum())
        if not self.center:
            return total
        if len(weights) == 1 and total <= 1:
            raise TooFewRows("PCA has one sample only, which has no variance; give more rows, or center=False.")
        if total <= 1:
            raise EmpiriskError(
                f"sample_weight sums to {total:g}, but variances divide by the sum less one: weights count rows here; "
                f"multiply them, for instance by {rows}, or use center=False."
            )
        return total - 1.0

    def _wanted(self, most: int) -> int | float:
        """The number of directions, or the share that they must reach."""
        asked = self.n_components
        if asked is None:
            return most
        number = is_number(asked)
        if number and isinstance(asked, Integral) and 1 <= asked <= most:
            return int(asked)
        if number and not isinstance(asked, Integral) and 0.0 < asked <= 1.0:
            return float(asked)
        raise EmpiriskError(
            f"n_components={asked!r} must be a whole number from 1 to {most}, the smaller of the numbers of rows and "
            "of columns, a share of the variance above 0 and at most 1.0, or None for all."
        )

    # --- explicit features --------------------------------------------------------------------------------------------

    def _fit_explicit(
        self, design: Design, rows: NDArray, weights: Array, wanted: int | float, search: DirectionSearch
    ) -> tuple[Array, float]:
        design = _dense_where_small(design)
        mean = design.tdot(weights) / weights.sum() if self.center else np.zeros(design.shape[1])
        spread, components, total = principal(design.shifted(mean), weights, wanted, search.told)
        dtype = getattr(design, "dtype", np.float64)
        self.components_ = (components * signs(components.T)[:, None]).astype(dtype, copy=False)
        self.mean_ = mean.astype(dtype, copy=False)
        return spread, total

    # --- behind a kernel ----------------------------------------------------------------------------------------------

    def _fit_implicit(
        self, design: Any, rows: NDArray, weights: Array, wanted: int | float, search: DirectionSearch
    ) -> tuple[Array, float]:
        shares = weights / weights.sum() if self.center else np.zeros(len(weights))
        gram = CentredGram(design, shares, np.sqrt(weights))
        rounding = ROUNDING * float(weights @ design.diagonal)
        total = _variance(float(weights @ gram.diagonal), rounding)
        spread, vectors = decompose(gram, len(weights), wanted, total, tell=search.told)
        # What is left of a direction without variance is rounding: that of the products before the mean is subtracted,
        # which is the same for a row twice and for one of weight 2. The first has some: there is variance at all.
        kept = (spread > rounding) | (np.arange(len(spread)) == 0)
        spread, vectors = spread[kept], vectors[:, kept]
        vectors = vectors * signs(vectors / gram.root[:, None])
        beta = gram.root[:, None] * vectors / np.sqrt(spread)
        beta -= np.multiply.outer(shares, beta.sum(axis=0))
        self._keep_expansion(design, rows, np.column_stack([beta, shares]), gram)
        return spread, total

    def _keep_expansion(self, design: Any, rows: NDArray, weights: Array, gram: CentredGram) -> None:
        """Keep the coefficients of the directions and of the mean, and what the mean's products are."""
        found = expansion(design, [rows], [weights])
        self.dual_coef_, self.mean_coef_ = found["dual_coef_"][:-1], found["dual_coef_"][-1]
        self.support_, self.support_vectors_ = found["support_"], found["support_vectors_"]
        products = gram.means @ weights
        self.mean_products_, self.mean_norm_ = products[:-1], float(products[-1])

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _implicit(self) -> bool:
        return hasattr(self, "dual_coef_")

    # --- what it answers ----------------------------------------------------------------------------------------------

    @blockwise
    @single_threaded_blas()
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The coordinates of each row along the directions."""
        check_is_fitted(self)
        if self._implicit:
            scores = self._products(X) - self.mean_products_
            dtype = _floating(X)
        else:
            phi = self._mapped(X)
            scores, dtype = self._centred(phi).dot(self.components_.T.astype(np.float64)), phi.dtype
        if self.whiten:
            scores = scores / self._deviations()
        return scores.astype(dtype, copy=False)

    def _centred(self, phi: Any) -> Design:
        return design_of(phi).shifted(self.mean_.astype(np.float64))

    def _deviations(self) -> Array:
        """Standard deviations to divide by; one where there is no variance at all."""
        return np.sqrt(np.where(self.explained_variance_ > 0, self.explained_variance_, 1.0))

    @single_threaded_blas()
    def inverse_transform(self, Z: ArrayLike) -> NDArray[Any]:
        """The rows with these coordinates; behind a kernel, where there may be none, rows whose phi is near.

        Parameters
        ----------
        Z : array, n x k
            Coordinates, as `transform` gives them.
        """
        check_is_fitted(self)
        scores = check_array(Z, dtype=FLOATS, input_name="Z")
        if scores.shape[1] != self.n_components_:
            raise EmpiriskError(
                f"Z has {scores.shape[1]} columns, but PCA has {self.n_components_} components; give what transform "
                "gives."
            )
        if self.whiten:
            scores = scores * self._deviations()
        if self._implicit:
            return self._pre_images(np.asarray(scores, dtype=np.float64)).astype(_floating(Z), copy=False)
        rows = (scores @ self.components_.astype(np.float64) + self.mean_).astype(_floating(Z), copy=False)
        back = getattr(getattr(self, "features_", None), "inverse_transform", None)
        return rows if back is None else back(rows)

    def _pre_images(self, scores: Array) -> NDArray:
        """Weighted means of the rows whose phi are nearest; the weights sum to one and bring phi nearest.

        With v_j = phi(x_j) - p for the point p and the rows x_j near it, the weights minimise |sum_j w_j v_j|^2, which
        needs inner products alone: any kernel on vectors will do.
        """
        kernel = self._fitted_kernel
        if kernel.takes != "vectors":
            raise Unsuitable(f"{kernel!r} has items that are no vectors, of which no mean can be taken: no pre-images.")
        X = np.asarray(_dense(self.support_vectors_), dtype=np.float64)
        items = kernel.prepare(in_memory_of_numpy(self.support_vectors_))
        # p = m + sum_k z_k u_k in the coordinates of the rows.
        points = scores @ self.dual_coef_ + self.mean_coef_
        crossed = kernel_sums(kernel, items, points.T, items[:0], among=True)[0].T
        # Squared distances less |p|^2, which is the same for all rows.
        squares = np.asarray(kernel.diagonals(items), dtype=np.float64) - 2 * crossed
        count = min(len(X), MOST_NEIGHBOURS, max(NEIGHBOURS, X.shape[1] + 2))
        out = np.empty((len(scores), X.shape[1]))
        for i, (point, cross) in enumerate(zip(points, crossed, strict=True)):
            near = np.argsort(squares[i], kind="stable")[:count]
            block = np.asarray(kernel.between(items[near]), dtype=np.float64)
            out[i] = barycentre(block, cross[near], float(point @ cross)) @ X[near]
        return out

    def reconstruction_error(self, X: ArrayLike) -> Array:
        """|phi(x) - m|^2 less the squared coordinates: what the directions do not see of each row (Pythagoras)."""
        check_is_fitted(self)
        if self._implicit:
            items = self._items(X)
            found = self._against_support(items, np.column_stack([self.dual_coef_.T, self.mean_coef_]))
            scores, levels = found[:, :-1] - self.mean_products_, found[:, -1]
            norms = np.asarray(self._fitted_kernel.diagonals(items), dtype=np.float64)
            return np.maximum(norms - 2 * levels + self.mean_norm_ - np.sum(scores**2, axis=1), 0.0)
        centred = self._centred(self._mapped(X))
        scores = centred.dot(self.components_.T.astype(np.float64))
        return np.maximum(centred.squared_rows() - np.sum(scores**2, axis=1), 0.0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _floating(X: Any) -> Any:
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


def signs(vectors: Array) -> Array:
    """+1 or -1 for every column, such that its largest entry becomes positive."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def barycentre(block: Array, crossed: Array, square: float) -> Array:
    """Weights w with sum one that minimise |sum_j w_j (phi_j - p)|^2, from <phi_i, phi_j>, <phi_j, p> and |p|^2.

    >>> barycentre(np.diag([4.0, 0.0]), np.array([2.0, 0.0]), 1.0).round(6)  # p = 1 between 2 and 0
    array([0.5, 0.5])
    """
    local = block - np.add.outer(crossed, crossed) + square
    local.flat[:: len(local) + 1] += RIDGE * max(float(np.trace(local)), np.finfo(np.float64).tiny)
    weights = linalg.solve(local, np.ones(len(local)), assume_a="pos", check_finite=False)
    return weights / weights.sum()


class DirectionSearch:
    """The course of the search for directions: what it has found round by round, and whether it must end.

    Parameters
    ----------
    watch : FitCallbacks
        Tells the callbacks.
    deadline : Deadline
        When to stop.
    """

    def __init__(self, watch: FitCallbacks, deadline: Deadline):
        self._watch, self.deadline = watch, deadline
        self.shares: list[float] = []

    def told(self, shares: Array) -> bool:
        """A round has found directions with these shares of the variance; whether it is to be the last."""
        if self.note(shares):
            self.deadline.reason = Ending.CALLBACK
        return bool(self.deadline.reason) or self.deadline()

    def note(self, shares: Array) -> bool:
        """Keep the sum of the shares; whether a callback says stop."""
        self.shares.append(float(shares.sum()))
        self._watch.begin("round")
        return self._watch.end()


# --- eigenpairs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scatter:
    """A' C A: the d x d matrix of the columns."""

    design: Design
    weights: Array
    rows_per_pair: ClassVar[int] = FOR_PRODUCTS

    def matrix(self) -> Array:
        """The matrix, whole."""
        columns = self.design.shape[1]
        require(16 * columns**2, f"A scatter matrix of {columns} x {columns}", "give a small n_components")
        return self.design.gram(self.weights)

    def multiply(self, V: Array) -> Array:
        """The matrix times V."""
        return self.design.tdot(self.weights[:, None] * self.design.dot(V))


@dataclass(frozen=True)
class RowProducts:
    """C^1/2 A A' C^1/2: the n x n matrix of the rows."""

    design: Design
    weights: Array
    rows_per_pair: ClassVar[int] = FOR_PRODUCTS

    def matrix(self) -> Array:
        """The matrix, whole."""
        rows = self.design.shape[0]
        require(16 * rows**2, f"A Gram matrix of {rows} x {rows}", "give a small n_components")
        root = np.sqrt(self.weights)
        X = None if self.design.on_device else getattr(self.design, "X", None)
        if X is None or sparse.issparse(X):
            return self.design.outer() * np.multiply.outer(root, root)
        A = (X - self.design.shift) * root[:, None]
        return tiled_products(A, None, None, lambda rows, columns, tile: None)

    def multiply(self, V: Array) -> Array:
        """The matrix times V."""
        root = np.sqrt(self.weights)[:, None]
        return root * self.design.dot(self.design.tdot(root * V))


class CentredGram:
    """C^1/2 H K H' C^1/2 with H = I - 1 p': the products of phi(x_i) - m, weighted.

    Parameters
    ----------
    design : GramDesign
        The rows behind the kernel.
    shares : array
        p, the part that each row has in the mean m; zeros for no mean.
    root : array
        C^1/2.
    """

    rows_per_pair = 0  # there is no way round the products of the rows

    def __init__(self, design: Any, shares: Array, root: Array):
        self.root, self._design, self._shares = root, design, shares
        self._kept = None
        if 16 * design.shape[0] ** 2 <= settings().memory:
            self._kept = design.fresh_matrix()
        self.means = self._product(shares[:, None])[:, 0]
        self.diagonal = design.diagonal - 2 * self.means + self.means @ shares

    def _product(self, V: Array) -> Array:
        """K V, by rows of a fixed number."""
        return self._design.dot(V) if self._kept is None else _product(self._kept, V)

    def matrix(self) -> Array:
        """The matrix, whole; K itself is given up for it."""
        K = self._design.fresh_matrix() if self._kept is None else self._kept
        levels = self.means - 0.5 * (self.means @ self._shares)

        def run(rows: slice) -> None:
            K[rows] -= np.add.outer(levels[rows], levels)
            K[rows] *= np.multiply.outer(self.root[rows], self.root)

        over_rows(run, len(K), 8 * len(K))
        return K

    def multiply(self, V: Array) -> Array:
        """The matrix times V."""
        V = self.root[:, None] * V
        V = self._product(V - np.multiply.outer(self._shares, V.sum(axis=0)))
        return self.root[:, None] * (V - self._shares @ V)


def _go_on(shares: Array) -> bool:
    return False


def principal(
    design: Design, weights: Array, wanted: int | float, tell: Callable[[Array], bool] = _go_on
) -> tuple[Array, Array, float]:
    """The squared singular values of C^1/2 A, decreasing, its right singular vectors as rows, and their whole sum.

    By the decomposition itself where that takes no time; else by the smaller of A'CA and its n x n twin, whole or by a
    few products. The digits of squares end at half those of the singular values.
    """
    rows, columns = design.shape
    shift = 0.0 if design.shift is None else float(design.shift @ design.shift)
    # Of sparse rows only products are known; those of dense ones are subtracted first.
    rounding = (ROUNDING**2 if isinstance(design, DenseDesign) else ROUNDING) * float(weights.sum()) * shift
    if isinstance(design, DenseDesign) and not design.on_device and rows * columns * min(rows, columns) <= SMALL:
        total = _variance(float(weights @ design.squared_rows()), rounding)
        A = (design.X - design.shift) * np.sqrt(weights)[:, None]
        _, values, vectors = np.linalg.svd(A, full_matrices=False)
        spread = _cut(values**2, wanted, total)
        return spread, vectors[: len(spread)], total
    form = (Scatter if columns <= rows else RowProducts)(design, weights)
    length = min(rows, columns)
    matrix = form.matrix() if _takes_matrix(form, length, _first_count(wanted)) else None
    # The trace, where it is at hand, saves a pass over the data.
    total = _variance(float(weights @ design.squared_rows() if matrix is None else np.trace(matrix)), rounding)
    spread, vectors = decompose(form, length, wanted, total, matrix, tell)
    if columns <= rows:
        return spread, vectors.T, total
    # In order of decreasing values the factor Q keeps the directions, and it fills in where there is no variance left.
    with stopping(lambda: False):  # what was found is worth one pass more
        right = linalg.qr(design.tdot(np.sqrt(weights)[:, None] * vectors), mode="economic", check_finite=False)[0]
    return spread, right.T, total


def _dense_where_small(design: Design) -> Design:
    """Sparse rows, if few or mostly filled, as dense ones: the mean is subtracted before products, and no digits go."""
    if not isinstance(design, SparseDesign):
        return design
    rows, columns = design.shape
    few = rows * columns * min(rows, columns) <= SMALL or 3 * design.X.nnz >= 2 * rows * columns
    return design_of(design.X.toarray()) if few else design


def _variance(total: float, rounding: float) -> float:
    """The whole variance, refused where it is rounding alone."""
    if not total > rounding:
        raise Singular(
            "All rows of X are equal, so no direction has any variance; give rows that differ, and dense ones where "
            "they lie so far from zero that products of sparse rows lose their differences."
        )
    return total


def _first_count(wanted: int | float) -> int:
    """How many pairs to look for first."""
    return FIRST if isinstance(wanted, float) else wanted


def _takes_all(length: int, count: int) -> bool:
    """Whether all pairs are found as fast as so many."""
    return length <= max(LEAST, FOR_PAIRS * (count + MORE))


def _takes_matrix(form: Any, length: int, count: int) -> bool:
    """Whether the matrix of a form is made, which serves more products than are needed without it."""
    return _takes_all(length, count) or length <= form.rows_per_pair * (count + MORE)


def decompose(
    form: Any,
    length: int,
    wanted: int | float,
    total: float,
    matrix: Array | None = None,
    tell: Callable[[Array], bool] = _go_on,
) -> tuple[Array, Array]:
    """The largest eigenvalues of a form, decreasing, and their vectors as columns: a number of them, or a share.

    ``tell`` hears of every round, and may end the search with what there is.
    """
    count, ended = _first_count(wanted), False

    def told(values: Array) -> bool:
        nonlocal ended
        ended = tell(values / total)
        return ended

    while not _takes_all(length, count):
        multiply = form.multiply
        if _takes_matrix(form, length, count):
            matrix = whole = form.matrix() if matrix is None else matrix
            multiply = partial(_product, whole)
        values, vectors = leading(multiply, length, count, told)
        if not isinstance(wanted, float) or values.sum() >= wanted * total or ended:
            values = _cut(values, wanted, total)
            return values, vectors[:, : len(values)]
        count *= 2
    whole = form.matrix() if matrix is None else matrix
    values = vectors = np.empty((0, 0))
    if isinstance(wanted, int) and 4 * wanted < length:
        values, vectors = largest_pairs(whole, wanted)
    if len(values) < wanted:  # LAPACK's search for a part finds none of many that are equal but for rounding
        values, vectors = interruptible_call(partial(np.linalg.eigh, whole), length)
    values = _cut(np.maximum(values[::-1], 0.0), wanted, total)
    return values, vectors[:, ::-1][:, : len(values)]


def _product(matrix: Array, V: Array) -> Array:
    """matrix V, by blocks of rows that depend on the shape alone."""
    out = np.empty(V.shape)

    def run(rows: slice) -> None:
        out[rows] = matrix[rows] @ V

    over_rows(run, len(out), 8 * len(out))
    return out


def _cut(values: Array, wanted: int | float, total: float) -> Array:
    """As many of the decreasing values as are wanted: a number, or as few as reach a share of the total."""
    if not isinstance(wanted, float):
        return values[:wanted]
    # The last sum may miss the total by rounding.
    reached = np.cumsum(values) >= min(wanted, 1 - 1e-12) * total
    return values[: int(np.argmax(reached)) + 1 if reached.any() else len(values)]
