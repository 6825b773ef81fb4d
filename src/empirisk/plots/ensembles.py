"""Trees and ensembles: the tree, the error after every round, the margins."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.metrics import root_mean_squared_error, zero_one_loss
from sklearn.utils.validation import check_is_fitted

from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.planes import Array, classes_of, leads, numbered
from empirisk.plots.style import colour, plain
from empirisk.protocols import TreeModel
from empirisk.trees.text import Labels

ROW, GAP, PAD = 0.52, 0.55, 0.12  # inches: height of a row, room between columns, margin inside a label
FONT = 9  # points, the smallest that is read with ease
MOST = 500  # leaves in one figure
BOX = 48  # letters of a condition in the box of a node: a column, a sign and a number


@dataclass
class _Box:
    """One label: its node, depth, row, text, and the two boxes that follow it."""

    node: int
    depth: int
    row: float
    text: str
    width: float = 0.0
    after: tuple[_Box, _Box] | None = None


def tree(tree: TreeModel, *, max_depth: int | None = 5) -> Figure:
    """Draw a fitted tree, from its root on the left to its leaves on the right.

    The upper branch of a split is the one on which its condition holds. Colours show the predicted class, the paler
    the less sure, or the predicted number.

    Parameters
    ----------
    tree : TreeClassifier or TreeRegressor
        A fitted tree.
    max_depth : int or None
        Splits to draw on the way to a leaf; what lies below is counted. None draws all.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from empirisk.plots import tree as draw
    >>> stump = er.TreeRegressor(max_depth=1).fit([[1.0], [2.0]], [0.0, 1.0])
    >>> figure = draw(stump)
    >>> [text.get_text().splitlines()[0] for text in figure.axes[0].texts]
    ['x0 <= 1.5', '0', '1', 'yes', 'no']
    """
    check_is_fitted(tree, "nodes_")
    labels = Labels.of(tree)
    depth = check_count("max_depth", max_depth, 0, optional=True)
    leaves = min(int(tree.nodes_.is_leaf.sum()), MOST + 1 if depth is None else 2**depth)
    if leaves > MOST:
        raise EmpiriskError(f"The tree has more than {MOST} leaves to draw; give a smaller max_depth.")
    boxes, rows = _arranged(labels, depth)
    figure = Figure()
    widths = _column_widths(figure, boxes)
    left = np.concatenate([[0.0], np.cumsum([width + GAP for width in widths])])
    width, height = left[-1] - GAP + 2 * PAD, rows * ROW + 2 * PAD
    figure.set_size_inches(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-PAD, width - PAD), ylim=(rows * ROW + PAD, -PAD))
    axes.axis("off")
    colours = _colours(labels)
    for box in boxes:
        place = (left[box.depth], (box.row + 0.5) * ROW)
        axes.text(*place, box.text, fontsize=FONT, ha="left", va="center", bbox=_frame(colours[box.node]))
    for box in boxes:
        for after, answer in zip(box.after or (), ("yes", "no"), strict=False):
            bend = left[after.depth] - 0.65 * GAP  # with room for the answer behind it
            _join(axes, (left[box.depth] + box.width, bend, left[after.depth]), (box.row, after.row), answer)
    return figure


def _arranged(labels: Labels, max_depth: int | None) -> tuple[list[_Box], int]:
    """The labels to draw and the number of rows: a leaf takes a row, a split stands midway between its branches."""
    boxes: list[_Box] = []
    rows = 0

    def visit(node: int, depth: int) -> _Box:
        nonlocal rows
        leaf = labels.nodes.feature[node] < 0
        ends = leaf or depth == max_depth
        said = labels.prediction(node) if ends else labels.condition(node)
        below = f", {_leaves_below(labels, node)} leaves below" if ends and not leaf else ""
        box = _Box(node, depth, rows, f"{plain(said, BOX)}\nweight {labels.nodes.weight[node]:.6g}{below}")
        boxes.append(box)
        rows += int(ends)
        if not ends:
            child = int(labels.nodes.left[node])
            box.after = visit(child, depth + 1), visit(child + 1, depth + 1)
            box.row = (box.after[0].row + box.after[1].row) / 2
        return box

    visit(0, 0)
    return boxes, rows


def _leaves_below(labels: Labels, node: int) -> int:
    if labels.nodes.feature[node] < 0:
        return 1
    child = int(labels.nodes.left[node])
    return _leaves_below(labels, child) + _leaves_below(labels, child + 1)


def _column_widths(figure: Figure, boxes: list[_Box]) -> list[float]:
    """Note the width of each label in inches, as it will be drawn; return the widest at each depth."""
    widths = [0.0] * (1 + max(box.depth for box in boxes))
    renderer = FigureCanvasAgg(figure).get_renderer()
    for box in boxes:
        text = figure.text(0, 0, box.text, fontsize=FONT)
        extent = text.get_window_extent(renderer).width / figure.dpi
        text.remove()
        box.width = extent + PAD / 2
        widths[box.depth] = max(widths[box.depth], box.width)
    return widths


def _colours(labels: Labels) -> np.ndarray:
    """A fill for each node, light enough for black text: that of the first of several outputs."""
    value = labels.nodes.value
    if labels.classes is None:
        low, high = value[:, 0].min(), value[:, 0].max()
        share = (value[:, 0] - low) / max(high - low, np.finfo(float).tiny)
        return 0.45 * colormaps["cividis"](share)[:, :3] + 0.55  # more than half white
    value = value[:, : len(labels.classes[0])]
    best = value.argmax(axis=1)
    base = np.array([to_rgb(colour(k)) for k in best])
    chance = 1 / value.shape[1]
    # From a hint of the colour where the classes are alike to three quarters of it where one is alone.
    sure = 0.15 + 0.6 * np.clip((value.max(axis=1) - chance) / max(1 - chance, 1e-9), 0, 1)
    return 1 - sure[:, None] * (1 - base)


def _frame(colour: np.ndarray) -> dict:
    # Half the margin on each side, in units of the font; an inch has 72 points.
    return {"boxstyle": f"round,pad={PAD * 72 / 2 / FONT}", "facecolor": tuple(colour), "edgecolor": "0.35", "lw": 0.6}


def _join(axes: Any, across: tuple[float, float, float], rows: tuple[float, float], answer: str) -> None:
    """A line from a split to a branch, bent at right angles, and the answer beside it."""
    start, bend, stop = across
    above, below = ((row + 0.5) * ROW for row in rows)
    axes.plot([start, bend, bend, stop - PAD / 2], [above, above, below, below], color="0.35", lw=0.8, zorder=0)
    axes.text(bend + 0.03, below - 0.02, answer, fontsize=FONT - 2, ha="left", va="bottom", color="0.25")


def rounds(machine: Any, X: Any = None, y: ArrayLike | None = None, *, axes: Axes | None = None) -> Figure:
    """Draw the error of an ensemble by its rounds or trees; for AdaBoost also on its training rows, below its bound.

    Parameters
    ----------
    machine : fitted ensemble
        An `AdaBoostClassifier`, anything with ``staged_predict``, or a forest or bagging, whose members are counted.
    X, y : table and target, optional
        Rows held out, to show their error (root mean squared for numbers). AdaBoost can do without.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> y = (X[:, 0] > 3) & (X[:, 0] < 9)
    >>> figure = er.plots.rounds(er.AdaBoostClassifier(n_estimators=10).fit(X, y))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['bound', 'training error']
    """
    kept = {"bound": "bound_", "training error": "training_errors_"}
    curves = {name: getattr(machine, place) for name, place in kept.items() if hasattr(machine, place)}
    name, classifies = type(machine).__name__, is_classifier(machine)
    if X is not None:
        if not (hasattr(machine, "staged_predict") or hasattr(machine, "staged_errors")):
            raise EmpiriskError(f"The {name} has no staged_predict and no staged_errors; give an ensemble.")
        if y is None:
            raise EmpiriskError("y is missing; give the targets of X to measure errors.")
        curves["error on the rows given"] = _staged(machine, X, y, classifies)
    if not curves:
        raise EmpiriskError(f"The {name} keeps no errors; give X and y to measure them on.")
    axes = style.canvas(axes)
    for number, (label, values) in enumerate(curves.items()):
        axes.plot(np.arange(1, len(values) + 1), values, label=label, **style.look(number, len(values)))
    longest = max(map(len, curves.values()))
    # A little room, so that no curve is cut in half at the sides.
    axes.set_xlim(*((0.5, 1.5) if longest == 1 else (1 - 0.01 * longest, 1.01 * longest)))
    axes.set_ylim(0 - 0.02 * max(map(np.max, curves.values())), None)
    style.whole_numbers(axes)
    up = "error" if classifies else "root mean squared error"
    counted = "round" if hasattr(machine, "staged_predict") else "member"
    return style.finished(axes, f"{name} over its {counted}s", f"{counted}s", up)


def _staged(machine: Any, X: Any, y: ArrayLike, classifies: bool) -> Array:
    """The error after each round; of machines that vote, of the first members together."""
    if not hasattr(machine, "staged_predict"):
        errors = machine.staged_errors(X, y)
        return errors if classifies else np.sqrt(errors)
    error = zero_one_loss if classifies else root_mean_squared_error
    return np.array([error(np.asarray(y), said) for said in machine.staged_predict(X)])


def margins(
    machine: Any, X: Any, y: ArrayLike, *, rounds: Sequence[int] | None = None, axes: Axes | None = None
) -> Figure:
    """Draw the share of rows whose margin is at most each value: where it crosses zero is the error.

    The margin of AdaBoost is  y f(x) / sum of alphas,  between -1 and 1; of other machines it is  y f(x),  or the score
    of the right class minus the best other one. Boosting goes on pushing margins up when the error is already zero.

    Parameters
    ----------
    machine : classifier
        A fitted `AdaBoostClassifier`, or any classifier with a ``decision_function``.
    X, y : table and classes
        The rows to look at.
    rounds : list of int, optional
        For AdaBoost: the rounds after which to draw; None takes a few, and the last.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> y = (X[:, 0] > 3) & (X[:, 0] < 9)
    >>> figure = er.plots.margins(er.AdaBoostClassifier(n_estimators=30).fit(X, y), X, y, rounds=[3, 30])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['3 rounds: error 0', '30 rounds: error 0']
    """
    classes = classes_of(machine)
    votes = hasattr(machine, "margins") and hasattr(machine, "alphas_")
    if not votes and rounds is not None:
        raise EmpiriskError("rounds needs an AdaBoostClassifier, whose votes can be counted round by round.")
    curves: dict[str, Array] = {}
    if votes:
        for count in _chosen(rounds, len(machine.alphas_)):
            curves[f"{count} rounds" if count != 1 else "1 round"] = _after(machine, count).margins(X, y)
    elif hasattr(machine, "decision_function"):
        scores, codes = np.asarray(machine.decision_function(X), dtype=np.float64), numbered(y, classes)
        curves["all"] = leads(scores)[codes, np.arange(len(codes))]
    else:
        raise EmpiriskError(f"The {type(machine).__name__} has no decision_function, so that it has no margins.")
    axes = style.canvas(axes)
    everything = np.concatenate(list(curves.values()))
    limits = (-1.03, 1.03) if votes else style.padded(np.append(everything, 0.0))
    for number, (name, values) in enumerate(curves.items()):
        ordered = np.sort(values)
        across, shares = np.concatenate([limits[:1], ordered, limits[1:]]), np.arange(len(ordered) + 1) / len(ordered)
        label = f"{name}: error {np.mean(values < 0):.3g}"
        axes.step(across, np.append(shares, 1.0), where="post", label=label, **style.look(number))
    axes.axvline(0, color=style.INK, lw=0.9)
    axes.set(xlim=limits, ylim=(-0.02, 1.02))
    across = "margin  y f(x) / sum of alphas" if votes else "margin  y f(x)"
    title = f"{type(machine).__name__}: margins of {len(values)} rows"
    return style.finished(axes, title, across, "share with no larger margin")


def _chosen(rounds: Sequence[int] | None, total: int) -> list[int]:
    if rounds is None:
        few = (1, 5, 25, 100)  # about equally far in logarithms
        return sorted({total, *(count for count in few if count < total)})
    strange = [count for count in rounds if not 1 <= count <= total]
    if strange or not len(rounds):
        raise EmpiriskError(f"rounds={list(rounds)!r} must be numbers from 1 to the {total} rounds of the machine.")
    return sorted({int(count) for count in rounds})


def _after(machine: Any, count: int) -> Any:
    """The machine as it was after some rounds."""
    earlier = copy(machine)
    earlier.estimators_, earlier.alphas_ = machine.estimators_[:count], machine.alphas_[:count]
    return earlier
