"""The shell lines and the Python lines that do what the page does, to be copied."""

import csv
import io
import shlex
from collections.abc import Mapping
from typing import Any

Lines = dict[str, str]


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
    found = {
        "files": {"shell": f"{shlex.join(predict)}\n{score}", "python": f"{load}print(model.answers(rows))"},
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


def row_lines(model: str, row: Mapping[str, Any], explained: bool) -> Lines:
    """The prediction of one row, and what every column adds where the machine can tell."""
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([row.keys(), row.values()])
    write, predict = shlex.join(["printf", "%s", table.getvalue()]), ["empirisk", "predict", model, "row.csv"]
    python = f"import empirisk as er\n\nmodel = er.load({model!r})\nrows = [{dict(row)!r}]\nprint(model.answers(rows))"
    adds = "\nprint([column.name for column in model.schema.used], model.explain(rows))"
    return {
        "shell": f"{write} > row.csv\n{shlex.join([*predict, *['--explain'] * explained])}",
        "python": python + adds * explained,
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
