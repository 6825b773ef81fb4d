"""The classical perceptron: move only at mistakes, until there are none."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.compiled_rows import compiled_rows, row_add, row_dot
from empirisk.losses.base import Ramp
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.rows.row_cache import KeptMatrix, RowCache, gram

SLICE = 1 << 22
Array = NDArray[np.float64]
GROUP = 256


def perceptron(
    problem: Problem,
    watch: Watch,
    start: Point | None,
    rate: float,
    generator: np.random.Generator | None,
    average: bool,
) -> Point:
    """Visit the samples, in a new order every epoch if there is a generator, until an epoch makes no mistake.

    The rows are those of the user's data, without the shift of the design, as in the textbook. The average is that of
    the weights after every visit.
    """
    rows = compiled_rows(problem.design, shifted=False)
    count, width = problem.design.shape
    amounts = rate * problem.weights * (count / problem.weights.sum())
    tally = Tally(np.zeros(width + 1), np.zeros(width + 1), np.ones(1))
    if start is not None:
        tally.weights[:width], tally.weights[width] = start.w, start.b - _shift(problem, start.w)
    piece = max(1, SLICE * count // (rows[0].size + 1))
    best, lowest = problem.origin(), np.inf
    while True:
        order = np.arange(count) if generator is None else generator.permutation(count)
        mistakes = 0
        for begin in range(0, count, piece):
            if watch.must_stop():
                break
            part = order[begin : begin + piece]
            mistakes += correct_mistakes(rows, problem.y, amounts, part, tally, problem.intercept)
        point = _point(problem, tally, average)
        objective = problem.primal(point)
        if objective <= lowest:
            best, lowest = point, objective
        watch.record(mistakes=mistakes)
        if mistakes == 0 and not watch.status:
            # An average of weights need not be without mistakes, even if the last of them are.
            watch.status = Status.PASSES if average else Status.CONVERGED
            watch(point, objective=objective)
            return point
        if watch(point, objective=objective):
            return best


def _shift(problem: Problem, w: np.ndarray) -> float:
    """What the shift of the design takes off every prediction."""
    return 0.0 if problem.design.shift is None else float(problem.design.shift @ w)


def _point(problem: Problem, tally: "Tally", average: bool) -> Point:
    weights = tally.weights - tally.changes / tally.moment[0] if average else tally.weights.copy()
    w = weights[:-1]
    return Point(w, float(weights[-1]) + _shift(problem, w))


class Tally(NamedTuple):
    """The perceptron's weights with the intercept last, the same times the moment of each change, and the moment."""

    weights: Array
    changes: Array
    moment: Array


@njit(cache=True, nogil=True)
def correct_mistakes(rows, y, amounts, order, tally, intercept):
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


class KernelPerceptron(Solver):
    """The classical perceptron with w = sum_j beta_j phi(x_j): beta_i += c_i y_i wherever y_i f(x_i) <= 0.

    Visits the samples in their order, epoch after epoch, until one makes no mistake; an iteration is an epoch. With
    the linear kernel it makes the same mistakes as the linear perceptron.

    Parameters
    ----------
    average : bool, default False
        Whether to return the average of the coefficients after every visit.

    Examples
    --------
    >>> machine = er.Perceptron(features=er.kernels.Gaussian()).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> machine.predict([[0.0], [1.0], [2.0]])
    array([0, 1, 0])
    """

    implicit = True
    iteration_limit = 200
    aims_at_tol = False

    def __init__(self, average: bool = False):
        self.average = average

    def refuses(self, problem: Problem) -> str:
        free = problem.penalty.l1 == 0 and problem.penalty.l2 == 0
        return "" if free and problem.loss.corners == (Ramp(-1.0, 0.0),) else "it is for the perceptron loss alone"

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        state = Counts(problem, start)
        best, lowest = problem.origin(), np.inf
        while True:
            mistakes = state.epoch(watch)
            point, f = state.point(self.average)
            objective = problem.loss_sum(f)
            if objective <= lowest:
                best, lowest = point, objective
            watch.record(mistakes=mistakes)
            if mistakes == 0 and not watch.status:
                # An average of weights need not be without mistakes, even if the last of them are.
                watch.status = Status.PASSES if self.average else Status.CONVERGED
                watch(point, objective=objective)
                return point
            if watch(point, objective=objective):
                return best


class Counts:
    """Coefficients with the intercept last, the same times the moment of each change, and what both predict."""

    def __init__(self, problem: Problem, start: Point | None):
        self.problem, design = problem, gram(problem)
        rows = design.shape[0]
        # In double precision: a mistake is a matter of sign.
        self.source = KeptMatrix(design.matrix) if design.keeps_matrix else RowCache(design, GROUP)
        self.amounts = problem.y * problem.weights * (rows / problem.weights.sum())
        self.beta, self.changes, self.moment = np.zeros((2, rows)), np.zeros(2), 1.0
        self.f = np.zeros((2, rows))
        if start is not None and start.w.shape == (rows,):
            self.beta[0], self.changes[0] = start.w, start.b
            self.f[0] = design.dot(start.w)

    def epoch(self, watch: Watch) -> int:
        """Visit every sample in turn, a group at a time; returns the mistakes."""
        mistakes = 0
        for begin in range(0, len(self.amounts), GROUP):
            if watch.must_stop():
                break
            mistakes += self._visit(np.arange(begin, min(begin + GROUP, len(self.amounts))))
        return mistakes

    def _visit(self, samples: NDArray) -> int:
        K = np.asarray(gram(self.problem).block(samples, samples), dtype=np.float64)
        b = self.changes if self.problem.intercept else None
        f = self.f[0, samples] + self.changes[0]
        missed = np.zeros(len(samples), dtype=bool)
        correct_group(K, self.problem.y[samples], self.amounts[samples], b is not None, f, missed)
        wrong, amounts = samples[missed], self.amounts[samples[missed]]
        timed = amounts * (self.moment + np.flatnonzero(missed))
        self.moment += len(samples)
        if len(wrong):
            self.beta[:, wrong] += np.stack([amounts, timed])
            if b is not None:
                b += amounts.sum(), timed.sum()
            rows = self.source.rows[self.source.fetch(wrong)]
            self.f += np.stack([amounts, timed]) @ rows
        return len(wrong)

    def point(self, average: bool) -> tuple[Point, Array]:
        """The point, or its average over the visits, and its predictions."""
        share = 1.0 / self.moment if average else 0.0
        b = float(self.changes[0] - share * self.changes[1])
        return Point(self.beta[0] - share * self.beta[1], b), self.f[0] - share * self.f[1] + b


@njit(cache=True, nogil=True)
def correct_group(K, y, amounts, intercept, f, missed):
    """Visit a group of samples in turn: where y_i f_i <= 0, add amount_i k(x_i, .) to the predictions of the rest."""
    for i in range(len(y)):
        if y[i] * f[i] <= 0:
            missed[i] = True
            for j in range(i + 1, len(y)):
                f[j] += amounts[i] * (K[i, j] + (1.0 if intercept else 0.0))
