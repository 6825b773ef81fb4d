"""Learning and validation curves, and what they say about over- and underfitting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from empirisk.errors import EmpiriskError
from empirisk.evaluation.data import Array, Data, fit, read_data, seeded, seeds
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.evaluation.splits import Rows
from empirisk.runs.parallel import parallel_fits


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Scores by the number of training rows.

    Attributes
    ----------
    sizes : array of int
        Training rows.
    train, validation : arrays, sizes x folds
        Scores on the rows learned from, and on rows held out.
    diagnosis : str
        Over- or underfitting, in words.
    metric : str
        The score.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> curve = er.evaluation.learning_curve(er.Ridge(), X, X[:, 0], sizes=[10, 50])
    >>> curve.sizes, curve.validation.shape
    (array([10, 50]), (2, 5))
    """

    sizes: NDArray[np.intp]
    train: Array
    validation: Array
    diagnosis: str
    metric: str


@dataclass(frozen=True, eq=False)
class ValidationCurve:
    """Scores by the value of a parameter.

    Attributes
    ----------
    parameter : str
        Its name.
    values : list
        Its values.
    train, validation : arrays, values x folds
        Scores on the rows learned from, and on rows held out.
    best : object
        The value with the best mean validation score.
    diagnosis : str
        Over- or underfitting, in words.
    metric : str
        The score.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> curve = er.evaluation.validation_curve(er.Ridge(), X, X[:, 0], "C", [1e-6, 1.0])
    >>> curve.best, curve.train.shape
    (1.0, (2, 5))
    """

    parameter: str
    values: list
    train: Array
    validation: Array
    best: Any
    diagnosis: str
    metric: str


def learning_curve(
    machine: Any,
    X: Any,
    y: ArrayLike,
    *,
    sizes: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 1.0),
    cv: Any = 5,
    groups: ArrayLike | None = None,
    scoring: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> LearningCurve:
    """How a machine scores as it is given more rows.

    Parameters
    ----------
    machine, X, y, cv, groups, sample_weight, random_state
        As for `evaluate`.
    sizes : list of int or of float
        Numbers of training rows, or shares of those that a fold leaves for training.
    scoring : name or scorer
        As for `evaluate`.

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 20))
    >>> y = X[:, 0] + random.normal(size=200)
    >>> print(er.evaluation.learning_curve(er.LeastSquares(), X, y, sizes=[25, 50]).diagnosis.split(":")[0])
    overfitting
    """
    data = read_data(machine, X, y, sample_weight, groups)
    metric = find_metrics(scoring, data.classes, machine)[0]
    splits = data.splits(cv, random_state=random_state)
    counts = _counts(sizes, min(len(train) for train, _ in splits))
    order = [np.random.default_rng(seed) for seed in seeds(random_state, len(splits))]
    nested = [_spread_out(data, train, random) for (train, _), random in zip(splits, order, strict=True)]
    tasks = [(rows[:count], test) for count in counts for rows, (_, test) in zip(nested, splits, strict=True)]
    train, validation = _scores([(machine, *task) for task in tasks], data, metric, len(splits), random_state)
    diagnosis = judge_learning(train, validation, _floor(data, splits, metric), metric.name, metric.sign)
    return LearningCurve(counts, metric.sign * train, metric.sign * validation, diagnosis, metric.name)


