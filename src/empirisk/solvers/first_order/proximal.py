"""Proximal methods: every convex loss with every penalty, by products with the design and proxes alone."""

from dataclasses import replace

import numpy as np

from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import CONVEX, EXPLICIT, Solver, Watch
from empirisk.solvers.first_order.primal_dual import PrimalDual
from empirisk.solvers.first_order.scaling import Scaling
from empirisk.stop import Ending

# Steps after which FISTA gives way to the primal-dual method.
HANDOVER = 5000
#: Steps before the first look at the gap.
FIRST_LOOK = 5
#: A change of the objective below this share of it is rounding.
ROUNDING = 1e-14
#: Steps without progress after which the solver reports a stall: momentum may raise the objective for a while.
STALL_STEPS = 300
#: A step is shorter if its square is smaller by this much.
SHORTER = 0.9
#: A change above this share can be told from a difference of values.
VISIBLE = 1e-6
#: Attempts at a step, each up to ten times as steep as the last; the next step goes on where they end.
ATTEMPTS = 30


class Proximal(Solver):
    """Accelerated proximal gradient where the loss has bounded curvature, a primal-dual method elsewhere.

        w <- prox_{t R}( z - t gradient(z) ),    z = w + momentum (w - previous w)

    The proximal step of the l1 penalty is the soft threshold. Steps are divided by the sizes of the columns, so their
    units do not matter. An iteration is one step: two products with the design. Memory O(n + d) beside the design.

    Parameters
    ----------
    accelerated : bool, default True
        Whether the gradient steps have momentum (FISTA) or not (ISTA). With momentum, the primal-dual method takes
        over where 5000 steps have not been enough.

    >>> er.Lasso(solver=er.solvers.Proximal()).fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 3.0]).solver_
    'proximal'
    """

    needs = (EXPLICIT, CONVEX)

    in_passes = True
    #: The last resort of the table: steps are cheap, and it may need many.
    iteration_limit = 50_000

    def __init__(self, accelerated: bool = True):
        self.accelerated = accelerated

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        best = problem.origin() if start is None else start
        scaling, bounded = Scaling(problem), problem.loss.curvature_bound < np.inf
        method = ProximalGradient(scaling, best, self.accelerated) if bounded else PrimalDual(scaling, best)
        lowest, looked = np.inf, FIRST_LOOK
        while True:
            method.step()
            point, steps = method.point(), watch.iterations
            if method.objective <= lowest:
                best, lowest = point, method.objective
            near = method.unsettled <= 10 * watch.tol * problem.magnitude(method.objective)
            # A look at the gap costs several products: when it may succeed, and now and then in any case.
            if method.stuck or steps >= 2 * looked or (near and method.settled and steps >= 1.1 * looked):
                looked = max(steps, FIRST_LOOK)
                if watch.proves(problem, point):
                    return point
            if method.stuck:
                watch.status = Ending.STALLED
            if watch(point, objective=method.objective):
                return best
            if steps == HANDOVER and bounded and self.accelerated:
                watch.note(f"the primal-dual method after {HANDOVER} steps")
                method = PrimalDual(scaling, replace(point, u=problem.slopes(problem.predict(point))))


class ProximalGradient:
    """x <- prox(z - gradient(z) / (steepness * sizes)) from the extrapolated point z = x + momentum (x - previous x).

    The steepness is raised until the quadratic model holds, and lowered a little at every step. The momentum starts
    again whenever it points uphill.
    """

    #: Every point is as good a moment as any other to look at the gap.
    settled = True

    def __init__(self, scaling: Scaling, start: Point, accelerated: bool):
        self.scaling, self.problem, self.accelerated = scaling, scaling.problem, accelerated
        self.x = scaling.pack(start)
        self.f = scaling.predict(self.x)
        self.objective = self._objective()
        self.steepness = float(self.problem.loss.curvature_bound)
        self.steps = self.latest = 0
        self.lowest = self.shortest = np.inf
        self.stuck = False
        self._forget()

    def _forget(self) -> None:
        """Start the momentum again."""
        self.before, self.f_before, self.age = self.x, self.f, 1.0

    def _objective(self) -> float:
        return self.problem.penalty.value(self.x[:-1]) + self.problem.loss_sum(self.f)

    def step(self) -> None:
        """One proximal gradient step."""
        age = 0.5 * (1 + np.sqrt(1 + 4 * self.age**2)) if self.accelerated else 1.0
        momentum = (self.age - 1) / age
        z, f = self.x + momentum * (self.x - self.before), self.f + momentum * (self.f - self.f_before)
        u = self.problem.slopes(f)
        gradient = self.scaling.correlate(u)
        x, f_next = self._descend(z, f, u, gradient)
        uphill = float((self.scaling.sizes * (z - x) * (x - self.x)).sum()) > 0
        rests = np.array_equal(x, self.x) and np.array_equal(z, self.x)
        self.before, self.f_before, self.age = self.x, self.f, age
        self.x, self.f = x, f_next
        self.objective = self._objective()
        self.stuck = rests or self._goes_nowhere()
        self.unsettled = self.scaling.unsettled(x, gradient)
        # Steps grow by a fiftieth while all goes well, and at once by 1 / 0.7 at a restart: both within what
        # backtracking takes back.
        self.steepness *= 0.7 if uphill else 0.98
        if uphill:
            self._forget()

    def _goes_nowhere(self) -> bool:
        """Whether neither objective nor steps have become smaller for `STALL_STEPS` steps, and as many as before.

        Near the end the objective has no digits left to fall by, while the steps still shrink and the dual point gains.
        """
        self.steps += 1
        length = self.scaling.square(self.x - self.before)
        if self.objective < self.lowest - ROUNDING * abs(self.objective):
            self.latest, self.lowest = self.steps, self.objective
        if length < SHORTER * self.shortest:
            self.latest, self.shortest = self.steps, length
        return self.steps >= 2 * self.latest + STALL_STEPS

    def _descend(self, z: Array, f: Array, u: Array, gradient: Array) -> tuple[Array, Array]:
        """The step from z that its quadratic model allows, and the predictions there."""
        value, x, f_next = self.problem.loss_sum(f), z, f
        for _ in range(ATTEMPTS):
            step = 1.0 / (self.steepness * self.scaling.sizes)
            x = self.scaling.prox(z - step * gradient, step)
            f_next = self.scaling.predict(x)
            square = 0.5 * self.scaling.square(x - z)
            if self.steepness * square > VISIBLE * abs(value):
                bend = self.problem.loss_sum(f_next) - value - float(np.vdot(u, f_next - f))
            else:
                # A difference of values has no digits left; half the change of the slopes along the step has them.
                bend = 0.5 * float(np.vdot(self.problem.slopes(f_next) - u, f_next - f))
            if bend <= self.steepness * square * (1 + VISIBLE) or square == 0:
                break
            # Towards what this step has shown, by no less than a half and no more than ten times.
            self.steepness *= min(10.0, max(1.5, bend / (self.steepness * square)))
        return x, f_next

    def point(self) -> Point:
        """The current point."""
        return self.scaling.point(self.x)
