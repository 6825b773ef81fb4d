"""Newton's method (IRLS) with a line search, for smooth losses and smooth penalties."""

from collections import deque
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.linalg import blocks
from empirisk.linalg.factor import ConjugateGradients, NormalEquations, normal_equations
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import (
    CURVED_PENALTY,
    RIDGE,
    SMOOTH_LOSS,
    SQUARED_NORM,
    Proofs,
    Solver,
    Watch,
    behind_kernel,
    jointly,
    thinned,
)
from empirisk.solvers.newton.joint import Classes, KernelClasses
from empirisk.solvers.newton.kernel import KEEP, NoProgress, Samples, bounded_curvatures
from empirisk.solvers.newton.loop import NewtonDirection, NewtonLoop, NewtonPoint
from empirisk.stop import Ending

#: A normal matrix of so many rows is factored in about two seconds.
DIRECT = 4096
#: What factoring takes for a row cubed, a step of conjugate gradients takes for so many entries: some 60 products of
#: four nanoseconds an entry, against size^3 / 3 multiplications at five in a nanosecond. Below `FEW` entries both take
#: milliseconds.
PRODUCTS, FEW = 4000, 100_000
#: As `KEEP`, for a factor that is expensive to make again.
KEEP_COSTLY = 0.3
#: Steps remembered for corrections.
MEMORY = 10


class Pair(NamedTuple):
    """A step in (w, b), how the gradient changed along it, and the product of both."""

    step: Array
    change: Array
    product: float


class Hessian:
    """The matrix  R'' + A' diag(s loss'') A  of Newton's method, or one near it.

    Between factorisations, the steps and the changes of the gradient along them correct the factor as in the
    limited-memory BFGS method, so that a factor from elsewhere on the way, or from part of the rows, serves for long.

    Parameters
    ----------
    problem : Problem
        With one output, a smooth loss and a smooth penalty.
    factor : optional
        One to begin with; making one of all rows is then taken to be expensive.
    """

    def __init__(self, problem: Problem, factor: NormalEquations | None = None):
        self._problem, self.factor = problem, factor
        self._keep = KEEP if factor is None else KEEP_COSTLY
        self._decrement = np.inf
        self._pairs: list[Pair] = []

    def step(self, place: NewtonPoint) -> tuple[Array, float, float]:
        """Newton's step from a place in w and in b, and its squared decrement."""
        found = None if self.factor is None else self._step(place)
        if found is None or not 0 < found[2] <= self._keep * self._decrement:
            self._renew(place)
            found = self._step(place)
        self._decrement = found[2]
        return found

    def learn(self, step: Array, change: Array) -> None:
        """Take in that the gradient in (w, b) changed by ``change`` along ``step``."""
        product = float(step @ change)
        if product > 0:
            self._pairs = [*self._pairs[1 - MEMORY :], Pair(step, change, product)]

    def _renew(self, place: NewtonPoint) -> None:
        problem = self._problem
        size = min(problem.design.shape)
        direct = size <= DIRECT and size**3 <= PRODUCTS * max(problem.design.entries, FEW)
        equations = normal_equations if direct else ConjugateGradients
        stiffness = problem.penalty.curvature(place.w)
        curvatures = bounded_curvatures(problem, place.f)
        self.factor = equations(problem.design, curvatures, stiffness, problem.intercept)
        self._pairs = []

    def _step(self, place: NewtonPoint) -> tuple[Array, float, float]:
        """The two loops of limited-memory BFGS around a solution with the factor."""
        assert self.factor is not None
        packed = np.append(place.gradient, place.constant)
        right = -packed
        shares = []
        for pair in reversed(self._pairs):
            shares.append(float(pair.step @ right) / pair.product)
            right -= shares[-1] * pair.change
        w, b = self.factor.step(right[:-1], float(right[-1]))
        solution = np.append(w, b)
        for pair, share in zip(self._pairs, reversed(shares), strict=True):
            solution += (share - float(pair.change @ solution) / pair.product) * pair.step
        return solution[:-1], float(solution[-1]), -float(packed @ solution)


#: The gap of a start on every eighth row, and the steps it may take.
ROUGH, ROUGH_STEPS = 1e-2, 20
#: A decrease below this share of the objective is rounding; after so many such steps in a row the solver stops.
ROUNDING, STALL_STEPS = 1e-14, 3
#: Where so many steps together lower the objective by less than this share, the Hessian has no accurate digits left.
CRAWL_STEPS, CRAWL_DECREASE = 100, 1e-2
#: After so many failed certificates the next one waits for one more step: it may cost more than a step.
MAX_FAILED_PROOFS = 8


