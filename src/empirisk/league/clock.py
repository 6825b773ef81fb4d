"""The clock of a job with a limit of time: what is kept for its end, and whose turn is over."""

import time
from dataclasses import dataclass

import numpy as np

#: The refit is on more rows than a fold has, and fits vary.
REFIT = 1.5
#: Encodings of the length of a fold's between the contest and the report: of all training rows, and of the test's.
ENCODINGS = 2.5
#: Predictions of the length of a fold's: of the test part, which is larger, its classes and its probabilities.
ANSWERS = 3.0
#: The most of the limit that is kept for the refit and the test: where they take longer they are on fewer rows.
MOST_KEPT = 0.3
#: Seconds kept for drawing and writing, and for the scores of a test row with their intervals, where no other work
#: slows them down; and by how much it may.
WRITING, TESTING, SLOWEST = 2.0, 5e-5, 3.0


class Stopped(Exception):
    """The time is over, or the user pressed Ctrl-C."""


class Slow(Exception):
    """A contestant has used up its share of the time."""


@dataclass
class Clock:
    """When all is over, what is kept until then for the refit, the test and the report, and when a turn ends.

    Parameters
    ----------
    end : float
        When the whole job is to be over, on the clock of `time.perf_counter`.
    writing : float
        Seconds kept for the scores of the test, pictures and files.
    limit : float
        Seconds that the whole job may take.

    Attributes
    ----------
    refit : float
        Seconds kept for the refit and the test of the winner.
    turn : float
        When the turn of the contestant that plays ends.
    """

    end: float = np.inf
    writing: float = 0.0
    limit: float = np.inf
    refit: float = 0.0
    turn: float = np.inf

    @classmethod
    def of(cls, limit: float | None, begin: float, work: float = np.inf, tested: int = 0) -> "Clock":
        """The clock of a job that began then and may take ``limit`` seconds; so far it got ``work`` of a processor's.

        Where others use the machine, seconds of work take more seconds, those of the test and of the writing too.
        """
        if limit is None:
            return cls()
        slowness = (time.perf_counter() - begin) / max(work, 1e-3)
        kept = min((WRITING + TESTING * tested) * min(max(slowness, 1.0), SLOWEST), limit / 3)
        return cls(begin + limit, kept, limit)

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(np.isfinite(self.end))

    @property
    def deadline(self) -> float:
        """When the contest ends."""
        return self.end - self.writing - self.refit

    @property
    def rest(self) -> float:
        """Seconds left for what comes after the test, but for the writing."""
        return self.end - self.writing - time.perf_counter()

    def keep(self, encoding: float, fit: float = 0.0, predicting: float = 0.0) -> None:
        """Keep time for the refit and the test of one whose fits and predictions take so long, as encodings do."""
        self.refit = min(ENCODINGS * encoding + afterwards(fit, predicting), MOST_KEPT * self.limit)

    def begin_turn(self, waiting: int) -> None:
        """A contestant begins, and as many are still waiting: it may take twice its even share of what is left."""
        now = time.perf_counter()
        self.turn = min(self.deadline, now + 2 * (self.deadline - now) / (waiting + 1))

    @property
    def left(self) -> float:
        """Seconds left of the turn."""
        return min(self.turn, self.deadline) - time.perf_counter()

    def check(self, expected: float = 0.0) -> None:
        """Raise if the time is over, or the turn would be before a match that takes as long as expected."""
        if time.perf_counter() >= self.deadline:
            raise Stopped("the time is over")
        if self.left <= expected:
            raise Slow("it takes more than its share of the time")


def afterwards(fit: float, predicting: float) -> float:
    """Seconds that the refit and the test take, of a machine that needs so many for a fold."""
    return REFIT * fit + ANSWERS * predicting
