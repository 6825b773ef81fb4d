"""What more time would probably gain, by how the best score has risen so far."""

from collections.abc import Sequence

import numpy as np

from empirisk.formats import metric_name, number

#: Seconds that are asked about, and times that the time was doubled before, by which its next doubling is judged.
MORE_SECONDS, DOUBLINGS = 60.0, 3
#: Seconds from which the score is judged by the machines, and no longer by how they were read and compiled.
LEAST_SECONDS = 1.0


def gain(
    curve: Sequence[tuple[float, float]], more: float = MORE_SECONDS, top: float = np.inf
) -> tuple[float, float, float] | None:
    """What the score would probably gain, at the least and at the most; None where the curve is too short to tell.

    Scores rise about as much with each doubling of the time, and ever less: the last doublings bound the next one. What
    is likely is what they gained on average, and no more than the last one, or the last ones, did.

    >>> gain([(2.0**k, 0.8 + 0.01 * k) for k in range(6)], more=32.0)
    (0.01, 0.01, 0.01)
    >>> gain([(1.0, 0.9), (64.0, 0.9)], more=64.0)
    (0.0, 0.0, 0.0)

    Parameters
    ----------
    curve : list of (seconds, score)
        The best score at each moment, the last at its end.
    more : float
        Seconds that would be added.
    top : float
        The largest score that there is.
    """
    times, scores = np.array(curve, dtype=np.float64).reshape(-1, 2).T
    if not len(times) or times[-1] < 2 * max(times[0], LEAST_SECONDS):
        return None
    ends = times[-1] / 2.0 ** np.arange(DOUBLINGS + 1)
    ends = ends[ends >= max(times[0], LEAST_SECONDS)]
    at = scores[np.searchsorted(times, ends, side="right") - 1]
    gains = np.maximum(at[:-1] - at[1:], 0.0)  # of few rows the score may be better by luck
    doublings = np.log2(1 + more / times[-1])
    # The least squares among gains that never rise from one doubling to the next, at the last one.
    likely = (np.cumsum(gains) / np.arange(1, len(gains) + 1)).min()
    found = np.minimum(doublings * np.array([likely, gains.min(), gains.max()]), max(top - scores[-1], 0.0))
    return tuple(round(float(each), 12) for each in found)  # type: ignore[return-value]


def sentence(curve: Sequence[tuple[float, float]], metric: str, sign: float, top: float = np.inf) -> str:
    """The gain in words; empty where it is not known.

    >>> sentence([(2.0**k, 0.8 + 0.01 * k) for k in range(6)], "accuracy", 1.0)
    'Another 60 s would probably raise the accuracy by 0.015, by how it rose so far.'
    >>> sentence([(1.0, 0.9), (64.0, 0.9)], "accuracy", 1.0)
    'Another 60 s would probably not raise the accuracy: it rose no more when the time doubled.'
    """
    found = gain(curve, top=top)
    if found is None:
        return ""
    likely, low, high = (number(each, 2) for each in found)
    changes = "lower" if sign < 0 else "raise"
    changed = "fell" if sign < 0 else "rose"
    name, more = metric_name(metric), f"Another {MORE_SECONDS:.0f} s would probably"
    if likely == number(0.0, 2):
        most = "" if high == likely else f", and by {high} at most"
        return f"{more} not {changes} the {name}{most}: it {changed} no more when the time doubled."
    between = f", between {low} and {high}" if low != high else ""
    return f"{more} {changes} the {name} by {likely}{between}, by how it {changed} so far."
