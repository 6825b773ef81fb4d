"""The contest: every kind of machine on the same folds, its settings chosen on the way, within a limit of time."""

import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from empirisk.certificate import Status
from empirisk.errors import EmpiriskError, NotWritten
from empirisk.evaluation.metrics import Metric
from empirisk.fits.fit import listening_to
from empirisk.league.ahead import Ahead
from empirisk.league.arena import ENOUGH, Arena
from empirisk.league.calibrate import calibrated
from empirisk.league.clock import GRACE, LONGER, REFIT, Clock, Slow, Stopped, afterwards
from empirisk.league.compiling import Compiling, heard, load
from empirisk.league.contestants import VOTE, Contestant, Size, around
from empirisk.league.presses import Presses
from empirisk.league.split import reads_codes
from empirisk.league.vote import can_vote, join, members, votes
from empirisk.linalg import threads
from empirisk.tables.model import uncalibrated

#: After the first fold this many settings of a contestant play on, and this many where fits take long.
FINALISTS, FEW_FINALISTS = 2, 1
#: With a limit of time: rows of the first round, how many times as many each further round has, and the share of all
#: rows above which a part is all of them.
FIRST_ROWS, GROWTH, MOST = 2500, 4, 0.6
#: Rows of the first round at the least, and the times that learning from a row takes longer than reading it, about.
LEAST_FIRST, LEARNING_TO_READING = 500, 20
#: The leaders, and the strong and cheap that come first, may take two thirds of the time that is left, as if so many
#: more waited. For the others of the first round, further rounds are so many more that wait.
MOST_WAITING, FURTHER_ROUNDS = 2, 12
#: As long as these play, time is kept for a refit of the leader on so many times the rows of the first round.
FIRST_REFIT = 16
#: The greatest power of the number of rows that the time of a fit grows with.
MOST_GROWTH = 2.5
#: A fit on fewer rows than this many times those of the last one is not worth its time.
WORTH = 1.5
#: Seconds of a processor before the contest ends in which nothing is compiled: a function cannot be stopped half-way.
COMPILING = 2.0
#: As many go on to the next round at the least, and vote at the most.
FEWEST = 3
#: Rows that tell the settings of one machine apart.
TELLING = 1000
#: Rows times classes up to which what was fitted is kept for every fold.
SMALL = 20_000
#: The limit of a machine, and of one inside a calibration.
TIMED = ("max_time", "estimator__max_time")
#: Why fits end that were not let finish: in ``stopped_`` of a convex machine, and of an ensemble.
CUT = frozenset({Status.TIME, Status.INTERRUPTED, Status.EARLY, "max_time", "callback"})


@dataclass(frozen=True)
class Standing:
    """How one contestant did.

    Attributes
    ----------
    name, title : str
        The contestant.
    place : int
        Its place in the order of simplicity, simplest first.
    machine : estimator
        The setting that did best, unfitted.
    scores : array
        Its score on every fold played, the greater the better.
    seconds, predicting : float
        Mean time of a fit, and of its predictions for the rows that judge it.
    certificate : str
        What the last fit proves, in words; empty where there is nothing to prove.
    state : str
        "playing", "done", "tried" (on a part of the rows or of the folds, for want of time), "late" (no time even for
        that), "stopped" (by the clock or by Ctrl-C) or "out".
    remark : str
        Why it is out, or what went wrong.
    judged, rows : int
        Rows of the folds played that judged it, and training rows of each.
    growth, least_growth : float
        The power of the number of rows that the seconds grow with, and the least that it may be.
    """

    name: str
    title: str
    place: int
    machine: Any = None
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    seconds: float = 0.0
    predicting: float = 0.0
    certificate: str = ""
    state: str = "playing"
    remark: str = ""
    judged: int = 0
    rows: int = 0
    growth: float = 1.0
    least_growth: float = 0.5

    @property
    def eligible(self) -> bool:
        """Whether it may win: it was judged as far as time allowed, or by many rows until it was stopped."""
        return self.state in ("done", "tried") or (self.state == "stopped" and self.judged >= ENOUGH)

    def seconds_for(self, rows: float) -> float:
        """Seconds that a fit on so many rows takes, as far as one knows."""
        return self.seconds * (rows / max(self.rows, 1)) ** self.growth

    def rows_for(self, seconds: float) -> int:
        """Rows of a fit that takes so many seconds, as far as one knows."""
        times = max(seconds, 0.0) / max(self.seconds, 1e-9)
        return int(min(self.rows * times ** (1 / self.growth), 1 << 62))

    def on(self, rows: int, seconds: float) -> "Standing":
        """The standing with what a fit on so many rows took."""
        growth = self.growth
        if 0 < self.rows < rows and min(seconds, self.seconds) > 0:
            seen = np.log(seconds / self.seconds) / np.log(rows / self.rows)
            growth = float(np.clip(seen, self.least_growth, MOST_GROWTH))
        return replace(self, rows=rows, seconds=seconds, growth=growth)

    @property
    def mean(self) -> float:
        """The mean score over the folds played."""
        return float(self.scores.mean()) if len(self.scores) else -np.inf

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores))) if len(self.scores) > 1 else 0.0


