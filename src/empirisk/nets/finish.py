"""The end of a training on few rows: L-BFGS on the whole objective, in double precision."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from empirisk.nets.device import on_device
from empirisk.nets.layers import Pass, Weights
from empirisk.nets.plan import LEAST_BLOCK
from empirisk.stop import Deadline

#: Products of all evaluations of one objective together: a few seconds of one core.
BUDGET = 3e9
#: Evaluations at most, and those below which a finish is not worth its compilation.
MOST, LEAST = 5000, 300
#: Steps that L-BFGS remembers.
MEMORY = 10
#: The share of the objective by which a step must lower it, so that another one is made; and that of a trial.
GAIN, TRIAL_GAIN = 1e-13, 1e-5
#: Ends of short runs that L-BFGS goes on from, and the share by which it must gain there to be started once more.
FINALISTS, AGAIN = 3, 1e-7
#: The largest derivative in any weight at which the minimum is reached, for an objective divided by its sum of scales.
FLAT = 1e-9


@dataclass(frozen=True)
class End:
    """Where L-BFGS ended.

    Attributes
    ----------
    weights : dict of arrays
        The weights, in single precision as they are kept.
    objective : float
        What they reach.
    slopes : dict of arrays
        The gradient there, of the weights that move.
    evaluations, seconds : int, float
        Evaluations of the objective and its gradient, and their time.
    """

    weights: dict[str, NDArray]
    objective: float
    slopes: dict[str, NDArray]
    evaluations: int = 1
    seconds: float = 0.0

    @property
    def gradient_norm(self) -> float:
        """The Euclidean norm of the whole gradient."""
        return float(np.sqrt(sum(np.vdot(slope, slope) for slope in self.slopes.values())))


@partial(jax.jit, static_argnums=(0, 1))
def _value_and_slopes(objective: Any, project: bool, moving: Weights, fixed: Weights, state: Weights, data: Any) -> Any:
    """J, its gradient in the weights that move, and all weights, those of the last linear layer at their best."""

    def value(moving):
        everything = fixed | moving
        if project:  # at its minimum in these weights, the gradient in the others is that of J with these held
            everything |= jax.lax.stop_gradient(objective.projected(everything, *data, Pass(state)))
        return objective.penalties(everything) + objective.losses(everything, *data, Pass(state)), everything

    (worth, everything), slopes = jax.value_and_grad(value, has_aux=True)(moving)
    return worth, slopes, everything


class Finish:
    """The whole objective of a training, all rows at once, as a function that L-BFGS minimises.

    Where the last layer is linear and its loss squared, its best weights are a closed form of the others and are put in
    (variable projection): L-BFGS moves the others alone, and needs a tenth of the steps.

    Parameters
    ----------
    objective : Objective or Rebuilding
        What is minimised.
    data : Data
        All rows.
    state : dict of arrays
        Running moments, which stay.
    frozen : set of str
        Names of weights that stay.
    masks : dict of arrays
        Zero where a weight is to stay as it is.
    deadline : Deadline
        When to stop.
    """

    def __init__(
        self, objective: Any, data: Any, state: dict[str, NDArray], frozen: frozenset[str],
        masks: dict[str, NDArray], deadline: Deadline,
    ):  # fmt: skip
        self._objective, self._frozen, self._deadline = objective, frozen, deadline
        self._masks = {name: np.asarray(mask, np.float64) for name, mask in masks.items()}
        self._scale = max(float(data.scale.sum()), np.finfo(float).tiny)
        padded = data.padded(_filled(len(data.x)))
        with on_device(), jax.enable_x64(True):  # handed over once, not with every evaluation
            self._data = jax.device_put(tuple(np.asarray(array, np.float64) for array in padded.arrays))
            self._state = jax.device_put(_doubles(state))
        self._evaluations = int(min(BUDGET / max(objective.products * len(data.x), 1), MOST))

    @property
    def affordable(self) -> bool:
        """Whether there are enough evaluations for L-BFGS to get anywhere."""
        return self._evaluations >= LEAST

    @property
    def cheap(self) -> bool:
        """Whether L-BFGS can begin at several first weights."""
        return self._evaluations == MOST

    def at(self, weights: dict[str, NDArray]) -> End:
        """The objective and its gradient at some weights, none of them put in by a closed form."""
        with on_device(), jax.enable_x64(True):
            moving = {name: weights[name] for name in self._moving(weights, False)}
            worth, slopes, _ = self._evaluate(_doubles(moving), self._held(weights, moving), False)
        corners = {name: factor for name, factor in self._objective.l1(weights).items() if name in slopes}
        for name, factor in corners.items():  # of all subgradients at a corner the smallest
            corner, slope = weights[name] == 0, slopes[name]
            slopes[name] = np.where(corner, np.sign(slope) * np.maximum(np.abs(slope) - factor, 0), slope)
        return End(weights, worth, slopes)

    def best(self, starts: list[dict[str, NDArray]]) -> tuple[int, End]:
        """From which of the starts L-BFGS gets lowest, and where: a short run from each, a long one from the best."""
        begin = perf_counter()
        ends = dict(enumerate(starts))
        if len(starts) > 1:
            short = [self._run(start, TRIAL_GAIN) for start in starts]
            ends = {int(place): short[place].weights for place in np.argsort([e.objective for e in short])[:FINALISTS]}
        found = {place: self._run_again(weights) for place, weights in ends.items()}
        place = min(found, key=lambda place: found[place].objective)
        return place, replace(found[place], seconds=perf_counter() - begin)

    def _run_again(self, weights: dict[str, NDArray]) -> End:
        """Runs of L-BFGS, each from the end of the last, while that gains anything: corners, of relu, end it early."""
        end, spent = self._run(weights, GAIN), 0
        while not self._deadline():
            spent += end.evaluations
            if spent >= self._evaluations:
                break
            again = self._run(end.weights, GAIN)
            gained = end.objective - again.objective
            end = again if gained > 0 else end
            if not gained > AGAIN * abs(end.objective):
                break
        return end

    def _run(self, weights: dict[str, NDArray], gain: float) -> End:
        """Minimise from these weights, while a step lowers the objective by that share of it."""
        project = bool(self._objective.projects)
        flat = _Flat(weights, self._moving(weights, project), self._objective.l1(weights))
        best: list[Any] = [np.inf, weights]
        count = 0

        def at(place: NDArray) -> tuple[float, NDArray]:
            nonlocal count
            count += 1
            worth, slopes, everything = self._evaluate(flat.weights(place), held, project)
            if worth < best[0]:
                best[:] = worth, everything
            value, slope = flat.split(place, worth, slopes)
            return value / self._scale, slope / self._scale

        def ask(place: NDArray) -> None:
            if self._deadline():
                raise StopIteration  # the best so far is the result

        with on_device(), jax.enable_x64(True):
            held = self._held(weights, flat.names)
            most = max(self._evaluations, LEAST)
            options = {"maxiter": most, "maxfun": most, "maxcor": MEMORY, "ftol": gain, "gtol": FLAT}
            minimize(at, flat.start, jac=True, method="L-BFGS-B", bounds=flat.bounds, options=options, callback=ask)
        return replace(self.at({name: np.asarray(v, np.float32) for name, v in best[1].items()}), evaluations=count)

    def _moving(self, weights: dict[str, NDArray], project: bool) -> list[str]:
        held = self._frozen | (self._objective.projects if project else frozenset())
        return sorted(name for name in weights if name not in held)

    def _held(self, weights: dict[str, NDArray], moving: Collection[str]) -> Weights:
        """The weights that do not move, on the device."""
        return jax.device_put(_doubles({name: value for name, value in weights.items() if name not in moving}))

    def _evaluate(self, moving: dict[str, NDArray], held: Weights, project: bool) -> tuple[float, Any, Weights]:
        """The objective, its gradient in the weights that move, and all weights, which stay on the device."""
        worth, slopes, everything = _value_and_slopes(self._objective, project, moving, held, self._state, self._data)
        slopes = {name: np.asarray(slope) for name, slope in slopes.items()}
        masked = {name: mask * slopes[name] for name, mask in self._masks.items() if name in slopes}
        return float(worth), slopes | masked, everything


def _doubles(arrays: Mapping[str, Any]) -> dict[str, NDArray]:
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


class _Flat:
    """Weights as one vector for L-BFGS-B; those with an l1 penalty as p - n, p and n at least 0.

    With  lambda (p + n)  in place of  lambda |w|  the objective has no corners, and weights become exactly zero.
    """

    def __init__(self, weights: dict[str, NDArray], names: list[str], l1: dict[str, Any]):
        self.names = names
        self._shapes = [weights[name].shape for name in names]
        self._ends = np.cumsum([weights[name].size for name in names])
        first = self._vector(weights)
        self._l1 = self._vector({n: np.broadcast_to(l1.get(n, 0.0), weights[n].shape) for n in names})
        self._split = np.flatnonzero(self._l1)
        positive, negative = first.copy(), np.maximum(-first[self._split], 0)
        positive[self._split] = np.maximum(first[self._split], 0)
        self.start = np.concatenate([positive, negative])
        free = np.where(self._l1 > 0, 0.0, -np.inf)
        self.bounds = Bounds(np.concatenate([free, np.zeros(len(self._split))])) if len(self._split) else None

    def weights(self, place: NDArray) -> dict[str, NDArray]:
        """The weights of a place."""
        parts = np.split(self._values(place), self._ends[:-1])
        return {n: part.reshape(shape) for n, part, shape in zip(self.names, parts, self._shapes, strict=True)}

    def split(self, place: NDArray, worth: float, slopes: dict[str, NDArray]) -> tuple[float, NDArray]:
        """The objective and its gradient at a place, from those of the weights."""
        w, slope, l1 = self._values(place), self._vector(slopes), self._l1
        slope = slope - l1 * np.sign(w)
        more = l1[self._split] @ (place[self._split] + place[len(w) :] - np.abs(w[self._split]))
        return worth + float(more), np.concatenate([slope + l1, (l1 - slope)[self._split]])

    def _values(self, place: NDArray) -> NDArray:
        w = place[: self._ends[-1]].copy()
        w[self._split] -= place[len(w) :]
        return w

    def _vector(self, arrays: dict[str, Any]) -> NDArray:
        return np.concatenate([np.ravel(arrays[name]) for name in self.names]).astype(np.float64)


def _filled(rows: int) -> int:
    """To how many rows data is filled up, so that few sizes are compiled: by an eighth at most, but for few rows."""
    step = max(LEAST_BLOCK, (1 << max(rows - 1, 0).bit_length()) // 8)
    return -(-rows // step) * step
