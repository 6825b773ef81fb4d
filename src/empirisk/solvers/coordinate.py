"""Coordinate descent with working sets and screening, for smooth losses and penalties with an l1 part."""

from collections.abc import Callable, Iterable
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

Array = NDArray[np.float64]
PATIENCE = 3
GA,GB,GR=0.3,0.03,2
NEARLY=0.98
THINNING, FEW, ROUGH = 8, 1000, 1e-2


class CoordinateDescent(Solver):
    """Coordinate descent on the columns that matter, with a duality gap over all of them.

    Columns whose correlation with the slopes exceeds l1 join a working set, the worst first. On the set a quadratic
    model of the loss sum is minimised by sweeps over single weights on its Gram matrix, ended by a direct solution
    for the weights that are not zero; losses other than the squared one take several models, each with a line
    search. Columns that the gap proves to be zero are not looked at again.

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
            if start is None:
                start = self._thinned_start(problem, watch)
            return Descent(problem, start).run(problem, watch)

    def _thinned_start(self, problem: Problem, watch: Watch) -> Point:
        """A start from every eighth row, where enough rows remain; one model of a quadratic loss needs no start."""
        if problem.loss.quadratic or problem.design.shape[0] < THINNING * FEW:
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

    def solve_path(self, problem: Problem, Cs: Iterable[float], watches: Callable[[], Watch]) -> list[Point]:
        """The solutions at one C after another, each from the one before; fewer if the user or the clock stops it.

        What is known of the columns, Gram matrices above all, is kept along the path.
        """
        points: list[Point] = []
        with single_threaded_blas():
            descent = Descent(problem, None)
            for C in Cs:
                watch = watches()
                points.append(descent.run(problem.with_C(C), watch))
                if watch.status in (Status.INTERRUPTED, Status.TIME):
                    break
        return points


class Descent:
    """A descent that serves one C after another, on sets of columns that grow as they are needed."""

    def __init__(self, problem: Problem, start: Point | None):
        self.state = State(problem, start or problem.origin())
        if not np.isfinite(self.state.value):
            self.state = State(problem, problem.origin())
        self.prices = Prices(problem.design)
        self.sets = [WorkingSet(problem.design, problem.intercept)]
        self._stale = True

    def run(self, problem: Problem, watch: Watch) -> Point:
        """Minimise at the C of the problem until the watch says stop."""
        state = self.state
        before = state.l1
        state.penalise(problem)
        self.prices.forget()
        threshold = 2 * state.l1 - before
        floor = 1e-6 * problem.origin_value / problem.C
        patience = 0
        while True:
            gap = self.price()
            enough = watch.tol * max(state.value, floor)
            if (gap <= enough or patience) and watch.proves(problem, state.point()):
                return state.point()
            new = self.violators(threshold)
            threshold = state.l1
            goal = 0.1 * enough
            if len(new) > 0.02 * sum(map(len, self.sets)):
                goal = max(goal, min(GA * gap, GB * state.value))
            before = state.value
            if self.descend(new, goal, watch):
                return state.point()
            patience = patience + 1 if len(new) == 0 and before - state.value <= 1e-15 * before else 0
            if patience > PATIENCE:
                watch.status = Status.STALLED
                return state.point()

    def price(self) -> float:
        """Price every column at the current slopes; returns an estimate of the gap."""
        state = self.state
        if self._stale:
            self.prices.update(state.v, state.l1, state.w != 0)
            self._stale = False
            if self.prices.can_prove:
                self.prices.prove(state.radius(self.prices.values), state.l1)
        return state.gap(self.prices.values)

    def violators(self, threshold: float) -> Chosen:
        """The columns to take in: those with weights, and the worst of those whose price exceeds the threshold."""
        state = self.state
        excess = np.abs(self.prices.values) - threshold
        excess[state.w != 0] = np.inf
        for working in self.sets:
            excess[working.chosen] = 0.0
        over = np.flatnonzero(excess > 0)
        room = int(max(GR * np.sqrt(len(state.w)), 0.5 * np.count_nonzero(state.w)) + np.isinf(excess).sum())
        if state.l1 > 0 and len(over) > room:
            over = over[np.argpartition(-excess[over], room)[:room]]
        return over

    def descend(self, new: Chosen, goal: float, watch: Watch) -> bool:
        """Work on the sets until the models promise less than the goal; True if the watch says stop."""
        state = self.state
        idle = (state.w == 0) & (np.abs(self.prices.values) < NEARLY * state.l1)
        news = self.distribute(new)
        before = np.inf
        self._stale = True
        while True:
            promised = 0.0
            for working, some in zip(self.sets, news, strict=True):
                promised += state.advance(working, some, idle, goal)
                if watch(Point(state.w, state.b), objective=state.C * state.value):
                    return True
            news = [new[:0]] * len(self.sets)
            idle[:] = False
            exact = state.problem.loss.quadratic and len(self.sets) == 1
            # The next step would promise less than this one by as much as this one did.
            if exact or promised * min(1.0, promised / before) <= goal:
                return False
            before = promised

    def distribute(self, new: Chosen) -> list[Chosen]:
        """Deal new columns to the sets, opening further ones where they are full."""
        news = []
        for working in self.sets:
            room = max(LARGEST - len(working), 0)
            news.append(new[:room])
            new = new[room:]
        while len(new):
            self.sets.append(WorkingSet(self.state.problem.design, self.state.problem.intercept))
            news.append(new[:LARGEST])
            new = new[LARGEST:]
        return news
