"""Keeping the best of the points that were put to the proof."""

import numpy as np

from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch


class Proofs:
    """Puts points to the proof, and keeps the one with the smallest gap.

    Where a solver aims at the last digits, its last point need not be its best one.
    """

    def __init__(self, problem: Problem, watch: Watch):
        self._problem, self._watch = problem, watch
        self._gap, self._best = np.inf, None

    def __call__(self, point: Point) -> bool:
        """Whether the point meets the watch's tolerance."""
        proven = self._watch.proves(self._problem, point)
        gap = np.inf if self._watch.latest is None else self._watch.latest.gap
        if gap < self._gap:
            self._gap, self._best = gap, point
        return proven

    def best(self, last: Point) -> Point:
        """The best point so far; the last one where none was put to the proof."""
        return last if self._best is None else self._best
