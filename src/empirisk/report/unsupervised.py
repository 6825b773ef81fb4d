"""The report of a table without a target."""

from typing import Any

from empirisk.formats import count, percent, shown
from empirisk.report.figures import picture
from empirisk.report.page import byline, use
from empirisk.report.page_blocks import Cell, Figures, Paragraph, Section, Table, render

SHOWN_COLUMNS = 8  # columns that are shown of the least likely rows: more do not fit beside each other


def page(described: Any, model_file: str = "table.model") -> str:
    """What was found in a table without a target, as one HTML page that needs no network."""
    does = "It gives each row of a table with these columns the number of its cluster."
    return render(
        {
            "Clusters": lambda: clusters(described),
            "Main directions": lambda: directions(described),
            "Rows that fit nowhere": lambda: strange(described),
            "How to use it": lambda: use(described.origin, described.seconds, model_file, does),
        },
        title=f"{described.name}: what it holds",
        byline=byline(described.origin),
        summary=described.summary(),
        cards=[],
        warnings=described.warnings,
    )


def clusters(described: Any) -> Section:
    """How many rows each cluster has, and what tells it apart."""
    text = (
        "What tells a cluster apart: the columns in which its mean is farthest from that of all rows, measured by how "
        "much rows differ, in the units of the columns."
    )
    rows = [
        [
            Cell(str(one.number), one.number),
            Cell(f"{one.size:,}", one.size, bar=one.share),
            Cell(percent(one.share, 0), one.share),
            "; ".join(one.words),
        ]
        for one in described.clusters
    ]
    table = Table("The clusters", ["Cluster", "Rows", "Share", "Apart in"], rows, extra=[2])
    drawn = picture(
        "Rows along the main directions",
        "Every point is a row, placed along the two directions in which rows differ most.",
        lambda views, axes: views.clusters(axes, described),
    )
    return Section("clusters", "Clusters", [Paragraph(text), table, Figures([drawn])])


def directions(described: Any) -> Section:
    """The directions in which rows differ most."""
    rows = [
        [Cell(str(k + 1), k), Cell(percent(one.share, 0), one.share, bar=one.share), _words(one.made_of, "up", "down")]
        for k, one in enumerate(described.directions)
    ]
    head = ["Direction", "Share of the variance", "Made of"]
    return Section("directions", "Main directions", [Table("The directions in which rows differ most", head, rows)])


def strange(described: Any) -> Section:
    """The section with the anomalies: the rows of the lowest density."""
    names = described.frame.columns[:SHOWN_COLUMNS]
    rows = [
        [
            Cell(f"{row + 1:,}", row),
            Cell(percent(share, 1), share),
            *(shown(described.frame[name][row]) for name in names),
        ]
        for row, share in described.strange
    ]
    if not rows:
        return Section("strange", "Rows that fit nowhere", [Paragraph("The table is too short to say.")])
    text = "The least likely rows along the main directions, and the share of rows that are likelier."
    caption = f"The {count(len(rows), 'row')} that fit least"
    return Section(
        "strange", "Rows that fit nowhere", [Paragraph(text), Table(caption, ["Row", "Likelier", *names], rows)]
    )


def _words(parts: list[tuple[str, float]], more: str, less: str) -> str:
    return "; ".join(f"{name} {abs(value):.2g} {more if value > 0 else less}" for name, value in parts)
