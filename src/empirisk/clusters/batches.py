"""k-means by mini-batches, for long data: every round sees a random batch, and means move by what they have seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.clusters.rows import rows_of
from empirisk.linalg.design import Design

Array = NDArray[np.float64]

STALL_BATCHES = 20  # batches without a smaller smoothed loss, after which the run has converged
SMOOTHING_BATCHES = 20.0  # batches over which the loss is smoothed
SAMPLE = 3  # batches' worth of rows that a start is drawn from, and judged by
ROWS_PER_CLUSTER = 20  # at least so many for each cluster in that sample


class MinibatchKMeansRun:
    """A run of mini-batch k-means.

    After a batch, a mean is the mean of all rows that it was ever given: m += (W_batch / W_so_far) (mean_batch - m).

    Parameters
    ----------
    design : Design
        The rows, explicit.
    weights, order : arrays
        The rows that may be drawn, in which order, and their weights, by which they are drawn.
    clusters, size : int
        How many means, and rows of a batch.
    random : Generator
        Draws the batches.
    """

    def __init__(
        self,
        design: Design,
        weights: Array,
        order: NDArray[np.intp],
        clusters: int,
        size: int,
        random: np.random.Generator,
    ):
        self._design, self._order = design, order
        self._clusters, self._size, self._random = clusters, size, random
        self._edges = np.cumsum(weights)
        self.losses: list[float] = []
        self.rounds, self.converged = 0, False

    def _batch(self, size: int) -> Any:
        luck = self._random.random(size) * self._edges[-1]
        chosen = np.minimum(np.searchsorted(self._edges, luck, side="right"), len(self._edges) - 1)
        return rows_of(self._design, np.ones(size), self._order[np.sort(chosen)]).begin()

    def start(self, starts: list[Callable[[Any], None]], stop: Callable[[], bool]) -> None:
        """The best of several starts on a sample."""
        sample = self._batch(max(SAMPLE * self._size, ROWS_PER_CLUSTER * self._clusters))
        best, self._totals = np.inf, np.zeros(self._clusters)
        for number, begin in enumerate(starts):
            if number and stop():
                return
            begin(sample)
            sample.assign()
            loss = float(sample.own_squares().sum())
            if loss < best:
                best, self.centres = loss, sample.centres

    def run(self, max_iter: int, stop: Callable[[], bool], tell: Callable[[], bool]) -> None:
        """Batches until the smoothed loss no longer falls."""
        smooth = lowest = np.inf
        since = 0
        while self.rounds < max_iter and not self.converged:
            loss = self._round()
            self.rounds += 1
            self.losses.append(loss)
            smooth = loss if np.isinf(smooth) else smooth + (loss - smooth) / SMOOTHING_BATCHES
            since = 0 if smooth < lowest else since + 1
            lowest = min(lowest, smooth)
            self.converged = since >= STALL_BATCHES
            if tell() or stop():
                return

    def _round(self) -> float:
        """One batch; its weighted squared distances, scaled to all rows."""
        batch = self._batch(self._size)
        self.centres, self._totals, squares = stepped(batch, self.centres, self._totals, self.rounds)
        return float(squares.mean() * self._edges[-1])


def stepped(batch: Any, centres: Array, totals: Array, rounds: int) -> tuple[Array, Array, Array]:
    """The means after a batch of rows and the weights that they rest on, and the squared distances before it."""
    batch.start_at(centres)
    batch.assign()
    squares = batch.own_squares()
    batch.move()
    seen = np.where(batch.filled, batch.totals, 0.0)
    totals = totals + seen
    rate = seen / np.where(totals > 0, totals, 1.0)
    centres = centres + rate[:, None] * (batch.centres - centres)
    idle = np.flatnonzero(totals == 0)
    if rounds >= STALL_BATCHES and len(idle):
        # A mean that no batch has given a row sits far from all of them: to the worst-fitted row.
        worst = int(squares.argmax())
        centres[idle[0]], totals[idle[0]] = batch.row(worst), batch.weights[worst]
    return centres, totals, squares
