"""Columns that give the target away: each one alone predicts rows it has not seen almost without error."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.formats import percent
from empirisk.tables.reading.frames import as_frame
from empirisk.tables.understanding.schema import Schema
from empirisk.tables.understanding.target import Target

ROWS = 4000  # looked at
BINS = 64  # groups of a column: fine enough to copy a target, coarse enough to hold rows
ALMOST = 0.995  # share of rows right, or of variance explained
BESIDE = 0.8  # share of what guessing leaves that a column beside such a one explains: a copy with errors
COLUMNS = 256  # looked at together
LEAST = 40  # rows below which a perfect column may be luck


def look_for_leaks(table: Any, schema: Schema, target: Target) -> dict[str, str]:
    """Columns that predict the target alone almost perfectly, with the reason to doubt them.

    Each column is cut into at most 64 groups. The majority class, or the mean, of a group on one half of the rows
    predicts the other half; a column that is right for 99.5 % of it, or explains as much of the variance (in this way
    or by a straight line), while guessing is not, is suspicious: it was probably written down after the target. Beside
    such a column, others that explain most of what guessing leaves are too. ``schema`` says what the columns hold.

    Examples
    --------
    >>> table = {"age": [30, 41, 25, 60] * 15, "paid": [0, 1, 1, 0] * 15, "receipt": ["no", "yes", "yes", "no"] * 15}
    >>> target = er.tables.Target.of(table, "paid")
    >>> list(er.tables.look_for_leaks(table, er.tables.understand(table, without=["paid", "age"]), target))
    ['receipt']
    """
    frame = as_frame(table)
    frame = frame.filter(pl.Series(target.known(frame)))
    if frame.height < LEAST:
        return {}
    if frame.height > ROWS:
        frame = frame.sample(ROWS, seed=0)
    features = schema.features(frame)
    order = np.random.default_rng(0).permutation(frame.height)
    half = len(order) // 2
    outputs: NDArray[Any] = target.values(frame)
    if target.classes:
        outputs = np.searchsorted(np.array(target.classes), outputs)
    known: dict[str, tuple[float, float]] = {}
    for start in range(0, len(schema.used), COLUMNS):
        ranks = {c.name: c.type.ranks(features[c.name]) for c in schema.used[start : start + COLUMNS]}
        ranked = {name: values for name, values in ranks.items() if values is not None}
        if not ranked:
            continue
        numbers = np.column_stack(list(ranked.values()))
        scores, guess = _scores(_groups(numbers), outputs, order[:half], order[half:], target.task == "classification")
        if target.task == "regression":
            scores = np.maximum(scores, _straight(numbers, outputs))
        known |= {name: (float(score), guess) for name, score in zip(ranked, scores, strict=True)}
    sure = {name for name, (score, guess) in known.items() if score >= ALMOST and guess < ALMOST - (1 - ALMOST)}
    beside = {name for name, (score, guess) in known.items() if sure and score - guess >= BESIDE * (1 - guess)}
    what = "rows" if target.classes else "variance"
    late = f"it may be written down after {target.name!r} is known"
    found = [name for name in known if name in sure | beside]
    return {name: f"it alone predicts {percent(known[name][0], 1)} of the {what}; {late}" for name in found}


def _straight(numbers: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the variance that a straight line in each column explains, missing values at the mean."""
    present = ~np.isnan(numbers)
    known = np.where(present, numbers, 0.0)
    scaled = known / np.maximum(np.abs(known).max(axis=0), np.finfo(float).tiny)
    centred = np.where(present, scaled - scaled.sum(axis=0) / np.maximum(present.sum(axis=0), 1), 0.0)
    residual = (y - y.mean()) / max(float(np.abs(y).max()), np.finfo(float).tiny)
    spreads = np.square(centred).sum(axis=0) * np.square(residual).sum()
    return np.square(residual @ centred) / np.maximum(spreads, np.finfo(float).tiny)


def _groups(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The group of each row in each column, by rank; the last one is for missing values."""
    order = np.argsort(numbers, axis=0)
    ordered = np.take_along_axis(numbers, order, axis=0)
    rises = np.diff(ordered, axis=0, prepend=ordered[:1]) > 0
    distinct = np.cumsum(rises, axis=0)
    # Rows of one value stay together: each counts from the first of them.
    first = np.maximum.accumulate(np.where(rises, np.arange(len(ordered))[:, None], 0), axis=0)
    present = np.maximum((~np.isnan(numbers)).sum(axis=0), 1)
    codes = np.where(distinct.max(axis=0) < BINS - 1, distinct, first * (BINS - 1) // present)
    groups = np.empty_like(order)
    np.put_along_axis(groups, order, np.where(np.isnan(ordered), BINS - 1, np.minimum(codes, BINS - 2)), axis=0)
    return groups


def _scores(
    codes: NDArray[np.int64], y: NDArray[Any], train: NDArray, test: NDArray, classes: bool
) -> tuple[NDArray[np.float64], float]:
    """How well each column predicts the test half, and how well guessing does."""
    columns = codes.shape[1]
    cells = codes + BINS * np.arange(columns)
    if classes:
        count = int(y.max()) + 1
        table = np.bincount((cells[train] * count + y[train, None]).ravel(), minlength=columns * BINS * count)
        best = table.reshape(columns * BINS, count).argmax(axis=1)
        common = np.bincount(y[train], minlength=count).argmax()
        return (best[cells[test]] == y[test, None]).mean(axis=0), float((y[test] == common).mean())
    weights = np.repeat(y[train, None], columns, axis=1)
    sums = np.bincount(cells[train].ravel(), weights.ravel(), minlength=columns * BINS)
    counts = np.bincount(cells[train].ravel(), minlength=columns * BINS)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), y[train].mean())
    spread = np.square(y[test] - y[test].mean()).mean()
    return 1 - np.square(means[cells[test]] - y[test, None]).mean(axis=0) / max(spread, np.finfo(float).tiny), 0.0
