"""`export`: a fitted model as a file for other programs, compared with the model before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.exports.graph import Graph
from empirisk.exports.onnx_file import onnx_model
from empirisk.exports.python_file import python_source, run_source
from empirisk.exports.registry import Answers, answers, asked, described
from empirisk.exports.rows import ExportRows, rows_for
from empirisk.exports.sql_file import run_sql, sql_text
from empirisk.files.atomic import whole_file

#: Relative difference beyond which a file does not say what the model says, and is not written.
LARGEST = 1e-6
#: The names of outputs, by the methods whose answers they are. Scores are written where there are no probabilities.
OUTPUTS = {"predict": "label", "predict_proba": "probabilities", "transform": "transformed"}
NUMBER = "number"


@dataclass(frozen=True)
class Exported:
    """What was written, and how it compares with the model.

    Attributes
    ----------
    path : Path
        The file.
    rows : int
        Rows that both have answered.
    difference : float
        The largest difference of two numbers, over the size of the model's where that is above 1.
    labels : int
        Rows with another label.
    """

    path: Path
    rows: int
    difference: float
    labels: int

    def __str__(self) -> str:
        labels = f", and {self.labels} labels differ" if self.labels else ""
        return f"Wrote {self.path}: on {self.rows} rows the largest difference is {self.difference:.1e}{labels}."


def export(model: Any, path: str | Path, X: Any = None) -> Exported:
    """Write a fitted model as a file that other programs run: ONNX, Python with NumPy alone, or SQL.

    The whole pipeline is written. A model of `learn` takes the raw columns of a table, numbers as numbers and all else
    as text, and gives a label and probabilities, or a number; other estimators take a matrix ``X``. Numbers are doubles
    throughout. Before it is written the file answers some rows, and its answers are compared with those of the model.

    Parameters
    ----------
    model : estimator or TableModel
        Fitted.
    path : str or Path
        The file, whose ending says what to write: ``.onnx``, ``.py`` or ``.sql`` (linear machines and single trees).
    X : table, optional
        Rows to compare on; made up from what the model knows of its columns where none are given.

    Returns
    -------
    Exported
        The largest difference, the rows, and the path.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> machine = er.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> with TemporaryDirectory() as folder:
    ...     exported = er.export(machine, Path(folder) / "model.onnx")
    >>> exported.labels, exported.difference < 1e-12
    (0, True)
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise EmpiriskError(f"path={str(path)!r} has an ending that is not known; use one of {sorted(WRITERS)}.")
    rows = rows_for(model, X)
    told = _outputs(asked(model, rows.table), model)  # first: a row that the model refuses is named by its own sentence
    content, found = WRITERS[path.suffix](model, rows, path)
    report = _compared(told, found, path)
    if not report.difference <= LARGEST:
        raise EmpiriskError(
            f"{type(model).__name__} was not written: the file would differ from the model by "
            f"{report.difference:.1e} on {report.rows} rows; export it in another form."
        )
    with whole_file(path.absolute()) as file:
        file.write(content)
    return report


def graph_of(model: Any, rows: ExportRows) -> Graph:
    """The graph of a fitted model."""
    entries = rows.entries()
    outputs = _outputs(answers(model, ExportRows.joined(entries)), model)
    return Graph(entries, outputs, described(model)[0])


def _outputs(found: Answers, model: Any) -> dict[str, Any]:
    """Answers by the names of outputs; of several labels the probabilities of each have a number."""
    names = dict(OUTPUTS)
    if not described(model)[1]:
        names["predict"] = NUMBER if "transform" not in found else "label"
    if "predict_proba" not in found:
        names["decision_function"] = "scores"
    named = {}
    for method, name in names.items():
        answer = found.get(method)
        if isinstance(answer, list):
            named |= {f"{name}_{number}": each for number, each in enumerate(answer)}
        elif answer is not None:
            named[name] = answer
    return named


def _compared(told: dict[str, Any], found: dict[str, NDArray[Any]], path: Path) -> Exported:
    """The largest differences between what the model says and what the file says."""
    difference, labels, rows = 0.0, 0, 0
    for name, values in found.items():
        model, file = np.asarray(told[name]), np.asarray(values)
        rows = len(model)
        if model.dtype.kind == "f" and name != "label":
            with np.errstate(invalid="ignore"):
                gaps = np.abs(file - model) / np.maximum(np.abs(model), 1.0)
            same = (file == model) | (np.isnan(file) & np.isnan(model))
            difference = max(difference, float(np.where(same, 0.0, np.nan_to_num(gaps, nan=np.inf)).max(initial=0.0)))
        else:
            labels += int((model.astype(str) != file.astype(str)).reshape(rows, -1).any(axis=1).sum())
    return Exported(path, rows, difference, labels)


# --- the forms --------------------------------------------------------------------------------------------------------


def _write_onnx(model: Any, rows: ExportRows, path: Path) -> tuple[bytes, dict[str, NDArray[Any]]]:
    graph = graph_of(model, rows)
    content = onnx_model(graph).SerializeToString()
    return content, run_onnx(content, rows.arrays)


def run_onnx(content: bytes, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The answers of a model of ONNX, by onnxruntime."""
    import onnxruntime  # `onnx_model` has asked for both packages

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    used = {each.name for each in session.get_inputs()}
    fed = {name: array for name, array in arrays.items() if name in used}
    return dict(zip(names, session.run(names, fed), strict=True))


def _write_python(model: Any, rows: ExportRows, path: Path) -> tuple[bytes, dict[str, NDArray[Any]]]:
    source = python_source(graph_of(model, rows), path.stem)
    given = {name: array if name == "X" else array[:, 0] for name, array in rows.arrays.items()}
    return source.encode(), run_source(source, given)


def _write_sql(model: Any, rows: ExportRows, path: Path) -> tuple[bytes, dict[str, NDArray[Any]]]:
    text = sql_text(model, graph_of(model, rows))
    return text.encode(), run_sql(text, rows)


#: How a file is written, by its ending: its content, and what that answers to the rows.
WRITERS: dict[str, Callable[[Any, ExportRows, Path], tuple[bytes, dict[str, NDArray[Any]]]]] = {
    ".onnx": _write_onnx,
    ".py": _write_python,
    ".sql": _write_sql,
}
