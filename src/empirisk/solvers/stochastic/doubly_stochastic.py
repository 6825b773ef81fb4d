"""Doubly stochastic gradients: random samples, whose predictions are estimated from random columns of the kernel."""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Point, Problem
from empirisk.solvers.base import CONVEX, COUNT, KERNEL, ONE_OUTPUT, SQUARED_NORM, Watch
from empirisk.solvers.rows.row_cache import gram
from empirisk.solvers.stochastic.sgd import MinibatchSolver

#: Samples from which the largest eigenvalue of the kernel is estimated, in milliseconds.
SAMPLE = 300
#: Slopes at corners, and what columns left out add, do not fall on the way to the minimum: after so many steps the rate
#: falls for them, as their root.
HELD = 500


class DoublyStochastic(MinibatchSolver):
    """Stochastic gradient descent on beta, f = K beta + b, which never sees more than a small block of K.

    A step draws a batch I of samples and a set J of columns, estimates f_I = n/|J| K_IJ beta_J + b, and moves

        beta <- (1 - rate l2 / S) beta,   beta_I <- beta_I - rate n / |I| s_I / S loss'(y_I, f_I),   S = sum_i s_i,

    an unbiased gradient in the space of the kernel. The rate falls with the steps t as rate / (1 + rate l2 t / (2 S)),
    as strong convexity allows, and as the root of t too where the loss has corners or columns are left out. An average
    in which later steps count more is returned, for every loss with slopes. An iteration is an epoch.

    Parameters
    ----------
    batch_size : int, default 64
        Samples in a step.
    columns : int, default 2048
        Columns in a step; all of them where there are no more.
    rate : float or None
        The first step size; None takes one that would undo the loss of a typical batch.
    random_state : int or None, default 0
        Seed of samples and columns.

    Examples
    --------
    >>> machine = er.SVM(features=er.kernels.Gaussian(), solver="doubly_stochastic", max_iter=50)
    >>> machine.fit([[0.0], [0.1], [3.0], [3.1]], [0, 0, 1, 1]).predict([[0.0], [3.0]])
    array([0, 1])
    """

    needs = (KERNEL, ONE_OUTPUT, CONVEX, SQUARED_NORM)

    iteration_limit = 100
    proof_after = 2.0  # it takes the whole kernel

    def __init__(
        self, batch_size: int = 64, columns: int = 2048, rate: float | None = None, random_state: int | None = 0
    ):
        self.batch_size = batch_size
        self.columns = columns
        self.rate = rate
        self.random_state = random_state

    def check(self) -> None:
        super().check()
        self.require("columns", isinstance(self.columns, Integral) and self.columns >= 1, COUNT)

    def training(self, problem: Problem, start: Point | None) -> "DoublyStochasticRun":
        return DoublyStochasticRun(problem, self, start)


class DoublyStochasticRun:
    """The coefficients after each step, and their running average."""

    def __init__(self, problem: Problem, solver: DoublyStochastic, start: Point | None):
        self.problem, self.rows = problem, len(problem.y)
        self.batch, self.columns = min(int(solver.batch_size), self.rows), min(int(solver.columns), self.rows)
        start = problem.origin() if start is None or start.w.shape != (self.rows,) else start
        self.beta, self.b = start.w.copy(), float(start.b)
        self.average, self.average_b, self.steps = self.beta.copy(), self.b, 0
        self.total = float(problem.scale.sum())
        self.rate = _usual_rate(problem, self.batch) if solver.rate is None else float(solver.rate)

    def epoch(self, random: np.random.Generator, watch: Watch) -> None:
        """As many steps as batches cover the samples, unless the watch says stop."""
        order = random.permutation(self.rows)
        for begin in range(0, self.rows, self.batch):
            if watch.must_stop():
                return
            self._step(order[begin : begin + self.batch], random)

    def _step(self, chosen: NDArray, random: np.random.Generator) -> None:
        problem = self.problem
        columns: NDArray | slice = slice(None)
        if self.columns < self.rows:
            columns = random.choice(self.rows, self.columns, replace=False)
        block = np.asarray(gram(problem).block(chosen, columns), dtype=np.float64)
        f = (self.rows / self.columns) * (block @ self.beta[columns]) + self.b
        slopes = problem.scale[chosen] / self.total * problem.loss.derivative(problem.y[chosen], f)
        shrinking = problem.penalty.l2 / self.total
        rate = self.rate / (1 + self.rate * shrinking * self.steps / 2)
        if not problem.loss.smooth or self.columns < self.rows:
            rate /= (1 + self.steps / HELD) ** 0.5
        gradient = (self.rows / len(chosen)) * slopes
        # Implicit in the penalty, so that no rate is too large for it.
        self.beta /= 1 + rate * shrinking
        self.beta[chosen] -= rate * gradient
        if problem.intercept:
            self.b -= rate * (float(gradient.sum()) + problem.tilt / self.total)
        self.steps += 1
        share = 2.0 / (self.steps + 1)
        self.average += share * (self.beta - self.average)
        self.average_b += share * (self.b - self.average_b)

    def point(self) -> Point:
        """The average, in which later steps count more."""
        return Point(self.average.copy(), self.average_b)


def _usual_rate(problem: Problem, batch: int) -> float:
    """A step that would undo the loss of a batch.

    One sample is stiff with k(x, x), all of them together with the largest eigenvalue of K / n; a batch lies between.
    """
    some = np.arange(0, len(problem.y), max(1, len(problem.y) // SAMPLE))
    K = np.asarray(gram(problem).block(some, some), dtype=np.float64) + float(problem.intercept)
    one, everything = float(K.diagonal().mean()), float(np.linalg.eigvalsh(K)[-1]) / len(some)
    bound = problem.loss.curvature_bound
    # A kernel that is zero on these samples has no stiffness; any positive number will do.
    return batch / (max(one + (batch - 1) * everything, 1e-300) * (bound if np.isfinite(bound) else 1.0))
