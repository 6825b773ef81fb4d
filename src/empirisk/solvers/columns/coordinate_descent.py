"""Coordinate descent with working sets and screening, for smooth losses and penalties with an l1 part."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.chosen_columns import Array, Chosen, columns_of
from empirisk.problem import Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import EXPLICIT, NORMS, ONE_OUTPUT, SMOOTH_LOSS, Solver, Watch, thinned
from empirisk.solvers.columns.quadratic import Quadratic, slack
from empirisk.solvers.columns.working_set import LARGEST, Screening, WorkingSet
from empirisk.stop import Ending

#: The relative gap to which the start on every eighth row is solved.
ROUGH = 1e-2
#: Columns with zero weights and correlations below this share of l1 may leave the working set.
RELEASE_SHARE = 0.98
#: Checks of the gap without progress after which the solver reports a stall: only rounding is left.
STALL_CHECKS = 3
#: Rounds that add no column and halve neither the gap nor the objective, after which the solver reports a stall; fewer
#: for a quadratic loss, whose model each of them solves whole.
FRUITLESS, FRUITLESS_EXACT = 30, 10
#: The same for steps of one round, which halve neither what they promise nor the objective; shortened ones come to that
#: only after some dozens.
FRUITLESS_STEPS = 100
#: Parts of the problem that must be the same objects for a run to go on at another C (warm start with its Gram matrix).
SAME = ("loss", "penalty", "design", "y", "weights", "intercept")
#: A sum of slopes below this share of their absolute sum counts as zero.
BALANCED = 1e-9
#: Bounds on curvatures, the lower one relative to the largest.
FLATTEST, STEEPEST = 1e-10, 1e12
#: Each model is solved to this share of the slack it starts with.
FORCING = 5e-2
#: Armijo condition: a step must bring this share of the decrease that the model promised; the shortest step tried.
SHARE, SHORTEST = 0.01, 1e-10
#: A decrease below this share of the objective is lost in rounding.
DECREASE_ROUNDING = 1e-13
#: The Gram matrix is renewed if a step predicts more than this share of the decrease of the last one.
SLOW = 0.3
TINY, EPSILON = np.finfo(float).tiny, np.finfo(float).eps


class CoordinateDescent(Solver):
    """Coordinate descent on the columns that matter, with a duality gap over all of them.

    Columns whose correlation with the slopes exceeds l1 join a working set, the worst first. On the set a quadratic
    model of the loss sum is minimised by sweeps over single weights on its Gram matrix, ended by a direct solution
    for the weights that are not zero; losses other than the squared one take several models, each with a line
    search. Columns that are proven to be zero are not looked at again.

    >>> er.Lasso(C=1.0, solver=er.solvers.CoordinateDescent()).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).solver_
    'coordinate_descent'
    """

    needs = (EXPLICIT, ONE_OUTPUT, SMOOTH_LOSS, NORMS)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        return self._descent(problem, watch, start).run(problem, watch)

    def _descent(self, problem: Problem, watch: Watch, start: Point | None) -> "CoordinateDescentRun":
        """The descent that ended at the start, if it was on the same problem but for C; otherwise a new one."""
        kept: dict[int, CoordinateDescentRun] = watch.shared.setdefault("descents", {})
        descent = kept.pop(id(problem.y), None)
        if descent is None or not descent.continues(problem, start):
            descent = CoordinateDescentRun(problem, self._thinned_start(problem, watch) if start is None else start)
        kept[id(problem.y)] = descent
        while len(kept) > 1 and sum(other.bytes for other in kept.values()) > settings().memory // 8:
            del kept[next(iter(kept))]
        return descent

    def _thinned_start(self, problem: Problem, watch: Watch) -> Point:
        """A start from every eighth row, where enough remain; the one model of a quadratic loss needs none."""
        thin = None if problem.loss.quadratic else thinned(problem)
        if thin is None:
            return problem.origin()
        # A start is worth a few rounds: what they do not reach is found on all rows.
        loose = Watch(tol=ROUGH, max_iter=50, deadline=watch.deadline)
        return replace(self.solve(thin, loose), u=None)


class PathPoint(NamedTuple):
    """A solution on the path over C: strength of the penalty, weights, intercept, and correlations A'u."""

    l1: float
    w: Array
    b: float
    correlations: Array


