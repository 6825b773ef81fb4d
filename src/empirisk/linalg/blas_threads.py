"""Holding BLAS to one thread, by threadpoolctl."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from importlib import import_module

import threadpoolctl
from threadpoolctl import ThreadpoolController

from empirisk.linalg.versions import internals_known


def hold_to_one() -> Callable[[], None]:
    """Give every BLAS one thread; call the result, on any thread, to give the numbers back."""
    known = internals_known("threadpoolctl", threadpoolctl.__version__)
    return _hold_libraries() if known else _hold_by_limits()


@cache
def _controller() -> ThreadpoolController:
    # SciPy has a BLAS of its own, which compiled loops call; a library that is not loaded yet is not held.
    import_module("scipy.linalg.cython_blas")
    return ThreadpoolController().select(user_api="blas")


def _hold_libraries() -> Callable[[], None]:
    """By the libraries themselves: the limits of threadpoolctl cost more than a small fit."""
    before = [library.num_threads for library in _controller().lib_controllers]
    if max(before, default=1) == 1:
        return lambda: None
    _set_threads([1] * len(before))
    return lambda: _set_threads(before)


def _set_threads(numbers: list[int]) -> None:
    """Give each library its number of threads."""
    _let_any_thread_set()
    for library, number in zip(_controller().lib_controllers, numbers, strict=True):
        library.set_num_threads(number)
    _let_any_thread_set()


def _let_any_thread_set() -> None:
    """Newer versions of threadpoolctl let the first thread alone set numbers of threads; ours, and the user's, may."""
    for kind in {type(library) for library in _controller().lib_controllers}:
        if hasattr(kind, "clear_controlling_thread"):
            kind.clear_controlling_thread(force=True)


def _hold_by_limits() -> Callable[[], None]:
    """By what threadpoolctl documents. A version may give numbers back on the thread that took them alone.

    On another one BLAS then stays at one thread: slower, with the same bits.
    """
    stack = ExitStack()
    stack.enter_context(_controller().limit(limits=1, user_api="blas"))
    return stack.close
