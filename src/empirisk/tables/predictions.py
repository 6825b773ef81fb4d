"""Predictions as a table, beside the columns that say which row is which."""

import polars as pl

from empirisk.tables.model import TableModel


def beside(model: TableModel, frame: pl.DataFrame, keep: bool, interval: float | None = None) -> pl.DataFrame:
    """The predictions beside the columns that name the rows, or beside all of them."""
    complete = model.complete(frame)
    answers = model.answers(complete)
    if interval is not None:
        low, high = model.predict_interval(complete, interval / 100)
        name = model.target.name
        answers = answers.with_columns(pl.Series(f"{name} low", low), pl.Series(f"{name} high", high))
    naming = {column.name for column in model.schema.columns if column.type.names_rows}
    naming |= set() if model.history is None else {model.history.time.name}
    others = [column for column in frame.get_columns() if keep or column.name in naming]
    taken = {column.name for column in others}
    renamed = answers.rename({name: f"predicted {name}" for name in answers.columns if name in taken})
    return pl.DataFrame([*others, *renamed.get_columns()])
