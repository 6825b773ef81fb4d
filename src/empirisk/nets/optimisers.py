"""How weights move: optimisers by name or as Optax objects, and how the step size runs over the training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import optax

from empirisk.errors import EmpiriskError

#: Directions; the step size is applied outside, so that a search over rates compiles once.
DIRECTIONS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": optax.identity,
    "momentum": lambda: optax.trace(decay=0.9),
    "nesterov": lambda: optax.trace(decay=0.9, nesterov=True),
    "adagrad": optax.scale_by_rss,
    "rmsprop": optax.scale_by_rms,
    "adam": optax.scale_by_adam,
}
#: The share of the step size after a share t of the training.
SCHEDULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": np.ones_like,
    "cosine": lambda t: 0.5 * (1 + np.cos(np.pi * t)),
    "linear": lambda t: 1 - t,
    "exponential": lambda t: 0.01**t,  # two orders of magnitude in all
    "steps": lambda t: 0.1 ** np.floor(3 * t),  # a tenth after each third
}


class OptimiserRule:
    """An optimiser, by its name or as an Optax object; a name has one hash wherever it is used.

    >>> OptimiserRule("adam") == OptimiserRule("adam")
    True
    """

    def __init__(self, optimiser: Any):
        named = isinstance(optimiser, str)
        if named and optimiser not in DIRECTIONS:
            raise EmpiriskError(
                f"optimiser={optimiser!r} is not known; choose one of {sorted(DIRECTIONS)} or give an Optax object."
            )
        if not named and not (hasattr(optimiser, "init") and hasattr(optimiser, "update")):
            raise EmpiriskError(f"optimiser={optimiser!r} must be a name or an Optax object with init and update.")
        #: Optax objects bring their own step size, and its sign.
        self.own_rate = not named
        self._given = optimiser
        self.transformation = DIRECTIONS[optimiser]() if named else optimiser

    def __hash__(self) -> int:
        return hash(self._given) if not self.own_rate else id(self._given)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OptimiserRule):
            return False
        return self._given is other._given or (not self.own_rate and self._given == other._given)


def rates(rate: float, schedule: Any, total: int) -> np.ndarray:
    """The step size of every step."""
    if not rate > 0:
        raise EmpiriskError(f"rate={rate!r} must be a positive number.")
    steps = np.arange(total)
    if not isinstance(schedule, str):
        return np.array([rate * schedule(int(step)) for step in steps], dtype=np.float32)
    if schedule not in SCHEDULES:
        raise EmpiriskError(
            f"schedule={schedule!r} is not known; choose one of {sorted(SCHEDULES)} or give a function of the step."
        )
    return (rate * SCHEDULES[schedule](steps / max(total, 1))).astype(np.float32)
