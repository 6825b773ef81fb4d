"""Seconds until the studio answers on a table of a million rows: ``python -m benchmarks studio``.

The table is in memory after its first answer; the run is made by one quick machine, and its first view reads the model
and the rows that the run has kept. Every answer but the first of the table should take less than 0.3 s, and hold at
most 5 000 points.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import polars as pl

from empirisk.league.jobs import Job
from empirisk.league.records import as_json
from empirisk.league.request import Request
from empirisk.league.result import Learned
from empirisk.league.rows.split import Plan, plan
from empirisk.studio.playground.fitting import fit
from empirisk.studio.playground.picture import answer
from empirisk.studio.playground.points import dataset
from empirisk.studio.playground.question import Question
from empirisk.studio.workbench import results, tables
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.kept import KeptRows

ROWS = 1_000_000  # of the table
SECONDS = 60.0  # for the run that makes a model
TOWNS = [f"town {number}" for number in range(40)]


def table(rows: int) -> pl.DataFrame:
    """Numbers, words and gaps, and a class that two of the columns decide."""
    random = np.random.default_rng(0)
    columns = {f"x{number}": random.normal(size=rows).round(4) for number in range(8)}
    towns = random.integers(len(TOWNS), size=rows)
    gaps = pl.Series(columns["x7"]).set(pl.Series(random.random(rows) < 0.1), None)
    label = np.where(columns["x0"] + 0.5 * columns["x1"] + random.normal(size=rows) > 0, "yes", "no")
    return pl.DataFrame({**columns, "x7": gaps, "town": pl.Series(TOWNS).gather(towns), "label": label})


def tested_on_all(learned: Learned, whole: Plan) -> Learned:
    """The same model, judged by a fifth of all rows: a run with a limit of time judges by fewer."""
    rows = whole.frame[whole.test]
    said, shares = learned.model.predict(rows), learned.model.predict_proba(rows)
    test = replace(learned.test, truth=whole.y[whole.test], predictions=said, probabilities=shares)
    return replace(learned, plan=whole, test=test)


def timed(name: str, view) -> None:
    begin, work = perf_counter(), process_time()
    found = view()
    seconds, work = perf_counter() - begin, process_time() - work
    print(f"  {name:<34} {seconds:6.3f} s {work:6.3f} s of a processor {len(json.dumps(as_json(found))):>8,} bytes")


def run() -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "million.parquet"
        table(ROWS).write_parquet(path)
        source = str(path)
        timed("table, first answer (reads it)", lambda: tables.told("million", source, {}))
        timed("table", lambda: tables.told("million", source, {}))
        timed("a type corrected", lambda: tables.told("million", source, {"x3": "category"}))
        timed("what learn would notice", lambda: tables.notes(source, {"target": "label"}))
        made = StudioFolder(Path(place)).new_run({"name": "million", "request": {"data": source, "target": "label"}})
        learned = Job(Request(source, "label", machines=["tree"], time=SECONDS, out=made / "result")).run()
        learned = tested_on_all(learned, plan(Request(source, "label")))
        timed("rows of the run, kept at its end", lambda: KeptRows.of(learned).write(made))
        run = results.open_run(made)
        print(f"  the run has {len(run.rows.said):,} test rows")
        timed("what-if form, first answer", lambda: results.form(run, 0))
        timed("test rows, first answer", lambda: results.threshold(run))
        timed("threshold", lambda: results.threshold(run))
        timed("rows it errs on", lambda: results.errors(run, []))
        timed("effect of a column", lambda: results.effect(run, "x0"))
        row = {field["name"]: field["value"] for field in results.form(run, 0)["fields"]}
        timed("what-if form", lambda: results.form(run, 1))
        timed("what if", lambda: results.what_if(run, row))
        timed("nearest known rows, first answer", lambda: results.nearest(run, row, []))
        timed("nearest known rows", lambda: results.nearest(run, row, []))
        timed("two runs compared", lambda: results.compare(run, run))
    points = dataset("classes", "moons", 300, 0.2, 0)
    for C in (0.5, 1.0, 2.0):  # the first compiles
        question = Question.from_dict({"points": points, "settings": {"features": "kernel", "C": C}})
        timed(f"playground, 300 points, C={C:g}", lambda question=question: answer(question, fit(question)))
