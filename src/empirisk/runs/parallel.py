"""Several fits at once, within one budget of threads, with the same result for any number of them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import sklearn
from threadpoolctl import ThreadpoolController

from empirisk.fits.fit import as_batch
from empirisk.linalg.threads import in_threads
from empirisk.settings import config, settings

Task = TypeVar("Task")
Result = TypeVar("Result")


def spread(function: Callable[[Task], Result], tasks: Sequence[Task], *, alone: bool | None = None) -> list[Result]:
    """[function(task) for task in tasks], on the configured number of threads.

    A single task has all threads to itself. Of several each has one, however many threads there are: how many threads
    share a matrix product decides its last bits. ``alone`` says which of the two holds where these tasks are what is
    left of a run that was broken off. Ctrl-C ends the fits that are running.

    >>> spread(abs, [-1, -2, -3])
    [1, 2, 3]
    """
    with as_batch() as stop:
        if len(tasks) < 2 if alone is None else alone:
            return [function(task) for task in tasks]
        options = sklearn.get_config()  # scikit-learn keeps them by thread
        libraries = ThreadpoolController()

        def run(task: Task) -> Result:
            with sklearn.config_context(**options), libraries.limit(limits=1, user_api="openmp"):
                try:
                    return function(task)
                except KeyboardInterrupt:
                    stop.set()
                    raise

        with config(threads=max(1, min(settings().threads, len(tasks)))):
            return in_threads(run, tasks)
