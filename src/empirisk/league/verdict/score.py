"""A model on rows that are known by now: how well it does, and whether they look like those it learned from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from empirisk import tables
from empirisk.errors import EmpiriskError
from empirisk.evaluation.answers import answers_of
from empirisk.evaluation.intervals import EvaluatedPart, Score
from empirisk.league.verdict.judge import metric_for, scores_of
from empirisk.messages import coded
from empirisk.tables.understanding.profile import Drift, drift


@dataclass(frozen=True, eq=False)
class Scored:
    """What `score` found.

    Attributes
    ----------
    rows : int
        Rows that were scored.
    scores : list of Score
        With their intervals, the metric asked for first.
    before : dict
        The scores of the test when the model was learned, by name.
    drift : list of Drift
        Columns that are spread otherwise than in training, the most first.
    warnings : list of str
        What was left out.
    """

    rows: int
    scores: Sequence[Score]
    before: dict[str, Any]
    drift: Sequence[Drift]
    warnings: Sequence[str]


def score(model: tables.TableModel, data: Any, metric: str | None = None, header: bool = True) -> Scored:
    """Score a model on a table that holds the target, and compare its columns with those learned from.

    Parameters
    ----------
    model : TableModel
        What `learn` found, or `load` read.
    data : table or path
        Rows with the columns of the model and the target.
    metric : str, optional
        A score to begin with; of numbers the one that decided when the model learned, if not given.
    header : bool
        Whether the first line of a file holds names.

    Examples
    --------
    >>> found = er.learn("iris", machines=["logistic"])
    >>> scored = er.score(found.model, er.tables.read("iris"))
    >>> scored.rows, scored.scores[0].name, scored.drift
    (150, 'accuracy', [])
    """
    table = tables.read(data, header=header)
    target = model.target
    if target.name not in table.columns:
        raise EmpiriskError(f"The table lacks the column {target.name!r} that the model predicts; add the true values.")
    notes, known = [], target.known(table)
    if not known.all():
        lost = f"{int((~known).sum()):,} rows without a value of {target.name!r} were left out."
        notes.append(coded("ER029", lost))
        table = table.filter(pl.Series(known))
    if table.height == 0:
        raise EmpiriskError(f"No row has a value of {target.name!r}; there is nothing to score.")
    truth, classes = target.values(table), np.array(target.classes) if target.classes else None
    if classes is not None and not np.isin(truth, classes).all():
        new = ~np.isin(truth, classes)
        unknown = f"{int(new.sum()):,} rows of classes that the model does not know were left out."
        notes.append(coded("ER029", unknown))
        table, truth = table.filter(pl.Series(~new)), truth[~new]
        if table.height == 0:
            raise EmpiriskError(f"No row has a class of {target.name!r} that the model knows; is it the right model?")
    frame = model.schema.features(model.complete(table))
    part = EvaluatedPart(np.arange(len(truth)), truth, answers_of(model.pipeline, frame, classes), None)
    if metric is None and classes is None:  # that which decided when it learned
        metric = next(iter(model.scores), None)
    first = [] if metric is None else [metric_for(metric, classes, balance=False)]
    scores = scores_of(part, model.pipeline, first)
    return Scored(len(truth), scores, dict(model.scores), drift(model.profile, frame), notes)
