"""Classification calibration: whether the least expected loss has the sign of Bayes rule, for every distribution."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.losses import Loss, find

Array = NDArray[np.float64]

BESIDE = 1e-9  # how far beside 0 the one-sided derivatives are taken
ROUNDING = 1e-6  # share of the slopes below which they balance: BESIDE times a curvature of 1000
CLOSER = 1e-7  # two least values that differ by less than this share are equal
PROBABILITIES = np.concatenate([np.arange(0.02, 0.5, 0.04), np.arange(0.52, 1.0, 0.04)])  # none is one half
REACH = 30.0  # predictions tried: exp(-30) is below every difference that counts
GOLDEN = (np.sqrt(5) - 1) / 2  # the share of a bracket that a golden section leaves
SECTIONS = 45  # they leave 2e-8 of a bracket of 2 REACH, and its square, of a smooth least value
#: Probabilities of three classes with one first: some first ones below one half, which tells joint hinges apart.
SIMPLEX = [(0.4, 0.3, 0.3), (0.4, 0.35, 0.25), (0.45, 0.44, 0.11), (0.5, 0.3, 0.2), (0.6, 0.3, 0.1), (0.9, 0.06, 0.04)]


@dataclass(frozen=True)
class Calibration:
    """Whether a loss is classification calibrated; true or false in conditions.

    Attributes
    ----------
    calibrated : bool
        The verdict.
    reason : str
        Why, in one sentence; ``str(calibration)`` gives it.

    Examples
    --------
    >>> if er.theory.is_calibrated("hinge"):
    ...     print("yes")
    yes
    """

    calibrated: bool
    reason: str

    def __bool__(self) -> bool:
        return self.calibrated

    def __str__(self) -> str:
        return self.reason


def is_calibrated(loss: str | Loss) -> Calibration:
    """Whether minimising the expected loss gives the sign of Bayes rule, for every probability of the classes.

    With probability p of y = +1, every minimiser f of  p loss(1, f) + (1 - p) loss(-1, f)  must have the sign of
    2 p - 1. For convex losses this is a matter of slopes at 0: the expected loss must fall to the right of 0 for
    every p > 1/2, and to the left for every p < 1/2; for a loss of the margin, that is  phi'(0) < 0  where phi has a
    derivative there (Bartlett, Jordan and McAuliffe), and else it is not calibrated. Losses that are not convex are
    minimised over a grid, and joint losses of three classes over their scores: there every minimiser must have its
    largest score at the most probable class.

    Parameters
    ----------
    loss : str or Loss
        Any loss of the library, or one that a user wrote; a loss of residuals is taken at y = -1 and 1.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> print(er.theory.is_calibrated("logistic"))
    Logistic() is classification calibrated: its slope at 0 is -0.5, below zero.
    >>> print(er.theory.is_calibrated("perceptron"))
    Perceptron() is not classification calibrated: at 0 its slope jumps from -1 to 0, so 0 is a minimiser for every p from 0.5 to 1.
    >>> bool(er.theory.is_calibrated("crammer_singer")), bool(er.theory.is_calibrated("softmax"))
    (False, True)
    """  # noqa: E501
    part = find(loss)
    if part.joint:
        return _said(part, *_judge_joint(part))
    return _said(part, *(_judge_convex(part) if part.convex else _judge_by_grid(part)))


def _said(loss: Loss, calibrated: bool, why: str) -> Calibration:
    return Calibration(calibrated, f"{loss!r} is {'' if calibrated else 'not '}classification calibrated: {why}.")


def _judge_convex(loss: Loss) -> tuple[bool, str]:
    """By the slopes of loss(1, f) and loss(-1, f) on both sides of f = 0.

    p a + (1 - p) b < 0 for all p in (1/2, 1] where a < 0 and a + b <= 0, since it is linear in p; the same to the left.
    """
    beside = np.array([-BESIDE, BESIDE])
    with np.errstate(all="ignore"):
        positive, negative = (loss.derivative(np.full(2, y), beside) for y in (1.0, -1.0))
    if not (np.isfinite(positive).all() and np.isfinite(negative).all()):
        raise EmpiriskError(
            f"loss={loss!r} has no slope at labels -1 and 1; calibration is about losses of two classes."
        )
    slack = ROUNDING * float(np.abs([positive, negative]).max())
    rises_left, falls_right = negative[0] > 0, positive[1] < 0
    balance = positive + negative  # twice the slope of the expected loss at p = 1/2
    calibrated = bool(rises_left and falls_right and balance[1] <= slack and balance[0] >= -slack)
    if loss.margin_form:
        return calibrated, _margin_reason(float(positive[0]), float(positive[1]), slack)
    if calibrated:
        return True, "at 0 the expected loss falls towards the more probable of -1 and 1 for every p"
    return False, "at 0 the expected loss does not fall towards the more probable of -1 and 1 for every p"


def _margin_reason(left: float, right: float, slack: float) -> str:
    if right - left <= slack:
        return f"its slope at 0 is {left:.4g}, {'below zero' if left < 0 else 'not below zero'}"
    if left >= 0 or right > 0:
        return f"at 0 its slope jumps from {left:.4g} to {right:.4g}, not below zero"
    # 0 minimises where p left - (1 - p) right <= 0 <= p right - (1 - p) left.
    until = left / (left + right)
    return (
        f"at 0 its slope jumps from {left:.4g} to {right:.4g}, so 0 is a minimiser for every p from 0.5 to {until:.4g}"
    )


def _judge_by_grid(loss: Loss) -> tuple[bool, str]:
    """By the definition: on the wrong side of 0, or at it, the expected loss must stay above its least value."""
    f = np.concatenate([-np.geomspace(1e-6, REACH, 2000)[::-1], [0.0], np.geomspace(1e-6, REACH, 2000)])
    positive, negative = (loss.value(np.full(len(f), y), f) for y in (1.0, -1.0))
    for p in PROBABILITIES:
        expected = p * positive + (1 - p) * negative
        least, wrong = expected.min(), expected[f * (2 * p - 1) <= 0].min()
        if wrong - least <= CLOSER * max(abs(least), 1e-3):
            return False, f"at p = {p:.2g} a prediction without the sign of 2 p - 1 has the least expected loss"
    return True, "for every p that was tried, only predictions with the sign of 2 p - 1 have the least expected loss"


def _judge_joint(loss: Loss) -> tuple[bool, str]:
    """By the definition with three classes: a tie with the first class, or worse, must cost more than the least."""
    # Each distribution three times: scores (0, a, b) without limits, with a = 0, and with b = 0. A shift of all scores
    # changes nothing, and the loss is convex, so that a wrong winner as good as the best is as good at the tie already.
    chances = np.repeat(SIMPLEX, 3, axis=0)
    reach = REACH * np.tile([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], (len(SIMPLEX), 1))

    def expected(a: Array, b: Array) -> Array:
        scores = np.column_stack([np.zeros(len(a)), a, b])
        return np.sum([chances[:, k] * loss.value(np.full(len(a), k), scores) for k in range(3)], axis=0)

    least = _golden(lambda a: _golden(lambda b: expected(a, b), reach[:, 1]), reach[:, 0]).reshape(-1, 3)
    for p, (free, *tied) in zip(SIMPLEX, least, strict=True):
        if min(tied) - free <= CLOSER * max(abs(free), 1e-3):
            return False, f"with classes of probability {p} a tie for the largest score has the least expected loss"
    return True, "with three classes, of every distribution tried, the most probable one alone gets the largest score"


def _golden(value: Callable[[Array], Array], reach: Array) -> Array:
    """Elementwise least value of convex functions between -reach and reach, by golden sections."""
    low, high = -reach, reach.copy()
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(SECTIONS):
        falls = at_left > at_right
        low, high = np.where(falls, left, low), np.where(falls, high, right)
        new = np.where(falls, low + GOLDEN * (high - low), high - GOLDEN * (high - low))
        at_new = value(new)
        left, right = np.where(falls, right, new), np.where(falls, new, left)
        at_left, at_right = np.where(falls, at_right, at_new), np.where(falls, at_new, at_left)
    return np.minimum(at_left, at_right)
