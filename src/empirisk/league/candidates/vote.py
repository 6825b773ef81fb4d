"""The last candidate: a vote of the best, with a few choices of weights."""

from collections.abc import Sequence
from functools import partial
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.pipeline import Pipeline

import empirisk as er
from empirisk.tables.model import uncalibrated

#: Weights of the members, the best first, where nothing is known of what they say.
WEIGHTS = ((1, 1), (2, 1), (1, 1, 1))
#: Where it is known, steps of one each that the weights are made of, and the share of the loss that a step gains at the
#: least: more steps, and smaller gains, fit noise.
STEPS, LEAST_GAIN = 16, 1e-4
#: How far the temperature of probabilities goes from one, either way.
MAX_TEMPERATURE = 3.0
#: Probabilities are at least so large where their logarithm is taken: one mistake does not decide alone.
LEAST_PROBABILITY = 1e-6

#: What each member says of rows that it had not learned from, and what is true: numbers, or class numbers.
Answers = tuple[Sequence[NDArray], NDArray]


def can_vote(machine: Any, classes: int) -> bool:
    """Whether a machine's answers have a mean: numbers, or probabilities."""
    return not classes or hasattr(machine, "predict_proba")


def votes(machines: Sequence[Any], classes: int, answers: Answers | None = None) -> list[Any]:
    """Votes of some of the machines, unfitted: by fixed weights, or by those with little loss of the answers.

    There is none where the best is better alone. Probabilities are calibrated by one temperature where answers are
    known.

    >>> [len(vote.estimators) for vote in votes([er.Ridge(), er.TreeRegressor()], 0)]
    [2, 2]
    """
    vote = partial(er.VoteClassifier, voting="soft") if classes else er.VoteRegressor
    known = WEIGHTS if answers is None else [greedy_weights(answers, classes)]
    voting = [
        ([one for one, weight in zip(machines, weights, strict=False) if weight], tuple(filter(None, weights)))
        for weights in known
        if len(weights) <= len(machines)
    ]
    found = [vote(chosen, weights=weights) for chosen, weights in voting if len(chosen) > 1]
    if classes and answers is not None:
        found = [one.set_params(temperature=temperature(answers, known[0])) for one in found]
    return found


def greedy_weights(answers: Answers, classes: int) -> tuple[int, ...]:
    """The weights of a mean of the answers with little loss, found step by step (Caruana et al., 2004).

    Each step gives one more vote to the member with which the mean has the least loss, while that falls; the first
    step is the best alone, so that the mean is never worse on these answers. The loss is the squared error, or the
    logarithm of the probability of the true class.

    >>> truth = np.array([0.0, 1.0, 2.0])
    >>> greedy_weights(([truth + [0.1, 0.1, 0.1], truth - [0.4, 0.4, 0.4], truth + 9.0], truth), 0)
    (4, 1, 0)
    """
    said, truth = np.asarray(answers[0], dtype=np.float64), answers[1]
    # Of probabilities only those of the true class count.
    said = said[:, np.arange(len(truth)), truth] if classes else said

    def loss(mean: NDArray) -> float:
        if classes:
            return float(-np.log(np.maximum(mean, LEAST_PROBABILITY)).mean())
        return float(np.mean((mean - truth) ** 2))

    counts, total, best, found = np.zeros(len(said), dtype=int), np.zeros(len(truth)), np.inf, [0]
    for step in range(1, STEPS + 1):
        losses = [loss((total + one) / step) for one in said]
        counts[(chosen := int(np.argmin(losses)))] += 1
        total = total + said[chosen]
        if losses[chosen] < (1 - LEAST_GAIN) * best:
            best, found = losses[chosen], counts.tolist()
    return tuple(count // gcd(*found) for count in found)


def temperature(answers: Answers, weights: Sequence[int]) -> float:
    """The temperature at which the weighted mean of probabilities has the least loss; 1 where that is no clear gain.

    The loss, minus the mean logarithm of the probability of the true class, is convex in 1 / temperature. It counts as
    a gain only beyond two standard errors, so that few answers do not decide.

    >>> said = np.array([[0.6, 0.4], [0.4, 0.6]] * 50)  # always right, and far from sure
    >>> temperature(([said], np.array([0, 1] * 50)), (1,)) < 0.4
    True
    """
    mean = np.average(np.asarray(answers[0], dtype=np.float64), axis=0, weights=weights)
    logs, truth = np.log(np.maximum(mean, LEAST_PROBABILITY)), answers[1]

    def losses(sharpness: float) -> NDArray:
        scores = sharpness * logs
        return logsumexp(scores, axis=1) - scores[np.arange(len(truth)), truth]

    found = minimize_scalar(lambda s: losses(s).mean(), bounds=(1 / MAX_TEMPERATURE, MAX_TEMPERATURE), method="bounded")
    gains = losses(1.0) - losses(found.x)
    clear = gains.mean() > 2 * gains.std() / np.sqrt(len(gains))
    return round(1 / float(found.x), 3) if clear else 1.0


def members(machine: Any) -> list[Any]:
    """The machines that vote, or the machine itself; fitted ones, where it is fitted."""
    if not hasattr(machine, "estimators"):
        return [machine]
    return getattr(machine, "estimators_", machine.estimators)


def last_step(machine: Any) -> Any:
    """The machine at the end of a pipeline, without a calibration around it; a machine that is none, without it."""
    return uncalibrated(machine[-1] if isinstance(machine, Pipeline) else machine)
