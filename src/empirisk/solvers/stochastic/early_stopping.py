"""Early stopping around any solver that goes step by step."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from empirisk.errors import EmpiriskError
from empirisk.problem import Point, Problem
from empirisk.solvers.base import COUNT, Solver, Watch
from empirisk.stop import Ending


@dataclass(eq=False, repr=False)
class EarlyStopping(Solver):
    """Another solver on a part of the rows, stopped when the loss of the other rows has not improved for a while.

    The best point for the held-out rows is the result, whatever its gap; the certificate says how far from the optimum
    on all rows it is.

    Parameters
    ----------
    solver : str or Solver
        The solver that goes step by step.
    validation_fraction : float
        The share of the rows held out.
    n_iter_no_change : int
        Iterations without improvement after which to stop.
    random_state : int
        Seed of the rows held out.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 40))
    >>> machine = er.LogisticRegression(C=1e3, solver=er.solvers.EarlyStopping("gradient_descent", n_iter_no_change=3))
    >>> machine.fit(X, X[:, 0] > 0).certificate_.status
    'early_stopping'
    """

    aims_at_tol = False

    solver: Any = "gradient_descent"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    random_state: int = 0

    def refusal(self, problem: Problem) -> str:
        return self._inner().refusal(problem)

    def limit(self, problem: Problem) -> int:
        """That of the solver inside."""
        return self._inner().limit(problem)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        held_out, rows = self._split(len(problem.y))
        part, test = problem.part(rows), problem.part(held_out, rows)
        best, lowest, waited, told = part.origin(), np.inf, 0, False
        behind_a_kernel = problem.design.implicit  # w then has an entry for each row
        if behind_a_kernel and start is not None:
            start = Point(start.w[rows], start.b)
        inner = replace(watch, shared={}, history={}, progress=None)

        def look(iteration: int, point: Point) -> bool:
            nonlocal best, lowest, waited, told
            score = test.loss_sum(test.predict(point)) / float(test.scale.sum())
            inner.record(validation=score)
            waited += 1
            if score < lowest:  # a copy: some solvers go on in place
                best, lowest, waited = Point(np.array(point.w), np.array(point.b)), score, 0
            told = watch.progress is not None and watch.progress(iteration, point)
            return told or waited >= self.n_iter_no_change

        inner.progress = look
        self._inner().solve(part, inner, start)
        watch.history, watch.iterations, watch.status = inner.history, inner.iterations, inner.status
        # The optimum of a part is not that of all rows; and what the inner solver took for a callback is `look`.
        if not told and watch.status in ("", Ending.CONVERGED, Ending.STALLED, Ending.CALLBACK):
            watch.status = Ending.EARLY_STOPPING
        if not behind_a_kernel:
            return best
        w = np.zeros(problem.width)
        w[rows] = best.w
        return Point(w, best.b)

    def _inner(self) -> Solver:
        from empirisk.solvers import find  # the table of solvers knows this one too

        return find(self.solver)

    def _split(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows held out, and rows to train on."""
        share = self.validation_fraction
        self.require("validation_fraction", isinstance(share, Real) and 0 < share < 1, "must lie between 0 and 1")
        self.require(
            "n_iter_no_change", isinstance(self.n_iter_no_change, Integral) and self.n_iter_no_change >= 1, COUNT
        )
        count = min(max(1, round(share * rows)), rows - 1)
        if count < 1:
            raise EmpiriskError(f"X has {rows} row, of which EarlyStopping can hold out none; give more rows.")
        order = np.random.default_rng(self.random_state).permutation(rows)
        return np.sort(order[:count]), np.sort(order[count:])
