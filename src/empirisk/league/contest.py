"""The contest: every kind of machine on the same folds, its settings chosen on the way, within a limit of time."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.certificate import Status
from empirisk.errors import EmpiriskError, NotWritten
from empirisk.fits.fit import listening_to
from empirisk.league.clock import Clock, Slow, Stopped, afterwards
from empirisk.league.contestants import Contestant, Size
from empirisk.league.presses import Presses
from empirisk.linalg import threads
from empirisk.settings import settings

#: After the first fold this many settings of a contestant play on, and this many where fits take long.
FINALISTS, FEW_FINALISTS = 2, 1
#: Rows on which a contestant that lacks the time for all folds was judged well enough to win.
ENOUGH = 5000
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
        "playing", "done", "stopped" (by the clock or by Ctrl-C) or "out".
    remark : str
        Why it is out, or what went wrong.
    judged : int
        Rows of the folds played that judged it.
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

    @property
    def eligible(self) -> bool:
        """Whether it may win: it has played all folds, or many rows have judged it until the time was over."""
        return self.state == "done" or (self.state in ("out", "stopped") and self.judged >= ENOUGH)

    @property
    def mean(self) -> float:
        """The mean score over the folds played."""
        return float(self.scores.mean()) if len(self.scores) else -np.inf

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores))) if len(self.scores) > 1 else 0.0


class Arena:
    """The training part, its folds, and what the encoder makes of each; encodings are kept while memory allows.

    Parameters
    ----------
    frame, y
        The training part: columns without the target, and the target as class numbers or numbers.
    encoder : transformer
        Fitted anew on the training rows of every fold.
    folds : list of (train, validation)
        Row numbers.

    Attributes
    ----------
    seconds : float
        The longest that an encoding took.
    """

    def __init__(self, frame: Any, y: NDArray, encoder: Any, folds: Sequence[tuple[NDArray, NDArray]]):
        self.frame, self.y, self.encoder, self.folds = frame, y, encoder, list(folds)
        self.seconds = 0.0
        self._kept: dict[int, tuple] = {}
        self._bytes = 0

    def fold(self, number: int) -> tuple[Any, NDArray, Any, NDArray]:
        """Encoded training rows, their targets, encoded validation rows, their targets."""
        if number not in self._kept:
            begin = time.perf_counter()
            train, validation = self.folds[number]
            encoder = clone(self.encoder)
            # The encoding of training rows may differ: it must not know their own targets.
            encoded = encoder.fit_transform(self.frame[train], self.y[train]), encoder.transform(self.frame[validation])
            self.seconds = max(self.seconds, time.perf_counter() - begin)
            self._bytes += sum(getattr(X, "nbytes", 0) or X.data.nbytes for X in encoded)
            parts = encoded[0], self.y[train], encoded[1], self.y[validation]
            if self._bytes > settings().memory // 4:
                return parts
            self._kept[number] = parts
        return self._kept[number]


@dataclass
class Contest:
    """Everything that is the same for all contestants; the first Ctrl-C ends it, and ``tell`` hears what it does."""

    arena: Arena
    scorer: Callable[..., float]
    clock: Clock
    journal: Any
    classes: int
    seed: int
    balance: bool = False
    tell: Callable[[str], None] = lambda what: None
    presses: Presses = field(default_factory=Presses)
    _late: list[tuple[Standing, list[Any]]] = field(default_factory=list)
    _top: float = -np.inf

    def play(self, contestants: Sequence[Contestant]) -> Iterator[Standing]:
        """Standings as they change, contestant after contestant; the slow ones once more with the time that is left."""
        size = Size.of(*self.arena.fold(0)[:2], self.classes, self.seed)
        finalists = FEW_FINALISTS if size.large else FINALISTS
        # Where the time may not do for all, those that take longest wait.
        order = sorted(enumerate(contestants), key=lambda pair: pair[1].slow(size))
        for turn, (place, contestant) in enumerate(order):
            standing = Standing(contestant.name, contestant.title, place)
            self.clock.keep(self.arena.seconds)
            self.clock.begin_turn(len(order) - turn - 1)
            excuse = contestant.excuse(size)
            if excuse:
                yield replace(standing, state="out", remark=excuse)
                continue
            machines = contestant.machines(size)
            if self.balance and not contestant.fair:
                machines = [_balanced(machine) for machine in machines]
            yield from self._matches(standing, machines, finalists)
        late, self._late = sorted(self._late, key=lambda entry: -entry[0].mean), []
        for standing, machines in late:
            self.clock.begin_turn(0)
            # What was played is in the journal: it goes on where it was.
            yield from self._matches(replace(standing, scores=np.zeros(0)), machines, finalists)

    def _matches(self, standing: Standing, machines: list[Any], finalists: int) -> Iterator[Standing]:
        """One contestant: all its settings on the first fold, the best of them on the others."""
        tables: list[list[dict]] = [[] for _ in machines]
        playing = list(range(len(machines)))
        try:
            for number in range(len(self.arena.folds)):
                for index in playing:
                    tables[index].append(self._match(standing, machines[index], number, tables[index]))
                best = sorted(playing, key=lambda index: -_mean(tables[index]))
                standing = _told(standing, machines[best[0]], tables[best[0]])
                yield standing
                playing = sorted(best[:finalists])
        except Stopped as reason:
            yield replace(standing, state="stopped", remark=str(reason))
            raise
        except Slow as problem:
            self._late.append((standing, machines))
            yield self._ended(replace(standing, state="out", remark=str(problem)))
            return
        except NotWritten:  # the journal: no contestant's fault
            raise
        except MemoryError:
            yield replace(standing, state="out", remark="it needs more memory than there is")
            return
        except Exception as problem:  # noqa: BLE001 - whatever it is, the others play on, and the table shows it
            yield replace(standing, state="out", remark=sentence(problem))
            return
        yield self._ended(replace(standing, state="done"))

    def _ended(self, standing: Standing) -> Standing:
        """The standing; where it is the best so far, time is kept for its refit."""
        if standing.eligible and standing.mean >= self._top:
            self._top = standing.mean
            self.clock.keep(self.arena.seconds, standing.seconds, standing.predicting)
        return standing

    def _match(self, standing: Standing, machine: Any, number: int, before: list[dict]) -> dict[str, Any]:
        """One setting on one fold, from the journal if it was played before."""
        if self.presses.first.is_set():
            raise Stopped("interrupted")
        key = f"{standing.name} | {machine!r} | {number}"
        if key in self.journal.done:
            return self.journal.done[key]
        if standing.place > 0:  # the simplest always plays, so that there is a result
            # A match that takes as long as the last one must end in time for the refit.
            self.clock.check(_match_and_refit(before[-1]) if before else 0.0)
        self.tell(f"{standing.title}, fold {number + 1} of {len(self.arena.folds)}")
        X, y, X_new, y_new = self.arena.fold(number)
        machine = clone(machine)
        if standing.place > 0 and np.isfinite(self.clock.left) and "max_time" in machine.get_params():
            machine.set_params(max_time=max(self.clock.left, 0.01))
        begin = time.perf_counter()
        with self._whole(limited=standing.place > 0):
            _fit(machine, X, y)
            seconds = time.perf_counter() - begin
            score = float(self.scorer(machine, X_new, y_new))
        certificate = getattr(machine, "certificate_", None)
        proof = "" if certificate is None else f"gap {certificate.relative_gap:.0e}"
        played = {"score": score, "seconds": seconds, "certificate": proof}
        played |= {"match": time.perf_counter() - begin, "rows": len(y_new)}
        self.journal.add(key, played)
        return played

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
                self.clock.check()  # it may be this contestant's turn that is over, and not the time
                raise Stopped("the time is over") from None
        except KeyboardInterrupt:  # by the second Ctrl-C, or by a fit that heard the first and has nothing to show
            if self.presses.second.is_set() or not pressed():
                raise
        if pressed():
            raise Stopped("interrupted")


def _fit(machine: Any, X: Any, y: NDArray) -> None:
    """Fit, and raise where the clock or the user ended it early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fit did not converge is said by its certificate, in the table
        machine.fit(X, y)
    if was_cut(machine):
        raise threads.Stopped


