"""What every function of the theory returns: a number, whether it says anything, and one sentence."""

import math
import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any

from empirisk.errors import EmpiriskError
from empirisk.formats import percent


@dataclass(frozen=True)
class Bound:
    """A number with its meaning.

    Attributes
    ----------
    value : float
        The number.
    vacuous : bool
        Whether the number excludes nothing, such as an error rate of at most 1.3.
    meaning : str
        One sentence in words; ``str(bound)`` gives it.

    Examples
    --------
    >>> bound = er.theory.sample_size(hypotheses=1000, epsilon=0.1, delta=0.05)
    >>> bound.value, bound.vacuous
    (100, False)
    >>> float(bound)
    100.0
    """

    value: float
    vacuous: bool
    meaning: str

    def __str__(self) -> str:
        return self.meaning

    def __float__(self) -> float:
        return float(self.value)


def error_bound_of(value: float, what: str, delta: float = 0.0, more: str = "") -> Bound:
    """A bound on an error rate that may fail with probability delta, with the warning where it is not below one."""
    vacuous = not value < 1
    failing = f", except with probability {percent(delta)}" if delta else ""
    note = "; the bound is vacuous: more rows or a simpler machine would make it speak" if vacuous else ""
    return Bound(float(value), vacuous, f"{what} at most {percent(value)}{more}{failing}{note}.")


def complexity_bound(what: str, complexity: float, n: int, training_error: float, delta: float) -> Bound:
    """training error + sqrt(complexity / n), in which the complexity pays for the choice made and for delta."""
    value = training_error + math.sqrt(complexity / n)
    what = f"With {what} and a training error of {percent(training_error)} on {n} rows, the true error is"
    return error_bound_of(value, what, delta)


def chance(probability: float) -> str:
    """The probability of what can happen: never none, even where it is too small for a float.

    >>> chance(0.0), chance(0.02)
    ('less than 0.0001 %', '2 %')
    """
    return percent(max(probability, sys.float_info.min))


def _number(value: Any) -> float:
    """The value as a float, infinite for a whole number beyond all floats; NaN where it is no number."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return float(value) if isinstance(value, Real) else math.nan


def check_whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    number = _number(value)
    if isinstance(value, bool) or not number.is_integer() or number < least:
        shown = f"{value!r}" if math.isfinite(number) or not isinstance(value, int) else "a number beyond all floats"
        raise EmpiriskError(f"{name}={shown} must be a whole number of at least {least}.")
    return int(number)


def check_counts(errors: Any, n: Any) -> tuple[int, int]:
    """Errors out of n."""
    errors, n = check_whole("errors", errors, 0), check_whole("n", n)
    if errors > n:
        raise EmpiriskError(f"errors={errors} exceeds n={n}; give the number of errors among n test rows.")
    return errors, n


def check_open(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    if not 0 < _number(value) < 1:
        raise EmpiriskError(f"{name}={value!r} must lie between 0 and 1, both excluded.")
    return float(value)


def check_rate(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    if not 0 <= _number(value) <= 1:
        raise EmpiriskError(f"{name}={value!r} must be a rate from 0 to 1.")
    return float(value)


def check_above_zero(name: str, value: Any) -> float:
    """A positive number, which may be infinite."""
    number = _number(value)
    if not number > 0:
        raise EmpiriskError(f"{name}={value!r} must be a positive number.")
    return number
