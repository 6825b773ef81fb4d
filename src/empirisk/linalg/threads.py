"""The only pools of threads: shares that run at the same time, tasks in turn, and results in order.

A thread of the pool sees the settings and the stop flag of the one that it works for; what it does in threads itself it
does alone. After a fork the child has a pool of its own.
"""

import atexit
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ContextDecorator, suppress
from contextvars import Context, ContextVar, copy_context
from functools import cache
from importlib import import_module
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock, Thread, get_ident, local
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from empirisk.errors import working_for
from empirisk.settings import CORES, holding, keep_to_one_thread, settings

Task = TypeVar("Task")
Result = TypeVar("Result")

LONG = 1000  # matrices of a smaller order are factored in no time
PATIENCE = 0.1  # seconds between two looks at the clock while a task is running
AHEAD = 4  # tasks for each thread that wait for it
MANY = 1 << 16  # more threads than anybody has
FAREWELL = 30.0  # seconds that the end of the process waits for work that was left behind


# --- the flag -----------------------------------------------------------------------------------------------------


class Stopped(Exception):
    """Work was given up half-way, because the flag is up."""


_flag: ContextVar[Callable[[], bool]] = ContextVar("stop", default=lambda: False)


def stopping(flag: Callable[[], bool]) -> AbstractContextManager[Any]:
    """Work in here is given up, by `Stopped`, soon after the flag says True: the user or the clock wants it to end."""
    return holding(_flag, flag)


#: Whether Ctrl-C was pressed in the fit that this code is part of. Compilers ask this, and not the flag, which goes up
#: when the time is over: what they make is kept, and serves the next fit.
ctrl_c: ContextVar[Callable[[], bool] | None] = ContextVar("ctrl_c", default=None)


def look() -> None:
    """Raise `Stopped` if the flag is up; long pieces of work look a few times a second."""
    if _flag.get()():
        raise Stopped


# --- the threads ------------------------------------------------------------------------------------------------------


class _Worker:
    """A thread that runs what comes in, and then waits in the list of the idle."""

    def __init__(self):
        # Plain queues: a future for every share would cost more than many of them.
        self.inbox: SimpleQueue[tuple[Context, Callable[[int], None], int, SimpleQueue]] = SimpleQueue()
        Thread(target=self._serve, name="empirisk", daemon=True).start()

    def _serve(self) -> None:
        while True:
            context, function, number, outbox = self.inbox.get()
            error = None
            try:
                context.run(function, number)
            except BaseException as raised:  # noqa: BLE001 - it is raised again in the thread that waits
                error = raised
            del context, function  # while this thread waits, nothing should be kept alive
            _idle.append(self)
            outbox.put(error)
            del outbox, error


#: A deque needs no lock, which a fork could leave locked.
_idle: deque[_Worker] = deque()


