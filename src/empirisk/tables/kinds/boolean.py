"""Truth values: true and false, yes and no, 1 and 0."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.tables.kinds.base import Forms, Input, Sample, cleaned, shown
from empirisk.tables.kinds.ordered import Ordered

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

TRUE, FALSE = ("true", "yes", "y", "t", "1", "1.0"), ("false", "no", "n", "f", "0", "0.0")
#: The same in small and capital letters: an exported graph has no way to make letters small.
SPELLINGS = sorted({"".join(word) for each in TRUE + FALSE for word in product(*zip(each, each.upper(), strict=True))})
MOST = 8  # different ways in which a column writes them: "Yes", "yes", "Y" and so on


class Boolean(Ordered):
    """True or false, as 1 and 0."""

    name = "boolean"
    dtype = pl.Float64()
    dtypes = (pl.Boolean,)
    expected = "true or false"
    task = "classification"
    drawn = "levels"
    truth = True
    parts = ("",)
    json = ("boolean", "string", "number", "null")

    def recognise(self, sample: Sample) -> str | None:
        few = sample.few
        if not 0 < few.n_unique() <= MOST or parse_truth(few).null_count():
            return None
        return None if parse_truth(sample.strict).null_count() else ""

    def parse(self, series: pl.Series, form: str) -> pl.Series:
        if series.dtype == pl.Boolean:
            return series.cast(pl.Float64)
        return parse_truth(cleaned(series, self.markers))

    def range(self, present: pl.Series) -> tuple[float | None, float | None]:
        return None, None

    def numbers(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        return pl.DataFrame(columns).to_numpy()

    def graph_numbers(self, x: Any, column: "Column", words: Any) -> Any:
        return words.lookup(words.trimmed(x), {word: float(word.lower() in TRUE) for word in SPELLINGS})

    def graph_trials(self, column: "Column", levels: list[str]) -> list[Any]:
        return ["yes", "No", "TRUE", "f", "1", "0.0"]

    def groups(self, series: pl.Series, most: int):
        for value in series.drop_nulls().unique().sort().to_list():
            yield f"is {self.level_name(value)}", (series == value).fill_null(value=False).to_numpy()

    def level_name(self, value: Any) -> str:
        return ("no", "yes")[int(value)]

    def as_json(self, value: Any) -> Any:
        return None if value is None else self.level_name(value)

    def sizes(self, series: pl.Series) -> NDArray[np.float64] | None:
        return None

    def example(self, column: "Column", words: list[str]) -> Any:
        return self.level_name(True)

    def input(self, words: list[str]) -> Input:
        return Input("select", ("yes", "no"))

    def read(self, value: Any, column: "Column", known: Forms) -> float:
        text = str(value).lower() if isinstance(value, (str, int, float)) else ""
        if text not in TRUE + FALSE:
            raise ValueError(f"{shown(value)} is neither true nor false")
        return float(text in TRUE)


def parse_truth(text: pl.Series) -> pl.Series:
    """Text as 1 and 0, null where it is neither true nor false.

    >>> import polars as pl
    >>> parse_truth(pl.Series(["Yes", "no", "perhaps"])).to_list()
    [1.0, 0.0, None]
    """
    lower = text.str.to_lowercase()
    truth = lower.is_in(TRUE).cast(pl.Float64)
    return truth.set(~(lower.is_in(TRUE) | lower.is_in(FALSE)) | lower.is_null(), None)
