"""Why a model says what it says of a row: what each column adds to the prediction."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from empirisk import losses
from empirisk.errors import EmpiriskError
from empirisk.explain.orders import values_in_orders
from empirisk.explain.shapley import node_weights, shapley_values
from empirisk.formats import number, shown
from empirisk.protocols import has_contributions, has_weighted_members, is_grown

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]

#: Training rows that are sent through the trees, so that it is known how many come by each node.
SENT = 2000
#: Training rows that stand for what is usual, for machines whose answers are no sums over columns.
BEHIND = 16
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


def rows_behind(machine: Any, passed: NDArray[np.uint16] | None, X: Any) -> Array | None:
    """Some of these rows, where it takes them to tell what columns add; None where answers are sums over columns."""
    sums = all(_is_sum(one, X.shape[1]) and (passed is not None or not is_grown(one)) for _, one in _voices(machine))
    return None if sums else _dense(X[:BEHIND])


def contributions(model: Any, table: Any) -> Array:
    """What each column adds to the prediction of each row, rows x used columns.

    For a linear machine the weights times the numbers that the encoder makes of the column, for an additive one its
    shapes, for trees, forests and
    boosting the exact Shapley values, and of a vote about numbers the mean of its members'. Of losses of counts and
    amounts, whose exponents are summed up, it is their part of the prediction. For others, such as kernel machines,
    Shapley values against some training rows (`values_in_orders`). For classes, what speaks
    for the class that is predicted: its score (log odds, or a margin) where that is a sum over columns, and its
    probability for others, and for trees and forests.
    """
    encoder, X = model.pipeline[0], model.encode(table)
    rows, columns = X.shape[0], len(model.schema.used)
    if _adds_up(model):
        sources = (encoder.sources_[:, None] == np.arange(columns)).astype(np.float64)
        parts = [_of_numbers(model, X[start : start + BLOCK]) for start in range(0, rows, BLOCK)]
        by_column = np.concatenate([np.einsum("rno,nc->rco", part, sources) for part in parts])
    else:
        behind, last = model.behind, model.pipeline[-1]
        if behind is None or behind.shape[1] != X.shape[1]:
            raise EmpiriskError("The model knows no rows to compare with; learn it with er.learn to explain it.")
        name = "predict" if not model.classes else "predict_proba" if model.has_probabilities else "decision_function"
        ask = getattr(last, name)
        X = _dense(X)
        by_column = values_in_orders(
            lambda some: ask(some).reshape(len(some), -1), X, encoder.sources_, columns, behind
        )
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
            f"{_value(columns[place], frame[columns[place]][row])} "
            f"{'-' if added[place] < 0 else '+'}{number(abs(added[place]))}"
            for place in order
        ]
        what = said[row] if model.classes else model.target.name
        found.append(f"for {what} ({unit}): {'; '.join(named)}" if named else "")
    return found


def _value(column: str, value: Any) -> str:
    """A column with its value in a row."""
    return f"{column} missing" if value is None else f"{column}={shown(value)[:LETTERS]}"


def unit_of(model: Any) -> str:
    """The unit of contributions: that of the target, log odds or margins of what is a sum, probability of others."""
    if not model.classes:
        return "in its unit"
    if not _adds_up(model):
        return "probability" if model.has_probabilities else "margin"
    machine = next(one for _, one in _voices(model.machine))
    if is_grown(machine) and getattr(machine, "baseline_", None) is None:
        return "probability"
    return "log odds" if hasattr(machine, "predict_proba") else "margin"


def _voices(machine: Any) -> list[tuple[float, Any]]:
    """The machines whose answers add up to a prediction, and how they count: the members of a vote, or it alone."""
    return machine.weighted_members() if has_weighted_members(machine) else [(1.0, machine)]


def _adds_up(model: Any) -> bool:
    """Whether the answers of a model are sums over the numbers of the encoder, or of exact Shapley values."""
    return (
        all(_is_sum(one, len(model.pipeline[0].names_)) for _, one in _voices(model.machine)) and model.behind is None
    )


def _is_sum(machine: Any, numbers: int) -> bool:
    """Whether a machine sums up what so many numbers add, or is made of trees."""
    return has_contributions(machine) or is_grown(machine) or _weights(machine, numbers) is not None


def _weights(machine: Any, numbers: int) -> Array | None:
    """The weights of a linear machine, outputs x numbers; None where it has not one for each number."""
    weights = getattr(machine, "coef_", None)
    return None if weights is None or np.shape(weights)[-1] != numbers else np.atleast_2d(weights)


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
    weights = _weights(machine, X.shape[1])
    if weights is not None:
        return _dense(X)[:, :, None] * weights.T
    nodes = machine.nodes_
    if passed is None or len(passed) < len(nodes):
        raise EmpiriskError("The model does not know how many rows came by each node; learn it again to explain it.")
    baseline = getattr(machine, "baseline_", None)
    outputs = nodes.value.shape[1] if baseline is None else len(baseline)
    values = shapley_values(nodes, passed[: len(nodes)].astype(np.float64), _dense(X), outputs)
    return values if baseline is not None else values / nodes.n_trees  # a forest is a mean


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