def _start(function: Callable[[int], None], number: int, outbox: SimpleQueue, context: Context) -> None:
    """Run function(number) in that context on a thread that has nothing to do, or on a new one."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.inbox.put((context, function, number, outbox))


#: Where work that was left behind tells of its end.
_left: list[SimpleQueue] = []


def _leave(outboxes: Iterable[SimpleQueue]) -> None:
    """Note work that nobody waits for any more; what has ended since is forgotten."""
    _left[:] = [outbox for outbox in (*_left, *outboxes) if outbox.empty()]


@atexit.register
def _await_left() -> None:
    """Wait for what was left behind: BLAS that works while the process takes its memory apart may crash it."""
    end = perf_counter() + FAREWELL
    for outbox in _left:
        with suppress(Empty):
            outbox.get(timeout=max(0.0, end - perf_counter()))


def _alone() -> Context:
    """A context like this one, but what is done in threads in there is done by one."""
    context = _of_a_helper()
    context.run(keep_to_one_thread)
    return context


def _of_a_helper() -> Context:
    """A context like this one, for threads that work for this one."""
    context = copy_context()
    context.run(working_for.set, working_for.get() or get_ident())
    return context


def together(function: Callable[[int], None], count: int) -> None:
    """function(0), ..., function(count - 1) at the same time, each on its own thread, the first on this one.

    They may wait for each other: none waits for a thread. Shares are compiled loops or NumPy's, which run in parallel.

    >>> found = [0, 0]
    >>> together(lambda share: found.__setitem__(share, share + 1), 2)
    >>> found
    [1, 2]
    """
    context = _alone()
    outbox: SimpleQueue[BaseException | None] = SimpleQueue()
    for number in range(1, count):
        _start(function, number, outbox, context.copy())
    try:
        context.run(function, 0)
    finally:
        errors = [error for error in [outbox.get() for _ in range(1, count)] if error is not None]
    if errors:
        raise errors[0]


def workers() -> int:
    """How many threads work at the same time: as many as are configured, but more than cores would only wait."""
    return min(settings().threads, CORES)


def in_threads(function: Callable[..., Result], tasks: Sequence | np.ndarray, most: int = MANY) -> list[Result]:
    """[function(task) for task in tasks], on the configured number of threads, of which the caller's is one.

    There are no more than ``most`` threads: starting one takes some tenths of a millisecond where many are busy.

    What a task itself does in threads it does alone: the others are busy. Before each task the flag is looked at, and
    after an error no task begins.
    """
    threads = min(workers(), len(tasks), most)
    if threads <= 1:
        with single_threaded_blas():
            return [_unless_stopped(function, task) for task in tasks]
    results: list = [None] * len(tasks)
    numbers = iter(range(len(tasks)))

    def share(_: int) -> None:
        try:
            for number in numbers:
                results[number] = _unless_stopped(function, tasks[number])
        except BaseException:
            deque(numbers, maxlen=0)  # nothing is left for the others
            raise

    with single_threaded_blas():
        together(share, threads)
    return results


def _unless_stopped(function: Callable[[Task], Result], task: Task) -> Result:
    look()
    return function(task)


def patiently(function: Callable[[], Result], order: int) -> Result:
    """function() on a thread of the pool, while this one looks at the flag and listens to Ctrl-C.

    For calls of LAPACK, which cannot be stopped, on matrices of that order: one that runs when the flag goes up is
    abandoned.

    >>> patiently(lambda: 3, 2000)
    3
    """
    return function() if order < LONG else _awaited(function, _alone(), look)


def until(deadline: Callable[[], float], function: Callable[[], Result]) -> Result:
    """function() on another thread, left behind by `Stopped` if it is not done by then, on `time.perf_counter`.

    For work that does not look at the flag: compiling, or other people's libraries. Without an end it is done here.

    >>> until(lambda: np.inf, lambda: 3)
    3
    """

    def check() -> None:
        if perf_counter() > deadline():
            raise Stopped

    return function() if deadline() == np.inf else _awaited(function, _of_a_helper(), check)


def _awaited(function: Callable[[], Result], context: Context, check: Callable[[], None]) -> Result:
    """function() on a thread of the pool, while this one checks something and listens to Ctrl-C."""
    outbox: SimpleQueue[BaseException | None] = SimpleQueue()
    results: list[Result] = []
    _start(lambda _: results.append(function()), 0, outbox, context)
    try:
        error = _end_of(outbox, check)
    except BaseException:
        _leave([outbox])
        raise
    if error is not None:
        raise error
    return results[0]


def _end_of(outbox: SimpleQueue, check: Callable[[], None]) -> BaseException | None:
    """What a task has ended with, checked for again and again."""
    while True:
        try:
            return outbox.get(timeout=PATIENCE)
        except Empty:
            check()


def in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], stopped: Callable[[], bool] = lambda: False
) -> Generator[Result]:
    """Results of the tasks in their order, computed on threads, until it is closed or ``stopped`` says so.

    Each task keeps to one thread: the threads are shared out here. The first result is awaited in any case. Tasks that
    run when it ends are abandoned, not awaited: a thread cannot be stopped, but Ctrl-C must not wait for it.
    """
    threads = workers()
    todo: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()

    def share(_: int) -> None:
        while (item := todo.get()) is not None:
            number, task = item
            try:
                done.put((number, function(task), None))
            except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
                done.put((number, None, error))

    coming = enumerate(tasks)
    ready: dict[int, tuple[Any, BaseException | None]] = {}
    for item in islice(coming, AHEAD * threads):
        todo.put(item)
    waiting, number = todo.qsize(), 0
    context = _alone()
    outboxes: list[SimpleQueue] = [SimpleQueue() for _ in range(min(threads, waiting))]
    for place, outbox in enumerate(outboxes):
        _start(share, place, outbox, context.copy())
    try:
        with single_threaded_blas():
            while number < waiting:
                while number not in ready:
                    try:
                        place, result, error = done.get(timeout=PATIENCE)
                    except Empty:
                        if number > 0 and stopped():
                            return
                        continue
                    ready[place] = (result, error)
                for item in islice(coming, 1):
                    todo.put(item)
                    waiting += 1
                result, error = ready.pop(number)
                if error is not None:
                    raise error
                yield result
                number += 1
    finally:
        while not todo.empty():
            todo.get()
        for _ in range(threads):
            todo.put(None)
        _leave(outboxes)


# --- BLAS -------------------------------------------------------------------------------------------------------------


@cache
def _libraries() -> list:
    # SciPy has a BLAS of its own, which compiled loops call; a library that is not loaded yet is not held.
    import_module("scipy.linalg.cython_blas")
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _free_to_set() -> None:
    """Newer versions of threadpoolctl let the first thread alone set numbers of threads; ours, and the user's, may."""
    for kind in {type(library) for library in _libraries()}:
        if hasattr(kind, "clear_controlling_thread"):
            kind.clear_controlling_thread(force=True)


