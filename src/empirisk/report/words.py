"""Numbers, names and sentences of the report."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from empirisk.formats import written

PLAIN = {
    "roc_auc": "area under the ROC",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "mape": "mean absolute percentage error",
    "r2": "R² (share of the variance explained)",
    "average_precision_macro": "mean average precision of the classes",
    "f1": "F1 (mean of precision and recall)",
    "f1_macro": "F1, mean over classes",
    "roc_auc_ovr": "area under the ROC, mean over classes",
}
#: Letters of a value that are shown.
LETTERS = 100


def plain(name: str) -> str:
    """The name of a score in words.

    >>> plain("balanced_accuracy"), plain("neg_log_loss")
    ('balanced accuracy', 'negative log loss')
    """
    return PLAIN.get(name, name.replace("neg_", "negative ").replace("_", " "))


def shown(value: Any, letters: int = LETTERS) -> str:
    """A value of a table, not too long; nothing where it is missing.

    >>> shown(0.25), shown(None), shown("letters", 5)
    ('0.25', '', 'lett…')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return written(value)
    text = " ".join(str(value).split())
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def error_of(metric: str) -> tuple[str, Callable[[ArrayLike, ArrayLike], float]]:
    """The one measure of errors of numbers that goes with a metric: mean absolute, or root mean squared.

    >>> name, size = error_of("rmse")
    >>> name, size([1.0, 2.0], [1.0, 4.0]) == 2**0.5
    ('root mean squared error', True)
    """
    if metric in ("mae", "mape") or "absolute" in metric:
        return PLAIN["mae"], lambda truth, said: float(np.mean(np.abs(np.subtract(truth, said))))
    return PLAIN["rmse"], lambda truth, said: float(np.sqrt(np.mean(np.square(np.subtract(truth, said)))))


def named(learned: Any, label: Any) -> str:
    """A class in a sentence: the word for it, or which number of the target it is."""
    return label if isinstance(label, str) and not label.isdecimal() else f"{learned.target} = {label}"


def code(file: str) -> str:
    """How to use the model."""
    return f'import empirisk as er\nmodel = er.load({file!r})\nmodel.predict(er.tables.read("new.csv"))'
