"""The classical perceptron: move only at mistakes, until there are none; on rows or behind a kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.compiled_rows import compiled_rows, row_add, row_dot
from empirisk.losses.base import Ramp
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import NO_PENALTY, Need, Watch
from empirisk.solvers.rows.row_cache import KeptMatrix, RowCache, gram
from empirisk.solvers.stochastic.online import Memory, Online, Seen
from empirisk.stop import Ending

Indices = NDArray[np.intp]
#: Entries of the data that are read between two looks at the clock: a few milliseconds.
SLICE = 1 << 22
#: Up to so many samples the point is looked at several times in an epoch: one over few may end where it began.
FEW, LOOKS = 1000, 8
PERCEPTRON_LOSS = Need("the perceptron loss", lambda p: p.loss.corners == (Ramp(-1.0, 0.0),))


class Perceptron(Online):
    """w <- w + rate c_i y_i phi(x_i) wherever y_i f(x_i) <= 0, and the intercept likewise.

    Visits the samples epoch after epoch until one makes no mistake; an iteration is an epoch. Else the weights with the
    fewest mistakes are the answer, and the status tells how many. Behind a kernel w is known by its coefficients:
    beta_i += rate c_i y_i. With the linear kernel it makes the same mistakes as on the rows.

    Parameters
    ----------
    rate : float, default 1.0
        The length of a step; without an intercept to start from, every length makes the same mistakes.
    average : bool, default False
        Whether to return the average of the weights after every visit.
    shuffle : bool, default False
        Whether every epoch visits the samples in a new random order.
    random_state : int or None, default 0
        Seed of the order.

    Examples
    --------
    >>> machine = er.Perceptron(features=er.kernels.Gaussian()).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> machine.predict([[0.0], [1.0], [2.0]])
    array([0, 1, 0])
    """

    needs = (PERCEPTRON_LOSS, NO_PENALTY)
    sizes = (2, 1)
    #: Epochs after which rows that can be separated nearly always are.
    iteration_limit = 200
    aims_at_tol = False

    def __init__(self, rate: float = 1.0, average: bool = False, shuffle: bool = False, random_state: int | None = 0):
        self.rate = rate
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        random = np.random.default_rng(self.random_state)
        count = len(problem.y)
        visits = (KernelVisits if problem.design.implicit else RowVisits)(problem, self.rate, start)
        best, fewest, left = problem.origin(), (np.inf, np.inf), np.ones(count, dtype=bool)
        while True:
            order = random.permutation(count) if self.shuffle else np.arange(count)
            mistakes = 0
            for part in np.array_split(order, min(LOOKS, count)) if count <= FEW else [order]:
                for group in np.split(part, range(visits.size, len(part), visits.size)):
                    mistakes += 0 if watch.must_stop() else visits.visit(group)
                point, f = visits.point(self.average)
                missed = problem.y * f <= 0
                objective = problem.loss_sum(f)
                score = (float(problem.weights @ missed), objective)
                if score <= fewest:
                    best, fewest, left = point, score, missed
            watch.record(mistakes=mistakes)
            if mistakes == 0 and not watch.must_stop():
                # An average of weights need not be without mistakes, even if the last of them are.
                watch.status = Ending.NO_MISTAKES if self.average else Ending.CONVERGED
                watch(point, objective=objective)
                return point
            if watch(point, objective=objective):
                if left.any():
                    rows = len(np.unique(problem.places[left]))  # a heavy row is visited several times
                    watch.objection = Ending.MISTAKES_LEFT
                    watch.note(f"not separable in {watch.iterations} epochs: {rows} mistakes left")
                return best

    def opening(self, weights: Array, seen: Seen) -> Memory:
        memory = super().opening(weights, seen)
        memory.numbers[:] = 1 + seen.rows
        return memory

    def advance(self, problem: Problem, memory: Memory, seen: Seen, watch: Watch) -> Memory:
        (weights, changes), moment = memory.buffers[:, 0].copy(), memory.numbers.copy()
        visits = RowVisits(problem, self.rate, None, Tally(weights, changes, moment))
        visits.amounts = self.rate * problem.weights  # other calls have rows of other weights
        for group in np.split(np.arange(len(problem.y)), range(visits.size, len(problem.y), visits.size)):
            if watch.must_stop():
                break
            visits.visit(group)
        return Memory(np.stack([weights, changes])[:, None], moment)

    def weights(self, memory: Memory) -> Array:
        """The weights, or their average over the visits."""
        weights, changes = memory.buffers
        return weights - changes / memory.numbers[0] if self.average else weights


def _amounts(problem: Problem, rate: float) -> Array:
    """How far a mistake moves the weights: the sample weights are relative, so that their unit does not matter."""
    return rate * problem.weights * (len(problem.y) / problem.weights.sum())


class Tally(NamedTuple):
    """The perceptron's weights with the intercept last, the same times the moment of each change, and the moment."""

    weights: Array
    changes: Array
    moment: Array


