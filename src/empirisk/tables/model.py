"""A learned table: what `learn` writes, `predict` and `serve` read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk import state
from empirisk.contract.arguments import check_count
from empirisk.contract.meta import transformed
from empirisk.errors import EmpiriskError
from empirisk.explain.contributions import contributions
from empirisk.tables.history import STEPS, History
from empirisk.tables.kinds.date import DAY
from empirisk.tables.reading.frames import as_frame
from empirisk.tables.spread import Spread, Steps, ends
from empirisk.tables.understanding.column import Column
from empirisk.tables.understanding.profile import Profile, unusual
from empirisk.tables.understanding.schema import Schema
from empirisk.tables.understanding.target import Target


@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """A machine with the table it expects: raw rows in, classes or numbers out.

    Parameters
    ----------
    schema : Schema
        The columns it was learned from.
    pipeline : fitted pipeline
        A `TableEncoder` and a machine.
    target : Target
        What it predicts.
    scores : dict
        Results of the test, by name: numbers, texts, lists and dicts of them.
    description : dict
        What is worth knowing of how it was made, such as ``{"machine": "SVM", "rows": 300}``.
    residuals : array, optional
        For numbers, what the truth was above the prediction in rows that the model had not seen, divided by the size
        of the error that was to be expected, sorted.
    spread : Spread or Steps, optional
        What gives that size; without one it is 1 for all rows.
    limits : (low, high), optional
        The least and the largest number that the target has had: no interval reaches beyond.
    threshold : (int, float), optional
        The number of a rare class of two, and the probability from which it is named.
    profile : dict, optional
        How the columns of the training rows were spread, from `profile`.
    passed : array, optional
        For trees, how many of some training rows come through each node.
    behind : array, optional
        Some encoded training rows, with which rows are compared to explain what a machine says that is no sum.
    example : dict, optional
        A row that it learned from, as JSON holds it, to show what may be asked.
    history : History, optional
        Of numbers in order of time, what the target was: columns of earlier values are made of it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> table = er.tables.read("iris")
    >>> target = er.tables.Target.of(table, "species")
    >>> schema = er.tables.understand(table, without=["species"])
    >>> pipeline = make_pipeline(er.tables.TableEncoder(schema), er.SVM()).fit(table, target.values(table))
    >>> model = er.tables.TableModel(schema, pipeline, target)
    >>> model.predict([{"sepal_length": 5, "sepal_width": 3.4, "petal_length": "1.5", "petal_width": 0.2}])
    array(['setosa'], dtype='<U10')
    >>> model
    TableModel('species' from 4 columns, SVM)
    """

    _state = state.State(
        lambda its: _wrong_threshold(its),
        schema=state.part(Schema),
        pipeline=state.part(has="predict"),
        target=state.part(Target),
        scores=state.mapping(state.anything()),
        residuals=state.optional(state.maybe(state.array("f8", None))),
        spread=state.optional(state.maybe(state.part(has="sizes"))),
        threshold=state.optional(state.maybe(state.several(state.number(0.0, 1.0), 2))),
        limits=state.optional(state.maybe(state.several(state.number(finite=False), 2))),
        passed=state.optional(state.maybe(state.array("u2", None))),
        behind=state.optional(
            state.maybe(state.array("f8", None, None, finite=False))
        ),  # codes of words may be missing
        profile=state.optional(state.mapping(state.anything())),
        history=state.optional(state.maybe(state.part(History))),
        example=state.optional(state.mapping(state.anything())),
    )

    schema: Schema
    pipeline: Any
    target: Target
    scores: dict[str, Any] = field(default_factory=dict)
    description: dict[str, Any] = field(default_factory=dict)
    residuals: NDArray[np.float64] | None = None
    profile: Profile = field(default_factory=dict)
    passed: NDArray[np.uint16] | None = None
    spread: Spread | Steps | None = None
    limits: tuple[float, float] | None = None
    threshold: tuple[int, float] | None = None
    history: History | None = None
    example: dict[str, Any] = field(default_factory=dict)
    behind: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        columns = len(self.schema.used)
        source = f"{columns} column{'s' if columns > 1 else ''}"
        return f"TableModel({self.target.name!r} from {source}, {type(self.machine).__name__})"

    @property
    def machine(self) -> Any:
        """The machine at the end of the pipeline, without the calibration that may be around it."""
        return uncalibrated(self.pipeline[-1])

    @property
    def has_probabilities(self) -> bool:
        """Whether `predict_proba` is there."""
        return self.target.task == "classification" and hasattr(self.pipeline, "predict_proba")

    @property
    def classes(self) -> list[Any]:
        """The classes in the order of the columns of `predict_proba`; empty for numbers."""
        if self.target.task != "classification":
            return []
        # A clustering has numbers of clusters, and no classes of its own.
        return self.pipeline.classes_.tolist() if hasattr(self.pipeline, "classes_") else list(self.target.classes)

    def predict(self, table: Any) -> NDArray[Any]:
        """The class or number of every row of a table, which needs the columns of the schema in any order.

        The class is the most probable one, but for a rare class of two that has a ``threshold``: it is named where its
        probability reaches that, though the other one is more probable.
        """
        return self.predict_encoded(self.encode(table))

    def truth(self, table: Any) -> NDArray[Any]:
        """What the rows of a table are that holds the target."""
        frame = as_frame(table)
        if self.target.name not in frame.columns:
            raise EmpiriskError(
                f"The table lacks {self.target.name!r}, the column that is predicted; give y, or add it."
            )
        return self.target.values(frame)

    def predict_encoded(self, X: Any) -> NDArray[Any]:
        """The class or number of every encoded row: a rare class is named from its ``threshold`` on."""
        if self.threshold is None:
            return self.pipeline[-1].predict(X)
        return named_from(np.asarray(self.classes), self.pipeline[-1].predict_proba(X), *self.threshold)

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """The probability of every class, in the order of `classes`."""
        if not self.has_probabilities:
            raise EmpiriskError(f"This model, a {type(self.machine).__name__}, gives no probabilities; use predict.")
        return self.pipeline[-1].predict_proba(self.encode(table))

    def predict_interval(self, table: Any, coverage: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Below and above what the number of each row lies with that probability: split conformal intervals.

        They reach from the prediction plus a low to that plus a high quantile of the errors of the test, in units of
        the error that is to be expected of the row (see `Spread`), and not beyond the numbers that the target has had.
        An interval holds the truth of a new row, drawn like those, with about that probability, whatever the model is.
        """
        frame = self.complete(table)
        return self.interval_of(self.encode(frame), coverage, self.wider(frame))

    def interval_of(
        self, X: Any, coverage: float, wider: float | NDArray[np.float64] = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The intervals of encoded rows, so many times as wide as what one step ahead needs (see `wider`)."""
        if self.residuals is None:
            raise EmpiriskError(
                "Intervals are for numbers, from models that `learn` has tested; how sure a model of classes is, its "
                "probabilities say."
            )
        predicted = self.pipeline[-1].predict(X)
        size = wider * (1.0 if self.spread is None else self.spread.sizes(X, predicted))
        low, high = (predicted + size * tail for tail in ends(self.residuals, coverage))
        return (low, high) if self.limits is None else (np.clip(low, *self.limits), np.clip(high, *self.limits))

    def answers(self, table: Any) -> pl.DataFrame:
        """Predictions as a table: one column named like the target, and one for each class's probability."""
        X, machine = self.encode(table), self.pipeline[-1]
        columns = [pl.Series(self.target.name, self.predict_encoded(X).tolist())]
        if self.has_probabilities:
            shares = machine.predict_proba(X)
            columns += [
                pl.Series(f"P({self.target.name}={label})", shares[:, k]) for k, label in enumerate(self.classes)
            ]
        return pl.DataFrame(columns)

    def explain(self, table: Any) -> NDArray[np.float64]:
        """What each used column adds to the prediction of each row: weights, or Shapley values, exact ones of trees.

        For classes, what speaks for the class that is predicted. Rows x columns, in the order of ``schema.used``.
        """
        return contributions(self, table)

    def unusual(self, table: Any) -> dict[int, list[str]]:
        """What no training row had, by row from 0: new words, and numbers far outside their range."""
        return unusual(self.profile, self.schema, self.schema.features(self.complete(table)))

    def forecast(self, rows: int, coverage: float | None = None) -> pl.DataFrame:
        """What comes next, after the last row that was learned from or tested: a table of moments and predictions.

        Each row is predicted from the ones before it, the first from known values. Columns that are not known yet are
        taken as missing; where they are known, `predict` a table of them. With a ``coverage`` such as 0.9 the lower and
        upper ends of intervals stand beside, which widen as errors do with the distance.
        """
        frame = self.coming(rows)
        found = [frame.to_series(), pl.Series(self.target.name, self.predict(frame))]
        if coverage is not None:
            both = zip(("low", "high"), self.predict_interval(frame, coverage), strict=True)
            found += [pl.Series(f"{self.target.name} {end}", values) for end, values in both]
        return pl.DataFrame(found)

    def coming(self, rows: int) -> pl.DataFrame:
        """The next rows in time, of which the time alone is known; it is their first column."""
        if self.history is None:
            raise EmpiriskError("The model knows no order of time to forecast in; learn numbers with time_order=.")
        check_count("forecast", rows)
        moments = self.history.following(rows)
        times = self.history.times(moments)
        if times.dtype == pl.Datetime and not np.any(moments % DAY):
            times = times.cast(pl.Date)
        unknown = [pl.Series(one.name, [None] * len(times), dtype=one.type.dtype) for one in self.unforeseen]
        return pl.DataFrame([times, *unknown])

    @property
    def unforeseen(self) -> list[Column]:
        """The columns of which a forecast knows nothing: all but the time and what the target was before."""
        return [one for one in self.asked.used if self.history is None or one.name != self.history.time.name]

    @property
    def asked(self) -> Schema:
        """The columns that a table has to have: the schema without those that are made of earlier values."""
        if self.history is None:
            return self.schema
        made = self.history.names
        kept = [column for column in self.schema.columns if column.name not in made]
        lacking = [] if self.history.time.name in {column.name for column in kept} else [self.history.time]
        return Schema((*lacking, *kept))

    def complete(self, table: Any) -> pl.DataFrame:
        """The rows of a table, with columns of earlier values where the model reads those (see `History`)."""
        frame, name = as_frame(table), self.target.name
        if self.history is None:
            return frame
        truth = self.target.numbers(frame[name]) if name in frame.columns else None
        steps = self.pipeline.steps[:-1]
        return self.history.complete(frame, truth, lambda rows: self.pipeline[-1].predict(transformed(steps, rows)))

    def wider(self, frame: pl.DataFrame) -> float | NDArray[np.float64]:
        """How many times as wide the intervals of `complete` rows are as one step ahead of what is known."""
        known = self.history is None or STEPS not in frame.columns
        return 1.0 if known else self.history.wider(frame[STEPS].to_numpy())  # type: ignore[union-attr]

    def encode(self, table: Any) -> Any:
        """The rows of a table as the machine takes them."""
        return transformed(self.pipeline.steps[:-1], self.complete(table))


def _wrong_threshold(its: Mapping[str, Any]) -> str | None:
    """What is wrong with the threshold of a model from a file: it names one of two classes by its probability."""
    given, pipeline = its.get("threshold"), its["pipeline"]
    if given is None:
        return None
    named = given[0] in (0, 1) and isinstance(given[0], int)
    of_two = its["target"].task == "classification" and len(getattr(pipeline, "classes_", ())) == 2
    return None if named and of_two and hasattr(pipeline, "predict_proba") else "threshold is of no class of two"


def named_from(classes: NDArray, shares: NDArray[np.float64], place: int, threshold: float) -> NDArray:
    """The classes of rows of two, the one of that place where its probability reaches a threshold.

    >>> named_from(np.array(["fraud", "ok"]), np.array([[0.3, 0.7], [0.1, 0.9]]), 0, 0.25)
    array(['fraud', 'ok'], dtype='<U5')
    """
    return classes[np.where(shares[:, place] >= threshold, place, 1 - place).astype(int)]


#: How a fit is done, and not what is fitted.
SOLVING = ("solver", "tol", "max_iter", "max_time", "random_state", "n_jobs", "warm_start")
PLUMBING = {*SOLVING, "cv", "ensemble", "categorical_features"}
#: What a fit chose itself, by the parameter that asked for it.
CHOSEN = {"C": "C_", "n_neighbors": "n_neighbors_", "ccp_alpha": "ccp_alpha_"}


def settings_of(machine: Any) -> str:
    """The settings of a machine that matter, those that are defaults too; of a fitted one those that it chose itself.

    >>> settings_of(er.KNNClassifier())
    "KNNClassifier(ks=30, n_neighbors=5, rule='best', weights='uniform')"
    """
    machine = uncalibrated(machine)
    inner = getattr(machine, "estimator", None)
    if hasattr(inner, "get_params"):
        return f"{settings_of(inner)}, calibrated" if hasattr(machine, "ensemble") else repr(machine)
    if hasattr(machine, "estimators"):
        says = machine.weights or [1] * len(machine.estimators)
        told = [f"{say} x {settings_of(one)}" for say, one in zip(says, machine.estimators, strict=True)]
        if getattr(machine, "temperature", 1.0) != 1:
            told.append(f"temperature={_setting(machine.temperature)}")
        return f"{type(machine).__name__}({', '.join(told)})"
    if hasattr(machine, "steps"):
        return " of ".join(settings_of(step) for _, step in reversed(machine.steps))
    values = {name: value for name, value in machine.get_params(deep=False).items() if name not in PLUMBING}
    if values.get("loss") == getattr(type(machine), "loss", None):  # what the name of the machine says
        values.pop("loss", None)
    for name, attribute in CHOSEN.items():
        if isinstance(values.get(name), str) and hasattr(machine, attribute):
            values[name] = getattr(machine, attribute)
    shown = ", ".join(f"{name}={_setting(value)}" for name, value in values.items() if value is not None)
    return f"{type(machine).__name__}({shown})"


def _setting(value: Any) -> str:
    """A value in a few digits."""
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else " ".join(repr(value).split())


def uncalibrated(machine: Any) -> Any:
    """The machine that scikit-learn's calibration is around, which learned from all rows; else the machine itself."""
    inside = getattr(machine, "calibrated_classifiers_", None)
    return machine if inside is None or len(inside) != 1 else inside[0].estimator
