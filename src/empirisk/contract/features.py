"""The slot ``features=``: data through the feature map or behind the kernel, validated on the way in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from empirisk import kernels, state
from empirisk.contract.arguments import check_time
from empirisk.contract.inputs import LARGEST, check_finite, check_size, check_weights
from empirisk.dual import feasible
from empirisk.errors import EmpiriskError, Interrupted, OutOfRange, Unsuitable
from empirisk.kernels.base import Kernel, Term
from empirisk.kernels.checks import require_semidefinite, runs_on_devices
from empirisk.kernels.items import size, validated
from empirisk.linalg.accelerator import lie_on_device, rows_on_device
from empirisk.linalg.design import Design, brings_design, design_of, placed_design
from empirisk.linalg.threads import single_threaded_blas
from empirisk.maps.implicit import GramDesign, gram_design, in_double, kernel_sums
from empirisk.maps.seeds import seeded_clone
from empirisk.messages import coded
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import FeatureMap, is_blockwise, is_learning_map, is_map, learns_with_machine
from empirisk.stop import Deadline, Ending, Stopped, flag_or_request, requested, stopping
from empirisk.validation import check_array, count_columns, in_memory_of_numpy, readable, validate_data

FORMATS = ("csr", "csc")
FLOATS = (np.float64, np.float32)
#: Scikit-learn checks the form; whether numbers are finite is found out with their size, in one pass and in threads.
UNREAD: dict[str, Any] = {"dtype": FLOATS, "ensure_all_finite": False}
#: The attributes of w as a combination of rows.
SUPPORT = ("dual_coef_", "support_", "support_vectors_")
#: Coefficients below this share of the largest are what an interior-point method leaves of zero; those of rows that
#: do support are larger by many orders of magnitude.
NEGLIGIBLE = 1e-9
#: Seconds beyond `max_time` that a feature map may take to learn: without it there would be no model at all.
MAP_LEARNING_SECONDS = 0.5
#: Kinds of items that come as an array of numbers with as many columns in `predict` as in `fit`.
TABLES = ("vectors", "gram")
#: What the slot ``features`` takes: a map, a kernel, the name of one or a function that computes one; None is x itself.
Features = FeatureMap | Kernel | str | Callable[..., Any] | None


def _fits_its_slot(its: Mapping[str, Any]) -> str | None:
    """What a loaded machine with a slot ``features`` got wrong: what it learned goes with what stands in the slot."""
    learned = its.get("features_")
    if (its["features"] is None) != (learned is None):
        return "features_ does not go with features"
    explicit = its.get("coef_", its.get("components_", its.get("cluster_centers_")))
    rows = its.get("rows_", its.get("support_vectors_")) if explicit is None else explicit
    if isinstance(learned, Kernel):
        if learned.takes == "gram" and rows is not None and not _are_places(rows, its["n_features_in_"]):
            return "the rows kept are no places in the matrix"
        wrong = None if rows is None or explicit is not None else learned.wrong_rows(rows)
        if wrong is not None:
            return wrong
        return None if explicit is None else "explicit weights have no meaning behind a kernel"
    if "dual_coef_" in its and explicit is None:
        return "dual_coef_ has no meaning without a kernel"
    if learned is not None:
        return None if is_map(learned) else "features_ is neither a map nor a kernel"
    # A tree of merges keeps no rows.
    fits = rows is None or rows.shape[-1] == its["n_features_in_"]
    return None if fits else "n_features_in_ is not the number of weights"


def _are_places(rows: Any, count: int) -> bool:
    """Whether what is kept of a Gram matrix are numbers of its columns."""
    plain = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind == "i"
    return plain and bool(np.all((rows >= 0) & (rows < count)))


class MapsFeatures:
    """A machine with a slot ``features``: None, a transformer that is cloned and fitted inside, or a kernel."""

    _state = state.State(
        _fits_its_slot,
        features_=state.optional(state.part(columns="columns", width="mapped")),
        support_=state.optional(state.array("i", "support", low=0)),
        support_vectors_=state.optional(state.items("support", "mapped")),
    )

    features: Features
    features_: FeatureMap | Kernel
    coef_: NDArray[np.float64]
    dual_coef_: NDArray[np.float64]
    support_vectors_: Any

    def _kernel(self) -> Kernel | None:
        """The kernel in the slot; None where phi is explicit."""
        if self.features is None or is_map(self.features):
            return None
        return kernels.find(self.features, "features")

    def _check_size(self, name: str, values: Any) -> None:
        """Raise where numbers are not finite, or products of them would overflow or vanish."""
        check_size(name, values, machine=type(self).__name__)

    def _learns_features(self) -> bool:
        """Whether the features are a map that learns together with the machine."""
        return is_learning_map(self.features)

    def _require_fixed_features(self) -> None:
        """Raise for features that would learn with a machine that minimises nothing by which they could."""
        features = self.features if self._kernel() is None else self._kernel()
        if learns_with_machine(features):
            raise Unsuitable(
                f"features={features!r} learns together with a machine, and {type(self).__name__} minimises nothing "
                "by which it could; give a sum of kernels, or the features of a machine that was fitted."
            )

    def _fit_map(
        self, X, y, sample_weight=None, *, late: Callable[[], bool] | None = None, again: bool = False, **target
    ) -> tuple[Design, NDArray]:
        """Validated data after the fitted feature map or behind the kernel, and validated targets.

        Features that are made block by block are not kept where it is ``late`` before all are there. ``again``, a map
        that has learned stays as it is.
        """
        kernel = self._kernel()
        if kernel is not None:
            return self._fit_kernel(kernel, X, y, sample_weight, **target)
        held = rows_on_device(X) if self.features is None else None
        if held is not None:
            y = validate_data(self, X="no_validation", y=y, reset=not again, **target)
            self._check_size("X", self._counted(held, reset=not again))
            check_consistent_length(held, y)
            return design_of(held), y
        if self.features is None and brings_design(X):
            # It checks its own numbers, where they lie.
            design, y = design_of(X), validate_data(self, X="no_validation", y=y, reset=not again, **target)
            check_consistent_length(y, range(design.shape[0]))
            if not again:
                self.n_features_in_ = design.shape[1]
            return design, y
        if self.features is None:
            matrix, y = validate_data(self, X, y, accept_sparse=FORMATS, reset=not again, **UNREAD, **target)
            self._check_size("X", matrix)
            return placed_design(matrix), y
        held = rows_on_device(X) if getattr(self.features, "on_devices", False) else None
        X, y = (
            readable(X) if held is None else held,
            validate_data(self, X="no_validation", y=y, reset=not again, **target),
        )
        if not again:
            self.features_ = self._learned_map(cast(FeatureMap, self.features), X, y)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.features_, name):
                    setattr(self, name, getattr(self.features_, name))
        features = cast(FeatureMap, self.features_)
        mapped = features.mapped(X, late) if is_blockwise(features) else features.transform(X)
        if brings_design(mapped):
            design = design_of(mapped)
            check_consistent_length(y, range(design.shape[0]))
            return design, y
        matrix = check_array(mapped, accept_sparse=FORMATS, input_name="features(X)", **UNREAD)
        check_consistent_length(matrix, y)
        self._check_size("features(X)", matrix)
        return placed_design(matrix), y

    def _counted(self, held: Any, *, reset: bool) -> Any:
        """Rows on a device, with as many columns as those of the fit, or these are such from now on."""
        count_columns(self, held, reset=reset)
        return held

    def _learned_map(self, features: FeatureMap, X, y) -> FeatureMap:
        """A clone of the map that has learned what it learns by itself, left where that takes too long."""
        features, limit = seeded_clone(features, getattr(self, "random_state", None)), getattr(self, "max_time", None)
        check_time(limit)
        deadline = None if limit is None else Deadline(limit + MAP_LEARNING_SECONDS)
        try:
            with stopping(deadline or flag_or_request()):
                return features.fit(X, y)
        except Stopped:
            if requested():
                raise Interrupted("features were interrupted before they had learned: nothing is kept.") from None
            if deadline is None or deadline.reason != Ending.MAX_TIME:
                raise  # by a flag around this fit
            raise EmpiriskError(
                coded(
                    "ER002",
                    f"max_time={limit!r} s were over before features={features!r} had learned from X; raise it, "
                    "or give features that learn faster.",
                )
            ) from None

    def _fit_kernel(self, kernel: Kernel, X, y, sample_weight, **target) -> tuple[Design, NDArray]:
        """The samples behind a clone of the kernel that has learned what it learns from the rows that count."""
        held = _rows_for(kernel, X)
        if held is not None:
            y = validate_data(self, X="no_validation", y=y, **target)
            X = array = self._counted(held, reset=True)
            self._check_size("X", array)
        elif kernel.takes in TABLES:
            array, y = validate_data(self, X, y, accept_sparse=FORMATS if kernel.sparse else False, **UNREAD, **target)
            self._check_size("X", array)
            if array.dtype == np.float32:
                check_size("X in float32", array, np.sqrt(SINGLE))
            X = in_memory_of_numpy(X)
        else:
            # Of the sparse formats only some can be asked for rows.
            array = X.tocsr() if sparse.issparse(X) else X
            y = validate_data(self, X="no_validation", y=y, **target)
        weights = None if kernel.takes == "gram" or sample_weight is None else check_weights(sample_weight, len(y))
        with validated() if kernel.takes in TABLES else nullcontext():
            kernel = clone(kernel).fit(X if weights is None else _with_weight(X, weights))
            self.features_ = kernel
            if weights is not None and np.ptp(weights) > 0:
                kernel.weigh(weights[weights > 0])
            items = kernel.prepare(in_double(array))
        check_consistent_length(array, y)
        require_semidefinite(kernel, items)
        # Of a Gram matrix only the numbers of the support vectors need be kept.
        source = np.arange(size(items)) if kernel.takes == "gram" else array
        design = gram_design(kernel, items, source)
        single = getattr(array, "dtype", None) == np.float32  # predictions for such rows are made in their precision
        _check_kernel_size(design, SINGLE if single else LARGEST**2)
        return design, y

    def _mapped(self, X) -> Any:
        """Validated data after the fitted feature map."""
        if self.features is None:
            return self._as_fitted(X, FORMATS)
        mapped = self.features_.transform(readable(X))
        return check_array(mapped, accept_sparse=FORMATS, dtype=FLOATS, input_name="features(X)")

    @property
    def _fitted_kernel(self) -> Kernel:
        """What a machine behind a kernel has learned of it."""
        return cast(Kernel, self.features_)

    def _items(self, X) -> Any:
        """Validated samples in the form that the fitted kernel computes from."""
        kernel = self._fitted_kernel
        if kernel.takes not in TABLES:
            return kernel.prepare(X)
        held = _rows_for(kernel, X)
        with validated():
            if held is not None:
                return kernel.prepare(self._counted(held, reset=False))
            return kernel.prepare(self._as_fitted(in_memory_of_numpy(X), FORMATS if kernel.sparse else False))

    def _as_fitted(self, X, formats: Any) -> Any:
        """Samples like those of the fit, validated; those on a device stay there."""
        held = rows_on_device(X)
        if held is not None:
            return self._counted(held, reset=False)
        matrix = validate_data(self, X, accept_sparse=formats, reset=False, **UNREAD)
        check_finite("X", matrix, type(self).__name__)
        return matrix

    @single_threaded_blas()
    def _products(self, X) -> Array:
        """<w, phi(x)> for every row and output."""
        features = getattr(self, "features_", None)
        if is_blockwise(features):
            return features.products(X, np.atleast_2d(self.coef_).T)
        if not isinstance(features, Kernel):
            return design_of(self._mapped(X)).dot(np.atleast_2d(self.coef_).T)
        return self._against_support(self._items(X), np.atleast_2d(self.dual_coef_).T)

    def _against_support(self, items: Any, weights: Array) -> Array:
        """sum_j weights_jk k(x, x_j) over the support vectors, for every item and column of the weights."""
        kernel = self._fitted_kernel
        if len(weights) == 0:  # w = 0 has no support
            return np.zeros((size(items), weights.shape[1]))
        with validated():
            support = kernel.prepare(self.support_vectors_)
        return kernel_sums(kernel, support, weights, items, among=False)[1]

    def linear_part(self) -> Array | None:
        """w of the linear part of a kernel such as ``Gaussian() + Linear()``: one row per output, or None without one.

        f(x) = <w, x> + (the other part) + b.
        """
        check_is_fitted(self)
        kernel = getattr(self, "features_", None)
        if not isinstance(kernel, Kernel):
            raise Unsuitable("linear_part() is for machines behind a kernel; here the weights are coef_.")
        support = kernel.prepare(self.support_vectors_)
        parts = [kernel.linear_part(support, row) for row in np.atleast_2d(self.dual_coef_)]
        known = [part for part in parts if part is not None]
        return np.stack(known).reshape(*self.dual_coef_.shape[:-1], -1) if known else None

    @single_threaded_blas()
    def parts(self, X: ArrayLike) -> Array:
        """The parts f_j of a machine behind a sum of kernels, which add up to the decision function less b.

        A sum of kernels has a part for each; `kernels.Anova` one for each column, and for each group of columns up to
        its order; `maps.SeveralKernels` one for each kernel. `part_names` says which they are, and
        `empirisk.plots.additive` draws them.

        Parameters
        ----------
        X : array or list of items
            The rows.

        Returns
        -------
        array, n x parts; n x parts x outputs of a machine with several
        """
        check_is_fitted(self)
        theirs = self._terms(None)
        ours = self._terms(self._items(X))
        weights = np.atleast_2d(self.dual_coef_).T
        found = [
            own.factor * kernel_sums(own.kernel, support.items, weights, own.items, among=False)[1]
            for own, support in zip(ours, theirs, strict=True)
        ]
        parts = np.stack(found, axis=1)
        return parts[:, :, 0] if parts.shape[2] == 1 else parts

    def part_names(self) -> NDArray[Any]:
        """The names of the `parts`: their columns where these are known, else their kernels."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)

        def name(term: Term) -> str:
            if term.columns is None:
                return repr(term.kernel)
            return " ".join(f"x{j}" if names is None else str(names[j]) for j in term.columns)

        return np.array([name(term) for term in self._terms(None)], dtype=object)

    def _terms(self, items: Any) -> list[Term]:
        """The kernels that are summed, each with its part of the items, or of the support vectors."""
        kernel = getattr(self, "features_", None)
        if not isinstance(kernel, Kernel) or not hasattr(self, "dual_coef_"):
            raise Unsuitable(
                "parts are those of a machine behind a sum of kernels, such as features=kernels.Anova(); here "
                "coef_ has a weight for each column."
            )
        if items is None:
            with validated():
                items = kernel.prepare(self.support_vectors_)
        return kernel.terms(items)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        kernel = None if isinstance(self.features, str) and self.features not in kernels.NAMES else self._kernel()
        tags.input_tags.sparse = _takes_sparse(self.features) if kernel is None else kernel.sparse
        tags.input_tags.pairwise = kernel is not None and kernel.takes == "gram"
        return tags