class RowVisits:
    """Visits of explicit rows: those of the user's data, without the shift of the design, as in the textbook."""

    def __init__(self, problem: Problem, rate: float, start: Point | None, tally: Tally | None = None):
        self.problem, self.amounts = problem, _amounts(problem, rate)
        self._rows = compiled_rows(problem.design, shifted=False)
        count, width = problem.design.shape
        self._tally = tally or Tally(np.zeros(width + 1), np.zeros(width + 1), np.ones(1))
        if start is not None:
            self._tally.weights[:width], self._tally.weights[width] = start.w, start.b - self._shift(start.w)
        self.size = max(1, SLICE * count // (self._rows[0].size + 1))

    def _shift(self, w: Array) -> float:
        """What the shift of the design takes off every prediction."""
        shift = self.problem.design.shift
        return 0.0 if shift is None else float(shift @ w)

    def visit(self, order: Indices) -> int:
        """Visit rows in turn; returns the mistakes."""
        problem = self.problem
        return correct_rows(self._rows, problem.y, self.amounts, order, self._tally, problem.intercept)

    def point(self, average: bool) -> tuple[Point, Array]:
        """The weights, or their average over the visits, and what they predict."""
        tally = self._tally
        weights = tally.weights - tally.changes / tally.moment[0] if average else tally.weights.copy()
        point = Point(weights[:-1], float(weights[-1]) + self._shift(weights[:-1]))
        return point, self.problem.predict(point)


class KernelVisits:
    """Visits behind a kernel: coefficients that count mistakes, the same times the moment, and what both predict."""

    #: Samples whose kernel block is made at once.
    size = 256

    def __init__(self, problem: Problem, rate: float, start: Point | None):
        self.problem, design = problem, gram(problem)
        rows = design.shape[0]
        # In double precision: a mistake is a matter of sign.
        self._source = KeptMatrix(design.matrix) if design.keeps_matrix else RowCache(design, self.size)
        self.amounts = problem.y * _amounts(problem, rate)
        self._beta, self._b, self._moment = np.zeros((2, rows)), np.zeros(2), 1.0
        self._f = np.zeros((2, rows))
        if start is not None and start.w.shape == (rows,):
            self._beta[0], self._b[0] = start.w, start.b
            self._f[0] = design.dot(start.w)

    def visit(self, samples: Indices) -> int:
        """Visit samples in turn; returns the mistakes."""
        K = np.asarray(gram(self.problem).block(samples, samples), dtype=np.float64)
        f = self._f[0, samples] + self._b[0]
        missed = np.zeros(len(samples), dtype=bool)
        correct_group(K, self.problem.y[samples], self.amounts[samples], self.problem.intercept, f, missed)
        wrong, amounts = samples[missed], self.amounts[samples[missed]]
        timed = amounts * (self._moment + np.flatnonzero(missed))
        self._moment += len(samples)
        if len(wrong):
            self._beta[:, wrong] += np.stack([amounts, timed])
            if self.problem.intercept:
                self._b += amounts.sum(), timed.sum()
            rows = self._source.rows[self._source.fetch(wrong)]
            self._f += np.stack([amounts, timed]) @ rows
        return len(wrong)

    def point(self, average: bool) -> tuple[Point, Array]:
        """The point, or its average over the visits, and its predictions."""
        share = 1.0 / self._moment if average else 0.0
        b = float(self._b[0] - share * self._b[1])
        return Point(self._beta[0] - share * self._beta[1], b), self._f[0] - share * self._f[1] + b


@plain_loop
def correct_rows(rows, y, amounts, order, tally, intercept):
    """Visit rows in order, and add amount_i y_i a_i to the weights wherever y_i f_i <= 0; how often that was."""
    weights, changes, moment = tally
    width = len(weights) - 1
    w, timed = weights[:width], changes[:width]
    mistakes = 0
    for k in range(len(order)):
        i = order[k]
        if y[i] * (row_dot(rows, i, w) + weights[width]) <= 0:
            mistakes += 1
            amount = amounts[i] * y[i]
            row_add(rows, i, amount, w)
            row_add(rows, i, amount * moment[0], timed)
            if intercept:
                weights[width] += amount
                changes[width] += amount * moment[0]
        moment[0] += 1.0
    return mistakes


@plain_loop
def correct_group(K, y, amounts, intercept, f, missed):
    """Visit a group of samples in turn: where y_i f_i <= 0, add amount_i k(x_i, .) to the predictions of the rest."""
    for i in range(len(y)):
        if y[i] * f[i] <= 0:
            missed[i] = True
            for j in range(i + 1, len(y)):
                f[j] += amounts[i] * (K[i, j] + (1.0 if intercept else 0.0))
