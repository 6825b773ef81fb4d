"""Methods of descent on a function: each moves a point until the watch says stop."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from empirisk.solvers.first_order.steps import Backtracking, Decreasing, step_rule
from empirisk.solvers.functions.descent_record import DescentRecord
from empirisk.solvers.functions.line import Ray
from empirisk.solvers.functions.objective import UserObjective
from empirisk.solvers.functions.scaled import L_BFGS, minimise_scaled, unit_of
from empirisk.solvers.stochastic.sgd import ADAPTATIONS, FLOOR, RATE, Buffers, move_weights
from empirisk.stop import Ending

Array = NDArray[np.float64]
#: Where no rate is given, the first step changes the largest number of x by this share of its size, or is shortened.
FIRST_STEP = 0.1
#: The share of the last step that momentum repeats, as is usual.
MOMENTUM = 0.9
#: The decrease that Newton's steps must bring: one half would refuse the exact step of a quadratic by its rounding.
NEWTON_DECREASE = 1e-4
#: Curvatures below this share of the largest are raised to it: the step along them would be guessed.
FLAT = 1e-10


class StepMethod(Protocol):
    """A step rule that may also turn the line: `move` takes step number k = 1, 2, ..., if there is any left."""

    def move(self, line: Ray, k: int) -> bool:
        """Move the line to its next point."""
        ...


@dataclass(frozen=True)
class Options:
    """The options of a method, as given to `minimise`."""

    step: str = "auto"
    rate: float | None = None
    grow: float = 1.1
    shrink: float = 0.5


def first_rate(ray: Ray, options: Options) -> float:
    """The rate that was given, or a step at the start after which the objective has fallen enough."""
    if options.rate is not None:
        return float(options.rate)
    largest = float(np.abs(ray.gradient).max(initial=0.0))
    if not largest > 0:
        return 1.0
    t = FIRST_STEP * (float(np.abs(ray.x).max()) or 1.0) / largest
    while not ray.falls(t) and ray.moves(t):
        t *= options.shrink
    return t


def follow(ray: Ray, rule: StepMethod, path: DescentRecord) -> None:
    """Take the steps of a rule until the path has ended."""
    path.note(ray)
    while rule.move(ray, path.iterations + 1):
        ray.differentiate()
        path.note(ray)
    path.stall()


# --- by gradients -----------------------------------------------------------------------------------------------------


def gradient_descent(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
    """x <- x - t gradient, with one of the step rules."""
    ray = Ray(objective, start)
    step = "backtracking" if options.step == "auto" else options.step
    follow(ray, step_rule(step, first_rate(ray, options), options.grow, options.shrink), path)


def subgradient(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
    """x <- x - t gradient / |gradient| with shrinking t, for functions with corners; the best point counts."""
    ray = Ray(objective, start)
    path.smooth = False
    step = "decreasing_root" if options.step == "auto" else options.step
    length = options.rate or FIRST_STEP * (float(np.abs(start).max()) or 1.0)
    rule = step_rule(step, length, options.grow, options.shrink)
    path.note(ray)
    while ray.gradient.any():
        ray.direction = ray.gradient / np.linalg.norm(ray.gradient)
        if not rule.move(ray, path.iterations + 1):
            path.stall()
        ray.differentiate()
        path.note(ray)
    path.end(Ending.CONVERGED)


@dataclass
class HeavyBall:
    """x <- x - t gradient + momentum (x - x before)."""

    sizes: Decreasing
    before: Array

    def move(self, line: Ray, k: int) -> bool:
        """Repeat a share of the last step on top of the next one."""
        x, t = line.x, self.sizes.size(k)
        line.direction = line.gradient - (MOMENTUM / t) * (x - self.before)
        line.go(t)
        self.before = x
        return bool(np.isfinite(line.value))


@dataclass
class Accelerated:
    """Nesterov's steps: from a point ahead of x on the line through the last two, with backtracking there.

    The momentum begins anew where the objective rises.
    """

    search: Backtracking
    before: Array
    age: float = 1.0

    def move(self, line: Ray, k: int) -> bool:
        """One step from the point ahead."""
        older, self.age = self.age, 0.5 * (1 + (1 + 4 * self.age**2) ** 0.5)
        ahead = Ray(line.objective, line.x + (older - 1) / self.age * (line.x - self.before), line.decrease)
        moved = np.isfinite(ahead.value) and self.search.move(ahead, k)
        if not moved or ahead.value > line.value:
            ahead, self.age = Ray(line.objective, line.x, line.decrease), 1.0
            moved = self.search.move(ahead, k)
        self.before, line.x, line.value = line.x, ahead.x, ahead.value
        return moved


@dataclass
class Adaptive:
    """Steps that are divided, number by number, by the size of the gradients so far: AdaGrad, RMSProp, Adam."""

    sizes: Decreasing
    adaptation: Any
    buffers: Buffers
    numbers: Array
    unit: float

    def move(self, line: Ray, k: int) -> bool:
        """The step that `SGD` takes with the whole gradient, in units of the first one."""
        self.numbers[RATE] = self.sizes.size(k)
        self.adaptation.write(self.numbers, k)
        self.buffers.weights[0], self.buffers.gradient[0] = line.x, line.gradient / self.unit
        move_weights(self.buffers, self.numbers)
        line.direction = line.x - self.buffers.weights[0]
        line.go(1.0)
        return bool(np.isfinite(line.value))


def sizes_of(options: Options, usual: str, first: float) -> Decreasing:
    """The step sizes of a method that looks for none."""
    rule = step_rule(usual if options.step == "auto" else options.step, first, options.grow, options.shrink)
    assert isinstance(rule, Decreasing)
    return rule


def momentum(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
    """The heavy ball."""
    ray = Ray(objective, start)
    follow(ray, HeavyBall(sizes_of(options, "fixed", first_rate(ray, options)), start), path)


def accelerated(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
    """Nesterov's accelerated gradient."""
    ray = Ray(objective, start)
    follow(ray, Accelerated(Backtracking(first_rate(ray, options), options.shrink), start), path)


