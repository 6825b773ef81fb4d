"""Plays side by side, so that no core is idle: the one that the schedule asks for, and those likely to come next.

A schedule asks for one play at a time, by the results of those before. What it may ask for next is begun meanwhile on
other threads. One that it does ask for is taken over as it stands; the others cost nothing but what was idle.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import ceil, sqrt
from queue import Empty, SimpleQueue
from time import perf_counter

from empirisk.league.contest.budget import GRACE_SECONDS, TimeBudget
from empirisk.league.contest.fold import FoldPlayer, Outcome
from empirisk.league.contest.schedule import Play
from empirisk.league.contest.store import fold_key
from empirisk.league.records import FoldResult
from empirisk.linalg.threads import POLL_SECONDS, Begun, workers

#: Plays that nobody has asked for yet, for each that runs: what they have fitted takes room.
MAX_READY = 8
#: States of what was cut: begun again, it may be played.
CUT = ("late", "stopped")


@dataclass(eq=False)
class _Task:
    """A play that was begun.

    Attributes
    ----------
    asked : bool
        Whether the schedule asked for it: its turn ends it from then on.
    """

    play: Play
    asked: bool = False
    call: Begun = field(init=False)


#: The play that this thread works for.
_current: ContextVar[_Task | None] = ContextVar("play", default=None)


def only_likely() -> bool:
    """Whether what runs here was not asked for yet, so that it must not keep others from compiling."""
    task = _current.get()
    return task is not None and not task.asked


class SideBySide:
    """Plays what it is asked for, and meanwhile what is likely to come.

    There are as many plays at a time as each has threads, about: fits of few rows do not have work for many.

    Parameters
    ----------
    player : FoldPlayer
        Plays one fold.
    budget : TimeBudget
        Ends turns.
    coming : callable
        Plays that may be asked for next, the most likely first.
    tell : callable
        Hears of each play that is asked for.
    """

    def __init__(
        self,
        player: FoldPlayer,
        budget: TimeBudget,
        coming: Callable[[], Iterator[Play]],
        tell: Callable[[Play], None],
    ):
        self._player, self._budget, self._coming, self._tell = player, budget, coming, tell
        threads = 1 if player.ahead is not None else workers()
        self._most = ceil(sqrt(threads))
        self._threads, self._each = threads, ceil(threads / self._most)
        self._tasks: dict[str, _Task] = {}
        self._running: list[Begun] = []
        self._refused: set[str] = set()
        self._ended: SimpleQueue[Begun] = SimpleQueue()
        self._closed = False

    def play(self, play: Play) -> FoldResult:
        """How a play goes; one that was played before, or for which there is no time, takes none."""
        known = self._player.known(play)
        if known is not None:
            return known
        key = fold_key(play)
        task = self._tasks.pop(key, None)
        if task is None or not task.call.over:
            refused = self._player.refused(play)
            if refused is not None:
                self._tasks |= {} if task is None else {key: task}
                return refused
        self._tell(play)
        if self._most == 1:
            return self._player.note(play, self._player.outcome(play, lambda: play.limited and self._budget.left <= 0))
        begun, task = task, task or self._begin(play, asked=True)
        task.asked = True
        while not task.call.over:
            self._fill(task)
            self._wait()
        outcome = task.call.result()
        if begun and outcome[0].state in CUT:  # by what held before it was asked for
            return self.play(play)
        return self._player.note(play, outcome)

    def close(self) -> None:
        """End what nobody has asked for; what does not hear of it is left behind."""
        self._closed = True
        end = perf_counter() + GRACE_SECONDS
        while self._running and perf_counter() < end:
            self._wait()
        for call in self._running:
            call.leave()
        self._tasks = {}

    def _begin(self, play: Play, asked: bool = False) -> _Task:
        """Begin a play: on all threads where there is nothing to play beside it."""
        alone = asked and not self._running and next(self._missing(), None) is None
        task = _Task(play, asked)

        def over() -> bool:
            if self._closed or not play.limited:
                return self._closed
            return self._budget.left <= 0 if task.asked else self._budget.now() >= self._budget.deadline

        def call() -> Outcome:
            _current.set(task)
            return self._player.outcome(play, over)

        task.call = Begun(call, self._threads if alone else self._each, self._ended)
        self._running.append(task.call)
        return task

    def _fill(self, asked: _Task) -> None:
        """Begin what is likely to come on the threads that are idle."""
        self._refused |= {key for key, task in self._tasks.items() if task.call.over and _cut(task)}
        self._tasks = {key: task for key, task in self._tasks.items() if key not in self._refused}
        for play in self._missing():
            if len(self._running) >= self._most or len(self._tasks) >= MAX_READY * self._most or asked.call.over:
                return
            self._tasks[fold_key(play)] = self._begin(play)

    def _missing(self) -> Iterator[Play]:
        """Plays that are likely to come, and were not begun."""
        for play in self._coming():
            key = fold_key(play)
            timely = not play.limited or self._budget.now() + play.expected < self._budget.deadline
            if timely and key not in self._tasks and key not in self._refused and self._player.known(play) is None:
                yield play

    def _wait(self) -> None:
        """Wait until something has ended, or for a moment."""
        with suppress(Empty):
            self._running.remove(self._ended.get(timeout=POLL_SECONDS))


def _cut(task: _Task) -> bool:
    return task.call.result()[0].state in CUT
