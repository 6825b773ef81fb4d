"""The equation with a network inside, as one function that JAX differentiates."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from empirisk.losses.base import Loss
from empirisk.nets.augment import Augmentation, augmented
from empirisk.nets.layers import Pass, Weights
from empirisk.nets.losses import loss_function, penalty_function
from empirisk.nets.plan import Plan, frozen
from empirisk.penalties.base import Penalty

HEAD, BIAS = "head.weight", "head.bias"
#: The unit of every output, and what its targets are counted from: w = unit * weight, b = from + unit * bias.
UNIT, FROM = "head.unit", "head.from"
#: What belongs to the head, and stays as it is in training.
FIXED = frozenset((UNIT, FROM))


class Objective:
    """J = decay/2 sum_l |W_l|_F^2 + R(w) + sum_p sum_i s_ip loss_p(y_ip, <w_p, phi_W(x_i)> + b_p).

    Problems p share the network; each has outputs of its own: one, or one per class for a joint loss. Biases, and the
    numbers that batch normalisation learns, are free. Weights of the head are in units of the targets, so that steps of
    one size suit targets of any: prices as well as shares.

    Parameters
    ----------
    plan : Plan
        The network.
    losses : list of (Loss, int)
        The loss and the number of classes (0 unless joint) of every problem.
    penalty : Penalty
        R.
    decay : float
        The factor of the penalty on the network.
    intercept : bool
        Whether the b_p are free.
    augment : tuple of Augmentation
        Changes of the batches in training.
    """

    def __init__(
        self,
        plan: Plan,
        losses: Sequence[tuple[Loss, int]],
        penalty: Penalty,
        decay: float,
        intercept: bool,
        augment: tuple[Augmentation, ...] = (),
    ):
        self.plan, self.penalty, self.decay, self.intercept, self.augment = plan, penalty, decay, intercept, augment
        self._groups = _groups(losses)
        self.outputs = sum(max(classes, 1) for _, classes in losses)
        self._key = (plan, tuple((frozen(loss), k) for loss, k in losses), frozen(penalty), decay, intercept,
                     frozen(augment))  # fmt: skip

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Objective) and self._key == other._key

    def head(self, random: np.random.Generator) -> dict[str, NDArray]:
        """First weights of the head: small, so that the first predictions are near constant."""
        width = self.plan.width
        weight = random.normal(size=(width, self.outputs)) / np.sqrt(max(width, 1))
        bias = {BIAS: np.zeros(self.outputs, np.float32)} if self.intercept else {}
        units = {UNIT: np.ones(self.outputs, np.float32), FROM: np.zeros(self.outputs, np.float32)}
        return {HEAD: weight.astype(np.float32)} | bias | units

    def penalties(self, weights: Weights) -> Any:
        """decay/2 sum_l |W_l|_F^2 + R(w)."""
        hidden = [jnp.vdot(value, value) for name, value in weights.items() if penalised(name)]
        return 0.5 * self.decay * sum(hidden) + self._head_penalty(weights[UNIT] * weights[HEAD])

    def _head_penalty(self, head: Any) -> Any:
        """R(w), summed over the problems."""
        value, total = penalty_function(self.penalty), jnp.zeros((), head.dtype)
        for _, _, columns in self._groups:
            joint = isinstance(columns, slice)
            total += value(head[:, columns]) if joint else jax.vmap(value, 1)(head[:, columns]).sum()
        return total

    def losses(self, weights: Weights, x: Any, targets: Any, scale: Any, run: Pass) -> Any:
        """The sum of losses of a batch, whose targets are counted from those of the head."""
        if run.training and self.augment:
            x = augmented(self.augment, x, run.draw("augment"))
        f = self.plan.apply(weights, x, run) @ weights[HEAD]
        f = weights[UNIT] * (f + weights[BIAS] if self.intercept else f)
        total = jnp.zeros((), f.dtype)
        for loss, problems, columns in self._groups:
            values = loss_function(loss)(targets[:, problems], f[:, columns])
            total += (scale[:, problems] * values).sum()
        return total


def penalised(name: str) -> bool:
    """Whether a weight of the network is penalised: all that multiply, no biases."""
    return name.endswith(".weight") and name != HEAD


def columns_of(classes: Sequence[int]) -> list[Any]:
    """The outputs of every problem: one, or one per class of a joint loss."""
    starts = np.cumsum([0, *(max(k, 1) for k in classes)])
    return [slice(start, start + k) if k else int(start) for start, k in zip(starts, classes, strict=False)]


def _groups(losses: Sequence[tuple[Loss, int]]) -> list[tuple[Loss, Any, Any]]:
    """Loss, problems, columns: problems of the same separable loss together, each joint loss by itself."""
    columns = columns_of([classes for _, classes in losses])
    same: dict[Any, list[int]] = {}
    for number, (loss, classes) in enumerate(losses):
        same.setdefault((frozen(loss), number if classes else -1), []).append(number)
    groups: list[tuple[Loss, Any, Any]] = []
    for (_, joint), numbers in same.items():
        where = columns[joint] if joint >= 0 else np.array([columns[number] for number in numbers])
        groups.append((losses[numbers[0]][0], joint if joint >= 0 else np.array(numbers), where))
    return groups
