"""Ctrl-C while Numba compiles a loop, and no garbage collection meanwhile."""

import gc

from numba.core import event

from empirisk.stop import Stopped, requested


class _Compiling(event.Listener):
    """Turns garbage collection off while Numba works: it makes millions of objects, and looking at them takes long."""

    def __init__(self):
        self._depth, self._enabled = 0, False
        self.pressed_before = False  # Ctrl-C came before compiling began: the fit knows, and ends with what it has

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self.pressed_before = requested()
            self._enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._enabled:
            gc.enable()


class _BetweenPasses(event.Listener):
    """Asks for Ctrl-C between two passes of Numba over Python's code."""

    def on_start(self, event: event.Event) -> None:
        raise_after_ctrl_c()

    def on_end(self, event: event.Event) -> None:
        pass


_compiling = _Compiling()


def raise_after_ctrl_c() -> None:
    """Raise `Stopped` if Ctrl-C was pressed: asked between steps of the compiler, the longest of which takes 0.9 s."""
    if requested() and not _compiling.pressed_before:
        raise Stopped


event.register("numba:compile", _compiling)
event.register("numba:run_pass", _BetweenPasses())
