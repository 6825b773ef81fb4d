"""Playing one fold: one setting is fitted to its training rows and scored on its validation rows, within limits."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.evaluation.metrics import Metric
from empirisk.league.candidates.vote import last_step, members
from empirisk.league.contest.budget import GRACE_SECONDS, OVER, TimeBudget
from empirisk.league.contest.schedule import Play
from empirisk.league.contest.store import FoldStore
from empirisk.league.records import CandidateResult, FoldResult
from empirisk.league.rows.encodings import encoding_of, fit_vote, join
from empirisk.linalg import threads
from empirisk.stop import CUT, InterruptCounter, Stopped, listening_to, stopping
from empirisk.tables.model import uncalibrated

#: Parameters for the seconds of a fit: of a machine, of one inside a calibration, and of either after other steps.
TIME_PARAMETERS = ("max_time", "estimator__max_time", "machine__max_time", "machine__estimator__max_time")
#: Seconds that a fit is given at the least: a limit must be positive.
MIN_FIT_SECONDS = 0.01
INTERRUPTED = "interrupted"
#: How a play went, and the machine that was fitted; None where it was cut.
Outcome = tuple[FoldResult, Any]


@dataclass
class FoldPlayer:
    """Plays folds: what is needed for all of them.

    Parameters
    ----------
    metric : Metric
        The score that decides.
    budget : TimeBudget
        Ends fits of plays that are limited.
    store : FoldStore
        Knows what was played before, and keeps what is played now.
    interrupts : InterruptCounter
        The first Ctrl-C ends the contest.
    compiling : callable
        Seconds that were spent on compiling so far, which no fit takes again.
    ahead : FitsAhead or None
        Fits on the workers of a cluster; None where fits run here.
    """

    metric: Metric
    budget: TimeBudget
    store: FoldStore
    interrupts: InterruptCounter
    compiling: Callable[[], float] = lambda: 0.0
    ahead: Any = None

    def known(self, play: Play) -> FoldResult | None:
        """How a play goes that was played before, or that nobody waits for any more; else None."""
        if self.interrupts.requested():
            return FoldResult(state="stopped", reason=INTERRUPTED)
        return self.store.result(play)

    def refused(self, play: Play) -> FoldResult | None:
        """How a play goes for which there is no time; else None."""
        # A vote of machines that are fitted takes no more than their answers.
        joined = bool(play.voters) and self.store.members(play, _voting(play)) is not None
        seconds = play.result.predicting if joined else play.expected
        refusal = self.budget.refusal(seconds) if play.limited else ""
        return _out_of_time(refusal) if refusal else None

    def note(self, play: Play, outcome: Outcome) -> FoldResult:
        """Keep what was played, and give its result."""
        result, machine = outcome
        if machine is not None:
            self.store.add(play, result, play.folds.pipeline(play.fold, machine))
        return result

    def outcome(self, play: Play, over: Callable[[], bool]) -> Outcome:
        """Play, until ``over()`` is true; what goes wrong is the result."""
        try:
            return self._fit_and_score(play, over)
        except MemoryError:
            return FoldResult(state="out", reason="it needs more memory than there is"), None
        except Exception as problem:  # noqa: BLE001 - whatever it is, the others play on, and the table shows it
            return FoldResult(state="out", reason=sentence(problem)), None

    def _fit_and_score(self, play: Play, over: Callable[[], bool]) -> Outcome:
        """Fit and score as a whole: what the clock or Ctrl-C cuts has no score."""
        stop = self.interrupts.requested
        X, y, X_new, y_new = play.folds.fold(play.fold, encoding_of(play.setting))
        machine = clone(play.setting)
        if play.limited:
            # Its turn, which grows by what is compiled, ends in pieces of the fit.
            limit(machine, max(self.budget.deadline - self.budget.now(), MIN_FIT_SECONDS))
        result = FoldResult(state="stopped", reason=INTERRUPTED)
        try:
            # Fits and predictions run in pieces, which ask these questions.
            with listening_to(stop), stopping(lambda: stop() or over()):
                machine, seconds = self._fitted(play, machine, X, y)
                begin = self._now()
                score = float(self.metric.scorer(machine, X_new, y_new))
                certificate = getattr(uncalibrated(machine), "certificate_", None)
                proof = "" if certificate is None else f"gap {certificate.relative_gap:.0e}"
                result = FoldResult(score, seconds, max(self._now() - begin, 0.0), proof, len(y_new))
        except Stopped as end:
            if not stop():
                return _out_of_time(str(end) or self.budget.refusal(np.inf)), None
        except KeyboardInterrupt:  # by the second Ctrl-C, or by a fit that heard the first and has nothing to show
            if self.interrupts.second.is_set() or not stop():
                raise
        if stop():
            return FoldResult(state="stopped", reason=INTERRUPTED), None
        limit(machine, None)
        return result, machine

    def _fitted(self, play: Play, machine: Any, X: Any, y: NDArray) -> tuple[Any, float]:
        """A machine fitted, and how long it took; a vote is made of members that were fitted on this fold and kept."""
        voting = _voting(play)
        if voting:
            return self._joined(play, machine, X, y, voting)
        if self.ahead is not None:
            machine, seconds = self.ahead.fitted(play, machine)
            if was_cut(machine):
                raise Stopped
            return machine, seconds
        begin = self._now()
        self._in_time(play, machine, lambda: machine.fit(X, y))
        return machine, max(self._now() - begin, MIN_FIT_SECONDS)

    def _joined(self, play: Play, vote: Any, X: Any, y: NDArray, voting: list[CandidateResult]) -> tuple[Any, float]:
        """A vote of members that were fitted on this fold and kept, or are fitted now; and how long that takes."""
        kept, encoder = self.store.members(play, voting), play.folds.encoder_of(play.fold, encoding_of(vote))
        if kept is not None:
            join(vote, [pipeline[-1] for pipeline in kept[0]], X, y, encoder)
            return vote, kept[1]
        begin = self._now()
        self._in_time(play, vote, lambda: fit_vote(vote, X, y, encoder))
        return vote, max(self._now() - begin, MIN_FIT_SECONDS)

    def _in_time(self, play: Play, machine: Any, fit: Callable[[], Any]) -> None:
        """Fit, and raise where the clock or the user ended it early."""
        threads.call_with_deadline(lambda: self.budget.deadline + GRACE_SECONDS if play.limited else np.inf, fit)
        if was_cut(machine):
            raise Stopped

    def _now(self) -> float:
        """The time, without what compiling took."""
        return time.perf_counter() - self.compiling()


def _voting(play: Play) -> list[CandidateResult]:
    """The candidates whose machines vote; none where a single machine plays."""
    return [one for member in members(play.setting) for one in play.voters if one.machine is member]


def _out_of_time(reason: str) -> FoldResult:
    """No score: the time of the contest is over, or that of the turn."""
    return FoldResult(state="stopped" if reason == OVER else "late", reason=reason)


def was_cut(machine: Any) -> bool:
    """Whether something ended the fit of a machine, or of one that votes, before it was whole."""
    return any(getattr(last_step(one), "stopped_", None) in CUT for one in members(machine))


def limit(machine: Any, seconds: float | None) -> None:
    """Let the fit of a machine, and of each one that votes, take so many seconds at most."""
    for one in (*members(machine), *getattr(machine, "estimators", ())):
        one.set_params(**{name: seconds for name in TIME_PARAMETERS if name in one.get_params()})


def sentence(problem: Exception) -> str:
    """What went wrong; the kind of error too, where the text alone was not written for users."""
    told = " ".join(str(problem).split())
    return told if isinstance(problem, ValueError) and told else f"{type(problem).__name__}: {told}".rstrip(": ")
