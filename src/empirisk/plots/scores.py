"""Scores of a machine: what every threshold gives, which classes are taken for which, what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import Array, check_weights
from empirisk.errors import EmpiriskError, MissingValues
from empirisk.evaluation.ranking import hull_of
from empirisk.evaluation.scored import ClassScores, is_result, of_machine, scored, sorted_classes
from empirisk.formats import percent
from empirisk.plots import style
from empirisk.theory.luck import clopper_pearson


def answers(
    truth: Any, predictions: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[NDArray, NDArray, Array]:
    """The true and the predicted values and the weight of each row."""
    if is_result(truth):
        sample_weight = truth.weights if sample_weight is None else sample_weight
        truth, predictions = truth.truth, truth.predictions
    if predictions is None:
        raise EmpiriskError("predictions is missing; give the predicted values beside the true ones.")
    said, known = np.asarray(predictions), np.asarray(truth)
    if known.ndim != 1 or said.shape != known.shape or not len(known):
        raise EmpiriskError(
            f"truth of shape {known.shape} and predictions of shape {said.shape} must be as long as each other, "
            "with at least one row."
        )
    return known, said, check_weights(sample_weight, len(known))


def numbers(truth: Any, predictions: ArrayLike | None, sample_weight: ArrayLike | None) -> tuple[Array, Array, Array]:
    """True and predicted numbers and the weight of each row."""
    known, said, weights = answers(truth, predictions, sample_weight)
    try:
        known, said = known.astype(np.float64), said.astype(np.float64)
    except (TypeError, ValueError):
        raise EmpiriskError("truth and predictions must be numbers; use er.plots.confusion for classes.") from None
    if not (np.isfinite(known).all() and np.isfinite(said).all()):
        raise MissingValues("truth and predictions must be finite; leave out rows with missing values.")
    return known, said, weights


def roc(
    truth: Any,
    scores: Any = None,
    y: ArrayLike | None = None,
    *,
    threshold: Any = None,
    hull: bool = False,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the true against the false positive rate over all thresholds; chance is the diagonal, with an area of 1/2.

    Parameters
    ----------
    truth : array of n, the result of an evaluation, or a fitted machine
        The true classes.
    scores : array of n, or n x classes
        Scores or probabilities, higher for the positive class; a column for each of several classes. Not needed with
        a result.
    y : array of n, optional
        The true values, where a machine is given, and its rows in the place of scores.
    threshold : float or ThresholdChoice, optional
        The chosen threshold, or what `empirisk.selection.choose_threshold` returns, to be marked: rows with a score
        of at least this are called positive.
    hull : bool
        Whether to draw the convex hull too, which coins between two thresholds reach.
    positive : class, optional
        The class to find; None takes the second of two, and each of several against the others.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.roc([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], threshold=0.5)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['1: area 0.750', 'threshold 0.5', 'chance: area 0.5']
    """
    threshold = getattr(threshold, "threshold", threshold)
    curves, axes = curves_on(axes, truth, scores, y, positive, sample_weight)
    for number, one in enumerate(curves):
        false, true, _ = roc_curve(one.belongs, one.scores, sample_weight=one.weights)
        axes.plot(false, true, label=f"{style.plain(one.name)}: area {auc(false, true):.3f}", **style.look(number))
        if hull:
            best = hull_of(one)
            look: dict[str, Any] = {
                "color": style.colour(number),
                "linestyle": "--",
                "marker": "o",
                "ms": 3.5,
                "lw": 1.0,
            }
            label = f"hull: area {best.area:.3f}"
            axes.plot(best.false_positive_rate, best.true_positive_rate, label=label, **look)
        if threshold is not None:
            said = one.scores >= threshold
            place = one.share(said, ~one.belongs), one.share(said, one.belongs)
            _mark(axes, place, threshold, number, curves)
    axes.plot([0, 1], [0, 1], ":", color=style.SOFT, lw=1.2, label="chance: area 0.5")
    return style.finished(axes, "ROC", "false positive rate", "true positive rate")


def rates(axes: Axes | None, curves: list[ClassScores]) -> Axes:
    """Axes for two rates, with room for the names of the curves; those along the sides are not cut in half."""
    axes = style.canvas(axes, (6.4 if len(curves) < 4 else 7.8, 4.6))  # inches: a long legend stands beside
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    return axes