def _rows_for(kernel: Kernel, X: Any) -> Any:
    """Rows on a device for a kernel that runs there; None for all others, which are taken in memory."""
    held = rows_on_device(X) if kernel.takes == "vectors" else None
    return held if held is not None and runs_on_devices(kernel, held) else None


def _takes_sparse(features: Features) -> bool:
    """Whether a feature map takes sparse data: the identity does, a transformer says so itself."""
    return not hasattr(features, "__sklearn_tags__") or get_tags(features).input_tags.sparse


def _with_weight(X, weights: Array) -> Any:
    """The samples with a positive weight."""
    if weights.min() > 0:
        return X
    # Of the sparse formats only some can be asked for rows.
    return _safe_indexing(X.tocsr() if sparse.issparse(X) else X, np.flatnonzero(weights > 0))


#: The values of a kernel on rows in single precision stay below this: sums of some of them do not overflow.
SINGLE = 1e36


def _check_kernel_size(design: GramDesign, limit: float) -> None:
    """Raise where the squared lengths |phi(x)|^2 are beyond what squares of numbers in X may be."""
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = design.diagonal
    if not np.all(diagonal <= limit):  # NaN included
        raise OutOfRange(
            f"features: k(x, x) is as large as {diagonal.max():.1e}, where products overflow; divide the columns of X "
            f"by their size, or normalise the kernel{', or give X in float64' if limit == SINGLE else ''}."
        )


