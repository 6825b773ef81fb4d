"""A point on the way of coordinate descent, and what it proves."""

import numpy as np

from empirisk.problem import Point, Problem
from empirisk.solvers.columns import Array, Chosen, columns_of
from empirisk.solvers.coordinate_loops import slack

#: A sum of slopes below this share of their sizes is zero.
BALANCED = 1e-9


class State:
    """Weights, intercept and predictions, with all that follows from them, divided by C.

    The objective is  l1 |w|_1 + l2/2 |w|^2 + sum_i weights_i loss(y_i, f_i)  with strengths divided by C: only they
    change along a path.

    Attributes
    ----------
    w, b, f : array, float, array
        Weights, intercept and predictions.
    u : array
        The slopes weights_i loss'(y_i, f_i).
    v : array
        The slopes that the last quadratic model expects at its minimum. The constraints of the dual hold there for
        the columns of the model, so that v is the better dual point: its error is of second order in the last step,
        that of u of first.
    curvatures : array
        Those of the last model.
    loss, value : float
        The loss sum, and the objective.
    """

    def __init__(self, problem: Problem, start: Point):
        self.problem = problem
        self.w, self.b = start.w.astype(float), float(start.b)
        self._domain = [problem.weights * bound for bound in problem.loss.domain(problem.y)]
        self.f = self._predict()
        self._settle(self._loss_sum(self.f))
        self.v, self.curvatures = self.u, np.ones_like(self.u)
        self.penalise(problem)

    def _predict(self) -> Array:
        """A w + b, from the columns that have a weight."""
        support = np.flatnonzero(self.w)
        if not len(support):
            return np.full(len(self.problem.y), self.b)
        if 2 * len(support) > len(self.w):
            return self.problem.design.dot(self.w) + self.b
        return columns_of(self.problem.design, support).dot(self.w[support]) + self.b

    def _loss_sum(self, f: Array) -> float:
        return float(self.problem.weights @ self.problem.loss.value(self.problem.y, f))

    def slopes(self, f: Array) -> Array:
        """weights_i loss'(y_i, f_i)."""
        return self.problem.weights * self.problem.loss.derivative(self.problem.y, f)

    def penalty(self, w: Array) -> float:
        """l1 |w|_1 + l2/2 |w|^2."""
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * (w @ w))

    def penalise(self, problem: Problem) -> None:
        """Take the strengths of the penalty from a problem that differs in C alone."""
        self.C = problem.C
        self.l1, self.l2 = problem.penalty.l1 / problem.C, problem.penalty.l2 / problem.C
        self.value = self.penalty(self.w) + self.loss

    def _settle(self, loss: float) -> None:
        self.loss = loss
        self.u = self.slopes(self.f)

    def expect(self, v: Array) -> None:
        """Take the slopes of a model, as far as the loss has them."""
        self.v = np.clip(v, *self._domain)

    def try_move(self, chosen: Chosen, w: Array, b: float, f: Array, ceiling: float) -> float:
        """Go where the chosen weights are w, if the objective there is at most ``ceiling``; returns that objective."""
        penalty = self.penalty(self.w) + self.penalty(w) - self.penalty(self.w[chosen])
        loss = self._loss_sum(f)
        if penalty + loss <= ceiling:
            self.w[chosen] = w
            self.b, self.f, self.value = b, f, penalty + loss
            self._settle(loss)
        return penalty + loss

    def point(self) -> Point:
        """The point reached and its dual point, on the scale of the problem."""
        return Point(self.w.copy(), self.b, None if self.v is self.u else self.C * self.v)

    def gap(self, prices: Array) -> float:
        """An estimate of the duality gap between the weights and v, given the prices A'v."""
        # The loss and its conjugate, to second order.
        mismatch = 0.0 if self.v is self.u else 0.5 * float(((self.v - self.u) ** 2 / self.curvatures).sum())
        return mismatch + (self._fenchel(prices) if self.l2 > 0 else slack(self.w, prices, self.l1, self.l2))

    def radius(self, prices: Array) -> float:
        """How far v may be from the slopes at the solution, in the 2-norm; infinite where nothing is known.

        An objective within delta of its minimum has slopes u with  sum_i (u_i - u*_i)^2 / (2 weights_i bound) <= delta
        where ``bound`` is the largest curvature of the loss; and the duality gap is such a delta.
        """
        problem = self.problem
        bound = problem.loss.curvature_bound * problem.weights.max()
        imbalance = abs(float(self.v.sum())) if problem.intercept else 0.0
        if not (np.isfinite(bound) and self.l1 > 0) or imbalance > BALANCED * float(np.abs(self.v).sum()):
            return np.inf
        losses = self.loss + float(problem.weights @ problem.loss.conjugate(problem.y, self.v / problem.weights))
        delta = losses - float(self.v @ self.f) + imbalance * float(np.abs(self.f).max())
        if self.l2 > 0:
            delta += self._fenchel(prices)
        else:
            excess = max(float(np.abs(prices).max()) - self.l1, 0.0)
            # |w*|_1 <= value / l1, since no solution costs more than the current point.
            delta += self.penalty(self.w) + float(prices @ self.w) + excess * self.value / self.l1
        rounding = np.finfo(float).eps * len(self.f) * (self.value + abs(losses))
        return float(np.linalg.norm(self.v - self.u) + np.sqrt(2 * bound * (max(delta, 0.0) + rounding)))

    def _fenchel(self, prices: Array) -> float:
        """R(w) + R*(-A'v) + <A'v, w>."""
        excess = np.maximum(np.abs(prices) - self.l1, 0.0)
        return self.penalty(self.w) + float(excess @ excess) / (2 * self.l2) + float(prices @ self.w)
