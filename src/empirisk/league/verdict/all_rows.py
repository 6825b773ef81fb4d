"""A table that is larger than memory: the winner of the contest on a sample learns from all rows of the files.

The encoder learns numbers and words from all rows, in the first pass over the files, and the vocabularies of texts from
the sample; the second pass encodes all rows, block by block, into numbers on disk, from which the machine learns. Rows
of the test, and rows that equal one of them, are left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.league.contest.fold import limit, sentence, was_cut
from empirisk.league.rows.split import Plan
from empirisk.tables.encoding.in_blocks import OwnEncoder
from empirisk.tables.understanding.schema import with_missing

#: Rows of a block of which an encoder learns.
PIECE = 50_000


def fit_on_files(plan: Plan, pipeline: Pipeline, seconds: float) -> tuple[Pipeline, int, str]:
    """The pipeline with a machine that has learned from all rows, their number, and what is to be said of that.

    ``pipeline`` has learned from the training rows of the sample. It stays where its machine cannot learn from files,
    or not within so many seconds.
    """
    try:
        return _learned(plan, pipeline, seconds)
    except EmpiriskError as refusal:
        said = f"The model learned from the sample alone: {sentence(refusal)}"
        return pipeline, len(plan.train), said


def _learned(plan: Plan, pipeline: Pipeline, seconds: float) -> tuple[Pipeline, int, str]:
    if plan.ruled:
        raise Unsuitable("groups and time_order divide rows that are in memory.")
    encoder, machine = pipeline[0], settled(pipeline[-1])
    rows_of, classes = LearningRows(plan), None if plan.classes is None else len(plan.classes)
    own = OwnEncoder(encoder, (rows_of(piece.frame) for piece in plan.files.encoded(rows_of).pieces(PIECE)), classes)
    table = plan.files.encoded(BlockEncoder(rows_of, own))
    if np.isfinite(seconds):
        limit(machine, seconds)
    machine.fit(table)
    if was_cut(machine):
        raise Unsuitable("there was no time for all rows.")
    limit(machine, None)
    rows = table.table().place.count
    learned = Pipeline([("table", own.encoder), ("machine", machine)])
    return learned, rows, f"The model learned from the {rows:,} rows of the table that the test does not hold."


def settled(machine: Any) -> Any:
    """A copy of a fitted machine, to be fitted again with what it has chosen: its C, and its number of rounds."""
    if not getattr(machine, "learns_in_blocks", False):
        raise Unsuitable(f"{type(machine).__name__} needs its rows in memory.")
    found, parameters = clone(machine), machine.get_params(deep=False)
    if isinstance(parameters.get("C"), str):
        found.set_params(C=float(machine.C_))
    if parameters.get("early_stopping"):
        found.set_params(early_stopping=False, n_estimators=machine.n_estimators_)
    if np.size(parameters.get("categorical_features", ())):
        raise Unsuitable("trees on columns of words need the rows in memory.")
    return found


@dataclass(frozen=True, eq=False)
class LearningRows:
    """Finds the rows of a block that are learned from.

    Parameters
    ----------
    plan : Plan
        What the columns hold, and which rows are those of the test.
    """

    plan: Plan

    @property
    def classes(self) -> NDArray[Any] | None:
        """What the numbers of the targets stand for; None for numbers."""
        return self.plan.classes

    def __call__(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, NDArray[np.float64]]:
        """Their features, and their targets."""
        plan = self.plan
        table = with_missing(frame, plan.missing)
        table = table.filter(pl.Series(plan.target.known(table)))
        y, features = plan.target.values(table), plan.schema.features(table)
        kept = ~features.hash_rows(seed=1).is_in(plan.tested_hashes.implode()).to_numpy()
        if plan.classes is not None:
            kept &= np.isin(y, plan.classes)  # not those that are too rare
            y = np.searchsorted(plan.classes, np.where(kept, y, plan.classes[0]))
        return features.filter(pl.Series(kept)), y[kept].astype(np.float64)


@dataclass(frozen=True, eq=False)
class BlockEncoder:
    """Makes numbers of those rows of a block, and of the next ones as they come."""

    rows_of: LearningRows
    own: OwnEncoder

    @property
    def classes(self) -> NDArray[Any] | None:
        """What the numbers of the targets stand for; None for numbers."""
        return self.rows_of.classes

    def __call__(self, frame: pl.DataFrame) -> tuple[Any, NDArray[np.float64]]:
        """The numbers of the columns, and the targets."""
        features, y = self.rows_of(frame)
        return self.own.transform(features), y
