"""Numbers, values and names of scores as people write them, and texts that others wrote as they may be shown."""

import math
import re
from typing import Any

from empirisk.errors import EmpiriskError

#: Letters that steer a terminal or turn the direction of reading, ends of lines, and halves of letters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BUT_LINES = re.compile("(?![\n\t])" + _STEERING.pattern)

#: Names of scores in words, where their own name is an abbreviation.
METRIC_NAMES = {
    "roc_auc": "area under the ROC",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "mape": "mean absolute percentage error",
    "r2": "R² (share of the variance explained)",
    "d2": "D² (share of the loss of the best constant explained)",
    "average_precision_macro": "mean average precision of the classes",
    "f1": "F1 (mean of precision and recall)",
    "f1_macro": "F1, mean over classes",
    "roc_auc_ovr": "area under the ROC, mean over classes",
}


def written(value: float) -> str:
    """A number as people write it.

    >>> written(1455440.0), written(0.25), written(1e20)
    ('1,455,440', '0.25', '1e+20')
    """
    whole = value == round(value) if abs(value) < 1e6 else True
    return f"{value:,.0f}" if whole and 1e4 <= abs(value) < 1e15 else f"{value:.6g}"


def number(value: float, digits: int = 3) -> str:
    """A number as people write it, rounded to some digits.

    >>> number(48_592.3), number(0.0312345), number(1.5e12), number(318.0, 2), number(999.9)
    ('48,600', '0.0312', '1.5e+12', '320', '1,000')
    """
    if not math.isfinite(value):
        return "-"
    short = f"{value:.{digits}g}"
    whole = min(10**digits, 1e3) <= abs(float(short)) < 1e9
    return f"{float(short):,.0f}" if whole else short


def percent(share: float, places: int | None = None) -> str:
    """A share in per cent, to so many decimal places; without them to three digits.

    >>> percent(0.3284), percent(1.0, 1), percent(0.05), percent(1e-9), percent(-1e-17, 0)
    ('32.8 %', '100.0 %', '5 %', 'less than 0.0001 %', '0 %')
    """
    if places is not None:
        return f"{round(100 * share, places) + 0.0:.{places}f} %"  # no minus before a zero
    return "less than 0.0001 %" if 0 < share < 1e-6 else f"{100 * share:.3g} %"


def count(some: int, word: str) -> str:
    """A number of things.

    >>> count(1, "row"), count(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{some:,} {word}{'' if some == 1 else 's'}"


def shown(value: Any, letters: int = 100) -> str:
    """A value of a table, not too long; nothing where it is missing.

    >>> from datetime import datetime
    >>> shown(0.25), shown(None), shown("letters", 5), shown(datetime(2024, 5, 1))
    ('0.25', '', 'lett…', '2024-05-01')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return written(value)
    text = " ".join(str(value).split()).removesuffix(" 00:00:00")  # a day
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def metric_name(name: str) -> str:
    """The name of a score in words.

    >>> metric_name("balanced_accuracy"), metric_name("neg_log_loss"), metric_name("mean_poisson")
    ('balanced accuracy', 'negative log loss', 'mean poisson loss')
    """
    of_loss = name.startswith("mean_") and not name.endswith(("error", "deviance", "loss"))
    return METRIC_NAMES.get(name, name.replace("neg_", "negative ").replace("_", " ") + " loss" * of_loss)


def printable(text: str, lines: bool = False) -> str:
    """A text in which letters that steer a terminal are codes; ends of lines are too, unless ``lines`` may be several.

    >>> print(printable("a" + chr(27) + "[31mb"))
    a\\x1b[31mb
    """
    return (_BUT_LINES if lines else _STEERING).sub(lambda one: one[0].encode("unicode_escape").decode(), text)


#: Seconds of a unit of time.
UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def seconds_of(limit: str) -> float:
    """Seconds from text such as "90", "60s", "5m" or "1h".

    >>> seconds_of("5m")
    300.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|)\s*", limit)
    if match is None:
        raise EmpiriskError(f"time={limit!r} is not a time; write it like 60s, 5m or 1h.")
    return float(match[1]) * UNITS[match[2]]
