"""Graphs as one file of Python that needs NumPy alone."""

from __future__ import annotations

import ast
import base64
import inspect
import io
import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import __version__
from empirisk.exports import operations
from empirisk.exports.graph import Graph
from empirisk.exports.tensor import Node, Tensor, kind_of

#: Entries up to which an array is written out as a list.
FEW = 8
#: Letters of a line of encoded numbers.
LINE = 110

HEAD = '''"""{about}

Written by Empirisk {version}. It needs Python and NumPy alone:

    import {module}
    {module}.answers({example})

or, with rows of CSV under a header:  python {module}.py < rows.csv
"""

import base64
import io
import sys
{imports}

INPUTS = {inputs}


def answers(rows):
    """{outputs} of each row. ``rows`` is {rows}.

    Numbers may be NaN or None where they are missing, and words "" or None.
    """
    given = _columns(rows)
    with np.errstate(all="ignore"):
        return _answers(*(_column(given[name], kind, shape) for name, kind, shape in INPUTS))


def _columns(rows):
    """What is given, by the names of the inputs."""
    if [name for name, *_ in INPUTS] == ["X"]:
        return {{"X": rows["X"] if isinstance(rows, dict) else rows}}
    if isinstance(rows, dict):
        return rows
    return {{name: [row[name] for row in rows] for name, *_ in INPUTS}}


def _column(values, kind, shape):
    """A column of numbers or words as an array."""
    if kind == "string":
        words = ["" if value is None or value != value else str(value) for value in values]
        return np.array(words, dtype=object).reshape(-1, *shape)
    if shape == [1] and not isinstance(values, np.ndarray):
        values = [np.nan if value is None or value == "" else float(value) for value in values]
    return np.asarray(values, dtype=np.float64).reshape(-1, *shape)


'''

TAIL = '''

def main():
    """Rows of CSV with a header from standard input; answers as CSV to standard output."""
    import csv

    header, *lines = csv.reader(sys.stdin)
    if [name for name, *_ in INPUTS] == ["X"]:
        found = answers(np.array([[float(value or "nan") for value in line] for line in lines]))
    else:
        found = answers({{name: [line[header.index(name)] for line in lines] for name, *_ in INPUTS}})
    columns = {{}}
    for name, values in found.items():
        for k, column in enumerate(values.reshape(len(lines), -1).T):
            columns[name if values.ndim == 1 else f"{{name}}_{{k}}"] = column
    out = csv.writer(sys.stdout)
    out.writerow(columns)
    out.writerows(zip(*(column.tolist() for column in columns.values())))


C = {{name: array for name, array in np.load(io.BytesIO(base64.b85decode("".join("""
{constants}
""".split())))).items()}}


if __name__ == "__main__":
    main()
'''


def python_source(graph: Graph, module: str = "model") -> str:
    """The text of the file.

    >>> from empirisk.exports.tensor import entry
    >>> x = entry("X", np.ones((1, 2)))
    >>> "v0 = Exp(x0)" in python_source(Graph((x,), {"y": np.exp(x)}))
    True
    """
    writer = _PythonWriter()
    lines = writer.lines(graph)
    names = ", ".join(f"x{k}" for k in range(len(graph.inputs)))
    used = sorted({node.operation for node in graph.nodes()})
    inputs = [
        (tensor.node.attributes["name"], kind_of(tensor.value), list(tensor.shape[1:])) for tensor in graph.inputs
    ]
    single = [name for name, *_ in inputs] == ["X"]
    functions = "\n\n\n".join(_source(name) for name in used)
    head = HEAD.format(
        about=graph.about,
        version=__version__,
        module=module,
        example="X" if single else "{" + ", ".join(f"{name!r}: [...]" for name, *_ in inputs[:3]) + ", ...}",
        imports="\n".join(line for line in operations.IMPORTS if line.split()[1] in f"{functions} np numpy"),
        inputs=repr(inputs),
        outputs=", ".join(graph.outputs).capitalize(),
        rows="an array of numbers" if single else "a mapping of columns, or a list of rows, each a mapping",
    )
    body = f"def _answers({names}):\n" + textwrap.indent("\n".join(lines), "    ")
    return head + functions + "\n\n\n" + body + "\n" + TAIL.format(constants=writer.packed())


def _source(name: str) -> str:
    """A function of an operation, without the marks for linters."""
    return inspect.getsource(operations.find(name)).replace("  # noqa: D103", "").rstrip()


class _PythonWriter:
    """Names tensors and arrays."""

    def __init__(self) -> None:
        self.names: dict[tuple[int, int], str] = {}
        self.arrays: dict[str, NDArray[Any]] = {}
        self.count = 0

    def lines(self, graph: Graph) -> list[str]:
        """One assignment for each operation, and the answers."""
        for number, tensor in enumerate(graph.inputs):
            self.names[id(tensor.node), 0] = f"x{number}"
        found = [self.line(node) for node in graph.nodes()]
        told = ", ".join(f"{name!r}: {self.name(tensor)}" for name, tensor in graph.outputs.items())
        return [*found, f"return {{{told}}}"]

    def line(self, node: Node) -> str:
        arguments = [self.name(each) for each in node.inputs]
        arguments += [f"{name}={self.written(value)}" for name, value in node.attributes.items()]
        outputs = [f"v{self.count + k}" for k in range(MANY.get(node.operation, 1))]
        self.count += len(outputs)
        for k, name in enumerate(outputs):
            self.names[id(node), k] = name
        return f"{', '.join(outputs)} = {node.operation}({', '.join(arguments)})"

    def name(self, tensor: Tensor) -> str:
        return self.names.get((id(tensor.node), tensor.output)) or self.written(tensor.value)

    def written(self, value: Any) -> str:
        """A value as Python reads it; larger arrays stand at the end of the file."""
        if not isinstance(value, np.ndarray):
            return "np.nan" if isinstance(value, float) and np.isnan(value) else repr(value)
        if value.size <= FEW and value.dtype.kind in "fib" and np.isfinite(value).all():
            return f"np.array({value.tolist()!r})" if value.size else f"np.zeros({value.shape!r})"
        if value.dtype.kind == "O":
            value = value.astype(str)
        name = f"a{len(self.arrays)}"
        self.arrays[name] = value
        return f'C["{name}"]'

    def packed(self) -> str:
        """All larger arrays as letters."""
        file = io.BytesIO()
        np.savez_compressed(file, **self.arrays)  # type: ignore[arg-type]
        letters = base64.b85encode(file.getvalue()).decode().replace("\\", "\\\\")
        return "\n".join(textwrap.wrap(letters, LINE)) if letters else ""


MANY = {"TopK": 2, "StringSplit": 2}


def run_source(source: str, rows: Any) -> dict[str, NDArray[Any]]:
    """The answers of a file of Python, without writing it."""
    ast.parse(source)
    place: dict[str, Any] = {"__name__": "exported"}
    exec(compile(source, "exported", "exec"), place)  # our own text of a moment ago
    return place["answers"](rows)