def was_cut(machine: Any) -> bool:
    """Whether something ended the fit of a machine before it was whole."""
    return getattr(machine, "stopped_", None) in CUT


def sentence(problem: Exception) -> str:
    """What went wrong; the kind of error too, where the text alone was not written for users."""
    told = " ".join(str(problem).split())
    return told if isinstance(problem, ValueError) and told else f"{type(problem).__name__}: {told}".rstrip(": ")


def _balanced(machine: Any) -> Any:
    """The machine with classes that count alike, where it knows weights of classes."""
    return machine.set_params(class_weight="balanced") if "class_weight" in machine.get_params() else machine


def _match_and_refit(played: dict) -> float:
    """Seconds that one more match like this one takes, with the refit and the test."""
    return played["match"] + afterwards(played["seconds"], played["match"] - played["seconds"])


def _mean(table: list[dict]) -> float:
    return float(np.mean([played["score"] for played in table]))


def _told(standing: Standing, machine: Any, table: list[dict]) -> Standing:
    """The standing after the matches in the table."""
    return replace(
        standing,
        machine=machine,
        scores=np.array([played["score"] for played in table]),
        seconds=float(np.mean([played["seconds"] for played in table])),
        predicting=float(np.mean([played["match"] - played["seconds"] for played in table])),
        certificate=table[-1]["certificate"],
        judged=sum(played["rows"] for played in table),
    )


def winner(standings: Sequence[Standing]) -> Standing:
    """The simplest contestant whose mean is below the best by no more than one standard error of the difference."""
    eligible = [standing for standing in standings if standing.eligible]
    if not eligible and standings and all(standing.state == "out" for standing in standings):
        raise EmpiriskError(f"no machine can learn this table; {standings[0].title}: {standings[0].remark}")
    if not eligible:
        raise EmpiriskError("no machine finished in the time given; raise time, or give fewer machines.")
    best = max(eligible, key=lambda standing: standing.mean)
    return min((s for s in eligible if _near(s, best)), key=lambda standing: standing.place)


def _near(standing: Standing, best: Standing) -> bool:
    """Folds are hard or easy for all machines: the difference is known better than either mean."""
    common = min(len(standing.scores), len(best.scores))
    behind = replace(best, scores=best.scores[:common] - standing.scores[:common])
    return standing is best or behind.mean <= behind.error