def validation_curve(
    machine: Any,
    X: Any,
    y: ArrayLike,
    parameter: str,
    values: Sequence,
    *,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    scoring: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> ValidationCurve:
    """How a machine scores as one of its parameters changes.

    Parameters
    ----------
    machine, X, y, cv, groups, sample_weight, random_state
        As for `evaluate`.
    parameter : str
        Its name, reaching into parts: "C", "features__degree".
    values : list
        The values to try, from the simplest machine to the richest or the other way round.
    scoring : name or scorer
        As for `evaluate`.

    Returns
    -------
    ValidationCurve

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(60, 1))
    >>> machine = er.Ridge(C=1e4, features=er.maps.Polynomial())
    >>> curve = er.evaluation.validation_curve(machine, X, X[:, 0] ** 2, "features__degree", [1, 2, 3])
    >>> curve.best
    2
    """
    values = list(values)
    if parameter not in machine.get_params():
        raise EmpiriskError(f"parameter={parameter!r} is none of {type(machine).__name__}; see its get_params().")
    if not values:
        raise EmpiriskError("values must hold at least one value of the parameter.")
    data = read_data(machine, X, y, sample_weight, groups)
    metric = find_metrics(scoring, data.classes, machine)[0]
    splits = data.splits(cv, random_state=random_state)
    tasks = [(clone(machine).set_params(**{parameter: value}), *split) for value in values for split in splits]
    train, validation = _scores(tasks, data, metric, len(splits), random_state)
    best = int(np.argmax(validation.mean(axis=1)))
    text = _of_validation(parameter, values, best, metric, train, validation)
    return ValidationCurve(
        parameter, values, metric.sign * train, metric.sign * validation, values[best], text, metric.name
    )


def _counts(sizes: Sequence[float], most: int) -> NDArray[np.intp]:
    given = np.asarray(sizes, dtype=float)
    shares = given.size > 0 and given.max() <= 1
    counts = np.unique(np.ceil(given * most) if shares else given).astype(np.intp)
    if len(counts) == 0 or counts[0] < 2 or counts[-1] > most:
        raise EmpiriskError(f"sizes={list(sizes)!r} must be numbers from 2 to {most} training rows, or shares up to 1.")
    return counts


def _spread_out(data: Data, rows: Rows, random: np.random.Generator) -> Rows:
    """Training rows in a random order in which the first m rows are stratified by class, for every m."""
    rows = random.permutation(rows)
    if data.classes is None:
        return rows
    _, labels, counts = np.unique(data.y[rows], return_inverse=True, return_counts=True)
    place = np.zeros(len(rows))
    for label, count in enumerate(counts):
        place[labels == label] = (np.arange(count) + 0.5) / count
    return rows[np.argsort(place, kind="stable")]


def _scores(tasks: list[tuple], data: Data, metric: Metric, folds: int, random_state: Any) -> tuple[Array, Array]:
    """Scores on training and on test rows, points x folds, larger is better.

    Fits on the most rows come first: the last of them would else run beside idle threads.
    """
    drawn = seeds(random_state, folds)
    order = sorted(range(len(tasks)), key=lambda number: -len(tasks[number][1]))

    def work(number: int) -> tuple[float, float]:
        machine, train, test = tasks[number]
        inside, outside = data.split(train, test)
        fitted = fit(seeded(machine, drawn[number % folds]), inside)
        return inside.score(fitted, metric.scorer), outside.score(fitted, metric.scorer)

    pairs = np.empty((len(tasks), 2))
    pairs[order] = parallel_fits(work, order)
    return pairs[:, 0].reshape(-1, folds), pairs[:, 1].reshape(-1, folds)


def _floor(data: Data, splits: list, metric: Metric) -> float:
    """The score of a constant predictor on the first split; NaN where the scorer cannot score one."""
    dummy = DummyRegressor() if data.classes is None else DummyClassifier(strategy="prior")
    train, test = splits[0]
    try:
        return data.rows(test).score(dummy.fit(np.zeros((len(train), 1)), data.y[train]), metric.scorer)
    except (ValueError, AttributeError):
        return np.nan


def over_folds(function: Any, scores: Array) -> Array:
    """A statistic of each point's folds; NaN where no fold has a score."""
    known = ~np.isnan(scores).all(axis=1)
    out = np.full(len(scores), np.nan)
    out[known] = function(scores[known], axis=1)
    return out


def _noise(scores: Array) -> float:
    """Standard error of a mean over the folds that have a score."""
    known = scores[~np.isnan(scores)]
    return float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else 0.0


def judge_learning(
    train: Array, validation: Array, floor: float = np.nan, name: str = "score", sign: float = 1.0
) -> str:
    """Over- or underfitting, by scores (points x folds, larger is better) and that of a constant, if it is known."""
    high, *_ = over_folds(np.nanmean, train)[::-1]
    last, before, *_ = [*over_folds(np.nanmean, validation)[::-1], np.nan]
    gap, noise = high - last, 2 * _noise(validation[-1])
    # A change counts as material above 2 % of the gain over a constant, or of the score where that is not known.
    material = 0.02 * (abs(high - floor) if np.isfinite(floor) else max(abs(high), abs(last)))
    doubt = _noise(validation[-1] - validation[-2]) if len(validation) > 1 else np.inf
    rising = last - before > max(material, doubt)
    rises = "rises" if sign > 0 else "falls"
    shown = f"{name} {sign * high:.3g} on training rows, {sign * last:.3g} on new ones"
    # Overfitting: more than 10 % of the training gain over a constant is lost on new rows, which noise cannot explain.
    if gap > max(noise, 5 * material):
        more = f"but the score on new ones still {rises}: more rows would help"
        return f"overfitting: {shown}; {more if rising else 'use a simpler machine, or more rows'}."
    if np.isfinite(floor) and last - floor <= noise:
        return f"underfitting: {shown}, no better than a constant; use a richer machine or other columns."
    if rising:
        return f"still learning: {shown}, and it {rises}; more rows would help."
    if last - before + 2 * doubt <= material:
        return f"settled: {shown}; the last rows changed little, and more will not help much."
    return f"undecided: {shown}; the folds differ too much to tell whether more rows would help."


def judge_ends(train: Array, validation: Array, best: int, ends: Iterable[int]) -> list[str]:
    """Over- or underfitting at each end of a validation curve; empty where it is worse than the best by noise only.

    The machine underfits if its training score has fallen by at least half as much as its validation score; else it
    overfits.
    """
    means, training = over_folds(np.nanmean, validation), over_folds(np.nanmean, train)
    lost, slack = means[best] - means, _noise(validation[best])
    kinds = np.where(training[best] - training > lost / 2, "underfitting", "overfitting")
    return [str(kinds[end]) if lost[end] > slack else "" for end in ends]


def _of_validation(parameter: str, values: list, best: int, metric: Metric, train: Array, validation: Array) -> str:
    reached = metric.sign * validation[best].mean()
    parts = [f"best {parameter}={values[best]!r} with {metric.name} {reached:.3g} on new rows"]
    kinds = judge_ends(train, validation, best, (0, len(values) - 1))
    parts += [f"{kind} {side} it" for kind, side in zip(kinds, ("before", "after"), strict=True) if kind]
    if best in (0, len(values) - 1) and len(values) > 1:
        parts.append("the best lies at the end of the values: try further ones")
    return "; ".join(parts) + "."
