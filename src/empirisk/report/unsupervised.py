"""The report of a table without a target."""

from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from empirisk import __version__
from empirisk.plots import style
from empirisk.plots.svg import to_svg
from empirisk.report import words
from empirisk.report.page import write_text

__all__ = ["page", "write"]

SHOWN = 8  # columns of the rows that fit nowhere


def page(described: Any, model_file: str = "table.model") -> str:
    """What was found in a table without a target, as one HTML page that needs no network."""
    environment = Environment(loader=PackageLoader("empirisk.report", "."), autoescape=True, undefined=StrictUndefined)
    columns = described.frame.columns[:SHOWN]
    return environment.get_template("unsupervised.html").render(
        title=f"{described.name}: what it holds",
        summary=described.summary(),
        clusters=[
            {
                "number": cluster.number,
                "size": cluster.size,
                "share": f"{cluster.share:.0%}",
                "apart": _words(cluster.apart, "above", "below"),
            }
            for cluster in described.clusters
        ],
        directions=[
            {"number": k + 1, "share": f"{found.share:.0%}", "made_of": _words(found.made_of, "up", "down")}
            for k, found in enumerate(described.directions)
        ],
        columns=columns,
        strange=[
            {
                "number": row + 1,
                "share": f"{share:.1%}",
                "values": [_shown(described.frame[name][row]) for name in columns],
            }
            for row, share in described.strange
        ],
        picture=_picture(described),
        code=words.code(model_file),
        footer=f"Written by Empirisk {__version__} in {described.seconds:.0f} seconds.",
    )


def write(described: Any, path: str | Path, model_file: str = "table.model") -> Path:
    """Write the report; an earlier file is replaced only once the new one is complete."""
    return write_text(page(described, model_file), path)


def _words(parts: list[tuple[str, float]], more: str, less: str) -> str:
    return "; ".join(f"{name} {abs(value):.2g} {more if value > 0 else less}" for name, value in parts)


def _shown(value: Any) -> str:
    return "" if value is None else words.number(value, 4) if isinstance(value, float) else str(value)[:40]


def _picture(described: Any) -> str:
    """The rows along the first two directions, coloured by cluster."""
    axes = style.canvas(None, (6.6, 4.4))
    order = {cluster.number: place for place, cluster in enumerate(described.clusters)}
    for number, place in order.items():
        rows = described.labels == number
        look = {"color": style.colour(place), "marker": style.marker(place), "label": f"cluster {number}"}
        axes.scatter(*described.places[rows].T, s=18, linewidths=0.3, edgecolors=style.INK, **look)
    strange = np.array([row for row, _ in described.strange], dtype=int)
    if len(strange):
        ring = {"facecolors": "none", "edgecolors": style.INK, "label": "fits nowhere"}
        axes.scatter(*described.places[strange].T, s=90, linewidths=1.0, **ring)
    style.dress(axes, "Rows along the main directions", "direction 1", "direction 2")
    style.legend(axes)
    return to_svg(style.root(axes))