def _set_threads(numbers: list[int]) -> None:
    """Give each library its number of threads."""
    _free_to_set()
    for library, number in zip(_libraries(), numbers, strict=True):
        library.set_num_threads(number)
    _free_to_set()


class _SingleThread(ContextDecorator):
    """Holds BLAS to one thread while anybody wants it so."""

    def __init__(self):
        self.lock, self._holders = Lock(), 0
        self._before: list[int] = []
        self._mine = local()

    def __enter__(self) -> None:
        self._mine.count = getattr(self._mine, "count", 0) + 1
        if self._mine.count > 1:  # this thread holds it already
            return
        with self.lock:
            self._holders += 1
            if self._holders == 1:
                # The libraries themselves: the limits of threadpoolctl cost more than a small fit.
                self._before = [library.num_threads for library in _libraries()]
                if max(self._before, default=1) > 1:
                    _set_threads([1] * len(self._before))

    def __exit__(self, *_) -> None:
        self._mine.count -= 1
        if self._mine.count:
            return
        with self.lock:
            self._holders -= 1
            if self._holders == 0 and max(self._before, default=1) > 1:
                _set_threads(self._before)

    def after_fork(self) -> None:
        """Only the thread that called fork lives on; where others held BLAS, the child keeps it at one thread.

        What they did in there at that moment may have left its threads locked.
        """
        self.lock = Lock()
        self._holders = min(getattr(self._mine, "count", 0), 1)


_single_thread = _SingleThread()


def single_threaded_blas() -> _SingleThread:
    """Inside a ``with`` block or a decorated function BLAS and LAPACK use one thread: the threads are ours.

    Every public call that multiplies or factors holds them so: their bits depend on the number of their threads, and
    beside other programs theirs wait for each other for minutes.
    """
    return _single_thread


def _after_fork() -> None:
    _idle.clear()
    _left.clear()
    _single_thread.after_fork()


if hasattr(os, "register_at_fork"):
    # Nobody sets a number of threads while the process forks: the child would find that lock locked for good.
    os.register_at_fork(
        before=lambda: _single_thread.lock.acquire(),
        after_in_parent=lambda: _single_thread.lock.release(),
        after_in_child=_after_fork,
    )
