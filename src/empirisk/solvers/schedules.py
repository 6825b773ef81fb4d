"""How the step size of stochastic gradients falls, and how it adapts to each weight."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.solvers import stochastic_loops as loops

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pace:
    """What a schedule may depend on: the first rate, batches in an epoch, and the l2 strength lambda."""

    rate: float
    batches: int
    strength: float


#: The rate after t batches.
SCHEDULES: dict[str, Callable[[Pace, float], float]] = {
    "constant": lambda pace, t: pace.rate,
    "inverse": lambda pace, t: pace.rate / (1 + t / pace.batches),
    "inverse_root": lambda pace, t: pace.rate / (1 + t / pace.batches) ** 0.5,
    # 1 / (lambda t), from the t on at which that is the first rate
    "inverse_regularised": lambda pace, t: pace.rate / (1 + pace.rate * pace.strength * t),
}


@dataclass(frozen=True)
class Adaptation:
    """A running mean and mean square of the gradient: how slowly they forget, what a new square counts, corrections."""

    keep_mean: float
    keep_square: float
    gain: float
    corrected: bool
    floor: float = 1e-8

    def write(self, numbers: Array, t: int) -> None:
        """Set the numbers of step t = 1, 2, ..."""
        numbers[loops.KEEP_MEAN], numbers[loops.KEEP_SQUARE] = self.keep_mean, self.keep_square
        numbers[loops.GAIN], numbers[loops.FLOOR] = self.gain, self.floor
        numbers[loops.MEAN_UP] = 1 / (1 - self.keep_mean**t) if self.corrected else 1.0
        numbers[loops.SQUARE_UP] = 1 / (1 - self.keep_square**t) if self.corrected else 1.0


#: None is the plain step; the others divide by the root of the sum, or of the running mean, of squared gradients.
ADAPTATIONS: dict[str | None, Adaptation] = {
    None: Adaptation(0.0, 0.0, 0.0, False),
    "adagrad": Adaptation(0.0, 1.0, 1.0, False),
    "rmsprop": Adaptation(0.0, 0.9, 0.1, False),
    "adam": Adaptation(0.9, 0.999, 0.001, True),
}
