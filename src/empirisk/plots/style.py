"""The look of the views: colours, markers, axes and legends, set on each drawing and never on Matplotlib as a whole."""

import re
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from empirisk.errors import EmpiriskError
from empirisk.formats import printable

#: Okabe and Ito's colours and two of Tol's, which people with any kind of colour vision tell apart.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#332288",
    "#882255",
    "#888888",
    "#F0E442",
)
#: Their number has no factor in common with that of the colours: 70 classes differ.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Lines differ in more than their colour.
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.2)),
    (0, (5, 1.2, 1.2, 1.2)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
#: Greys: of what is read, of what stands behind it, and of the grid.
INK, SOFT, FAINT = "0.2", "0.45", "0.88"
SIZE = (6.4, 4.4)  # inches: two stand side by side on a page
WIDE = (6.8, 4.6)  # inches, for views whose legends are long
PANEL, PANELS_ACROSS = (3.1, 2.6), 3  # inches of one of many curves, and how many of them fill a page
TITLE, LABEL, SMALL = 11, 10, 8.5  # points: all are read in print, and titles stand out
WIDTH = 1.7  # points, of a curve: seen from afar, and curves that cross stay apart
#: Letters of a name that is shortened: below a mark on an axis, beside one, in a legend, along an axis up and across.
BELOW, BESIDE, KEY, UP, ACROSS = 14, 18, 24, 30, 40
FEW = 40  # points of a curve that has a dot at each
#: Points of a cloud: more of them only hide each other.
MOST_POINTS = 3000


def colour(number: int) -> str:
    """The colour of a class or line, by its number."""
    return PALETTE[number % len(PALETTE)]


def marker(number: int) -> str:
    """The marker of a class, by its number."""
    return MARKERS[number % len(MARKERS)]


def dashes(number: int) -> Any:
    """The line style of a line, by its number."""
    return DASHES[number % len(DASHES)]


def look(number: int, points: int | None = None, **more: Any) -> dict[str, Any]:
    """How a curve is drawn, by its number: colour, dashes and width, and dots where it has few ``points``."""
    dots = {"marker": "o", "ms": 3.5} if points is not None and points <= FEW else {}
    return {"color": colour(number), "linestyle": dashes(number), "lw": WIDTH, **dots, **more}


def pale(shade: str, share: float = 0.28) -> tuple[float, float, float]:
    """A colour mixed with white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(shade))
    return red, green, blue


def readable_on(shade: Any) -> str:
    """Black or white, whichever is read more easily on the colour."""
    brightness = np.dot(to_rgb(shade), (0.299, 0.587, 0.114))  # as television weighs red, green and blue
    return "black" if brightness > 0.55 else "white"  # the eye needs a little more than half for black


def plain(name: Any, most: int = KEY) -> str:
    """A name as text to draw: not too long, on one line, and never read as a formula or as a hidden label."""
    text = printable(" ".join(str(name).split())) or "(empty)"
    if len(text) > most:
        text = f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"  # long names often differ at their end
    # Matplotlib reads $...$ as mathematics, and hides what begins with an underscore from legends.
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def wide_letters(text: str) -> int:
    """How many letters are as wide as they are high, such as Chinese ones."""
    return sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)


def roomy(text: str) -> str:
    """Text that ends at its place, with the room for wide letters that Matplotlib's font, which lacks them, forgets."""
    return " " * round(1.4 * wide_letters(text)) + text


@contextmanager
def any_script() -> Iterator[None]:
    """Letters that Matplotlib's own font lacks are no cause for a warning: the reader of an SVG has fonts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def some(count: int) -> np.ndarray:
    """The numbers of the rows that are drawn as points: all, or a sample that is always the same."""
    return np.sort(np.random.default_rng(0).permutation(count)[:MOST_POINTS])


def sentence(text: str) -> str:
    """Text that begins with a capital, and is never read as a formula."""
    return (text[:1].upper() + text[1:]).replace("$", r"\$")


def wrapped(text: str, width: int = 62) -> str:
    """Text in lines that fit above the axes."""
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, width))


class ShownFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        drawn = BytesIO()
        with any_script():
            self.savefig(drawn, format="png")
        return drawn.getvalue()


def canvas(axes: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """The axes to draw into: those given, or the only ones of a new figure, which belongs to no window."""
    return panels(axes, 1, size)[0]


def panels(axes: Any, count: int, size: tuple[float, float], *, rows: bool = False) -> list[Axes]:
    """Several axes to draw into: those given, or a new row (or column) of them."""
    if axes is None:
        return grid(count if rows else 1, 1 if rows else count, size)
    given = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(given) != count or not all(isinstance(one, Axes) for one in given):
        wanted = "one Matplotlib Axes" if count == 1 else f"{count} Matplotlib Axes"
        raise EmpiriskError(f"axes={axes!r} must be {wanted}, or None for a new figure.")
    return given


def grid(down: int, across: int, size: tuple[float, float]) -> list[Axes]:
    """The axes of a new figure, row by row."""
    figure = ShownFigure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return list(figure.subplots(down, across, squeeze=False).flat)


def tiles(count: int, across: int, width: float, height: float) -> list[Axes]:
    """The axes of a new figure for so many small pictures, each with a width and a height in inches."""
    down = -(-count // across)
    drawn = grid(down, across, (width * across, height * down))
    for axes in drawn[count:]:
        axes.remove()
    for axes in drawn[:count]:
        axes.set(xticks=[], yticks=[])
    return drawn[:count]


def listed_panels(count: int, title: str) -> list[Axes]:
    """The axes of a new figure for so many curves of one machine, three side by side, below a title."""
    across = min(PANELS_ACROSS, count)
    down = -(-count // across)
    drawn = grid(down, across, (PANEL[0] * across, PANEL[1] * down + 0.3))  # and room for the title, in inches
    for axes in drawn[count:]:
        axes.remove()
    root(drawn[0]).suptitle(title, fontsize=TITLE, x=0.01, ha="left")
    return drawn[:count]


def root(axes: Axes) -> Figure:
    """The whole figure that the axes stand in, also within a subfigure."""
    return axes.figure.canvas.figure


def dress(axes: Axes, title: str, across: str, up: str, *, grid: bool = True, room: float = 6.0) -> None:
    """Title, labels, and no more lines than are needed; ``room`` is left below the title, in points."""
    axes.set_title(wrapped(title), fontsize=TITLE, loc="left", pad=room)
    axes.set_xlabel(across, fontsize=LABEL)
    axes.set_ylabel(up, fontsize=LABEL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(True, color=FAINT, linewidth=0.7)
        axes.set_axisbelow(True)


def legend(axes: Axes) -> None:
    """A legend beside the axes, where it hides nothing; in several columns if it is long."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = 1 + (len(labels) - 1) // 18  # as many lines as the axes are high
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "ncols": columns}
    axes.legend(handles, labels, fontsize=SMALL, frameon=False, alignment="left", **place).set_zorder(5)


