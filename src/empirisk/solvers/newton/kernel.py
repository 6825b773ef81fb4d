"""Newton's method behind a kernel, for smooth losses of one output, and its linear systems: a factor or gradients."""

from typing import Any, cast

import numpy as np
from numpy.linalg import LinAlgError
from scipy.sparse.linalg import LinearOperator, cg

from empirisk.linalg.factor import Cholesky
from empirisk.linalg.gram_factor import ScaledGram
from empirisk.linalg.single_precision import single_suffices
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Array, Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import Watch
from empirisk.solvers.newton.loop import KernelNorm, NewtonDirection, NewtonPoint

SLOT = "systems behind a kernel"
#: Relative residual of conjugate gradients: more digits would be lost in single precision.
ACCURACY = 1e-6
#: Conjugate gradient iterations after which the preconditioner has failed.
LIMIT = 300


class NoProgress(Exception):
    """Conjugate gradients were stopped before they had a direction."""


class System:
    """Solves  l2 x + W (K x + b) = p,  sum_i W (K x + b)_i = q  (with an intercept), W a diagonal >= 0.

    With x = p / l2 - W^1/2 g this is  (l2 I + W^1/2 K W^1/2) g = W^1/2 (K p / l2 + b)  and  l2 sum_i W^1/2 g = q.
    """

    #: Whether solving for another right-hand side costs far less than taking another W.
    keeps = True

    def __init__(self, problem: Problem):
        self.l2, self.intercept = problem.penalty.l2, problem.intercept
        self.root = self.response = np.zeros(0)

    def begin(self, watch: Watch) -> None:
        """Forget W, and report to the watch of the next problem."""
        self.watch = watch
        self.root = self.response = np.zeros(0)

    @property
    def ready(self) -> bool:
        """Whether there is a W that is worth another try."""
        return self.keeps and len(self.root) > 0

    def renew(self, curvatures: Array) -> None:
        """Take W."""
        self.root = np.sqrt(curvatures)
        self._prepare()
        if self.intercept:
            self.response = self._invert(self.root.copy(), self.response if len(self.response) else None)

    def solve(self, right: Array, product: Array, constant: Array | float) -> tuple[Array, Array | float]:
        """(x, b) for p, K p and q; several p are columns, with as many q."""
        root = self.root if right.ndim == 1 else self.root[:, None]
        g = self._invert(root * product / self.l2, None)
        b: Array | float = np.zeros(right.shape[1:])
        if self.intercept:
            total = float(self.root @ self.response)
            b = (constant / self.l2 - self.root @ g) / total if total > 0 else b
            g = g + np.multiply.outer(self.response, b)
        return right / self.l2 - root * g, b

    def _prepare(self) -> None:
        raise NotImplementedError

    def _invert(self, right: Array, guess: Array | None) -> Array:
        raise NotImplementedError


