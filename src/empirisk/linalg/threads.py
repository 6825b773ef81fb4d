"""The only pools of threads: shares that run at the same time, tasks in turn, and results in order.

A thread of the pool sees the settings and the stop flag of the one that it works for; what it does in threads itself it
does alone. After a fork the child has a pool of its own.
"""

import atexit
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ContextDecorator, suppress
from contextvars import Context, copy_context
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock, Thread, get_ident, local
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from empirisk.errors import working_for
from empirisk.linalg.blas_threads import hold_to_one
from empirisk.settings import CORES, keep_to_threads, settings
from empirisk.stop import Stopped, check_stop

Task = TypeVar("Task")
Result = TypeVar("Result")

MIN_INTERRUPTIBLE_ORDER = 1000  # rows of a matrix: LAPACK needs only milliseconds for smaller ones
POLL_SECONDS = 0.1  # between two checks of the stop flag while a call on another thread runs
QUEUED_TASKS_PER_THREAD = 4  # tasks that `ordered_map` submits ahead of the results that were asked for
NO_THREAD_LIMIT = 1 << 16  # more threads than any machine has
SHUTDOWN_SECONDS = 30.0  # that process exit waits for abandoned calls: BLAS must not run while memory is freed


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
    end = perf_counter() + SHUTDOWN_SECONDS
    for outbox in _left:
        with suppress(Empty):
            outbox.get(timeout=max(0.0, end - perf_counter()))


def _alone() -> Context:
    """A context like this one, but what is done in threads in there is done by one."""
    context = _of_a_helper()
    context.run(keep_to_threads, 1)
    return context


def _of_a_helper() -> Context:
    """A context like this one, for threads that work for this one."""
    context = copy_context()
    context.run(working_for.set, working_for.get() or get_ident())
    return context


def run_shares(function: Callable[[int], None], count: int) -> None:
    """function(0), ..., function(count - 1) at the same time, each on its own thread, the first on this one.

    They may wait for each other: none waits for a thread. Shares are compiled loops or NumPy's, which run in parallel.

    >>> found = [0, 0]
    >>> run_shares(lambda share: found.__setitem__(share, share + 1), 2)
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


def parallel_map(
    function: Callable[..., Result], tasks: Sequence | np.ndarray, most: int = NO_THREAD_LIMIT
) -> list[Result]:
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
        run_shares(share, threads)
    return results


def _unless_stopped(function: Callable[[Task], Result], task: Task) -> Result:
    check_stop()
    return function(task)


def interruptible_call(function: Callable[[], Result], order: int) -> Result:
    """function() on a thread of the pool, while this one looks at the flag and listens to Ctrl-C.

    For calls of LAPACK, which cannot be stopped, on matrices of that order: one that runs when the flag goes up is
    abandoned.

    >>> interruptible_call(lambda: 3, 2000)
    3
    """
    return function() if order < MIN_INTERRUPTIBLE_ORDER else _awaited(function, _alone(), check_stop)


def call_with_deadline(deadline: Callable[[], float], function: Callable[[], Result]) -> Result:
    """function() on another thread, left behind by `Stopped` if it is not done by then, on `time.perf_counter`.

    For work that does not look at the flag: compiling, or other people's libraries. Without an end it is done here.

    >>> call_with_deadline(lambda: np.inf, lambda: 3)
    3
    """

    def check() -> None:
        if perf_counter() > deadline():
            raise Stopped

    return function() if deadline() == np.inf else _awaited(function, _of_a_helper(), check)


class Begun:
    """A call that runs on a thread of the pool, with some threads of its own, while the one that began it goes on.

    >>> ended = SimpleQueue()
    >>> call = Begun(lambda: 3, 1, ended)
    >>> ended.get() is call, call.result()
    (True, 3)

    Parameters
    ----------
    function : callable
        The call.
    most : int
        How many threads it may use.
    ended : SimpleQueue
        Is given this object when the call has ended.
    """

    def __init__(self, function: Callable[[], Any], most: int, ended: SimpleQueue):
        self._results: list[Any] = []
        self._outbox: SimpleQueue[BaseException | None] = SimpleQueue()
        context = _of_a_helper()
        context.run(keep_to_threads, most)

        def call(_: int) -> None:
            try:
                self._results.append((function(), None))
            except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that asks
                self._results.append((None, error))
            ended.put(self)

        _start(call, 0, self._outbox, context)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return bool(self._results)

    def result(self) -> Any:
        """What the call gave, or raise what it raised."""
        value, error = self._results[0]
        if error is not None:
            raise error
        return value

    def leave(self) -> None:
        """Nobody waits for it any more."""
        _leave([self._outbox])


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
            return outbox.get(timeout=POLL_SECONDS)
        except Empty:
            check()


def ordered_map(
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
    for item in islice(coming, QUEUED_TASKS_PER_THREAD * threads):
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
                        place, result, error = done.get(timeout=POLL_SECONDS)
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


class _SingleThread(ContextDecorator):
    """Holds BLAS to one thread while anybody wants it so."""

    def __init__(self):
        self.lock, self._holders = Lock(), 0
        self._give_back: Callable[[], None] = lambda: None
        self._mine = local()

    def __enter__(self) -> None:
        self._mine.count = getattr(self._mine, "count", 0) + 1
        if self._mine.count > 1:  # this thread holds it already
            return
        with self.lock:
            self._holders += 1
            if self._holders == 1:
                self._give_back = hold_to_one()

    def __exit__(self, *_) -> None:
        self._mine.count -= 1
        if self._mine.count:
            return
        with self.lock:
            self._holders -= 1
            if self._holders == 0:
                self._give_back()

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