def finished(axes: Axes, title: str, across: str, up: str, **options: Any) -> Figure:
    """The whole figure, with title, labels and legend."""
    dress(axes, title, across, up, **options)
    legend(axes)
    return root(axes)


def inside(axes: Axes, place: Any) -> None:
    """A legend within the axes, for views that leave this corner empty."""
    axes.legend(loc=place, fontsize=SMALL, framealpha=0.9, edgecolor=FAINT)


def scale(axes: Axes, picture: Any, label: str) -> None:
    """The scale of the colours of a picture, beside it."""
    bar = axes.figure.colorbar(picture, ax=axes, shrink=0.85)
    bar.set_label(label, fontsize=LABEL)
    bar.ax.tick_params(labelsize=SMALL)
    if bar.solids is not None:
        bar.solids.set_edgecolor("face")  # no seams between its shades


def padded(values: np.ndarray, share: float = 0.06) -> tuple[float, float]:
    """Limits that leave room around the values, also if they are all the same."""
    low, high = float(np.min(values)), float(np.max(values))
    room = share * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room


def whole_numbers(axes: Axes) -> None:
    """Ticks at whole numbers only, on the axis that counts."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins="auto", steps=[1, 2, 5, 10]))


def named(machines: Any, name_of: Callable[[Any], str]) -> dict[str, Any]:
    """Machines by name: those of a dictionary, or those of one or several, numbered where they are alike."""
    if isinstance(machines, Mapping):
        return {str(name): machine for name, machine in machines.items()}
    listed = list(machines) if isinstance(machines, (list, tuple)) else [machines]
    names = [name_of(machine) for machine in listed]
    numbered = [f"{name} {names[: place + 1].count(name)}" for place, name in enumerate(names)]
    unique = [name if names.count(name) == 1 else other for name, other in zip(names, numbered, strict=True)]
    return dict(zip(unique, listed, strict=True))


def checked_choice(argument: str, value: Any, choices: Iterable[str]) -> str:
    """A name among the choices, or a sentence that lists them."""
    choices = list(choices)
    if not (isinstance(value, str) and value in choices):
        raise EmpiriskError(f"{argument}={value!r} is not known; choose one of {choices}.")
    return value


# Letters as text, which the reader's own fonts draw in every script, which can be searched and copied, and is a tenth
# of the size of outlines; names by content, not at random.
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "empirisk", "svg.image_inline": True}
NOTHING = {"Date": None, "Creator": None, "Format": None, "Type": None}


def to_svg(figure: Figure) -> str:
    """The figure as an ``<svg>`` element: self-contained, and the same text for the same figure.

    Its ids begin with a digest of its content, so that several figures can stand in one page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What any view returns.

    Returns
    -------
    str

    Examples
    --------
    >>> svg = er.plots.to_svg(er.plots.losses(["hinge", "logistic"]))
    >>> svg[:4], svg.strip()[-6:]
    ('<svg', '</svg>')
    >>> svg == er.plots.to_svg(er.plots.losses(["hinge", "logistic"]))
    True
    """
    page = StringIO()
    with rc_context(SETTINGS), any_script():
        figure.savefig(page, format="svg", metadata=NOTHING)
    text = page.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    mark = "s" + sha256(text.encode()).hexdigest()[:10]  # enough to tell the pictures of a page apart
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mark}-", text)
