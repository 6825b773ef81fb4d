"""Directions, weights and atoms: as images, and by the variance that each explains."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.formats import percent
from empirisk.plots import planes, style

#: What vectors a machine has, the first that it has.
NAMES = ("components_", "coef_", "cluster_centers_", "centroids_", "means_")
#: Negative, zero, positive: two colours that people with any colour vision can distinguish.
SIGNED = LinearSegmentedColormap.from_list("signed", [style.PALETTE[0], "white", style.PALETTE[5]])
POSITIVE = LinearSegmentedColormap.from_list("positive", ["white", style.PALETTE[5]])
NEGATIVE = LinearSegmentedColormap.from_list("negative", ["white", style.PALETTE[0]])
#: An image this large in each direction can still be looked at.
INCHES = 1.25


def images(
    vectors: Any,
    shape: tuple[int, int] | None = None,
    *,
    parts: bool = False,
    names: Sequence[str] | None = None,
    most: int = 36,
    common: bool = False,
) -> Figure:
    """Draw vectors as images: directions, weights, singular vectors, atoms, codes.

    Parameters
    ----------
    vectors : machine or array, k x d
        A fitted machine (``components_``, ``coef_`` or cluster centres), or the vectors themselves.
    shape : (int, int), optional
        Height and width; None for squares.
    parts : bool
        Whether the positive and the negative part of each are drawn beside each other, in place of one image of both.
    names : list of str, optional
        What stands above each image; by default its number.
    most : int
        How many to draw, from the first on.
    common : bool
        Whether all images have one scale, in place of each its own.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 16))
    >>> figure = er.plots.images(er.PCA(3).fit(X), (4, 4), parts=True)
    >>> [axes.get_title() for axes in figure.axes][:2]
    ['0 +', '0 -']
    """
    rows = _vectors(vectors)
    height, width = _shape(shape, rows.shape[1])
    shown = rows[: check_count("most", most)]
    if names is not None and len(names) < len(shown):
        raise EmpiriskError(f"names holds {len(names)} names for {len(shown)} images; give one for each.")
    titles = [str(k) if names is None else style.plain(names[k], style.BELOW) for k in range(len(shown))]
    sizes = np.abs(shown).max(axis=1)
    sizes = np.full(len(shown), sizes.max()) if common else sizes
    pictures = []
    for row, title, size in zip(shown.reshape(-1, height, width), titles, np.where(sizes > 0, sizes, 1.0), strict=True):
        if parts:
            pictures += [(np.maximum(row, 0), f"{title} +", (0, size), POSITIVE)]
            pictures += [(np.maximum(-row, 0), f"{title} -", (0, size), NEGATIVE)]
        else:
            pictures += [(row, title, (-size, size), SIGNED)]
    return _grid(pictures, height / width, parts)


def _vectors(vectors: Any) -> NDArray:
    """The vectors of a machine, or those given, one in each row."""
    name = next((name for name in NAMES if hasattr(vectors, name)), None)
    if name is None and hasattr(vectors, "get_params"):
        raise EmpiriskError(
            f"The {type(vectors).__name__} has no vectors to draw, such as components_ or coef_: fit it, and without a "
            "kernel."
        )
    try:
        rows = np.atleast_2d(np.asarray(vectors if name is None else getattr(vectors, name), dtype=np.float64))
    except (TypeError, ValueError):
        raise EmpiriskError("vectors must be a fitted machine or an array of numbers.") from None
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise EmpiriskError(f"vectors of shape {rows.shape} must be a table of finite numbers, a vector in each row.")
    return rows


def _shape(shape: Any, length: int) -> tuple[int, int]:
    if shape is None:
        side = isqrt(length)
        if side * side != length:
            raise EmpiriskError(
                f"shape=None is for squares, but the vectors have {length} entries; give (height, width)."
            )
        return side, side
    if not (len(shape) == 2 and shape[0] >= 1 and shape[1] >= 1 and shape[0] * shape[1] == length):
        raise EmpiriskError(f"shape={shape!r} does not hold the {length} entries of a vector; give (height, width).")
    return int(shape[0]), int(shape[1])


def _grid(pictures: list[tuple[NDArray, str, tuple[float, float], Any]], slant: float, parts: bool) -> Figure:
    """The images in rows of about equal length; the two parts of one stand beside each other."""
    across = min(len(pictures), ceil(sqrt(len(pictures) * 1.6)))  # a page is wider than high
    across += across % 2 if parts else 0
    height = INCHES * min(max(slant, 0.4), 2.5) + 0.25  # with room for the title, and neither too flat nor too high
    panels = style.tiles(len(pictures), across, INCHES, height)
    for axes, (picture, title, (low, high), shades) in zip(panels, pictures, strict=True):
        axes.imshow(picture, cmap=shades, vmin=low, vmax=high, interpolation="nearest")
        axes.set_title(title, fontsize=style.SMALL, pad=2)
        axes.spines[:].set_color(style.FAINT)
    return style.root(panels[0])


def scree(pca: Any, *, share: float | None = None, axes: Axes | None = None) -> Figure:
    """Draw the share of the variance along each direction as bars, and what the first ones reach as a line.

    Parameters
    ----------
    pca : PCA
        A fitted `PCA`, of Empirisk or scikit-learn, or an array of shares.
    share : float, optional
        A share to mark, with the number of directions that reach it.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) * [3.0, 2.0, 0.1]
    >>> figure = er.plots.scree(er.PCA(3).fit(X), share=0.9)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['together', '2 directions reach 90 %', 'each direction']
    """
    shares = np.asarray(getattr(pca, "explained_variance_ratio_", pca), dtype=object).ravel()
    if not len(shares) or not all(isinstance(value, (float, np.floating)) for value in shares):
        raise EmpiriskError("pca must be a fitted PCA, which has explained_variance_ratio_, or an array of shares.")
    if share is not None and not (isinstance(share, (int, float)) and 0 < share <= 1):
        raise EmpiriskError(f"share={share!r} must be a number above 0 and at most 1.")
    shares = shares.astype(np.float64)
    numbers, together = np.arange(1, len(shares) + 1), np.cumsum(shares)
    axes = style.canvas(axes)
    axes.bar(numbers, shares, color=style.colour(0), width=0.8, label="each direction", zorder=2)
    axes.plot(numbers, together, label="together", zorder=3, **style.look(5, marker="o", ms=3, linestyle="-"))
    axes.set(xlim=(0.4, len(shares) + 0.6), ylim=(0, max(1.0, float(together[-1])) * 1.03))
    if share is not None:
        enough = np.flatnonzero(together >= share * (1 - 1e-12))
        wanted = percent(share, 0)
        text = f"{enough[0] + 1} directions reach {wanted}" if len(enough) else f"{wanted} is not reached"
        axes.axhline(share, color=style.INK, lw=1.0, linestyle=":", label=text)
    style.whole_numbers(axes)
    return style.finished(axes, "Variance of the principal directions", "direction", "share of the variance")


def projection(
    machine: Any, X: Any, y: ArrayLike | None = None, *, directions: tuple[int, int] = (0, 1), axes: Axes | None = None
) -> Figure:
    """Draw rows where a projection puts them, coloured by class or by number.

    Parameters
    ----------
    machine : fitted projection
        Anything with ``transform``: `PCA`, a learned metric, a `Network`.
    X : table
        The rows.
    y : array, optional
        Their classes or numbers.
    directions : two int
        Which of the directions to draw; a projection on one is drawn against the order of the rows.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(20, 4))
    >>> er.plots.projection(er.PCA(2).fit(X), X).axes[0].get_xlabel()
    'direction 1 (37 % of the variance)'
    """
    if not hasattr(machine, "transform"):
        raise EmpiriskError(f"machine={type(machine).__name__} has no transform; give a projection such as er.PCA.")
    places = np.asarray(machine.transform(X), dtype=np.float64)
    across, up = directions if places.shape[1] > 1 else (directions[0], None)
    if max(number for number in (across, up) if number is not None) >= places.shape[1]:
        raise EmpiriskError(f"directions={directions!r} asks for more than the {places.shape[1]} that there are.")
    axes = style.canvas(axes)
    shown = style.some(len(places))
    points = places[shown, across], shown.astype(float) if up is None else places[shown, up]
    values = None if y is None else np.asarray(y)[shown]
    if values is None:
        planes.points(axes, points, 0)
    elif values.dtype.kind == "f":
        drawn = axes.scatter(*points, c=values, cmap="viridis", s=24, edgecolors=style.INK, linewidths=0.4)
        style.scale(axes, drawn, "y")
    else:
        for number, label in enumerate(np.unique(values)):
            chosen = values == label
            planes.points(axes, (points[0][chosen], points[1][chosen]), number, style.plain(label))
    labels = [_direction(machine, number) for number in (across, up) if number is not None]
    return style.finished(axes, f"{type(machine).__name__}: the rows", *[*labels, "row"][:2])


def _direction(machine: Any, number: int) -> str:
    shares = getattr(machine, "explained_variance_ratio_", ())
    share = f" ({percent(shares[number], 0)} of the variance)" if number < len(shares) else ""
    return f"direction {number + 1}{share}"