class FactoredSystem(System):
    """By the Cholesky factor of the n x n matrix: in float32 where a direction of Newton's method needs no more."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self._K = cast(GramDesign, problem.design).matrix
        self._factor: ScaledGram | None = None

    def _prepare(self):
        if single_suffices(self._K, self.root, self.l2):
            try:
                return self._renew(np.float32)
            except LinAlgError:
                pass
        return self._renew(np.float64)

    def _renew(self, dtype: Any) -> None:
        if self._factor is None or self._factor.dtype != dtype:
            self._factor = None  # its memory first
            self._factor = ScaledGram(self._K, dtype)
        self._factor.renew(self.root, self.l2)

    def _invert(self, right, guess):
        assert self._factor is not None
        return self._factor.solve(right)


class NystromSystem(System):
    """By conjugate gradients, preconditioned with K ~ G G' from some samples.

    The directions need few digits, so their products are made in float32.
    """

    keeps = False

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self._design = cast(GramDesign, problem.design)
        self._low_rank = self._design.low_rank()

    def _prepare(self):
        inner = self._low_rank.gram(self.root**2)
        inner.flat[:: len(inner) + 1] += self.l2
        self._inner = Cholesky(inner)

    def _invert(self, right, guess):
        def multiply(v: Array) -> Array:
            if self.watch.must_stop():
                raise NoProgress
            return self.l2 * v + self.root * self._design.single.dot(self.root * v)

        def condition(v: Array) -> Array:
            inside = self._inner.solve(self._low_rank.tdot(self.root * v))
            return (v - self.root * self._low_rank.dot(inside)) / self.l2

        shape = (len(right), len(right))
        operators = [LinearOperator(shape, matvec=f, dtype=float) for f in (multiply, condition)]
        return cg(operators[0], right, x0=guess, rtol=ACCURACY, maxiter=LIMIT, M=operators[1])[0]


def kept_for(problem: Problem, watch: Watch) -> dict[str, Any]:
    """What solvers keep for the problems of the same samples; the memory of other samples is given back first."""
    design, kept = watch.shared.get(SLOT, (None, {}))
    if design is not problem.design:
        if design is not None:
            design.multiply_by(None)
        design, kept = watch.shared[SLOT] = (problem.design, {})
    return kept


#: Curvatures above this, in units of the scale or of the least of all, would leave no digits for the others.
STEEPEST = 1e12
#: A factor is kept while each step promises at most this share of what the last one did.
KEEP = 0.01


def bounded_curvatures(problem: Problem, f: Array) -> Array:
    """The curvatures of the losses at predictions f, the infinite ones bounded.

    Where targets are tiny all of them may be huge: those are no reason to call any of them infinite.
    """
    curvatures = problem.curvatures(f)
    least = float((curvatures / problem.scale).min())
    steepest = STEEPEST * (max(1.0, least) if np.isfinite(least) else 1.0)
    return np.minimum(curvatures, steepest * problem.scale)


class Samples(KernelNorm):
    """Steps on the coefficients of the samples, by a factor or by conjugate gradients."""

    def __init__(self, problem: Problem, watch: Watch, direct: int):
        super().__init__(problem, watch)
        kept, rows = kept_for(problem, watch), problem.design.shape[0]
        if "newton" not in kept:
            # Three matrices of doubles: K, its scaled form and the factor.
            small = rows <= direct and 24 * rows**2 <= settings().memory and not problem.design.streams
            kept["newton"] = FactoredSystem(problem) if small else NystromSystem(problem)
        self._system: System = kept["newton"]
        self._system.begin(watch)
        self._decrement = np.inf

    def at(self, point: Point) -> NewtonPoint:
        """The place at a point."""
        gram_weights = self.problem.design.dot(point.w) if point.w.any() else np.zeros(len(point.w))
        f = gram_weights + float(point.b)
        value = self.penalty(point.w, gram_weights) + self.problem.loss_sum(f)
        return self._with(point.w.copy(), float(point.b), gram_weights, value)

    def _with(self, w: Array, b: float, gram_weights: Array, value: float) -> NewtonPoint:
        """The place with its slopes, its gradient l2 w + u and the image of that."""
        f = gram_weights + b
        u = self.problem.slopes(f)
        gradient = self.problem.penalty.l2 * w + u
        constant = float(u.sum()) if self.problem.intercept else 0.0
        return NewtonPoint(w, b, f, gram_weights, value, u, gradient, constant, self.problem.design.dot(gradient))

    def promising(self, place: NewtonPoint) -> bool:
        """Whether what the dual point of the slopes loses is within tol."""
        gap = 0.5 * float(np.vdot(place.gradient, place.gram_gradient)) / self.problem.penalty.l2
        gap += abs(place.constant * place.b)
        return gap <= self.watch.tol * self.problem.magnitude(place.value)

    def moved(self, place: NewtonPoint) -> NewtonPoint:
        """A Newton step by line search."""
        step = self._direction(place) if self._system.ready else None
        # Near the solution the curvatures hardly change: the last factor does while it gains much.
        if step is None or step.decrement > KEEP * self._decrement:
            self._system.renew(bounded_curvatures(self.problem, place.f))
            step = self._direction(place)
        self._decrement = step.decrement
        t, value = self.searched(place, step)
        return self._with(place.w + t * step.w, place.b + t * step.b, place.gram_weights + t * step.gram_weights, value)

    def _direction(self, place: NewtonPoint) -> NewtonDirection:
        w, b = self._system.solve(-place.gradient, -place.gram_gradient, -place.constant)
        gram_weights = self.problem.design.dot(w)
        return NewtonDirection(
            w, b, gram_weights + b, gram_weights, -float(place.gram_gradient @ w + place.constant * b)
        )
