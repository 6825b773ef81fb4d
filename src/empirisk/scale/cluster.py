"""Blocks of rows on the workers of a Dask cluster: a function goes where the rows lie, as tasks, and sums come back.

Tasks are all there is: a worker that leaves costs the time to compute its blocks again, by Dask, from the tasks that
made them. Blocks are combined in trees of a fixed shape, so that the bits depend on the partitions alone.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from distributed import Client, Future

from empirisk.linalg.threads import single_threaded_blas
from empirisk.scale.blocks import BlockCall, Blocked, Place
from empirisk.settings import config
from empirisk.stop import Stopped, check_stop

#: Values that one task combines.
FAN_IN = 8
#: Seconds between two looks at a result, and at whether to stop: short at first, then longer.
FIRST_LOOK, LONGEST_LOOK = 0.001, 0.05
#: Workers that may die while they run a task before Dask gives it up: a cluster may lose many, and a task is harmless.
ALLOWED_FAILURES = 1000


class DaskCluster(Place):
    """Blocks of rows as futures on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        The connection to the scheduler.
    lengths : sequence of int
        The rows of each block.

    Attributes
    ----------
    received : int
        Bytes of the results that came to the client.
    """

    #: Those of all fits of this process.
    received_in_all: ClassVar[int] = 0

    def __init__(self, client: Client, lengths: Sequence[int]):
        super().__init__(lengths)
        self.client, self.received = client, 0

    def like(self, lengths):
        return DaskCluster(self.client, lengths)

    def _run(self, call: BlockCall, handles: list[tuple], combine: Callable[[Any, Any], Any] | None):
        columns = [list(column) for column in zip(*handles, strict=True)]
        whole = self.client.map(compute, list(self.lengths), *columns, call=call, pure=False)
        kept = []
        if call.outputs:
            widths = self.result(self.client.submit(_widths, whole[0], call.outputs, pure=False), whole)
            for number, width in enumerate(widths):
                kept.append((self.client.map(itemgetter(number), whole, pure=False), width))
        if combine is None:
            return kept, None
        parts = self.client.map(itemgetter(call.outputs), whole, pure=False)
        while len(parts) > 1:
            groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
            parts = [self.client.submit(_combined, group, combine, pure=False) for group in groups]
        return kept, self.result(parts[0], whole)

    def result(self, future: Future, others: Sequence[Future] = ()) -> Any:
        """What a task gives; where the fit is stopped, the tasks are cancelled."""
        wait = FIRST_LOOK
        try:
            while not future.done():
                check_stop()
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_LOOK)
            found = future.result()
        except (Stopped, KeyboardInterrupt):
            self.client.cancel([future, *others])
            raise
        size = len(pickle.dumps(found))
        self.received += size
        DaskCluster.received_in_all += size
        return found

    def scattered(self, array):
        ends = np.cumsum((0, *self.lengths))
        parts = [array[start:stop] for start, stop in pairwise(ends)]
        # As the results of tasks, which are computed again where a worker leaves; scattered data would be lost.
        return Blocked(self, self.client.map(np.asarray, parts, pure=False), array.shape[1:])


def compute(length: int, *parts: Any, call: BlockCall) -> tuple:
    """The results for a block, on a worker; its threads are those of Dask."""
    with config(threads=1), single_threaded_blas():
        return call(length, *parts)


def _widths(found: tuple, outputs: int) -> list[tuple[int, ...]]:
    return [np.shape(each)[1:] for each in found[:outputs]]


def _combined(parts: list, combine: Callable[[Any, Any], Any]) -> Any:
    """Parts combined from left to right; copied first, since sums overwrite what other tasks may read again."""
    total = pickle.loads(pickle.dumps(parts[0]))
    for part in parts[1:]:
        total = combine(total, part)
    return total


def forgive(client: Client) -> None:
    """Have the scheduler try tasks again, however many workers leave while they run them."""

    def raise_limit(dask_scheduler: Any = None) -> None:
        dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, ALLOWED_FAILURES)

    client.run_on_scheduler(raise_limit)
