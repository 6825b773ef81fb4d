"""Whether a fit that ended at w = 0 did so by its parts, rather than because the data hold nothing to learn."""

from typing import NamedTuple

import numpy as np
from numpy.linalg import norm

from empirisk.fits.fit import Fit
from empirisk.problem import Problem

#: Correlations of a column with targets or slopes below this share of their lengths are rounding, and so is a penalty
#: below this share of the objective.
ROUNDING = 1e-12


def reason_of_zeros(problems: list[Problem], fits: list[Fit]) -> "Unlearned | None":
    """Why all weights are zero although columns have a say in the losses; None where one is not, or they have none.

    There are two reasons: the best constant has the least loss already, as with the perceptron's loss or in a wide
    tube, or C is too small for any weight to be worth its penalty. Targets that are all alike, and columns that do not
    vary with them, leave nothing to learn, which is no reason to say anything.
    """
    if not all(_is_zero(problem, fit) for problem, fit in zip(problems, fits, strict=True)):
        return None
    return next((_reason(problem) for problem in problems if _is_learnable(problem)), None)


class Unlearned(NamedTuple):
    """Why nothing was learned, and what to do; ``odd``: whether no C would change that, which is worth a warning.

    With a penalty such as l1, weights that are all zero are an answer like any other.
    """

    words: str
    odd: bool


def _is_zero(problem: Problem, fit: Fit) -> bool:
    """Whether w = 0 is the minimum that was found, up to rounding where solvers approach the kinks of the penalty."""
    if not fit.certificate.converged:
        return False
    rounded = not problem.penalty.smooth and problem.penalty_sum(fit.point) <= ROUNDING * fit.certificate.primal
    return rounded or not fit.point.w.any()


def _is_learnable(problem: Problem) -> bool:
    """Whether targets differ, and some column goes with them, or with the slopes of the losses at the best constant."""
    rows = problem.rowspace
    low, high = rows.extremes(problem.y)
    if problem.tilt or low == high:
        return False
    if _is_free(problem):
        mean = rows.dot(problem.weights, problem.y) / float(rows.total(problem.weights))
        pulls = rows.map(lambda weights, y: weights * (y - mean), problem.weights, problem.y)
    else:
        pulls = problem.slopes(problem.constant_predictions)
    design = problem.design
    # What is left of constant columns by a shift is measured by what they were.
    farthest = np.sqrt(rows.extremes(design.squared_rows())[1])
    longest = np.hypot(farthest, 0.0 if design.shift is None else norm(design.shift))
    squares = float(np.sum(design.squared_norms(design.tdot(pulls))))  # behind a kernel a rounding below zero, maybe
    size = float(rows.sum(lambda part: np.abs(part).sum(), pulls))
    return np.sqrt(max(squares, 0.0)) > ROUNDING * longest * size


def _is_free(problem: Problem) -> bool:
    """Whether the best constant has the least loss there is, on every row."""
    return problem.origin_value + problem.conjugates_at_zero <= 0


def _reason(problem: Problem) -> Unlearned:
    """Why w = 0 is the minimum, and the remedy."""
    if _is_free(problem):
        remedy = "a smaller epsilon" if problem.loss.residual_form else "loss='hinge', or er.Perceptron"
        return Unlearned(f"a constant has the least loss of {problem.loss!r} on every row; use {remedy}", odd=True)
    critical = problem.critical_C
    # At a corner of the loss the slopes are any of many, and the limit is about that of one of them.
    known = f" below C={critical:.3g}" if problem.loss.smooth and np.isfinite(critical) else ""
    return Unlearned(f"no weight is worth its penalty{known}; raise C", odd=False)
