"""Coordinate descent with working sets and screening, for smooth losses and penalties with an l1 part."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.threads import single_threaded_blas
from empirisk.problem import Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.columns import Array, Chosen
from empirisk.solvers.coordinate_state import State
from empirisk.solvers.coordinate_steps import Steps
from empirisk.solvers.pause import must_stop
from empirisk.solvers.prices import Prices
from empirisk.solvers.thinning import thinned
from empirisk.solvers.working_set import LARGEST

#: The gap of a start on every eighth row.
ROUGH = 1e-2
#: Columns with zero weights and prices below this share of l1 may leave a working set.
NEARLY = 0.98
PATIENCE = 3
#: What must be the same for a descent to go on at another C.
SAME = ("loss", "penalty", "design", "y", "weights", "intercept")


class CoordinateDescent(Solver):
    """Coordinate descent on the columns that matter, with a duality gap over all of them.

    Columns whose correlation with the slopes exceeds l1 join a working set, the worst first. On the set a quadratic
    model of the loss sum is minimised by sweeps over single weights on its Gram matrix, ended by a direct solution
    for the weights that are not zero; losses other than the squared one take several models, each with a line
    search. Columns that are proven to be zero are not looked at again.

    >>> er.Lasso(C=1.0, solver=er.solvers.CoordinateDescent()).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).solver_
    'coordinate_descent'
    """

    def refuses(self, problem: Problem) -> str:
        if problem.classes:
            return "it handles one output; joint losses need solver='proximal'"
        if problem.loss.corners or not problem.loss.convex:
            return "the loss has corners"
        return ""

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        with single_threaded_blas():
            return self._descent(problem, watch, start).run(problem, watch)

    def _descent(self, problem: Problem, watch: Watch, start: Point | None) -> "Descent":
        """The descent that ended at the start, if it was on the same problem but for C; otherwise a new one."""
        kept: dict[int, Descent] = watch.shared.setdefault("descents", {})
        descent = kept.pop(id(problem.y), None)
        if descent is None or not descent.continues(problem, start):
            descent = Descent(problem, self._thinned_start(problem, watch) if start is None else start)
        kept[id(problem.y)] = descent
        while len(kept) > 1 and sum(other.bytes for other in kept.values()) > settings().memory // 8:
            del kept[next(iter(kept))]
        return descent

    def _thinned_start(self, problem: Problem, watch: Watch) -> Point:
        """A start from every eighth row, where enough remain; the one model of a quadratic loss needs none."""
        thin = None if problem.loss.quadratic else thinned(problem)
        if thin is None:
            return problem.origin()
        loose = Watch(tol=ROUGH, max_iter=50, deadline=watch.deadline, interrupted=watch.interrupted)
        return replace(self.solve(thin, loose), u=None)


class Mark(NamedTuple):
    """A solution on a path: the strength of the penalty, the weights and the intercept, and the prices."""

    l1: float
    w: Array
    b: float
    prices: Array


class Descent:
    """A descent that serves one C after another, on sets of columns that grow as they are needed."""

    def __init__(self, problem: Problem, start: Point):
        self._state = State(problem, start)
        if not self._state.C * self._state.value <= problem.origin_value:
            self._state = State(problem, problem.origin())
        self._prices = Prices(problem.design)
        self._sets = [Steps(self._state)]
        self._priced = False
        self._promised = 0.0
        self._ended: Point | None = None
        self._marks: list[Mark] = []

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
        """Minimise at the C of the problem until the watch says stop."""
        self._ended = self._run(problem, watch)
        self._mark()
        return self._ended

    def _run(self, problem: Problem, watch: Watch) -> Point:
        state = self._state
        state.penalise(problem)
        self._prices.forget()
        expected = self._extrapolate()
        floor = 1e-6 * problem.origin_value / problem.C
        patience, still, last, likely = 0, False, np.inf, False
        while True:
            gap = self._price(likely) if expected is None else np.inf
            enough = watch.tol * max(state.value, floor)
            point = state.point()
            if gap <= enough and not self._prices.complete:
                # A proof looks at every column; where it succeeds, their prices were not needed.
                if watch.proves(problem, point):
                    return point
                gap = self._price()
            patience = patience + 1 if still and gap > 0.7 * last else 0
            if (gap <= enough or patience) and watch.proves(problem, point):
                return point
            if patience > PATIENCE:
                watch.status = Status.STALLED
                return point
            new = self._violators(self._prices.values if expected is None else expected)
            goal = 0.1 ** (1 + 2 * patience) * enough
            if expected is None and len(new) > 0.02 * len(self._chosen):
                # More columns will follow: no need to be exact on these.
                goal = max(goal, min(0.3 * gap, 0.03 * state.value))
            likely = expected is not None or 0 < len(new) < 2 * np.sqrt(len(state.w))
            expected, value, last = None, state.value, gap
            if self._descend(new, goal, watch):
                return state.point()
            still = len(new) == 0 and value - state.value <= 1e-15 * value

    def _price(self, likely: bool = False) -> float:
        """Price every column, or the likely ones, at the slopes of the last model; returns an estimate of the gap."""
        state, prices = self._state, self._prices
        if not (self._priced and (likely or prices.complete)):
            prices.update(state.v, state.l1, state.w != 0, likely)
            self._priced = True
        if prices.can_prove:
            prices.prove(state.radius(prices.values), state.l1)
        return state.gap(prices.values)

    def _violators(self, prices: Array) -> Chosen:
        """The columns to take in: those with weights, and the worst of those whose price exceeds l1."""
        state = self._state
        excess = np.abs(prices) - state.l1
        excess[state.w != 0] = np.inf
        excess[self._chosen] = 0.0
        over = np.flatnonzero(excess > 0)
        room = np.isinf(excess).sum() + int(max(2 * np.sqrt(len(state.w)), 0.5 * np.count_nonzero(state.w)))
        if state.l1 > 0 and len(over) > room:
            over = over[np.argpartition(-excess[over], room)[:room]]
        return over

    def _extrapolate(self) -> Array | None:
        """Go on as the last two solutions of a path suggest; returns where the prices are heading."""
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
            self._state.v, self._priced = self._state.u, False
        return last.prices + stretch * (last.prices - before.prices)

    def _mark(self) -> None:
        """Remember where the path is."""
        state = self._state
        if not self._marks or self._marks[-1].l1 != state.l1:
            self._marks = [*self._marks[-1:], Mark(state.l1, state.w.copy(), state.b, self._prices.values)]

    def _descend(self, new: Chosen, goal: float, watch: Watch) -> bool:
        """Work on the sets until the models promise less than the goal; True if the watch says stop."""
        state = self._state
        idle = (state.w == 0) & (np.abs(self._prices.values) < NEARLY * state.l1)
        shares = self._distribute(new, idle)
        self._priced = False
        while True:
            promised = 0.0
            for steps, share in zip(self._sets, shares, strict=True):
                promised += steps.advance(share, idle, goal, lambda: must_stop(watch))
                if watch(Point(state.w, state.b), objective=state.C * state.value):
                    return True
            if len(self._sets) > 1:
                state.v = state.u  # each model knows the constraints of its own columns only
            exact = state.problem.loss.quadratic and len(self._sets) == 1
            # The next step will promise less by as much as this one does.
            next_promise = promised * min(promised / self._promised, 1.0) if self._promised > 0 else promised
            self._promised = promised
            if exact or next_promise <= goal:
                return False
            shares = [new[:0]] * len(self._sets)
            idle[:] = False

    def _distribute(self, new: Chosen, idle: NDArray[np.bool_]) -> list[Chosen]:
        """Deal new columns to the sets: to one set, unless there are too many even without the idle ones."""
        room = max(LARGEST - len(self._sets[-1].working), 0)
        if len(new) > room:
            chosen = self._chosen
            if 10 * np.count_nonzero(idle[chosen]) > len(chosen):
                new, room = np.append(chosen[~idle[chosen]], new), LARGEST
                self._sets = [Steps(self._state)]
        shares = [new[:0]] * (len(self._sets) - 1) + [new[:room]]
        for start in range(room, len(new), LARGEST):
            self._sets.append(Steps(self._state))
            shares.append(new[start : start + LARGEST])
        return shares
