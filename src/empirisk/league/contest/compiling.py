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
    refusal : callable
        Why a function is not compiled here and now, as it cannot be stopped; empty where it may be.
    passed : callable
        Hears of the seconds that compiling took since the last function of a loop.

    Attributes
    ----------
    seconds : float
        What compiling took so far: no fit takes that long again.
    """

    def __init__(
        self,
        tell: Callable[[], None],
        refusal: Callable[[], str] = lambda: "",
        passed: Callable[[float], None] = lambda seconds: None,
    ):
        self.seconds = 0.0
        self._tell, self._refusal, self._passed, self._depth, self._last = tell, refusal, passed, 0, 0.0

    def on_start(self, event: event.Event) -> None:
        """A function is going to be compiled, perhaps for one that is being compiled already."""
        if self._depth == 0:
            self._last = time.perf_counter()
            self._tell()
        self._count()
        self._depth += 1
        check_stop()  # compiled code has no pieces, but a loop has many functions
        reason = self._refusal()
        if reason:
            raise Stopped(reason)

    def on_end(self, event: event.Event) -> None:
        """It is compiled, or given up."""
        self._count()
        self._depth -= 1

    def _count(self) -> None:
        """Count the time since the last event."""
        now = time.perf_counter()
        self.seconds += now - self._last
        self._passed(now - self._last)
        self._last = now


def listening_to_numba(listener: CompilationListener) -> AbstractContextManager[Any]:
    """While this is entered the listener hears of all that is compiled."""
    return event.install_listener("numba:compile", listener)
