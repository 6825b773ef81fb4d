"""What solvers need of a problem: statements that are compared with what its loss, penalty and design say."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from empirisk.problem import Problem


class Need(NamedTuple):
    """Something that a solver needs: in words that follow "it needs", and whether a problem has it.

    >>> Need("a convex loss", lambda problem: problem.loss.convex).words
    'a convex loss'
    """

    words: str
    holds: Callable[[Problem], bool]


# --- the design and the outputs ---------------------------------------------------------------------------------------
EXPLICIT = Need("explicit features, not a kernel", lambda p: not p.design.implicit)
KERNEL = Need("a kernel as features", lambda p: p.design.implicit)
JOINT = Need("a joint multiclass loss", lambda p: bool(p.classes))
ONE_OUTPUT = Need("a loss of one output, not a joint one", lambda p: not p.classes)

# --- the loss ---------------------------------------------------------------------------------------------------------
CONVEX = Need("a convex loss", lambda p: p.loss.convex)
SQUARED = Need("the squared loss", lambda p: p.loss.quadratic and not p.classes)
SMOOTH_LOSS = Need("a loss without corners", lambda p: p.loss.smooth)
STRAIGHT_PIECES = Need(
    "a loss of straight and quadratic pieces",
    lambda p: bool(p.classes) or p.loss.smooth_part is None or p.loss.smooth_part.quadratic,
)
DUAL_QUADRATIC = Need(
    "a loss whose conjugate is made of straight and quadratic pieces", lambda p: p.loss.dual_quadratic is not None
)
BOUNDED_CURVATURE = Need("a loss with bounded curvature", lambda p: p.loss.curvature_bound < np.inf)

# --- the penalty ------------------------------------------------------------------------------------------------------
NORMS = Need("a penalty l1 |w|_1 + l2/2 |w|^2", lambda p: p.penalty.plain)
CURVED_PENALTY = Need(
    "a penalty with a gradient and a curvature for each weight", lambda p: p.penalty.smooth and p.penalty.separable
)
L2_PART = Need("a penalty with an l2 part", lambda p: p.penalty.l2 > 0)
#: R = l2/2 |w|^2, or none.
SQUARED_NORM = Need("a penalty l2/2 |w|^2, or none", lambda p: p.penalty.plain and p.penalty.smooth)
RIDGE = Need("the l2 penalty", lambda p: p.penalty.ridge)
NO_PENALTY = Need("no penalty", lambda p: p.penalty.zero)


def behind_kernel(need: Need) -> Need:
    """What is needed where the features are a kernel."""
    return Need(f"{need.words} behind a kernel", lambda p: not p.design.implicit or need.holds(p))


def jointly(need: Need) -> Need:
    """What is needed where the loss is joint over classes."""
    return Need(f"{need.words} with a joint loss", lambda p: not p.classes or need.holds(p))


# --- loss and penalty together ----------------------------------------------------------------------------------------
SMOOTH = Need("a loss and a penalty without corners", lambda p: p.loss.smooth and p.penalty.smooth)
CORNERS = Need("corners, of the loss or of the penalty", lambda p: not (p.loss.smooth and p.penalty.smooth))