class CoordinateDescentRun:
    """Coordinate descent on growing working sets of columns; it is kept from one C of a path to the next."""

    def __init__(self, problem: Problem, start: Point):
        self._state = CoordinateIterate(problem, start)
        if not self._state.C * self._state.value <= problem.origin_value:
            self._state = CoordinateIterate(problem, problem.origin())
        self._screening = Screening(problem.design)
        self._sets = [ModelSteps(self._state)]
        self._correlated = False
        self._promised = 0.0
        self._ended: Point | None = None
        self._marks: list[PathPoint] = []

    def continues(self, problem: Problem, start: Point | None) -> bool:
        """Whether the problem differs in C alone, and is to be started where this descent ended."""
        mine = self._state.problem
        return start is self._ended and all(getattr(mine, part) is getattr(problem, part) for part in SAME)

    @property
    def bytes(self) -> int:
        """About how much memory the descent keeps."""
        return sum(steps.working.bytes for steps in self._sets)

    @property
    def _chosen(self) -> Chosen:
        """The columns of all sets."""
        return np.concatenate([steps.working.chosen for steps in self._sets])

    def run(self, problem: Problem, watch: Watch) -> Point:
        """Minimise at the C of the problem until the watch says stop, and remember where the path is."""
        self._ended, state = self._run(problem, watch), self._state
        if not self._marks or self._marks[-1].l1 != state.l1:
            self._marks = [*self._marks[-1:], PathPoint(state.l1, state.w.copy(), state.b, self._screening.values)]
        return self._ended

    def _run(self, problem: Problem, watch: Watch) -> Point:
        state = self._state
        state.penalise(problem)
        self._screening.forget()
        expected = self._extrapolate()
        # A loss that vanishes has no relative gap: a millionth of that at the origin then counts as reached.
        floor = 1e-6 * problem.origin_value / problem.C
        patience, still, last, only_near = 0, False, np.inf, False
        halved, since = (np.inf, np.inf), 0
        fruitless = FRUITLESS_EXACT if problem.loss.quadratic else FRUITLESS
        while True:
            gap = self._correlate(only_near) if expected is None else np.inf
            enough = watch.tol * max(state.value, floor)
            point = state.point()
            if gap <= enough and not self._screening.complete:
                # The certificate reads every column; where it succeeds, the other correlations were not needed.
                if watch.proves(problem, point):
                    return point
                gap = self._correlate()
            # Rounds that leave more than 0.7 of the gap and change nothing have met rounding.
            patience = patience + 1 if still and gap > 0.7 * last else 0
            if (gap <= enough or patience) and watch.proves(problem, point):
                return point
            if gap < 0.5 * halved[0] or state.value < 0.5 * halved[1]:
                halved, since = (gap, state.value), 0
            if patience > STALL_CHECKS or since > fruitless:
                watch.status = Ending.STALLED
                return point
            new = self._violators(self._screening.values if expected is None else expected)
            # A tenth of what is wanted in all, and a hundredth of that for every round without progress.
            goal = 0.1 ** (1 + 2 * patience) * enough
            # A fiftieth of the columns is new.
            if expected is None and len(new) > 0.02 * len(self._chosen):
                # More columns will follow: no need to be exact on these.
                goal = max(goal, min(0.3 * gap, 0.03 * state.value))
            only_near = expected is not None or 0 < len(new) < 2 * len(state.w) ** 0.5
            expected, value, last = None, state.value, gap
            if self._descend(new, goal, watch):
                return state.point()
            # Less than the last digit.
            since += len(new) == 0
            still = len(new) == 0 and value - state.value <= 1e-15 * value

    def _correlate(self, only_near: bool = False) -> float:
        """Correlate all columns, or those near l1, with the last model's slopes; returns an estimate of the gap."""
        state, screening = self._state, self._screening
        if not (self._correlated and (only_near or screening.complete)):
            screening.update(state.v, state.l1, state.w != 0, only_near)
            self._correlated = True
        if screening.can_prove:
            screening.prove(state.radius(screening.values), state.l1)
        return state.gap(screening.values)

    def _violators(self, correlations: Array) -> Chosen:
        """The columns to add to the working set: those with weights, and the worst whose correlation exceeds l1."""
        state = self._state
        excess = np.abs(correlations) - state.l1
        excess[state.w != 0] = np.inf
        excess[self._chosen] = 0.0
        over = np.flatnonzero(excess > 0)
        room = int(max(2 * len(state.w) ** 0.5, 0.5 * np.count_nonzero(state.w)))
        if len(over) > room:
            room += np.count_nonzero(excess == np.inf)
        if state.l1 > 0 and len(over) > room:
            over = over[np.argpartition(-excess[over], room)[:room]]
        return over

    def _extrapolate(self) -> Array | None:
        """Go on as the last two solutions of a path suggest; returns the correlations expected there."""
        w = self._state.w
        if len(self._marks) < 2 or np.count_nonzero(w[self._chosen]) < np.count_nonzero(w):
            return None
        before, last = self._marks
        stretch = (self._state.l1 - last.l1) / (last.l1 - before.l1)
        w = last.w + stretch * (last.w - before.w)
        # Weights that would change their sign stop at zero.
        w[w * last.w <= 0] = 0.0
        b = last.b + stretch * (last.b - before.b)
        f = sum(steps.working.dot(w[steps.working.chosen]) for steps in self._sets) + b
        value = self._state.value
        if self._state.try_move(np.arange(len(w)), w, b, f, value) <= value:
            self._state.v, self._correlated = self._state.u, False
        return last.correlations + stretch * (last.correlations - before.correlations)

    def _descend(self, new: Chosen, goal: float, watch: Watch) -> bool:
        """Minimise on the working sets until the predicted decrease is below the goal; True if all is to end there."""
        state = self._state
        idle = (state.w == 0) & (np.abs(self._screening.values) < RELEASE_SHARE * state.l1)
        shares = self._distribute(new, idle)
        self._correlated = False
        halved, since = (np.inf, np.inf), 0
        while True:
            promised = 0.0
            for steps, share in zip(self._sets, shares, strict=True):
                promised += steps.advance(share, idle, goal, lambda: watch.must_stop())
                if watch(Point(state.w, state.b), objective=state.C * state.value):
                    return True
            if len(self._sets) > 1:
                state.v = state.u  # each model knows the constraints of its own columns only
            exact = state.problem.loss.quadratic and len(self._sets) == 1
            # The predicted decrease falls by about the same factor at each step.
            next_promise = promised * min(promised / self._promised, 1.0) if self._promised > 0 else promised
            self._promised = promised
            if exact or next_promise <= goal:
                return False
            if promised < 0.5 * halved[0] or state.value < 0.5 * halved[1]:
                halved, since = (promised, state.value), 0
            elif (since := since + 1) == FRUITLESS_STEPS:
                watch.status = Ending.STALLED
                return True
            shares = [new[:0]] * len(self._sets)
            idle[:] = False

    def _distribute(self, new: Chosen, idle: NDArray[np.bool_]) -> list[Chosen]:
        """Deal new columns to the sets: to one set, unless there are too many even without the idle ones."""
        room = max(LARGEST - len(self._sets[-1].working), 0)
        if len(new) > room:
            chosen = self._chosen
            if 10 * np.count_nonzero(idle[chosen]) > len(chosen):
                new, room = np.append(chosen[~idle[chosen]], new), LARGEST
                self._sets = [ModelSteps(self._state)]
        shares = [new[:0]] * (len(self._sets) - 1) + [new[:room]]
        for start in range(room, len(new), LARGEST):
            self._sets.append(ModelSteps(self._state))
            shares.append(new[start : start + LARGEST])
        return shares


