"""How the report draws: one size, one font, room for names in any script, light enough for a mail."""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_hex
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.ticker import EngFormatter, ScalarFormatter
from numpy.typing import NDArray

from empirisk import plots
from empirisk.plots import style
from empirisk.plots.histograms import bins, frequent
from empirisk.plots.planes import points
from empirisk.tables.kinds import Kind

#: Inches: two stand side by side on a desk, and one can be read on a phone.
SIZE = (4.8, 3.3)
SHADES = 12  # of a cloud whose colours are numbers
NAME = 18  # letters of a name beside an axis
LARGE = 10_000  # numbers whose noughts take the room of their neighbours
RARE = 0.2  # probabilities that are nearly all smaller are looked at closely
FEW = 10  # whole numbers between which an axis names none
#: Matplotlib's words for a point, and for the next one, which it may clip anew.
POINT = r'<use xlink:href="#([^"]*)" x="([^"]*)" y="([^"]*)" style="([^"]*)"/>\s*(?:</g>\s*<g clip-path="[^"]*">\s*)?'
CLOUD = 20  # points, or more
MOST_MOMENTS = 400  # rows of a picture over time: more are a carpet
#: Black, the greys of `plots.style`, white and the blues, in the words of the style sheet.
FOLLOWING = {
    "#000000": "var(--ink)",
    to_hex(style.INK): "var(--ink)",
    to_hex(style.SOFT): "var(--soft)",
    to_hex(style.FAINT): "var(--line)",
    "#ffffff": "var(--paper)",
    style.PALETTE[0].lower(): "var(--mark)",
    style.PALETTE[4].lower(): "var(--sky)",
}


def canvas() -> Axes:
    """Where a picture is drawn."""
    return style.canvas(None, SIZE)


def finished(axes: Axes) -> str:
    """The picture as it stands in the page, which names it above and gives it a ground."""
    figure = style.root(axes)
    figure.patch.set_alpha(0)
    for one in figure.axes:
        one.patch.set_alpha(0)
        one.set_title("", loc="left")
        for axis in (one.xaxis, one.yaxis):
            if type(axis.get_major_formatter()) is ScalarFormatter and max(map(abs, axis.get_view_interval())) >= LARGE:
                axis.set_major_formatter(EngFormatter(sep=""))  # 300k, and not 300000
    legend = axes.get_legend()
    if legend is not None:
        handles, labels = axes.get_legend_handles_labels()
        legend.remove()
        across = 1 if max(map(len, labels)) > NAME + 8 else 2
        figure.legend(handles, labels, loc="outside lower center", ncols=across, fontsize=style.SMALL, frameon=False)
    drawn = re.sub(f"(?:{POINT}){{{CLOUD},}}", _cloud, plots.to_svg(figure))
    # Other colours than these stand on a light and on a dark page.
    return re.sub("|".join(FOLLOWING), lambda grey: FOLLOWING[grey[0]], drawn)


def _cloud(points: re.Match[str]) -> str:
    """Points as the corners of lines that are not drawn, with a marker on each: a tenth of the letters."""
    looks: dict[tuple[str, str], list[str]] = {}
    for shape, x, y, look in re.findall(POINT, points[0]):
        looks.setdefault((shape, look), []).append(f"{float(x):.1f},{float(y):.1f}")
    return "".join(
        f'<marker id="{shape}-{k}" overflow="visible" markerUnits="userSpaceOnUse">'
        f'<use href="#{shape}" style="{look}"/></marker>'
        f'<polyline style="fill: none; marker: url(#{shape}-{k})" points="{" ".join(places)}"/>'
        for k, ((shape, look), places) in enumerate(looks.items())
    )


def tree(machine: Any, encoder: Any) -> str:
    """The tree, with the names of the table's columns and with its numbers as they were before they were scaled."""
    nodes = machine.nodes_
    scaled = (nodes.feature >= 0) & (nodes.feature < len(encoder.numbers_.scale))
    column = nodes.feature[scaled]
    threshold = nodes.threshold.copy()
    threshold[scaled] = threshold[scaled] * encoder.numbers_.scale[column] + encoder.numbers_.mean[column]
    spoken = copy(machine)
    spoken.nodes_ = replace(nodes, threshold=threshold)
    spoken.columns_ = replace(machine.columns_, names=tuple(encoder.names_), categories=tuple(encoder.categories()))
    figure = plots.tree(spoken, max_depth=3)  # as wide as the page
    figure.patch.set_alpha(0)
    return plots.to_svg(figure)


