"""The envelope method: Newton's method on losses and penalties rounded off, nearer to the true ones round by round.

A loss is replaced by its envelope  max over v of  v f - loss*(v) - tau/2 (v - centre)^2,  of a curvature between 0
and 1/tau, whatever that of the loss: a corner max(left a, right a) becomes quadratic for |a| up to about tau. Between
rounds the centre moves to the slopes found, which makes the rounding vanish at the solution itself (the method of
multipliers), and tau shrinks.
"""

import numpy as np

from empirisk.certificate import Status
from empirisk.linalg.threads import single_threaded_blas
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Proofs, Solver, Watch
from empirisk.solvers.corners.loss_envelopes import Envelopes, least_squares
from empirisk.solvers.corners.rounded_corners import RoundedCorners, rounded_start
from empirisk.solvers.needs import CONVEX, EXPLICIT, NORMS, ONE_OUTPUT, Need

#: A normal matrix of so many rows is factored in about two seconds.
DIRECT = 4096
PIECES = Need(
    "a smooth loss, or one of straight and quadratic pieces",
    lambda p: p.loss.smooth or p.loss.smooth_part is None or p.loss.smooth_part.quadratic,
)
ONE_KIND = Need("a penalty without corners where the loss has them", lambda p: p.loss.smooth or p.penalty.smooth)
SMALL_MATRIX = Need(
    f"a normal matrix of at most {DIRECT} rows or columns where the loss is smooth",
    lambda p: not p.loss.smooth or min(p.design.shape) <= DIRECT,
)


class Envelope(Solver):
    """The method of multipliers on the dual, its rounds solved by Newton's method with a line search.

    On losses with corners and l2 or no penalty the rounded problem bends only at the few rows near a corner, so that an
    iteration costs a product with the data and some Newton steps on those. Smooth losses, with l1 too, are those whose
    curvature Newton's method cannot trust, such as |e|^p; each step is one weighted normal matrix.

    >>> er.SVM(solver=er.solvers.Envelope()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'envelope'
    """

    needs = (EXPLICIT, ONE_OUTPUT, CONVEX, PIECES, NORMS, ONE_KIND, SMALL_MATRIX)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if problem.origin_value == 0:
            watch.status = Status.CONVERGED
            return problem.origin()
        proofs = Proofs(problem, watch)
        if problem.loss.smooth:
            exact = least_squares(problem)
            if exact is not None and proofs(exact):
                return exact
            return _rounds(Envelopes(problem, problem.origin() if start is None else start), proofs, watch)
        with single_threaded_blas():
            return _rounds(rounded_start(problem, watch, start), proofs, watch)


def _rounds(state: Envelopes | RoundedCorners, proofs: Proofs, watch: Watch) -> Point:
    """Round after round, each with envelopes nearer to the loss."""
    least, stalls = np.inf, 0
    while True:
        done = state.round(watch)
        if watch.status:
            return proofs.best(state.point())
        gap = state.estimate()
        if gap <= state.hope * watch.tol or stalls:
            for point in state.candidates():
                if proofs(point):
                    return state.polished(point, watch)
        stalls = 0 if state.rising() or gap < 0.9 * least else stalls + 1
        least = min(least, gap)
        if stalls >= state.patience:
            watch.status = Status.STALLED
            return proofs.best(state.point())
        if done:
            state.sharpen(watch.tol)
