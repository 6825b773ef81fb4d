"""What came out of the whole job."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.errors import listed, option
from empirisk.evaluation.intervals import Score
from empirisk.files.models import save
from empirisk.formats import metric_name, number, percent
from empirisk.league.records import CandidateResult, as_json, best_of
from empirisk.league.rows.seasons import seasonal_naive
from empirisk.league.rows.split import rare_class
from empirisk.messages import coded
from empirisk.notebook import HtmlReport, html
from empirisk.report.words import error_of

HALF = 0.5  # the probability from which the more probable one of two classes is named
LEAST_TAKEN = 10  # rows with the highest scores that are looked at for a rare class


@dataclass(frozen=True, eq=False)
class Test:
    """The test: rows that no choice has seen, used once.

    Attributes
    ----------
    truth, predictions : array
        What was, and what the model said.
    probabilities : array, rows x classes, or None
        Where the model gives them.
    decisions : array or None
        Values of the decision function, where there is one.
    scores : list of Score
        The metric first.
    luck : str
        "Was it luck?", answered in a sentence.
    threshold : (int, float) or None
        The number of a rare class, and the probability from which it is named.
    """

    truth: NDArray
    predictions: NDArray
    probabilities: NDArray | None
    decisions: NDArray | None
    scores: list[Score]
    luck: str
    threshold: tuple[int, float] | None = None

    def values_of(self, place: int) -> NDArray | None:
        """What rows are ranked by for a class: its probability or, without these, its decision values; None if none."""
        if self.probabilities is not None:
            return self.probabilities[:, place]
        if self.decisions is None:
            return None
        return self.decisions[:, place] if self.decisions.ndim == 2 else (2 * place - 1) * self.decisions


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """The result of `learn`; printed, it is the league and a sentence.

    Attributes
    ----------
    name, target : str
        Of the table, and of the column that was learned.
    model : TableModel
        Predicts from tables with the same columns.
    standings : list of CandidateResult
        The league, best first.
    winner : str
        Name of the candidate that was chosen.
    metric : str
        The score that decided.
    test : Test
        How the model does on rows it never saw.
    warnings : list of str
        What deserves a second look.
    differences : dict
        For each candidate, how it compares with the winner, in words.
    importances : list of (column, mean, deviation)
        How much the metric falls when a column is shuffled, on the test part.
    effects : list of Effect
        What the model makes of the leading columns.
    curve : LearningCurve or None
        Scores of the winner over the number of rows.
    plan : Plan
        What was learned from: rows, columns, and which of them only judged.
    errors : Errors or None
        Of numbers: the errors of the test, and the size that was to be expected of each.
    backtest : Backtest or None
        Of numbers in order of time, forecasts that begin at moments of the test.
    origin : Origin
        What it takes to make the result again.
    twins : int
        Test rows that equal a training row in every column.
    seconds : float
        Of the whole job.
    busy : float
        Processor time over time and cores: 1 where all of them worked from the first second to the last.
    more_time : str
        Under a limit of time, what more of it would probably gain, in a sentence.
    prefer : str
        Whether the simplest of the best was to be chosen, or the best.
    """

    name: str
    target: str
    model: Any
    standings: Sequence[CandidateResult]
    winner: str
    metric: str
    test: Test
    train_rows: int
    sign: float = 1.0
    warnings: list[str] = field(default_factory=list)
    differences: dict[str, str] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    importances: list[tuple[str, float, float]] = field(default_factory=list)
    effects: list[Any] = field(default_factory=list)
    curve: Any = None
    plan: Any = None
    origin: Any = None
    errors: Any = None
    backtest: Any = None
    twins: int = 0
    seconds: float = 0.0
    busy: float = 0.0
    more_time: str = ""
    prefer: str = "simple"

    @property
    def classes(self) -> NDArray | None:
        """The classes, or None for numbers."""
        return np.array(self.model.target.classes) if self.model.target.classes else None

    @property
    def best(self) -> CandidateResult:
        """How the winner did."""
        return next(one for one in self.standings if one.name == self.winner)

    @property
    def pipeline(self) -> Any:
        """The encoder and the machine, fitted: rows of tables in, predictions out."""
        return self.model.pipeline

    def predict(self, rows: Any) -> NDArray[Any]:
        """The class or number of every row: a frame, a matrix, or a list of dicts, with the columns learned from.

        The class is the most probable one; but one of two that is so rare that few rows would be called it is named
        from ``test.threshold`` on, a probability below a half, which the summary tells.
        """
        return self.model.predict(rows)

    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """The probability of every class, in the order of `classes`."""
        return self.model.predict_proba(rows)

    def predict_interval(self, rows: Any, coverage: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Below and above what the number of each row lies with that probability."""
        return self.model.predict_interval(rows, coverage)

    def explain(self, rows: Any) -> pl.DataFrame:
        """What each column adds to the prediction of each row, a row for each; see `TableModel.explain`."""
        return pl.DataFrame(self.model.explain(rows), schema=[column.name for column in self.model.schema.used])

    @property
    def leaderboard(self) -> pl.DataFrame:
        """The league as a frame, best first: scores as the metric gives them, and how each compares with the winner."""
        rows = [
            {
                "machine": one.name,
                "title": one.title,
                self.metric: self.sign * one.mean if len(one.scores) else None,
                "error": one.error if len(one.scores) > 1 else None,
                "folds": len(one.scores),
                "rows": one.rows,
                "seconds": one.seconds if len(one.scores) else None,
                "compared": self.differences.get(one.name, one.remark or one.state),
                "settings": None if one.machine is None else repr(one.machine),
            }
            for one in self.standings
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def report(self, path: str | Path | None = None) -> HtmlReport:
        """The report: a page that a notebook shows, and ``open()`` a browser; ``path`` is where to write it too.

        >>> er.learn("iris", machines=["centroid"]).report()
        Report('iris: species'); show it with open(), or write it with save("report.html")
        """
        from empirisk.report.page import page  # what draws takes a while to import

        found = HtmlReport(f"{self.name}: {self.target}", page(self))
        if path is not None:
            found.save(path)
        return found

    def save(self, path: str | Path) -> None:
        """Write the model to a file, which `er.load` and the shell commands read."""
        save(self.model, path)

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self._league, strict=True)]
        rows = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in self._league]
        return "\n".join([f"{self.name}: {self.best.title} for {self.target}", *rows, self.summary()])

    def _repr_html_(self) -> str:
        head, *rows = self._league
        return html(f"{self.name}: {self.best.title} for {self.target}", head, rows, [self.summary()])

    @property
    def _league(self) -> list[tuple[str, str, str]]:
        """The league as cells, best first."""
        table = [("machine", metric_name(self.metric), "compared with the one chosen")]
        for one in self.standings:
            score = number(self.sign * one.mean, 4) if len(one.scores) else "-"
            table.append((one.title, score, self.differences.get(one.name, one.remark or one.state)))
        return table

    @property
    def rare(self) -> Any:
        """The class that is so rare among the test rows that accuracy would hide it; None without one."""
        return None if self.classes is None else rare_class(self.test.truth)

    def _naive(self, size: Any) -> str:
        """What the guess of the season before is off by, where the test comes after the training rows in time."""
        if not self.plan.in_order:
            return "."
        guess = seasonal_naive(self.plan)
        told = f", and repeating {guess.words} by {number(size(self.test.truth, guess.guesses))}."
        if self.backtest is None:
            return told
        truth, said, naive = self.backtest
        return (
            f"{told} Forecasts of {truth.shape[1]} moments in one go are off by {number(size(truth, said))}; repeating "
            f"the last {'value' if guess.season == 1 else 'season'} by {number(size(truth, naive))}."
        )

    def forecast(self, rows: int, coverage: float | None = None) -> pl.DataFrame:
        """What comes next, of a model in order of time: see `TableModel.forecast`."""
        return self.model.forecast(rows, coverage)

    def _found(self, rare: Any) -> str:
        """How a class was found: among the rows with the highest scores or, without scores, by name."""
        are = self.test.truth == rare
        total, rows = int(are.sum()), len(are)
        values = self.test.values_of(self.model.target.classes.index(rare))
        if values is not None:
            taken = max(total, LEAST_TAKEN)
            first = np.argsort(-values, kind="stable")[:taken]
            hits = int(are[first].sum())
            lift = hits / max(len(first), 1) / (total / rows)
            return (
                f"finds {hits:,} of the {total:,} with {self.target} {rare} among the {len(first):,} rows that it "
                f"scores highest, {number(lift, 2)} times as many as chance would; {self._named(are, rare)}."
            )
        return f"tells who is {rare} by name alone; {self._named(are, rare)}."

    def _named(self, are: NDArray[np.bool_], rare: Any) -> str:
        """How many of a class are named so, and how many others are."""
        said = self.test.predictions == rare
        hits, alarms = int((said & are).sum()), int(said.sum())
        _, least = self.test.threshold or (0, HALF)
        since = f" (from a probability of {number(least, 2)} on)" if least < HALF else ""
        right = f"of {alarms:,} that it calls {rare}{since}, {hits:,} are" if alarms else f"it calls none {rare}{since}"
        return f"{right} (F1 score {number(2 * hits / max(alarms + int(are.sum()), 1))})"

    def _right(self) -> str:
        """How often a class was named rightly."""
        hits = float(np.mean(self.test.truth == self.test.predictions))
        labels, counts = np.unique(self.plan.y[self.plan.train], return_counts=True)
        usual = labels[counts.argmax()]  # of the rows that it learned from, as whoever guesses would
        return (
            f"is right about {self.target} in {percent(hits, 1)} of cases; always guessing {str(usual)!r}, the most "
            f"frequent one, would be right in {percent(np.mean(self.test.truth == usual), 1)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it: what `empirisk learn --json` prints, but for the names of the files.

        >>> told = er.learn("iris", machines=["centroid"]).to_dict()
        >>> told["winner"], told["league"][0]["name"], told["test"][0]["name"]
        ('centroid', 'centroid', 'accuracy')
        """
        league = [
            one.to_dict()
            | {"difference": self.differences.get(one.name, one.remark), "interval": self.intervals.get(one.name)}
            for one in self.standings
        ]
        told = {
            "table": self.name,
            "target": self.target,
            "task": self.model.target.task,
            "winner": self.winner,
            "settings": self.model.description["settings"],
            "metric": self.metric,
            "rows": self.train_rows,
            "tested": len(self.test.truth),
            "test": self.test.scores,
            "luck": self.test.luck,
            "summary": self.summary(),
            "league": league,
            "importances": [
                {"column": name, "fall": fall, "deviation": spread} for name, fall, spread in self.importances
            ],
            "warnings": self.warnings,
            "seconds": self.seconds,
            "busy": self.busy,
            "price": self.price,
            "more_time": self.more_time,
            "origin": self.origin,
        }
        return as_json(told)

    @property
    def price(self) -> str:
        """What it costs on the folds that a simpler machine than the best was chosen; empty where the best was."""
        best = best_of([one for one in self.standings if one.eligible])
        common = min(len(best.scores), len(self.best.scores))
        gap = float(np.mean(best.scores[:common] - self.best.scores[:common])) if common else 0.0
        if best.name == self.winner or gap <= 0:
            return ""
        better = f"{metric_name(self.metric)}, {'lower' if self.sign < 0 else 'higher'} by {number(gap, 2)},"
        return (
            f"The {better} of {best.title} on the folds may be chance, so that the simpler one was preferred; "
            f"{option('prefer', 'best')} takes the other."
        )

    @property
    def nothing_learned(self) -> bool:
        """Whether no machine had the time to learn, so that the model always says the same."""
        return not any(len(one.scores) for one in self.standings if one.place > 0)

    @property
    def leaks(self) -> list[str]:
        """The columns learned from that may give the target away."""
        return [name for name in self.plan.leaks if self.plan.schema[name].used]

    def summary(self) -> str:
        """The result in a sentence, with what makes it doubtful first."""
        if self.nothing_learned:
            return coded(
                "ER033",
                f"No machine had the time to learn: the model says the same {self.target} for every row; "
                "give more time.",
            )
        leaks = self.leaks
        if leaks:
            told = " and ".join(map(repr, leaks)) if len(leaks) <= 2 else listed(list(map(repr, leaks)))
            doubt = (
                f"Too good to be true? {told} may give {self.target} away: leave out "
                f"with {option('drop', leaks)} what is not known beforehand, and learn again."
            )
            return f"{coded('ER021', doubt)} {self._result()}"
        return self._result()

    def _result(self) -> str:
        """What the test gave."""
        first, truth = self.test.scores[0], self.test.truth
        rows = f"{len(truth):,} rows {'that were held out' if self.twins else 'it had never seen'}"
        if self.classes is None:
            name, size = error_of(self.metric)
            error, plain = size(truth, self.test.predictions), size(truth, self.plan.y[self.plan.train].mean())
            return (
                f"On {rows}, the model's predictions of {self.target} are off by {number(error)} ({name}); "
                f"always predicting the mean would be off by {number(plain)}{self._naive(size)}"
            )
        rare = self.rare
        found = f"On {rows}, the model {self._right() if rare is None else self._found(rare)}"
        low, high = map(number, first.interval)
        score = f" Its {metric_name(first.name)} is {number(first.value)} (between {low} and {high})."
        return found + score * (first.name != "accuracy")