class CoordinateIterate:
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
        self.loss, self.u = self._loss_sum(self.f), self.slopes(self.f)
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

    def expect(self, v: Array) -> None:
        """Take the slopes of a model, as far as the loss has them."""
        self.v = np.clip(v, *self._domain)

    def try_move(self, chosen: Chosen, w: Array, b: float, f: Array, ceiling: float) -> float:
        """Go where the chosen weights are w, if the objective there is at most ``ceiling``; returns that objective."""
        moved = self.w.copy()
        moved[chosen] = w
        loss = self._loss_sum(f)
        value = self.penalty(moved) + loss
        if value <= ceiling:
            self.w, self.b, self.f, self.value = moved, b, f, value
            self.loss, self.u = loss, self.slopes(f)
        return value

    def point(self) -> Point:
        """The point reached and its dual point, on the scale of the problem."""
        return Point(self.w.copy(), self.b, None if self.v is self.u else self.C * self.v)

    def gap(self, correlations: Array) -> float:
        """An estimate of the duality gap between the weights and v, given the correlations A'v."""
        # The loss and its conjugate, to second order.
        mismatch = 0.0 if self.v is self.u else 0.5 * float(((self.v - self.u) ** 2 / self.curvatures).sum())
        return mismatch + (
            self._fenchel(correlations) if self.l2 > 0 else slack(self.w, correlations, self.l1, self.l2)
        )

    def radius(self, correlations: Array) -> float:
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
            delta += self._fenchel(correlations)
        else:
            excess = max(float(np.abs(correlations).max()) - self.l1, 0.0)
            # |w*|_1 <= value / l1, since no solution costs more than the current point.
            delta += self.penalty(self.w) + float(correlations @ self.w) + excess * self.value / self.l1
        rounding = np.finfo(float).eps * len(self.f) * (self.value + abs(losses))
        return float(np.linalg.norm(self.v - self.u) + np.sqrt(2 * bound * (max(delta, 0.0) + rounding)))

    def _fenchel(self, correlations: Array) -> float:
        """R(w) + R*(-A'v) + <A'v, w>."""
        excess = np.maximum(np.abs(correlations) - self.l1, 0.0)
        return self.penalty(self.w) + float(excess @ excess) / (2 * self.l2) + float(correlations @ self.w)


