"""The equation with a network inside, as one function that JAX differentiates."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from empirisk.losses.base import Loss
from empirisk.nets.augment import Augmentation, augmented
from empirisk.nets.differentiable import differentiable, traceable
from empirisk.nets.layers import Pass, Weights
from empirisk.nets.plan import Keyed, NetworkPlan, frozen
from empirisk.penalties.base import Penalty

HEAD, BIAS = "head.weight", "head.bias"
#: The unit of every output, and what its targets are counted from: w = unit * weight, b = from + unit * bias.
UNIT, FROM = "head.unit", "head.from"
#: What belongs to the head, and stays as it is in training.
FIXED = frozenset((UNIT, FROM))


class Decay(Keyed):
    """decay * sum_l R(W_l) over all weights that multiply; biases, scales and shifts are free.

    Parameters
    ----------
    factor : float
        The strength.
    penalty : Penalty
        R of a single weight: l2, l1, elastic net.
    """

    def __init__(self, factor: float, penalty: Penalty):
        self.factor, self.penalty = factor, penalty
        self.key = factor, frozen(penalty)

    def __call__(self, weights: Weights) -> Any:
        value = traceable(self.penalty, "penalty", "value")
        return self.factor * sum(value(weight) for name, weight in weights.items() if penalised(name))

    def l1(self, weights: Weights) -> dict[str, float]:
        """The factor of the l1 part on every weight that has one, by name."""
        strength = self.factor * self.penalty.l1 if self.penalty.plain else 0.0
        return {name: strength for name in weights if penalised(name) and strength}


class NetworkObjective(Keyed):
    """J = sum_l R_l(W_l) + R(w) + sum_p sum_i s_ip loss_p(y_ip, <w_p, phi_W(x_i)> + b_p).

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
    decay : Decay
        The penalty on the weights of the network.
    intercept : bool
        Whether the b_p are free.
    augment : tuple of Augmentation
        Changes of the batches in training.
    """

    def __init__(
        self,
        plan: NetworkPlan,
        losses: Sequence[tuple[Loss, int]],
        penalty: Penalty,
        decay: "Decay",
        intercept: bool,
        augment: tuple[Augmentation, ...] = (),
    ):
        self.plan, self.penalty, self.decay, self.intercept, self.augment = plan, penalty, decay, intercept, augment
        self._groups = _groups(losses)
        self.outputs = sum(max(classes, 1) for _, classes in losses)
        self.key = (plan, tuple((frozen(loss), k) for loss, k in losses), frozen(penalty), decay.key, intercept,
                    frozen(augment))  # fmt: skip

    def head(self, random: np.random.Generator) -> dict[str, NDArray]:
        """First weights of the head: small, so that the first predictions are near constant."""
        width = self.plan.width
        weight = random.normal(size=(width, self.outputs)) / np.sqrt(max(width, 1))
        bias = {BIAS: np.zeros(self.outputs, np.float32)} if self.intercept else {}
        units = {UNIT: np.ones(self.outputs, np.float32), FROM: np.zeros(self.outputs, np.float32)}
        return {HEAD: weight.astype(np.float32)} | bias | units

    def penalties(self, weights: Weights) -> Any:
        """sum_l R_l(W_l) + R(w)."""
        return self.decay(weights) + self._head_penalty(weights[UNIT] * weights[HEAD])

    def l1(self, weights: Weights) -> dict[str, Any]:
        """The factors of the l1 penalty on weights, by name; those without one are left out."""
        strength = self.penalty.l1 if self.penalty.plain else 0.0
        return self.decay.l1(weights) | ({HEAD: strength * weights[UNIT]} if strength else {})

    def _head_penalty(self, head: Any) -> Any:
        """R(w), summed over the problems."""
        value, total = traceable(self.penalty, "penalty", "value"), jnp.zeros((), head.dtype)
        for _, joint, _, columns in self._groups:
            part = _taken(head, columns)
            total += value(part) if joint else jax.vmap(value, 1)(part).sum()
        return total

    @property
    def projects(self) -> frozenset[str]:
        """The weights that are a closed form of the others: the head of squared losses with an l2 penalty."""
        closed = self.penalty.ridge and all(loss.quadratic for loss, *_ in self._groups)
        return frozenset((HEAD, BIAS) if self.intercept else (HEAD,)) if closed else frozenset()

    @property
    def products(self) -> int:
        """How often two numbers are multiplied for one row."""
        return self.plan.products + self.plan.width * self.outputs

    def projected(self, weights: Weights, x: Any, targets: Any, scale: Any, run: Pass) -> Weights:
        """The best weights of the head for the others as they are."""
        phi, unit = self.plan.apply(weights, x, run), weights[UNIT]

        def one(y: Any, s: Any) -> Any:
            return ridge(phi, y[:, None], s, self.penalty.l2, self.intercept)

        w, b = jax.vmap(one, 1)(targets, scale)
        best = {HEAD: w[:, :, 0].T / unit, BIAS: b[:, 0] / unit}
        return {name: best[name] for name in self.projects}

    def losses(self, weights: Weights, x: Any, targets: Any, scale: Any, run: Pass) -> Any:
        """The sum of losses of a batch, whose targets are counted from those of the head."""
        if run.training and self.augment:
            x = augmented(self.augment, x, run.draw("augment"))
        f = self.plan.apply(weights, x, run) @ weights[HEAD]
        f = weights[UNIT] * (f + weights[BIAS] if self.intercept else f)
        total = jnp.zeros((), f.dtype)
        for loss, joint, problems, columns in self._groups:
            y, s = (_taken(array, problems) for array in (targets, scale))
            y, s = (y[:, 0], s[:, 0]) if joint else (y, s)
            total += (s * differentiable(loss)(y, _taken(f, columns))).sum()
        return total


def ridge(phi: Any, y: Any, scale: Any, factor: float, intercept: bool) -> tuple[Any, Any]:
    """The V and c that minimise  factor/2 |V|^2 + sum_i s_i |y_i - phi_i V - c|^2."""
    shares = scale / scale.sum() if intercept else jnp.zeros_like(scale)
    mean, level = shares @ phi, shares @ y
    phi, y = phi - mean, y - level
    gram = 2 * phi.T @ (scale[:, None] * phi) + factor * jnp.eye(phi.shape[1], dtype=phi.dtype)
    V = jax.scipy.linalg.solve(gram, 2 * phi.T @ (scale[:, None] * y), assume_a="pos")
    return V, level - mean @ V


def penalised(name: str) -> bool:
    """Whether a weight of the network is penalised: all that multiply, no biases."""
    return name.endswith(".weight") and name != HEAD


def columns_of(classes: Sequence[int]) -> list[Any]:
    """The outputs of every problem: one, or one per class of a joint loss."""
    starts = np.cumsum([0, *(max(k, 1) for k in classes)])
    return [slice(start, start + k) if k else int(start) for start, k in zip(starts, classes, strict=False)]


def _groups(losses: Sequence[tuple[Loss, int]]) -> list[tuple[Loss, bool, list[int], list[int]]]:
    """Loss, whether it is joint, problems, columns: problems of one separable loss together, each joint loss alone."""
    columns = columns_of([classes for _, classes in losses])
    same: dict[Any, list[int]] = {}
    for number, (loss, classes) in enumerate(losses):
        same.setdefault((frozen(loss), number if classes else -1), []).append(number)
    groups: list[tuple[Loss, bool, list[int], list[int]]] = []
    for (_, joint), numbers in same.items():
        loss, classes = losses[numbers[0]]
        first = columns[joint].start if joint >= 0 else 0
        where = list(range(first, first + classes)) if joint >= 0 else [columns[number] for number in numbers]
        groups.append((loss, joint >= 0, numbers, where))
    return groups


def _taken(array: Any, columns: list[int]) -> Any:
    """Some columns of an array; as slices, which are faster than a list, and the same in every precision."""
    first = columns[0]
    if columns == list(range(first, first + len(columns))):
        return array[:, first : first + len(columns)]
    return jnp.stack([array[:, column] for column in columns], axis=1)
