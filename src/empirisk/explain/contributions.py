"""Why a model says what it says of a row: what each column adds to the prediction."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from empirisk import losses
from empirisk.errors import EmpiriskError, option
from empirisk.explain.shapley import node_weights, shapley_values
from empirisk.formats import number, shown
from empirisk.protocols import has_contributions, has_weighted_members, is_grown

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]

#: Training rows that are sent through the trees, so that it is known how many come by each node.
SENT = 2000
#: Nodes of all trees up to which that is kept with a model: two bytes each.
MOST_NODES = 2_000_000
BLOCK = 256  # rows explained together
NAMED = 3  # columns of a reason in words
LETTERS = 30  # of a value
SMALLEST = 1e-12  # difference of two exponents from which their exponentials differ


def passed_by(machine: Any, X: Any) -> NDArray[np.uint16] | None:
    """How many of some training rows come through each node of the trees of a machine; None without trees."""
    grown = [one.nodes_ for _, one in _voices(machine) if is_grown(one)]
    if not grown or sum(map(len, grown)) > MOST_NODES:
        return None
    return np.concatenate([node_weights(nodes, _dense(X[:SENT])) for nodes in grown]).astype(np.uint16)


def contributions(model: Any, table: Any) -> Array:
    """What each column adds to the prediction of each row, rows x used columns.

    For a linear machine the weights times the numbers that the encoder makes of the column, for an additive one its
    shapes, for trees, forests and
    boosting the exact Shapley values, and of a vote about numbers the mean of its members'. Of losses of counts and
    amounts, whose exponents are summed up, it is their part of the prediction. For classes, what speaks
    for the class that is predicted: of its probability for trees and forests, of its score (log odds, or a margin)
    for others.
    """
    encoder, X = model.pipeline[0], model.encode(table)
    rows = X.shape[0]
    sources = encoder.sources_[:, None] == np.arange(len(model.schema.used))
    parts = [_of_numbers(model, X[start : start + BLOCK]) for start in range(0, rows, BLOCK)]
    by_column = np.concatenate([np.einsum("rno,nc->rco", part, sources.astype(np.float64)) for part in parts])
    if not model.classes:
        return by_column[:, :, 0]
    said = np.searchsorted(np.asarray(model.classes), model.predict_encoded(X))
    if by_column.shape[2] == 1:  # of two classes, the second
        return by_column[:, :, 0] * np.where(said == 1, 1.0, -1.0)[:, None]
    return by_column[np.arange(rows), :, said]


def reasons(model: Any, frame: "pl.DataFrame") -> list[str]:
    """The columns that move each prediction most, in words: for which class, or what number, and in which unit.

    >>> found = er.learn("iris", machines=["tree"])
    >>> reasons(found.model, er.tables.read("iris").head(1))
    ['for setosa (probability): petal_length=1.4 +0.667']
    """
    frame = model.complete(frame)
    said, unit = model.predict(frame), unit_of(model)
    values, columns = contributions(model, frame), [column.name for column in model.schema.used]
    found = []
    for row, added in enumerate(values):
        order = [place for place in np.argsort(-np.abs(added), kind="stable")[:NAMED] if added[place] != 0]
        named = [
            f"{columns[place]}={shown(frame[columns[place]][row])[:LETTERS]} "
            f"{'-' if added[place] < 0 else '+'}{number(abs(added[place]))}"
            for place in order
        ]
        what = f"for {said[row]}" if model.classes else model.target.name
        found.append(f"{what} ({unit}): {'; '.join(named)}" if named else "")
    return found


def unit_of(model: Any) -> str:
    """The unit of contributions: that of the target, probability for trees and forests, log odds or margins else."""
    if not model.classes:
        return "its unit"
    machine = next(one for _, one in _voices(model.machine))
    if is_grown(machine) and getattr(machine, "baseline_", None) is None:
        return "probability"
    return "log odds" if hasattr(machine, "predict_proba") else "margin"


def _voices(machine: Any) -> list[tuple[float, Any]]:
    """The machines whose answers add up to a prediction, and how they count: the members of a vote, or it alone."""
    return machine.weighted_members() if has_weighted_members(machine) else [(1.0, machine)]


def _of_numbers(model: Any, X: Any) -> Array:
    """What each number of the encoder adds to each output, rows x numbers x outputs."""
    added, passed = [], model.passed
    for say, machine in _voices(model.machine):
        added.append(say * _of_machine(machine, passed, X))
        passed = passed[len(machine.nodes_) :] if passed is not None and is_grown(machine) else passed
    return np.sum(added, axis=0)


def _of_machine(machine: Any, passed: NDArray[np.uint16] | None, X: Any) -> Array:
    """The same for one machine, whose nodes come first among those of which it is known how many rows passed."""
    found = _of_scores(machine, passed, X)
    loss = getattr(machine, "loss", None)
    if loss is None or not losses.find(loss).positive:
        return found
    # What is predicted is the exponential of the sum: between two exponentials lies their logarithmic mean times the
    # difference of the exponents, so that what columns add to those becomes what they add to the prediction.
    total = found.sum(axis=(1, 2))
    said = np.asarray(machine.predict(X), dtype=np.float64)
    mean = np.where(np.abs(total) > SMALLEST, -np.expm1(-total) / np.where(total == 0, 1.0, total), 1.0)
    return found * (said * mean)[:, None, None]


def _of_scores(machine: Any, passed: NDArray[np.uint16] | None, X: Any) -> Array:
    """What each number of the encoder adds to what the machine sums up."""
    if has_contributions(machine):
        return machine.contributions(_dense(X))
    weights = getattr(machine, "coef_", None)
    if weights is not None and np.shape(np.atleast_2d(weights))[1] == X.shape[1]:
        return _dense(X)[:, :, None] * np.atleast_2d(weights).T
    if not is_grown(machine):
        raise EmpiriskError(
            f"A {type(machine).__name__} has no contributions of single columns; they exist for linear machines, "
            "additive machines, trees, forests and boosting: learn one of those, such as with "
            f"{option('machines', ['boosting'])}."
        )
    nodes = machine.nodes_
    if passed is None or len(passed) < len(nodes):
        raise EmpiriskError("The model does not know how many rows came by each node; learn it again to explain it.")
    baseline = getattr(machine, "baseline_", None)
    outputs = nodes.value.shape[1] if baseline is None else len(baseline)
    values = shapley_values(nodes, passed[: len(nodes)].astype(np.float64), _dense(X), outputs)
    return values if baseline is not None else values / nodes.n_trees  # a forest is a mean


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
