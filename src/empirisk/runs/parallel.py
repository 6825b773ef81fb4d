"""Several fits at once, within one budget of threads, with the same result for any number of them."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TypeVar

import sklearn
from threadpoolctl import ThreadpoolController

from empirisk.extras import need
from empirisk.linalg.threads import parallel_map
from empirisk.settings import config, settings
from empirisk.stop import batch

Task = TypeVar("Task")
Result = TypeVar("Result")


def parallel_fits(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    alone: bool | None = None,
    note: Callable[[Task, Result], None] | None = None,
) -> list[Result]:
    """[function(task) for task in tasks], on the configured number of threads, or on the workers of a cluster.

    A single task may use all threads. Each of several tasks uses one, whatever the number of threads: the last bits of
    a matrix product depend on how many threads share it, and the result must not. A resumed run has fewer tasks than
    the run had at first; ``alone`` then says whether that had a single one. ``note(task, result)`` hears of each result
    when it is there. Ctrl-C ends the fits that are running.

    >>> parallel_fits(abs, [-1, -2, -3])
    [1, 2, 3]
    """
    single = len(tasks) < 2 if alone is None else alone
    if settings().cluster != "none" and not single:
        need("A cluster", "scale", "distributed")
        return import_module("empirisk.scale.workers").calls_in_order(function, tasks, note)

    def noted(task: Task) -> Result:
        result = function(task)
        if note is not None:
            note(task, result)
        return result

    with batch() as stop:
        if single:
            return [noted(task) for task in tasks]
        options = sklearn.get_config()  # scikit-learn's settings are thread-local: new threads would have the defaults
        libraries = ThreadpoolController()

        def run(task: Task) -> Result:
            with sklearn.config_context(**options), libraries.limit(limits=1, user_api="openmp"):
                try:
                    return noted(task)
                except KeyboardInterrupt:
                    stop.set()
                    raise

        with config(threads=max(1, min(settings().threads, len(tasks)))):
            return parallel_map(run, tasks)
