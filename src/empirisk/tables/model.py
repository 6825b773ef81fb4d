"""A learned table: what `learn` writes, `predict` and `serve` read."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.tables.frames import as_frame
from empirisk.tables.schema import Schema
from empirisk.tables.target import Target


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
        schema=state.part(Schema),
        pipeline=state.part(has="predict"),
        target=state.part(Target),
        scores=state.mapping(state.anything()),
    )

    schema: Schema
    pipeline: Any
    target: Target
    scores: dict[str, Any] = field(default_factory=dict)
    description: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        columns = len(self.schema.used)
        source = f"{columns} column{'s' if columns > 1 else ''}"
        return f"TableModel({self.target.name!r} from {source}, {type(self.machine).__name__})"

    @property
    def machine(self) -> Any:
        """The machine at the end of the pipeline."""
        return self.pipeline[-1]

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
        """The class or number of every row of a table, which needs the columns of the schema in any order."""
        return self.machine.predict(self.encode(table))

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """The probability of every class, in the order of `classes`."""
        if not self.has_probabilities:
            raise EmpiriskError(f"This model, a {type(self.machine).__name__}, gives no probabilities; use predict.")
        return self.machine.predict_proba(self.encode(table))

    def answers(self, table: Any) -> pl.DataFrame:
        """Predictions as a table: one column named like the target, and one for each class's probability."""
        X = self.encode(table)
        columns = [pl.Series(self.target.name, self.machine.predict(X).tolist())]
        if self.has_probabilities:
            shares = self.machine.predict_proba(X)
            columns += [
                pl.Series(f"P({self.target.name}={label})", shares[:, k]) for k, label in enumerate(self.classes)
            ]
        return pl.DataFrame(columns)

    def encode(self, table: Any) -> Any:
        """The rows of a table as the machine takes them."""
        encoded = as_frame(table)
        for _, step in self.pipeline.steps[:-1]:
            encoded = step.transform(encoded)
        return encoded
