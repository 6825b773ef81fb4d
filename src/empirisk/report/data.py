"""Section of the report about the data: the target, every column, missing values, and correlated pairs of columns."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.formats import count, percent, shown
from empirisk.plots.histograms import bins, frequent
from empirisk.report.figures import picture, spark
from empirisk.report.page_blocks import Cell, Figure, Figures, Paragraph, Section, Table
from empirisk.report.verdict import leading
from empirisk.tables.kinds import Kind
from empirisk.tables.kinds.base import counted

MOST_COLUMNS = 400  # columns in the table of columns: a longer one is not read
MOST_CLASSES = 40  # classes in the table of the target
MOST_LINES = 6  # classes with a curve or colour of their own: more cannot be distinguished
MOST_PAIRS = 4  # important columns that are drawn against the target
CORRELATED_COLUMNS = 20  # important columns of numbers that are compared with each other
CORRELATED_PAIRS = 8  # pairs of correlated columns that are listed
MIN_CORRELATION = 0.3  # absolute rank correlation from which a pair is listed
CORRELATION_ROWS = 3000  # sampled rows: the standard error of a correlation is then 0.02
SPARK_BARS = 16  # bars of a histogram in a cell of the table
SPARK_ROWS = 50_000  # rows, evenly spaced, that such a histogram counts


def data(learned: Any) -> Section:
    """The section: the target, plots of the most important columns, correlated pairs, and the table of columns."""
    schema, plan = learned.model.schema, learned.plan
    columns = len(schema.columns)
    text = f"{count(len(plan.y), 'row')} with a known {learned.target}, and {count(columns, 'other column')}."
    if columns > MOST_COLUMNS:
        text += f" The first {MOST_COLUMNS} are listed."
    blocks: list[Any] = [Paragraph(text)]
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
            Cell(percent(shares[k], 1), shares[k]),
        ]
        for k in order
    ]
    more = f", the {MOST_CLASSES} largest of {len(labels)} classes" if len(labels) > MOST_CLASSES else ""
    return Table(f"The target{more}", [learned.target, "Rows", "Share"], rows)


def pairs(learned: Any) -> Iterator[Figure]:
    """Plots of the most important columns against the target, and of the first two numeric ones against each other."""
    plan, kinds = learned.plan, {column.name: column.type for column in learned.model.schema.used}
    shown_classes = [] if learned.classes is None else sorted(frequent(plan.y, MOST_LINES))
    drawable = [name for name in leading(learned) if kinds[name].drawn]
    for name in drawable[:MOST_PAIRS]:
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


def correlated(learned: Any, least: float) -> list[tuple[tuple[str, str], float]]:
    """The pairs of numeric columns with the largest rank correlations, on a sample of the rows.

    Of many columns the most important ones are compared. One without importance counts too: a machine that learned
    from its twin alone has an effect of the twin that is told with care.
    """
    numbers = learned.model.schema.named(lambda kind: kind.drawn == "numbers")
    first = [name for name in leading(learned) if name in numbers]
    names = list(dict.fromkeys([*first, *numbers]))[:CORRELATED_COLUMNS]
    frame = learned.plan.frame.select(names)
    frame = frame.sample(min(CORRELATION_ROWS, frame.height), seed=0)
    together = list(combinations(names, 2))
    asked = [pl.corr(*pair, method="spearman").alias(str(k)) for k, pair in enumerate(together)]
    values: Any = frame.select(asked).row(0) if asked else ()
    found = [(pair, r) for r, pair in zip(values, together, strict=True) if r is not None and abs(r) >= least]
    return sorted(found, key=lambda entry: -abs(entry[1]))[:CORRELATED_PAIRS]


def correlations(learned: Any) -> Table:
    """The pairs of columns that go together."""
    found = correlated(learned, MIN_CORRELATION)
    rows = [[" and ".join(pair), Cell(f"{r:+.2f}", r, bar=r)] for pair, r in found]
    return Table("Columns that go together (rank correlation)", ["Pair", "Correlation"], rows)


def columns_table(learned: Any) -> Table:
    """Every column: its kind, its values, what is missing."""
    head = ["Column", "Kind", "Values", "Range or examples", "Distinct", "Missing"]
    frame = learned.plan.frame
    rows = []
    for column in learned.model.schema.columns[:MOST_COLUMNS]:
        share = column.missing / max(frame.height, 1)
        dropped = f" ({column.dropped_cells})" if column.dropped else ""
        missing = Cell(f"{percent(share, 1)}{dropped}", share, bar=min(share, 1.0)) if column.missing else Cell("", 0)
        drawing = Cell("", drawing=_spark(frame[column.name], column.type)) if column.used else ""
        kind = column.kind if column.used else f"{column.kind}, not used"
        distinct = Cell(f"{column.distinct:,}", column.distinct)
        rows.append([column.name, kind, drawing, _typical(column), distinct, missing])
    return Table("The columns", head, rows, extra=[1, 4])


def _spark(series: pl.Series, kind: Kind) -> str:
    """A small histogram of a column, or nothing where it has no values."""
    counts = spark_counts(series, kind)
    return spark(counts) if len(counts) else ""


def spark_counts(series: pl.Series, kind: Kind) -> NDArray[np.int64]:
    """Bars of a small histogram: of binned numbers or lengths of texts, or counts of the most frequent words."""
    present = series.drop_nulls()
    present = present.gather_every(len(present) // SPARK_ROWS + 1)
    if not len(present):
        return np.zeros(0, np.int64)
    numbers = kind.sizes(present)
    if numbers is None:
        return counted(present)["rows"].head(SPARK_BARS).to_numpy()
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return np.zeros(0, np.int64)
    edges = bins(numbers)
    counts = np.histogram(np.clip(numbers, edges[0], edges[-1]), edges)[0]
    # Bars of whole bins, of whole numbers then: otherwise some hold one number, and others two or none.
    return np.add.reduceat(counts, np.arange(0, len(counts), -(-len(counts) // SPARK_BARS)))


def _typical(column: Any) -> str:
    if column.low is not None and column.high is not None:
        return f"{column.written(column.low)} to {column.written(column.high)}"
    return " · ".join(shown(example, 30) for example in column.examples[:4])
