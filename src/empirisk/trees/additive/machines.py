"""Additive machines: f is a constant, a shape for each column, and a shape for each of a few pairs of columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import losses, state
from empirisk.contract.arguments import (
    check_count,
    check_monotone,
    check_number,
    check_time,
    check_validation,
    weigh_classes,
)
from empirisk.contract.inputs import Array, as_numbers, check_weights, generator
from empirisk.contract.progress import reported, warn_if_unfinished
from empirisk.contract.regression import PredictsNumbers
from empirisk.contract.resample import hold_out
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import Unsuitable
from empirisk.explain.permutation import Importances
from empirisk.linalg.hashes import equal_rows
from empirisk.linalg.threads import parallel_map
from empirisk.losses.base import Loss
from empirisk.names import Estimator
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.trees.additive.cycles import Bag, CyclePlan
from empirisk.trees.additive.shapes import Shapes, shapes_of
from empirisk.trees.additive.steps import COARSE
from empirisk.trees.additive.terms import (
    SIDE,
    ColumnTerm,
    PairTerm,
    coarse_bins,
    pair_codes,
    present_order,
    strongest_pairs,
    weight_of,
)
from empirisk.trees.binned.bins import MAX_BINS, WIDTH, Binning, Codes, check_bins
from empirisk.trees.by_loss import ClassesByLoss
from empirisk.trees.objectives import Objective, numbers_objective, outputs_of
from empirisk.trees.table_columns import Columns, read_new, read_training

#: Bags where nothing else is said, and how many values of the table (rows times columns) they are halved after.
BAGS, MANY_VALUES = 8, 2_000_000
#: Pairs where nothing else is said: so many for each column, at least, at most; on tables of more values the least.
PAIRS_PER_COLUMN, LEAST_PAIRS, MOST_PAIRS = 3, 10, 50
#: The share of the time in which the columns are boosted, where pairs follow.
COLUMN_SHARE = 0.7
#: Least rows of a leaf where nothing else is said: so many, or this share of all if that is less.
LEAF_ROWS, LEAF_SHARE = 20.0, 0.02


def _wrong_bins(its: Mapping[str, Any]) -> str | None:
    """What is wrong in the bins of a loaded machine: a bin for every category, none for numbers."""
    for column, (bins, known) in enumerate(zip(its["category_bins_"], its["columns_"].categories, strict=True)):
        if (bins is None) != (known is None) or (bins is not None and len(bins) != len(known)):
            return f"category_bins_ has not the categories of column {column}"
    return None


@dataclass(eq=False, repr=False)
class AdditiveParameters:
    """The parameters that the two additive machines share."""

    loss: str | Loss = "logistic"
    _: KW_ONLY
    interactions: int | str = "auto"
    n_bags: int | str = "auto"
    learning_rate: float = 0.2
    max_iter: int = 3000
    max_leaf_nodes: int = 3
    min_samples_leaf: float | None = None
    l2_regularization: float = 0.01
    max_bins: int = MAX_BINS
    categorical_features: Any = "auto"
    monotonic_cst: Any = None
    validation_fraction: float = 0.15
    n_iter_no_change: int = 40
    tol: float = 1e-5
    max_time: float | None = None
    random_state: Any = None


class Additive(AdditiveParameters, CallbackSupportMixin, Importances, Estimator, ABC):
    """What the two additive machines share; see `AdditiveClassifier` and `AdditiveRegressor`."""

    _state = state.State(
        _wrong_bins,
        n_features_in_=state.size("columns"),
        columns_=state.part(Columns, columns="columns"),
        edges_=state.array("f8", "columns", WIDTH, finite=False),
        category_bins_=state.several(state.maybe(state.array("u1", None)), "columns"),
        coarse_=state.array("u1", "columns", WIDTH, below="side"),
        intercept_=state.array("f8", "outputs"),
        shapes_=state.array("f8", "columns", WIDTH, "outputs"),
        deviations_=state.array("f8", "columns", WIDTH, "outputs", low=0),
        mass_=state.array("f8", "columns", WIDTH, low=0),
        pairs_=state.array("i8", "pairs", 2, low=0, below="columns"),
        grids_=state.array("f8", "pairs", "side", "side", "outputs"),
        grid_deviations_=state.array("f8", "pairs", "side", "side", "outputs", low=0),
        history_=state.mapping(state.array("f8", None, finite=False)),
        n_iter_=state.whole(1),
        stopped_=state.text(),
    )

    columns_: Columns
    intercept_: Array
    shapes_: Array
    deviations_: Array
    pairs_: NDArray[np.int64]
    grids_: Array

    @abstractmethod
    def _objective(self, target: NDArray, weights: Array) -> Objective:
        """The loss on rows with these targets: numbers, or class numbers."""

    # --- fitting ----------------------------------------------------------------------------------------------------

    def _plan(self, weight: float) -> CyclePlan:
        leaf = self.min_samples_leaf
        leaves = check_count("max_leaf_nodes", self.max_leaf_nodes, 2)
        check_time(self.max_time)
        check_bins(self.max_bins)
        return CyclePlan(
            learning_rate=check_number("learning_rate", self.learning_rate, 0, 1, above=True),
            max_iter=check_count("max_iter", self.max_iter) or 1,
            max_leaf_nodes=int(check_number("max_leaf_nodes", leaves, 2, 64)),
            min_samples_leaf=min(LEAF_ROWS, max(1.0, LEAF_SHARE * weight)) if leaf is None
            else check_number("min_samples_leaf", leaf, 0),
            l2=check_number("l2_regularization", self.l2_regularization, 0),
            n_iter_no_change=check_count("n_iter_no_change", self.n_iter_no_change) or 1,
            tol=check_number("tol", self.tol, 0),
        )  # fmt: skip

    def _count_bags(self, values: int) -> int:
        if self.n_bags == "auto":
            return max(2, int(BAGS * min(1.0, MANY_VALUES / max(values, 1))))
        return check_count("n_bags", self.n_bags) or 1

    def _count_pairs(self, values: int, width: int) -> int:
        if self.interactions == "auto":
            wanted = min(MOST_PAIRS, PAIRS_PER_COLUMN * width)
            return max(LEAST_PAIRS, int(wanted * min(1.0, MANY_VALUES / max(values, 1))))
        return check_count("interactions", self.interactions, 0) or 0

    def _smooth_loss(self) -> Loss:
        loss = losses.find(self.loss)
        if loss.corners or not loss.smooth:
            raise Unsuitable(
                f"loss={loss!r} has corners, and an additive machine takes Newton steps; use a smooth loss such as "
                "'logistic', 'squared', 'huber' or 'poisson'."
            )
        return loss

    def _fit(self, X: Array, target: NDArray, weights: Array) -> None:
        """Boost on rows of positive weight."""
        plan, random = self._plan(float(weights.sum())), generator(self.random_state)
        fraction = check_validation(self.validation_fraction)
        member = equal_rows(X, target)[1]
        order = np.lexsort((weights, member))  # by content: the order of the rows does not matter
        X, target, weights, member = X[order], target[order], weights[order], member[order]
        seeds = random.integers(0, 2**63, self._count_bags(X.size))
        with interruptible():
            deadline = Deadline(self.max_time)
            fit = BaggedFit(self, X, target, weights, member, plan, deadline)
            found = fit.run(seeds, fraction)
        self.stopped_ = deadline.reason or (Ending.EARLY_STOPPING if fit.settled else Ending.FINISHED)
        self.__dict__.update(found)
        warn_if_unfinished(self, deadline.reason or "", f"{len(self.history_['validation_loss'])} cycles")

    # --- predicting -------------------------------------------------------------------------------------------------

    def _codes(self, X: ArrayLike) -> Codes:
        """The bins of new rows, columns x rows."""
        check_is_fitted(self)
        rows = read_new(self, X)
        bins = {k: known for k, known in enumerate(self.category_bins_) if known is not None}
        return (
            Binning(self.edges_, self.columns_.counts, self.columns_.counts, bins).codes(rows, by_row=False).by_column
        )

    def _parts(self, X: ArrayLike) -> Array:
        """What every term adds to f, rows x terms x outputs."""
        codes = self._codes(X)
        found = np.empty((codes.shape[1], len(codes) + len(self.pairs_), len(self.intercept_)))
        for column, own in enumerate(codes):
            found[:, column] = self.shapes_[column, own]
        for number, (left, right) in enumerate(self.pairs_):
            cells = self.coarse_[left][codes[left]], self.coarse_[right][codes[right]]
            found[:, len(codes) + number] = self.grids_[number][cells]
        return found

    def _scores(self, X: ArrayLike) -> Array:
        """f of every row and output."""
        return self._parts(X).sum(axis=1) + self.intercept_

    def parts(self, X: ArrayLike) -> Array:
        """What every term adds to f: with ``intercept_`` they add up to it.

        Parameters
        ----------
        X : array or data frame
            The rows.

        Returns
        -------
        array, n x terms; n x terms x outputs of a machine with several
        """
        found = self._parts(X)
        return found[:, :, 0] if found.shape[2] == 1 else found

    def part_names(self) -> NDArray[Any]:
        """The names of the `parts`: columns, then pairs of columns."""
        check_is_fitted(self)
        names = self.columns_.names
        pairs = [f"{names[left]} {names[right]}" for left, right in self.pairs_]
        return np.array([*names, *pairs], dtype=object)

    def contributions(self, X: ArrayLike) -> Array:
        """What each column adds to f, n x columns x outputs; of a pair each of the two has half."""
        found, width = self._parts(X), self.n_features_in_
        for number, pair in enumerate(self.pairs_):
            found[:, pair] += 0.5 * found[:, [width + number]]
        return found[:, :width]

    @property
    def feature_importances_(self) -> Array:
        """Share of each column in the mean size of what it adds to f over the training rows; of pairs each has half."""
        check_is_fitted(self)
        weight = self.mass_ / self.mass_.sum(axis=1, keepdims=True)
        sizes = np.einsum("cb,cbo->c", weight, np.abs(self.shapes_))
        for (left, right), grid in zip(self.pairs_, self.grids_, strict=True):
            share = [np.bincount(self.coarse_[k], weight[k], len(grid)) for k in (left, right)]
            sizes[[left, right]] += 0.5 * np.einsum("a,b,abo->", *share, np.abs(grid))
        return sizes / max(float(sizes.sum()), np.finfo(float).tiny)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


class BaggedFit:
    """A fit of an additive machine: bags of the same bins, first their columns, then the pairs they agree on."""

    def __init__(
        self, machine: Additive, X: Array, target: NDArray, weights: Array, member: NDArray[np.intp], plan: CyclePlan,
        deadline: Deadline,
    ):  # fmt: skip
        self.machine, self.target, self.weights, self.member = machine, target, weights, member
        self.plan, self.deadline, self.settled = plan, deadline, False
        self.most = machine._count_pairs(X.size, X.shape[1])
        self.counts = machine.columns_.counts
        self.signs = check_monotone(machine.monotonic_cst, machine.columns_.names, self.counts > 0)
        self.binning = Binning.of(X, weights, self.counts, machine.max_bins)
        self.codes = self.binning.codes(X, by_row=False).by_column
        self.orders = present_order(self.binning.counts)
        self.quadratic = losses.find(machine.loss).quadratic and not hasattr(machine, "classes_")

    def bag(self, seed: int, fraction: float) -> Bag:
        """One bag: equal rows stay together, classes keep their shares."""
        target, weights = self.target, self.weights
        held = np.zeros(len(target), dtype=bool)
        if self.member.max() > 0:
            held = hold_out(self.member, target, fraction, np.random.default_rng(seed))
        objective = self.machine._objective(target, np.where(held, 0.0, weights))
        rows = np.flatnonzero(held) if held.any() else np.arange(len(target))
        start = np.repeat(objective.start()[:, None], len(target), axis=1)
        return Bag(objective, self.machine._objective(target[rows], weights[rows]), rows, start, self.quadratic)

    def run(self, seeds: NDArray, fraction: float) -> dict[str, Any]:
        """The fitted attributes."""
        bags = [self.bag(int(seed), fraction) for seed in seeds]
        constants = [bag.objective.start() for bag in bags]
        terms = [self._columns(bag.objective.weights) for bag in bags]
        late = self.deadline.share(COLUMN_SHARE) if self.most else self.deadline
        mains = self._boosted(bags, terms, late)
        coarse = self._coarse(np.mean([[shape[0] for shape in own] for own in mains], axis=0))
        pairs = self._pairs(bags)
        grids: list[list[Array]] = [[] for _ in bags]
        cells = [pair_codes(coarse[a][self.codes[a]], coarse[b][self.codes[b]], SIDE) for a, b in pairs]
        if cells:
            both = [
                [PairTerm(own, weight_of(own, bag.objective.weights, PairTerm.cells)) for own in cells] for bag in bags
            ]
            grids = self._boosted(bags, both, self.deadline)
        mass = np.array([weight_of(own, self.weights, WIDTH) for own in self.codes])
        grid_mass = np.zeros((len(cells), SIDE, SIDE))
        for number, own in enumerate(cells):
            grid_mass[number] = weight_of(own, self.weights, PairTerm.cells).reshape(SIDE, SIDE)
        found = [shapes_of(*own) for own in zip(constants, mains, grids, strict=True)]
        for shapes in found:
            shapes.purify(mass, pairs, grid_mass, coarse)
        return self._told(found, bags) | {"mass_": mass, "pairs_": pairs, "coarse_": coarse}

    def _boosted(self, bags: list[Bag], terms: list[list[Any]], late: Callable[[], bool]) -> list[list[Array]]:
        """The shapes of the terms of every bag; bags run side by side."""
        pairs = list(zip(bags, terms, strict=True))
        return parallel_map(lambda own: own[0].boost(own[1], self.plan, late), pairs)

    def _columns(self, weights: Array) -> list[ColumnTerm]:
        """The columns as terms, of rows with these weights."""
        return [
            ColumnTerm(own, weight_of(own, weights, WIDTH), order, bool(count), int(sign))
            for own, order, count, sign in zip(self.codes, self.orders, self.counts, self.signs, strict=True)
        ]

    def _coarse(self, shapes: Array) -> Codes:
        """The coarse bins of the columns; categories in the order of their shapes."""
        found = np.empty((len(self.codes), WIDTH), dtype=np.uint8)
        for column, order in enumerate(self.orders):
            if self.counts[column]:
                order = order[np.argsort(shapes[column, order], kind="stable")]
            mass = weight_of(self.codes[column], self.weights, WIDTH)
            found[column] = coarse_bins(mass, len(order), COARSE, order)
        return found

    def _pairs(self, bags: list[Bag]) -> NDArray[np.int64]:
        """The pairs that the mean of the bags asks for; columns with a constraint stay alone."""
        if not self.most or self.deadline():
            return np.zeros((0, 2), dtype=np.int64)
        scores = np.mean([bag.scores for bag in bags], axis=0)
        together = Bag(self.machine._objective(self.target, self.weights), bags[0].judge, bags[0].held, scores, False)
        derivatives = (*together.derivatives(), self.weights)
        least, l2 = self.plan.min_samples_leaf, self.plan.l2
        return strongest_pairs(self.codes, self.orders, derivatives, self.most, least, l2, self.signs == 0)

    def _told(self, found: list[Shapes], bags: list[Bag]) -> dict[str, Any]:
        """Means and deviations over the bags, and the course of their losses."""
        length = max(len(bag.losses) for bag in bags)
        courses = np.array([bag.losses + bag.losses[-1:] * (length - len(bag.losses)) for bag in bags])
        self.settled = length < self.plan.max_iter
        return {
            "intercept_": np.mean([shapes.intercept for shapes in found], axis=0),
            "shapes_": np.mean([shapes.columns for shapes in found], axis=0),
            "deviations_": np.std([shapes.columns for shapes in found], axis=0),
            "grids_": np.mean([shapes.grids for shapes in found], axis=0),
            "grid_deviations_": np.std([shapes.grids for shapes in found], axis=0),
            "edges_": self.binning.edges,
            "category_bins_": [self.binning.category_bins.get(k) for k in range(len(self.codes))],
            "history_": {"validation_loss": courses.mean(axis=0)},
            "n_iter_": max(1, length - 1),
        }


@dataclass(eq=False, repr=False)
class AdditiveClassifier(ClassesByLoss, Additive):
    """A classifier whose f is a sum of shapes:  f(x) = b + sum_j f_j(x_j) + sum over a few pairs of f_jk(x_j, x_k).

    The columns are cut into bins, and their shapes are boosted in turn: each takes a small Newton step that is constant
    on a few runs of bins, until the loss of rows held out falls no more. The pairs whose grids would lower the loss
    most follow in the same way. All of it is done for several bags of rows; the shapes are their means, and their
    deviations are bands around what is drawn. What the machine has learned is what `plots.shapes` draws: nothing else
    enters a prediction. Categories and missing values have bins of their own.

    Parameters
    ----------
    loss : str or Loss
        A smooth loss: "logistic" (with more classes: softmax), "exponential", "soft_hinge", "squared_hinge",
        "squared", or an object of `empirisk.losses`.
    interactions : int or "auto"
        Most pairs of columns; fewer where no more lower the loss. 0 for none; "auto" is three for each column but at
        most 50, and fewer of large tables, but at least 10.
    n_bags : int or "auto"
        How often rows are divided into those learned from and those held out; "auto" is 8, and fewer of large tables,
        but at least 2.
    learning_rate : float
        Share of each step that is taken.
    max_iter : int
        Most cycles through the columns, and through the pairs.
    max_leaf_nodes : int
        Pieces of a step, at most 64.
    min_samples_leaf : float or None
        Least weight of the rows in a piece; None is 20, or a fiftieth of all if that is less.
    l2_regularization : float
        Penalty on the squares of the pieces of a step.
    max_bins : int
        Intervals into which a numeric column is cut, at most 255.
    categorical_features : "auto", list of columns or mask
        Columns that hold categories; "auto" takes the text and category columns of a data frame. Beyond 255
        categories the rarest count as missing, as do categories that were not there in training.
    monotonic_cst : list of -1, 0, 1, or dict by column name
        Columns with which f may only fall (-1) or rise (+1); they take no part in pairs.
    class_weight : dict, "balanced" or None
        Factors on the weights of the classes.
    validation_fraction : float
        The share of rows that each bag holds out; equal rows stay together, and classes keep their shares.
    n_iter_no_change, tol : int, float
        A bag ends where so many cycles have lowered the loss of its rows held out by less than ``tol`` times that loss;
        a column or pair rests where as many of its steps have lowered it no further, and takes these steps back.
    max_time : float or None
        Seconds after which the fit ends with what it has.
    random_state : int, RandomState or None
        Seed of the bags. The same seed gives the same bits with any number of threads.

    Attributes
    ----------
    classes_ : array
        The classes.
    intercept_ : array
        The constant b of each output.
    shapes_, deviations_ : arrays, columns x 256 x outputs
        The value of every bin of each column, missing values last, and its standard deviation over the bags. The mean
        over the training rows is zero.
    pairs_ : array, pairs x 2
        The pairs of columns.
    grids_, grid_deviations_ : arrays, pairs x 65 x 65 x outputs
        The values of their cells, and the deviations; means along both columns are zero, and part of the shapes.
    edges_ : array
        Where the bins of numeric columns end.
    history_ : dict of arrays
        "validation_loss": the mean over the bags of the loss held out, after each cycle.
    n_iter_ : int
        Cycles of the bag that took most, through columns and pairs.
    stopped_ : str
        What ended the fit: "early_stopping", "finished", "max_time" or "interrupted".

    References
    ----------
    Lou, Caruana, Gehrke, Hooker: Accurate intelligible models with pairwise interactions. KDD, 2013.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(400, 2))
    >>> machine = er.AdditiveClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.8)
    >>> machine.predict([[0.1, 0.1], [0.9, 0.9]])
    array([False,  True])
    >>> bool(np.allclose(machine.parts(X).sum(axis=1) + machine.intercept_, machine.decision_function(X)))
    True
    """

    _state = state.State(
        lambda its: (
            None
            if len(its["intercept_"]) == outputs_of(len(its["classes_"]))
            else "intercept_ has not one number for each class"
        ),
        classes_=state.labels("classes"),
    )

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AdditiveClassifier:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n
            Labels of any type.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        self._smooth_loss()
        rows, labels = read_training(self, X, y, self.categorical_features)
        weights = check_weights(sample_weight, len(labels))
        self.classes_, codes, factors = weigh_classes(labels, weights, self.class_weight)
        kept = weights * factors > 0
        self._fit(rows[kept], codes[kept], (weights * factors)[kept])
        return self


@dataclass(eq=False, repr=False)
class AdditiveRegressor(PredictsNumbers, Additive):
    """A regressor whose f is a sum of shapes:  f(x) = b + sum_j f_j(x_j) + sum over a few pairs of f_jk(x_j, x_k).

    How the shapes are found is told by `AdditiveClassifier`.

    Parameters
    ----------
    loss : str or Loss
        A smooth loss: "squared", "huber", "poisson", "gamma", "tweedie", "power", or an object of `empirisk.losses`. Of
        the deviances ("poisson", "gamma", "tweedie") f is the logarithm of the mean, and `predict` gives the mean.
    interactions, n_bags, learning_rate, max_iter, max_leaf_nodes, min_samples_leaf, l2_regularization, max_bins, \