def calibration(axes: Axes, truth: NDArray, chances: NDArray[np.float64], positive: Any) -> None:
    """Calibration; of a rare class, whose probabilities are small, the corner where they are."""
    rare = float(np.quantile(chances, 0.95)) < RARE
    plots.calibration(truth, chances, positive=positive, cut="quantile" if rare else "uniform", axes=axes)
    if rare:
        points = axes.lines[0].get_xydata()
        limit = 1.3 * float(np.max(points))
        axes.set(xlim=(-0.03 * limit, limit), ylim=(-0.03 * limit, limit))


def residuals(axes: Axes, truth: NDArray, said: NDArray, place: int) -> None:
    """Predictions against the truth, or their errors, by their place in `plots.residuals`."""
    plots.residuals(truth, said, axes=[axes if k == place else canvas() for k in range(2)])
    axes.set_aspect("auto")


def over_time(axes: Axes, learned: Any, order: NDArray) -> None:
    """The truth of the test part and its predictions, in order of time; the last ones where they are many."""
    order = order[-MOST_MOMENTS:]
    history = learned.plan.history
    across = np.arange(len(order))
    axes.plot(across, learned.test.truth[order], color=style.INK, linewidth=1, label="truth")
    axes.plot(across, learned.test.predictions[order], color=style.PALETTE[0], linewidth=1.2, label="prediction")
    axes.set_ylabel(learned.target)
    axes.set_xlabel(f"rows in order of {history.time.name}" if history else "rows in order of time")
    axes.legend()


def effect(axes: Axes, found: Any, what: str, shared: NDArray) -> None:
    """The average prediction over the values of a column, on a scale with room for what all columns share."""
    limits = style.padded(shared)
    words = found.type.drawn == "levels"
    places = np.arange(len(found.values)) if words else found.values
    for k, name in enumerate(found.outputs):
        look: dict[str, Any] = {"color": style.colour(k), "label": style.plain(name, NAME)}
        if words:
            shift = places + 0.12 * (k - (len(found.outputs) - 1) / 2)
            reach = [found.mean[k] - found.low[k], found.high[k] - found.mean[k]]
            axes.errorbar(found.mean[k], shift, xerr=reach, fmt=style.marker(k), ms=5, elinewidth=1.4, **look)
        else:
            axes.fill_between(places, found.low[k], found.high[k], color=style.colour(k), alpha=0.2, linewidth=0)
            axes.plot(places, found.mean[k], linestyle=style.dashes(k), lw=1.8, marker=style.marker(k), ms=3.5, **look)
    if words:
        name_levels(axes, [found.type.level_name(value) for value in found.values])
        axes.set_xlim(limits)
        style.dress(axes, "", style.plain(what, style.ACROSS), "")
    else:
        axes.set_ylim(limits)
        style.dress(axes, "", style.plain(found.column, style.ACROSS), style.plain(what, style.UP))
        if found.type.drawn == "dates":
            dated(axes)
        elif max(places) - min(places) <= FEW and all(value == round(value) for value in places):
            style.whole_numbers(axes)
    if len(found.outputs) > 1:
        style.legend(axes)