def curves_on(
    axes: Axes | None, truth: Any, scores: Any, y: Any, positive: Any, sample_weight: ArrayLike | None
) -> tuple[list[ClassScores], Axes]:
    """The classes whose scores are drawn, and axes for two of their rates."""
    curves = scored(*of_machine(truth, scores, y), positive, sample_weight)
    return curves, rates(axes, curves)


def draw_chance(axes: Axes, curves: list[ClassScores]) -> None:
    """A level line at the share of every class: the precision of rows drawn by chance."""
    for number, one in enumerate(curves):
        rate, single = one.share(one.belongs), len(curves) == 1
        label = f"chance: {rate:.3f}" if single else "chance: the class's rate" if not number else None
        axes.axhline(rate, linestyle=":", color=style.SOFT if single else style.colour(number), lw=1.2, label=label)


def _mark(axes: Axes, place: tuple[float, float], threshold: Any, number: int, curves: list[ClassScores]) -> None:
    """Where a threshold is on a curve; it is named once."""
    label = f"threshold {threshold:.3g}" if number == len(curves) - 1 else None
    axes.plot(*place, "o", color=style.colour(number), markeredgecolor=style.INK, ms=8, zorder=4, label=label)


def precision_recall(
    truth: Any,
    scores: Any = None,
    y: ArrayLike | None = None,
    *,
    threshold: Any = None,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw precision against recall over all thresholds; chance is a level line at the positive rate.

    Parameters
    ----------
    truth : array of n, the result of an evaluation, or a fitted machine
        The true classes.
    scores : array of n, or n x classes
        Scores or probabilities, higher for the positive class; a column for each of several classes. Not needed with
        a result.
    y : array of n, optional
        The true values, where a machine is given, and its rows in the place of scores.
    threshold : float or ThresholdChoice, optional
        The chosen threshold, or what `empirisk.selection.choose_threshold` returns, to be marked: rows with a score
        of at least this are called positive.
    positive : class, optional
        The class to find; None takes the second of two, and each of several against the others.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.precision_recall([0, 0, 0, 1], [0.1, 0.6, 0.4, 0.9])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['1: average 1.000', 'chance: 0.250']
    """
    threshold = getattr(threshold, "threshold", threshold)
    curves, axes = curves_on(axes, truth, scores, y, positive, sample_weight)
    for number, one in enumerate(curves):
        precision, recall, _ = precision_recall_curve(one.belongs, one.scores, sample_weight=one.weights)
        precision[-1] = precision[-2]  # the curve is said to begin at a precision of 1, which no threshold gives
        average = average_precision_score(one.belongs, one.scores, sample_weight=one.weights)
        label = f"{style.plain(one.name)}: average {average:.3f}"
        # Precision holds until the next threshold: steps, not slopes, which would promise what no threshold gives.
        axes.step(recall, precision, where="post", label=label, **style.look(number))
        said = np.zeros(len(one.scores), dtype=bool) if threshold is None else one.scores >= threshold
        if (said & (one.weights > 0)).any():  # a threshold above every score has no precision
            place = one.share(said, one.belongs), one.share(one.belongs, said)
            _mark(axes, place, threshold, number, curves)
    draw_chance(axes, curves)
    return style.finished(axes, "Precision and recall", "recall", "precision")


#: More classes than this leave no room for numbers.
MOST = 25


def confusion(
    truth: Any,
    predictions: Any = None,
    y: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw how many rows of each class were predicted as each; the colour is the share of the true class.

    Parameters
    ----------
    truth : array of n, the result of an evaluation, or a fitted machine
        The true classes.
    predictions : array of n
        The predicted ones; not needed with a result.
    y : array of n, optional
        The true values, where a machine is given, and its rows in the place of predictions.
    classes : list, optional
        The classes in the order to draw them; None takes all that occur, sorted.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.confusion(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1', '1', '0', '1']
    """
    truth, predictions = of_machine(truth, predictions, y)
    if classes is None and is_result(truth):
        classes = truth.classes
    known, said, weights = answers(truth, predictions, sample_weight)
    present = sorted_classes("truth", np.concatenate([known, said])).tolist()
    names = present if classes is None else list(classes)
    strange = [name for name in present if name not in names]
    if strange:
        raise EmpiriskError(f"classes leaves out {strange[0]!r}, which occurs in the data; name every class.")
    places = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, tuple([places[name] for name in side.tolist()] for side in (known, said)), weights)
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(totals > 0, totals, 1.0)
    side = 2.4 + 0.46 * min(len(names), MOST)  # inches: room for the names, and a number in each cell
    axes = style.canvas(axes, (side + 1.0, side))
    picture = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    style.scale(axes, picture, "share of the true class")
    right, total = float(np.trace(counts)), float(counts.sum())
    title = f"Accuracy {percent(right / total, 1)}\n{right:.6g} of {total:.6g} right"
    style.dress(axes, title, "predicted class", "true class", grid=False)
    if len(names) <= MOST:
        _label(axes, counts, shares, [style.plain(name, style.BESIDE) for name in names])
    return style.root(axes)