def expansion(design: Design, rows: list[NDArray], weights: list[Array]) -> dict[str, Any]:
    """w as attributes of a machine: ``coef_`` where it is explicit, else its coefficients on the support vectors.

    ``weights`` holds one array per problem, in the coordinates of a design like the given one on ``rows``.
    """
    if not isinstance(design, GramDesign):
        return {"coef_": np.concatenate([np.atleast_2d(w.T) for w in weights])}
    whole = design.root
    dual = np.concatenate([_on_all_rows(w, where, whole.shape[0]) for w, where in zip(weights, rows, strict=True)])
    support = np.flatnonzero(dual.any(axis=0))
    vectors = _safe_indexing(whole.source, support)
    places = support if whole.origins is None else whole.origins[support]
    # Side by side, as a copy of the machine has them: products of other strides are rounded otherwise.
    return {"dual_coef_": np.ascontiguousarray(dual[:, support]), "support_": places, "support_vectors_": vectors}


def support(problems: list[Problem], rows: list[NDArray], points: list[Point]) -> dict[str, Any]:
    """The rows that support explicit weights behind an l2 penalty, w = sum_j dual_coef_[j] x_j, as attributes."""
    duals = [-_slopes_at(*each) / each[0].penalty.l2 for each in zip(problems, points, strict=True)]
    count = 1 + max(int(where.max()) for where in rows)
    dual = np.concatenate([_on_all_rows(u, where, count) for u, where in zip(duals, rows, strict=True)])
    dual[np.abs(dual) <= NEGLIGIBLE * np.abs(dual).max()] = 0.0
    missing = np.any(dual != 0, axis=0)
    chosen = np.flatnonzero(missing)
    vectors, found = [], []
    for problem, where in zip(problems, rows, strict=True):
        here = np.flatnonzero(missing[where])
        part: Any = problem.design.rows(here)
        vectors.append(part.table if part.on_device else part.X)
        found.append(where[here])
        missing[found[-1]] = False
    together, places = vectors[0], np.concatenate(found)
    if len(vectors) > 1:
        if lie_on_device(together):
            together = together.followed_by(*vectors[1:])
        else:
            together = sparse.vstack(vectors, "csr") if sparse.issparse(together) else np.concatenate(vectors)
    if np.any(places[1:] < places[:-1]):  # they may be large, and are copied only where they must be
        together = together[np.argsort(places)]
    return {"dual_coef_": dual[:, chosen], "support_": chosen, "support_vectors_": together}


def _slopes_at(problem: Problem, point: Point) -> Array:
    """The dual point of a fit; of a solver that gives none, the nearest feasible one to the slopes."""
    return feasible(problem, problem.slopes(problem.predict(point)))[0] if point.u is None else point.u


def _on_all_rows(w: Array, where: NDArray, rows: int) -> Array:
    """The coefficients of each output on all the rows of the user's data."""
    return np.array([np.bincount(where, column, rows) for column in np.atleast_2d(w.T)], dtype=np.float64)
