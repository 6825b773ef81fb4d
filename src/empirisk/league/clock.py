"""The clock of a job with a limit of time: what is kept for its end, and whose turn is over."""

import time
from dataclasses import dataclass, field

import numpy as np

#: How much longer than expected a fit may take, and the last one, whose rows are worth more than further settings.
LONGER, REFIT = 1.2, 1.4
#: Encodings of the length of a fold's between the contest and the report: of all training rows, and of the test's.
ENCODINGS = 2.5
#: Predictions of the length of a fold's: of the test part, which is larger, its classes and its probabilities.
ANSWERS = 3.0
#: The most of the limit that is kept for the refit and the test: where they take longer they are on fewer rows.
MOST_KEPT = 0.4
#: Seconds of a processor kept for drawing and writing.
WRITING = 2.0
#: Seconds of a processor that a report without pictures, the model's file and the end of the process take.
FILES = 1.0
#: Where others use the machine, a second of a processor takes longer: as many seconds at the most.
SLOWEST = 8.0
#: Seconds of a processor that tell how long one takes.
LEAST_WORK = 0.3
#: Seconds that work is given to see that its time is over, before it is left behind.
GRACE = 0.5
#: Seconds of a processor that a machine needs to learn from few rows, about, with the loading of compiled loops.
LEARNING = 1.0
#: The most of the limit that is kept for pictures: those for which there is no time are left out.
MOST_WRITING = 0.1
#: The most of it that is kept for the files.
MOST_FILES = 0.4
#: The most of it that the first machine which learns is given where reading took all of it.
MOST_LEARNING = 0.3
#: What the scores of a test take however few its rows are, in rows.
TESTING = 3000
#: Seconds of a processor that are spent to see how long they take.
LOOK = 0.05


class Stopped(Exception):
    """The time is over, or the user pressed Ctrl-C."""


class Slow(Exception):
    """A contestant has used up its share of the time."""


@dataclass
class Clock:
    """When all is over, what is kept until then for the refit, the test and the report, and when a turn ends.

    Parameters
    ----------
    limit : float
        Seconds that the whole job may take.
    begin, work : float
        When it began, on the clock of `time.perf_counter`, and what `time.process_time` said then.
    tested : int
        Rows of the test.
    scoring : float
        Seconds of a processor that the scores of one of them take, with their intervals.

    Attributes
    ----------
    refit : float
        Seconds kept for the refit and the test of the winner.
    turn : float
        When the turn of the contestant that plays ends.
    learned : bool
        Whether a machine that learns has played: until then all but the files gives way to it.
    opened, pace : float
        When the table was read, and the seconds that a second of one thread took then.
    """

    limit: float = np.inf
    begin: float = field(default_factory=time.perf_counter)
    work: float = field(default_factory=time.process_time)
    tested: int = 0
    scoring: float = 0.0
    refit: float = 0.0
    turn: float = np.inf
    learned: bool = False
    opened: float = field(default_factory=lambda: time.perf_counter())
    pace: float = 1.0

    @property
    def end(self) -> float:
        """When the whole job is to be over."""
        return self.begin + self.limit

    @property
    def slowness(self) -> float:
        """Seconds that a second of a processor took so far: more than one where others use the machine."""
        passed, used = time.perf_counter() - self.begin, time.process_time() - self.work
        # Work on several threads hides how long one of them takes, as what comes after the contest is done by one.
        return min(max(passed / max(used, LEAST_WORK), self.pace, 1.0), SLOWEST)

    @property
    def writing(self) -> float:
        """Seconds kept for pictures and files."""
        return max(self.files, min(WRITING * self.slowness, MOST_WRITING * self.limit))

    @property
    def files(self) -> float:
        """Seconds kept for the files alone."""
        return min(FILES * self.slowness, MOST_FILES * self.limit)

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(np.isfinite(self.limit))

    @property
    def deadline(self) -> float:
        """When the contest ends."""
        if self.learned:
            return self.end - self.writing - self.refit
        return max(self.end - self.files, self.opened + min(LEARNING * self.slowness, MOST_LEARNING * self.limit))

    @property
    def over(self) -> bool:
        """Whether there is time for nothing more than the files."""
        return self.rest_but_files <= 0

    @property
    def rest(self) -> float:
        """Seconds left for what comes after the test, but for the writing."""
        return self.end - self.writing - time.perf_counter()

    @property
    def rest_but_files(self) -> float:
        """Seconds left for what is worth more than pictures."""
        return self.end - self.files - time.perf_counter()

    def keep(self, encoding: float, fit: float = 0.0, predicting: float = 0.0, share: float = 1.0) -> None:
        """Keep time for the refit and the test, on a share of its rows, of one whose last fit, ... take so long."""
        testing = ENCODINGS * encoding + afterwards(fit, predicting) + self.judging(share * self.tested)
        self.refit = min(testing, MOST_KEPT * self.limit)

    def judging(self, rows: float) -> float:
        """Seconds that the scores of so many test rows take."""
        return (TESTING + rows) * self.scoring * self.slowness

    def begin_turn(self, waiting: int) -> None:
        """A contestant begins, and as many are still waiting: it may take twice its even share of what is left.

        What a first machine needs on few rows it gets in any case, for without it there is no result.
        """
        now = time.perf_counter()
        least = 0.0 if self.learned else LEARNING * self.slowness
        self.turn = min(self.deadline, now + max(2 * (self.deadline - now) / (waiting + 1), least))

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


def pace_now() -> float:
    """Seconds that a second of this thread takes now."""
    begin, work = time.perf_counter(), time.thread_time()
    while time.thread_time() - work < LOOK:
        pass
    return (time.perf_counter() - begin) / LOOK


def afterwards(fit: float, predicting: float, longer: float = REFIT) -> float:
    """Seconds that the refit and the test take, of a machine that needs so many for all rows, and for a fold's."""
    return longer * fit + ANSWERS * predicting
