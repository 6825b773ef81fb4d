"""Blocks of rows on the workers of a Dask cluster: a function goes where the rows lie, as tasks, and sums come back.

Tasks are all there is: a worker that leaves costs the time to compute its blocks again, by Dask, from the tasks that
made them. Blocks are combined in trees of a fixed shape, so that the bits depend on the partitions alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from threading import Event
from typing import Any, ClassVar

import numpy as np
from distributed import Client, Future

from empirisk.linalg.threads import single_threaded_blas
from empirisk.scale.blocks import BlockCall, Blocked, Place
from empirisk.settings import config
from empirisk.stop import Stopped, check_stop

#: Values that one task combines.
FAN_IN = 8
#: Seconds between two looks at whether to stop while a result is awaited.
LOOK_SECONDS = 0.1
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
        if combine is None:
            combined, widths = None, self.result(self.client.submit(_widths, whole[0], call.outputs, pure=False), whole)
        else:
            # Sums travel without the vectors that were found beside them.
            parts = self.client.map(_last, whole, pure=False) if call.outputs else whole
            while len(parts) > 1:
                groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
                parts = [self.client.submit(_combined, group, combine, pure=False) for group in groups]
            widths, combined = self.result(parts[0], whole)
        # The vectors stay in the tuples that the tasks gave: to take each out would be another task for each block.
        return [(whole, width, Nth(number)) for number, width in enumerate(widths)], combined

    def result(self, future: Future, others: Sequence[Future] = ()) -> Any:
        """What a task gives; where the fit is stopped, the tasks are cancelled."""
        done = Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(LOOK_SECONDS):
                check_stop()
            found = outcome(future)
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


def outcome(future: Future) -> Any:
    """What a finished task gives, or the error that it ended with.

    The error is copied: Dask keeps its own, whose traceback would keep all futures of the fit on the scheduler.
    """
    if future.status == "error":
        error: Any = future.exception()
        raise copy(error) from None
    return future.result()


def compute(length: int, *parts: Any, call: BlockCall) -> tuple:
    """The results for a block, on a worker; its threads are those of Dask."""
    with config(threads=1), single_threaded_blas():
        found = call(length, *parts)
        return found if call.outputs else ([], *found)


@dataclass(frozen=True)
class Nth:
    """Reads a vector from the tuple that a task gave."""

    number: int

    def __call__(self, found: tuple, length: int) -> Any:
        return found[self.number]


def _widths(found: tuple, outputs: int) -> list[tuple[int, ...]]:
    return [np.shape(each)[1:] for each in found[:outputs]]


def _last(found: tuple) -> tuple:
    """The widths of the vectors of a block, and what is combined."""
    return _widths(found, len(found) - 1), found[-1]


def _combined(parts: list, combine: Callable[[Any, Any], Any]) -> tuple:
    """Parts combined from left to right; copied first, since sums overwrite what other tasks may read again."""
    widths, total = parts[0]
    total = pickle.loads(pickle.dumps(total))
    for _, part in parts[1:]:
        total = combine(total, part)
    return widths, total


def forgive(client: Client) -> None:
    """Have the scheduler try tasks again, however many workers leave while they run them."""

    def raise_limit(dask_scheduler: Any = None) -> None:
        dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, ALLOWED_FAILURES)

    client.run_on_scheduler(raise_limit)