def _label(axes: Axes, counts: np.ndarray, shares: np.ndarray, names: list[str]) -> None:
    """Names along the sides and a number in each cell, small enough for its width."""
    places = np.arange(len(names))
    turned = max(map(len, names)) > 4 and len(names) > 1
    axes.set_xticks(places, names, rotation=45 if turned else 0, ha="right" if turned else "center")
    if turned:
        for tick in axes.get_xticklabels():
            tick.set_rotation_mode("anchor")
    axes.set_yticks(places, names)
    axes.tick_params(length=0)
    # About 26 points are a cell's width: its number has to fit.
    size = min(style.LABEL, 26 / max(max(len(f"{count:.4g}") for count in counts.flat), 2))
    shades = colormaps["Blues"](shares)
    for i, j in np.ndindex(*counts.shape):
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": style.readable_on(shades[i, j][:3])}
        axes.text(j, i, f"{counts[i, j]:.4g}", fontsize=size, **look)


CUTS = ("uniform", "quantile")
APART = 0.07  # least room between numbers of rows


def calibration(
    truth: Any,
    probabilities: Any = None,
    y: ArrayLike | None = None,
    *,
    bins: int = 10,
    cut: str = "uniform",
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw how often the class came true against how probable it was said to be; the diagonal is perfect.

    Whiskers are 95 % intervals (Clopper-Pearson) of each bin's rate: a point is off only if its whisker misses the
    diagonal. For one class, numbers above the axes count the rows of each bin.

    Parameters
    ----------
    truth : array of n, the result of an evaluation, or a fitted machine
        The true classes.
    probabilities : array of n, or n x classes
        Probability of the positive class, or of each. Not needed with a result.
    y : array of n, optional
        The true values, where a machine is given, and its rows in the place of probabilities.
    bins : int
        Number of bins.
    cut : {"uniform", "quantile"}
        Bins as wide, or with as many rows, as each other.
    positive : class, optional
        The class to look at; None takes the second of two, and each of several against the others.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.calibration([0, 1, 0, 1], [0.2, 0.2, 0.7, 0.7], bins=2)
    >>> figure.axes[0].lines[0].get_xydata()
    array([[0.2, 0.5],
           [0.7, 0.5]])
    """
    truth, probabilities = of_machine(truth, probabilities, y)
    curves = scored(truth, probabilities, positive, sample_weight, decisions=False)
    style.checked_choice("cut", cut, CUTS)
    check_count("bins", bins)
    if any(one.scores.min() < 0 or one.scores.max() > 1 for one in curves):
        raise EmpiriskError("probabilities must lie between 0 and 1; use er.plots.roc for scores of another kind.")
    axes = rates(axes, curves)
    for number, one in enumerate(curves):
        said, came, low, high, rows = binned(one, bins, cut)
        if len(curves) == 1:
            _count(axes, said, rows)
        error = float(np.average((one.scores - one.belongs) ** 2, weights=one.weights))
        look = style.look(number, marker=style.marker(number), ms=5)
        label = f"{style.plain(one.name)}: Brier score {error:.3f}"
        axes.plot(said, came, label=label, **look)
        reach: dict[str, Any] = {"yerr": [came - low, high - came], "ecolor": style.colour(number)}
        axes.errorbar(said, came, fmt="none", elinewidth=0.9, capsize=2.5, **reach)
    axes.plot([0, 1], [0, 1], ":", color=style.SOFT, lw=1.2, label="perfect")
    return style.finished(axes, "Calibration", "predicted probability", "share that came true", room=16.0)


def _count(axes: Axes, places: Array, rows: Array) -> None:
    """Rows of each bin, as numbers above the axes where they do not overlap."""
    last = -np.inf
    for place, count in zip(places, rows, strict=True):
        if place - last >= APART:
            look: dict[str, Any] = {"fontsize": 7, "ha": "center", "va": "bottom", "color": style.SOFT}
            axes.text(place, 1.01, f"{count:,.6g}", transform=axes.get_xaxis_transform(), **look)
            last = place


def binned(one: ClassScores, bins: int, cut: str) -> tuple[Array, Array, Array, Array, Array]:
    """For each bin with rows: mean probability, rate, the interval of the rate, and the rows."""
    places = np.linspace(0, 1, bins + 1)
    edges = places if cut == "uniform" else np.unique(np.quantile(one.scores, places))
    numbers = np.clip(np.searchsorted(edges[1:-1], one.scores, side="right"), 0, bins - 1)
    counts = np.bincount(numbers, weights=one.weights, minlength=bins)
    used = counts > 0
    hits = np.bincount(numbers, weights=one.weights * one.belongs, minlength=bins)[used]
    said = np.bincount(numbers, weights=one.weights * one.scores, minlength=bins)[used] / counts[used]
    rows = counts[used].astype(np.float64)
    low, high = np.transpose([clopper_pearson(hit, row, 0.95) for hit, row in zip(hits, rows, strict=True)])
    return said, hits / rows, low, high, rows


#: Bins of a histogram that can be told apart.
MOST_BINS = 70


def residuals(
    truth: Any,
    predictions: Any = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    axes: Sequence[Axes] | None = None,
) -> Figure:
    """Draw predictions against the truth, and the histogram of the residuals truth - prediction.

    Parameters
    ----------
    truth : array of n, the result of an evaluation, or a fitted machine
        The true numbers.
    predictions : array of n
        The predicted ones; not needed with a result.
    y : array of n, optional
        The true values, where a machine is given, and its rows in the place of predictions.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : two matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.residuals([1.0, 2.0, 3.0], [1.5, 2.0, 2.5])
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['true value', 'residual (true - predicted)']
    """
    truth, predictions = of_machine(truth, predictions, y)
    known, said, weights = numbers(truth, predictions, sample_weight)
    left = known - said
    first, second = style.panels(axes, 2, (8.6, 4.0))  # inches: two nearly square pictures side by side
    shown = style.padded(np.concatenate([known, said]), 0.05)
    some = style.some(len(known))
    look: dict[str, Any] = {"color": style.PALETTE[0], "alpha": 0.65, "linewidths": 0, "zorder": 2}
    size = float(np.clip(2000 / len(some), 4, 28))  # smaller points for more rows, but never lost nor clumsy
    first.scatter(known[some], said[some], s=size, **look)
    first.plot(shown, shown, "-", color=style.INK, lw=1.0, zorder=3)
    first.set(xlim=shown, ylim=shown, aspect="equal")
    error = float(np.sqrt(np.average(left**2, weights=weights)))
    title = f"Root mean squared error {error:.4g}\nline: prediction = truth"
    style.dress(first, title, "true value", "predicted value")
    # A few far residuals, or very many, would ask for thousands of bins.
    few = len(left) < 5000 and len(np.histogram_bin_edges(left, "auto")) <= MOST_BINS + 1
    bins = np.histogram_bin_edges(left, "auto" if few else MOST_BINS)
    second.hist(left, bins=list(bins), weights=weights, color=style.PALETTE[4], edgecolor="white", linewidth=0.5)
    second.axvline(0, color=style.INK, lw=1.0)
    mean = float(np.average(left, weights=weights))
    mean = 0.0 if abs(mean) < 1e-9 * error else mean  # what rounding leaves
    second.axvline(mean, color=style.PALETTE[5], lw=1.6, linestyle="--")
    style.dress(second, f"Residuals\ndashed: mean {mean:.3g}", "residual (true - predicted)", "rows")
    return style.root(first)
