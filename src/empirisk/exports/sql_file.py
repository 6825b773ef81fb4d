"""Graphs as one statement of SQL, for linear machines and single trees.

A tensor becomes an array of expressions, one for each entry of a row; what is long becomes a column of a common table
expression. Missing numbers are NULL.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import __version__
from empirisk.errors import Unsuitable
from empirisk.exports import operations
from empirisk.exports.graph import Graph
from empirisk.exports.registry import refused
from empirisk.exports.rows import ExportRows
from empirisk.exports.tensor import Node, Tensor, kind_of

#: Entries of a matrix beyond which a statement would be no help to anybody: kernels, neighbours, forests.
MOST_ENTRIES = 20_000
#: Letters of an expression beyond which it becomes a column.
LONG = 40
#: Letters of all expressions with the columns of earlier steps written out, as databases do before they answer: ten
#: classes of 64 columns have nearly as many, and SQLite needs a dozen bytes for each.
MOST_LETTERS = 5e7
TOO_LONG = "as SQL it would have too many terms; use ONNX or Python"
#: The columns of earlier steps in an expression.
COLUMN = re.compile(r"\bv\d+\b")


class SqlExpression:
    """A number, a text or a truth value in SQL.

    >>> print(SqlExpression('"x"') * 2.0 + 0.0)
    2.0 * "x"
    """

    def __init__(self, text: str, number: float | None = None):
        self.text, self.number = text, number

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: Any) -> SqlExpression:
        a, b = expression(self), expression(other)
        if a.number is not None and b.number is not None:
            return expression(a.number + b.number)
        if 0.0 in (a.number, b.number):
            return b if a.number == 0.0 else a
        return SqlExpression(f"{a} + {b}")

    def __mul__(self, other: Any) -> SqlExpression:
        a, b = expression(self), expression(other)
        if a.number is None and b.number is not None:
            a, b = b, a
        if a.number is not None and b.number is not None:
            return expression(a.number * b.number)
        if a.number in (0.0, 1.0):
            return b if a.number else expression(0.0)
        return SqlExpression(f"{_inner(a)} * {_inner(b)}")

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> SqlExpression:
        return expression(other) - self

    def __rtruediv__(self, other: Any) -> SqlExpression:
        return expression(other) / self

    def __sub__(self, other: Any) -> SqlExpression:
        return SqlExpression(f"{self} - {_inner(expression(other))}")

    def __truediv__(self, other: Any) -> SqlExpression:
        return SqlExpression(f"{_inner(self)} / {_inner(expression(other))}")


def _inner(value: SqlExpression) -> str:
    """An expression inside another."""
    alone = value.text.replace('"', "").replace("_", "").replace(".", "").isalnum()
    return value.text if alone or (value.text.endswith(" END") and value.text.startswith("CASE")) else f"({value.text})"


def expression(value: Any) -> SqlExpression:
    """A value of Python in SQL."""
    if isinstance(value, SqlExpression):
        return value
    if isinstance(value, str):
        if "\0" in value:
            raise Unsuitable(f"The word {value!r} holds a NUL, at which SQL would end; use ONNX or Python.")
        return SqlExpression("'" + value.replace("'", "''") + "'")
    if isinstance(value, (bool, np.bool_)):
        return SqlExpression("1 = 1" if value else "1 = 0")
    if isinstance(value, (int, np.integer)):
        return SqlExpression(str(int(value)), float(value))
    if math.isnan(value):
        return SqlExpression("NULL")
    if math.isinf(value):
        return SqlExpression("9e999" if value > 0 else "-9e999")
    return SqlExpression(repr(float(value)), float(value))


def quoted(name: str) -> str:
    """The name of a column."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(model: Any, graph: Graph) -> str:
    """The statement: a row of answers for each row of the table ``rows``."""
    return _SqlWriter(model).statement(graph)


