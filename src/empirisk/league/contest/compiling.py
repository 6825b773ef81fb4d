"""Loops that are compiled on the way: said, timed, and given up between two functions when the time is over."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from numba.core import event

from empirisk.stop import Stopped, check_stop


class CompilationListener(event.Listener):
    """Hears from Numba that a loop is compiled, which happens once on a computer.

    Parameters
    ----------
    tell : callable
        Hears of it each time that compiling begins.
    late : callable
        Whether it is too late to begin with a function, which cannot be stopped.

    Attributes
    ----------
    seconds : float
        What compiling took so far: no fit takes that long again.
    """

    def __init__(self, tell: Callable[[], None], late: Callable[[], bool] = lambda: False):
        self.seconds = 0.0
        self._tell, self._late, self._depth, self._begin = tell, late, 0, 0.0

    def on_start(self, event: event.Event) -> None:
        """A function is going to be compiled, perhaps for one that is being compiled already."""
        if self._depth == 0:
            self._begin = time.perf_counter()
            self._tell()
        self._depth += 1
        check_stop()  # compiled code has no pieces, but a loop has many functions
        if self._late():
            raise Stopped

    def on_end(self, event: event.Event) -> None:
        """It is compiled, or given up."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._begin


def listening_to_numba(listener: CompilationListener) -> AbstractContextManager[Any]:
    """While this is entered the listener hears of all that is compiled."""
    return event.install_listener("numba:compile", listener)
