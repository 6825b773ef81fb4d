"""A crew of threads that works together on small tasks."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from empirisk.linalg.threads import together

Task = TypeVar("Task")
Result = TypeVar("Result")


class Crew:
    """A number of threads, the calling one among them. Tasks must be compiled loops or NumPy's, which run in parallel.

    Examples
    --------
    >>> from empirisk.trees.crew import Crew
    >>> Crew(2).map(abs, [-1, -2, -3])
    [1, 2, 3]
    """

    def __init__(self, threads: int):
        self.threads = threads

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """[function(task) for task in tasks], dealt to the threads."""
        count = min(self.threads, len(tasks))
        if count < 2:
            return [function(task) for task in tasks]
        results: list = [None] * len(tasks)

        def share(first: int) -> None:
            for k in range(first, len(tasks), count):
                results[k] = function(tasks[k])

        together(share, count)
        return results
