"""Threads that work together on small tasks: the calling thread does its share, and nothing is set up per call."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


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
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """[function(task) for task in tasks], dealt to the threads."""
        if self._pool is None or len(tasks) < 2:
            return [function(task) for task in tasks]
        results: list = [None] * len(tasks)

        def share(first: int) -> None:
            for k in range(first, len(tasks), self.threads):
                results[k] = function(tasks[k])

        others = [self._pool.submit(share, k) for k in range(1, min(self.threads, len(tasks)))]
        share(0)
        for other in others:
            other.result()
        return results

    def start_others(self, function: Callable[[int], None]) -> list[Future]:
        """Run function(1), function(2), ... on the other threads, while the calling one does something else."""
        return [] if self._pool is None else [self._pool.submit(function, k) for k in range(1, self.threads)]
