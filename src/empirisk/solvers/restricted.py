"""A point of a problem, and its moves along the columns of a working set."""

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Point, Problem
from empirisk.solvers.columns import Array, Chosen, columns_of
from empirisk.solvers.coordinate_loops import slack
from empirisk.solvers.quadratic import Quadratic
from empirisk.solvers.working_set import WorkingSet

#: Bounds on curvatures, the lower one relative to the largest.
FLATTEST, STEEPEST = 1e-10, 1e12
#: Each model is solved to this share of the slack it starts with.
FORCING = 5e-2
SHORTEST = 1e-10
TINY, EPSILON = np.finfo(float).tiny, np.finfo(float).eps
#: A sum of slopes below this share of their sizes is zero.
BALANCED = 1e-9


class State:
    """Weights, intercept and predictions, with all that follows from them, divided by C.

    The objective is  l1 |w|_1 + l2/2 |w|^2 + sum_i weights_i loss(y_i, f_i),  with strengths divided by C: only they
    change along a path.

    Attributes
    ----------
    w, b, f : array, float, array
        Weights, intercept and predictions.
    u : array
        The slopes weights_i loss'(y_i, f_i).
    v : array
        The slopes that the last model expects at its minimum. The model's constraints hold there, so that v is the
        better dual point: its error is of second order in the last step, that of u of first.
    curvature : array
        The curvatures of the last model.
    loss, value : float
        The loss sum, and the objective.
    """

    def __init__(self, problem: Problem, start: Point):
        self.problem = problem
        self.w, self.b = start.w.astype(float), float(start.b)
        self._settle(self._predict(), None)
        self.v, self.curvature = self.u, np.ones_like(self.u)
        self._missed: Array | None = None
        self._expected: Array | None = None
        self._slow, self._promise = False, np.inf
        self.penalise(problem)

    def _predict(self) -> Array:
        """A w + b, from the columns that have a weight."""
        support = np.flatnonzero(self.w)
        if not len(support):
            return np.full(len(self.problem.y), self.b)
        if 2 * len(support) > len(self.w):
            return self.problem.design.dot(self.w) + self.b
        return columns_of(self.problem.design, support).dot(self.w[support]) + self.b

    def _settle(self, f: Array, loss: float | None) -> None:
        """Take new predictions, whose loss sum may be known."""
        self.f = f
        self.loss = self._loss_sum(f) if loss is None else loss
        self.u = self.problem.weights * self.problem.loss.derivative(self.problem.y, f)

    def _loss_sum(self, f: Array) -> float:
        return float(self.problem.weights @ self.problem.loss.value(self.problem.y, f))

    def _penalty(self, w: Array) -> float:
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * (w @ w))

    def penalise(self, problem: Problem) -> None:
        """Take the strengths of the penalty from a problem that differs in C alone."""
        self.C = problem.C
        self.l1, self.l2 = problem.penalty.l1 / problem.C, problem.penalty.l2 / problem.C
        self.value = self._penalty(self.w) + self.loss

    def point(self) -> Point:
        """The point reached and its dual point, on the scale of the problem."""
        return Point(self.w.copy(), self.b, None if self.v is self.u else self.C * self.v)

    def gap(self, prices: Array) -> float:
        """An estimate of the duality gap between the weights and v, given the prices A'v."""
        # The loss and its conjugate, to second order.
        mismatch = 0.0 if self.v is self.u else 0.5 * float(((self.v - self.u) ** 2 / self.curvature).sum())
        return mismatch + (self._fenchel(prices) if self.l2 > 0 else slack(self.w, prices, self.l1, self.l2))

    def radius(self, prices: Array) -> float:
        """How far v may be from the slopes at the solution, in the 2-norm; infinite where nothing is known.

        An objective within delta of its minimum has slopes u with  sum_i (u_i - u*_i)^2 / (2 weights_i bound) <= delta
        where ``bound`` is the largest curvature of the loss.
        """
        problem = self.problem
        bound = problem.loss.curvature_bound * problem.weights.max()
        imbalance = abs(float(self.v.sum())) if problem.intercept else 0.0
        if not (np.isfinite(bound) and self.l1 > 0) or imbalance > BALANCED * float(np.abs(self.v).sum()):
            return np.inf
        mismatch = self.loss + float(problem.weights @ problem.loss.conjugate(problem.y, self.v / problem.weights))
        delta = mismatch - float(self.v @ self.f) + imbalance * float(np.abs(self.f).max())
        if self.l2 > 0:
            delta += self._fenchel(prices)
        else:
            excess = max(float(np.abs(prices).max()) - self.l1, 0.0)
            # |w*|_1 <= value / l1, since no solution costs more than the current point.
            delta += self._penalty(self.w) + float(prices @ self.w) + excess * self.value / self.l1
        rounding = np.finfo(float).eps * len(self.f) * (self.value + abs(mismatch))
        return float(np.linalg.norm(self.v - self.u) + np.sqrt(2 * bound * (max(delta, 0.0) + rounding)))

    def _fenchel(self, prices: Array) -> float:
        """R(w) + R*(-A'v) + <A'v, w>."""
        excess = np.maximum(np.abs(prices) - self.l1, 0.0)
        return self._penalty(self.w) + float(excess @ excess) / (2 * self.l2) + float(prices @ self.w)

    def _curvatures(self) -> Array:
        """weights_i loss''(y_i, f_i), kept away from zero and infinity."""
        weights = self.problem.weights
        bends = weights * np.minimum(self.problem.loss.curvature(self.problem.y, self.f), STEEPEST)
        if self._expected is not None:
            bends = self._chords(self._expected, self.v, bends)
        elif self._missed is not None:
            slopes = weights * self.problem.loss.derivative(self.problem.y, self._missed)
            bends = self._chords(self._missed, slopes, bends)
        largest = bends.max()
        return np.maximum(bends, FLATTEST * largest) if largest > 0 else weights

    def _chords(self, f: Array, slopes: Array, bends: Array) -> Array:
        """The slopes of the chords of the derivative from the predictions to f; the bends where these coincide."""
        run, rise = f - self.f, slopes - self.u
        known = (rise * run > 0) & (np.abs(run) > 1e-8 * (np.abs(f - self.problem.y) + np.abs(self.f - self.problem.y)))
        return np.divide(rise, run, out=bends.copy(), where=known)

    def _expect(self) -> Array | None:
        """The predictions at which the slopes are v, for losses whose curvature has no bound."""
        loss, weights, y = self.problem.loss, self.problem.weights, self.problem.y
        if self.v is self.u or np.isfinite(loss.curvature_bound):
            return None
        v, (low, high) = self.v / weights, loss.domain(y)
        far = 1e9 * (np.abs(self.f).max() + np.abs(y).max()) / max(np.abs(v).max(), TINY)
        # The prox of a step that long solves  loss'(x) = v - x / far.
        inside = (v > low) & (v < high)
        f = np.where(inside, loss.prox(y, far * np.where(inside, v, 0.0), far), self.f)
        same = inside & (np.abs(f - self.f) <= 8 * EPSILON * (np.abs(y) + np.abs(self.f)))
        # Predictions equal to rounding: the slopes are then better known than they are.
        self.u = np.where(same, self.v, self.u)
        return f

    def advance(self, working: WorkingSet, new: Chosen, idle: NDArray[np.bool_], goal: float) -> float:
        """Minimise a quadratic model on the working set and go there; returns the decrease that the model promised."""
        self._expected = self._expect()
        working.update(new, self._curvatures(), idle, self._missed is not None or self._slow)
        self.v, self.curvature = self.u, working.curvatures
        step, rise, df = self._model(working, goal)
        if self._promise == 0:
            self._refine(working, step)
        promise = self._search(working.chosen, step, rise, df)
        self._slow = promise > 0.3 * self._promise
        self._promise = promise
        return promise

    def _model(self, working: WorkingSet, goal: float) -> tuple[Array, float, Array]:
        """Minimise the model from the step ``done`` on, with slopes v; returns the moves of w, b, f, and moves v."""
        before = self.w[working.chosen]
        w = before.copy()
        constant = float(self.v.sum()) if self.problem.intercept else 0.0
        gradient = working.tdot(self.v) - constant * working.means
        model = Quadratic(working.matrix, working.diagonal, w, gradient, self.l1, self.l2)
        target = goal
        if not self.problem.loss.quadratic:
            start = model.slack()
            target = max(0.3 * goal, start * FORCING * min(1.0, start / self.value))
        model.minimise(target)
        step = w - before
        rise = -(constant / working.total + float(working.means @ step)) if self.problem.intercept else 0.0
        df = working.dot(step) + rise
        self.v = self.v + working.curvatures * df
        return step, rise, df

    def _refine(self, working: WorkingSet, done: Array) -> None:
        """Correct v where the weights no longer move but rounding, times the curvature, is still in it."""
        w = self.w[working.chosen] + done
        for _ in range(3):
            constant = float(self.v.sum()) if self.problem.intercept else 0.0
            gradient = working.tdot(self.v) - constant * working.means
            step = Quadratic(working.matrix, working.diagonal, w, gradient, self.l1, self.l2).step()
            rise = -(constant / working.total + float(working.means @ step)) if self.problem.intercept else 0.0
            self.v = self.v + working.curvatures * (working.dot(step) + rise)

    def _search(self, chosen: Chosen, step: Array, rise: float, df: Array) -> float:
        """Go along a step as far as the objective falls in proportion."""
        old = self.w[chosen]
        rest = self._penalty(self.w) - self._penalty(old)
        promise = self._penalty(old) - self._penalty(old + step) - float(self.u @ df)
        t, missed = 1.0, 0.0
        while t >= SHORTEST:
            w, f = old + t * step, self.f + t * df
            loss = self._loss_sum(f)
            value = rest + self._penalty(w) + loss
            if value <= self.value - 0.01 * t * promise:
                self.w[chosen], self.b, self.value = w, self.b + t * rise, value
                before = self.f
                self._settle(f, loss)
                self._missed = before + missed * df if missed else None
                if self.problem.loss.quadratic:
                    self.v = self.u
                return promise
            missed = t
            drop = 0.5 * promise * t / (value - self.value + promise * t) if np.isfinite(value) else 0.0
            t *= min(max(drop, 0.1), 0.5)
        self._missed = self.f + missed * df
        return 0.0
