"""Plain records of a contest: how one fold went, and how a candidate did so far. Both have a form in JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.messages import coded

#: Rows that judge a machine well enough where time is short.
ENOUGH_JUDGES = 5000
#: The greatest power of the number of rows that the time of a fit grows with.
MAX_GROWTH = 2.5
#: What a simpler machine than the best may cost: this share of what the best gains over guessing.
PRICE = 0.01


def as_json(value: Any) -> Any:
    """A value as JSON has it: records by their ``to_dict``, paths and moments as text, what is no number as None.

    >>> as_json({"value": np.float64(1.5), "interval": (float("nan"), np.inf), "rows": np.arange(2)})
    {'value': 1.5, 'interval': [None, None], 'rows': [0, 1]}
    """
    if hasattr(value, "to_dict"):
        return as_json(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


@dataclass(frozen=True)
class FoldResult:
    """How one setting of a candidate did on one fold.

    Attributes
    ----------
    score : float
        The greater the better; meaningless if the fold was not played to its end.
    seconds, predicting : float
        Of the fit, and of the predictions for the rows that judge it.
    certificate : str
        What the fit proves, in words; empty where there is nothing to prove.
    rows : int
        Rows that judged it.
    state : str
        "played", or why there is no score: "late" (its share of the time is over), "stopped" (the whole contest is) or
        "out" (it failed).
    reason : str
        Why, in words.
    """

    score: float = np.nan
    seconds: float = 0.0
    predicting: float = 0.0
    certificate: str = ""
    rows: int = 0
    state: str = "played"
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class CandidateResult:
    """How one candidate did so far.

    Attributes
    ----------
    name, title : str
        The candidate.
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
    sign : float
        -1 where the metric is an error, which is the better the smaller it is.
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
    sign: float = 1.0

    @property
    def eligible(self) -> bool:
        """Whether it may win: it was judged as far as time allowed, or by many rows until it was stopped."""
        return self.state in ("done", "tried") or (self.state == "stopped" and self.judged >= ENOUGH_JUDGES)

    def seconds_for(self, rows: float) -> float:
        """Seconds that a fit on so many rows takes, as far as one knows."""
        return self.seconds * (rows / max(self.rows, 1)) ** self.growth

    def rows_for(self, seconds: float) -> int:
        """Rows of a fit that takes so many seconds, as far as one knows."""
        times = max(seconds, 0.0) / max(self.seconds, 1e-9)
        return int(min(self.rows * times ** (1 / self.growth), 1 << 62))

    def timed(self, rows: int, seconds: float) -> "CandidateResult":
        """The result with what a fit on so many rows took, and how seconds grow with rows where that is seen."""
        growth = self.growth
        if 0 < self.rows < rows and min(seconds, self.seconds) > 0:
            seen = np.log(seconds / self.seconds) / np.log(rows / self.rows)
            growth = float(np.clip(seen, self.least_growth, MAX_GROWTH))
        return replace(self, rows=rows, seconds=seconds, growth=growth)

    def after(self, machine: Any, played: Sequence[FoldResult], rows: int) -> "CandidateResult":
        """The result once a setting has played some folds of so many rows."""
        return replace(
            self.timed(rows, float(np.mean([one.seconds for one in played]))),
            machine=machine,
            scores=np.array([one.score for one in played]),
            predicting=float(np.mean([one.predicting for one in played])),
            certificate=played[-1].certificate,
            judged=sum(one.rows for one in played),
            state="playing",
            remark="",
        )

    @property
    def mean(self) -> float:
        """The mean score over the folds played."""
        return float(self.scores.mean()) if len(self.scores) else -np.inf

    @property
    def error(self) -> float:
        """The standard error of the mean; one fold tells nothing of it."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores))) if len(self.scores) > 1 else np.nan

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it: scores as the metric gives them, errors positive, and the settings as text.

        >>> told = CandidateResult("tree", "Pruned tree", 1, scores=np.array([-2.0, -4.0]), sign=-1.0).to_dict()
        >>> told["score"], told["error"], told["scores"]
        (3.0, 1.0, [2.0, 4.0])
        >>> CandidateResult.from_dict(told).mean
        -3.0
        """
        told = {option: getattr(self, option) for option in PLAIN}
        return told | {
            "settings": None if self.machine is None else repr(self.machine),
            "score": self.sign * self.mean if len(self.scores) else None,
            "error": self.error,
            "scores": [self.sign * float(score) for score in self.scores],
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "CandidateResult":
        """The record from JSON; its machine is known by its text alone."""
        known = {option: told[option] for option in PLAIN}
        return cls(**known, machine=told["settings"], scores=told["sign"] * np.array(told["scores"], dtype=np.float64))


#: Attributes of a result that are plain values.
PLAIN = (
    "name",
    "title",
    "place",
    "seconds",
    "predicting",
    "certificate",
    "state",
    "remark",
    "judged",
    "rows",
    "growth",
)
PLAIN += ("least_growth", "sign")


def best_of(results: Sequence[CandidateResult]) -> CandidateResult:
    """The best: of those that have played the most folds, unless one with fewer is clearly better."""

    def better(one: CandidateResult, other: CandidateResult) -> CandidateResult:
        return other if _beats(other, one) else one

    return reduce(better, sorted(results, key=lambda one: (-len(one.scores), -one.mean)))


def _beats(other: CandidateResult, one: CandidateResult) -> bool:
    """Whether a candidate that has played as many folds as another, or fewer, is better.

    Folds are hard or easy for all machines, so that fewer folds are compared with the same ones of the other: it must
    be ahead there by the standard error of the difference, or on a single fold by what folds differ in.
    """
    if len(other.scores) == len(one.scores):
        return other.mean > one.mean
    common = len(other.scores)
    ahead = replace(other, scores=other.scores - one.scores[:common])
    luck = ahead.error if common > 1 else float(one.scores.std(ddof=1))
    return other.mean > one.mean and ahead.mean > luck


def winner(results: Sequence[CandidateResult], prefer: str = "simple") -> CandidateResult:
    """The candidate that `empirisk.report.words.rule` chooses: the simplest of those near the best, or the best."""
    eligible = [one for one in results if one.eligible]
    if not eligible and results and all(one.state == "out" for one in results):
        raise EmpiriskError(f"no machine can learn this table; {results[0].title}: {results[0].remark}")
    if not eligible:
        raise EmpiriskError(
            coded("ER033", "no machine finished in the time given; raise time, or give fewer machines.")
        )
    best = best_of(eligible)
    if prefer == "best":
        return best
    guesses = [one.mean for one in results if one.place == 0 and len(one.scores)]
    price = PRICE * (best.mean - guesses[0]) if guesses else math.inf
    return min((one for one in eligible if _near(one, best, price)), key=lambda one: one.place)


def _near(result: CandidateResult, best: CandidateResult, price: float) -> bool:
    """Folds are hard or easy for all machines: the difference is known better than either mean."""
    common = min(len(result.scores), len(best.scores))
    behind = replace(best, scores=best.scores[:common] - result.scores[:common])
    allowed = min(behind.error, price) if common > 1 else 0.0
    return result is best or (result.rows == best.rows and behind.mean <= allowed)
