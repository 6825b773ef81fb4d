"""Machines around others as graphs: searches, thresholds, balanced classes, chosen columns."""

from copy import copy
from typing import Any

import numpy as np

from empirisk.contract.meta import Delegating
from empirisk.exports.registry import Answers, answers, told_by, write_answers
from empirisk.exports.tensor import constant
from empirisk.selection.balance import Balanced
from empirisk.selection.column_choice import ColumnSelector, GreedySelection
from empirisk.selection.combined import CombinedColumns
from empirisk.selection.threshold import Threshold


class Said:
    """A machine whose methods give answers that are known."""

    def __init__(self, machine: Any, found: Answers):
        self.classes_ = constant(machine.classes_)
        for name, answer in found.items():
            setattr(self, name, lambda *_, _answer=answer: _answer)


@write_answers.register(Balanced)
@write_answers.register(Threshold)
def _(machine: Any, x: Any) -> Answers:
    stand_in = copy(machine)
    stand_in.estimator_ = Said(machine, answers(machine.estimator_, x))
    return told_by(stand_in, "predict predict_proba decision_function")


@write_answers.register
def _(machine: Delegating, x: Any) -> Answers:
    return answers(machine.estimator_, x)


@write_answers.register
def _(machine: ColumnSelector, x: Any) -> Answers:
    return {"transform": x[:, np.flatnonzero(machine.support_).tolist()]}


@write_answers.register
def _(machine: GreedySelection, x: Any) -> Answers:
    kept = x[:, np.flatnonzero(machine.support_).tolist()]
    return answers(machine.estimator_, kept) | {"transform": kept}


@write_answers.register
def _(step: CombinedColumns, x: Any) -> Answers:
    pairs = zip(step.left_.tolist(), step.right_.tolist(), step.group_means_, strict=True)
    found = []
    for number, (left, right, means) in enumerate(pairs):
        made = step.combination(number, x[:, left], x[:, right], constant(means) if len(means) else means)
        found.append(np.where(np.isnan(made) | np.isinf(made), np.nan, made)[:, None])
    return {"transform": np.concatenate([x, *found], axis=1)}
