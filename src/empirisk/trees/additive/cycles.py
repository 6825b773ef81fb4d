"""Cyclic boosting: every term in turn takes a small Newton step, until rows held out gain nothing more by it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isclose

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.additive.steps import add_step, given_sums, logistic_sums, squared_sums
from empirisk.trees.additive.terms import Term
from empirisk.trees.objectives import Objective

Array = NDArray[np.float64]
#: The share of a loss by which a cycle must lower it: less is rounding, which would choose between equal cycles.
LOWER = 1e-12
#: A term rests after this part of the cycles to wait, steps in a row by which the rows held out gained nothing: terms
#: with little to say would otherwise learn noise for as long as another one still learns, and end it too early.
RESTING_SHARE = 1 / 4
#: Sums of gradient and curvature by cell of a term, for one output.
Sums = Callable[[Term, int], Array]


@dataclass(frozen=True)
class CyclePlan:
    """How terms are boosted; see `empirisk.AdditiveClassifier`."""

    learning_rate: float
    max_iter: int
    max_leaf_nodes: int
    min_samples_leaf: float
    l2: float
    n_iter_no_change: int
    tol: float

    @property
    def max_misses(self) -> int:
        """Steps of a term in a row without a gain after which it rests."""
        return max(1, round(RESTING_SHARE * self.n_iter_no_change))


@dataclass
class Bag:
    """The rows of one bag: those that it learns from, those held out, and the scores of all.

    Attributes
    ----------
    objective : Objective
        The loss, in which rows held out have no weight.
    judge : Objective
        The loss of the rows held out.
    held : array of int
        Which they are.
    scores : (outputs, n)
        f of every row so far.
    quadratic : bool
        Whether the loss is the squared one.
    losses : list of float
        The loss of the rows held out after every cycle.
    """

    objective: Objective
    judge: Objective
    held: NDArray[np.intp]
    scores: Array
    quadratic: bool

    def __post_init__(self):
        self.losses: list[float] = []
        self._gradient = np.empty((0, 0)) if self._direct else np.empty(self.scores.shape)
        self._curvature = self._gradient.copy()

    @property
    def _direct(self) -> bool:
        """Whether compiled loops know the derivatives of the loss."""
        return self.objective.logistic or self.quadratic

    def derivatives(self) -> tuple[Array, Array]:
        """Gradient and curvature of every row and output."""
        gradient, curvature = np.empty(self.scores.shape), np.empty(self.scores.shape)
        with np.errstate(over="ignore"):
            self.objective.derivatives(slice(None), self.scores, gradient, curvature)
        return gradient, curvature

    def sums(self, term: Term) -> list[Array]:
        """The sums of gradient and curvature in the cells of a term, for each output."""
        found = [np.empty((term.cells, 2)) for _ in self.scores]
        if self._direct:
            add_up = logistic_sums if self.objective.logistic else squared_sums
            for own, scores, targets in zip(found, self.scores, self.objective.targets, strict=True):
                add_up(term.codes, scores, targets, self.objective.weights, own)
            return found
        with np.errstate(over="ignore"):
            self.objective.derivatives(slice(None), self.scores, self._gradient, self._curvature)
        for own, gradient, curvature in zip(found, self._gradient, self._curvature, strict=True):
            given_sums(term.codes, gradient, curvature, own)
        return found

    def loss(self) -> float:
        """The mean loss of the rows held out."""
        with np.errstate(over="ignore"):
            return self.judge.value(slice(None), np.ascontiguousarray(self.scores[:, self.held]))

    def boost(self, terms: list[Term], plan: CyclePlan, late: Callable[[], bool]) -> list[Array]:
        """Add to the scores; returns the shape of each term, (outputs, cells), at the cycle with the least loss."""
        shapes = [np.zeros((len(self.scores), term.cells)) for term in terms]
        best, losses = [shape.copy() for shape in shapes], [self.loss()]
        loss, misses = losses[0], [0] * len(terms)
        while len(losses) <= plan.max_iter and not late():
            for number, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
                if misses[number] == plan.max_misses:
                    continue
                for output, sums in enumerate(self.sums(term)):
                    step = term.step(sums, plan.max_leaf_nodes, plan.min_samples_leaf, plan.l2)
                    step *= plan.learning_rate
                    add_step(term.codes, step, self.scores[output])
                    shape[output] += step
                before, loss = loss, self.loss()
                misses[number] = 0 if _is_less(loss, before) else misses[number] + 1
                if late():
                    break
            losses.append(loss)
            if _is_less(loss, min(losses[:-1])):
                best = [shape.copy() for shape in shapes]
            if min(misses) == plan.max_misses or _settled(losses, plan):
                break
        for term, shape, kept in zip(terms, shapes, best, strict=True):
            for output, surplus in enumerate(kept - shape):
                add_step(term.codes, surplus, self.scores[output])
        self.losses += losses
        return best


def _is_less(loss: float, other: float) -> bool:
    """Whether a loss is below another by more than rounding."""
    return loss < other and not isclose(loss, other, rel_tol=LOWER)


def _settled(losses: list[float], plan: CyclePlan) -> bool:
    """Whether the last ``n_iter_no_change`` cycles have lowered the least loss by less than ``tol`` of it."""
    if len(losses) <= plan.n_iter_no_change or not np.isfinite(losses[-1]):
        return not np.isfinite(losses[-1])
    before = min(losses[: -plan.n_iter_no_change])
    return not before - min(losses[-plan.n_iter_no_change :]) > plan.tol * abs(before)
