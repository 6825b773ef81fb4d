"""Mini-batch stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.compiled_rows import compiled_rows, row_add, row_dot
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import CONVEX, COUNT, EXPLICIT, L2_PART, NORMS, Need, Solver, Watch
from empirisk.solvers.first_order.scaling import largest_eigenvalue, typical_step
from empirisk.solvers.stochastic.online import FINITE_C, Memory, Online, Seen
from empirisk.stop import Ending

Indices = NDArray[np.intp]
#: First steps of weights whose gradients are divided by their size; "adagrad" makes them smaller by itself.
ADAPTIVE_RATE, ADAGRAD_RATE = 0.05, 0.3
#: Steps of `partial_fit` after which a rate that falls like 1 / epochs is half of the first: what an epoch is to a fit.
EPOCH = 100
#: Rows from which the step size is estimated, about.
SAMPLE = 1000
# Places among the numbers kept between two calls of `partial_fit`: steps so far, rows of the estimate of the
# step size, and the estimate, as in `Stiffness`.
STEPS, SAMPLED, STIFFNESS = 0, 1, 2
#: Few samples make few steps in an epoch: as many epochs are made as it takes for these steps, up to a limit.
LEAST_STEPS, MOST_PASSES = 5000, 2000
# Places among the numbers of a step: the step size, l1 and l2 penalties, the share of the new weights in their
# average, how slowly mean and mean square forget, what a new square counts, both corrected for their start at zero,
# and what keeps the divisor above zero. A square that counts nothing means a plain step.
RATE, L1, L2, SHARE, KEEP_MEAN, KEEP_SQUARE, GAIN, MEAN_UP, SQUARE_UP, FLOOR = range(10)


REGULARISED = L2_PART._replace(words=f"{L2_PART.words} for schedule='inverse_regularised'; 'inverse' does not")


class MinibatchSolver(Solver):
    """Steps along the slopes of random batches, epoch after epoch; the best point after an epoch is the answer."""

    aims_at_tol = False
    #: A proof costs about an epoch: the next one is due after so many times as many of them.
    proof_after = 1.5
    batch_size: int
    rate: float | None
    random_state: int | None

    def check(self) -> None:
        """Raise a sentence if a parameter makes no sense."""
        known = self.rate is None or (isinstance(self.rate, Real) and 0 < self.rate < np.inf)
        self.require("batch_size", isinstance(self.batch_size, Integral) and self.batch_size >= 1, COUNT)
        self.require("rate", known, "must be a positive number, or None")

    def limit(self, problem: Problem) -> int:
        wanted = -(-LEAST_STEPS * int(self.batch_size) // len(problem.y))
        return min(max(self.iteration_limit, wanted), MOST_PASSES)

    def training(self, problem: Problem, start: Point | None) -> Any:
        """The state of a run: ``epoch(random, watch)`` is one pass over the rows, ``point()`` the current iterate."""
        raise NotImplementedError

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        self.check()
        random, training = np.random.default_rng(self.random_state), self.training(problem, start)
        best, lowest, looked = problem.origin(), np.inf, 1
        while True:
            training.epoch(random, watch)
            point = training.point()
            objective = problem.primal(point)
            if objective < lowest:
                best, lowest = point, objective
            if watch(point, objective=objective) or not np.isfinite(objective):
                watch.status = watch.status or Ending.STALLED
                return best
            if watch.iterations >= self.proof_after * looked:
                looked = watch.iterations
                if watch.proves(problem, best):
                    return best


@dataclass(eq=False, repr=False)
class SGD(MinibatchSolver, Online):
    """x <- x - rate (n / B times the gradient of the losses of B random samples, plus the penalty's).

    The gradient is that of the mean P / sum_i s_i, so that a good rate depends neither on C nor on the number of
    samples; the l1 penalty is a soft threshold after every step; at corners of the loss a subgradient serves. An
    iteration is an epoch.

    `partial_fit` makes one pass over the rows of a call. Its gradient is that of the mean over all rows so far, so that
    the penalty counts for less the more rows have come, as in a fit of all of them.

    Parameters
    ----------
    batch_size : int, default 32
        Samples in a step.
    schedule : {"auto", "inverse_root", "inverse", "inverse_regularised", "constant"}
        How the rate falls: as 1 / sqrt(epochs), as 1 / epochs, as 1 / (lambda t) over the steps t with lambda the l2
        strength of the mean, or not at all. "auto" is "constant" for ``adapt="adagrad"``, whose steps fall by
        themselves, and "inverse_root" else.
    rate : float or None
        The first step size. None takes a step that would undo the loss of typical samples, or 0.05 with ``adapt`` (0.3
        with "adagrad").
    adapt : {None, "adagrad", "rmsprop", "adam"}
        Divides the step of each weight by the size of its gradients so far.
    average : bool, default False
        Whether to return the average of the weights over the steps; later steps count more.
    shuffle : bool, default True
        Whether every epoch visits the samples in a new random order.
    random_state : int or None, default 0
        Seed of the order.

    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> er.LogisticRegression(C=0.1, solver=er.solvers.SGD()).fit(X, X[:, 0] > 0).solver_
    'sgd'
    """

    sizes = (4, 5)
    #: Epochs; rates that fall by then change little.
    iteration_limit = 200

    batch_size: int = 32
    schedule: str = "auto"
    rate: float | None = None
    adapt: str | None = None
    average: bool = False
    shuffle: bool = True
    random_state: int | None = 0

    @property
    def needs(self) -> tuple[Need, ...]:
        """A decay by the l2 strength needs one."""
        return (EXPLICIT, CONVEX, NORMS, FINITE_C, *((REGULARISED,) if self.schedule == "inverse_regularised" else ()))

    def check(self) -> None:
        super().check()
        known = ["auto", *SCHEDULES]
        self.require("schedule", self.schedule in known, f"is not known; choose one of {known}")
        self.require("adapt", self.adapt in ADAPTATIONS, f"is not known; choose one of {list(ADAPTATIONS)}")

    def training(self, problem: Problem, start: Point | None) -> SGDRun:
        start = problem.origin() if start is None else start
        weights = np.concatenate([np.atleast_2d(start.w.T), np.atleast_1d(start.b)[:, None]], axis=1)
        buffers = Buffers(weights, *(np.zeros_like(weights) for _ in range(4)))
        seen, rate = Seen(len(problem.y), float(problem.weights.sum())), self._given_rate
        pace = Pace(
            int(self.batch_size),
            -(-len(problem.y) // int(self.batch_size)),
            rate or usual_rate(problem, self.batch_size),
        )
        return SGDRun(problem, self, buffers, seen, pace)

    @property
    def _given_rate(self) -> float:
        """The rate asked for, or that which goes with the adaptation; zero leaves it to the rows."""
        return float(self.rate or ADAPTATIONS[self.adapt].rate)

    # --- rows as they come --------------------------------------------------------------------------------------------

    def opening(self, weights: Array, seen: Seen) -> Memory:
        memory = super().opening(weights, seen)
        # What is fitted already is to be kept: steps go on as if every row had been one.
        memory.numbers[STEPS] = seen.rows
        return memory

    def advance(self, problem: Problem, memory: Memory, seen: Seen, watch: Watch) -> Memory:
        self.check()
        numbers = _with_stiffness(memory.numbers, problem)
        # Batches of nearly the same size: a step that suits a whole batch is too long for a last one of a single row.
        batch = -(-len(problem.y) // -(-len(problem.y) // int(self.batch_size)))
        pace = Pace(batch, EPOCH, self._given_rate or Stiffness(*numbers[STIFFNESS:]).rate(batch))
        weights, average, mean, square = _moved(memory.buffers, problem, 1.0)
        buffers = Buffers(weights, np.zeros_like(weights), mean, square, average)
        training = SGDRun(problem, self, buffers, seen, pace, int(numbers[STEPS]))
        seed = None if self.random_state is None else [self.random_state, training.steps]
        training.epoch(np.random.default_rng(seed), watch)
        numbers[STEPS] = training.steps
        return Memory(_moved(np.stack([weights, average, mean, square]), problem, -1.0), numbers)

    def weights(self, memory: Memory) -> Array:
        """The weights, or their average."""
        return memory.buffers[1 if self.average else 0]


class Stiffness(NamedTuple):
    """The estimate of the step size: a step for a sample of length one, and two squared lengths.

    One sample is stiff with the squared length of its row, all of them together with the largest eigenvalue of their
    mean outer product; a batch lies between.
    """

    step: float
    one: float
    everything: float

    def rate(self, batch: int) -> float:
        """A step that would undo the loss of a typical sample, or, more boldly, of a batch at once."""
        return self.step * batch / (self.one + (batch - 1) * self.everything)


def stiffness(problem: Problem) -> Stiffness:
    """The stiffness of about a thousand of the rows."""
    some = problem.design.rows(slice(None, None, max(1, len(problem.y) // SAMPLE)))
    count = some.shape[0]
    one = 1.0 + float(some.squared_rows().mean())
    everything = largest_eigenvalue(some, np.full(count, 1.0 / count), problem.intercept)
    return Stiffness(typical_step(problem), one, everything)


def usual_rate(problem: Problem, batch: int) -> float:
    """The step that the rows of a problem suggest."""
    return stiffness(problem).rate(batch)


def _with_stiffness(numbers: Array, problem: Problem) -> Array:
    """The numbers with the stiffness of the rows of a call, the mean over calls until `SAMPLE` rows were seen."""
    numbers = numbers.copy()
    if numbers[SAMPLED] < SAMPLE:
        found = stiffness(problem)
        # Few rows may have no loss at their best constant, which gives no step size.
        found = found._replace(step=min(found.step, (1.0 / problem.loss.curvature_bound) or np.inf))
        numbers[SAMPLED] += len(problem.y)
        numbers[STIFFNESS:] += (np.array(found) - numbers[STIFFNESS:]) * len(problem.y) / numbers[SAMPLED]
    return numbers


def _moved(buffers: Array, problem: Problem, sign: float) -> Array:
    """The weights and their average in the coordinates of the design, or back with sign -1: its shift moves b."""
    buffers = buffers.copy()
    if problem.design.shift is not None:
        buffers[:2, :, -1] += sign * (buffers[:2, :, :-1] @ problem.design.shift)
    return buffers


class Pace(NamedTuple):
    """Samples in a step, steps over which the rate falls, and the first rate."""

    batch: int
    batches: int
    rate: float


class SGDRun:
    """Weights that are updated batch by batch.

    Parameters
    ----------
    problem, solver : Problem, SGD
        The rows of a pass, and how to step.
    buffers : Buffers
        The weights and what goes with them, in the coordinates of the design.
    seen : Seen
        The rows over which the mean is minimised.
    pace : Pace
        The size and the number of steps.
    steps : int
        Steps so far.
    """

    def __init__(self, problem: Problem, solver: SGD, buffers: Buffers, seen: Seen, pace: Pace, steps: int = 0):
        self.problem, self.averaged, self.shuffled = problem, solver.average, solver.shuffle
        self.buffers, self.steps = buffers, steps
        self.batch, self.batches, self.rate = pace
        self.rows = compiled_rows(problem.design)
        total, penalty = problem.C * seen.weight, problem.penalty
        self.relative = problem.scale * (seen.rows / total)
        usual = "constant" if solver.adapt == "adagrad" else "inverse_root"
        self.schedule = SCHEDULES[usual if solver.schedule == "auto" else solver.schedule]
        self.adaptation = ADAPTATIONS[solver.adapt]
        self.strength = penalty.l2 / total
        self.numbers = np.zeros(FLOOR + 1)
        self.numbers[L1], self.numbers[L2] = penalty.l1 / total, self.strength
        self.predictions = np.empty((self.batch, len(buffers.weights)))

    def epoch(self, random: np.random.Generator, watch: Watch) -> None:
        """One pass over the rows, in a new order where they are shuffled, unless the watch says stop."""
        order = np.arange(len(self.problem.y))
        order = random.permutation(order) if self.shuffled else order
        y, relative = self.problem.y[order], self.relative[order]
        for begin in range(0, len(order), self.batch):
            if watch.must_stop():
                return
            end = min(begin + self.batch, len(order))
            self._step(order[begin:end], y[begin:end], relative[begin:end] / (end - begin))

    def _step(self, chosen: Indices, y: Array, factors: Array) -> None:
        f = self.predictions[: len(chosen)]
        predict_rows(self.rows, chosen, self.buffers.weights, f)
        if self.problem.classes:
            slopes = factors[:, None] * self.problem.loss.derivative(y, f)
        else:
            slopes = (factors * self.problem.loss.derivative(y, f[:, 0]))[:, None]
        self.numbers[RATE] = self.schedule(self, self.steps)
        self.steps += 1
        self.numbers[SHARE] = 2.0 / (self.steps + 1) if self.averaged else 0.0
        self.adaptation.write(self.numbers, self.steps)
        take_step(self.rows, chosen, slopes, self.buffers, self.numbers, self.problem.intercept)

    def point(self) -> Point:
        """The weights, or their average."""
        weights = (self.buffers.average if self.averaged else self.buffers.weights).copy()
        if self.problem.classes:
            return Point(np.ascontiguousarray(weights[:, :-1].T), weights[:, -1])
        return Point(weights[0, :-1], float(weights[0, -1]))


#: The rate after t batches.
SCHEDULES: dict[str, Callable[[SGDRun, float], float]] = {
    "constant": lambda training, t: training.rate,
    "inverse": lambda training, t: training.rate / (1 + t / training.batches),
    "inverse_root": lambda training, t: training.rate / (1 + t / training.batches) ** 0.5,
    # 1 / (lambda t), from the t on at which that is the first rate
    "inverse_regularised": lambda training, t: training.rate / (1 + training.rate * training.strength * t),
}


@dataclass(frozen=True)
class Adaptation:
    """A running mean and mean square of the gradient: how slowly they forget, what a new square counts, corrections.

    ``rate`` is the first step size where none is given; zero leaves it to the problem.
    """

    rate: float
    keep_mean: float
    keep_square: float
    gain: float
    corrected: bool
    #: What keeps the divisor above zero, as in the paper on Adam.
    floor: float = 1e-8

    def write(self, numbers: Array, t: int) -> None:
        """Set the numbers of step t = 1, 2, ..."""
        numbers[KEEP_MEAN], numbers[KEEP_SQUARE] = self.keep_mean, self.keep_square
        numbers[GAIN], numbers[FLOOR] = self.gain, self.floor
        numbers[MEAN_UP] = 1 / (1 - self.keep_mean**t) if self.corrected else 1.0
        numbers[SQUARE_UP] = 1 / (1 - self.keep_square**t) if self.corrected else 1.0


#: None is the plain step; the others divide by the root of the sum, or of the running mean, of squared gradients.
ADAPTATIONS: dict[str | None, Adaptation] = {
    None: Adaptation(0.0, 0.0, 0.0, 0.0, False),
    "adagrad": Adaptation(ADAGRAD_RATE, 0.0, 1.0, 1.0, False),
    "rmsprop": Adaptation(ADAPTIVE_RATE, 0.0, 0.9, 0.1, False),
    "adam": Adaptation(ADAPTIVE_RATE, 0.9, 0.999, 0.001, True),
}


class Buffers(NamedTuple):
    """The weights, their gradient, its running mean and mean square, and the average of the weights over the steps."""

    weights: Array
    gradient: Array
    mean: Array
    square: Array
    average: Array


@plain_loop
def predict_rows(rows, chosen, weights, out):
    """out = the predictions of the chosen rows, one column per output."""
    width = weights.shape[1] - 1
    for k in range(len(weights)):
        w, b = weights[k, :width], weights[k, width]
        for r in range(len(chosen)):
            out[r, k] = row_dot(rows, chosen[r], w) + b


@plain_loop
def take_step(rows, chosen, slopes, buffers, numbers, intercept):
    """One step along the gradient  sum_r slopes_r a_r + l2 w,  followed by the soft threshold of the l1 penalty."""
    weights, gradient = buffers.weights, buffers.gradient
    width = weights.shape[1] - 1
    gradient[:, :] = 0.0
    for k in range(len(weights)):
        w = gradient[k, :width]
        for r in range(len(chosen)):
            if slopes[r, k] != 0.0:
                row_add(rows, chosen[r], slopes[r, k], w)
                if intercept:
                    gradient[k, width] += slopes[r, k]
        for j in range(width):
            w[j] += numbers[L2] * weights[k, j]
    move_weights(buffers, numbers)


@plain_loop
def move_weights(buffers, numbers):
    """Move every weight by its own step size, and the average towards the weights."""
    weights, gradient, mean, square, average = buffers
    rate, l1, share = numbers[RATE], numbers[L1], numbers[SHARE]
    width = weights.shape[1] - 1
    adaptive = numbers[GAIN] > 0
    for k in range(len(weights)):
        for j in range(width + 1):
            direction, size = gradient[k, j], rate
            if adaptive:
                square[k, j] = numbers[KEEP_SQUARE] * square[k, j] + numbers[GAIN] * direction * direction
                mean[k, j] = numbers[KEEP_MEAN] * mean[k, j] + (1 - numbers[KEEP_MEAN]) * direction
                direction = mean[k, j] * numbers[MEAN_UP]
                size = rate / (np.sqrt(square[k, j] * numbers[SQUARE_UP]) + numbers[FLOOR])
            value = weights[k, j] - size * direction
            if l1 > 0 and j < width:
                value -= min(max(value, -size * l1), size * l1)
            weights[k, j] = value
            average[k, j] += share * (value - average[k, j])