class ModelSteps:
    """Moves a state along a working set.

    The curvatures of a model are those of the loss, with two exceptions that make models good over a whole step. After
    a step that had to be shortened they are the slopes of the chords to the predictions that were too far, the steepest
    ones where several steps in a row were shortened; and where the curvature of the loss has no bound, to those at
    which its slopes are what the last model expected.
    """

    def __init__(self, state: CoordinateIterate):
        self._state = state
        self.working = WorkingSet(state.problem.design, state.problem.intercept)
        self._missed: Array | None = None
        self._bends: Array | float = 0.0
        self._expected: Array | None = None
        self._promise = np.inf
        self._slow = False

    def advance(self, new: Chosen, idle: NDArray[np.bool_], goal: float, stop: Callable[[], bool]) -> float:
        """Minimise a model on the working set and go there; returns the decrease that the model predicts.

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
        if self._promise <= DECREASE_ROUNDING * state.value:
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
            if not loss.quadratic:
                # Bends that one short step after the other has met: forgotten ones would only be met again.
                curvatures = self._bends = np.maximum(curvatures, np.minimum(self._bends, STEEPEST))
        largest = curvatures.max()
        return np.maximum(curvatures, FLATTEST * largest) if largest > 0 else weights

    def _chords(self, f: Array, slopes: Array, otherwise: Array) -> Array:
        """How steeply the slopes rise from the predictions to f."""
        state = self._state
        run, rise = f - state.f, slopes - state.u
        size = np.abs(f - state.problem.y) + np.abs(state.f - state.problem.y)
        # A shorter run has lost half of its digits, and its chord all meaning.
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
            # The model need not be better than a third of the goal that it serves.
            goal = max(0.3 * goal, start * FORCING * min(1.0, start / max(state.value, TINY)))
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
        """Backtracking line search with the Armijo condition; returns the decrease that the model predicts."""
        state, chosen = self._state, self.working.chosen
        old, b, f, before = state.w[chosen], state.b, state.f, state.value
        promise = state.penalty(old) - state.penalty(old + step) - float(state.u @ df)
        # A predicted decrease below rounding is accepted unchecked: the dual point still gains, by its square root.
        noise = 4 * EPSILON * before if promise <= DECREASE_ROUNDING * before else 0.0
        t, missed = 1.0, 0.0
        while t >= SHORTEST:
            ceiling = before - SHARE * t * promise + noise
            value = state.try_move(chosen, old + t * step, b + t * rise, f + t * df, ceiling)
            if value <= ceiling:
                self._missed, self._bends = (f + missed * df, self._bends) if missed else (None, 0.0)
                return promise
            missed = t
            bend = value - before + promise * t
            drop = 0.5 * promise * t / bend if 0 < bend < np.inf else 0.0
            # The minimum of the interpolating parabola, kept between a tenth and a half of the last step.
            t *= min(max(drop, 0.1), 0.5)
        self._missed = f + missed * df
        return 0.0
