"""Was it luck? The binomial tail, and what it says about an error rate when it is turned round."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom, norm

from empirisk.errors import EmpiriskError
from empirisk.formats import percent
from empirisk.theory.bound import Bound, chance, check_counts, check_open, check_rate

#: The level of significance: a result less probable than this is not put down to chance.
SURPRISE = 0.05


def luck(errors: int, n: int, rate: float = 0.5) -> Bound:
    """How likely at most this many errors are for a machine whose true error rate is ``rate``.

        P[at most m errors in n | e] = sum_{k=0..m} binomial(n, k) e^k (1 - e)^(n - k)

    Parameters
    ----------
    errors, n : int
        Errors m among n test rows that had no part in the fit.
    rate : float
        The error rate e that could be behind it: 1/2 for a coin, or that of a rival.

    Returns
    -------
    Bound
        ``value`` is the probability; vacuous where the errors are no fewer than ``rate`` lets expect.

    Examples
    --------
    >>> found = er.luck(2, 10)
    >>> found.value
    0.0546875
    >>> print(er.luck(2, 20))
    With a true error rate of 50 %, at most 2 errors in 20 happen with probability 0.0201 %: hardly luck.
    """
    errors, n = check_counts(errors, n)
    rate = check_rate("rate", rate)
    value = float(binom.cdf(errors, n, rate))
    vacuous = errors >= rate * n
    said = "that is no fewer than expected, so it shows nothing" if vacuous else verdict(value)
    sentence = f"With a true error rate of {percent(rate)}, at most {errors} errors in {n} happen with probability "
    return Bound(value, vacuous, f"{sentence}{chance(value)}: {said}.")


def verdict(probability: float) -> str:
    """What people call an event of such a probability."""
    return "it could be luck" if probability > SURPRISE else "hardly luck"


def error_bound(errors: int, n: int, confidence: float = 0.95) -> Bound:
    """The largest true error rate that goes with so few errors: the binomial tail, turned round.

        max { e : P[at most m errors in n | e] >= 1 - confidence }

    Parameters
    ----------
    errors, n : int
        Errors among n test rows that had no part in the fit.
    confidence : float
        How often such a statement is to be right.

    Returns
    -------
    Bound
        ``value`` is the rate; vacuous where it is one half or more.

    Examples
    --------
    >>> round(er.theory.error_bound(0, 100).value, 4)  # about 3/n
    0.0295
    """
    errors, n = check_counts(errors, n)
    confidence = check_open("confidence", confidence)
    value = 1.0 if errors == n else float(beta.ppf(confidence, errors + 1, n - errors))
    sentence = f"{errors} errors in {n}: the true error rate is at most {percent(value)}, with {percent(confidence)}"
    return Bound(value, value >= 0.5, f"{sentence} confidence.")


@dataclass(frozen=True)
class ErrorInterval(Bound):
    """An interval for a true error rate; unpacks as ``low, high``.

    Attributes
    ----------
    value : float
        The observed rate.
    low, high : float
        The limits; ``interval`` is both.
    vacuous : bool
        Whether the interval holds one half.
    meaning : str
        One sentence.

    Examples
    --------
    >>> low, high = er.theory.error_interval(5, 100)
    >>> round(low, 4), round(high, 4)
    (0.0164, 0.1128)
    """

    low: float = 0.0
    high: float = 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    def __iter__(self) -> Iterator[float]:
        return iter(self.interval)


def error_interval(errors: int, n: int, confidence: float = 0.95, method: str = "clopper_pearson") -> ErrorInterval:
    """An interval that holds the true error rate behind m errors in n test rows.

        P[at least m errors | low] = P[at most m errors | high] = (1 - confidence) / 2

    Parameters
    ----------
    errors, n : int
        Errors among n test rows that had no part in the fit.
    confidence : float
        How often such an interval holds the rate.
    method : {"clopper_pearson", "wilson"}
        Both binomial tails turned round, which never fails too often; or Wilson's, shorter, right on average.

    Returns
    -------
    ErrorInterval

    Examples
    --------
    >>> print(er.theory.error_interval(5, 100))
    5 errors in 100: the true error rate lies between 1.64 % and 11.3 %, with 95 % confidence.
    """
    errors, n = check_counts(errors, n)
    confidence = check_open("confidence", confidence)
    if method not in METHODS:
        raise EmpiriskError(f"method={method!r} is not known; use one of {sorted(METHODS)}.")
    low, high = METHODS[method](errors, n, confidence)
    sentence = f"{errors} errors in {n}: the true error rate lies between {percent(low)} and {percent(high)}, with "
    text = f"{sentence}{percent(confidence)} confidence."
    return ErrorInterval(errors / n, low <= 0.5 <= high, text, low, high)


def clopper_pearson(successes: float, n: float, confidence: float) -> tuple[float, float]:
    """Both tails turned round; counts need not be whole."""
    tail = (1 - confidence) / 2
    low = 0.0 if successes <= 0 else float(beta.ppf(tail, successes, n - successes + 1))
    high = 1.0 if successes >= n else float(beta.ppf(1 - tail, successes + 1, n - successes))
    return low, high


def wilson(successes: float, n: float, confidence: float) -> tuple[float, float]:
    """The rates that a normal test with their own variance does not reject; counts need not be whole."""
    z = norm.ppf((1 + confidence) / 2)
    rate, shrink = successes / n, 1 + z**2 / n
    middle = (rate + z**2 / (2 * n)) / shrink
    half = z / shrink * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    # At its limits the formula gives 0 and 1 up to rounding.
    return 0.0 if rate == 0 else max(0.0, float(middle - half)), 1.0 if rate == 1 else min(1.0, float(middle + half))


METHODS = {"clopper_pearson": clopper_pearson, "wilson": wilson}
