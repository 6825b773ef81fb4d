"""Nearest neighbours: classification and regression by the rows most alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.features import Features, MapsFeatures
from empirisk.contract.inputs import (
    as_numbers,
    check_size,
    check_weights,
    class_codes,
    class_weights,
    encode_classes,
    sorted_classes,
)
from empirisk.contract.multiclass import untied
from empirisk.contract.outputs import (
    CLASSES,
    LabelsClassifier,
    LogProbabilities,
    classes_of_columns,
    label_columns,
    predicted,
)
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, TooFewRows
from empirisk.fits.choice import Choice, check_rule, choice_of
from empirisk.kernels.base import Kernel, require_whole
from empirisk.kernels.items import validated
from empirisk.linalg.foreign import in_its_kind
from empirisk.machines.neighbors.nearest import Found, add_votes, euclidean_search, kernel_search, keys_of_rows, shares
from empirisk.names import Estimator

Array = NDArray[np.float64]
WEIGHTS = ("uniform", "distance")
#: Of a number, given or in a file: its inverse is a number too, with all its digits.
LARGEST = 1e305


@dataclass(eq=False, repr=False)
class Neighbors(MapsFeatures, CallbackSupportMixin, Estimator):
    """What the two machines share: the rows kept, the search, and the choice of k."""

    _state = state.State(
        lambda its: (
            None
            if (its["norms_"] is not None) == isinstance(its.get("features_"), Kernel)
            else "norms_ go with a kernel"
        ),
        forms=(("rows_",),),
        filled=("kept",),
        weights=state.text(*WEIGHTS),
        positions_=state.array("i", "kept", low=0),
        weights_=state.array("f8", "kept", low=0),
        rows_=state.items("kept", "mapped", LARGEST),
        norms_=state.maybe(state.array("f", "kept")),
        n_neighbors_=state.whole(1),
        n_samples_fit_=state.optional(state.whole(1)),  # files of before 0.2 have none
        choice_=state.optional(state.part(Choice)),
    )

    n_neighbors: int | str = 5
    features: Features = None
    _: KW_ONLY
    weights: str = "uniform"
    ks: int | ArrayLike = 30
    rule: str = "best"

    def _check_size(self, name: str, values: Any) -> None:
        """Nearly any numbers will do, but for a kernel: the search has a unit of its own."""
        if self._kernel() is None:
            check_size(name, values, LARGEST, type(self).__name__)
        else:
            super()._check_size(name, values)

    def _keep(self, X, y, sample_weight, **target) -> tuple[Any, NDArray]:
        """Keep the rows of positive weight after the map, and their weights; returns them and the targets of all."""
        if self.weights not in WEIGHTS:
            raise EmpiriskError(f"weights={self.weights!r} must be one of {WEIGHTS}.")
        if isinstance(self.n_neighbors, str):
            if self.n_neighbors != "loo":
                raise EmpiriskError(f"n_neighbors={self.n_neighbors!r} must be a whole number of at least 1, or 'loo'.")
        else:
            require_whole(self.n_neighbors, "n_neighbors", 1)
        check_rule(self.rule)
        self._require_fixed_features()
        whole, y = self._fit_map(X, y, sample_weight, **target)
        weights = check_weights(sample_weight, len(y))
        counting = np.flatnonzero(weights > 0)
        self.n_samples_fit_ = len(y)
        self.positions_ = counting[_order_of_values(whole, y, counting)]
        self.weights_ = weights[self.positions_]
        return self._keep_rows(whole), y

    def _keep_rows(self, whole: Any) -> Any:
        """Keep what prediction needs; returns the rows after the map, or ready for the kernel."""
        design = whole.rows(self.positions_)
        explicit = None if design.implicit else design.table if design.on_device else design.X
        self.rows_ = _safe_indexing(design.root.source, self.positions_) if design.implicit else explicit
        self.norms_ = design.diagonal if design.implicit else None
        return design.items if design.implicit else explicit

    def _prepared(self, X: Any) -> Any:
        """New rows after the map, or ready for the kernel."""
        return self._mapped(X) if self.norms_ is None else self._items(X)

    def _search(self, X: Any, count: int, exactly: bool) -> Found:
        """Squared distances and neighbours; for a kernel less k(x, x), which does not matter, unless ``exactly``."""
        if self.norms_ is None:
            return euclidean_search(self.rows_, X, count)
        kernel = self._fitted_kernel
        with validated():
            known = kernel.prepare(self.rows_)
        own = np.asarray(kernel.diagonals(X), dtype=np.float64) if exactly else None
        return kernel_search(kernel, known, self.norms_, X, count, own)

    def _length(self, k: float) -> int:
        """How many rows may be needed until their weights add up to k."""
        # Sums of weights that are k but for rounding count as k.
        return int(np.searchsorted(np.cumsum(np.sort(self.weights_)), k * (1 - 1e-12))) + 1

    def _amounts(self, found: Found, ks: Iterable[float], own: NDArray) -> Iterator[Array]:
        """For every k, what each listed neighbour counts."""
        distances = np.sqrt(found.squares) if self.weights == "distance" else None
        return shares(found.places, self.weights_, own, ks, distances)

    def _choose_k(self, rows: Any) -> None:
        """Take k, or choose it by leave-one-out, all values from one list of neighbours."""
        if self.n_neighbors != "loo":
            self.n_neighbors_ = int(self.n_neighbors)
            return
        if len(self.weights_) < 2:
            raise TooFewRows(
                "n_neighbors='loo' leaves a row out and needs more than one sample; give a number as n_neighbors."
            )
        most = max(int(self.weights_.sum()) - 1, 1)
        ks: Any = self.ks
        values: Any = np.arange(1, min(ks, most) + 1) if np.ndim(ks) == 0 else np.unique(ks)
        if len(values) == 0 or values[0] < 1 or not np.array_equal(values, values.astype(int)):
            raise EmpiriskError(f"ks={self.ks!r} must be whole numbers of at least 1, or the largest to try.")
        found = self._search(rows, self._length(values[-1]) + 1, self.weights == "distance")
        own = np.arange(len(self.weights_))
        losses = [self._losses(found.places, amounts) for amounts in self._amounts(found, values, own)]
        self.choice_ = choice_of(values, np.column_stack(losses), self.weights_, self.rule, simplest=-1)
        self.n_neighbors_ = int(self.choice_.chosen)

    def _losses(self, places: NDArray, amounts: Array) -> Array:
        """The loss of each row, predicted from what its neighbours count."""
        raise NotImplementedError

    def _found(self, X: Any) -> tuple[NDArray, Array]:
        """The neighbours of new rows, and what each counts."""
        check_is_fitted(self)
        found = self._search(self._prepared(X), self._length(self.n_neighbors_), self.weights == "distance")
        return found.places, next(self._amounts(found, [self.n_neighbors_], np.full(len(found.places), -1)))

    @in_its_kind
    def kneighbors(
        self, X: ArrayLike | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Distances to the nearest rows of each row of X, and the numbers of those rows in the data of `fit`.

        Parameters
        ----------
        X : rows, optional
            What to find neighbours of; None for the rows of `fit` that have weight, none of them its own neighbour.
        n_neighbors : int, optional
            How many; ``n_neighbors_`` if None.
        return_distance : bool
            Whether the distances come with the numbers, as the first of two arrays.
        """
        check_is_fitted(self)
        if n_neighbors is not None:
            require_whole(n_neighbors, "n_neighbors", 1)
        count = int(n_neighbors or self.n_neighbors_)
        found = self._among_themselves(count) if X is None else self._search(self._prepared(X), count, True)
        places = self.positions_[found.places]
        return (found.unit * np.sqrt(found.squares), places) if return_distance else places

    def _among_themselves(self, count: int) -> Found:
        """The neighbours of the rows of `fit`, in their order, without themselves."""
        with validated():
            rows = self.rows_ if self.norms_ is None else self._fitted_kernel.prepare(self.rows_)
        found = self._search(rows, count + 1, True)
        others = found.places != np.arange(len(found.places))[:, None]
        others[others.all(axis=1), -1] = False  # of many equal rows it may not be among its own nearest
        order, shape = np.argsort(self.positions_), (len(others), -1)
        squares, places = (values[others].reshape(shape)[order] for values in (found.squares, found.places))
        return found._replace(squares=squares, places=places)

    def kneighbors_graph(
        self, X: ArrayLike | None = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> sparse.csr_matrix:
        """The nearest rows of each row of X as a sparse matrix, with a column for each row of `fit`.

        Parameters
        ----------
        X : rows, optional
            What to find neighbours of; None for the rows of `fit`, none of them its own neighbour.
        n_neighbors : int, optional
            How many; ``n_neighbors_`` if None.
        mode : {"connectivity", "distance"}
            Whether its entries are ones or distances.
        """
        if mode not in ("connectivity", "distance"):
            raise EmpiriskError(f"mode={mode!r} is not known; use 'connectivity' or 'distance'.")
        distances, places = self.kneighbors(X, n_neighbors)
        entries = np.ones(places.size) if mode == "connectivity" else distances.ravel()
        ends = np.arange(0, places.size + 1, places.shape[1])
        return sparse.csr_matrix((entries, places.ravel(), ends), shape=(len(places), self._columns_of_graph()))

    def _columns_of_graph(self) -> int:
        """The rows of `fit`; those of older files are known up to the last that counts."""
        return getattr(self, "n_samples_fit_", int(self.positions_.max()) + 1)


def _order_of_values(whole: Any, y: NDArray, rows: NDArray) -> NDArray[np.intp]:
    """The rows in an order of their values, then of their targets: where they stand must not matter.

    Objects that are no vectors stay in the order in which they came.
    """
    table = whole.source if whole.implicit else whole.table if whole.on_device else whole.X
    if whole.implicit and whole.kernel.takes != "vectors":
        return np.arange(len(rows))
    targets = np.searchsorted(sorted_classes(y, np.ones(len(y)), continuous=True), y).reshape(len(y), -1)[rows]
    return np.lexsort((*targets.T, keys_of_rows(table[rows])))


def _wrong_codes(its: Mapping[str, Any]) -> str | None:
    """What is wrong where the rows of a loaded machine have classes that there are not."""
    classes, codes, several = its["classes_"], its["codes_"], isinstance(its["classes_"], list)
    if codes.ndim != 1 + several or ("class_factors_" in its) == several:
        return "codes_ has not one column for each label"
    if not several and len(its["class_factors_"]) != len(classes):
        return "class_factors_ has not one number for each class"
    counts = np.array([len(names) for names in classes] if several else [len(classes)])
    fits = codes.reshape(len(codes), -1).shape[1] == len(counts) and (codes.reshape(len(codes), -1) < counts).all()
    return None if fits else "codes_ points at a class that there is not"


@dataclass(eq=False, repr=False)
class KNNClassifier(LogProbabilities, LabelsClassifier, Neighbors):
    """Each row to the class that most of its k nearest rows have, for each of several columns of labels by itself.

        P(a | x) = sum of c_i with y_i = a / sum of c_i    over the k rows i with the smallest |phi(x) - phi(x_i)|

    The distance is |phi(x) - phi(z)|: Euclidean, after a map, or through a kernel, k(x,x) - 2 k(x,z) + k(z,z) being
    its square. The search is exact. k is an amount of weight: a row of weight 2 counts as two neighbours. Of rows at
    equal distances those come first whose values, and then whose targets, do in an order of their own, so that the
    order of the rows does not matter; objects that are no vectors come in the order of the data. Distances through a
    kernel are rounded as its products are, on sparse rows otherwise than on dense ones.

    Parameters
    ----------
    n_neighbors : int or "loo"
        Number of neighbours; "loo" takes the one with the smallest leave-one-out error.
    features : None, transformer or kernel
        The feature map phi, fitted inside, or a kernel.
    weights : {"uniform", "distance"}
        Whether neighbours count alike, or as one over their distance.
    class_weight : None, "balanced" or dict
        Factors on the votes of the classes.
    ks : int or array
        With n_neighbors="loo": the largest k to try, or the values.
    rule : {"best", "1se"}
        With n_neighbors="loo": the best k, or the largest within one standard error of it.

    Attributes
    ----------
    classes_ : array
        The classes.
    n_neighbors_ : int
        The k used.
    choice_ : Choice
        With n_neighbors="loo": the values tried, the leave-one-out losses of each row, their means, and the rule.
    rows_, weights_, positions_ : arrays
        The rows kept (after the map), their weights, and where they stood in the data.

    Examples
    --------
    >>> machine = er.KNNClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [8.0], [9.0]], list("aaabb"))
    >>> machine.predict([[0.5], [7.0]])
    array(['a', 'b'], dtype='<U1')
    """

    _state = state.State(
        _wrong_codes,
        classes_=CLASSES,
        codes_=state.either(state.array("i8", "kept", low=0), state.array("i8", "kept", None, low=0)),
        class_factors_=state.optional(state.array("f8", None, low=0)),  # of one column of labels
        sizes={"classes": lambda its: len(its["classes_"])},
    )

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KNNClassifier:
        """Keep the rows and their classes; y may have several columns of labels."""
        y, several = label_columns(y)
        rows, y = self._keep(X, y, sample_weight, multi_output=several)
        y = y[self.positions_]
        if several:
            self.classes_ = classes_of_columns(y, self.weights_, self.class_weight)
            self.codes_ = np.column_stack([class_codes(*pair) for pair in zip(y.T, self.classes_, strict=True)])
            self._choose_k(rows)
            return self
        self.classes_, self.codes_ = encode_classes(y, self.weights_, type(self).__name__)
        self.class_factors_ = class_weights(self.class_weight, self.classes_, self.codes_, self.weights_)
        self._choose_k(rows)
        return self

    def _votes(self, places: NDArray, amounts: Array) -> Any:
        """The votes for each class; of several labels a list with one array for each."""
        if isinstance(self.classes_, list):
            labels = zip(self.codes_.T, self.classes_, strict=True)
            return [_counted(places, amounts, np.ascontiguousarray(codes), len(names)) for codes, names in labels]
        return _counted(places, amounts, self.codes_, len(self.classes_)) * self.class_factors_

    def _losses(self, places, amounts):
        votes, several = self._votes(places, amounts), isinstance(self.classes_, list)
        numbers = [np.arange(len(names)) for names in self.classes_] if several else np.arange(len(self.classes_))
        wrong = predicted(votes, numbers) != self.codes_
        return (wrong.any(axis=1) if several else wrong).astype(np.float64)

    def _scores(self, X: ArrayLike) -> Any:
        """The votes of the neighbours for each class."""
        return self._votes(*self._found(X))

    @in_its_kind
    def predict_proba(self, X: ArrayLike) -> Any:
        """The share of each class among the neighbours; of several columns of labels a list, one array for each."""
        votes = self._scores(X)
        return [_as_shares(each) for each in votes] if isinstance(votes, list) else _as_shares(votes)

    @in_its_kind
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class with the largest share; of equal ones the second of two classes, else the first."""
        return predicted(self.predict_proba(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = self.class_weight is None
        return tags


def _counted(places: NDArray, amounts: Array, codes: NDArray, classes: int) -> Array:
    """What the neighbours of each row count for each class."""
    votes = np.zeros((len(places), classes))
    add_votes(places, amounts, codes, votes)
    return votes


def _as_shares(votes: Array) -> Array:
    """The share of each class; class weights of zero may leave no votes at all."""
    totals = votes.sum(axis=1, keepdims=True)
    return untied(np.where(totals > 0, votes / np.where(totals > 0, totals, 1.0), 1.0 / votes.shape[1]))


class KNNRegressor(RegressorMixin, MultiOutputMixin, Neighbors):
    """The mean target of the k nearest rows, by their weights c.

        f(x) = sum c_i y_i / sum c_i    over the k rows i with the smallest |phi(x) - phi(x_i)|

    Parameters
    ----------
    n_neighbors, features, weights, ks, rule
        As for `KNNClassifier`; n_neighbors="loo" takes the one with the smallest squared leave-one-out error.

    Attributes
    ----------
    targets_ : array
        The targets of the rows kept.
    n_neighbors_, choice_, rows_, weights_, positions_
        As for `KNNClassifier`.

    Examples
    --------
    >>> er.KNNRegressor(n_neighbors=2).fit([[0.0], [1.0], [5.0]], [0.0, 2.0, 9.0]).predict([[0.4]])
    array([1.])
    """

    _state = state.State(targets_=state.either(state.array("f8", "kept"), state.array("f8", "kept", "outputs")))

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KNNRegressor:
        """Keep the rows and their targets."""
        rows, y = self._keep(X, y, sample_weight, multi_output=True, y_numeric=True)
        self.targets_ = as_numbers(y)[self.positions_]
        check_size("y", self.targets_)
        self._choose_k(rows)
        return self

    def _means(self, places: NDArray, amounts: Array) -> Array:
        share = amounts / amounts.sum(axis=1, keepdims=True)
        return np.einsum("in,in...->i...", share, self.targets_[places])

    def _losses(self, places, amounts):
        off = (self._means(places, amounts) - self.targets_) ** 2
        return off if off.ndim == 1 else off.sum(axis=1)

    @in_its_kind
    def predict(self, X: ArrayLike) -> Array:
        """The weighted mean of the neighbours' targets."""
        places, amounts = self._found(X)
        return self._means(places, amounts)
