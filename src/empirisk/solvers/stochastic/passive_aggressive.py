"""Passive-aggressive steps: the nearest weights that fit the row at hand, as far as C allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.compiled_rows import compiled_rows, row_add, row_dot
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import DUAL_QUADRATIC, EXPLICIT, NO_PENALTY, ONE_OUTPUT, Watch
from empirisk.solvers.rows.dual_start import dual_terms
from empirisk.solvers.stochastic.online import Memory, Online, Seen
from empirisk.solvers.stochastic.perceptron import SLICE
from empirisk.solvers.stochastic.sgd import MinibatchSolver

#: Stands for an infinite C: no step is cut, and products of it with weights and squares of rows stay finite.
UNCAPPED = 1e50


@dataclass(eq=False, repr=False)
class PassiveAggressive(MinibatchSolver, Online):
    """Row after row, the weights nearest to the last ones under the loss of the row:

        w, b  <-  argmin  1/2 |w - w_t|^2 + 1/2 (b - b_t)^2 + C c_i loss(y_i, <w, x_i> + b).

    A row without a loss changes nothing. For the hinge and the epsilon-insensitive loss this is PA-I, whose steps are
    no longer than C c_i |x_i|; for their squares PA-II; with C = inf, in `partial_fit`, the plain PA, which fits every
    row at once. The step has a closed form for all losses of straight and quadratic pieces. There must be no penalty:
    that is what the distance to the last weights is for. An iteration is an epoch.

    Parameters
    ----------
    average : bool, default False
        Whether to return the average of the weights over the steps; later steps count more.
    shuffle : bool, default True
        Whether every epoch visits the rows in a new random order.
    random_state : int or None, default 0
        Seed of the order.

    Examples
    --------
    >>> machine = er.SVM(C=0.1, penalty="none", solver="passive_aggressive")
    >>> machine.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.4], [2.5]])
    array([0, 1])
    """

    needs = (EXPLICIT, ONE_OUTPUT, NO_PENALTY, DUAL_QUADRATIC)
    sizes = (2, 1)
    #: Epochs; steps do not get shorter, so that more of them change the average alone.
    iteration_limit = 200
    batch_size, rate = 1, None

    average: bool = False
    shuffle: bool = True
    random_state: int | None = 0

    def training(self, problem: Problem, start: Point | None) -> Visits:
        start = problem.origin() if start is None else start
        shift = 0.0 if problem.design.shift is None else float(problem.design.shift @ start.w)
        weights = np.append(start.w, float(start.b) - shift)
        return Visits(problem, self, weights, np.zeros_like(weights), np.zeros(1))

    def advance(self, problem: Problem, memory: Memory, seen: Seen, watch: Watch) -> Memory:
        (weights, average), steps = memory.buffers[:, 0].copy(), memory.numbers.copy()
        capped = problem.with_C(min(problem.C, UNCAPPED))
        seed = None if self.random_state is None else [self.random_state, int(steps[0])]
        Visits(capped, self, weights, average, steps).epoch(np.random.default_rng(seed), watch)
        return Memory(np.stack([weights, average])[:, None], steps)

    def weights(self, memory: Memory) -> Array:
        """The weights, or their average."""
        return memory.buffers[1 if self.average else 0]


class PassiveAggressiveTerms(NamedTuple):
    """What the step of a row needs: the dual of its loss, as in `dual_terms`, and |x_i|^2, plus 1 for the intercept."""

    linear: Array
    tube: float
    bend: Array
    low: Array
    high: Array
    squares: Array


class Visits:
    """Weights that are updated row by row: the rows of the user, without the shift of the design."""

    def __init__(self, problem: Problem, solver: PassiveAggressive, weights: Array, average: Array, steps: Array):
        self.problem, self.averaged, self.shuffled = problem, solver.average, solver.shuffle
        self.weights, self.average, self.steps = weights, average, steps
        self._rows = compiled_rows(problem.design, shifted=False)
        unshifted = problem.design
        if unshifted.shift is not None:
            unshifted = unshifted.shifted(np.zeros(len(weights) - 1))
        self._terms = PassiveAggressiveTerms(*dual_terms(problem), unshifted.squared_rows() + float(problem.intercept))
        self._size = max(1, SLICE // len(weights))

    def epoch(self, random: np.random.Generator, watch: Watch) -> None:
        """One pass over the rows, in a new order where they are shuffled, unless the watch says stop."""
        order = np.arange(len(self.problem.y))
        order = random.permutation(order) if self.shuffled else order
        for begin in range(0, len(order), self._size):
            if watch.must_stop():
                return
            group = order[begin : begin + self._size]
            visit_rows(
                self._rows, self._terms, group, self.weights, self.average, self.steps,
                self.problem.intercept, self.averaged,
            )  # fmt: skip

    def point(self) -> Point:
        """The weights, or their average, in the coordinates of the design."""
        weights = (self.average if self.averaged else self.weights).copy()
        shift = 0.0 if self.problem.design.shift is None else float(self.problem.design.shift @ weights[:-1])
        return Point(weights[:-1], float(weights[-1]) + shift)


@plain_loop
def visit_rows(rows, terms, order, weights, average, steps, intercept, averaged):
    """Visit rows in order; each moves the weights by -u x_i, where u minimises the dual of the step.

    That is  |x_i|^2 u^2 / 2 - f_i u + linear u + tube |u| + bend u^2 / 2  between low and high.
    """
    linear, tube, bend, low, high, squares = terms
    width = len(weights) - 1
    w = weights[:width]
    for i in order:
        pull = row_dot(rows, i, w) + weights[width] - linear[i]
        pull -= min(max(pull, -tube), tube)
        stiffness = squares[i] + bend[i]
        u = pull / stiffness if stiffness > 0 else 0.0
        u = min(max(u, low[i]), high[i])
        if u != 0.0:
            row_add(rows, i, -u, w)
            if intercept:
                weights[width] -= u
        steps[0] += 1.0
        if averaged:
            share = 2.0 / (steps[0] + 1.0)
            for j in range(width + 1):
                average[j] += share * (weights[j] - average[j])
