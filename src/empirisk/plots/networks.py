"""Networks: activations, filters, feature maps, hidden units in the plane, training, tangents, tickets and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError
from empirisk.nets.experiments import Tickets, WidthCurve
from empirisk.nets.layers import ACTIVATIONS, activation
from empirisk.nets.network import Network
from empirisk.nets.tangent import Tangent
from empirisk.plots import style
from empirisk.plots.planes import points

#: Small pictures beyond this number would be too small to see.
MOST = 64
#: Weights that are named, the most influential first.
TOP = 10
#: Eigenvalues below this share of the largest are drawn there.
LEAST_SHARE = 1e-12
#: Units of a layer that are drawn as a graph.
MOST_UNITS = 16
#: Places along each side of a map in the plane.
RESOLUTION = 80


def activations(which: Sequence[str] = tuple(ACTIVATIONS), *, reach: float = 3.0, axes: Axes | None = None) -> Figure:
    """Draw activation functions.

    Parameters
    ----------
    which : list of str
        Their names.
    reach : float
        The curves run from -reach to reach.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> [line.get_label() for line in er.plots.activations(["relu", "tanh"]).axes[0].lines]
    ['relu', 'tanh']
    """
    axes = style.canvas(axes)
    z = np.linspace(-reach, reach, 601, dtype=np.float32)
    for number, name in enumerate(which):
        values = np.asarray(activation(name)(z))
        axes.plot(z, values, label=name, **style.look(number))
    axes.set(xlim=(-reach, reach), ylim=(-1.3, 1.05 * reach))  # tanh ends at -1, relu rises like its input
    return style.finished(axes, "Activations", "input", "output")


def filters(machine: Any, layer: int = 0, *, axes: Sequence[Axes] | None = None) -> Figure:
    """Draw what the units of a layer look for: the filters of a convolution, or dense weights seen as an image.

    Parameters
    ----------
    machine : fitted machine with a Network, or fitted Network
        Whose weights are drawn; several input channels are averaged.
    layer : int
        The number of the layer.
    axes : list of matplotlib Axes, optional
        One for each unit; None makes a new figure.

    Examples
    --------
    >>> network = er.Network.convolutional((4,), dense=(), shape=(8, 8, 1), random_state=0).fit(np.zeros((2, 64)))
    >>> len(er.plots.filters(network).axes)
    4
    """
    network = _network(machine)
    weight = network.weights_.get(f"{layer}.weight")
    if weight is None:
        raise EmpiriskError(f"layer={layer!r} has no filters; the weights are {sorted(network.weights_)}.")
    if weight.ndim == 2:
        if layer != 0 or len(network.shape_) != 3:
            raise EmpiriskError(f"layer={layer!r} is dense and does not see an image; use er.plots.hidden_units.")
        weight = weight.reshape(*network.shape_, -1)
    pictures = np.moveaxis(weight.mean(axis=2), -1, 0)
    return _pictures(pictures, f"Layer {layer}: what its units look for", axes, around_zero=True)


def feature_maps(machine: Any, image: ArrayLike, layer: int = 0, *, axes: Sequence[Axes] | None = None) -> Figure:
    """Draw what comes out of a layer for one image, channel by channel.

    Parameters
    ----------
    machine : fitted machine with a Network, or fitted Network
        The network.
    image : array
        One sample, as an image or a flat row.
    layer : int
        The number of the layer.
    axes : list of matplotlib Axes, optional
        One for each channel; None makes a new figure.

    Examples
    --------
    >>> network = er.Network.convolutional((3,), dense=(), shape=(8, 8, 1), random_state=0).fit(np.zeros((2, 64)))
    >>> len(er.plots.feature_maps(network, np.ones(64)).axes)
    3
    """
    network = _network(machine)
    outputs = network.layer_outputs(np.asarray(image)[None])
    if not 0 <= layer < len(outputs) or outputs[layer].ndim != 4:
        raise EmpiriskError(f"layer={layer!r} gives no images; the layers are {network.layers_}.")
    return _pictures(np.moveaxis(outputs[layer][0], -1, 0), f"Layer {layer}: its answers to the image", axes)


def hidden_units(
    machine: Any, X: ArrayLike, y: ArrayLike | None = None, layer: int = 0, *, axes: Sequence[Axes] | None = None
) -> Figure:
    """Draw the answer of every hidden unit over the plane of two columns, with the rows.

    Parameters
    ----------
    machine : fitted machine with a Network, or fitted Network
        A network on two columns.
    X, y : arrays
        Rows to draw, and their classes if any.
    layer : int
        The number of the layer.
    axes : list of matplotlib Axes, optional
        One for each unit; None makes a new figure.

    Examples
    --------
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    >>> machine = er.SVM(C=100.0, features=er.Network([4], random_state=0)).fit(X, y)
    >>> len(er.plots.hidden_units(machine, X, y).axes)
    4
    """
    network, rows = _network(machine), np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or network.shape_ != (2,):
        raise EmpiriskError(f"X has shape {rows.shape}; hidden units are drawn in the plane of two columns.")
    limits = [style.padded(column, 0.3) for column in rows.T]
    across, up = (np.linspace(*limit, RESOLUTION) for limit in limits)
    grid = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
    answers = network.layer_outputs(grid)[layer]
    pictures = np.moveaxis(answers.reshape(RESOLUTION, RESOLUTION, -1), -1, 0)
    placed = {"extent": (*limits[0], *limits[1]), "origin": "lower"}
    figure = _pictures(pictures, f"Layer {layer}: the answer of every unit", axes, **placed)
    codes = np.zeros(len(rows), int) if y is None else np.unique(np.asarray(y), return_inverse=True)[1]
    for drawn in figure.axes if axes is None else np.ravel(np.asarray(axes, dtype=object)):
        for code in np.unique(codes):
            points(drawn, rows[codes == code].T, code, edgecolors="white", linewidths=0.6)
    return figure


def training(machine: Any, *, axes: Sequence[Axes] | None = None) -> Figure:
    """Draw how a network was trained: the objective, the norms of the gradients, and how far the weights went.

    Parameters
    ----------
    machine : fitted machine with a Network
        The machine.
    axes : three matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]
    >>> machine = er.Ridge(C=10.0, features=er.Network([4], epochs=200, random_state=0)).fit(X, y)
    >>> [drawn.get_ylabel() for drawn in er.plots.training(machine).axes]
    ['objective', '|gradient|', '|W - W0| / |W0|']
    """
    network = _network(machine)
    if not hasattr(network, "history_"):
        raise EmpiriskError("The network has not been trained; fit a machine with it in its slot features.")
    history, names = network.history_, network.history_names_
    drawn = style.panels(axes, 3, (7.0, 7.5), rows=True)  # inches: three low pictures, one above the other
    steps = history["step"]
    _line(drawn[0], steps, history["objective"], 0, "training")
    if "validation_objective" in history:
        scale = history["objective"][0] / max(history["validation_objective"][0], np.finfo(float).tiny)
        _line(drawn[0], steps, scale * history["validation_objective"], 1, "held out, scaled to begin there")
        style.legend(drawn[0])
    shown = [place for place, name in enumerate(names) if name.endswith("weight")]
    for number, place in enumerate(shown):
        _line(drawn[1], steps, history["gradient_norm"][:, place], number, names[place])
        _line(drawn[2], steps, history["drift"][:, place], number, names[place])
    drawn[1].set_yscale("log")
    style.dress(drawn[0], f"Training: {network.stopped_} after {network.n_steps_} steps", "", "objective")
    style.dress(drawn[1], "", "", "|gradient|")
    style.dress(drawn[2], "", "step", "|W - W0| / |W0|")
    style.legend(drawn[1])
    return style.root(drawn[0])


def tangent(kernel: Tangent, X: ArrayLike, *, axes: Sequence[Axes] | None = None) -> Figure:
    """Draw which weights matter for some rows at the start of training, and what the network is blind to there.

    Above, the mean squared derivative of f in the most influential weights; below, the eigenvalues of the kernel on the
    rows: patterns with eigenvalue zero are blind spots, and small ones are learned last.

    Parameters
    ----------
    kernel : Tangent
        The kernel, `er.kernels.Tangent(network)`.
    X : array
        The rows.
    axes : two matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> kernel = er.kernels.Tangent(er.Network([3], random_state=0))
    >>> [drawn.get_xlabel() for drawn in er.plots.tangent(kernel, np.eye(4)).axes]
    ['mean squared derivative', 'pattern on the rows, best seen first']
    """
    influence, rows = kernel.influence(X), len(np.asarray(X))
    sizes = sorted(((value, f"{name} {list(place)}") for name, part in influence.items()
                    for place, value in np.ndenumerate(part)), reverse=True)[:TOP]  # fmt: skip
    values = np.linalg.eigvalsh(kernel.block(X))[::-1]
    seen = rows - kernel.blind_spots(X).shape[1]
    above, below = style.panels(axes, 2, (6.4, 7.2), rows=True)  # inches: two pictures, one above the other
    above.barh([name for _, name in sizes][::-1], [value for value, _ in sizes][::-1], color=style.colour(0))
    style.dress(above, "The weights that matter most", "mean squared derivative", "")
    least = values[0] * LEAST_SHARE  # what is zero has no logarithm
    places = np.arange(1, rows + 1)
    for number, (label, which) in enumerate((("seen", places <= seen), ("blind", places > seen))):
        shown = np.maximum(values[which], least)
        look = {"color": style.colour(number), "marker": style.marker(number), "ls": "none", "markersize": 5}
        below.plot(places[which], shown, label=label, **look)
    below.set_yscale("log")
    style.whole_numbers(below)
    title = f"Of {rows} patterns on {rows} rows the network is blind to {rows - seen}"
    return style.finished(below, title, "pattern on the rows, best seen first", "eigenvalue")


def tickets(found: Tickets, *, axes: Axes | None = None) -> Figure:
    """Draw the score of a pruned network against the share of its weights that is left.

    Parameters
    ----------
    found : Tickets
        What `er.nets.lottery_tickets` gives.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> found = er.nets.Tickets(np.array([1.0, 0.5]), np.array([0.9, 0.95]), [])
    >>> er.plots.tickets(found).axes[0].get_xlabel()
    'share of the weights left'
    """
    axes = style.canvas(axes)
    _line(axes, found.kept, found.scores, 0)
    axes.set_xscale("log")
    axes.invert_xaxis()
    told = found.kept[:: 1 + len(found.kept) // 8]  # more labels than eight would touch
    axes.set_xticks(told, [f"{share:.3g}" for share in told])
    axes.minorticks_off()
    best = int(np.flatnonzero(found.scores == np.max(found.scores))[-1])  # of equal scores the smallest network
    part = "all weights" if found.kept[best] == 1 else f"{found.kept[best]:.3g} of the weights"
    title = f"Best with {part}: {found.scores[best]:.3g}"
    return style.finished(axes, title, "share of the weights left", "score on held-out rows")


def widths(curve: WidthCurve, *, axes: Axes | None = None) -> Figure:
    """Draw the errors of a network against its width: where it descends twice, this shows it.

    Parameters
    ----------
    curve : WidthCurve
        What `er.nets.width_curve` or `er.nets.double_descent` gives.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> curve = er.nets.WidthCurve(np.array([1, 10]), np.array([1.0, 0.1]), np.array([1.2, 0.3]))
    >>> [line.get_label() for line in er.plots.widths(curve).axes[0].lines]
    ['training', 'test']
    """
    axes = style.canvas(axes)
    least = float(np.concatenate([curve.training, curve.test]).max()) * 1e-6  # what interpolates has no logarithm
    _line(axes, curve.widths, np.maximum(curve.training, least), 0, "training")
    _line(axes, curve.widths, np.maximum(curve.test, least), 1, "test")
    axes.set(xscale="log", yscale="log")
    worst = int(curve.widths[np.argmax(curve.test)])
    return style.finished(axes, f"The test error is highest at width {worst}", "hidden units", "error")


def network(machine: Any, *, names: Sequence[str] | None = None, axes: Axes | None = None) -> Figure:
    """Draw the units of the dense layers as a graph: a line for each weight, the wider the larger.

    Parameters
    ----------
    machine : fitted machine with a Network, or fitted Network
        Whose dense layers are drawn; of a layer with many units the first ones.
    names : list of str, optional
        Names of the inputs.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> network = er.Network([3], random_state=0).fit(np.zeros((2, 2)))
    >>> len(er.plots.network(network).axes[0].collections[0].get_offsets())
    5
    """
    weights = [weight for weight in _network(machine).weights_.values() if weight.ndim == 2]
    head = np.atleast_2d(getattr(machine, "coef_", np.zeros((0, 0)))).T
    if head.size and weights and len(head) == weights[-1].shape[1]:
        weights.append(head)
    if not weights:
        raise EmpiriskError("machine has no dense layers; use er.plots.filters for convolutions.")
    sizes = [len(weights[0]), *(weight.shape[1] for weight in weights)]
    places = [_spread_out(min(size, MOST_UNITS)) for size in sizes]
    axes = style.canvas(axes)
    shades = style.colour(5), style.colour(0)
    for layer, weight in enumerate(weights):
        drawn = np.asarray(weight)[: len(places[layer]), : len(places[layer + 1])]
        largest = np.abs(drawn).max() or 1.0
        for (i, j), value in np.ndenumerate(drawn):
            ends = [places[layer][i], places[layer + 1][j]]
            width = 3 * abs(value) / largest
            axes.plot([layer, layer + 1], ends, color=shades[int(value > 0)], lw=width, alpha=0.7, zorder=1)
    across = np.repeat(np.arange(len(sizes)), [len(place) for place in places])
    axes.scatter(across, np.concatenate(places), s=130, color="white", edgecolors=style.INK, zorder=2)
    for name, height in zip(names or [], places[0], strict=False):
        text = style.plain(name, style.BESIDE)
        axes.text(-0.12, height, text, ha="right", va="center", fontsize=style.SMALL)
    for name, shade in zip(("below zero", "above zero"), shades, strict=True):
        axes.plot([], [], color=shade, lw=style.WIDTH, label=name)
    figure = style.finished(axes, "Units and weights of the network", "", "", grid=False)
    layers = ["inputs", *(f"layer {number}" for number in range(1, len(sizes)))]
    labels = [f"{name}\n{size}" for name, size in zip(layers, sizes, strict=True)]
    axes.set(xlim=(-0.9, len(sizes) - 0.6), yticks=[], xticks=range(len(sizes)), xticklabels=labels)
    axes.spines[:].set_visible(False)
    return figure


def _spread_out(count: int) -> NDArray:
    """Heights of so many units, around zero."""
    return np.arange(count)[::-1] - (count - 1) / 2


def _network(machine: Any) -> Network:
    network = machine if isinstance(machine, Network) else getattr(machine, "features_", None)
    if not isinstance(network, Network) or not hasattr(network, "weights_"):
        raise EmpiriskError(
            f"machine={type(machine).__name__} holds no fitted Network; fit one with features=er.Network."
        )
    return network


def _line(axes: Axes, across: NDArray, values: NDArray, number: int, label: str | None = None) -> None:
    axes.plot(across, values, label=label, **style.look(number, len(across)))


def _pictures(
    pictures: NDArray, title: str, axes: Sequence[Axes] | None, around_zero: bool = False, **placed: Any
) -> Figure:
    """Small pictures on one scale of grey, or of blue and red around zero."""
    pictures = pictures[:MOST]
    count = len(pictures)
    new = axes is None
    # Tiles of an inch and a half: the pixels of a small picture are seen, and a page holds sixteen. One alone is as
    # wide as its title.
    side = 1.5 if count > 1 else 3.0
    across = int(np.ceil(np.sqrt(count)))
    drawn = style.tiles(count, across, side, side) if new else style.panels(axes, count, style.SIZE)
    high = float(np.abs(pictures).max()) or 1.0
    low = -high if around_zero or pictures.min() < 0 else 0.0
    for one, picture in zip(drawn, pictures, strict=True):
        one.imshow(picture, cmap="RdBu_r" if low < 0 else "Greys", vmin=low, vmax=high, aspect="auto", **placed)
        one.set(xticks=[], yticks=[])
    figure = style.root(drawn[0])
    if new:
        figure.suptitle(style.wrapped(title, style.ACROSS), fontsize=style.TITLE, x=0.02, ha="left")
    return figure