categorical_features, monotonic_cst, validation_fraction, n_iter_no_change, tol, max_time, random_state
        As for `AdditiveClassifier`.

    Attributes
    ----------
    intercept_, shapes_, deviations_, pairs_, grids_, grid_deviations_, edges_, history_, n_iter_, stopped_
        As for `AdditiveClassifier`.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> machine = er.AdditiveRegressor(interactions=0, random_state=0).fit(X, 10 * X[:, 0])
    >>> machine.predict([[0.5, 0.5]]).round(0)
    array([5.])
    """

    _state = state.State(lambda its: None if len(its["intercept_"]) == 1 else "intercept_ has several numbers")

    loss: str | Loss = "squared"

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AdditiveRegressor:
        """Learn from rows and their numbers.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n
            Numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        self._smooth_loss()
        rows, numbers = read_training(self, X, y, self.categorical_features, y_numeric=True)
        numbers = as_numbers(numbers)
        weights = check_weights(sample_weight, len(numbers))
        kept = weights > 0
        self._fit(rows[kept], numbers[kept], weights[kept])
        return self

    def _objective(self, target: Array, weights: Array) -> Objective:
        return numbers_objective(losses.find(self.loss), target, weights)

    def raw_predict(self, X: ArrayLike) -> Array:
        """f(x) of each row: the prediction, or the logarithm of it."""
        return self._scores(X)[:, 0]
