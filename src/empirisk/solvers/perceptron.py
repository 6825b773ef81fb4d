"""The classical perceptron: move only at mistakes, until there are none."""

import numpy as np

from empirisk.certificate import Status
from empirisk.problem import Point, Problem
from empirisk.solvers import stochastic_loops as loops
from empirisk.solvers.base import Watch
from empirisk.solvers.pause import must_stop
from empirisk.solvers.rows import rows_of

SLICE = 1 << 22


def run(
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
    rows = rows_of(problem.design, shifted=False)
    count, width = problem.design.shape
    amounts = rate * problem.weights * (count / problem.weights.sum())
    tally = loops.Tally(np.zeros(width + 1), np.zeros(width + 1), np.ones(1))
    if start is not None:
        tally.weights[:width], tally.weights[width] = start.w, start.b - _shift(problem, start.w)
    piece = max(1, SLICE * count // (rows[0].size + 1))
    best, lowest = problem.origin(), np.inf
    while True:
        order = np.arange(count) if generator is None else generator.permutation(count)
        mistakes = 0
        for begin in range(0, count, piece):
            if must_stop(watch):
                break
            part = order[begin : begin + piece]
            mistakes += loops.correct(rows, problem.y, amounts, part, tally, problem.intercept)
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


def _point(problem: Problem, tally: loops.Tally, average: bool) -> Point:
    weights = tally.weights - tally.changes / tally.moment[0] if average else tally.weights.copy()
    w = weights[:-1]
    return Point(w, float(weights[-1]) + _shift(problem, w))
