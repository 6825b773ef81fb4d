"""The contest: candidates play folds as the schedule says, until it ends, the time is over or Ctrl-C is pressed."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from empirisk.evaluation.metrics import Metric
from empirisk.extras import need
from empirisk.league.candidates.everyone import Candidate
from empirisk.league.candidates.settings import CandidateSettings
from empirisk.league.candidates.vote import Answers
from empirisk.league.contest.budget import COMPILED_ELSEWHERE, TimeBudget
from empirisk.league.contest.compiling import CompilationListener, listening_to_numba
from empirisk.league.contest.fold import FoldPlayer
from empirisk.league.contest.outlook import sentence
from empirisk.league.contest.precompile import PrecompileProcesses
from empirisk.league.contest.schedule import Play, Schedule
from empirisk.league.contest.side_by_side import SideBySide, only_likely
from empirisk.league.contest.store import FoldStore
from empirisk.league.events import Tell
from empirisk.league.records import CandidateResult, best_of
from empirisk.league.request import Request
from empirisk.league.rows.encoded_folds import EncodedFolds
from empirisk.league.rows.encodings import encoding_of
from empirisk.league.rows.split import Plan
from empirisk.linalg.compiled import preload
from empirisk.runs.journal import Journal
from empirisk.settings import settings
from empirisk.stop import InterruptCounter

#: Processor seconds before the contest ends in which no function is compiled: none can be stopped half-way.
COMPILING_SECONDS = 2.0
#: Rows times classes up to which what was fitted is kept for every fold.
SMALL_TABLE = 20_000


@dataclass(frozen=True)
class Resources:
    """What a contest works with, whatever the table and the question.

    Parameters
    ----------
    budget, journal, interrupts
        The time, where results are kept, and Ctrl-C.
    tell : callable
        Hears of events: "doing" and "played".
    precompile : PrecompileProcesses
        Compile what those need who play later.
    """

    budget: TimeBudget
    journal: Journal
    interrupts: InterruptCounter
    tell: Tell
    precompile: PrecompileProcesses

    def tell_doing(self, what: str) -> None:
        """Tell what is being done."""
        self.tell("doing", what)


class Contest:
    """What a contest is made of, put together for a table.

    Parameters
    ----------
    plan, request, metric
        The table in folds, what was asked for, and the score that decides.
    candidates : sequence of Candidate
        Simplest first.
    resources : Resources
        What it works with.

    Attributes
    ----------
    schedule : Schedule
        What is played, and how everyone did.
    store : FoldStore
        What was played and fitted.
    """

    def __init__(
        self, plan: Plan, request: Request, metric: Metric, candidates: Sequence[Candidate], resources: Resources
    ):
        self.plan, self.request, self.metric, self._candidates = plan, request, metric, candidates
        self.budget, self.interrupts, self._resources = resources.budget, resources.interrupts, resources
        self.tell = resources.tell_doing  # no method of the contest, whose rows would stay where one is kept
        classes = 0 if plan.classes is None else len(plan.classes)
        folds = EncodedFolds(plan.frame[plan.train], plan.y[plan.train], plan.encoder, plan.folds, request.seed)
        self.store = FoldStore(resources.journal, folds.rows * max(classes, 1) <= SMALL_TABLE)
        self._settings = CandidateSettings(
            folds,
            classes,
            request.seed,
            request.balance,
            metric.of_probabilities,
            self.budget.limited,
            self._answers,
            sampled=plan.files is not None,
        )
        self.schedule = Schedule(
            candidates, folds, self._settings, self.budget, lambda result: resources.tell("played", result), metric.sign
        )
        self._compiling = CompilationListener(self._compiles, self._not_compiled_now, self.budget.extend_turn)
        self._doing, self._curve, self._told = "", list[tuple[float, float]](), False
        self._ahead = None
        if settings().cluster != "none":
            need("A cluster", "scale", "distributed")
            self._ahead = import_module("empirisk.league.contest.ahead").FitsAhead(
                self.schedule.coming, self.interrupts.requested
            )
        player = FoldPlayer(
            metric, self.budget, self.store, self.interrupts, lambda: self._compiling.seconds, self._ahead
        )
        self._plays = SideBySide(player, self.budget, self.schedule.coming, self._say)

    def run(self) -> list[CandidateResult]:
        """How everyone did, best first."""
        preload()
        # What is to be said of a fit is in the table.
        with warnings.catch_warnings(action="ignore"), listening_to_numba(self._compiling), self._resources.precompile:
            try:
                play = self.schedule.next()
                while play is not None:
                    play = self.schedule.next(self._plays.play(play))
                    self.store.keep_only(self.schedule.leaders())
                    self._look_ahead()
            finally:
                self._plays.close()
                if self._ahead is not None:
                    self._ahead.close()
        results = self.schedule.results
        for place, candidate in enumerate(self._candidates):
            remark = f"{self.schedule.ended} before its turn"
            unheard = CandidateResult(candidate.name, candidate.title, place, state="out", remark=remark)
            results.setdefault(candidate.name, unheard)
        return sorted(results.values(), key=lambda one: (one.state != "done", -one.mean))

    @property
    def more_time(self) -> str:
        """What more time would probably gain; empty without a limit of time, or where nothing is known."""
        if not self.budget.limited:
            return ""
        top = max(self.metric.sign * limit for limit in self.metric.limits)
        return sentence(self._curve, self.metric.name, self.metric.sign, top)

    def _look_ahead(self) -> None:
        """Note the best score; once all rows of the first fold were played, tell what more time would gain."""
        known = [one for one in self.schedule.results.values() if one.eligible and one.place]
        if known:
            self._curve.append((self.budget.now() - self.budget.begin, best_of(known).mean))
        first_rounds_over = self.schedule.seen and self.schedule.seen[-1] is self.schedule.folds
        if first_rounds_over and not self._told and self.more_time:
            self._told = True
            self._resources.tell("outlook", self.more_time)

    def _answers(self, voters: Sequence[CandidateResult], folds: EncodedFolds) -> Answers | None:
        """What candidates said of the validation rows of the folds; None where what they fitted is not kept."""
        kept = [self.store.of_folds(one, folds) for one in voters]
        classes, said, truth = self.plan.classes, [], []
        for number, pipelines in enumerate(kept):
            if pipelines is None:
                return None
            parts = [folds.fold(fold, encoding_of(voters[number].machine))[2:] for fold in range(len(folds))]
            ask = "predict" if classes is None else "predict_proba"
            answers = [getattr(one[-1], ask)(X) for one, (X, _) in zip(pipelines, parts, strict=True)]
            said.append(np.concatenate(answers))
            truth = [y for _, y in parts]
        true = np.concatenate(truth)
        if classes is None:
            return said, true
        known = [one[-1].classes_ for pipelines in kept for one in pipelines or ()]
        if any(len(own) != len(classes) for own in known):  # a fold without one of the classes
            return None
        return said, np.searchsorted(known[0], true)

    def _say(self, play: Play) -> None:
        """Tell what is played."""
        folds = self.schedule.folds
        rows = "" if play.folds.rows == folds.rows else f", {play.folds.rows:,} rows"
        self._doing = f"{play.result.title}, fold {play.fold + 1} of {len(folds)}{rows}"
        self.tell(self._doing)

    def _compiles(self) -> None:
        """Say so; what those who come later need is now being compiled too."""
        if only_likely():  # which is not compiled
            return
        self.tell(f"{self._doing}: compiling, once")
        if not self._resources.precompile.asked:
            waiting = self.schedule.waiting
            # Where time is short, the first ones are compiled here meanwhile.
            order = sorted(waiting, key=lambda one: (one.early, one.turn)) if self.budget.limited else waiting[::-1]
            names = [(one.name, one.encoding) for one in order]
            folds: Any = self.schedule.seen[-1]
            parts = {
                encoding: (self._settings.size(folds, encoding), *folds.fold(0, encoding)[:2])
                for encoding in {encoding for _, encoding in names}
            }
            self._resources.precompile.compile(names, parts)

    def _not_compiled_now(self) -> str:
        """Why what plays now is not compiled here: it is too late, or others come first."""
        if only_likely():
            return COMPILED_ELSEWHERE
        left = self.budget.deadline - self.budget.now()
        if self.budget.learned and left < COMPILING_SECONDS * self.budget.slowness:
            return self.budget.refusal(np.inf)
        later = self.schedule.may_wait and any(process.poll() is None for process in self._resources.precompile.running)
        return COMPILED_ELSEWHERE if later else ""
