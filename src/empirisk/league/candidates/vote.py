"""The last candidate: a vote of the best, with a few choices of weights."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

import empirisk as er

#: Weights of the members, the best first, where nothing is known of what they say.
WEIGHTS = ((1, 1), (2, 1), (1, 1, 1))
#: Equal steps into which the weights of two and of three members are divided, where it is known: finer ones fit noise.
STEPS = {2: 10, 3: 6}
#: Votes of known answers that play.
WEIGHED = 2
#: Probabilities are at least so large where their logarithm is taken: one mistake does not decide alone.
LEAST_PROBABILITY = 1e-6

#: What each member says of rows that it had not learned from, and what is true: numbers, or class numbers.
Answers = tuple[Sequence[NDArray], NDArray]


def can_vote(machine: Any, classes: int) -> bool:
    """Whether a machine's answers have a mean: numbers, or probabilities."""
    return not classes or hasattr(machine, "predict_proba")


def votes(machines: Sequence[Any], classes: int, answers: Answers | None = None) -> list[Any]:
    """Votes of the first of the machines, unfitted: by fixed weights, or by those with the least loss of the answers.

    >>> [len(vote.estimators) for vote in votes([er.Ridge(), er.TreeRegressor()], 0)]
    [2, 2]
    """
    vote = partial(er.VoteClassifier, voting="soft") if classes else er.VoteRegressor
    known = WEIGHTS if answers is None else best_weights(answers, classes)
    return [vote(list(machines[: len(weights)]), weights=weights) for weights in known if len(weights) <= len(machines)]


def best_weights(answers: Answers, classes: int) -> list[tuple[int, ...]]:
    """The weights, in equal steps and none zero, under which the mean of the answers has the least loss, best first.

    The loss is the squared error, or the logarithm of the probability of the true class.

    >>> truth = np.array([0.0, 1.0, 2.0])
    >>> best_weights(([truth + [0.1, 0.1, 0.1], truth - [0.4, 0.4, 0.4]], truth), 0)[0]
    (4, 1)
    """
    said, truth = answers
    choices = [
        weights
        for count, steps in STEPS.items()
        if count <= len(said)
        for weights in product(range(1, steps), repeat=count)
        if sum(weights) == steps
    ]

    def loss(weights: tuple[int, ...]) -> float:
        mean = np.tensordot(weights, np.asarray(said[: len(weights)]), 1) / sum(weights)
        if not classes:
            return float(np.mean((mean - truth) ** 2))
        return float(-np.log(np.maximum(mean[np.arange(len(truth)), truth], LEAST_PROBABILITY)).mean())

    ranked = sorted(choices, key=loss)[:WEIGHED]
    return [tuple(one // gcd(*weights) for one in weights) for weights in ranked]


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
