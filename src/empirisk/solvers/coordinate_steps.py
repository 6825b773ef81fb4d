"""Steps of coordinate descent: quadratic models of the loss sum on a working set, each with a line search."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.solvers.columns import Array, Chosen
from empirisk.solvers.coordinate_state import State
from empirisk.solvers.quadratic import Quadratic
from empirisk.solvers.working_set import WorkingSet

#: Bounds on curvatures, the lower one relative to the largest.
FLATTEST, STEEPEST = 1e-10, 1e12
#: Each model is solved to this share of the slack it starts with.
FORCING = 5e-2
#: A step is taken if it brings this share of what the model promised; the shortest one that is tried.
SHARE, SHORTEST = 0.01, 1e-10
#: A decrease below this share of the objective drowns in rounding.
UNSEEN = 1e-13
#: A step that promises more than this share of what the last one did calls for a fresh Gram matrix.
SLOW = 0.3
TINY, EPSILON = np.finfo(float).tiny, np.finfo(float).eps


class Steps:
    """Moves a state along a working set.

    The curvatures of a model are those of the loss, with two exceptions that make models good over a whole step. After
    a step that had to be shortened they are the slopes of the chords to the predictions that were too far; and where
    the curvature of the loss has no bound, to those at which its slopes are what the last model expected.
    """

    def __init__(self, state: State):
        self._state = state
        self.working = WorkingSet(state.problem.design, state.problem.intercept)
        self._missed: Array | None = None
        self._expected: Array | None = None
        self._promise = np.inf
        self._slow = False

    def advance(self, new: Chosen, idle: NDArray[np.bool_], goal: float, stop: Callable[[], bool]) -> float:
        """Minimise a model on the working set and go there; returns the decrease that the model promised.

        Parameters
        ----------
        new, idle : arrays
            Columns to take into the set, and a mask of those that may leave it.
        goal : float
            The decrease below which the model need not be minimised further.
        stop : callable
            Tells whether to leave the model as it is.
        """
        state = self._state
        self._expected = self._expect()
        self.working.update(new, self._curvatures(), idle, afresh=self._missed is not None or self._slow)
        state.curvatures = self.working.curvatures
        step, rise, df = self._model(goal, stop)
        if self._promise <= UNSEEN * state.value:
            self._refine(step)
        promise = self._search(step, rise, df)
        self._slow = promise > SLOW * self._promise and not state.problem.loss.quadratic
        self._promise = promise
        return promise

    def _curvatures(self) -> Array:
        """weights_i loss''(y_i, f_i) or chords, kept away from zero and infinity."""
        state = self._state
        weights, loss, y = state.problem.weights, state.problem.loss, state.problem.y
        curvatures = weights * np.minimum(loss.curvature(y, state.f), STEEPEST)
        if self._expected is not None:
            curvatures = self._chords(self._expected, state.v, curvatures)
        elif self._missed is not None:
            curvatures = self._chords(self._missed, state.slopes(self._missed), curvatures)
        largest = curvatures.max()
        return np.maximum(curvatures, FLATTEST * largest) if largest > 0 else weights

    def _chords(self, f: Array, slopes: Array, otherwise: Array) -> Array:
        """How steeply the slopes rise from the predictions to f."""
        state = self._state
        run, rise = f - state.f, slopes - state.u
        size = np.abs(f - state.problem.y) + np.abs(state.f - state.problem.y)
        return np.divide(rise, run, out=otherwise.copy(), where=(rise * run > 0) & (np.abs(run) > 1e-8 * size))

    def _expect(self) -> Array | None:
        """The predictions at which the slopes are v, for losses whose curvature has no bound."""
        state = self._state
        loss, weights, y = state.problem.loss, state.problem.weights, state.problem.y
        if state.v is state.u or np.isfinite(loss.curvature_bound):
            return None
        v, (low, high) = state.v / weights, loss.domain(y)
        inside = (v > low) & (v < high)
        # The prox of a long step solves  loss'(x) = v - x / step.
        step = 1e9 * (np.abs(state.f).max() + np.abs(y).max()) / max(np.abs(v).max(), TINY)
        f = np.where(inside, loss.prox(y, step * np.where(inside, v, 0.0), step), state.f)
        same = inside & (np.abs(f - state.f) <= 8 * EPSILON * (np.abs(y) + np.abs(state.f)))
        # Where the predictions agree to rounding, the slopes of the model are the more exact ones.
        state.u = np.where(same, state.v, state.u)
        return f

    def _gradient(self, slopes: Array) -> tuple[Array, float]:
        """The gradient of the loss sum in the chosen weights, the intercept eliminated, and that in the intercept."""
        constant = float(slopes.sum()) if self._state.problem.intercept else 0.0
        return self.working.tdot(slopes) - constant * self.working.means, constant

    def _predictions(self, step: Array, constant: float) -> tuple[float, Array]:
        """The move of the intercept that goes with a step of the weights, and that of the predictions."""
        working, free = self.working, self._state.problem.intercept
        rise = -(constant / working.total + float(working.means @ step)) if free else 0.0
        return rise, working.dot(step) + rise

    def _quadratic(self, w: Array, gradient: Array) -> Quadratic:
        return Quadratic(self.working.matrix, self.working.diagonal, w, gradient, self._state.l1, self._state.l2)

    def _model(self, goal: float, stop: Callable[[], bool]) -> tuple[Array, float, Array]:
        """Minimise the model; returns the moves of w, b and f, and leaves the slopes there as v."""
        state = self._state
        old = state.w[self.working.chosen]
        w = old.copy()
        gradient, constant = self._gradient(state.u)
        model = self._quadratic(w, gradient)
        if not state.problem.loss.quadratic:
            start = model.slack()
            goal = max(0.3 * goal, start * FORCING * min(1.0, start / state.value))
        model.minimise(goal, stop)
        rise, df = self._predictions(w - old, constant)
        state.expect(state.u + self.working.curvatures * df)
        return w - old, rise, df

    def _refine(self, step: Array) -> None:
        """Correct v where the weights no longer move but rounding, times the curvature, is still in it."""
        state = self._state
        w = state.w[self.working.chosen] + step
        for _ in range(3):
            gradient, constant = self._gradient(state.v)
            more = self._quadratic(w, gradient).step()
            state.expect(state.v + self.working.curvatures * self._predictions(more, constant)[1])

    def _search(self, step: Array, rise: float, df: Array) -> float:
        """Go along a step as far as the objective falls in proportion; returns what the model promised."""
        state, chosen = self._state, self.working.chosen
        old, b, f, before = state.w[chosen], state.b, state.f, state.value
        promise = state.penalty(old) - state.penalty(old + step) - float(state.u @ df)
        # A decrease too small to be seen is taken on trust: the dual point gains by the square root of it.
        noise = 4 * EPSILON * before if promise <= UNSEEN * before else 0.0
        t, missed = 1.0, 0.0
        while t >= SHORTEST:
            ceiling = before - SHARE * t * promise + noise
            value = state.try_move(chosen, old + t * step, b + t * rise, f + t * df, ceiling)
            if value <= ceiling:
                self._missed = f + missed * df if missed else None
                return promise
            missed = t
            drop = 0.5 * promise * t / (value - before + promise * t) if np.isfinite(value) else 0.0
            t *= min(max(drop, 0.1), 0.5)
        self._missed = f + missed * df
        return 0.0
