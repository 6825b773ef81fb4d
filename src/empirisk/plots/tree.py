"""A decision tree, drawn from left to right: every label has its own row and column, so that none overlap."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.utils.validation import check_is_fitted

from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.plots.style import colour, plain
from empirisk.trees.views import Labels

ROW, GAP, PAD = 0.52, 0.55, 0.12  # inches: height of a row, room between columns, margin inside a label
FONT = 9
MOST = 500  # leaves in one figure


@dataclass
class _Box:
    """One label: its node, depth, row, text, and the two boxes that follow it."""

    node: int
    depth: int
    row: float
    text: str
    width: float = 0.0
    after: "tuple[_Box, _Box] | None" = None


def tree(tree: Any, *, max_depth: int | None = 5) -> Figure:
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
    labels = Labels(tree.nodes_, tree.columns_, getattr(tree, "classes_", None))
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
            bend = left[after.depth] - 0.65 * GAP
            _join(axes, (left[box.depth] + box.width, bend, left[after.depth]), (box.row, after.row), answer)
    return figure


def _arranged(labels: Labels, max_depth: int | None) -> tuple[list[_Box], int]:
    """The labels to draw and the number of rows: a leaf takes a row, a split stands midway between its branches."""
    boxes: list[_Box] = []
    rows = 0

    def visit(node: int, depth: int) -> _Box:
        nonlocal rows
        weight = f"weight {labels.nodes.weight[node]:.6g}"
        if labels.nodes.feature[node] < 0 or depth == max_depth:
            below = "" if labels.nodes.feature[node] < 0 else f", {_leaves_below(labels, node)} leaves below"
            box = _Box(node, depth, rows, f"{plain(labels.prediction(node), 48)}\n{weight}{below}")
            rows += 1
            boxes.append(box)
            return box
        box = _Box(node, depth, 0.0, f"{plain(labels.condition(node), 48)}\n{weight}")
        boxes.append(box)
        child = int(labels.nodes.left[node])
        box.after = visit(child, depth + 1), visit(child + 1, depth + 1)
        box.row = (box.after[0].row + box.after[1].row) / 2
        return box

    visit(0, 0)
    return boxes, rows


def _leaves_below(labels: Labels, node: int) -> int:
    waiting, count = [node], 0
    while waiting:
        node = waiting.pop()
        if labels.nodes.feature[node] < 0:
            count += 1
        else:
            waiting += [int(labels.nodes.left[node]), int(labels.nodes.left[node]) + 1]
    return count


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
    """A fill for each node, light enough for black text."""
    value = labels.nodes.value
    if labels.classes is None:
        low, high = value[:, 0].min(), value[:, 0].max()
        share = (value[:, 0] - low) / max(high - low, np.finfo(float).tiny)
        return 0.45 * colormaps["cividis"](share)[:, :3] + 0.55
    best = value.argmax(axis=1)
    base = np.array([to_rgb(colour(k)) for k in best])
    chance = 1 / value.shape[1]
    sure = 0.15 + 0.6 * np.clip((value.max(axis=1) - chance) / max(1 - chance, 1e-9), 0, 1)
    return 1 - sure[:, None] * (1 - base)


def _frame(colour: np.ndarray) -> dict:
    return {"boxstyle": f"round,pad={PAD * 72 / 2 / FONT}", "facecolor": tuple(colour), "edgecolor": "0.35", "lw": 0.6}


def _join(axes: Any, across: tuple[float, float, float], rows: tuple[float, float], answer: str) -> None:
    """A line from a split to a branch, bent at right angles, and the answer beside it."""
    start, bend, stop = across
    above, below = ((row + 0.5) * ROW for row in rows)
    axes.plot([start, bend, bend, stop - PAD / 2], [above, above, below, below], color="0.35", lw=0.8, zorder=0)
    axes.text(bend + 0.03, below - 0.02, answer, fontsize=FONT - 2, ha="left", va="bottom", color="0.25")
