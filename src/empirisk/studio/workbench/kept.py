"""The rows that a run keeps: those that judged the model, with what it said of them, and some that it learned from.

Results answer from these alone: at once, whatever the size of the table, and after the table is gone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.files.atomic import whole_file
from empirisk.league.result import Learned
from empirisk.service.bodies import Refusal

ROWS, ANSWERS = "rows.parquet", "answers.parquet"
KNOWN = 5000  # rows that the model learned from, among which the nearest ones are found
NONE_KEPT = "This model came without its table; score a file to see how it does."


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows of a run, the test rows first.

    Attributes
    ----------
    frame : DataFrame
        The columns that the model takes.
    numbers : array
        Which row of the table each of them was, from 0.
    truth : array
        The target of each.
    said : array
        What the model says of the test rows.
    shares : array, test rows x classes, or None
        The probabilities of the test rows, where there are some.
    """

    frame: pl.DataFrame
    numbers: NDArray
    truth: NDArray
    said: NDArray
    shares: NDArray[np.float64] | None

    @property
    def test(self) -> NDArray:
        """Places of the test rows."""
        return np.arange(len(self.said))

    @property
    def known(self) -> NDArray:
        """Places of rows that the model learned from."""
        return np.arange(len(self.said), len(self.truth))

    @classmethod
    def of(cls, learned: Learned) -> "KeptRows":
        """The rows to keep of a run that is over."""
        plan, tested = learned.plan, learned.test
        some = np.linspace(0, len(plan.train) - 1, min(KNOWN, len(plan.train))).astype(int)
        places = np.concatenate([plan.test, plan.train[some]])
        return cls(plan.frame[places], plan.numbers[places], plan.y[places], tested.predictions, tested.probabilities)

    def write(self, folder: Path) -> None:
        """Write them beside the model; columns of answers are told by their place, for names may be anything."""
        shares = [] if self.shares is None else list(self.shares.T)
        missing = len(self.known)
        padded = [_series(k, part, missing) for k, part in enumerate([self.said, *shares], 2)]
        answers = pl.DataFrame([_series(0, self.numbers), _series(1, self.truth), *padded])
        for name, frame in ((ROWS, self.frame), (ANSWERS, answers)):
            with whole_file(folder / name) as file:
                frame.write_parquet(file)

    @classmethod
    def read(cls, folder: Path) -> "KeptRows":
        """The rows of a folder; a refusal where there are none."""
        if not (folder / ANSWERS).exists():
            raise Refusal(409, NONE_KEPT)
        numbers, truth, said, *shares = pl.read_parquet(folder / ANSWERS).get_columns()
        tested = len(said) - said.null_count()
        return cls(
            pl.read_parquet(folder / ROWS),
            numbers.to_numpy(),
            truth.to_numpy(),
            said.head(tested).to_numpy(),
            np.column_stack([share.head(tested).to_numpy() for share in shares]) if shares else None,
        )


def _series(place: int, values: Any, missing: int = 0) -> pl.Series:
    """A column by its place, with nothing in the last rows."""
    return pl.Series(str(place), values).extend_constant(None, missing)
