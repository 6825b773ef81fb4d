"""The shapes of an additive machine: steps with their bands, bars of categories, grids of pairs."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from empirisk.contract.arguments import check_count
from empirisk.plots import planes, style
from empirisk.plots.additive_parts import check_output

Array = NDArray[np.float64]
SHOWN_CATEGORIES = 12  # of a column, the heaviest: more names do not fit under a panel


def shapes(machine: Any, *, output: int = 0, most: int = 12) -> Figure:
    """Draw what an additive machine has learned: f(x) = b + the sum of what is drawn.

    A numeric column is a curve of steps, with a band of one standard deviation over the bags; the dotted line is where
    missing values stand, if there were any. Categories are bars; pairs of columns are grids of colours. Curves share
    one scale; the terms that move f most over the training rows come first.

    Parameters
    ----------
    machine : AdditiveClassifier or AdditiveRegressor
        Fitted.
    output : int
        Which function of a machine with several, one for each class.
    most : int
        Most terms to draw.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> machine = er.AdditiveRegressor(interactions=0, random_state=0).fit(X, np.sin(6 * X[:, 1]))
    >>> er.plots.shapes(machine).axes[0].get_xlabel()
    'x1'
    """
    planes.require(machine, "shapes_", call="fit(X, y)")
    check_count("most", most)
    check_output(output, len(machine.intercept_))
    width, values = machine.n_features_in_, machine.shapes_[:, :, output]
    weight = machine.mass_ / machine.mass_.sum(axis=1, keepdims=True)
    sizes = np.append((weight * np.abs(values)).sum(axis=1), np.abs(machine.grids_[..., output]).mean(axis=(1, 2)))
    chosen = np.argsort(-sizes, kind="stable")[:most]
    some = f"{len(chosen)} of {len(sizes)} shapes"
    title = some if len(chosen) < len(sizes) else f"{len(sizes)} shapes: together they are f"
    panels = style.listed_panels(len(chosen), title)
    drawn = [k for k in chosen if k < width]
    limits = style.padded(np.concatenate([values[k][machine.mass_[k] > 0] for k in drawn] or [np.zeros(1)]))
    for axes, number in zip(panels, chosen, strict=True):
        if number >= width:
            _grid(axes, machine, int(number) - width, output)
        elif machine.columns_.categories[number] is not None:
            _bars(axes, machine, int(number), output, limits)
        else:
            _steps(axes, machine, int(number), output, limits)
    return style.root(panels[0])


def _name(machine: Any, column: int) -> str:
    return style.plain(machine.columns_.names[column], style.UP)


def _steps(axes: Axes, machine: Any, column: int, output: int, limits: tuple[float, float]) -> None:
    """A curve that is constant in every bin."""
    edges = machine.edges_[column][np.isfinite(machine.edges_[column])]
    value, spread = (part[column, : len(edges) + 1, output] for part in (machine.shapes_, machine.deviations_))
    ends = np.array([0.0, 1.0]) if not len(edges) else edges[[0, -1]]
    margin = 0.04 * (np.ptp(edges) if len(edges) > 1 else 1.0)  # the first and the last bin have no end
    places = np.concatenate([[ends[0] - margin], edges, [ends[1] + margin]])
    axes.stairs(value + spread, places, baseline=value - spread, fill=True, color=style.PALETTE[0], alpha=0.25)
    axes.stairs(value, places, baseline=None, color=style.PALETTE[0], lw=1.6)
    if machine.mass_[column, -1] > 0:
        axes.axhline(machine.shapes_[column, -1, output], color=style.SOFT, ls=":", lw=1.2)
    axes.set_ylim(limits)
    style.dress(axes, "", _name(machine, column), "adds to f")


def _bars(axes: Axes, machine: Any, column: int, output: int, limits: tuple[float, float]) -> None:
    """A bar for each of the heaviest categories."""
    bins, names = machine.category_bins_[column], machine.columns_.categories[column]
    order = np.argsort(-machine.mass_[column][bins], kind="stable")[:SHOWN_CATEGORIES]
    chosen = order[np.argsort(machine.shapes_[column, bins[order], output], kind="stable")]
    value, spread = (part[column, bins[chosen], output] for part in (machine.shapes_, machine.deviations_))
    axes.bar(np.arange(len(chosen)), value, yerr=spread, color=style.PALETTE[0],
             error_kw={"ecolor": style.INK, "elinewidth": 1.0})  # fmt: skip
    axes.set_xticks(np.arange(len(chosen)), [style.plain(str(names[k]), 10) for k in chosen], rotation=60, ha="right")
    axes.set_ylim(limits)
    style.dress(axes, "", _name(machine, column), "adds to f")


def _grid(axes: Axes, machine: Any, number: int, output: int) -> None:
    """The cells of a pair, by their place among the coarse bins: low values at the lower left."""
    left, right = machine.pairs_[number]
    used = [int(machine.coarse_[k][:-1][machine.mass_[k, :-1] > 0].max(initial=0)) + 1 for k in (left, right)]
    values = machine.grids_[number, : used[0], : used[1], output]
    reach = float(np.abs(values).max(initial=0.0)) or 1.0
    picture = axes.imshow(values.T, origin="lower", aspect="auto", cmap="PuOr_r", vmin=-reach, vmax=reach)
    style.scale(axes, picture, "")
    axes.set_xticks([])
    axes.set_yticks([])
    names = [f"{_name(machine, int(k))}, low to high" for k in (left, right)]
    style.dress(axes, "", *names, grid=False)