class _SqlWriter:
    def __init__(self, model: Any):
        self.model = model
        self.values: dict[tuple[int, int], NDArray[Any]] = {}
        self.stages: list[list[str]] = []
        self.stage_of: dict[str, int] = {}  # of each column
        self.count = 0
        self.letters: dict[str, int] = {}  # of each column, all columns before it written out

    def statement(self, graph: Graph) -> str:
        first = []
        for tensor in graph.inputs:
            name, words = tensor.node.attributes["name"], tensor.dtype.kind == "O"
            names = [f"x{k}" for k in range(tensor.shape[1])] if name == "X" else [name]
            texts = [f"COALESCE({quoted(each)}, '')" if words else quoted(each) for each in names]
            fresh = [self.fresh() for _ in texts]
            first += [f"{text} AS {column}" for text, column in zip(texts, fresh, strict=True)]
            self.values[id(tensor.node), 0] = np.array([[SqlExpression(column) for column in fresh]], dtype=object)
        self.stages.append(first)
        for node in graph.nodes():
            self.write(node)
        columns = []
        if sum(self.letters.values()) > MOST_LETTERS:
            raise refused(self.model, TOO_LONG)
        for name, tensor in graph.outputs.items():
            found = self.value(tensor).reshape(-1)
            single = tensor.ndim == 1
            columns += [
                f"{each} AS {quoted(name if single else f'{name}_{k}')}"
                for k, each in enumerate(map(expression, found))
            ]
        sources = ["rows", *(f"step_{k}" for k in range(len(self.stages)))]
        steps = [
            f"step_{k} AS (\n  SELECT {'*, ' if k else ''}{', '.join(stage)}\n  FROM {sources[k]}\n)"
            for k, stage in enumerate(self.stages)
        ]
        about = (
            f"-- {graph.about} Written by Empirisk {__version__}: a row of answers for each row of the table rows.\n"
        )
        return f"{about}WITH {', '.join(steps)}\nSELECT {', '.join(columns)}\nFROM step_{len(steps) - 1};\n"

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def written_out(self, text: SqlExpression) -> int:
        """The letters of an expression with the columns of earlier steps written out."""
        letters = len(text.text) + sum(self.letters.get(column, 0) for column in COLUMN.findall(text.text))
        if letters > MOST_LETTERS:
            raise refused(self.model, TOO_LONG)
        return letters

    def value(self, tensor: Tensor) -> NDArray[Any]:
        return self.values.get((id(tensor.node), tensor.output), tensor.value)

    def write(self, node: Node) -> None:
        inputs = [self.value(each) for each in node.inputs]
        if max(each.size for each in inputs) > MOST_ENTRIES:
            raise refused(self.model, TOO_LONG)
        told = {"kind": kind_of(node.inputs[0].value)} if node.operation == "Cast" else {}
        known = SQL.get(node.operation, UNCHANGED.get(node.operation))
        if known is None:
            raise Unsuitable(
                f"{type(self.model).__name__} cannot be exported as SQL, which has no form for {node.operation} "
                "that all databases share; use ONNX or Python."
            )
        found = known(*inputs, **node.attributes, **told)
        self.values[id(node), 0] = self.shortened(np.asarray(found, dtype=object))

    def shortened(self, found: NDArray[Any]) -> NDArray[Any]:
        """Long expressions as columns of the first step after those that they need: many steps make databases slow."""
        out = np.empty(found.shape, dtype=object)
        for place, each in np.ndenumerate(found):
            text = expression(each)
            if len(text.text) > LONG:
                column = self.fresh()
                self.letters[column] = self.written_out(text)
                stage = 1 + max((self.stage_of.get(each, 0) for each in COLUMN.findall(text.text)), default=0)
                if stage == len(self.stages):
                    self.stages.append([])
                self.stages[stage].append(f"{text} AS {column}")
                self.stage_of[column] = stage
                text = SqlExpression(column)
            out[place] = text
        return out


def _entrywise(one: Callable[..., Any], *arrays: NDArray[Any]) -> NDArray[Any]:
    """A function of single expressions on arrays of them."""
    run: Any = np.frompyfunc(one, len(arrays), 1)
    return np.asarray(run(*(np.asarray(each, dtype=object) for each in arrays)), dtype=object)


def _by_entry(form: Callable[..., str]) -> Callable[..., NDArray[Any]]:
    """An operation on each entry, from the SQL of one."""

    def one(*values: Any) -> SqlExpression:
        return SqlExpression(form(*(_inner(expression(each)) for each in values)))

    def run(*arrays: NDArray[Any]) -> NDArray[Any]:
        return _entrywise(one, *arrays)

    return run


