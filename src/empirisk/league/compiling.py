"""Loops that are compiled on the way: said, timed, and given up between two functions when the time is over."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event

from empirisk.linalg import threads

KIND = "numba:compile"


class Compiling(event.Listener):
    """Hears from Numba that a loop is compiled, which happens once on a machine.

    Parameters
    ----------
    tell : callable
        Hears of it each time that compiling begins.

    Attributes
    ----------
    seconds : float
        What compiling took so far: no fit takes that long again.
    """

    def __init__(self, tell: Callable[[], None]):
        self.seconds = 0.0
        self._tell, self._depth, self._begin = tell, 0, 0.0

    def on_start(self, event: event.Event) -> None:
        """A function is going to be compiled, perhaps for one that is being compiled already."""
        if self._depth == 0:
            self._begin = time.perf_counter()
            self._tell()
        self._depth += 1
        threads.look()  # compiled code has no pieces, but a loop has many functions

    def on_end(self, event: event.Event) -> None:
        """It is compiled, or given up."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._begin


@contextmanager
def heard(listener: Compiling) -> Iterator[Compiling]:
    """While this is entered the listener hears of all that is compiled."""
    event.register(KIND, listener)
    try:
        yield listener
    finally:
        event.unregister(KIND, listener)
