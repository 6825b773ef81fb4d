"""Scores on out-of-bag rows: each row is judged by the members of an ensemble whose samples do not hold it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import state
from empirisk.contract.outputs import by_label, judged_numbers, like

Array = NDArray[np.float64]

#: What is known of both kinds of answers, where ``oob_score`` asks for them.
JUDGED = state.State(
    oob_error_=state.optional(state.number(finite=False)), oob_score_=state.optional(state.number(finite=False))
)


def _wrong_shares(its: Mapping[str, Any]) -> str | None:
    """What is wrong where answers from a file are not those of the classes."""
    if "oob_decision_function_" not in its:
        return None
    classes, shares = its["classes_"], its["oob_decision_function_"]
    if isinstance(classes, list) != isinstance(shares, list):
        return "oob_decision_function_ is not about the labels of classes_"
    pairs = zip(classes, shares, strict=False) if isinstance(classes, list) else [(classes, shares)]
    same = not isinstance(classes, list) or len(classes) == len(shares) > 1
    fits = same and all(part.shape[1] == len(names) for names, part in pairs)
    return None if fits else "oob_decision_function_ has not one column for each class"


class OutOfBagClasses:
    """The share of wrong classes among out-of-bag rows, and what was said of them."""

    _state = JUDGED | state.State(
        _wrong_shares,
        oob_decision_function_=state.optional(
            state.either(
                state.array("f8", None, None, finite=False), state.several(state.array("f8", None, None, finite=False))
            )
        ),
    )

    classes_: Any

    def _judge_classes(self, shares: Array, wrong: NDArray, judged: Array) -> None:
        """Set the scores from the class shares, which rows are wrong, and the weights of the rows that count."""
        self.oob_error_ = float(judged @ wrong / judged.sum()) if judged.any() else np.nan
        self.oob_score_ = 1.0 - self.oob_error_
        self.oob_decision_function_ = by_label(shares, self.classes_)


class OutOfBagNumbers:
    """Mean squared error and R^2 on out-of-bag rows, and what was predicted for them."""

    _state = JUDGED | state.State(
        oob_prediction_=state.optional(
            state.either(state.array("f8", None, finite=False), state.array("f8", None, "outputs", finite=False))
        ),
        _several=state.optional(state.flag()),  # files of version 0.2 have none
    )

    _several = False

    def _judge_numbers(self, answers: Array, y: NDArray, judged: Array) -> None:
        """Set the scores from the answers (n_rows, n_outputs), and the weights of the rows that count."""
        self.oob_error_, self.oob_score_ = judged_numbers(answers, y, judged)
        self.oob_prediction_ = like(answers, self._several)