@dataclass
class Contest:
    """Everything that is the same for all contestants; the first Ctrl-C ends it, and ``tell`` hears what it does."""

    arena: Arena
    metric: Metric
    clock: Clock
    journal: Any
    classes: int
    seed: int
    balance: bool = False
    tell: Callable[[str], None] = lambda what: None
    presses: Presses = field(default_factory=Presses)
    _fitted: dict[str, Pipeline] = field(default_factory=dict)
    _standings: dict[str, Standing] = field(default_factory=dict)
    _arenas: list[Arena] = field(default_factory=list)
    _late: list[tuple[Standing, list[Any]]] = field(default_factory=list)
    _finalists: dict[str, list[int]] = field(default_factory=dict)
    _refined: dict[str, Any] = field(default_factory=dict)
    _voters: list[Standing] = field(default_factory=list)

    def __post_init__(self):
        self._doing = ""
        self._compiling, self._ahead = Compiling(self._compiles, self._too_late_to_compile), Ahead()
        self._later: list[Contestant] = []

    def play(self, contestants: Sequence[Contestant]) -> Iterator[Standing]:
        """Standings as they change. With a limit of time the strong and cheap come first, on few rows of a fold."""
        load()
        with heard(self._compiling), self._ahead:
            for standing in self._rounds(list(enumerate(contestants))):
                known = self._standings.get(standing.name, standing)
                if standing.state == "done" or known.state != "done":  # other settings that were cut undo nothing
                    self._standings[standing.name] = standing
                    yield standing

    def _compiles(self) -> None:
        """Say so; what those who come later need is now being compiled too."""
        self.tell(f"{self._doing}: compiling, once")
        if not self._ahead.running:
            arena, names = self._arenas[-1], [(one.name, one.codes) for one in self._later]
            parts = {
                codes: (self._size(arena, codes), *arena.fold(0, codes)[:2]) for codes in {two for _, two in names}
            }
            self._ahead.compile(names, parts)

    def _too_late_to_compile(self) -> bool:
        return self.clock.learned and self.clock.deadline - time.perf_counter() < COMPILING * self.clock.slowness

    def _rounds(self, everyone: list[tuple[int, Contestant]]) -> Iterator[Standing]:
        """Rounds on parts of the first fold where time is short, then all folds, then the slow ones once more."""
        votes = [place for place, contestant in everyone if contestant is VOTE]
        everyone = [pair for pair in everyone if pair[1] is not VOTE]
        order = sorted(everyone, key=lambda pair: pair[1].turn)
        for number, arena in enumerate(self._parts()):
            yield from self._round(order, arena, first=number == 0)
            order = self._best(order)
            if arena.rows == self.arena.rows and len(arena.folds[0][1]) >= TELLING:
                yield from self._vote(votes, arena)
                yield from self._refine(arena, votes)
        if self.clock.limited:
            yield from self._round(order, self.arena)
            yield from self._refine(self.arena, votes)
        yield from self._round(self._best_first(everyone), self.arena)
        late, self._late = sorted(self._late, key=lambda entry: -entry[0].mean), []
        for standing, machines in [one for one in late if self._standings[one[0].name].state != "done"]:
            self.clock.begin_turn(0)
            # What was played is in the journal: it goes on where it was.
            yield from self._matches(standing, machines, self._affordable(standing, self.arena))
        yield from self._vote(votes, self.arena)
        if self.clock.limited:
            yield from self._refine(self.arena, votes)

    def _refine(self, arena: Arena, votes: list[int]) -> Iterator[Standing]:
        """Settings around those of each leader, while they are better and can be fitted again in time; then a vote."""
        leaders = self._leaders(arena)
        for leader in leaders[: None if leaders and can_vote(leaders[0].machine, self.classes) else 1]:
            standing, before = leader, ""
            while before != repr(standing.machine) and self._has_time_for(standing):
                before, changed = repr(standing.machine), around(standing.machine)
                self._begin_turn(MOST_WAITING)
                if changed:
                    yield from self._matches(standing, [standing.machine, *changed], arena)
                if self._standings[leader.name].state == "out":  # a change that cannot be fitted is no reason to go
                    yield standing
                standing = self._standings[leader.name]
            self._refined[leader.name] = standing.machine
            yield from self._vote(votes, arena)

    def _vote(self, places: list[int], arena: Arena) -> Iterator[Standing]:
        """The mean of what the best say, of those that read the same encoding of the table."""
        leaders = self._leaders(arena)
        trees = [arena.two and reads_codes(one.machine) for one in leaders]
        alike = [one for one, codes in zip(leaders, trees, strict=True) if codes == trees[0]]
        self._voters = [one for one in alike if can_vote(one.machine, self.classes)]
        while len(self._voters) > 1 and self.clock.rest < self._afterwards(self._voters, LONGER):
            self._voters.pop()  # one of them on all rows is better than all of them on fewer
        for place in places:
            standing = replace(self._of(place, VOTE), growth=max((one.growth for one in self._voters), default=1.0))
            if len(self._voters) > 1 and self._voters[0] is leaders[0]:
                self._begin_turn(0)
                machines = votes([one.machine for one in self._voters], self.classes)
                yield from self._matches(standing, machines, arena)
            elif not len(standing.scores):
                yield replace(
                    standing, state="out", remark="it needs two of the best that give numbers, or probabilities"
                )

    def _leaders(self, arena: Arena) -> list[Standing]:
        """The best, if they have played on all of these folds; the simplest of all does not lead, nor does a vote."""
        able = [one for one in self._standings.values() if one.eligible and one.place and one.name != VOTE.name]
        whole = [one for one in able if one.rows == arena.rows and len(one.scores) >= len(arena.folds)]
        whole = sorted(whole, key=lambda one: -one.mean)[:FEWEST]
        return whole if whole and best_of(able).name in {one.name for one in whole} else []

    def _has_time_for(self, standing: Standing) -> bool:
        """Whether there is time for a match of settings that take twice as long, and for their refit."""
        return self.clock.rest > 2 * (standing.seconds + standing.predicting + self._afterwards([standing]))

    def _afterwards(self, standings: Sequence[Standing], longer: float = REFIT) -> float:
        """Seconds that the refit of these on all rows takes, so many times what is expected, and their test."""
        fits = sum(one.seconds_for(len(self.arena.y)) for one in standings)
        return afterwards(fits, sum(one.predicting for one in standings), longer)

    def _parts(self) -> Iterator[Arena]:
        """Ever more rows of the first fold, all of them at last; nothing where there is time."""
        reading = max(self.clock.opened - self.clock.begin, 1e-9) / len(self.arena.y)
        rows = int(min(FIRST_ROWS, max(LEAST_FIRST, self.clock.left / (LEARNING_TO_READING * reading))))
        while self.clock.limited:
            # A part that is most of the rows might as well be all of them.
            part = self.arena.part(rows if rows < MOST * self.arena.rows else self.arena.rows)
            yield part
            if part.rows == self.arena.rows:
                return
            rows *= GROWTH

    def _best(self, order: list[tuple[int, Contestant]]) -> list[tuple[int, Contestant]]:
        """The better half of those that can play, best first, and the early ones that were only being compiled."""
        able = [pair for pair in order if self._of(*pair).state != "out"]
        ranked = sorted((pair for pair in able if len(self._of(*pair).scores)), key=lambda pair: -self._of(*pair).mean)
        unknown = [pair for pair in able if pair[1].early and not len(self._of(*pair).scores)]
        return ranked[: max(FEWEST, len(ranked) // 2)] + unknown

    def _best_first(self, everyone: list[tuple[int, Contestant]]) -> list[tuple[int, Contestant]]:
        """The order in which all folds are played: simple ones first, unless time is short."""
        if self.clock.limited:
            waiting = [pair for pair in everyone if self._of(*pair).state not in ("out", "done")]
            return sorted(waiting, key=lambda pair: -self._of(*pair).mean)
        size = self._size(self.arena)
        return sorted(everyone, key=lambda pair: pair[1].slow(size))

    def _of(self, place: int, contestant: Contestant) -> Standing:
        """How a contestant stands."""
        least, first = contestant.growths
        new = Standing(contestant.name, contestant.title, place, growth=first, least_growth=least)
        return self._standings.get(contestant.name, new)

    def _size(self, arena: Arena, codes: bool = False) -> Size:
        """What settings depend on: those of a part are those of all rows, for which the winner is fitted again."""
        size = Size.of(*arena.fold(0, codes)[:2], self.classes, self.seed)
        return replace(size, rows=self.arena.rows, codes=arena.encoders[codes].coded_places)

    def _round(self, order: list[tuple[int, Contestant]], arena: Arena, first: bool = False) -> Iterator[Standing]:
        """Contestant after contestant; in a first round each with one setting."""
        self._arenas.append(arena)
        self._begin_turn(0)
        if len(self._arenas) > 1 and self.clock.left <= self._encoding(arena, 0):
            raise Stopped("the time is over")
        sizes: dict[bool, Size] = {}
        for turn, (place, contestant) in enumerate(order):
            waiting = len(order) - turn - 1
            self._later = [later for _, later in order[turn + 1 :]]
            if not first:
                self._begin_turn(min(waiting, MOST_WAITING))
            elif contestant.early:
                self._begin_turn(MOST_WAITING, FIRST_REFIT * arena.rows)
            else:
                self._begin_turn(waiting + FURTHER_ROUNDS)
            codes = contestant.codes and arena.two
            size = sizes[codes] = sizes.get(codes) or self._size(arena, codes)
            self._large = size.large
            excuse = contestant.excuse(size)
            if excuse:
                yield replace(self._of(place, contestant), state="out", remark=excuse)
                continue
            quick = contestant.quick(size) if self.clock.limited else []
            machines = [*quick, *contestant.machines(size)]
            numbers = [0] if first else self._finalists.get(contestant.name, list(range(len(machines))))
            machines = [machines[k] for k in numbers]
            if self.balance and not contestant.fair:
                machines = [_balanced(machine) for machine in machines]
            if self.metric.of_probabilities:
                machines = [calibrated(machine, arena.fold(0)[1]) for machine in machines]
            if contestant.name in self._refined:
                machines, numbers = [self._refined[contestant.name]], [0]
            standing = self._of(place, contestant)
            part = arena if arena is self.arena else self._affordable(standing, arena)
            best = yield from self._matches(standing, machines, part)
            if not first:
                self._finalists[contestant.name] = [numbers[k] for k in best]

    def _affordable(self, standing: Standing, arena: Arena) -> Arena:
        """The arena, or fewer of its rows where the turn of one that has played before is too short for all of them."""
        if not (self.clock.limited and standing.rows):
            return arena
        left = self.clock.left - standing.predicting - self._encoding(arena, 0, reads_codes(standing.machine))
        rows = standing.rows_for(left / LONGER)
        enough = standing.rows_for(left) >= arena.rows or rows < WORTH * standing.rows
        return arena if enough else self.arena.part(rows)

    def _begin_turn(self, waiting: int, most: float = np.inf) -> None:
        """Keep time for the refit of the leader on so many rows, and give the next one its share of what is left."""
        rows = min(len(self.arena.y), most)
        eligible, fit, predicting = [one for one in self._standings.values() if one.eligible], 0.0, 0.0
        self.clock.learned = any(one.place for one in eligible)
        if eligible:
            leader = best_of(eligible)
            fit, predicting = leader.seconds_for(rows), leader.predicting
        self.clock.keep(self.encoding(min(self.arena.rows, rows)), fit, predicting, rows / len(self.arena.y))
        self.clock.begin_turn(waiting)

    def encoding(self, rows: float) -> float:
        """Seconds that the encoding of so many rows takes, by what the largest encoding so far took."""
        known = max((arena for arena in self._arenas if arena.seconds), key=lambda arena: arena.rows, default=None)
        return 0.0 if known is None else rows * known.seconds / known.rows

    def _encoding(self, arena: Arena, number: int, codes: bool = False) -> float:
        """Seconds until a fold is encoded."""
        return 0.0 if arena.has(number, codes) else self.encoding(arena.rows)

    def _matches(self, standing: Standing, machines: list[Any], arena: Arena) -> Generator[Standing, None, list[int]]:
        """One contestant: all its settings on the first fold, the best of them, which are returned, on the others."""
        tables: list[list[dict]] = [[] for _ in machines]
        playing = list(range(len(machines)))
        try:
            for number in range(len(arena.folds)):
                for index in playing:
                    tables[index].append(self._match(standing, machines[index], arena, number, tables[index]))
                    if number == 0 or index == playing[-1]:
                        best = max((k for k in playing if len(tables[k]) > number), key=lambda k: _mean(tables[k]))
                        told = _told(standing, machines[best], tables[best], arena.rows)
                        # What more rows are too many for may still be better than the others on them.
                        if arena is self.arena or told.mean >= standing.mean:
                            standing = told
                        self._forget(standing)
                yield standing
                playing = self._best_settings(tables)
        except Stopped as reason:
            yield self._cut_short(standing, "stopped", str(reason))
            raise
        except Slow as problem:
            if arena is self.arena:
                self._late.append((standing, machines))
            if any(tables) or not len(standing.scores):
                yield self._cut_short(standing, "late", str(problem))
            return self._best_settings(tables)
        except NotWritten:  # the journal: no contestant's fault
            raise
        except MemoryError:
            yield replace(standing, state="out", remark="it needs more memory than there is")
            return playing
        except Exception as problem:  # noqa: BLE001 - whatever it is, the others play on, and the table shows it
            yield replace(standing, state="out", remark=sentence(problem))
            return playing
        yield replace(standing, state="done" if arena is self.arena else "tried")
        return playing

    def _best_settings(self, tables: list[list[dict]]) -> list[int]:
        """The numbers of those that play on, best first: of those that were played, or the first where none was."""
        known = [k for k in range(len(tables)) if tables[k]]
        most = FEW_FINALISTS if self._large else FINALISTS
        return sorted(known, key=lambda k: (-len(tables[k]), -_mean(tables[k])))[:most] or [0]

    def _cut_short(self, standing: Standing, state: str, remark: str) -> Standing:
        """The standing of one whose time is over: what it has played under a limit of time counts."""
        counts = self.clock.limited and len(standing.scores) > 0
        return replace(standing, state="tried" if counts else state, remark=remark)

    def fitted(self, standing: Standing) -> list[Pipeline]:
        """What was fitted on folds with the settings of a standing and kept, the last one last."""
        return [self._fitted[key] for key in self._keys(standing)]

    def _keys(self, standing: Standing) -> list[str]:
        return [key for key in self._fitted if key.startswith(_settings(standing))]

    def _forget(self, standing: Standing) -> None:
        """Keep what was fitted for the leaders: for a vote, and where there is no time to fit the best again."""
        leaders = sorted({**self._standings, standing.name: standing}.values(), key=lambda one: -one.mean)
        # On all folds where that is little, else on the last.
        last = -1 if self.arena.rows * max(self.classes, 1) > SMALL else 0
        keys = [self._keys(one) for one in leaders[: FEWEST + 1]]
        self._fitted = {key: self._fitted[key] for one in keys for key in one[last:]}

    def _joined(self, machine: Any, arena: Arena, number: int, X: Any, y: NDArray) -> float | None:
        """Make a vote of machines that were fitted on this fold, if they are kept, and say how long their fits took."""
        keys = [_key(one, one.machine, arena, number) for one in self._voters[: len(members(machine))]]
        if not hasattr(machine, "estimators") or not all(key in self._fitted for key in keys):
            return None
        join(machine, [self._fitted[key][-1] for key in keys], X, y)
        return sum(self.journal.done[key]["seconds"] for key in keys)

    def _match(self, standing: Standing, machine: Any, arena: Arena, number: int, before: list[dict]) -> dict[str, Any]:
        """One setting on one fold; from the journal if it was played before."""
        if self.presses.first.is_set():
            raise Stopped("interrupted")
        key = _key(standing, machine, arena, number)
        if key in self.journal.done:
            return self.journal.done[key]
        # The simplest always plays once, so that there is a result.
        limited = self.clock.limited and (standing.place > 0 or len(standing.scores) > 0)
        if limited:
            self.clock.check(self._expected(standing, machine, arena, number, before))
        self._doing = f"{standing.title}, fold {number + 1} of {len(self.arena.folds)}{self._rows_of(arena)}"
        self.tell(self._doing)
        X, y, X_new, y_new = arena.fold(number, reads_codes(machine))
        machine = clone(machine)
        if limited:
            limit(machine, max(self.clock.left, 0.01))

        def now() -> float:
            return time.perf_counter() - self._compiling.seconds

        begin = now()
        with self._whole(limited):
            seconds = self._joined(machine, arena, number, X, y)
            if seconds is None:
                _fit(machine, X, y, lambda: self.clock.deadline + GRACE if limited else np.inf)
                seconds = now() - begin
            begin = now()
            score = float(self.metric.scorer(machine, X_new, y_new))
        certificate = getattr(uncalibrated(machine), "certificate_", None)
        proof = "" if certificate is None else f"gap {certificate.relative_gap:.0e}"
        played = {"score": score, "seconds": seconds, "certificate": proof, "rows": len(y_new)}
        played["match"] = seconds + now() - begin
        self.journal.add(key, played)
        limit(machine, None)
        self._fitted[key] = arena.pipeline(number, machine)
        return played

    def _expected(self, standing: Standing, machine: Any, arena: Arena, number: int, before: list[dict]) -> float:
        """Seconds that a match takes: as long as the last one, on more rows longer."""
        match = before[-1]["match"] if before else standing.seconds_for(arena.rows) + standing.predicting
        return match + self._encoding(arena, number, reads_codes(machine))

    def _rows_of(self, arena: Arena) -> str:
        return "" if arena.rows == self.arena.rows else f", {arena.rows:,} rows"

    @contextmanager
    def _whole(self, limited: bool) -> Iterator[None]:
        """Work in here is done as a whole, or `Stopped` or `Slow` says what has cut it; then it has no score."""
        pressed = self.presses.first.is_set

        def over() -> bool:
            return pressed() or (limited and self.clock.left <= 0)

        try:
            # Fits and predictions run in pieces that look at this flag.
            with listening_to(pressed), threads.stopping(over):
                yield
        except threads.Stopped:
            if not pressed():
                self.clock.check(np.inf)  # if it is not the time that is over, then this contestant's turn
        except KeyboardInterrupt:  # by the second Ctrl-C, or by a fit that heard the first and has nothing to show
            if self.presses.second.is_set() or not pressed():
                raise
        if pressed():
            raise Stopped("interrupted")


def _fit(machine: Any, X: Any, y: NDArray, deadline: Callable[[], float]) -> None:
    """Fit, and raise where the clock or the user ended it early."""
    with warnings.catch_warnings(action="ignore"):  # what did not converge is said by its certificate, in the table
        threads.until(deadline, lambda: machine.fit(X, y))
    if was_cut(machine):
        raise threads.Stopped


def was_cut(machine: Any) -> bool:
    """Whether something ended the fit of a machine, or of one that votes, before it was whole."""
    return any(getattr(uncalibrated(one), "stopped_", None) in CUT for one in members(machine))


def limit(machine: Any, seconds: float | None) -> None:
    """Let the fit of a machine, and of each one that votes, take so many seconds at most."""
    for one in (*members(machine), *getattr(machine, "estimators", ())):
        one.set_params(**{name: seconds for name in TIMED if name in one.get_params()})


def _settings(standing: Standing, machine: Any = None) -> str:
    """How the keys of matches with the settings of a standing, or with others, begin."""
    machine = standing.machine if machine is None else machine
    votes = getattr(machine, "estimators", None)
    return f"{standing.name} | {machine if votes is None else (machine.weights, votes)!r} | "


def _key(standing: Standing, machine: Any, arena: Arena, number: int) -> str:
    return f"{_settings(standing, machine)}{number} | {arena.rows}"


def sentence(problem: Exception) -> str:
    """What went wrong; the kind of error too, where the text alone was not written for users."""
    told = " ".join(str(problem).split())
    return told if isinstance(problem, ValueError) and told else f"{type(problem).__name__}: {told}".rstrip(": ")


def _balanced(machine: Any) -> Any:
    """The machine with classes that count alike, where it knows weights of classes."""
    return machine.set_params(class_weight="balanced") if "class_weight" in machine.get_params() else machine


def _mean(table: list[dict]) -> float:
    return float(np.mean([played["score"] for played in table]))


def _told(standing: Standing, machine: Any, table: list[dict], rows: int) -> Standing:
    """The standing after the matches in the table."""
    return replace(
        standing.on(rows, float(np.mean([played["seconds"] for played in table]))),
        machine=machine,
        scores=np.array([played["score"] for played in table]),
        predicting=float(np.mean([played["match"] - played["seconds"] for played in table])),
        certificate=table[-1]["certificate"],
        judged=sum(played["rows"] for played in table),
        state="playing",
        remark="",
    )


def winner(standings: Sequence[Standing]) -> Standing:
    """The simplest contestant whose mean is below the best by no more than one standard error of the difference."""
    eligible = [standing for standing in standings if standing.eligible]
    if not eligible and standings and all(standing.state == "out" for standing in standings):
        raise EmpiriskError(f"no machine can learn this table; {standings[0].title}: {standings[0].remark}")
    if not eligible:
        raise EmpiriskError("no machine finished in the time given; raise time, or give fewer machines.")
    best = best_of(eligible)
    return min((s for s in eligible if _near(s, best)), key=lambda standing: standing.place)


def best_of(standings: Sequence[Standing]) -> Standing:
    """The best, by the folds that two of them have both played: folds are hard or easy for all machines."""

    def better(one: Standing, other: Standing) -> Standing:
        common = min(len(one.scores), len(other.scores))
        return other if other.scores[:common].mean() > one.scores[:common].mean() else one

    return reduce(better, sorted(standings, key=lambda standing: (-len(standing.scores), -standing.mean)))


def _near(standing: Standing, best: Standing) -> bool:
    """Folds are hard or easy for all machines: the difference is known better than either mean."""
    common = min(len(standing.scores), len(best.scores))
    behind = replace(best, scores=best.scores[:common] - standing.scores[:common])
    return standing is best or (standing.rows == best.rows and behind.mean <= behind.error)
