"""The last candidate: a vote of the best, with a few choices of weights."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

import empirisk as er

#: Weights of the members, the best first.
WEIGHTS = ((1, 1), (2, 1), (1, 1, 1))


def can_vote(machine: Any, classes: int) -> bool:
    """Whether a machine's answers have a mean: numbers, or probabilities."""
    return not classes or hasattr(machine, "predict_proba")


def votes(machines: Sequence[Any], classes: int) -> list[Any]:
    """Votes of the first of the machines, unfitted.

    >>> [len(vote.estimators) for vote in votes([er.Ridge(), er.TreeRegressor()], 0)]
    [2, 2]
    """
    vote = partial(er.VoteClassifier, voting="soft") if classes else er.VoteRegressor
    return [
        vote(list(machines[: len(weights)]), weights=weights) for weights in WEIGHTS if len(weights) <= len(machines)
    ]


def members(machine: Any) -> list[Any]:
    """The machines that vote, or the machine itself; fitted ones, where it is fitted."""
    if not hasattr(machine, "estimators"):
        return [machine]
    return getattr(machine, "estimators_", machine.estimators)


def join(vote: Any, fitted: Sequence[Any], X: Any, y: NDArray) -> None:
    """Make a vote of machines that have learned from these rows already."""
    given = vote.estimators
    vote.set_params(estimators=[FrozenEstimator(machine) for machine in fitted]).fit(X, y)
    vote.set_params(estimators=given)
    vote.estimators_ = list(fitted)
