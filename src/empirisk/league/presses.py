"""Ctrl-C during the whole job: the first time it asks for what is done, the second time it ends everything."""

import signal
import threading
from types import FrameType


class Presses:
    """Counts Ctrl-C while it is entered; where Python is not asked about signals, it counts none.

    Attributes
    ----------
    first, second : Event
        Set by the first and by the second Ctrl-C. Only the second raises KeyboardInterrupt.
    """

    def __init__(self):
        self.first, self.second = threading.Event(), threading.Event()
        self._deaf = False

    def __enter__(self) -> "Presses":
        main = threading.current_thread() is threading.main_thread()
        self._before = signal.getsignal(signal.SIGINT) if main else None
        if callable(self._before):
            signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)

    def last_word(self) -> None:
        """What comes now is done as a whole: a Ctrl-C that was meant to end all ends it here, later ones are late."""
        self._deaf = True
        if self.second.is_set():  # wherever its KeyboardInterrupt was lost
            raise KeyboardInterrupt

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._deaf:
            return
        if self.first.is_set():
            self.second.set()
            raise KeyboardInterrupt
        self.first.set()
