"""A run of `learn` that can be followed, finished early, stopped and taken up again, by a call and without a signal."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from time import perf_counter
from typing import Any

from empirisk.errors import EmpiriskError
from empirisk.league.contest.fold import sentence
from empirisk.league.events import Event
from empirisk.league.request import Request
from empirisk.league.result import Learned
from empirisk.league.run import run
from empirisk.stop import InterruptCounter

STOPPED = "The job was stopped before it had a result."


class Job:
    """One run of a request, here or in a thread of its own.

    The shell, notebooks and services share it. A job whose process was killed is taken up by running its request again
    with the same ``out``: folds that were played are in the journal beside the model.

    Parameters
    ----------
    request : Request
        What is to be learned.

    Attributes
    ----------
    state : str
        "waiting", "running", "done", "stopped" or "failed".
    history : list of Event
        What has happened so far.

    Examples
    --------
    >>> job = Job(Request("iris", machines=["centroid"])).start()
    >>> [event["event"] for event in job.events()][:3]
    ['doing', 'understood', 'deciding']
    >>> job.result().winner
    'centroid'
    """

    def __init__(self, request: Request):
        self.request, self.state = request, "waiting"
        self.history: list[Event] = []
        self._interrupts = InterruptCounter()
        self._changed = threading.Condition()
        self._learned: Learned | None = None
        self._problem: BaseException | None = None

    def run(self) -> Learned:
        """Run it here, and wait for its end; the first Ctrl-C finishes it, the second stops it."""
        if self.state != "waiting":
            raise EmpiriskError("The job was started before; make another one of its request.")
        self._begin, self.state = perf_counter(), "running"
        try:
            self._learned = run(self.request, self._interrupts, self._tell)
        except KeyboardInterrupt:
            self._tell("failed", STOPPED, "stopped")
            raise
        except Exception as problem:
            self._problem = problem
            self._tell("failed", sentence(problem), "failed")
            raise
        self._tell("done", self._learned, "done")
        return self._learned

    def start(self) -> "Job":
        """Run it in a thread of its own."""

        def work() -> None:
            with suppress(Exception, KeyboardInterrupt):  # `result` raises it, and the last event says it
                self.run()

        threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
        return self

    def finish(self) -> None:
        """End the contest now, and make a model and a report of what is done, as one Ctrl-C does."""
        self._interrupts.first.set()

    def stop(self) -> None:
        """End everything now, without a model, as two Ctrl-C do; what was played stays in the journal."""
        self._interrupts.first.set()
        self._interrupts.second.set()

    def events(self, start: int = 0) -> Iterator[dict[str, Any]]:
        """Every event from that number on, as JSON has it; waits for those to come until the job is over."""
        for number in count(start):
            with self._changed:
                self._changed.wait_for(lambda number=number: len(self.history) > number or self.over)
                if number >= len(self.history):
                    return
            yield self.history[number].to_dict()

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in ("done", "stopped", "failed")

    def result(self, timeout: float | None = None) -> Learned:
        """What was learned; waits for it, for so many seconds at most, and raises what went wrong."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.over, timeout):
                raise EmpiriskError(f"The job is not over after {timeout} s; wait longer, or call finish().")
        if self._learned is None:
            raise self._problem or EmpiriskError(STOPPED)
        return self._learned

    def _tell(self, kind: str, about: Any, state: str = "running") -> None:
        event = Event(kind, about, perf_counter() - self._begin)
        with self._changed:
            self.history.append(event)
            self.state = state
            self._changed.notify_all()
        if self.request.listener is not None:
            self.request.listener(event)