class Newton(Solver):
    """Newton steps  (R'' + A' diag(s loss'') A) step = -gradient, each with a line search.

    The Hessian is factored by columns, or by rows when n < d; with thousands of both, or few entries in many
    columns, the step is found by conjugate gradients. On long data the first steps are taken on every eighth row, whose
    Hessian then serves for all.

    Behind a kernel the steps are those of the coefficients beta of f = K beta + b: with W the curvatures s loss'', a
    step needs the factor of  l2 I + W^1/2 K W^1/2,  n x n, or conjugate gradients preconditioned by the same matrix for
    a Nystrom approximation of K. The softmax of several classes couples them in W: conjugate gradients then find the
    step of all classes at once.

    Parameters
    ----------
    direct : int, default 15000
        Up to so many samples the matrix behind a kernel is factored.

    >>> er.LogisticRegression(solver=er.solvers.Newton()).fit([[0.0], [1.0], [2.0]], [0, 1, 1]).solver_
    'newton'
    """

    needs = (SMOOTH_LOSS, CURVED_PENALTY, jointly(SQUARED_NORM), behind_kernel(RIDGE))

    def __init__(self, direct: int = 15_000):
        self.direct = direct

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        course = self._course(problem, watch)
        return descend(course, self._start(course, start))

    def _course(self, problem: Problem, watch: Watch) -> NewtonLoop:
        """The loop for the problem: joint classes, a kernel, or explicit columns."""
        if problem.design.implicit:
            return KernelClasses(problem, watch) if problem.classes else Samples(problem, watch, self.direct)
        return Classes(problem, watch) if problem.classes else ExplicitNewtonLoop(problem, watch)

    def _start(self, course: NewtonLoop, start: Point | None) -> NewtonPoint:
        """A given start; on long data that of every eighth row."""
        thin = None if start is not None or course.problem.design.implicit else thinned(course.problem)
        if thin is None:
            return course.start(start)
        watch = course.watch
        loose = Watch(tol=ROUGH, max_iter=ROUGH_STEPS, deadline=watch.deadline)
        rough = self._course(thin, loose)
        point = descend(rough, rough.start(None))
        course.learn_from(rough)
        return course.start(replace(point, u=None))


def descend(course: NewtonLoop, place: NewtonPoint) -> Point:
    """Newton steps until the gap is proved, or nothing helps any more."""
    problem, watch = course.problem, course.watch
    proofs, patience, failed, due = Proofs(problem, watch), 0, 0, 0
    values = deque([place.value], maxlen=CRAWL_STEPS)
    while True:
        if (course.promising(place) or patience) and watch.iterations >= due:
            if proofs(place.point):
                return place.point
            failed += 1
            due = watch.iterations + failed // MAX_FAILED_PROOFS
        before = place.value
        try:
            place = course.moved(place)
            patience = patience + 1 if before - place.value <= ROUNDING * abs(before) else 0
        except (LinAlgError, NoProgress):  # the curvature has vanished to rounding, or there was no time for a step
            patience = STALL_STEPS
        crawls = len(values) == CRAWL_STEPS and values[0] - place.value <= CRAWL_DECREASE * abs(place.value)
        values.append(place.value)
        if patience >= STALL_STEPS or crawls:
            watch.status = watch.status or Ending.STALLED
        if watch(place.point, objective=place.value):
            if failed and watch.status in (Ending.STALLED, Ending.MAX_ITER):
                proofs(place.point)
            return proofs.best(place.point)


class ExplicitNewtonLoop(NewtonLoop):
    """One output on explicit columns, with a Hessian that is kept while it is good."""

    def __init__(self, problem: Problem, watch: Watch):
        super().__init__(problem, watch)
        self.hessian = Hessian(problem)

    def learn_from(self, rough: NewtonLoop) -> None:
        """Begin with the factor of another course, which was made of part of the rows."""
        self.hessian = Hessian(self.problem, cast("ExplicitNewtonLoop", rough).hessian.factor)

    def at(self, point: Point) -> NewtonPoint:
        """The place at a point, with one pass over the data."""
        w, b = point.w, float(point.b)
        return self._with(w, b, *self.problem.predict_and_correlate(w, b))

    def _with(self, w: Array, b: float, f: Array, u: Array, correlations: Array, loss_value: float) -> NewtonPoint:
        problem = self.problem
        gradient = problem.penalty.gradient(w) + correlations
        constant = float(u.sum()) if problem.intercept else 0.0
        value = problem.penalty_sum(Point(w, b)) + loss_value
        return NewtonPoint(w, b, f, w, value, u, gradient, constant, gradient)

    def promising(self, place: NewtonPoint) -> bool:
        """Whether what the dual point of the slopes loses, not being stationary and balanced, is within tol."""
        l2 = self.problem.penalty.l2
        lost = 0.5 * float(place.gradient @ place.gradient) / l2 if l2 > 0 else abs(float(place.gradient @ place.w))
        lost += abs(place.constant) * min(abs(place.b), self._balancing_rate(place.constant))
        return lost <= self.watch.tol * self.problem.magnitude(place.value)

    def _balancing_rate(self, constant: float) -> float:
        """About what balancing the slopes costs per unit: constant / 2 over the sum of the curvatures.

        That sum is taken to be a tenth of the largest one possible; nothing is known where there is none.
        """
        steepest = self.problem.loss.curvature_bound * float(self.problem.scale.sum())
        return 5 * abs(constant) / steepest if np.isfinite(steepest) else np.inf

    def moved(self, place: NewtonPoint) -> NewtonPoint:
        """A Newton step by line search."""
        found = self._step(place)
        turned = np.append(found.gradient - place.gradient, found.constant - place.constant)
        self.hessian.learn(np.append(found.w - place.w, found.b - place.b), turned)
        return found

    def _step(self, place: NewtonPoint) -> NewtonPoint:
        problem = self.problem
        w, b, decrement = self.hessian.step(place)
        there = self.at(Point(place.w + w, place.b + b))
        step = NewtonDirection(w, b, blocks.rowwise(np.subtract, there.f, place.f), w, decrement)
        t, _ = self.searched(place, step, there)
        if t in (0, 1):
            return there if t else place
        f = place.f + t * step.f
        u = problem.slopes(f)
        return self._with(place.w + t * w, place.b + t * b, f, u, problem.design.tdot(u), problem.loss_sum(f))
