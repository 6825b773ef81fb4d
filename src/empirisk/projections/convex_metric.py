"""The convex form of a contrastive loss: hinges of squared distances, which are linear in M = P'P, over M >= 0."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh
from scipy.sparse.linalg import LinearOperator, cg

from empirisk.certificate import Certificate
from empirisk.linalg.blocks import Array, slices
from empirisk.stop import Ending, check_stop

#: Eigenvalues of a Gram matrix below this share of the largest are rounding.
RANK = 1e-12
#: Directions in which the pull and the cost have less than this share of all squares are held by nothing.
FREE = 1e-12
#: The objective without a metric, times this, is what gaps are compared with at least: a fit may be perfect.
FLOOR = 1e-6
#: Products of complementary numbers below this share of the objective without a metric are rounding.
LEAST_PRODUCT = 1e-17
#: The largest share of the way to the boundary in one step.
TO_BOUNDARY = 0.95
#: Hinges that change Newton's matrix by less than this together are left out of it; its least eigenvalue is one.
LEFT_OUT = 1e-3
#: Numbers of M up to which Newton's matrix is factored (72 MB of it); beyond, conjugate gradients use its products.
FACTORED = 3000
#: Numbers in the blocks of which Newton's matrix is summed.
BLOCK = 1 << 22
#: The relative accuracy and the number of conjugate gradient steps for one direction.
INEXACT, INNER_STEPS = 1e-3, 500


@dataclass(frozen=True)
class ConvexHinges:
    """<cost, M> + sum_k a_k max(0, b_k + sum_p S_kp d_p' M d_p) over symmetric M >= 0.

    Attributes
    ----------
    differences : array, pairs x d
        d_p.
    signs : sparse matrix, hinges x pairs
        S.
    offsets, amounts : arrays
        b and a.
    cost : array, d x d
        A positive semidefinite matrix.
    """

    differences: Array
    signs: sparse.csr_array
    offsets: Array
    amounts: Array
    cost: Array

    def excess(self, images: Array) -> Array:
        """The arguments of the hinges, from the images P d_p of the differences."""
        return self.offsets + self.signs @ np.einsum("ij,ij->i", images, images)

    def primal(self, P: Array) -> float:
        """The objective of M = P'P."""
        hinges = float(self.amounts @ np.maximum(self.excess(self.differences @ P.T), 0.0))
        return hinges + float(np.sum((P @ self.cost) * P))

    @property
    def without_metric(self) -> float:
        """The objective of M = 0."""
        return float(self.amounts @ np.maximum(self.offsets, 0.0))

    def slack(self, multipliers: Array) -> Array:
        """cost + sum_k v_k sum_p S_kp d_p d_p', the multiplier of M >= 0 that belongs to those of the hinges."""
        return self.cost + weighted_gram(self.differences, self.signs.T @ multipliers)

    def dual(self, multipliers: Array) -> float:
        """A lower bound of the objective from multipliers 0 <= v <= a: sum_k v_k b_k where the slack is >= 0."""
        if not is_positive(self.slack(multipliers)):
            return 0.0  # which bounds every sum of hinges
        return max(float(multipliers @ self.offsets), 0.0)


def is_positive(matrix: Array) -> bool:
    """Whether a symmetric matrix is positive definite."""
    try:
        cholesky(matrix)
    except LinAlgError:
        return False
    return True


def quadratic(rows: Array, matrix: Array) -> Array:
    """row_p' matrix row_p."""
    return np.einsum("ij,ij->i", rows @ matrix, rows)


def weighted_gram(rows: Array, weights: Array) -> Array:
    """sum_p weight_p row_p row_p'."""
    return (rows.T * weights) @ rows


@dataclass(frozen=True)
class HeldProblem:
    """A problem in coordinates in which it is well scaled, without what can be had for nothing.

    Where a direction has neither cost nor a hinge that grows along it, M may be as large as one likes there: hinges
    that fall along it are brought to zero, and what is left has a bounded solution. So the reduced problem has the same
    optimum.

    Attributes
    ----------
    whole, reduced : ConvexHinges
        The problem as it was given, and what is left of it.
    held, free : arrays, r x d and f x d
        The coordinates of the reduced problem, and those without cost, as linear functions of the columns.
    """

    whole: ConvexHinges
    reduced: ConvexHinges
    held: Array
    free: Array

    @classmethod
    def of(cls, whole: ConvexHinges) -> "HeldProblem":
        """Scale the columns, leave out directions in which nothing differs, and find those that nothing holds."""
        pulls, pushes = whole.signs.maximum(0), -whole.signs.minimum(0)
        pulled, pushed = pulls.T @ whole.amounts, pushes.T @ whole.amounts
        spread = np.sqrt((pulled + pushed) @ whole.differences**2 + np.diag(whole.cost))
        scale = 1.0 / np.where(spread > 0, spread, 1.0)
        cost = scale[:, None] * whole.cost * scale
        rows = whole.differences * scale
        lengths, axes = eigh(weighted_gram(rows, pulled + pushed) + cost)
        kept = lengths > RANK * lengths[-1]
        axes = axes[:, kept] / np.sqrt(lengths[kept])
        rows, cost = rows @ axes, axes.T @ cost @ axes
        shares, directions = eigh(weighted_gram(rows, pulled) + cost)
        loose = shares <= FREE
        # A hinge that falls along a free direction is brought to zero there.
        far = np.sum((rows @ directions[:, loose]) ** 2, axis=1) > FREE * np.sum(rows**2, axis=1)
        left = np.flatnonzero((pushes @ far.astype(np.float64) == 0) & (whole.amounts > 0))
        held = directions[:, ~loose] / np.sqrt(shares[~loose])
        reduced = ConvexHinges(
            rows @ held, whole.signs[left], whole.offsets[left], whole.amounts[left], held.T @ cost @ held
        )
        return cls(whole, reduced, (axes @ held).T * scale, (axes @ directions[:, loose]).T * scale)

    def metric(self, P: Array) -> Array:
        """The metric of the whole problem from one of the reduced one: as large as need be where it is free."""
        bound = P @ self.held
        if not len(self.free):
            return bound
        differences, signs = self.whole.differences, self.whole.signs
        needed = self.whole.excess(differences @ bound.T)
        gained = -(signs.minimum(0) @ np.sum((differences @ self.free.T) ** 2, axis=1))
        falls = (needed > 0) & (gained > FREE * gained.max(initial=0.0))
        size = np.sqrt(np.max(needed[falls] / gained[falls], initial=0.0))
        return np.vstack([bound, size * self.free])


class MetricDirection(NamedTuple):
    """How M and Y change, in coordinates of Nesterov and Todd, and the numbers of the hinges."""

    M: Array
    Y: Array
    above: Array
    beyond: Array
    multipliers: Array


@dataclass
class MetricInteriorPoint:
    """A primal-dual interior-point method: Newton's method on the products of complementary numbers, which vanish.

    A hinge is the least x_k with  x_k >= 0  and  s_k = x_k - z_k(M) >= 0;  their multipliers are  a_k - v_k  and  v_k,
    and that of M >= 0 is  Y = cost + sum_k v_k A_k >= 0,  where  A_k = sum_p S_kp d_p d_p'.  All points are feasible
    for both problems, so that each has an objective and a bound. M = L L' is kept by its factor. The directions are
    those of Nesterov and Todd, in whose coordinates M and Y are the same diagonal matrix, with Mehrotra's correction.
    """

    whole: HeldProblem
    start: Array
    tol: float
    primal: float = field(init=False)
    bound: float = field(default=0.0, init=False)
    stalled: bool = field(default=False, init=False)

    def __post_init__(self):
        self.problem = problem = self.whole.reduced
        count = problem.differences.shape[1]
        self.primal, self._best = self.whole.whole.primal(self.start), None
        self._keep(np.zeros((count, count)))
        if count == 0 or problem.without_metric == 0:  # no metric changes anything, or nothing is to be gained
            self.bound = problem.without_metric
            return
        unit = problem.without_metric / float(problem.amounts.sum())
        mean = float(np.sum(problem.differences**2)) / len(problem.differences)
        self.factor = np.sqrt(unit / (mean or 1.0)) * np.eye(count)
        z = problem.excess(problem.differences @ self.factor)
        self.above = np.maximum(z, 0.0) + unit
        self.beyond = self.above - z
        pushes = problem.signs.min(axis=1).toarray().ravel() < 0
        self.multipliers = 0.5 * problem.amounts
        while not is_positive(problem.slack(self.multipliers)):  # a small share of what pushes is always held
            self.multipliers[pushes] *= 0.5
        self.multipliers[pushes] *= 0.5
        self.rest = problem.amounts - self.multipliers

    @property
    def best(self) -> Array:
        """The best metric so far: the start, until another is better."""
        return self.start if self._best is None else self.whole.metric(self._best)

    @property
    def settled(self) -> bool:
        """Whether the gap is within ``tol``."""
        return self._relative(self.primal) <= self.tol

    def _relative(self, primal: float) -> float:
        """How far an objective may be from the optimum, beside itself."""
        return max(primal - self.bound, 0.0) / (max(primal, FLOOR * self.whole.whole.without_metric) or 1.0)

    def round(self) -> None:
        """One step of predictor and corrector; `stalled` where there are no digits left for another."""
        check_stop()
        try:
            self.stalled = not self._step()
        except LinAlgError:  # the factors of matrices that are definite but for rounding
            self.stalled = True

    def _step(self) -> bool:
        """Whether there are digits for a step, and take it."""
        values, vectors = eigh(self.factor.T @ self.problem.slack(self.multipliers) @ self.factor)
        products = np.concatenate([values, self.multipliers * self.beyond, self.rest * self.above])
        mean = float(products.mean())
        if not (products.min() > 0 and mean > LEAST_PRODUCT * self.problem.without_metric):
            return False
        turn, diagonal = self.factor @ (vectors / values**0.25), np.sqrt(values)
        scaled = self._scaled(self.problem.differences @ turn)
        ahead = scaled(diagonal, 0.0, None)
        left = self._mean_product(diagonal, ahead, *self._lengths(diagonal, ahead))
        step = scaled(diagonal, mean * min(max(left / mean, 0.0), 1.0) ** 3, ahead)
        forward, backward = (TO_BOUNDARY * length for length in self._lengths(diagonal, step))
        self.factor = turn @ cholesky(np.diag(diagonal) + forward * step.M, lower=True)
        self.above = self.above + forward * step.above
        self.beyond = self.beyond + forward * step.beyond
        self.multipliers = self.multipliers + backward * step.multipliers
        self.rest = self.rest - backward * step.multipliers
        self._keep(self.factor.T)
        self.bound = max(self.bound, self.problem.dual(np.minimum(self.multipliers, self.problem.amounts)))
        return True

    def _scaled(self, images: Array) -> Callable[[Array, float, MetricDirection | None], MetricDirection]:
        """What solves for directions at this point, from the images of the differences in its coordinates."""
        signs = self.problem.signs
        ratios = self.beyond / self.multipliers, self.above / self.rest
        curvatures = 1.0 / (ratios[0] + ratios[1])
        solve = self._solver(images, self._relevant(images, curvatures))

        def direction(diagonal: Array, aim: float, ahead: MetricDirection | None) -> MetricDirection:
            """Newton's step to where all products are ``aim``, with the second-order terms of another step."""
            wanted = np.diag(2 * (aim - diagonal**2))
            beyond, above = aim - self.multipliers * self.beyond, aim - self.rest * self.above
            if ahead is not None:
                wanted = wanted - ahead.M @ ahead.Y - ahead.Y @ ahead.M
                beyond = beyond - ahead.multipliers * ahead.beyond
                above = above + ahead.multipliers * ahead.above
            wanted = wanted / (diagonal[:, None] + diagonal)
            pull = beyond / self.multipliers - above / self.rest
            M = solve(wanted - weighted_gram(images, signs.T @ (curvatures * pull)))
            along = signs @ quadratic(images, M)
            multipliers = curvatures * (pull + along)
            up = above / self.rest + ratios[1] * multipliers
            return MetricDirection(M, weighted_gram(images, signs.T @ multipliers), up, up - along, multipliers)

        return direction

    def _lengths(self, diagonal: Array, step: MetricDirection) -> tuple[float, float]:
        """How far M and the lines, and Y and the multipliers, may go along a direction: one at most."""
        roots = np.sqrt(diagonal)
        shares = [float(eigh(part / np.outer(roots, roots), eigvals_only=True)[0]) for part in (step.M, step.Y)]
        lines = min(np.min(step.above / self.above), np.min(step.beyond / self.beyond))
        others = min(np.min(step.multipliers / self.multipliers), np.min(-step.multipliers / self.rest))
        return _until(min(shares[0], lines)), _until(min(shares[1], others))

    def _mean_product(self, diagonal: Array, step: MetricDirection, forward: float, backward: float) -> float:
        """The mean of the complementary products after a step."""
        M, Y = np.diag(diagonal) + forward * step.M, np.diag(diagonal) + backward * step.Y
        beyond = (self.multipliers + backward * step.multipliers) @ (self.beyond + forward * step.beyond)
        above = (self.rest - backward * step.multipliers) @ (self.above + forward * step.above)
        return (float(np.sum(M * Y)) + float(beyond) + float(above)) / (len(diagonal) + 2 * len(self.above))

    def _relevant(self, images: Array, curvatures: Array) -> Array:
        """The curvatures, with zero for all that are together small beside one."""
        sizes = curvatures * (abs(self.problem.signs) @ np.einsum("ij,ij->i", images, images)) ** 2
        order = np.argsort(sizes)
        out = curvatures.copy()
        out[order[np.cumsum(sizes[order]) <= LEFT_OUT]] = 0.0
        return out

    def _solver(self, images: Array, curvatures: Array) -> Callable[[Array], Array]:
        """What solves  E + sum_k c_k <A_k, E> A_k = B  for symmetric E, where  A_k = sum_p S_kp f_p f_p'."""
        few = np.flatnonzero(curvatures)
        signs, curvatures = self.problem.signs[few], curvatures[few]
        count = len(self.factor)
        rows, columns = np.triu_indices(count)
        if len(rows) > FACTORED:
            return partial(_by_products, images, signs, curvatures)
        root = np.where(rows == columns, 1.0, np.sqrt(2.0))  # so that products of vectors are those of the matrices
        matrix = np.eye(len(rows))
        for part in slices(len(few), max(1, BLOCK // len(rows))):
            check_stop()
            seen = np.unique(signs[part].indices)
            vectors = signs[part][:, seen] @ (images[seen][:, rows] * images[seen][:, columns] * root)
            matrix += weighted_gram(vectors, curvatures[part])
        factored = cho_factor(matrix)

        def solve(B: Array) -> Array:
            E = np.zeros((count, count))
            E[rows, columns] = E[columns, rows] = cho_solve(factored, root * B[rows, columns]) / root
            return E

        return solve

    def _keep(self, P: Array) -> None:
        """Keep a metric if it is better than all before."""
        primal = self.problem.primal(P)
        if primal < self.primal:
            self.primal, self._best = primal, P

    def certificate(self, P: Array, status: str, rounds: int, seconds: float) -> Certificate:
        """What is proved of a metric: the best one, or what was kept of it."""
        primal = self.whole.whole.primal(P)
        relative = self._relative(primal)
        converged = relative <= self.tol
        return Certificate(
            primal,
            self.bound,
            max(primal - self.bound, 0.0),
            relative,
            converged=converged,
            status=status if converged or status != Ending.CONVERGED else Ending.STALLED,
            solver="interior point",
            reason="hinges of squared distances are convex in M = P'P",
            iterations=max(rounds, 1),
            seconds=seconds,
        )


def _by_products(images: Array, signs: sparse.csr_array, curvatures: Array, B: Array) -> Array:
    """E of `_solver` by conjugate gradients."""

    def product(vector: Array) -> Array:
        check_stop()
        E = vector.reshape(B.shape)
        return vector + weighted_gram(images, signs.T @ (curvatures * (signs @ quadratic(images, E)))).ravel()

    operator = LinearOperator((B.size, B.size), matvec=product, dtype=np.float64)
    found = cg(operator, B.ravel(), rtol=INEXACT, maxiter=INNER_STEPS)[0].reshape(B.shape)
    return 0.5 * (found + found.T)


def _until(share: float) -> float:
    """The length of a step after which nothing is negative, where a whole one adds at least this share; one at most."""
    return 1.0 if share >= -1.0 else -1.0 / share


def leading_rows(P: Array, count: int) -> Array:
    """The P of M = P'P that is its symmetric root; with fewer rows, those of the largest eigenvalues of M.

    Either is a function of M, which is what the problem determines.
    """
    _, sizes, directions = np.linalg.svd(P, full_matrices=False)
    if count >= P.shape[1]:
        return (directions.T * sizes) @ directions
    rows = np.zeros((count, P.shape[1]))
    rows[: len(sizes)] = sizes[:count, None] * directions[:count]
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows * np.where(largest < 0, -1.0, 1.0)
