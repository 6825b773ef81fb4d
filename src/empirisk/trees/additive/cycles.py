"""Cyclic boosting: every term in turn takes a small Newton step, until rows held out gain nothing more by it."""

from __future__ import annotations

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
        grown = [GrownShape(term, np.zeros((len(self.scores), term.cells))) for term in terms]
        best, losses = [own.shape.copy() for own in grown], [self.loss()]
        loss = losses[0]
        while len(losses) <= plan.max_iter and not late():
            for own in grown:
                if own.rests:
                    continue
                self._step(own, plan)
                before, loss = loss, self.loss()
                own.note(loss - before, loss)
                own.rests = own.misses >= plan.n_iter_no_change
                if own.rests:
                    self._move(own, own.best)
                    loss = self.loss()
                if late():
                    break
            losses.append(loss)
            if _is_less(loss, min(losses[:-1])):
                best = [own.shape.copy() for own in grown]
            if all(own.rests for own in grown) or _settled(losses, plan):
                break
        for own, kept in zip(grown, best, strict=True):
            self._move(own, kept)
        self.losses += losses
        return best

    def _step(self, own: GrownShape, plan: CyclePlan) -> None:
        """One step of a term."""
        for output, sums in enumerate(self.sums(own.term)):
            step = own.term.step(sums, plan.max_leaf_nodes, plan.min_samples_leaf, plan.l2)
            step *= plan.learning_rate
            add_step(own.term.codes, step, self.scores[output])
            own.shape[output] += step

    def _move(self, own: GrownShape, shape: Array) -> None:
        """Give a term another shape."""
        for output, change in enumerate(shape - own.shape):
            add_step(own.term.codes, change, self.scores[output])
        own.shape[:] = shape


@dataclass
class GrownShape:
    """The shape of a term so far, and the one at which its steps had lowered the loss of rows held out most.

    A term whose best shape is old rests, and has that one again: terms with little to say would otherwise learn noise
    for as long as another one still learns, and end it too early. One step, or a few in a row, would say too little:
    where a term learns slowly, many raise that loss by chance.
    """

    term: Term
    shape: Array
    rests: bool = False

    def __post_init__(self):
        self.best, self.change, self.least, self.misses = self.shape.copy(), 0.0, 0.0, 0

    def note(self, change: float, loss: float) -> None:
        """Note how its last step has changed the loss, up to rounding."""
        self.change += change
        self.misses += 1
        if self.change < self.least - LOWER * abs(loss):
            self.best[:], self.least, self.misses = self.shape, self.change, 0


def _is_less(loss: float, other: float) -> bool:
    """Whether a loss is below another by more than rounding."""
    return loss < other and not isclose(loss, other, rel_tol=LOWER)


def _settled(losses: list[float], plan: CyclePlan) -> bool:
    """Whether the last ``n_iter_no_change`` cycles have lowered the least loss by less than ``tol`` of it."""
    if len(losses) <= plan.n_iter_no_change or not np.isfinite(losses[-1]):
        return not np.isfinite(losses[-1])
    before = min(losses[: -plan.n_iter_no_change])
    return not before - min(losses[-plan.n_iter_no_change :]) > plan.tol * abs(before)
