"""How far predictions of numbers are off, row by row: intervals that are wide where the model errs much."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.trees.forest import ForestRegressor

Array = NDArray[np.float64]

#: Rows with known errors from which a spread is learned at all, parts of them that take turns, and rows of a leaf.
MIN_ROWS, FOLDS, LEAF_ROWS = 100, 5, 20
#: Trees of the forest, and numbers of a row beyond which it sees the prediction alone.
TREES, MOST_COLUMNS = 40, 200
#: The least spread, as a share of the mean one: nothing is known exactly.
LEAST_SHARE = 0.05
#: Parts of the predictions for which coverage is told, and rows that each must have.
PARTS, PART_ROWS = 5, 20


@dataclass(frozen=True, eq=False)
class Spread:
    """The size of the error to expect of each row.

    Attributes
    ----------
    forest : ForestRegressor
        Of absolute errors, from the prediction and, where ``columns`` says so, from the encoded row.
    least : float
        The least that it may be.
    columns : bool
        Whether the encoded row is read.
    """

    _state = state.State(forest=state.part(ForestRegressor), least=state.number(low=0.0), columns=state.flag())

    forest: Any
    least: float
    columns: bool

    def sizes(self, X: Any, predicted: Array) -> Array:
        """The size of the error to expect of each encoded row with its prediction."""
        return np.maximum(self.forest.predict(_inputs(X, predicted, self.columns)), self.least)


def _wrong_levels(its: Mapping[str, Any]) -> str | None:
    return None if len(its["levels"]) == len(its["cuts"]) + 1 else "levels has not one number for each part"


@dataclass(frozen=True, eq=False)
class Steps:
    """The size of the error to expect by the prediction alone, where there was no time to learn more.

    Attributes
    ----------
    cuts : array
        Between the parts of the predictions.
    levels : array
        The mean absolute error of each part.
    """

    _state = state.State(_wrong_levels, cuts=state.array("f8", None), levels=state.array("f8", None, low=0))

    cuts: Array
    levels: Array

    def sizes(self, X: Any, predicted: Array) -> Array:
        """The size of the error to expect of each row with its prediction."""
        return self.levels[np.searchsorted(self.cuts, predicted, side="right")]


class Errors(NamedTuple):
    """Errors of predictions for rows that the model had not seen, in units of the size to expect.

    Attributes
    ----------
    spread : Spread, Steps or None
        What gives that size for new rows; None where it is 1 for all.
    sizes : array
        The size of each row, by a spread that had not seen it.
    scaled : array
        Truth minus prediction, divided by it.
    predicted : array
        The predictions.
    """

    spread: Spread | Steps | None
    sizes: Array
    scaled: Array
    predicted: Array

    @classmethod
    def alike(cls, predicted: Array, truth: Array) -> "Errors":
        """Errors of one size to be expected everywhere."""
        return cls(None, np.ones(len(truth)), truth - predicted, predicted)

    @classmethod
    def by_prediction(cls, predicted: Array, truth: Array) -> "Errors":
        """Errors whose size to expect is that of the other rows with predictions like that, which takes no time.

        >>> x = np.linspace(1, 10, 400)
        >>> found = Errors.by_prediction(x, x + x * np.tile([-1.0, 1.0], 200))
        >>> found.spread.sizes(None, np.array([1.0, 9.9])).round(1)
        array([1.4, 9.6])
        """
        errors = np.abs(truth - predicted)
        parts = min(2 * PARTS, len(errors) // PART_ROWS)
        if parts < 2 or not errors.any():
            return cls.alike(predicted, truth)
        cuts = np.unique(np.quantile(predicted, np.arange(1, parts) / parts))
        place = np.searchsorted(cuts, predicted, side="right")
        counts = np.bincount(place, minlength=len(cuts) + 1)
        sums, least = np.bincount(place, errors, len(cuts) + 1), LEAST_SHARE * float(errors.mean())
        # No row has a say in the size that is expected of itself.
        sizes = np.maximum((sums[place] - errors) / np.maximum(counts[place] - 1, 1), least)
        steps = Steps(cuts, np.maximum(sums / np.maximum(counts, 1), least))
        return cls(steps, sizes, (truth - predicted) / sizes, predicted)


def learn_spread(X: Any, predicted: Array, truth: Array, seed: int = 0) -> Errors:
    """Learn how far predictions are off from rows that the model had not seen.

    A forest of the absolute errors is fitted on four fifths of the rows and asked about the others, five times; one of
    all rows is kept. Where it does not tell the errors apart better than their mean does, all rows are taken alike.

    >>> random = np.random.default_rng(0)
    >>> x = np.linspace(1, 10, 400)
    >>> found = learn_spread(x[:, None], x, x + x * random.normal(size=400))
    >>> low, high = found.spread.sizes(np.array([[2.0], [9.0]]), np.array([2.0, 9.0]))
    >>> bool(3 < high / low < 6)
    True
    """
    errors = np.abs(truth - predicted)
    if len(errors) < MIN_ROWS or not errors.any():
        return Errors.alike(predicted, truth)
    columns = not sparse.issparse(X) and X.shape[1] <= MOST_COLUMNS
    inputs, least = _inputs(X, predicted, columns), LEAST_SHARE * float(errors.mean())
    parts = np.random.default_rng(seed).permutation(len(errors)) % FOLDS
    sizes, means = np.empty(len(errors)), np.empty(len(errors))
    for part in range(FOLDS):
        inside = parts == part
        sizes[inside] = _forest(seed).fit(inputs[~inside], errors[~inside]).predict(inputs[inside])
        means[inside] = errors[~inside].mean()
    if np.abs(errors - sizes).sum() >= np.abs(errors - means).sum():
        return Errors.alike(predicted, truth)
    sizes, spread = np.maximum(sizes, least), Spread(_forest(seed).fit(inputs, errors), least, columns)
    return Errors(spread, sizes, (truth - predicted) / sizes, predicted)


def _forest(seed: int) -> ForestRegressor:
    return ForestRegressor(TREES, max_features=1.0, max_samples=0.5, min_samples_leaf=LEAF_ROWS, random_state=seed)


def _inputs(X: Any, predicted: Array, columns: bool) -> Array:
    """What the forest reads: the prediction, and the row."""
    if not columns:
        return predicted[:, None]
    return np.column_stack([predicted, X.toarray() if sparse.issparse(X) else np.asarray(X)])


def ends(scaled: Array, coverage: float) -> tuple[float, float]:
    """Between which of some sorted errors a new one lies with at least that probability (split conformal).

    With the r errors and a = (1 - coverage) / 2, those numbered floor(a (r + 1)) and ceil((1 - a) (r + 1)).

    >>> ends(np.arange(1.0, 20.0), 0.9)
    (1.0, 19.0)
    """
    if not 0 < coverage < 1:
        raise EmpiriskError(f"coverage={coverage!r} must lie between 0 and 1, such as 0.9.")
    rows, tail = len(scaled), (1 - coverage) / 2
    # Rounded, so that 0.05 * 20 is 1.
    low, high = int(np.floor(round(tail * (rows + 1), 9))), int(np.ceil(round((1 - tail) * (rows + 1), 9)))
    if low < 1 or high > rows:
        most = max(1 - 2 / (rows + 1), 0.0)
        raise EmpiriskError(
            f"coverage={coverage:g} needs more than the {rows} rows of the test; they are enough for {most:.3g}."
        )
    return float(scaled[low - 1]), float(scaled[high - 1])


class Covered(NamedTuple):
    """How often the truth lay in its interval among rows whose predictions lie between two numbers."""

    low: float
    high: float
    rows: int
    inside: float
    width: float


def coverage_by_parts(found: Errors, coverage: float, limits: tuple[float, float]) -> list[Covered]:
    """The share of the truth inside intervals of a coverage, for parts of the predictions, smallest first.

    The interval of a row is made of the errors of the others in four fifths of the rows; too few rows give no parts.
    """
    predicted, rows = found.predicted, len(found.predicted)
    if rows < max(MIN_ROWS, PARTS * PART_ROWS):
        return []
    part = np.arange(rows) % FOLDS
    tails = np.empty((rows, 2))
    for k in range(FOLDS):
        tails[part == k] = ends(np.sort(found.scaled[part != k]), coverage)
    low, high = (np.clip(predicted + found.sizes * tail, limits[0], limits[1]) for tail in tails.T)
    truth = predicted + found.sizes * found.scaled
    inside, order = (low <= truth) & (truth <= high), np.argsort(predicted, kind="stable")
    return [
        Covered(
            float(predicted[some].min()),
            float(predicted[some].max()),
            len(some),
            float(inside[some].mean()),
            float((high - low)[some].mean()),
        )
        for some in np.array_split(order, PARTS)
    ]