def adaptive(name: str) -> "Method":
    """AdaGrad, RMSProp or Adam."""
    adaptation = ADAPTATIONS[name]

    def run(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
        usual = "fixed" if name == "adagrad" else "decreasing_root"  # as for `SGD`: its steps fall by themselves
        sizes = sizes_of(options, usual, options.rate or adaptation.rate * (float(np.abs(start).max()) or 1.0))
        buffers = Buffers(*(np.zeros((1, start.size)) for _ in Buffers._fields))
        ray = Ray(objective, start)
        unit = float(np.abs(ray.gradient).max()) or 1.0
        follow(ray, Adaptive(sizes, adaptation, buffers, np.zeros(FLOOR + 1), unit), path)

    return run


# --- by curvature -----------------------------------------------------------------------------------------------------


@dataclass
class NewtonStep:
    """The Newton direction with absolute eigenvalues of the Hessian: a descent direction where it is indefinite too."""

    shrink: float

    def move(self, line: Ray, k: int) -> bool:
        """Backtrack from the full step."""
        hessian = line.objective.hessian(line.x)
        if not np.isfinite(hessian).all():
            return False
        curvatures, vectors = eigh(hessian)
        sizes = np.abs(curvatures)
        largest = float(sizes.max())
        if largest > 0:
            line.direction = vectors @ ((vectors.T @ line.gradient) / np.maximum(sizes, FLAT * largest))
        return Backtracking(self.shrink, self.shrink).move(line, k)


def newton(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
    """Newton's method."""
    follow(Ray(objective, start, NEWTON_DECREASE), NewtonStep(options.shrink), path)


# --- SciPy's ----------------------------------------------------------------------------------------------------------


def by_scipy(method: str, gradients: bool = True, **settings: Any) -> "Method":
    """A method of `scipy.optimize.minimize`, with limits and convergence checked by the record of the descent."""

    def run(objective: UserObjective, start: Array, path: DescentRecord, options: Options) -> None:
        first, slopes = objective.value(start), objective.gradient(start) if gradients else None
        path.note_at(start, first, slopes)
        scale = (float(np.abs(slopes).max()) * unit_of(start) if slopes is not None else abs(first)) or 1.0

        def after(x: Array, here: float) -> None:
            path.note_at(x, here, objective.gradient(x) if gradients else None)

        found = minimise_scaled(
            objective.value,
            start,
            scale,
            after,
            method=method,
            gradient=objective.gradient if gradients else None,
            options=settings | path.scipy_limits(method),
        )
        if found.success and not gradients:  # the others are checked for convergence by the record
            path.end(Ending.CONVERGED)
        path.stall()

    return run


Method = Callable[[UserObjective, Array, DescentRecord, Options], None]

METHODS: dict[str, Method] = {
    "gradient_descent": gradient_descent,
    "subgradient": subgradient,
    "momentum": momentum,
    "accelerated": accelerated,
    "adagrad": adaptive("adagrad"),
    "rmsprop": adaptive("rmsprop"),
    "adam": adaptive("adam"),
    "newton": newton,
    "bfgs": by_scipy("BFGS", gtol=0.0, xrtol=0.0),
    "l_bfgs": by_scipy("L-BFGS-B", **L_BFGS),
    "conjugate_gradient": by_scipy("CG", gtol=0.0),
    "nelder_mead": by_scipy("Nelder-Mead", gradients=False, adaptive=True),
    "powell": by_scipy("Powell", gradients=False),
}
