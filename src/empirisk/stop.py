"""One way to stop: the words for how work ended, deadlines, Ctrl-C, and requests to stop by a callable.

Whatever iterates asks a `Deadline`, which knows the limit of time and whether the user wants an end, and says why. Work
that takes long between two iterations calls `check_stop`, which raises `Stopped`. `interruptible` turns Ctrl-C into a
request that deadlines ask for, and `keeping` raises it as `Interrupted` when the best point so far is in its place.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any

from empirisk.errors import Interrupted, warn_unfinished
from empirisk.settings import holding, settings

#: Seconds of a limit that is over, for work inside: `max_time` must be positive.
NO_SECONDS = 1e-9
#: Seconds that work has to bring its result into order after it was asked to stop.
CLOSING_SECONDS = 0.5


class Ending:
    """How a fit ended: the words of ``stopped_`` and ``certificate_.status``, the same for the same reason everywhere.

    Parameters that end a fit are named as they are written: ``max_iter``, ``max_time``.

    >>> er.SVM().fit([[0.0], [1.0], [2.0]], [0, 1, 0]).stopped_
    'converged'
    """

    #: Its own criterion holds: the duality gap, or the change of the objective, is within ``tol``.
    CONVERGED = "converged"
    #: All that was asked for was done: trees, rounds, passes, steps, draws.
    FINISHED = "finished"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    #: By Ctrl-C, or by the callable of ``config(stop=...)``.
    INTERRUPTED = "interrupted"
    #: A callback asked for it.
    CALLBACK = "callback"
    #: Rows that were held out were predicted no better any more.
    EARLY_STOPPING = "early_stopping"
    #: Rounding leaves no digits for a better point.
    STALLED = "stalled"
    #: Rows came one call at a time: there is no end to reach.
    PARTIAL_FIT = "partial_fit"
    #: Nothing is penalised and the classes are separable: the objective falls for ever.
    SEPARABLE = "separable"
    #: Nothing is penalised and the objective falls for ever towards targets of zero.
    UNATTAINED = "unattained"
    #: A perceptron went through all rows without a mistake.
    NO_MISTAKES = "no_mistakes"
    #: A perceptron made mistakes in each of its passes.
    MISTAKES_LEFT = "mistakes_left"
    #: Steps led to infinity or NaN.
    NOT_FINITE = "not_finite"
    #: A member of a boosted ensemble makes no mistakes: others add nothing.
    PERFECT_LEARNER = "perfect_learner"
    #: No member of a boosted ensemble is better than chance.
    NO_EDGE = "no_edge"


#: Endings of work that was not let go on.
CUT = frozenset({Ending.MAX_TIME, Ending.INTERRUPTED, Ending.CALLBACK})

#: What to do about an ending, as it follows a semicolon.
REMEDIES = {
    Ending.MAX_ITER: "raise max_iter or tol, or standardise the columns",
    Ending.MAX_TIME: "raise max_time",
    Ending.INTERRUPTED: "fit again",
    Ending.STALLED: "standardise the columns, lower C, or raise tol",
    Ending.SEPARABLE: "no minimiser exists for separable classes: use a penalty, or SVM(C=inf) for the widest margin",
    Ending.UNATTAINED: "no minimiser exists, as larger weights fit targets of zero ever better: use a penalty",
    Ending.NOT_FINITE: "lower the network's rate, or scale the columns",
}
#: The pages of the endings that have remedies, in `empirisk.messages`.
CODES = {
    Ending.MAX_ITER: "ER001",
    Ending.MAX_TIME: "ER002",
    Ending.INTERRUPTED: "ER003",
    Ending.STALLED: "ER004",
    Ending.SEPARABLE: "ER005",
    Ending.UNATTAINED: "ER006",
    Ending.NOT_FINITE: "ER007",
}
#: What to do about the endings of a function that a user minimises, which has no columns.
FUNCTION_REMEDIES = REMEDIES | {
    Ending.MAX_ITER: "raise max_iter or tol, or try method='bfgs'",
    Ending.INTERRUPTED: "begin again at x to go on",
    Ending.STALLED: "lower rate, give a gradient, or try another method",
}


def warn_of(ending: str, sentence: str, remedies: Mapping[str, str] = REMEDIES) -> bool:
    """Warn with the sentence and the remedy of an ending that has one; whether it has one.

    An interrupt is told under ``config(interrupt="keep")`` alone: else it is raised at the end of the fit.

    >>> warn_of(Ending.CONVERGED, "all is well")
    False
    """
    told = ending in remedies
    if told and not (ending == Ending.INTERRUPTED and settings().interrupt == "raise"):
        warn_unfinished(f"{sentence}; {remedies[ending]}.", CODES.get(ending, CODES[Ending.MAX_ITER]))
    return told


# --- asking -----------------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    """Work that can be asked to stop.

    Attributes
    ----------
    request : callable
        Whether it is asked to.
    interrupts : InterruptCounter or None
        Counts Ctrl-C for it; None where that is left to others.
    """

    request: Callable[[], bool]
    interrupts: "InterruptCounter | None" = None


#: The work that this context is part of.
_work: ContextVar[_Work | None] = ContextVar("work", default=None)


def requested() -> bool:
    """Whether the work of this context is asked to stop, by Ctrl-C or by the callable of ``config(stop=...)``.

    >>> requested()
    False
    """
    work = _work.get()
    return work is not None and work.request()


def cut_by() -> str:
    """The ending of work that was cut: by the user where there is such a request, else by its limit of time.

    >>> cut_by()
    'max_time'
    """
    return Ending.INTERRUPTED if requested() else Ending.MAX_TIME


def listening_to(request: Callable[[], bool]) -> AbstractContextManager[Any]:
    """Work in here stops when ``request()`` is true, and leaves Ctrl-C to whoever asks.

    >>> with listening_to(lambda: True):
    ...     requested()
    True
    """
    return holding(_work, _Work(request))


class Deadline:
    """When work must end, and why it did: its seconds are over, or the user asks it to stop.

    Parameters
    ----------
    seconds : float or None
        How long the work may take; None for any time.
    start : float, optional
        Value of `time.perf_counter` at which it began; now by default.

    Attributes
    ----------
    end : float
        Value of `time.perf_counter` at which the seconds are over.
    reason : str
        An `Ending`, the first that was seen; empty while work goes on.

    Examples
    --------
    >>> deadline = Deadline(1e-9)
    >>> deadline(), deadline.reason
    (True, 'max_time')
    """

    def __init__(self, seconds: float | None = None, start: float | None = None):
        self.start = time.perf_counter() if start is None else start
        self.end = float("inf") if seconds is None else self.start + seconds
        self.reason = ""

    def __call__(self) -> bool:
        """Whether to stop; `reason` then says why."""
        if not self.reason and requested():
            self.reason = Ending.INTERRUPTED
        elif not self.reason and time.perf_counter() >= self.end:
            self.reason = Ending.MAX_TIME
        return bool(self.reason)

    def left(self) -> float | None:
        """Seconds left for work inside this one; None for any number of them."""
        return None if self.end == float("inf") else max(self.end - time.perf_counter(), NO_SECONDS)

    def share(self, part: float) -> "Deadline":
        """A deadline after that part of the seconds, from the same start."""
        return Deadline(None if self.end == float("inf") else part * (self.end - self.start), self.start)


class Stopped(Exception):
    """Work was given up half-way, as a flag of `stopping` asked for."""


_flag: ContextVar[Callable[[], bool]] = ContextVar("flag", default=lambda: False)


def stopping(flag: Callable[[], bool]) -> AbstractContextManager[Any]:
    """Work in here is given up, by `Stopped`, soon after ``flag()``, as a rule a `Deadline`, is true."""
    return holding(_flag, flag)


def flag_or_request() -> Callable[[], bool]:
    """A flag that is also up where the user asks for a stop, for work before a fit listens to that."""
    flag = _flag.get()
    return lambda: flag() or requested()


def check_stop() -> None:
    """Raise `Stopped` if the flag of `stopping` says so; long pieces of work call this a few times a second."""
    if _flag.get()():
        raise Stopped


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


class InterruptCounter:
    """Counts Ctrl-C while it is entered, in the main thread: the first is noted, later ones do what they did before.

    Python handles signals in the main thread alone, and a process may ignore them: then none is counted. It may be
    entered again while it is, and within others, which hear what it hands on.

    Parameters
    ----------
    first : Event, optional
        What the first Ctrl-C sets, where others wait for it too.

    Attributes
    ----------
    first, second : Event
        Set by the first and by the second Ctrl-C.
    """

    def __init__(self, first: threading.Event | None = None):
        self.first, self.second = first or threading.Event(), threading.Event()
        self._stop, self._ignoring = settings().stop, False
        self._before: Any = None
        self._depth = 0

    def requested(self) -> bool:
        """Whether there was a Ctrl-C, or the callable of ``config(stop=...)`` has said yes."""
        if self._stop is not None and not self.first.is_set() and self._stop():
            self.first.set()  # it stays asked for, whatever the callable says later
        return self.first.is_set()

    def __enter__(self) -> "InterruptCounter":
        self._depth += 1
        if self._depth == 1:
            main = threading.current_thread() is threading.main_thread()
            self._before = signal.getsignal(signal.SIGINT) if main else None
            if callable(self._before):
                signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth or not callable(self._before):
            return
        try:
            signal.signal(signal.SIGINT, self._before)
            signal.getsignal(signal.SIGINT)  # a signal that is pending is handled by now
        except KeyboardInterrupt:  # it came between the two: it belongs to this work, not to what follows
            signal.signal(signal.SIGINT, self._before)
            self.first.set()

    def ignore_interrupts(self) -> None:
        """Ignore every further Ctrl-C, so that what follows is done as a whole; raise if there were two before."""
        self._ignoring = True
        if self.second.is_set():  # other people's code may have caught its KeyboardInterrupt
            raise KeyboardInterrupt

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._ignoring:
            return
        if self.first.is_set():
            self.second.set()
            self._before(number, frame)
        self.first.set()


#: What Ctrl-C sets where fits are parts of one piece of work.
_batch: ContextVar[threading.Event | None] = ContextVar("batch", default=None)


@contextmanager
def batch() -> Iterator[threading.Event]:
    """Fits in here are parts of one piece of work: an interrupt of one ends all, and none is taken for a whole one.

    Setting the event that this gives interrupts them, in whichever thread of the pool they run.
    """
    work = _work.get()
    if work is not None and work.interrupts is None:  # whoever asks them to stop also knows what they are parts of
        yield threading.Event()
        return
    event = _batch.get() or (threading.Event() if work is None or work.interrupts is None else work.interrupts.first)
    with holding(_batch, event), holding(_work, None):
        yield event


@contextmanager
def keeping(name: str, kept: Any = None) -> Iterator[Interrupted]:
    """When the work in here is done, raise the interrupt that has ended it; ``config(interrupt="keep")`` does not.

    Work within other work leaves that to the outer one, and what is part of a `batch` always raises. Gives the error
    that will be raised, whose ``kept`` may be set to what was found.
    """
    interrupt = Interrupted(
        f"{name} was interrupted and keeps the best point so far; er.config(interrupt='keep') returns it instead.", kept
    )
    if _work.get() is not None:
        yield interrupt
        return
    whole = _batch.get()
    interrupts = InterruptCounter(whole)
    with holding(_work, _Work(interrupts.requested, interrupts)):
        try:
            yield interrupt
        except (Stopped, Interrupted) as error:
            if isinstance(error, Stopped) and not interrupts.first.is_set():
                raise
            raise Interrupted(f"{name} was interrupted before there was a point to keep; it is as it was.") from None
    if interrupts.first.is_set() and (whole is not None or settings().interrupt == "raise"):
        raise interrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C in here is told by `requested`; a second one raises as usual. Work within such work shares its request."""
    with keeping("The fit"):
        work = _work.get()
        listens = threading.current_thread() is threading.main_thread()  # the only one that hears signals
        with (work.interrupts if work and listens else None) or nullcontext():
            yield


def closing() -> AbstractContextManager[Any]:
    """Work in here was asked to stop before it began: it has half a second to find something worth keeping."""
    end = time.perf_counter() + CLOSING_SECONDS
    return listening_to(lambda: time.perf_counter() >= end)
