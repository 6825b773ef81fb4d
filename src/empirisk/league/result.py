"""What came out of the whole job."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.evaluation.intervals import Score
from empirisk.formats import metric_name, number
from empirisk.league.records import CandidateResult, as_json
from empirisk.league.split import rare_class
from empirisk.notebook import html
from empirisk.report.words import error_of


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
    """

    truth: NDArray
    predictions: NDArray
    probabilities: NDArray | None
    decisions: NDArray | None
    scores: list[Score]
    luck: str


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
    origin : Origin
        What it takes to make the result again.
    twins : int
        Test rows that equal a training row in every column.
    seconds : float
        Of the whole job.
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
    twins: int = 0
    seconds: float = 0.0

    @property
    def classes(self) -> NDArray | None:
        """The classes, or None for numbers."""
        return np.array(self.model.target.classes) if self.model.target.classes else None

    @property
    def best(self) -> CandidateResult:
        """How the winner did."""
        return next(one for one in self.standings if one.name == self.winner)

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

    def _found(self, rare: Any) -> str:
        """How a class was found."""
        said, are = self.test.predictions == rare, self.test.truth == rare
        hits, alarms = int((said & are).sum()), int(said.sum())
        right = f"of {alarms:,} that it calls so, {hits:,} are" if alarms else "it calls none so"
        score = f"F1 score {number(2 * hits / max(alarms + int(are.sum()), 1))}"
        return f"finds {hits:,} of the {int(are.sum()):,} with {self.target} {rare}; {right} ({score})."

    def _right(self) -> str:
        """How often a class was named rightly."""
        hits = float(np.mean(self.test.truth == self.test.predictions))
        most = np.unique(self.test.truth, return_counts=True)[1].max() / len(self.test.truth)
        return (
            f"names the right {self.target} in {hits:.1%} of cases; always guessing the most frequent one would be "
            f"right in {most:.1%}."
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
            "origin": self.origin,
        }
        return as_json(told)

    def summary(self) -> str:
        """The result in a sentence."""
        first, truth = self.test.scores[0], self.test.truth
        rows = f"{len(truth):,} rows {'that were held out' if self.twins else 'it had never seen'}"
        if self.classes is None:
            name, size = error_of(self.metric)
            error, plain = size(truth, self.test.predictions), size(truth, truth.mean())
            return (
                f"On {rows}, the model's predictions of {self.target} are off by {number(error)} ({name}); "
                f"always predicting the mean would be off by {number(plain)}."
            )
        rare = rare_class(truth)
        found = f"On {rows}, the model {self._right() if rare is None else self._found(rare)}"
        low, high = map(number, first.interval)
        score = f" Its {metric_name(first.name)} is {number(first.value)} (between {low} and {high})."
        return found + score * (first.name != "accuracy")
