"""The shell lines and the Python lines that do what the page does, to be copied."""

import csv
import io
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from empirisk.studio.workbench.kept import ANSWERS, ROWS

Lines = dict[str, str]

NEAREST = 5  # known rows that are shown


def learn_lines(table: str, request: Mapping[str, Any], out: str) -> Lines:
    """What a run does."""
    words, options = ["empirisk", "learn", table], {name: value for name, value in request.items() if name != "data"}
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, dict):
            words += [option, ",".join(f"{column}={kind}" for column, kind in value.items())]
        elif isinstance(value, list):
            words += [option, ",".join(map(str, value))]
        else:
            words += [option] if value is True else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return {
        "shell": shlex.join([*words, "--out", out]),
        "python": f"import empirisk as er\n\nfound = er.learn({table!r}{given}, out={out!r})\nprint(found)",
    }


def result_lines(model: str, learn: Lines | None, target: str, classes: list[Any]) -> dict[str, Lines]:
    """What the views of a result do, by their names; ``learn`` are the lines of the run, where it was learned here."""
    load = f"import empirisk as er\n\nmodel = er.load({model!r})\nrows = er.tables.read('new.csv')\n"
    predict = ["empirisk", "predict", model, "new.csv", "-o", "predictions.csv"]
    score = shlex.join(["empirisk", "score", model, "new.csv"])
    known = "scored = er.score(model, rows)  # where new.csv has the truth\nprint(scored.scores, scored.drift)"
    found = {
        "files": {"shell": f"{shlex.join(predict)}\n{score}", "python": f"{load}print(model.answers(rows))\n{known}"},
    }
    if learn is not None:
        fit = learn["python"].rpartition("\n")[0]
        rows = "test = found.plan.frame[found.plan.test]\n"
        wrong = "test.filter(found.test.predictions != found.test.truth)"
        if not classes:
            wrong = 'test.with_columns(off=abs(found.test.predictions - found.test.truth)).sort("off", descending=True)'
        shell = f"{learn['shell']}  # the report shows it"
        found["matter"] = {"shell": shell, "python": f"{fit}\nprint(found.importances, found.effects)"}
        found["errors"] = {"shell": shell, "python": f"{fit}\n{rows}print({wrong})"}
        if len(classes) == 2:
            code = f"print(model.predict_proba(rows)[:, 1] >= 0.5)  # {target} is {classes[1]}"
            found["threshold"] = {"shell": shlex.join(predict), "python": load + code}
    return found


def row_lines(model: str, row: Mapping[str, Any], explained: bool, interval: bool) -> Lines:
    """The prediction of one row, where there is one its interval, and what every column adds where that is known."""
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([row.keys(), row.values()])
    write, predict = shlex.join(["printf", "%s", table.getvalue()]), ["empirisk", "predict", model, "row.csv"]
    options = [*["--interval", "90"] * interval, *["--explain"] * explained]
    between = "\nprint(model.predict_interval(rows, 0.9))"
    adds = "\nprint([column.name for column in model.schema.used], model.explain(rows))"
    return {
        "shell": f"{write} > row.csv\n{shlex.join([*predict, *options])}",
        "python": f"import empirisk as er\n\nmodel = er.load({model!r})\nrows = [{dict(row)!r}]\n"
        f"print(model.answers(rows)){between * interval}{adds * explained}",
    }


def nearest_lines(model: str, tested: int, row: Mapping[str, Any]) -> Lines:
    """The nearest known rows of one row, from the files of a run, whose first rows are those of the test."""
    rows, answers = (str(Path(model).with_name(name)) for name in (ROWS, ANSWERS))
    return {
        "python": "import numpy as np\nfrom scipy.sparse import csr_array\n\nimport empirisk as er\n\n"
        f"model = er.load({model!r})\nrow = {dict(row)!r}\nknown = er.tables.read({rows!r})[{tested}:]\n"
        f"truth = er.tables.read({answers!r})['1'][{tested}:]\n"
        "X, one = (csr_array(model.encode(rows)).toarray() for rows in (known, [row]))\nscale = np.nanstd(X, axis=0)\n"
        "gaps = np.nan_to_num((X - one) / np.where(scale > 0, scale, 1))\ndistance = (gaps**2).sum(axis=1) ** 0.5\n"
        f"print(known.with_columns(truth=truth, distance=distance).sort('distance').head({NEAREST}))"
    }


def compare_lines(models: list[str], target: str, classes: bool) -> Lines:
    """The comparison of two models on a file with the truth."""
    error = "one.predict(rows) != truth" if classes else "abs(one.predict(rows) - truth)"
    return {
        "shell": "\n".join(shlex.join(["empirisk", "score", model, "new.csv"]) for model in models),
        "python": "import numpy as np\n\nimport empirisk as er\n\nrows = er.tables.read('new.csv')\n"
        f"truth = rows[{target!r}].to_numpy()\nmodels = [er.load(name) for name in {models!r}]\n"
        f"first, second = (np.asarray({error}, dtype=float) for one in models)\ngap = first - second\n"
        "print(gap.mean(), '+-', 1.96 * gap.std(ddof=1) / len(gap) ** 0.5)",
    }
