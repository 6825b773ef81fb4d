"""What to play next: successive halving over candidates, from their results so far and the time that is left.

Nothing here reads a clock, fits a machine or writes a file. A `Schedule` hands out plays and is told how they went, so
that a test can simulate a contest of hours with made-up seconds and scores.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from empirisk.league.contest.budget import COMPILED_ELSEWHERE, FIT_MARGIN, OVER, REFIT_MARGIN, TimeBudget, afterwards
from empirisk.league.records import CandidateResult, FoldResult, best_of

#: Settings of a candidate that go on after the first fold, and where fits take long.
FINALISTS, FEW_FINALISTS = 2, 1
#: With a limit of time: training rows of the first round, how many times as many each further round has, and the share
#: of all rows from which a part might as well be all of them.
FIRST_ROWS, ROWS_FACTOR, NEARLY_ALL = 2500, 4, 0.6
#: Rows of the first round at the least, and the times that learning from a row takes longer than reading it, about.
MIN_FIRST_ROWS, LEARNING_TO_READING = 500, 20
#: The leaders, and the strong and cheap that come first, may take two thirds of the time that is left, as if so many
#: more waited. For the others of the first round, further rounds count as so many more that wait.
MAX_WAITING, FURTHER_ROUNDS = 2, 12
#: While the strong and cheap play the first round, time is kept for a refit of the best on so many times its rows.
FIRST_REFIT = 16
#: A fit on fewer rows than this many times those of the last one is not worth its time.
WORTHWHILE = 1.5
#: Candidates that go on to the next round at the least, and around whose settings others are tried.
FEWEST = 3
#: Candidates that vote at the most.
VOTERS = 6
#: Who is behind the best by this share of what that gains over the simplest cannot win any more, nor help in a vote.
HOPELESS = 0.15
#: Validation rows that tell the settings of one machine apart.
TELLING_ROWS = 1000
#: Why there is no vote.
NO_VOTE = "it needs two of the best that give numbers, or probabilities"
BEST_ALONE = "the best alone is better than any mean"
#: Why not all folds were played.
CANNOT_WIN = "it cannot win any more"


class Folds(Protocol):
    """Training rows in folds: as much as a schedule knows of them.

    Attributes
    ----------
    rows, judges, total : int
        Training and validation rows of the first fold, and training rows altogether.
    seconds : float
        The longest that an encoding took; 0 before the first.
    """

    @property
    def rows(self) -> int: ...
    @property
    def judges(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def seconds(self) -> float: ...

    def __len__(self) -> int: ...

    def part(self, rows: int) -> "Folds":
        """The first fold alone, with so many training rows at most."""
        ...

    def encoding(self, wanted: str) -> str:
        """An encoding, or that of numbers where it would be the same."""
        ...

    def encoded(self, fold: int, encoding: str) -> bool:
        """Whether a fold is encoded already."""
        ...


class SchedulableCandidate(Protocol):
    """A kind of machine: as much as a schedule knows of it (`candidates.Candidate`)."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def turn(self) -> int: ...
    @property
    def early(self) -> bool: ...
    @property
    def votes(self) -> bool: ...
    @property
    def growths(self) -> tuple[float, float]: ...
    @property
    def loading(self) -> float: ...


class SettingsSource(Protocol):
    """What may be tried of each candidate; a setting is an unfitted machine, or anything that has a ``repr``.

    Attributes
    ----------
    large : bool
        Whether fits take long, and one fold already tells settings apart.
    """

    @property
    def large(self) -> bool: ...

    def reason_not_to_run(self, candidate: Any, folds: Any) -> str:
        """Why a candidate does not play on this table, as half a sentence; empty if it does."""
        ...

    def of(self, candidate: Any, folds: Any) -> list[Any]:
        """The settings of a candidate, the most promising first."""
        ...

    def slow(self, candidate: Any) -> bool:
        """Whether a candidate plays after the others where there is no limit of time."""
        ...

    def around(self, setting: Any) -> list[Any]:
        """Settings that differ a little from one."""
        ...

    def can_vote(self, setting: Any) -> bool:
        """Whether what a machine says has a mean."""
        ...

    def votes(self, voters: "Sequence[CandidateResult]", folds: Any) -> list[Any]:
        """Votes of the first of these, with different weights: by what they said in the folds, unless that is None."""
        ...

    def encoding(self, setting: Any) -> str:
        """The encoding that a machine reads."""
        ...


