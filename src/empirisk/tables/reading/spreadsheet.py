"""Tables of texts that a spreadsheet opens: cells that it would run as formulas begin with an apostrophe."""

import re

import polars as pl

#: How formulas begin, in wide letters too, and what begins so and is none: numbers, and dashes for nothing.
FORMULA = r"^[=+\-@\t\r\n\x00" + "\uff1d\uff0b\uff0d\uff20]"
NUMBER = r"^(?:[+\-]?\s?(?:\d[\d.,']*|\.\d+)(?:[eE][+\-]?\d+)?\s?%?|-+)$"


def harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before texts and names of columns that are formulas to a spreadsheet.

    >>> harmless(pl.DataFrame({"a": ["=1+1", "-3.5", "-"]}))["a"].to_list()
    ["'=1+1", '-3.5', '-']
    """
    texts = frame.select(pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String))
    runs = pl.all().str.contains(FORMULA) & ~pl.all().str.contains(NUMBER)
    safe = texts.select(pl.when(runs).then(pl.all().str.replace("^", "'")).otherwise(pl.all()))
    names = {name: f"'{name}" for name in frame.columns if re.match(FORMULA, name) and not re.match(NUMBER, name)}
    return frame.with_columns(safe.get_columns()).rename(names)
