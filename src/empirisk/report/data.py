"""The data in pictures: the target, every column, what is missing, and the pairs that matter."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.formats import count
from empirisk.report.blocks import Cell, Figure, Figures, Section, Table, Text
from empirisk.report.figures import bins, frequent, picture, spark
from empirisk.report.verdict import leading
from empirisk.report.words import shown
from empirisk.tables.kinds import Kind
from empirisk.tables.kinds.base import counted

MOST_COLUMNS = 400  # that are listed
MOST_CLASSES = 40  # bars that still have their names beside them
MOST_LINES = 6  # classes that are told apart
PAIRS = 4  # leading columns that are drawn beside the target
RELATED, CORRELATED, LOOKED_AT = 8, 0.3, 20  # pairs that are listed, least correlation, columns that are compared
CORRELATION_ROWS = 3000  # the standard error of a correlation of so many is .02
SPARKS = 16  # bars of a small picture
SPARK_ROWS = 50_000  # that a small drawing is made of


def data(learned: Any) -> Section:
    """The table: its target, its columns, and how they go together."""
    schema, plan = learned.model.schema, learned.plan
    columns = len(schema.columns)
    text = f"{count(len(plan.y), 'row')} with a known {learned.target}, and {count(columns, 'other column')}."
    if columns > MOST_COLUMNS:
        text += f" The first {MOST_COLUMNS} are listed."
    blocks: list[Any] = [Text(text)]
    drawn = []
    if learned.classes is None:
        title = f"The target: {learned.target}"
        drawn.append(picture(title, "", lambda views, axes: views.histogram(axes, plan.y, learned.target)))
    else:
        blocks.append(classes(learned))
    drawn += pairs(learned)
    blocks += [Figures(drawn)] if drawn else []
    related = correlations(learned)
    blocks += [related] if related.rows else []
    return Section("data", "The data", [*blocks, columns_table(learned)])


def classes(learned: Any) -> Table:
    """How many rows each class has."""
    labels, counts = np.unique(learned.plan.y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    top, shares = counts.max(), counts / counts.sum()
    rows = [
        [
            str(labels[k]),
            Cell(f"{counts[k]:,}", int(counts[k]), bar=counts[k] / top),
            Cell(f"{shares[k]:.1%}", shares[k]),
        ]
        for k in order
    ]
    more = f", the {MOST_CLASSES} largest of {len(labels)} classes" if len(labels) > MOST_CLASSES else ""
    return Table(f"The target{more}", [learned.target, "Rows", "Share"], rows)


def pairs(learned: Any) -> Iterator[Figure]:
    """The leading columns beside the target, and the first two numbers among them together."""
    plan, kinds = learned.plan, {column.name: column.type for column in learned.model.schema.used}
    shown_classes = [] if learned.classes is None else sorted(frequent(plan.y, MOST_LINES))
    drawable = [name for name in leading(learned) if kinds[name].drawn]
    for name in drawable[:PAIRS]:
        present = plan.frame[name].is_not_null().to_numpy()
        values, y = values_of(plan.frame[name].filter(pl.Series(present))), plan.y[present]
        if not len(values):
            continue
        words = kinds[name].drawn == "levels"
        if learned.classes is None:
            told = (
                "Bars hold the middle half of the rows, and a line their median." if words else "Every point is a row."
            )
        else:
            told = "The share of each class." if words else "How often each class has which values."
        given = values, kinds[name], y, shown_classes, [name, learned.target]
        yield picture(f"{name} and {learned.target}", told, lambda views, axes, given=given: views.beside(axes, *given))
    numbers = [name for name in drawable if kinds[name].drawn == "numbers"][:2]
    if len(numbers) == 2:
        both = plan.frame.select((pl.col(numbers[0]) + pl.col(numbers[1])).is_finite().fill_null(value=False))
        rows = both.to_series().to_numpy()
        across, up = (plan.frame[name].to_numpy()[rows] for name in numbers)
        if rows.any():
            yield picture(
                f"{numbers[0]} and {numbers[1]} together",
                f"Every point is a row, coloured by {learned.target}.",
                lambda views, axes: views.together(
                    axes, across, up, plan.y[rows], shown_classes, [*numbers, learned.target]
                ),
            )


def values_of(series: pl.Series) -> NDArray:
    """A column as an array to draw."""
    return np.array(series.to_list(), dtype=object) if series.dtype == pl.String else series.to_numpy()


def correlations(learned: Any) -> Table:
    """The numbers that rise and fall together, on rows that stand for all."""
    numbers = set(learned.model.schema.named(lambda kind: kind.drawn == "numbers"))
    names = [name for name in leading(learned) if name in numbers][:LOOKED_AT]
    frame = learned.plan.frame.select(names)
    frame = frame.sample(min(CORRELATION_ROWS, frame.height), seed=0)
    together = list(combinations(names, 2))
    asked = [pl.corr(*pair, method="spearman").alias(str(k)) for k, pair in enumerate(together)]
    values = frame.select(asked).row(0) if asked else ()
    found = [(r, pair) for r, pair in zip(values, together, strict=True) if r is not None and abs(r) >= CORRELATED]
    found.sort(key=lambda entry: -abs(entry[0]))
    rows = [[" and ".join(pair), Cell(f"{r:+.2f}", r, bar=abs(r))] for r, pair in found[:RELATED]]
    return Table("Columns that go together (rank correlation)", ["Pair", "Correlation"], rows)


def columns_table(learned: Any) -> Table:
    """Every column: its kind, its values, what is missing."""
    head = ["Column", "Kind", "Values", "Range or examples", "Distinct", "Missing"]
    frame = learned.plan.frame
    rows = []
    for column in learned.model.schema.columns[:MOST_COLUMNS]:
        share = column.missing / max(frame.height, 1)
        missing = Cell(f"{share:.1%}", share, bar=min(share, 1.0)) if column.missing else Cell("", 0)
        drawing = Cell("", drawing=_spark(frame[column.name], column.type)) if column.used else ""
        kind = column.kind if column.used else f"{column.kind}, not used"
        distinct = Cell(f"{column.distinct:,}", column.distinct)
        rows.append([column.name, kind, drawing, _typical(column), distinct, missing])
    return Table("The columns", head, rows, extra=[1, 4])


def _spark(series: pl.Series, kind: Kind) -> str:
    """The column's distribution: of numbers and lengths of texts in bins, of words the most frequent."""
    present = series.drop_nulls()
    present = present.gather_every(len(present) // SPARK_ROWS + 1)
    if not len(present):
        return ""
    numbers = kind.sizes(present)
    if numbers is None:
        return spark(counted(present)["rows"].head(SPARKS).to_numpy())
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return ""
    edges = bins(numbers)
    return spark(np.histogram(np.clip(numbers, edges[0], edges[-1]), np.linspace(edges[0], edges[-1], SPARKS + 1))[0])


def _typical(column: Any) -> str:
    if column.low is not None and column.high is not None:
        return f"{column.written(column.low)} to {column.written(column.high)}"
    return " · ".join(shown(example, 30) for example in column.examples[:4])
