"""Several fits at once, within one budget of threads, with the same result for any number of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import sklearn
from threadpoolctl import threadpool_limits

from empirisk.fits.fit import as_batch
from empirisk.linalg.blocks import single_threaded_blas
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
    if len(tasks) < 2 if alone is None else alone:
        with as_batch():
            return [function(task) for task in tasks]
    threads = max(1, min(settings().threads, len(tasks)))
    options = sklearn.get_config()  # scikit-learn keeps them by thread

    with config(threads=1), single_threaded_blas(), as_batch() as stop:
        if threads == 1:
            return [function(task) for task in tasks]

        def run(task: Task) -> Result:
            with sklearn.config_context(**options), as_batch(stop):
                return function(task)

        pool = ThreadPoolExecutor(threads, initializer=_one_openmp_thread)
        try:
            return [future.result() for future in [pool.submit(run, task) for task in tasks]]
        except KeyboardInterrupt:
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _one_openmp_thread() -> None:
    threadpool_limits(limits=1, user_api="openmp")
