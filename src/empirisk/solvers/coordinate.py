"""Coordinate descent with working sets and screening, for smooth losses and penalties with an l1 part."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.blocks import single_threaded_blas
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.columns import Chosen
from empirisk.solvers.prices import Prices
from empirisk.solvers.restricted import State
from empirisk.solvers.working_set import LARGEST, WorkingSet

#: A start is found on every eighth row where this many remain, to this gap.
THINNING, ENOUGH_ROWS, ROUGH = 8, 1000, 1e-2
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
        if problem.loss.corners:
            return "the loss has corners"
        return ""

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        with single_threaded_blas():
            return self._descent(problem, watch, start).run(problem, watch)

    def _descent(self, problem: Problem, watch: Watch, start: Point | None) -> "Descent":
        """The descent that ended at the start, if it was on the same problem but for C; otherwise a new one."""
        known = watch.shared.get(Descent)
        if known is None or not known.continues(problem, start):
            watch.shared.pop(Descent, None)
            known = Descent(problem, self._thinned_start(problem, watch) if start is None else start)
            watch.shared[Descent] = known
        return known

    def _thinned_start(self, problem: Problem, watch: Watch) -> Point:
        """A start from every eighth row, where enough remain; the one model of a quadratic loss needs none."""
        if problem.loss.quadratic or problem.design.shape[0] < THINNING * ENOUGH_ROWS:
            return problem.origin()
        every = slice(None, None, THINNING)
        thin = replace(
            problem,
            C=problem.C * THINNING,
            design=problem.design.rows(every),
            y=problem.y[every],
            weights=problem.weights[every],
        )
        loose = Watch(tol=ROUGH, max_iter=50, deadline=watch.deadline, interrupted=watch.interrupted)
        return self.solve(thin, loose)


class Descent:
    """A descent that serves one C after another, on sets of columns that grow as they are needed."""

    def __init__(self, problem: Problem, start: Point):
        self._state = State(problem, start)
        if not np.isfinite(self._state.value):
            self._state = State(problem, problem.origin())
        self._prices = Prices(problem.design)
        self._sets = [self._empty_set()]
        self._priced = False
        self._promised = 0.0
        self._ended: Point | None = None

    def continues(self, problem: Problem, start: Point | None) -> bool:
        """Whether the problem differs in C alone, and is to be started where this descent ended."""
        mine = self._state.problem
        return start is self._ended and all(getattr(mine, part) is getattr(problem, part) for part in SAME)

    def _empty_set(self) -> WorkingSet:
        problem = self._state.problem
        return WorkingSet(problem.design, problem.intercept)

    def run(self, problem: Problem, watch: Watch) -> Point:
        """Minimise at the C of the problem until the watch says stop."""
        self._ended = self._run(problem, watch)
        return self._ended

    def _run(self, problem: Problem, watch: Watch) -> Point:
        state = self._state
        before = state.l1
        state.penalise(problem)
        self._prices.forget()
        # Prices change more slowly than l1 along a path: columns above this are likely to be needed.
        threshold = min(2 * state.l1 - before, state.l1)
        floor = 1e-6 * problem.origin_value / problem.C
        patience = 0
        while True:
            gap = self._price()
            enough = watch.tol * max(state.value, floor)
            point = state.point()
            if (gap <= enough or patience) and watch.proves(problem, point):
                return point
            if patience > PATIENCE:
                watch.status = Status.STALLED
                return point
            new = self._violators(threshold)
            threshold = state.l1
            goal = 0.1 * enough
            if len(new) > 0.02 * sum(map(len, self._sets)):
                # More columns will follow: no need to be exact on these.
                goal = max(goal, min(0.3 * gap, 0.03 * state.value))
            value = state.value
            if self._descend(new, goal, watch):
                return state.point()
            patience = patience + 1 if len(new) == 0 and value - state.value <= 1e-15 * value else 0

    def _price(self) -> float:
        """Price every column at the slopes of the last model; returns an estimate of the gap."""
        state, prices = self._state, self._prices
        if not self._priced:
            prices.update(state.v, state.l1, state.w != 0)
            self._priced = True
        if prices.can_prove:
            prices.prove(state.radius(prices.values), state.l1)
        return state.gap(prices.values)

    def _violators(self, threshold: float) -> Chosen:
        """The columns to take in: those with weights, and the worst of those whose price exceeds the threshold."""
        state = self._state
        excess = np.abs(self._prices.values) - threshold
        excess[state.w != 0] = np.inf
        for working in self._sets:
            excess[working.chosen] = 0.0
        over = np.flatnonzero(excess > 0)
        room = np.isinf(excess).sum() + int(max(2 * np.sqrt(len(state.w)), 0.5 * np.count_nonzero(state.w)))
        if state.l1 > 0 and len(over) > room:
            over = over[np.argpartition(-excess[over], room)[:room]]
        return over

    def _descend(self, new: Chosen, goal: float, watch: Watch) -> bool:
        """Work on the sets until the models promise less than the goal; True if the watch says stop."""
        state = self._state
        idle = (state.w == 0) & (np.abs(self._prices.values) < NEARLY * state.l1)
        shares = self._distribute(new, idle)
        self._priced = False
        while True:
            promised = 0.0
            for working, share in zip(self._sets, shares, strict=True):
                promised += state.advance(working, share, idle, goal)
                if watch(Point(state.w, state.b), objective=state.C * state.value):
                    return True
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
        room = max(LARGEST - len(self._sets[-1]), 0)
        if len(new) > room:
            chosen = np.concatenate([working.chosen for working in self._sets])
            if 10 * np.count_nonzero(idle[chosen]) > len(chosen):
                new, room = np.append(chosen[~idle[chosen]], new), LARGEST
                self._sets = [self._empty_set()]
        shares = [new[:0]] * (len(self._sets) - 1) + [new[:room]]
        for start in range(room, len(new), LARGEST):
            self._sets.append(self._empty_set())
            shares.append(new[start : start + LARGEST])
        return shares