@dataclass(frozen=True)
class Play:
    """One setting of one candidate on one fold.

    Attributes
    ----------
    result : CandidateResult
        The candidate, as it stands.
    setting
        What is fitted.
    folds, fold
        The folds, and which of them.
    limited : bool
        Whether the time ends it. The simplest candidate always plays once, so that there is a result.
    expected : float
        Seconds that it takes, as far as one knows: without so many it does not begin.
    voters : tuple of CandidateResult
        Of a vote, its members, the best first.
    """

    result: CandidateResult
    setting: Any
    folds: Any
    fold: int
    limited: bool = False
    expected: float = 0.0
    voters: tuple[CandidateResult, ...] = ()


Plays = Generator[Play, FoldResult, None]


class _Over(Exception):
    """The contest ends before its schedule does."""


class Schedule:
    """The program of a contest.

    Without a limit of time every candidate plays all folds, simple ones first. With one, rounds of successive halving
    come first: everyone plays few rows of the first fold, the strong and cheap first, and the better half of each round
    plays more rows in the next; then all folds, settings around the best, and a vote of the best. Time for the refit of
    the best is kept throughout.

    It is written as coroutines, which read like the contest itself: each ``yield`` hands out a `Play` and gets its
    `FoldResult`.

    Parameters
    ----------
    candidates : sequence of Candidate
        Simplest first.
    folds, settings, budget
        See `Folds`, `SettingsSource` and `TimeBudget`.
    changed : callable
        Hears each result that changes.
    sign : float
        Of the metric, see `CandidateResult`.

    Attributes
    ----------
    results : dict
        How each candidate did, by name, for those that have played.
    seen : list of Folds
        Those of the rounds so far.
    waiting : list of Candidate
        Who plays later in this round.
    may_wait : bool
        Whether who plays now may as well play later: it is not one of the first of the first round.
    ended : str
        Why the contest was over before its end; else empty.
    """

    def __init__(
        self,
        candidates: Sequence[SchedulableCandidate],
        folds: Folds,
        settings: SettingsSource,
        budget: TimeBudget,
        changed: Callable[[CandidateResult], None] = lambda result: None,
        sign: float = 1.0,
    ):
        self._candidates, self.folds, self._settings, self._budget = list(candidates), folds, settings, budget
        self._changed, self._sign = changed, sign
        self._places = {candidate.name: place for place, candidate in enumerate(candidates)}
        self.results: dict[str, CandidateResult] = {}
        self.waiting: list[Any] = []
        self.may_wait = False
        self.ended = ""
        self._current: CandidateResult | None = None
        self.seen: list[Folds] = []
        self._rounds: list[Folds] = []
        self._rest_of_turn: Callable[[], Iterator[Play]] = lambda: iter(())
        self._after_turn: Callable[[], Iterator[Play]] = lambda: iter(())
        self._late: list[tuple[CandidateResult, list[Any]]] = []
        self._behind: list[tuple[CandidateResult, list[Any]]] = []
        self._all_is_played = False
        self._finalists: dict[str, list[int]] = {}
        self._refined: dict[str, Any] = {}
        self._plays = self._contest()

    def next(self, last: FoldResult | None = None) -> Play | None:
        """What to play next, given how the last play went; None when the contest is over."""
        try:
            return self._plays.send(last)  # type: ignore[arg-type]
        except StopIteration:
            return None
        except _Over as over:
            self.ended = str(over)
            return None

    def coming(self) -> Iterator[Play]:
        """Plays that may follow the one handed out last, the most likely first, as things stand: for idle cores.

        They are those left of its turn, then of its round, then of the next rounds.
        """
        yield from self._rest_of_turn()
        yield from self._after_turn()

    def leaders(self) -> list[CandidateResult]:
        """The best so far, best first, with the one that is playing: what was fitted for them is worth keeping."""
        current = [] if self._current is None else [self._current]
        known = {one.name: one for one in (*self.results.values(), *current)}
        return sorted(known.values(), key=lambda one: -one.mean)[: VOTERS + 1]

    def encoding_seconds(self, rows: float) -> float:
        """Seconds that the encoding of so many rows takes, by what the largest encoding so far took."""
        known = max((folds for folds in self.seen if folds.seconds), key=lambda folds: folds.rows, default=None)
        return 0.0 if known is None else rows * known.seconds / known.rows

    # --- the program --------------------------------------------------------------------------------------------------

    def _contest(self) -> Plays:
        """Rounds on parts of the first fold where time is short, then all folds, then the slow ones once more."""
        everyone = order = sorted((one for one in self._candidates if not one.votes), key=lambda one: one.turn)
        self._rounds = [*self._parts(), self.folds]
        for number, part in enumerate(self._rounds[:-1]):
            yield from self._round(order, part, first=number == 0)
            order = self._better_half(order)
            if part.rows == self.folds.rows and part.judges >= TELLING_ROWS:
                yield from self._vote(part)
                yield from self._refine(part)
        if self._budget.limited:
            yield from self._round(order, self.folds)
            yield from self._refine(self.folds)
            postponed = [one for one in everyone if self._of(one).remark == COMPILED_ELSEWHERE]
            if postponed:
                yield from self._round(postponed, self.seen[0], first=True)
        yield from self._round(self._final_order(), self.folds)
        late, self._late = sorted(self._late, key=lambda entry: -entry[0].mean), []
        for result, settings in [one for one in late if self.results[one[0].name].state != "done"]:
            self._budget.begin_turn(0)
            # Folds that were played are known: it goes on where it was.
            yield from self._turn(result, settings, self._affordable(result, self.folds))
        yield from self._vote(self.folds)
        if self._budget.limited:
            yield from self._refine(self.folds)
        self._all_is_played, behind = True, self._behind
        for result, settings in behind:
            self._begin_turn(0)
            yield from self._turn(result, settings, self.folds)
        if behind:
            yield from self._vote(self.folds)

    def _parts(self) -> Iterator[Folds]:
        """Ever more rows of the first fold, all of them at last; nothing where there is no limit of time."""
        reading = max(self._budget.opened - self._budget.begin, 1e-9) / self.folds.total
        rows = int(min(FIRST_ROWS, max(MIN_FIRST_ROWS, self._budget.left / (LEARNING_TO_READING * reading))))
        while self._budget.limited:
            part = self.folds.part(rows if rows < NEARLY_ALL * self.folds.rows else self.folds.rows)
            yield part
            if part.rows == self.folds.rows:
                return
            rows *= ROWS_FACTOR

    def _round(self, order: list[SchedulableCandidate], folds: Folds, first: bool = False) -> Plays:
        """Candidate after candidate; in a first round each with one setting."""
        self.seen.append(folds)
        self._begin_turn(0)
        if len(self.seen) > 1 and self._budget.left <= self._until_encoded(folds, 0):
            raise _Over(OVER)
        for turn, candidate in enumerate(order):
            self.waiting = order[turn + 1 :]
            self.may_wait = len(self.seen) == 1 and first and not candidate.early
            if not first:
                self._begin_turn(min(len(self.waiting), MAX_WAITING))
            elif candidate.early:
                self._begin_turn(MAX_WAITING, FIRST_REFIT * folds.rows)
            else:
                self._begin_turn(len(self.waiting) + FURTHER_ROUNDS)
            result = self._of(candidate)
            reason = self._settings.reason_not_to_run(candidate, folds)
            if reason:
                self._announce(replace(result, state="out", remark=reason))
                continue
            numbers, settings = self._entries(candidate, folds, first)
            part = folds if folds is self.folds else self._affordable(result, folds)
            self._after_turn = partial(self._rest_of_round, order, turn + 1, folds, first)
            best = yield from self._turn(result, settings, part)
            if not first:
                self._finalists[candidate.name] = [numbers[index] for index in best]

    def _entries(self, candidate: SchedulableCandidate, folds: Folds, first: bool) -> tuple[list[int], list[Any]]:
        """The settings with which a candidate plays a round, after their numbers."""
        if candidate.name in self._refined:
            return [0], [self._refined[candidate.name]]
        settings = self._settings.of(candidate, folds)
        numbers = [0] if first else self._finalists.get(candidate.name, list(range(len(settings))))
        return numbers, [settings[number] for number in numbers]

    def _rest_of_round(self, order: list[SchedulableCandidate], turn: int, folds: Folds, first: bool) -> Iterator[Play]:
        """Plays of those who wait in a round, on the first fold, and then those of the next round."""
        for candidate in order[turn:]:
            result = self._of(candidate)
            if self._settings.reason_not_to_run(candidate, folds) or result.state == "out":
                continue
            if folds is self.folds or self._affordable(result, folds) is folds:
                for setting in self._entries(candidate, folds, first)[1]:
                    yield self._play(result, setting, folds, 0, [], ())
        later = self._rounds[self._rounds.index(folds) + 1 :] if folds in self._rounds else []
        if later:
            yield from self._rest_of_round(self._better_half(order), 0, later[0], False)

    def _turn(
        self, result: CandidateResult, settings: list[Any], folds: Folds, voters: Sequence[CandidateResult] = ()
    ) -> Generator[Play, FoldResult, list[int]]:
        """One candidate: all its settings on the first fold, the best of them on the others.

        Returns the numbers of the settings that go on, best first.
        """
        tables: list[list[FoldResult]] = [[] for _ in settings]
        playing = list(range(len(settings)))

        def play(index: int, fold: int) -> Play:
            return self._play(result, settings[index], folds, fold, tables[index], voters)

        for fold in range(len(folds)):
            for place, index in enumerate(playing):
                left = () if voters else playing[place + 1 :]  # votes wait for their members, and take no time
                later = range(fold, fold + 1 if voters else len(folds))
                self._rest_of_turn = partial(self._left_of, play, left, later, tables)
                outcome = yield play(index, fold)
                if outcome.state != "played":
                    return self._given_up(result, settings, folds, tables, outcome)
                tables[index].append(outcome)
                if fold == 0 or index == playing[-1]:
                    best = max((k for k in playing if len(tables[k]) > fold), key=lambda k: _mean(tables[k]))
                    told = result.after(settings[best], tables[best], folds.rows)
                    # What more rows are too many for may still be better than the others on them.
                    result = self._current = told if folds is self.folds or told.mean >= result.mean else result
            self._announce(result)
            playing = self._best_settings(tables)
            if fold + 1 < len(folds) and self._hopeless(result):
                self._announce(replace(result, state="tried", remark=CANNOT_WIN))
                self._behind.append((result, settings))
                return playing
        self._announce(replace(result, state="done" if folds is self.folds else "tried"))
        return playing

    def _hopeless(self, result: CandidateResult) -> bool:
        """Whether, under a limit of time, a candidate is too far behind the best on the folds that both have played."""
        simplest = self.results.get(self._candidates[0].name)
        known = [one for one in self.results.values() if len(one.scores) > len(result.scores)]
        best = max(known, key=lambda one: one.mean, default=result)
        if (
            self._all_is_played
            or not self._budget.limited
            or simplest is None
            or not result.place
            or best.rows != result.rows
        ):
            return False
        common = len(result.scores)
        behind = replace(best, scores=best.scores[:common] - result.scores)
        beyond = 2 * behind.error if common > 1 else 0.0
        return behind.mean > max(HOPELESS * (best.mean - simplest.mean), beyond)

    def _left_of(
        self,
        play: Callable[[int, int], Play],
        settings: Sequence[int],
        folds: Sequence[int],
        tables: list[list[FoldResult]],
    ) -> Iterator[Play]:
        """Plays left of a turn: other settings on the first of the folds, then the best so far on the others."""
        first, *others = folds
        yield from (play(index, first) for index in settings)
        yield from (play(index, fold) for fold in others for index in self._best_settings(tables))

    def _given_up(
        self,
        result: CandidateResult,
        settings: list[Any],
        folds: Folds,
        tables: list[list[FoldResult]],
        outcome: FoldResult,
    ) -> list[int]:
        """Note why a turn ended before all was played; under a limit of time, what was played counts."""
        counts = self._budget.limited and len(result.scores) > 0 and outcome.state != "out"
        ended = replace(result, state="tried" if counts else outcome.state, remark=outcome.reason)
        if outcome.state == "late" and folds is self.folds:
            self._late.append((result, settings))
        if outcome.state != "late" or any(tables) or not len(result.scores):
            self._announce(ended)
        if outcome.state == "stopped":
            raise _Over(outcome.reason)
        return self._best_settings(tables)

    def _refine(self, folds: Folds) -> Plays:
        """Settings around those of each leader, while they are better and can be fitted again in time; then a vote."""
        leaders = self._best_on(folds)[:FEWEST]
        for leader in leaders[: None if leaders and self._settings.can_vote(leaders[0].machine) else 1]:
            result, before = leader, ""
            while before != repr(result.machine) and self._has_time_for(result):
                before, changed = repr(result.machine), self._settings.around(result.machine)
                self._begin_turn(MAX_WAITING)
                if changed:
                    yield from self._turn(result, [result.machine, *changed], folds)
                found = self.results[leader.name]
                # A change that cannot be fitted is no reason to go; and of settings that take turns in being best on
                # the first fold, the better one on all of them stays.
                if found.state == "out" or len(found.scores) < len(result.scores) or found.mean <= result.mean:
                    if found is not result:
                        self._announce(result)
                    break
                result = found
            self._refined[leader.name] = result.machine
            yield from self._vote(folds)

    def _vote(self, folds: Folds) -> Plays:
        """The mean of what the best say."""
        leaders = self._best_on(folds)
        voters = [one for one in leaders if self._settings.can_vote(one.machine)]
        while len(voters) > 1 and self._budget.rest < self._afterwards(voters, FIT_MARGIN):
            voters.pop()  # one of them on all rows is better than all of them on fewer
        for candidate in (one for one in self._candidates if one.votes):
            result = replace(self._of(candidate), growth=max((one.growth for one in voters), default=1.0))
            if len(voters) > 1 and voters[0] is leaders[0]:
                self._begin_turn(0)
                asking = len(folds) * sum(one.predicting for one in voters)
                timely = not self._budget.limited or self._budget.rest - self._afterwards(voters) > 2 * asking
                settings = self._settings.votes(voters, folds if timely else None)
                if settings:
                    yield from self._turn(result, settings, folds, voters)
                elif not len(result.scores):
                    self._announce(replace(result, state="out", remark=BEST_ALONE))
            elif not len(result.scores):
                self._announce(replace(result, state="out", remark=NO_VOTE))

    # --- who comes next -----------------------------------------------------------------------------------------------

    def _better_half(self, order: list[SchedulableCandidate]) -> list[SchedulableCandidate]:
        """The better half of those that can play, best first, and after them the strong and cheap.

        Few rows tell little of those that learn more from more of them, such as boosting.
        """
        able = [one for one in order if self._of(one).state != "out"]
        ranked = sorted((one for one in able if len(self._of(one).scores)), key=lambda one: -self._of(one).mean)
        better = ranked[: max(FEWEST, len(ranked) // 2)]
        return better + [one for one in able if one.early and self._of(one).place and one not in better]

    def _final_order(self) -> list[SchedulableCandidate]:
        """The order in which all folds are played: simple ones first, unless time is short."""
        everyone = [one for one in self._candidates if not one.votes]
        if self._budget.limited:
            waiting = [one for one in everyone if self._of(one).state not in ("out", "done")]
            return sorted(waiting, key=lambda one: -self._of(one).mean)
        return sorted(everyone, key=self._settings.slow)

    def _best_on(self, folds: Folds) -> list[CandidateResult]:
        """The best, if they have played all of these folds; neither the simplest of all is among them, nor a vote."""
        votes = {one.name for one in self._candidates if one.votes}
        able = [one for one in self.results.values() if one.eligible and one.place and one.name not in votes]
        whole = [one for one in able if one.rows == folds.rows and len(one.scores) >= len(folds)]
        whole = sorted(whole, key=lambda one: -one.mean)[:VOTERS]
        return whole if whole and best_of(able).name in {one.name for one in whole} else []

    def _best_settings(self, tables: list[list[FoldResult]]) -> list[int]:
        """The numbers of those that play on, best first: of those that were played, or the first where none was."""
        known = [index for index, played in enumerate(tables) if played]
        most = FEW_FINALISTS if self._settings.large else FINALISTS
        return sorted(known, key=lambda k: (-len(tables[k]), -_mean(tables[k])))[:most] or [0]

    def _of(self, candidate: SchedulableCandidate) -> CandidateResult:
        """How a candidate did so far."""
        least, first = candidate.growths
        new = CandidateResult(candidate.name, candidate.title, self._places[candidate.name], sign=self._sign)
        return self.results.get(candidate.name) or replace(new, growth=first, least_growth=least)

    def _announce(self, result: CandidateResult) -> None:
        """Note a result; what is done is not undone by other settings that were cut."""
        known = self.results.get(result.name)
        if known is None or known.state != "done" or result.state == "done":
            self.results[result.name] = result
            self._changed(result)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _play(
        self,
        result: CandidateResult,
        setting: Any,
        folds: Folds,
        fold: int,
        before: list[FoldResult],
        voters: Sequence[CandidateResult],
    ) -> Play:
        """The play of a setting on a fold, which takes as long as its last one did; on more rows longer.

        What has not played takes as long as it loads, at the least.
        """
        last = (
            before[-1].seconds + before[-1].predicting if before else result.seconds_for(folds.rows) + result.predicting
        )
        if not before and not len(result.scores):
            loading = next(one.loading for one in self._candidates if one.name == result.name)
            last = max(last, loading * self._budget.slowness)
        expected = last + self._until_encoded(folds, fold, self._settings.encoding(setting))
        limited = self._budget.limited and (result.place > 0 or len(result.scores) > 0)
        return Play(result, setting, folds, fold, limited, expected, tuple(voters))

    def _begin_turn(self, waiting: int, most: float = np.inf) -> None:
        """Keep time for the refit of the best on so many rows, and give the next one its share of what is left."""
        rows = min(self.folds.total, most)
        eligible, fit, predicting = [one for one in self.results.values() if one.eligible], 0.0, 0.0
        self._budget.learned = any(one.place for one in eligible)
        if eligible:
            best = best_of(eligible)
            fit, predicting = best.seconds_for(rows), best.predicting
        encoding = self.encoding_seconds(min(self.folds.rows, rows))
        self._budget.keep(encoding, fit, predicting, rows / self.folds.total)
        self._budget.begin_turn(waiting)

    def _affordable(self, result: CandidateResult, folds: Folds) -> Folds:
        """The folds, or fewer of their rows where the turn of one that has played before is too short for all."""
        if not (self._budget.limited and result.rows):
            return folds
        encoding = self._until_encoded(folds, 0, self._settings.encoding(result.machine))
        left = self._budget.left - result.predicting - encoding
        rows = result.rows_for(left / FIT_MARGIN)
        enough = result.rows_for(left) >= folds.rows or rows < WORTHWHILE * result.rows
        return folds if enough else self.folds.part(rows)

    def _has_time_for(self, result: CandidateResult) -> bool:
        """Whether there is time for a play of settings that take twice as long, and for their refit."""
        return self._budget.rest > 2 * (result.seconds + result.predicting + self._afterwards([result]))

    def _afterwards(self, results: Sequence[CandidateResult], margin: float = REFIT_MARGIN) -> float:
        """Seconds that the refit of these on all rows takes, with a margin, and their test."""
        fits = sum(one.seconds_for(self.folds.total) for one in results)
        return afterwards(fits, sum(one.predicting for one in results), margin)

    def _until_encoded(self, folds: Folds, fold: int, encoding: str = "numbers") -> float:
        """Seconds until a fold is encoded."""
        return 0.0 if folds.encoded(fold, encoding) else self.encoding_seconds(folds.rows)


def _mean(played: Sequence[FoldResult]) -> float:
    return float(np.mean([one.score for one in played]))
