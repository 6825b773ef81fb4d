"""Training: mini-batches through the compiled step, with looks at a held-out part, limits, and a way to go on later."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.nets.checkpoint import Checkpoint
from empirisk.nets.device import on_device
from empirisk.nets.layers import Pass, Weights
from empirisk.nets.objective import FIXED, NetworkObjective
from empirisk.nets.optimisers import OptimiserRule
from empirisk.nets.plan import BLOCK, bucket
from empirisk.stop import Deadline, Ending

#: Up to so many rows the data is filled up to a power of two, so that few sizes are compiled.
FEW = 4096
#: Steps in one call, which costs about as much as a small step.
TOGETHER = 64
#: Steps between looks where an epoch is shorter.
LEAST_LOOK = 50


@dataclass(frozen=True)
class TrainingData:
    """Rows, targets and scales s = C * weight (zero where a row takes no part), one column per problem."""

    x: NDArray
    targets: NDArray
    scale: NDArray

    def take(self, rows: NDArray) -> "TrainingData":
        """Some of the rows."""
        return TrainingData(self.x[rows], self.targets[rows], self.scale[rows])

    def padded(self, rows: int) -> "TrainingData":
        """With rows of zero scale added."""
        more = rows - len(self.x)
        return TrainingData(
            *(np.concatenate([a, np.zeros((more, *a.shape[1:]), a.dtype)]) if more else a for a in self.arrays)
        )

    @property
    def arrays(self) -> tuple[NDArray, NDArray, NDArray]:
        """The three arrays."""
        return self.x, self.targets, self.scale


@dataclass(frozen=True)
class TrainingSchedule:
    """How long and in what portions to train.

    Attributes
    ----------
    batch, steps : int
        Rows in a step, and steps in all.
    rates : array
        The step size of every step.
    look : int
        Steps between two looks.
    patience : int
        Looks without a better validation loss after which to stop.
    seed : int
        Of the order of the rows and of all that happens in training.
    """

    batch: int
    steps: int
    rates: NDArray
    look: int
    patience: int
    seed: int


@dataclass
class Trained:
    """What training leaves: weights, running moments, the first weights, history, and why it ended."""

    weights: dict[str, NDArray]
    state: dict[str, NDArray]
    first: dict[str, NDArray]
    history: dict[str, list] = field(default_factory=dict)
    steps: int = 0
    stopped: str = Ending.FINISHED


def _key(seed: Any, step: Any) -> Any:
    """The key of all that is drawn in a step."""
    return jax.random.fold_in(jax.random.key(seed), step)


def _step(objective: NetworkObjective, rule: OptimiserRule, carry: Weights, given: Any, step: Any) -> Any:
    """One step: the carry after it, the objective, and the norm of every gradient."""
    fixed, masks, data, mean, rescale, key = given
    number, rows, rate = step
    x, targets, scale = (array[rows] for array in data)

    def value(weights):
        draw = partial(_key, key, number)
        run = Pass(carry["state"], True, scale.sum(axis=1), draw, frozenset(fixed))
        everything = weights | fixed
        loss = objective.losses(everything, x, targets, scale, run)
        return mean * (objective.penalties(everything) + rescale * loss), run.state

    (worth, state), slopes = jax.value_and_grad(value, has_aux=True)(carry["weights"])
    slopes = slopes | {name: mask * slopes[name] for name, mask in masks.items()}
    moves, memory = rule.transformation.update(slopes, carry["memory"], carry["weights"])
    length = 1.0 if rule.own_rate else -rate
    weights = jax.tree.map(lambda weight, move: weight + length * move, carry["weights"], moves)
    norms = jnp.stack([jnp.sqrt(jnp.vdot(slopes[name], slopes[name])) for name in sorted(slopes)])
    return {"weights": weights, "state": state, "memory": memory}, worth / mean, norms / mean


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def one_step(
    objective: NetworkObjective, rule: OptimiserRule, carry: Weights, given: Any, steps: Any, count: Any
) -> Any:
    """A single step, compiled without a loop around it."""
    carry, worth, norms = _step(objective, rule, carry, given, [part[0] for part in steps])
    return carry, worth[None], norms


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def many_steps(
    objective: NetworkObjective, rule: OptimiserRule, carry: Weights, given: Any, steps: Any, count: Any
) -> Any:
    """The first ``count`` of the steps: the carry, the objectives, and the last norms. Any count is one compilation."""

    def body(place, so_far):
        carry, worths, _ = so_far
        carry, worth, norms = _step(objective, rule, carry, given, [part[place] for part in steps])
        return carry, worths.at[place].set(worth), norms

    nothing = jnp.zeros(len(steps[0])), jnp.zeros(len(carry["weights"]))
    return lax.fori_loop(0, count, body, (carry, *nothing))


@partial(jax.jit, static_argnums=0)
def _memory(rule: OptimiserRule, weights: Weights) -> Any:
    """What an optimiser remembers at first; one compilation for all arrays."""
    return rule.transformation.init(weights)


@partial(jax.jit, static_argnums=0)
def _losses(objective: NetworkObjective, weights: Weights, state: Weights, x: Any, targets: Any, scale: Any) -> Any:
    return objective.losses(weights, x, targets, scale, Pass(state))


def loss_sum(objective: NetworkObjective, weights: Weights, state: Weights, data: TrainingData) -> float:
    """The sum of losses of all rows, as predicted."""
    total = 0.0
    for start in range(0, len(data.x), BLOCK):
        block = data.take(np.arange(start, min(start + BLOCK, len(data.x))))
        block = block.padded(bucket(len(block.x)))
        total += float(_losses(objective, weights, state, *block.arrays))
    return total


class NetworkTraining:
    """One training from first weights to last.

    Parameters
    ----------
    objective, rule, schedule : Objective or Rebuilding, Rule, TrainingSchedule
        What is minimised, how, and for how long.
    data, held_out : Data, Data or None
        The rows to learn from, and those looked at.
    weights, state : dicts of arrays
        Where to begin.
    frozen : set of str
        Names of weights that stay.
    masks : dict of arrays
        Zero where a weight is to stay as it is.
    deadline : Deadline, optional
        When to stop.
    report : callable
        Told of every look: the step, what was found, and the weights; True to stop.
    checkpoint : Checkpoint or None
        Where the training is kept, so that it can go on after a crash.
    total : float or None
        The sum of the scales of all rows that the data stand for, where they are not all; None for their own.
    memory : list of arrays
        What the optimiser remembers of an earlier training, as `memory` gives it; what does not fit is passed over.
    """

    def __init__(
        self,
        objective: Any,
        rule: OptimiserRule,
        schedule: TrainingSchedule,
        data: TrainingData,
        weights: dict[str, NDArray],
        state: dict[str, NDArray],
        *,
        held_out: TrainingData | None = None,
        frozen: frozenset[str] = frozenset(),
        masks: dict[str, NDArray] | None = None,
        deadline: Deadline | None = None,
        report: Callable[[int, dict[str, Any], Trained], bool] = lambda step, entry, trained: False,
        checkpoint: Checkpoint | None = None,
        total: float | None = None,
        memory: Sequence[NDArray] = (),
    ):
        self.objective, self.rule, self.schedule, self.held_out = objective, rule, schedule, held_out
        self._deadline, self._report = deadline or Deadline(), report
        self._rows = len(data.x)
        self._whole = self._rows <= schedule.batch
        self._padded = bucket(self._rows, FEW)
        frozen = frozen | FIXED
        self._first = {name: np.asarray(value) for name, value in weights.items()}
        self._fixed = {name: value for name, value in weights.items() if name in frozen}
        masks = {name: np.asarray(mask, np.float32) for name, mask in (masks or {}).items() if name not in frozen}
        own = max(float(data.scale.sum()), float(np.finfo(np.float32).tiny))
        mean = 1.0 / (own if total is None else total)
        rescale = (1.0 if self._whole else self._rows / schedule.batch) / (own * mean)
        padded = data.padded(self._padded).arrays
        self._given = self._fixed, masks, padded, np.float32(mean), np.float32(rescale), np.uint32(schedule.seed)
        # Copies, since the first step overwrites what it is given.
        moving = jax.device_put({name: np.array(value) for name, value in weights.items() if name not in frozen})
        self._carry = {"weights": moving, "state": dict(state), "memory": _recalled(_memory(rule, moving), memory)}
        self._names = sorted(moving)
        self._checkpoint = checkpoint
        self._best: tuple[float, int, dict, dict] | None = None
        self.trained = Trained(*self._now(), self._first)

    @property
    def memory(self) -> list[NDArray]:
        """What the optimiser remembers."""
        return [np.array(leaf) for leaf in jax.tree.leaves(self._carry["memory"])]

    def run(self) -> Trained:
        """Train until the steps are done or something says stop."""
        with on_device() as platform:
            return self._run(platform)

    def _run(self, platform: str) -> Trained:
        step = self._resume()
        self._given = jax.device_put(self._given)  # once, not at every step
        begin = time.perf_counter() - (self.trained.history.get("seconds") or [0.0])[-1]
        # Inside a loop, convolutions do not use the threads of a CPU.
        single = platform == "cpu" and not self.objective.plan.loops_well
        self._call, stride = (one_step, 1) if single else (many_steps, TOGETHER)
        ended = ""
        while step < self.schedule.steps and not ended:
            goal = min(step + self.schedule.look, self.schedule.steps)
            worths: list = []
            norms = None
            while step < goal and not ended:
                count = min(stride, goal - step)
                self._carry, worth, norms = self._advance(step, count, stride)
                if worths:
                    worths[-1][0].block_until_ready()  # no further ahead than one call, so that stopping is prompt
                worths.append((worth, count))
                step += count
                ended = self._deadline.reason if self._deadline() else ""
            objectives = np.concatenate([np.asarray(worth)[:count] for worth, count in worths])
            ended = self._look(step, objectives, np.asarray(norms), begin) or ended
        self.trained.stopped = ended or Ending.FINISHED
        self.trained.steps = step
        if self._best is not None and self.held_out is not None:
            _, _, self.trained.weights, self.trained.state = self._best
        if self._checkpoint is not None and not ended:
            self._checkpoint.remove()
        return self.trained

    def _advance(self, step: int, count: int, stride: int) -> Any:
        numbers = np.minimum(np.arange(step, step + stride), self.schedule.steps - 1)
        rows = np.stack([self._batch(number) for number in numbers[:count]]).astype(np.int32)
        rows = np.concatenate([rows, np.repeat(rows[-1:], stride - count, axis=0)])  # steps beyond count are not taken
        steps = numbers.astype(np.int32), rows, self.schedule.rates[numbers]
        return self._call(self.objective, self.rule, self._carry, self._given, steps, np.int32(count))

    def _batch(self, number: int) -> NDArray:
        """The rows of a step: all, or the next of an order that is drawn for each epoch."""
        if self._whole:
            return np.arange(self._padded)
        per_epoch = self._rows // self.schedule.batch
        epoch, place = divmod(int(number), per_epoch)
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([self.schedule.seed, epoch]).permutation(self._rows)
        return self._order[place * self.schedule.batch : (place + 1) * self.schedule.batch]

    def _now(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        weights = self._fixed | self._carry["weights"]
        # Copies: the arrays of the carry are overwritten by the next step.
        return tuple({k: np.array(v) for k, v in part.items()} for part in (weights, self._carry["state"]))  # type: ignore[return-value]

    def _look(self, step: int, worths: NDArray, norms: NDArray, begin: float) -> str:
        """Note where the training stands and keep it, if it is sound; why to stop, if so."""
        if not np.isfinite(worths).all() or not np.isfinite(norms).all():
            return Ending.NOT_FINITE
        weights, state = self._now()
        if not all(np.isfinite(value).all() for value in weights.values()):
            return Ending.NOT_FINITE
        self.trained.weights, self.trained.state = weights, state
        entry = {
            "step": step,
            "seconds": time.perf_counter() - begin,
            "objective": float(worths.mean()),
            "gradient_norm": norms.astype(np.float64),
            "drift": np.array([drift(weights[name], self._first[name]) for name in self._names]),
        }
        if self.held_out is not None:
            share = max(float(self.held_out.scale.sum()), np.finfo(np.float32).tiny)
            entry["validation_objective"] = loss_sum(self.objective, weights, state, self.held_out) / share
        for name, value in entry.items():
            self.trained.history.setdefault(name, []).append(value)
        told = self._report(step, entry, self.trained)
        ended = self._judge(step, entry.get("validation_objective"), weights, state) or (
            Ending.CALLBACK if told else ""
        )
        if self._checkpoint is not None:
            self._checkpoint.write(step, self._carry, self._best, self.trained.history)
        return ended

    def _judge(self, step: int, loss: float | None, weights: dict, state: dict) -> str:
        """Keep the best weights by the held-out loss; stop after ``patience`` checks without better ones."""
        if loss is None:
            return ""
        if self._best is None or loss < self._best[0]:
            self._best = loss, step, weights, state
        late = step - self._best[1] >= self.schedule.patience * self.schedule.look
        return Ending.EARLY_STOPPING if late else ""

    def _resume(self) -> int:
        found = None if self._checkpoint is None else self._checkpoint.read(self._carry)
        if found is None:
            return 0
        step, self._carry, self._best, self.trained.history = found
        self.trained.weights, self.trained.state = self._now()
        return step


def _recalled(fresh: Any, kept: Sequence[NDArray]) -> Any:
    """The memory of an optimiser as it was kept, where it is like a fresh one."""
    leaves, shape = jax.tree.flatten(fresh)
    alike = [(leaf.shape, leaf.dtype) for leaf in leaves] == [(leaf.shape, leaf.dtype) for leaf in kept]
    return jax.tree.unflatten(shape, [jnp.array(leaf) for leaf in kept]) if alike else fresh


def drift(weight: NDArray, first: NDArray) -> float:
    """|W - W0| / |W0|; 0 where W0 is zero, as biases are."""
    weight, first = weight.astype(np.float64), first.astype(np.float64)
    size = float(np.linalg.norm(first))
    return float(np.linalg.norm(weight - first)) / size if size else 0.0