def name_levels(axes: Axes, names: Sequence[Any]) -> None:
    """Words along the vertical axis, the first on top."""
    axes.set_yticks(np.arange(len(names)), [style.roomy(style.plain(name, NAME)) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def dated(axes: Axes) -> None:
    """Short dates along the horizontal axis."""
    locator = AutoDateLocator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def histogram(axes: Axes, values: NDArray, name: str) -> None:
    """How often numbers occur."""
    axes.hist(values, bins=bins(values), color=style.PALETTE[4], edgecolor="white", linewidth=0.5)
    style.dress(axes, "", style.plain(name, style.ACROSS), "rows")


def beside(axes: Axes, values: NDArray, kind: Kind, y: NDArray, classes: Sequence[Any], names: list[str]) -> None:
    """How a column goes with the target: with classes, or with a number."""
    if len(classes):
        by_class(axes, values, kind, y, classes, names[0])
    else:
        by_number(axes, values, kind, y, *names)


def by_class(axes: Axes, values: NDArray, kind: Kind, y: NDArray, classes: Sequence[Any], name: str) -> None:
    """How a column differs between classes: their histograms, or their shares among each word."""
    if kind.drawn == "levels":
        levels = frequent(values)
        shares = np.array([[np.mean(y[values == level] == label) for level in levels] for label in classes])
        left = np.zeros(len(levels))
        for k, label in enumerate(classes):
            look: dict[str, Any] = {"color": style.colour(k), "edgecolor": "white", "linewidth": 0.5}
            axes.barh(np.arange(len(levels)), shares[k], left=left, label=style.plain(label, NAME), **look)
            left += shares[k]
        name_levels(axes, [kind.level_name(level) for level in levels])
        style.dress(axes, "", f"share of its rows, {style.plain(name)}", "", grid=False)
    else:
        if kind.drawn == "dates":
            values = date2num(values)
            dated(axes)
        edges = bins(values)
        for k, label in enumerate(classes):
            part = values[y == label]
            shares = np.histogram(part, edges)[0] / max(len(part), 1)
            axes.stairs(shares, edges, label=style.plain(label, NAME), baseline=None, **style.look(k))
            if len(edges) <= FEW + 1 and kind.drawn != "dates":
                style.whole_numbers(axes)
        style.dress(axes, "", style.plain(name, style.ACROSS), "share of the class")
    style.legend(axes)


def by_number(axes: Axes, values: NDArray, kind: Kind, y: NDArray, name: str, target: str) -> None:
    """How a number goes with a column: a cloud, or the middle half of it among each word."""
    if kind.drawn == "levels":
        levels = frequent(values)
        low, middle, high = np.transpose([np.quantile(y[values == level], [0.25, 0.5, 0.75]) for level in levels])
        places = np.arange(len(levels))
        axes.barh(places, high - low, left=low, height=0.6, color=style.PALETTE[4])
        axes.plot(middle, places, "|", color=style.INK, ms=14, mew=1.6)
        name_levels(axes, [kind.level_name(level) for level in levels])
        style.dress(axes, "", style.plain(target, style.ACROSS), "")
        return
    some = style.some(len(y))
    axes.scatter(values[some], y[some], s=9, color=style.PALETTE[0], alpha=0.5, linewidths=0)
    style.dress(axes, "", style.plain(name, style.ACROSS), style.plain(target, style.UP))
    if kind.drawn == "dates":
        dated(axes)


def together(axes: Axes, across: NDArray, up: NDArray, y: NDArray, classes: Sequence[Any], names: list[str]) -> None:
    """Two columns at once, coloured by the target."""
    some = style.some(len(y))
    across, up, y = across[some], up[some], y[some]
    if len(classes):
        for k, label in enumerate(classes):
            rows = y == label
            points(axes, (across[rows], up[rows]), k, style.plain(label, NAME), s=10, alpha=0.6, linewidths=0)
        style.legend(axes)
    else:
        low, high = np.quantile(y, [0.02, 0.98])
        # Without its ends, which are lost on a dark page and on a light one.
        shades = ListedColormap(colormaps["viridis"](np.linspace(0.3, 0.95, SHADES)))
        drawn = axes.scatter(across, up, s=9, c=y, cmap=shades, vmin=low, vmax=high, linewidths=0)
        style.scale(axes, drawn, style.plain(names[2], style.UP))
    for set_limits, values in ((axes.set_xlim, across), (axes.set_ylim, up)):
        set_limits(style.padded(np.quantile(values, [0.005, 0.995])))
    style.dress(axes, "", style.plain(names[0], style.ACROSS), style.plain(names[1], style.UP))


def clusters(axes: Axes, described: Any) -> None:
    """The rows along the first two directions, coloured by cluster, and rings around those that fit nowhere."""
    some = style.some(len(described.labels))
    for place, cluster in enumerate(described.clusters):
        rows = some[described.labels[some] == cluster.number]
        points(axes, described.places[rows].T, place, f"cluster {cluster.number}", s=14, alpha=0.7, linewidths=0)
    odd = np.array([row for row, _ in described.strange], dtype=int)
    if len(odd):
        ring = {"facecolors": "none", "edgecolors": style.INK, "label": "fits nowhere"}
        axes.scatter(*described.places[odd].T, s=80, linewidths=1.0, **ring)
    style.dress(axes, "", "direction 1", "direction 2")
    style.legend(axes)
