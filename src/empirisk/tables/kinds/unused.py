"""Columns that machines do not learn from: those that name rows, have one value, or hold nested values."""

from typing import TYPE_CHECKING

import polars as pl

from empirisk.tables.kinds.base import Kind, Sample
from empirisk.tables.kinds.names import ID_NAME, PAPER_NAME
from empirisk.tables.kinds.worded import Worded

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

FEW_ROWS = 20  # rows below which nothing is called an identifier
YEARS = (1000, 2999)  # numbers between these may be years, which count no rows
LEAST_PAPER = 100  # the least number of a paper that is shared by rows
ALMOST_ALL = 0.9  # of the values of an identifier are different: a tenth may be there twice by mistake


class Identifier(Worded):
    """A name for each row."""

    name = "identifier"
    unused_because = "it names rows"
    names_rows = True

    def recognise(self, sample: Sample) -> str | None:
        distinct, count = sample.present.n_unique(), len(sample.present)
        if count >= FEW_ROWS and distinct == count:
            return ""
        return "" if count >= 5 * FEW_ROWS and distinct > ALMOST_ALL * count else None

    def describe(self, column: "Column") -> str:
        return ""


class Constant(Kind):
    """One value, or none."""

    name = "constant"
    unused_because = "it has one value"

    def recognise(self, sample: Sample) -> str | None:
        return None if len(sample.present) else ""

    def why_not(self, column: "Column") -> str:
        return self.unused_because if column.distinct else "it is empty"

    def target_problem(self, column: "Column") -> str:
        return f"has one value only, {(column.examples or ('',))[0]!r}; there is nothing to learn"


class Nested(Kind):
    """Lists, records and other values that are no single ones."""

    name = "nested"
    unused_because = "its values are records or other nested ones; give their fields as columns"
    dtypes = (pl.Struct, pl.Array, pl.List, pl.Binary, pl.Object)

    def target_problem(self, column: "Column") -> str:
        return "holds lists or other nested values; give single values"


def numbers_rows(series: pl.Series, distinct: int) -> bool:
    """Whether whole numbers only name rows: they count them, or are named like that.

    >>> numbers_rows(pl.Series("InvoiceNo", [536365 + k // 3 for k in range(90)]), 30)
    True
    """
    if len(series) < FEW_ROWS:
        return False
    if distinct < len(series):
        # Several rows of an invoice share its number, which is large: a few small ones would be a count.
        return (
            distinct > FEW_ROWS and bool((series >= LEAST_PAPER).all()) and PAPER_NAME.search(series.name) is not None
        )
    counts = bool((series.diff().drop_nulls() == 1).all()) and not series.is_between(*YEARS).all()
    return counts or ID_NAME.search(series.name) is not None
