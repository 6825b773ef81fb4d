"""The time of a job with a limit: how much is kept for its end, when the contest ends, and when a turn does."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

#: Times its expected seconds that a fit may take, and the last one, whose rows are worth more than further settings.
FIT_MARGIN, REFIT_MARGIN = 1.2, 1.4
#: Encodings of the length of a fold's between the contest and the report: of all training rows, and of the test's.
ENCODINGS = 2.5
#: Predictions of the length of a fold's: of the test part, which is larger, its classes and its probabilities.
PREDICTIONS = 3.0
#: The greatest share of the limit that is kept for refit and test: where they take longer they are on fewer rows.
MAX_REFIT_SHARE = 0.4
#: Processor seconds kept for pictures and files; for files alone, with a report without pictures and the end of the
#: process; and that a machine needs to learn from few rows, with the loading of compiled loops.
WRITING_SECONDS, FILES_SECONDS, LEARNING_SECONDS = 2.0, 1.0, 1.0
#: The greatest shares of the limit for the same three: pictures for which there is no time are left out, and the first
#: machine that learns is given its share even where reading took all of the time.
MAX_WRITING_SHARE, MAX_FILES_SHARE, MAX_LEARNING_SHARE = 0.1, 0.4, 0.3
#: Processor seconds kept for importances, effects and curves, and the greatest share of the limit for them: a result
#: without reasons is worth less than one more slow machine.
TELLING_SECONDS, MAX_TELLING_SHARE = 4.0, 0.1
#: Share of the limit that compiling for one machine leaves to the others.
MIN_REST_SHARE = 0.25
#: Where others use the processors, a processor second takes longer: so many seconds are assumed at most.
MAX_SLOWNESS = 8.0
#: The share of the slowness of the whole job that is expected to come back, where the processors are faster now.
REMEMBERED = 0.5
#: Processor seconds below which what was used so far does not tell how long one takes.
MIN_WORK_SECONDS = 0.3
#: Seconds that work is given to notice that its time is over, before it is left behind.
GRACE_SECONDS = 0.5
#: The scores of a test take as long as those of so many more rows, however few its rows are.
TEST_OVERHEAD_ROWS = 3000
#: Processor seconds that are spent to measure how long one takes.
PACE_SECONDS = 0.05
#: Why a fold is not played: no time is left for anyone, or not enough of the turn is.
OVER, SLOW = "the time is over", "it takes more than its share of the time"
#: Why a fit was given up that may be tried again: its loops are compiled by another process meanwhile.
COMPILED_ELSEWHERE = "its loops are being compiled"


@dataclass
class TimeBudget:
    """When all is over, what is kept until then for the refit, the test and the report, and when a turn ends.

    It measures time by ``now`` and ``worked`` alone, so that simulations can bring their own.

    Parameters
    ----------
    limit : float
        Seconds that the whole job may take.
    begin, work : float
        When it began, as ``now`` tells it, and what ``worked`` said then.
    tested : int
        Rows of the test.
    scoring : float
        Processor seconds that the scores of one of them take, with their intervals.
    written : bool
        Whether there are pictures to be drawn and files to be written at its end.
    now, worked : callable
        The seconds that have passed, and the processor seconds used, since any moment in the past.

    Attributes
    ----------
    refit : float
        Seconds kept for the refit and the test of the winner.
    turn : float
        When the turn of the candidate that plays ends.
    learned : bool
        Whether a machine that learns has played: until then all but the files gives way to it.
    opened, pace : float
        When the table was read, and the seconds that a second of one thread took then, or when looked at again.
    """

    limit: float = np.inf
    begin: float = field(default_factory=time.perf_counter)
    work: float = field(default_factory=time.process_time)
    tested: int = 0
    scoring: float = 0.0
    refit: float = 0.0
    turn: float = np.inf
    learned: bool = False
    opened: float = np.nan
    pace: float = 1.0
    written: bool = True
    now: Callable[[], float] = field(default_factory=lambda: time.perf_counter)
    worked: Callable[[], float] = field(default_factory=lambda: time.process_time)

    def __post_init__(self):
        self.opened = self.now() if np.isnan(self.opened) else self.opened
        self._since = self.begin, self.work

    def look_again(self, pace: float) -> None:
        """Judge the processors by what they do from now on: others come and go, and first imports wait for disks."""
        self._since, self.pace = (self.now(), self.worked()), pace

    def look_again_where(self, short: Callable[[], bool]) -> None:
        """Judge the processors again where time seems too short: others may be gone, and what is left out is lost."""
        if self.limited and short():
            self.look_again(pace_now())

    @property
    def end(self) -> float:
        """When the whole job is to be over."""
        return self.begin + self.limit

    @property
    def slowness(self) -> float:
        """Seconds that a processor second took lately: more than one where others use the machine."""
        whole, lately = self._pace_since(self.begin, self.work), self._pace_since(*self._since)
        # Work on several threads hides how long one of them takes, as what comes after the contest is done by one.
        return min(max(lately, self.pace, whole * REMEMBERED, 1.0), MAX_SLOWNESS)

    def _pace_since(self, begin: float, work: float) -> float:
        """Seconds that a processor second took since a moment, and the processor seconds used until then."""
        return (self.now() - begin) / max(self.worked() - work, MIN_WORK_SECONDS)

    @property
    def writing(self) -> float:
        """Seconds kept for pictures and files."""
        seconds = min(WRITING_SECONDS * self.slowness, MAX_WRITING_SHARE * self.limit)
        return max(self.files, seconds if self.written else 0.0)

    @property
    def telling(self) -> float:
        """Seconds kept for what the report tells beside the scores."""
        return min(TELLING_SECONDS * self.slowness, MAX_TELLING_SHARE * self.limit)

    @property
    def files(self) -> float:
        """Seconds kept for the files alone."""
        return min(FILES_SECONDS * self.slowness, MAX_FILES_SHARE * self.limit)

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(np.isfinite(self.limit))

    @property
    def deadline(self) -> float:
        """When the contest ends."""
        if self.learned:
            return self.end - self.writing - self.refit - self.telling
        learning = min(LEARNING_SECONDS * self.slowness, MAX_LEARNING_SHARE * self.limit)
        return max(self.end - self.files, self.opened + learning)

    @property
    def over(self) -> bool:
        """Whether there is time for nothing more than the files."""
        return self.rest_but_files <= 0

    @property
    def rest(self) -> float:
        """Seconds left for what comes after the test, but for the writing."""
        return self.end - self.writing - self.now()

    @property
    def rest_but_files(self) -> float:
        """Seconds left for what is worth more than pictures."""
        return self.end - self.files - self.now()

    def keep(self, encoding: float, fit: float = 0.0, predicting: float = 0.0, share: float = 1.0) -> None:
        """Keep time for the refit and the test, on a share of its rows, of one whose last fit, ... take so long."""
        testing = ENCODINGS * encoding + afterwards(fit, predicting) + self.judging(share * self.tested)
        self.refit = min(testing, MAX_REFIT_SHARE * self.limit)

    def judging(self, rows: float) -> float:
        """Seconds that the scores of so many test rows take."""
        return (TEST_OVERHEAD_ROWS + rows) * self.scoring * self.slowness

    def begin_turn(self, waiting: int) -> None:
        """A candidate begins, and as many are still waiting: it may take twice its even share of what is left.

        What a first machine needs on few rows it gets in any case, for without it there is no result.
        """
        now = self.now()
        least = 0.0 if self.learned else LEARNING_SECONDS * self.slowness
        self.turn = min(self.deadline, now + max(2 * (self.deadline - now) / (waiting + 1), least))

    def extend_turn(self, seconds: float) -> None:
        """Give back to the turn what was spent on compiling, which is done once; a share is left for the others."""
        latest = self.deadline - MIN_REST_SHARE * self.limit if self.limited else np.inf
        self.turn = max(self.turn, min(self.turn + seconds, latest))

    @property
    def left(self) -> float:
        """Seconds left of the turn."""
        return min(self.turn, self.deadline) - self.now()

    def refusal(self, expected: float = 0.0) -> str:
        """Why work that takes so long, as far as one knows, does not begin; empty where it may."""
        if self.now() >= self.deadline:
            return OVER
        return SLOW if self.left <= expected else ""


def pace_now() -> float:
    """Seconds that a second of this thread takes now."""
    begin, work = time.perf_counter(), time.thread_time()
    while time.thread_time() - work < PACE_SECONDS:
        pass
    return (time.perf_counter() - begin) / PACE_SECONDS


def afterwards(fit: float, predicting: float, margin: float = REFIT_MARGIN) -> float:
    """Seconds that the refit and the test take, of a machine that needs so many for all rows, and for a fold's."""
    return margin * fit + PREDICTIONS * predicting
