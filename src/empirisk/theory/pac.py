"""Probably approximately correct: what a finite class of hypotheses can be trusted with."""

import math
import sys

from empirisk.errors import EmpiriskError
from empirisk.formats import percent
from empirisk.theory.bound import (
    Bound,
    check_above_zero,
    check_open,
    check_rate,
    check_whole,
    complexity_bound,
    error_bound_of,
)

#: Logarithm of the largest float.
LARGEST_LOG = math.log(sys.float_info.max)


def sample_size(hypotheses: float, epsilon: float, delta: float) -> Bound:
    """Rows after which a hypothesis without training errors has, surely enough, a small true error.

        n = ceil( log(|H| / delta) / epsilon )

    Parameters
    ----------
    hypotheses : float or int
        How many hypotheses there are to choose from, |H|; a whole number of any size.
    epsilon : float
        The true error that is acceptable.
    delta : float
        The probability with which the statement may fail.

    Returns
    -------
    Bound
        ``value`` is the number of rows; never vacuous.

    Examples
    --------
    >>> print(er.theory.sample_size(hypotheses=2**20, epsilon=0.05, delta=0.01))
    With 370 rows, a hypothesis out of 1.05e+06 that makes no training error has a true error of at most 5 %, except with probability 1 %.
    """  # noqa: E501
    log_count, shown = _counted(hypotheses)
    epsilon, delta = check_open("epsilon", epsilon), check_open("delta", delta)
    rows = math.ceil((log_count - math.log(delta)) / epsilon)
    return Bound(
        rows,
        False,
        f"With {rows} rows, a hypothesis out of {shown} that makes no training error has a true error of at "
        f"most {percent(epsilon)}, except with probability {percent(delta)}.",
    )


def finite_class_bound(hypotheses: float, n: int, delta: float = 0.05, training_error: float = 0.0) -> Bound:
    """The true error of the hypothesis chosen from a finite class after n rows.

        log(|H| / delta) / n                                  without training errors
        training error + sqrt( log(|H| / delta) / (2 n) )     with some

    Parameters
    ----------
    hypotheses : float
        How many hypotheses there are to choose from, |H|.
    n : int
        Training rows.
    delta : float
        The probability with which the bound may fail.
    training_error : float
        Share of training rows that the chosen hypothesis gets wrong.

    Returns
    -------
    Bound

    Examples
    --------
    >>> round(er.theory.finite_class_bound(1000, n=200, delta=0.05).value, 4)
    0.0495
    >>> er.theory.finite_class_bound(1000, n=5, training_error=0.1).vacuous
    True
    """
    log_count, shown = _counted(hypotheses)
    n, delta = check_whole("n", n), check_open("delta", delta)
    training_error = check_rate("training_error", training_error)
    size = (log_count - math.log(delta)) / n
    value = size if training_error == 0 else training_error + math.sqrt(size / 2)
    what = f"The best of {shown} hypotheses on {n} rows, with a training error of {percent(training_error)},"
    return error_bound_of(value, f"{what} has a true error of", delta)


def description_bound(bits: float, n: int, delta: float = 0.05, training_error: float = 0.0) -> Bound:
    """The true error of a hypothesis that takes few bits to write down, in a code fixed before the data.

        training error + sqrt( (bits log 2 + log(2 / delta)) / (2 n) )

    Parameters
    ----------
    bits : float
        Length of the description in a prefix-free code.
    n : int
        Training rows.
    delta : float
        The probability with which the bound may fail.
    training_error : float
        Share of training rows that the hypothesis gets wrong.

    Returns
    -------
    Bound

    Examples
    --------
    >>> round(er.theory.description_bound(bits=50, n=1000).value, 4)
    0.1385
    """
    bits, n = check_above_zero("bits", bits), check_whole("n", n)
    delta, training_error = check_open("delta", delta), check_rate("training_error", training_error)
    complexity = (bits * math.log(2) + math.log(2 / delta)) / 2
    return complexity_bound(f"a description of {bits:.4g} bits", complexity, n, training_error, delta)


def _counted(hypotheses: float) -> tuple[float, str]:
    """The logarithm of the number of hypotheses, which may be beyond every float, and the number as text."""
    if check_above_zero("hypotheses", hypotheses) < 1:
        raise EmpiriskError(f"hypotheses={hypotheses!r} must be at least 1: the number of hypotheses to choose from.")
    size = math.log(hypotheses)
    if hypotheses < 1e5:  # a number that is read at a glance
        return size, f"{hypotheses:g}"
    return size, f"{hypotheses:.3g}" if size < LARGEST_LOG else f"10^{size / math.log(10):.0f}"