def _sure(condition: str) -> str:
    """A condition that is false where it would be NULL, as those of a graph with NaN are."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END = 1"


def _compare(sign: str) -> Callable[..., NDArray[Any]]:
    return _by_entry(lambda a, b: _sure(f"{a} {sign} {b}"))


def _where(condition: NDArray, a: NDArray, b: NDArray) -> NDArray[Any]:
    def one(truth: Any, yes: Any, no: Any) -> Any:
        if isinstance(truth, (bool, np.bool_)):
            return yes if truth else no
        return SqlExpression(f"CASE WHEN {truth} THEN {expression(yes)} ELSE {expression(no)} END")

    return _entrywise(one, condition, a, b)


def _cast(x: NDArray, to: str, kind: str) -> NDArray[Any]:
    """Truth values as numbers; numbers of one type as those of another are the same in SQL."""
    if kind == "string" or to == "bool":
        raise Unsuitable("A number inside a text cannot be exported as SQL; use ONNX or Python.")
    one, zero = (np.array(1), np.array(0)) if to == "int64" else (np.array(1.0), np.array(0.0))
    return _where(x, one, zero) if kind == "bool" else x


def _cases(x: Any, pairs: list[tuple[Any, Any]], default: Any) -> SqlExpression:
    arms = " ".join(f"WHEN {expression(key)} THEN {expression(value)}" for key, value in pairs)
    return SqlExpression(f"CASE {x} {arms} ELSE {expression(default)} END") if pairs else expression(default)


def _encoder(x: NDArray, keys: NDArray, values: NDArray, default: float) -> NDArray[Any]:
    pairs = list(zip(keys.tolist(), values.tolist(), strict=True))
    return _entrywise(lambda each: _cases(each, pairs, default), x)


def _gather(x: NDArray, places: NDArray, axis: int) -> NDArray[Any]:
    if places.dtype != object:
        return operations.find("Gather")(x, places, axis)
    table = x.reshape(len(x), -1)
    one = [
        [_cases(each, list(enumerate(column)), np.nan) for column in table.T.tolist()] for each in places.reshape(-1)
    ]
    return np.array(one, dtype=object).reshape(*places.shape, *x.shape[1:])


def _first(entries: NDArray, sign: str, told: NDArray) -> SqlExpression:
    """What is told of the first entry that compares with all others as the sign says."""
    *before, last = range(len(entries))
    arms = [
        f"WHEN {' AND '.join(f'{entries[k]} {sign} {entries[other]}' for other in (*before, last) if other != k)} "
        f"THEN {expression(told[k])}"
        for k in before
    ]
    return SqlExpression(f"CASE {' '.join(arms)} ELSE {expression(told[last])} END") if arms else expression(told[last])


def _along(x: NDArray, axis: int, sign: str, told: Callable[[NDArray], NDArray]) -> NDArray[Any]:
    """`_first` along an axis."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axis, -1)
    out = np.empty(moved.shape[:-1], dtype=object)
    for place in np.ndindex(*out.shape):
        out[place] = _first(moved[place], sign, told(moved[place]))
    return out


def _fold(sign: str) -> Callable[..., NDArray[Any]]:
    """The largest or the smallest along axes."""

    def run(x: NDArray, axes: list[int], keepdims: int) -> NDArray[Any]:
        (axis,) = axes
        found = _along(x, axis, sign, lambda entries: entries)
        return np.expand_dims(found, axis) if keepdims else found

    return run


def _argmax(x: NDArray, axis: int) -> NDArray[Any]:
    return _along(x, axis, ">=", lambda entries: np.arange(len(entries)))


def _tree(x: NDArray, n_targets: int, roots: NDArray, target: NDArray, weight: NDArray, **told: Any) -> NDArray[Any]:
    if len(roots) > 1:
        raise Unsuitable("Many trees cannot be exported as SQL, a single tree can; use ONNX or Python.")

    def below(node: int) -> str:
        if node < 0:
            return str(expression(float(weight[-1 - node])))
        value, true, false = x[0, told["feature"][node]], told["true"][node], told["false"][node]
        if node in told["members"]:
            inside = ", ".join(str(expression(each)) for each in told["members"][node]) or "NULL"
            test = f"{value} IN ({inside})"
        else:
            test = f"{value} <= {expression(float(told['split'][node]))}"
        test = f"{value} IS NULL OR {test}" if told["missing_true"][node] else test
        return f"CASE WHEN {test} THEN {below(true)} ELSE {below(false)} END"

    return np.array([[SqlExpression(below(int(roots[0])))]], dtype=object)


