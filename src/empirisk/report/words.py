"""Sentences of the report."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from empirisk.formats import METRIC_NAMES

#: The rule by which one of the candidates is chosen, as reports state it.
CHOSEN = {
    "simple": "the simplest that is not worse than the best by more than one standard error of their difference, nor "
    "by more than 1 % of what the best gains over guessing; on one fold, the best",
    "best": "the best",
}
RULE = (
    "The machine chosen is {}. One that had the time for fewer folds than another is better only if its score "
    "is, and on the folds that both have played by more than chance between folds."
)


def error_of(metric: str) -> tuple[str, Callable[[ArrayLike, ArrayLike], float]]:
    """The one measure of errors of numbers that goes with a metric: mean absolute, or root mean squared.

    >>> name, size = error_of("rmse")
    >>> name, size([1.0, 2.0], [1.0, 4.0]) == 2**0.5
    ('root mean squared error', True)
    """
    if metric in ("mae", "mape") or "absolute" in metric:
        return METRIC_NAMES["mae"], lambda truth, said: float(np.mean(np.abs(np.subtract(truth, said))))
    return METRIC_NAMES["rmse"], lambda truth, said: float(np.sqrt(np.mean(np.square(np.subtract(truth, said)))))


def named(learned: Any, label: Any) -> str:
    """A class in a sentence: the word for it, or which number of the target it is."""
    return label if isinstance(label, str) and not label.isdecimal() else f"{learned.target} = {label}"


def code(file: str) -> str:
    """How to use the model."""
    return f'import empirisk as er\nmodel = er.load({file!r})\nmodel.predict(er.tables.read("new.csv"))'
