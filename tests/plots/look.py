"""Looking at figures: what their texts say, where they stand, and whether they can be read."""

import ast
import itertools
import re

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure


def legend(axes):
    """The entries of a legend."""
    drawn = axes.get_legend()
    return [] if drawn is None else [text.get_text() for text in drawn.get_texts()]


def title(axes):
    return axes.get_title(loc="left")


def ticks(axis):
    """The tick labels that are drawn."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    places = axis.get_majorticklocs()
    labels = axis.get_majorticklabels()
    return [label for place, label in zip(places, labels, strict=False) if low - room <= place <= high + room]


def texts(figure):
    """Every text that is drawn."""
    found = list(figure.texts)
    for axes in figure.axes:
        found += [axes._left_title, axes.title, *axes.texts]
        if axes.axison:
            found += [axes.xaxis.label, axes.yaxis.label, *ticks(axes.xaxis), *ticks(axes.yaxis)]
        if axes.get_legend() is not None:
            found += axes.get_legend().get_texts()
    for drawn in figure.legends:
        found += drawn.get_texts()
    return [text for text in found if text.get_text().strip() and text.get_visible()]


def assert_readable(figure):
    """No text leaves the page, and no two overlap."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, page = canvas.get_renderer(), figure.bbox
    placed = [(text, text.get_window_extent(renderer)) for text in texts(figure)]
    for text, box in placed:
        inside = page.x0 - 1 <= box.x0 and box.x1 <= page.x1 + 1 and page.y0 - 1 <= box.y0 and box.y1 <= page.y1 + 1
        assert inside, f"{text.get_text()!r} leaves the page"
    # A box around turned text is larger than the text.
    straight = [(text.get_text(), box) for text, box in placed if text.get_rotation() % 90 == 0]
    for (one, first), (other, second) in itertools.combinations(straight, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        up = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across <= 1 or up <= 1, f"{one!r} and {other!r} overlap"


def offsets(axes):
    """The places of the points in each collection of points."""
    return [np.asarray(part.get_offsets()) for part in axes.collections if isinstance(part, PathCollection)]


def contours(axes):
    """The lines of equal value: level and points of each piece."""
    drawn = [part for part in axes.collections if isinstance(part, ContourSet)]
    return [(float(level), piece) for one in drawn for level, pieces in zip(one.levels, one.allsegs, strict=True)
            for piece in pieces if len(piece)]  # fmt: skip


def frame(film, number):
    """The axes as they are in a frame."""
    film._fig.canvas.draw()  # the first drawing starts a film, which then is at its first frame
    film._scene.draw(number)
    return film._fig.axes


def figures(script):
    """The figures in which the blocks of a script of the gallery end, as the site shows them."""
    names = {}
    for block in re.split("^# %%.*$", script.read_text(encoding="utf-8"), flags=re.MULTILINE):
        body = ast.parse(block).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), script, "exec"), names)
        value = eval(compile(ast.Expression(last.value), script, "eval"), names) if last else None
        yield from (one for one in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(one, Figure))
