"""Columns that may say whom a row is of, a patient or a customer: rows of one of them are no test of each other."""

import re

import polars as pl

from empirisk.tables.understanding.schema import Schema

MIN_GROUPS = 10  # values: fewer are kinds of rows, which new rows have too
MIN_ROWS = 2  # of a value, on average
NAMED_AS_ID = re.compile(r"(^|[\W_])(id|nr|no|number|code|key)$|[a-z]I[dD]$", re.IGNORECASE)
CODE = r"^[A-Za-z]{1,4}[-_ ]?[0-9]{2,}$"


def perhaps_groups(table: pl.DataFrame, schema: Schema) -> list[str]:
    """Columns whose values are in several rows each, and that are named as ids or written as codes, such as P014.

    >>> table = pl.DataFrame({"patient": [f"P{k // 3:03d}" for k in range(60)], "age": [k % 30 for k in range(60)]})
    >>> perhaps_groups(table, er.tables.understand(table))
    ['patient']
    """
    repeated = [
        column.name
        for column in schema.columns
        if MIN_GROUPS <= column.distinct <= table.height / MIN_ROWS and _is_whole(table[column.name])
    ]
    return [name for name in repeated if NAMED_AS_ID.search(name) or _are_codes(table[name])]


def _is_whole(series: pl.Series) -> bool:
    return series.dtype == pl.String or series.dtype.is_integer()


def _are_codes(series: pl.Series) -> bool:
    return series.dtype == pl.String and bool(series.drop_nulls().str.strip_chars().str.contains(CODE).all())
