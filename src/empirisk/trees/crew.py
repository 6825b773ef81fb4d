"""Threads: a crew that works together on small tasks, and large tasks whose results come in order."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from empirisk.linalg.blocks import single_threaded_blas
from empirisk.settings import config, settings

Task = TypeVar("Task")
Result = TypeVar("Result")

PATIENCE = 0.1  # seconds between two looks at the clock while a task is running
AHEAD = 4  # tasks for each thread that wait for it


class Crew:
    """A number of threads, the calling one among them. Tasks must be compiled loops or NumPy's, which run in parallel.

    Examples
    --------
    >>> from empirisk.trees.crew import Crew
    >>> crew = Crew(2)
    >>> crew.map(abs, [-1, -2, -3])
    [1, 2, 3]
    >>> crew.close()
    """

    def __init__(self, threads: int):
        self.threads = threads
        # Plain queues: a future for every task would cost more than many of the tasks.
        self._inboxes = [SimpleQueue() for _ in range(threads - 1)]
        self._outbox: SimpleQueue[BaseException | None] = SimpleQueue()
        for inbox in self._inboxes:
            Thread(target=_serve, args=(inbox, self._outbox), daemon=True).start()

    def close(self) -> None:
        """Let the threads go."""
        for inbox in self._inboxes:
            inbox.put(None)
        self._inboxes = []

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """[function(task) for task in tasks], dealt to the threads."""
        count = min(self.threads, len(tasks))
        if count < 2:
            return [function(task) for task in tasks]
        results: list = [None] * len(tasks)

        def share(first: int) -> None:
            for k in range(first, len(tasks), count):
                results[k] = function(tasks[k])

        self.work_with_others(share, count)
        return results

    def work_with_others(self, function: Callable[[int], None], count: int) -> None:
        """function(0) on this thread while others run function(1), ..., function(count - 1); wait for all of them."""
        for k in range(1, count):
            self._inboxes[k - 1].put(partial(function, k))
        errors = []
        try:
            function(0)
        finally:
            errors += [error for error in (self._outbox.get() for _ in range(1, count)) if error is not None]
        if errors:
            raise errors[0]


def _serve(inbox: "SimpleQueue[Callable[[], None] | None]", outbox: "SimpleQueue[BaseException | None]") -> None:
    """Run the tasks that come in, until None comes, and hand out what went wrong with each."""
    while (task := inbox.get()) is not None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            outbox.put(error)
        else:
            outbox.put(None)
        del task  # while this thread waits, nothing should be kept alive


def in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], stopped: Callable[[], bool] = lambda: False
) -> Generator[Result]:
    """Results of the tasks in their order, computed on threads, until it is closed or ``stopped`` says so.

    Each task keeps to one thread: the threads are shared out here. The first result is awaited in any case. Tasks that
    run when it ends are abandoned, not awaited: a thread cannot be stopped, but Ctrl-C must not wait for it.
    """
    threads = settings().threads
    pool = ThreadPoolExecutor(threads)
    try:
        with single_threaded_blas(), config(threads=1):
            coming = iter(tasks)
            futures = deque(pool.submit(function, task) for task in islice(coming, AHEAD * threads))
            awaited = True
            while futures:
                while not wait([futures[0]], timeout=PATIENCE).done:
                    if not awaited and stopped():
                        return
                futures.extend(pool.submit(function, task) for task in islice(coming, 1))
                yield futures.popleft().result()
                awaited = False
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