#: Operations that arrays of expressions do as those of numbers.
UNCHANGED = {
    name: operations.find(name)
    for name in ("Add", "Sub", "Mul", "Div", "MatMul", "Concat", "Reshape", "ReduceSum", "Transpose")
}
SQL: dict[str, Callable[..., NDArray[Any]]] = {
    "Neg": _by_entry(lambda x: f"-{x}"),
    "Abs": _by_entry(lambda x: f"ABS({x})"),
    "Exp": _by_entry(lambda x: f"EXP({x})"),
    "Log": _by_entry(lambda x: f"LN({x})"),
    "Sqrt": _by_entry(lambda x: f"SQRT({x})"),
    "Floor": _by_entry(lambda x: f"FLOOR({x})"),
    "Sign": _by_entry(lambda x: f"SIGN({x})"),
    "Pow": _by_entry(lambda a, b: f"POWER({a}, {b})"),
    "Max": _by_entry(lambda a, b: f"CASE WHEN {a} > {b} THEN {a} ELSE {b} END"),
    "Min": _by_entry(lambda a, b: f"CASE WHEN {a} < {b} THEN {a} ELSE {b} END"),
    "Greater": _compare(">"),
    "GreaterOrEqual": _compare(">="),
    "Less": _compare("<"),
    "LessOrEqual": _compare("<="),
    "Equal": _compare("="),
    "And": _by_entry(lambda a, b: f"{a} AND {b}"),
    "Or": _by_entry(lambda a, b: f"{a} OR {b}"),
    "Not": _by_entry(lambda x: f"NOT {x}"),
    "IsNaN": _by_entry(lambda x: f"{x} IS NULL"),
    "IsInf": _by_entry(lambda x: _sure(f"ABS({x}) > 1.7976931348623157e308")),
    "Trim": lambda x, blanks: _by_entry(lambda each: f"TRIM({each})")(x),
    "Where": _where,
    "Cast": _cast,
    "LabelEncoder": _encoder,
    "Gather": _gather,
    "ReduceMax": _fold(">="),
    "ReduceMin": _fold("<="),
    "ArgMax": _argmax,
    "TreeEnsemble": _tree,
}


def run_sql(text: str, rows: ExportRows) -> dict[str, NDArray[Any]]:
    """The answers of a statement, by SQLite."""
    columns: dict[str, NDArray[Any]] = {}
    for name, array in rows.arrays.items():
        names = [f"x{k}" for k in range(array.shape[1])] if name == "X" else [name]
        columns |= dict(zip(names, array.T, strict=True))
    with sqlite3.connect(":memory:") as base:
        for name, function in FUNCTIONS.items():
            base.create_function(name, -1, _as_databases(function), deterministic=True)
        base.execute(f"CREATE TABLE rows ({', '.join(quoted(name) for name in columns)})")
        lines = [[None if value != value else value for value in line] for line in zip(*columns.values(), strict=True)]
        base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})", lines)
        cursor = base.execute(text)
        found = [dict(zip((each[0] for each in cursor.description), line, strict=True)) for line in cursor]
    return _as_arrays(found)


#: The functions of numbers that SQLite is given.
FUNCTIONS = {"EXP": math.exp, "LN": math.log, "SQRT": math.sqrt, "FLOOR": math.floor, "POWER": math.pow}


def _as_databases(function: Callable[..., float]) -> Callable[..., float | None]:
    """A function that gives infinity where its value is too large, and NULL for NULL and for what has no value."""

    def run(*numbers: float | None) -> float | None:
        try:
            return function(*numbers)
        except OverflowError:
            return math.inf
        except (TypeError, ValueError):
            return None

    return run


def _as_arrays(found: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Columns with a number at the end side by side."""
    out: dict[str, list[Any]] = {}
    for name in found[0]:
        stem, _, number = name.rpartition("_")
        out.setdefault(stem if number.isdecimal() else name, []).append([line[name] for line in found])
    return {
        name: np.array(columns[0]) if name in found[0] else np.column_stack([np.array(column) for column in columns])
        for name, columns in out.items()
    }
