"""Sums over blocks of rows: fixed blocks, fixed order, so the bits do not depend on the number of threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock, local
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from empirisk.settings import settings

Result = TypeVar("Result")

BLOCK_BYTES = 1 << 20
SMALL = 1 << 21
GROUPS = 16


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="empirisk")


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


class _SingleThread:
    """Holds BLAS to one thread while anybody wants it so: setting the limit costs more than a small product."""

    def __init__(self):
        self._lock, self._holders = Lock(), 0
        self._limits = None

    def __enter__(self) -> None:
        with self._lock:
            self._holders += 1
            if self._limits is None:
                self._limits = _libraries().limit(limits=1, user_api="blas")

    def __exit__(self, *_) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_single_thread = _SingleThread()


def single_threaded_blas() -> AbstractContextManager[None]:
    """Inside, each matrix product uses one thread: the threads are ours."""
    return _single_thread


_here = local()


def in_threads(function: Callable[..., Result], tasks: Sequence | np.ndarray) -> list[Result]:
    """[function(task) for task in tasks], on the configured number of threads, of which the caller's is one.

    What a task itself does in threads it does alone: the others are busy.
    """
    threads = 1 if getattr(_here, "busy", False) else min(settings().threads, len(tasks))
    if threads <= 1:
        with single_threaded_blas():
            return [function(task) for task in tasks]
    results: dict[int, Result] = {}
    numbers = iter(range(len(tasks)))

    def work() -> None:
        _here.busy = True
        try:
            for number in numbers:
                results[number] = function(tasks[number])
        finally:
            _here.busy = False

    with single_threaded_blas():
        helpers = [_pool(settings().threads).submit(work) for _ in range(threads - 1)]
        try:
            work()
        finally:
            # A helper that has not begun finds nothing left to do; it may even wait for this very thread.
            wait([helper for helper in helpers if not helper.cancel()])
    for helper in helpers:
        if not helper.cancelled():
            helper.result()
    return [results[number] for number in range(len(tasks))]


def blocks(rows: int, row_bytes: int) -> list[slice]:
    """Slices of about a megabyte that cover the rows; they depend on the data's shape alone."""
    step = max(64, BLOCK_BYTES // max(row_bytes, 1))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def groups(rows: int, row_bytes: int) -> list[list[slice]]:
    """The blocks dealt to a fixed number of groups; one group for small data."""
    parts = blocks(rows, row_bytes)
    if rows * row_bytes <= SMALL:
        return [parts]
    size = -(-len(parts) // GROUPS)
    return [parts[start : start + size] for start in range(0, len(parts), size)]


def sum_over_rows(function: Callable[[list[slice]], Result], rows: int, row_bytes: int) -> Result:
    """Add up function(group of blocks) over all groups, in order."""
    total, *others = in_threads(function, groups(rows, row_bytes))
    for other in others:
        total = total + other  # type: ignore[operator]
    return total


def over_rows(function: Callable[[slice], None], rows: int, row_bytes: int) -> None:
    """Run function(block) for every block; each writes its own rows of the output."""

    def run(group: list[slice]) -> None:
        for block in group:
            function(block)

    in_threads(run, groups(rows, row_bytes))
