"""Answers to rows by machines that have not seen them."""

from typing import Any

import numpy as np

from empirisk.evaluation.answers import Answers, answers_of
from empirisk.evaluation.data import Data, fit, seeded, seeds
from empirisk.evaluation.splits import Rows, Split
from empirisk.runs.parallel import spread


def held_out(machine: Any, data: Data, splits: list[Split], random_state: Any) -> tuple[Rows, Answers]:
    """The test rows of all splits, and what machines trained in each say about them."""
    drawn = seeds(random_state, len(splits))

    def work(number: int) -> Answers:
        inside, outside = data.split(*splits[number])
        return answers_of(fit(seeded(machine, drawn[number]), inside), outside.X, data.classes)

    parts = spread(work, range(len(splits)))
    return np.concatenate([test for _, test in splits]), Answers.join(parts)
