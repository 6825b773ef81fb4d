"""Any machine behind a kernel, by a factor of its Gram matrix."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from empirisk.linalg.blocks import rowwise
from empirisk.linalg.design import Array, DenseDesign
from empirisk.linalg.threads import interruptible_call
from empirisk.problem import Point, Problem
from empirisk.settings import require
from empirisk.solvers.base import CONVEX, KERNEL, Proofs, Solver, Watch
from empirisk.stop import Ending

#: Eigenvalues below this share of the largest, times the size, are rounding.
RANK = 1e-13
#: Endings of a solver that was neither stopped nor interrupted.
UNSTOPPED = (Ending.CONVERGED, Ending.STALLED, Ending.MAX_ITER)
#: Shares of tol to try: the gap behind the kernel is a little larger than that on the factor.
SHARPER = (0.5, 1e-2, 1e-4)


class Factored(Solver):
    """Minimise the problem on Phi = V S^1/2 with K = V S V', by a solver for explicit features.

    Takes every convex loss, at the cost of an eigendecomposition, O(n^3), and of a few n x n matrices. It is a way from
    a kernel to columns, not a method of its own: certificates name the solver that it hands the work to.
    """

    needs = (KERNEL, CONVEX)

    def solve(self, problem, watch, start=None):
        rows = problem.design.shape[0]
        # The matrix, its eigenvectors, those that are kept, and room to find them, in doubles.
        require(32 * rows**2, f"The factor of a {rows} x {rows} Gram matrix", "use features=maps.Nystrom(kernel)")
        if "factor" not in watch.shared.setdefault(problem.design, {}):
            watch.shared[problem.design]["factor"] = Factor(problem.design.outer())
        factor = watch.shared[problem.design]["factor"]
        proofs, told = Proofs(problem, watch), watch
        for point in _points(problem, factor, watch):
            if proofs(point):
                return point
            if proofs.best(point) is point:
                told = replace(watch, notes=[*watch.notes])
        # The certificate names the solver that found the best point; what stopped the last solver stopped the fit.
        watch.ran_by, watch.notes[:], watch.iterations = told.ran_by, told.notes, told.iterations
        if watch.status in UNSTOPPED:
            watch.status = Ending.MAX_ITER if told.status == Ending.MAX_ITER else Ending.STALLED
        return proofs.best(problem.origin())


def _points(problem: Problem, factor: "Factor", watch: Watch) -> Iterator[Point]:
    """What one solver after the other finds on the factor, each asked for more digits as long as it has some."""
    from empirisk.solvers.choose import ranked  # the table holds this solver, and is asked by it

    explicit = replace(problem, design=factor.design)
    for solver, reason in ranked(explicit):
        watch.ran_by, watch.notes[:] = solver.name(), [reason]
        for share in SHARPER:
            inner = replace(
                watch, tol=share * watch.tol, status="", progress=factor.translated(problem, watch.progress)
            )
            found = solver.solve(explicit, inner, None)
            watch.iterations, watch.status = inner.iterations, inner.status
            yield from factor.back(problem, found)
            if inner.status not in (Ending.CONVERGED, Ending.STALLED):
                return
            if inner.status == Ending.STALLED:  # it has no more digits to give, however many are asked for
                break
        if watch.once:
            return


class Factor:
    """K = V S V' without the eigenvalues that are rounding."""

    def __init__(self, K: Array):
        values, vectors = interruptible_call(lambda: np.linalg.eigh(K), len(K))
        kept = slice(len(K) - int(np.sum(values > RANK * len(K) * max(values[-1], 0.0))), None)
        self.roots, self.vectors = roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
        # One design for all problems: what solvers keep for it then serves them all.
        self.design = DenseDesign(rowwise(lambda rows: rows * roots, vectors, row_bytes=8 * len(K)))

    def back(self, problem: Problem, point: Point) -> Iterator[Point]:
        """The point in the coefficients of the samples: beta = -u/l2, as at the optimum, then beta = V S^-1/2 w.

        The first has zeros where u has them. But a little missing in u is much in K u where C is large: the second has
        the very predictions of the point.
        """
        u = point.u
        if problem.penalty.l2 > 0:
            u = u if u is not None else problem.slopes(self.design.X @ point.w + point.b)
            yield Point(-u / problem.penalty.l2, point.b, u)
        yield Point(self.vectors @ (point.w.T / self.roots).T, point.b, u)

    def translated(self, problem: Problem, progress):
        """The caller's progress callback, given points in the coefficients of the samples."""
        if progress is None:
            return None
        return lambda iteration, point: progress(iteration, next(self.back(problem, point)))
