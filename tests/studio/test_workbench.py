"""The workbench over plain HTTP: tables, runs in their processes, and what is asked of results."""

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.kept import KeptRows
from empirisk.studio.workbench.lines import compare_lines, learn_lines, nearest_lines, result_lines, row_lines
from empirisk.studio.workbench.opening import open_source
from empirisk.studio.workbench.results import compare, nearest, open_run
from empirisk.studio.workbench.runs import NO_ROOM, Runs
from tests.studio.studios import ask, enter, learned_runs, process_of, running

EVIL = "<script>alert(1)</script>"


class Visitor:
    """One who has entered a studio."""

    def __init__(self, studio):
        self.port, self.cookie = studio[0], enter(studio)

    def ask(self, path, body=None):
        """The answer as JSON, which must be good."""
        status, _, text = ask(self.port, path, self.cookie, body)
        assert status == 200, text
        found = json.loads(text)
        assert "error" not in found, found
        return found

    def refused(self, path, body=None):
        """What HTTP would call a refusal, and its sentence; the status of the response is one that no console lists."""
        status, _, text = ask(self.port, path, self.cookie, body)
        assert status == 200
        found = json.loads(text)
        return found["status"], found["error"]

    def over(self, run, seconds=90):
        """Wait for the end of a run."""
        end = time.monotonic() + seconds
        while (found := self.ask(f"/runs/{run}"))["state"] == "running":
            assert time.monotonic() < end
            time.sleep(0.1)
        return found


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def visitor(parent):
    with running(parent) as studio:
        yield Visitor(studio)


@pytest.fixture(scope="module")
def learned(visitor, parent):
    found = learned_runs(parent)
    assert [visitor.ask(f"/runs/{run}")["state"] for run in found] == ["done", "done"]
    return found


def test_a_dropped_table_is_understood_and_corrected(visitor):
    rows = "".join(f"{k % 7},{'ab'[k % 2]},{k * 1.5},{'yes' if k % 3 else 'no'}\n" for k in range(60))
    text = f"rooms,{EVIL},size,label\n{rows}".encode()
    name = visitor.ask("/upload?name=..%2F..%2Fetc%2Fmine.csv", text)["name"]
    assert name == "mine.csv"
    assert visitor.ask("/upload?name=mine.csv", text)["name"] == "mine 2.csv"
    table = visitor.ask("/table", {"name": name})
    assert (table["rows"], table["columns"][0]["kind"]) == (60, "number")
    assert sum(table["columns"][2]["bars"]) == 60
    assert table["columns"][1]["name"] == EVIL
    table = visitor.ask("/table", {"name": name, "types": {"rooms": "category"}})
    assert table["columns"][0]["kind"] == "category"
    notes = visitor.ask("/table/notes", {"name": name, "options": {"target": "label", "types": {"rooms": "category"}}})
    assert notes["classes"] == 2
    start = "empirisk learn empirisk-studio/tables/mine.csv --target label --types rooms=category"
    assert notes["lines"]["shell"].startswith(start)
    assert ["tree", "Pruned tree"] in notes["machines"]
    assert ["roc_auc", "area under the ROC"] in notes["metrics"]
    wrong = {"name": name, "options": {"target": "label", "test": 5}}
    assert "between 0 and 1" in visitor.refused("/table/notes", wrong)[1]
    visitor.ask("/table/do", {"name": "mine 2.csv", "do": "delete"})
    assert "mine 2.csv" not in [one["name"] for one in visitor.ask("/list")["tables"]]
    assert visitor.ask("/table/do", {"name": name, "do": "rename", "to": "../theirs"})["name"] == "theirs.csv"
    assert visitor.ask("/table", {"name": "theirs.csv"})["rows"] == 60
    assert visitor.refused("/table/do", {"name": "iris", "do": "delete"})[0] == 404


def test_what_is_noticed_is_told_in_the_words_of_the_page(visitor):
    """Ids, leaks, copies of rows, dates that order them and groups; what to do about it is an option of the page."""
    lines = [
        f"r{k:05d},P{k // 4:03d},2024-01-{1 + k // 20:02d} {k % 20:02d}:00,{(k * 7) % 100},{k % 2},{'ny'[k % 2]}"
        for k in range(200)
    ]
    visitor.ask("/upload?name=noticed.csv", "\n".join(["key,patient,day,x,copy,label", *lines]).encode())
    notes = visitor.ask("/table/notes", {"name": "noticed.csv", "options": {"target": "label"}})
    said = " ".join(notes["warnings"])
    for words in (
        "'key' (identifier: it names rows)",
        "“Columns to leave out: copy”",
        "“Rows are in the order of: day”",
        "“Rows that belong together share: patient”",
    ):
        assert words in said, words
    alike = {"target": "label", "drop": ["key", "day", "patient", "x"]}
    copies = visitor.ask("/table/notes", {"name": "noticed.csv", "options": alike})["warnings"]
    assert any("equal a training row in every column" in warning for warning in copies)


def test_other_users_do_not_enter_the_folder(visitor, parent):
    visitor.ask("/upload?name=own.csv", b"a,b\n1,2\n")
    assert (parent / "empirisk-studio").stat().st_mode & 0o077 == 0


def test_no_path_of_a_client_is_opened(visitor, parent):
    for name in ("/etc/passwd", "../secret.csv", "tables/../../x.csv"):
        assert visitor.refused("/table", {"name": name})[0] == 404
        assert visitor.refused("/learn", {"name": name, "options": {"target": "x"}})[0] == 404
    for name in ("..", "passwd", "x.exe", ".csv", ""):
        assert visitor.refused(f"/upload?name={name}", b"a,b\n")[0] == 415
    assert ask(visitor.port, "/runs/..%2F..%2Fx", visitor.cookie)[0] == 404
    assert visitor.refused("/runs/x")[0] == 404
    assert visitor.refused("/learn", {"name": "iris", "options": {"out": "/tmp/x"}})[0] == 422
    assert not list((parent / "empirisk-studio").rglob("*.part"))


def test_results_answer(visitor, learned):
    run = learned[0]
    told = visitor.ask(f"/runs/{run}")
    assert "of cases" in told["summary"]
    assert "empirisk learn tickets --target escalated --machines logistic" in told["lines"]["learn"]["shell"]
    assert told["columns"][0] == "opened"
    counts = visitor.ask(f"/runs/{run}/threshold", {})["threshold"]["counts"]
    rows = visitor.ask(f"/runs/{run}/errors", {"columns": ["vip"]})
    half = counts["thresholds"].index(0.5)
    wrong = counts["alarms"][half] + counts["positives"] - counts["found"][half]
    assert rows["wrong"] == wrong == len(rows["rows"])
    assert rows["columns"] == ["vip"]
    assert visitor.ask(f"/runs/{run}/effect", {"column": "earlier_tickets"})["drawn"] == "numbers"
    form = visitor.ask(f"/runs/{run}/form", {"place": rows["rows"][0]["place"]})
    row = {field["name"]: field["value"] for field in form["fields"]}
    answer = visitor.ask(f"/runs/{run}/what-if", {"row": row})
    assert answer["prediction"] == rows["rows"][0]["said"]
    assert sum(share for _, share in answer["probabilities"]) == pytest.approx(1.0)
    assert {name for name, _ in answer["adds"]} == set(row)
    near = visitor.ask(f"/runs/{run}/nearest", {"row": row})["rows"]
    assert [one["distance"] for one in near] == sorted(one["distance"] for one in near)
    assert visitor.refused(f"/runs/{run}/what-if", {"row": row | {"customer_age": "old"}})[0] == 422
    status, headers, page = ask(visitor.port, f"/runs/{run}/report", visitor.cookie)
    assert status == 200
    assert headers["content-security-policy"].startswith("sandbox")
    assert "tickets" in page


def test_a_file_is_predicted_and_scored(visitor, learned):
    table = er.tables.read("tickets")
    status, headers, text = ask(
        visitor.port,
        f"/runs/{learned[0]}/file/predict?name=new.csv",
        visitor.cookie,
        table.drop("escalated").write_csv().encode(),
    )
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    assert len(text.splitlines()) == 601
    assert "P(escalated=yes)" in text.splitlines()[0]
    scored = visitor.ask(f"/runs/{learned[0]}/file/score?name=new.csv", table.write_csv().encode())
    assert scored["rows"] == 600
    assert scored["scores"][0]["low"] < scored["scores"][0]["value"] < scored["scores"][0]["high"]
    status, sentence = visitor.refused(f"/runs/{learned[0]}/file/score?name=new.csv", b"a,b\n1,2\n")
    assert (status, "escalated" in sentence) == (422, True)


def test_two_runs_are_compared(visitor, learned, parent):
    found = visitor.ask("/compare", {"runs": learned})
    folder = StudioFolder(parent)
    one, other = (open_run(folder.run(run)) for run in learned)
    wrong = [(run.test.truth != run.test.predictions).astype(float) for run in (one, other)]
    assert found["difference"] == pytest.approx(np.mean(wrong[0] - wrong[1]))
    assert found["low"] <= found["difference"] <= found["high"]
    assert compare(one, one)["difference"] == 0


def test_runs_of_different_tables_are_not_compared(visitor, learned, parent):
    """Rows of the same numbers are the same rows in the same table alone."""
    turned = er.tables.read("tickets").reverse()
    visitor.ask("/upload?name=turned.csv", turned.write_csv().encode())
    (other,) = learned_runs(parent, StudioFolder(parent).table("turned.csv"), machines=["tree"])
    assert "rows of these two differ" in visitor.refused("/compare", {"runs": [learned[0], other]})[1]
    visitor.ask(f"/runs/{other}/do", {"do": "delete"})


def test_moments_are_numbers_that_a_slider_takes(visitor, learned):
    run = learned[0]
    effect = visitor.ask(f"/runs/{run}/effect", {"column": "opened"})
    assert effect["drawn"] == "dates"
    assert effect["values"] == sorted(effect["values"])
    form = visitor.ask(f"/runs/{run}/form", {"place": 0})
    field = next(one for one in form["fields"] if one["name"] == "opened")
    assert (field["tag"], field["drawn"], field["step"]) == ("range", "dates", 86_400e6)
    assert field["low"] <= effect["values"][0] < effect["values"][-1] <= field["high"]
    row = {one["name"]: one["value"] for one in form["fields"]} | {"opened": "2024-02-29"}
    assert visitor.ask(f"/runs/{run}/what-if", {"row": row})["prediction"] in ("yes", "no")


def test_names_and_deletion(visitor, learned, parent):
    run = "0123456789ab"
    shutil.copytree(StudioFolder(parent).run(learned[0]), parent / "empirisk-studio" / "runs" / run)
    visitor.ask(f"/runs/{run}/do", {"do": "rename", "name": EVIL})
    assert visitor.ask(f"/runs/{run}")["name"] == EVIL
    assert visitor.refused(f"/runs/{run}/do", {"do": "finish"})[0] == 409
    visitor.ask(f"/runs/{run}/do", {"do": "delete"})
    assert visitor.refused(f"/runs/{run}")[0] == 404


@pytest.mark.long
def test_a_failing_run_ends_as_a_sentence(visitor):
    run = visitor.ask("/learn", {"name": "iris", "options": {"target": "petals"}})["id"]
    found = visitor.over(run)
    assert found["state"] == "failed"
    assert "petals" in found["summary"]


@pytest.mark.long
def test_stop_and_kill_and_restart(tmp_path):
    with running(tmp_path) as studio:
        visitor = Visitor(studio)
        start = {"name": "digits", "options": {"target": "digit"}}
        stopped, killed = (visitor.ask("/learn", start)["id"] for _ in range(2))
        folder = StudioFolder(tmp_path)
        while not (folder.run(killed) / "events.jsonl").exists() or not (folder.run(stopped) / "events.jsonl").exists():
            time.sleep(0.05)
        visitor.ask(f"/runs/{stopped}/do", {"do": "stop"})
        assert visitor.over(stopped)["summary"].startswith("The job was stopped")
        os.kill(process_of(folder.run(killed)), signal.SIGKILL)
        assert visitor.over(killed)["state"] == "cut off"
    with running(tmp_path) as studio:
        visitor = Visitor(studio)
        assert {run["id"]: run["state"] for run in visitor.ask("/list")["runs"]} == {
            stopped: "stopped",
            killed: "cut off",
        }
        visitor.ask(f"/runs/{killed}/do", {"do": "resume"})
        assert visitor.ask(f"/runs/{killed}")["state"] == "running"


def test_what_the_studio_is_started_with(tmp_path):
    assert open_source(tmp_path, None)[1] == ""
    table = tmp_path / "a b&c.csv"
    table.write_text("x,y\n1,2\n")
    folder, start = open_source(tmp_path, table)
    assert start == "#table=a%20b%26c.csv"
    assert folder.table("a b&c.csv") == str(table)
    model = tmp_path / "iris.model"
    er.save(er.learn("iris", machines=["centroid"]).model, model)
    folder, start = open_source(tmp_path, model)
    run = open_run(folder.run(start.partition("=")[2]))
    assert run.model.target.name == "species"
    with pytest.raises(EmpiriskError, match="without its table"):
        run.rows  # noqa: B018
    with pytest.raises(EmpiriskError, match="does not exist"):
        open_source(tmp_path, tmp_path / "nothing.csv")


def test_lines_of_every_option():
    asked = {"target": "y", "time": 60.0, "machines": ["tree", "svm"], "types": {"a": "text"}, "balance": True}
    found = learn_lines("t.csv", asked, "result")
    assert found["shell"] == (
        "empirisk learn t.csv --target y --time 60 --machines tree,svm --types a=text --balance --out result"
    )
    assert "time=60.0, machines=['tree', 'svm']" in found["python"]


def test_every_line_runs(learned, parent, tmp_path, monkeypatch, capsys):
    """The lines that can be copied, run one after the other in a folder with a new file."""
    monkeypatch.chdir(tmp_path)
    er.tables.read("tickets").write_csv("new.csv")
    models = [str(StudioFolder(parent).run(run) / "result.model") for run in learned]
    learn = learn_lines("tickets", {"target": "escalated", "machines": ["centroid"]}, "own")
    found = {"learn": learn, "compare": compare_lines(models, "escalated", classes=True)}
    found |= result_lines(models[0], learn, "escalated", ["no", "yes"])
    row = er.tables.read("tickets").drop("escalated").row(0, named=True) | {"subject": 'it\'s, so "to say", slow'}
    row = {name: str(value) for name, value in row.items()}
    found["whatif"] = row_lines(models[0], row, explained=True, interval=False)
    run = open_run(Path(models[0]).parent)
    found["nearest"] = nearest_lines(models[0], len(run.rows.test), row)
    assert set(found) == {"learn", "whatif", "nearest", "matter", "errors", "threshold", "files", "compare"}
    monkeypatch.setattr("empirisk.report.page.page", lambda learned, file: f"report of {learned.name}")
    names, again = {}, next(line for line in learn["python"].splitlines() if "er.learn" in line)
    for view, lines in found.items():
        shell = lines.get("shell", "").splitlines()
        python = lines["python"].replace("out='own'", "out='own', force=True")
        if view in ("matter", "errors"):  # they learn first, as above
            assert again in lines["python"]
            shell, python = [], lines["python"].replace(again, "")
        if view == "whatif":
            write, predict = lines["shell"].rsplit("\n", 1)
            subprocess.run(write, shell=True, check=True)
            shell = [predict]
        for line in shell:
            done = CliRunner().invoke(app, shlex.split(line)[1:])
            assert done.exit_code == 0, (view, done.output)
        exec(compile(python, view, "exec"), names)
        if view == "nearest":  # those that the page shows
            near = nearest(run, row, [])["rows"]
            same = names["known"].with_columns(truth=names["truth"], distance=names["distance"]).sort("distance")
            assert same["distance"].head(5).to_list() == pytest.approx([one["distance"] for one in near])
            assert same["truth"].head(5).to_list() == [one["truth"] for one in near]
        if view == "files":  # the same as in the shell
            assert names["scored"].scores[0].value == er.score(er.load(models[0]), "tickets").scores[0].value
    assert Path("predictions.csv").exists()
    assert "+-" in capsys.readouterr().out
    numbers = result_lines("a.model", learn_lines("diabetes", {"target": "progress"}, "d"), "progress", [])
    assert "sort" in numbers["errors"]["python"]
    er.save(er.learn("diabetes", "progress", machines=["tree"]).model, "a.model")
    row = er.tables.read("diabetes").drop("progress").row(0, named=True)
    between = row_lines("a.model", row, explained=False, interval=True)
    write, predict = between["shell"].rsplit("\n", 1)
    subprocess.run(write, shell=True, check=True)
    said = CliRunner().invoke(app, shlex.split(predict)[1:])
    assert said.exit_code == 0, said.output
    exec(compile(between["python"], "between", "exec"), names)
    low, high = names["model"].predict_interval(names["rows"], 0.9)
    assert f"{low[0]:.6g}"[:5] in said.output
    assert low < high
    assert "threshold" not in numbers


def test_a_full_disk_is_a_sentence(visitor, parent, monkeypatch):
    tables = parent / "empirisk-studio" / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    before = sorted(tables.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
        status, sentence = visitor.refused("/upload?name=more.csv", b"a,b\n1,2\n")
        assert (status, "there is room for" in sentence) == (413, True)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *args: full())
        status, sentence = visitor.refused("/upload?name=more.csv", b"a,b\n1,2\n")
        assert (status, "make room" in sentence) == (507, True)
    runs = StudioFolder(parent).runs()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *args: full())
        status, sentence = visitor.refused("/learn", {"name": "iris", "options": {"target": "species"}})
        assert (status, "make room" in sentence, str(parent) in sentence) == (507, True, False)
    assert sorted(tables.iterdir()) == before
    assert sorted((parent / "empirisk-studio" / "runs").iterdir()) == sorted(runs)  # nothing half made is left


def full():
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.long
def test_a_run_ends_as_a_sentence_when_the_disk_is_full(tmp_path):
    folder, code = StudioFolder(tmp_path), "from empirisk.studio.workbench import job; job.EVENTS = '/dev/full'; "
    made = folder.new_run({"name": "iris", "table": "iris", "request": {"data": "iris", "target": "species"}})
    runs = Runs(folder)
    code += f"job.work(job.Path({str(made)!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True)
    process.wait(60)
    runs._processes[made.name] = process
    assert runs.about(made)["state"] == "cut off"
    assert runs.about(made)["summary"] == NO_ROOM
    process.stdin.close()
    # The same where its last words could be written, but not its journal.
    said = {"event": "failed", "about": f"journal='x' cannot be written ({os.strerror(errno.ENOSPC)})", "seconds": 1}
    (made / "events.jsonl").write_text(json.dumps(said) + "\n")
    assert (runs.about(made)["state"], runs.about(made)["summary"]) == ("failed", NO_ROOM)


def test_results_outlive_the_table(visitor, learned, parent):
    """Deleting the table, or renaming it, leaves what was learned from it."""
    folder = StudioFolder(parent)
    visitor.ask("/upload?name=gone.csv", er.tables.read("tickets").write_csv().encode())
    copied = parent / "empirisk-studio" / "runs" / "ba9876543210"
    shutil.copytree(folder.run(learned[0]), copied)
    about = json.loads((copied / "run.json").read_text())
    about |= {"table": "gone.csv", "request": about["request"] | {"data": folder.table("gone.csv")}}
    (copied / "run.json").write_text(json.dumps(about))
    visitor.ask("/table/do", {"name": "gone.csv", "do": "rename", "to": "went.csv"})
    told = visitor.ask(f"/runs/{copied.name}")
    assert (told["table"], told["request"]["data"]) == ("went.csv", folder.table("went.csv"))
    visitor.ask("/table/do", {"name": "went.csv", "do": "delete"})
    for view in ("errors", "threshold", "form"):
        assert visitor.ask(f"/runs/{copied.name}/{view}", {}) == visitor.ask(f"/runs/{learned[0]}/{view}", {})
    visitor.ask(f"/runs/{copied.name}/do", {"do": "delete"})


def test_kept_rows_are_those_of_the_run(tmp_path):
    for request in ({"data": "tickets", "target": "vip"}, {"data": "diabetes", "target": "progress"}):
        found = er.learn(**request, machines=["tree"])
        kept = KeptRows.of(found)
        kept.write(tmp_path)
        again = KeptRows.read(tmp_path)
        assert again.frame.equals(kept.frame)
        assert again.frame[again.test].equals(found.plan.frame[found.plan.test])
        assert again.truth[again.test].tolist() == found.test.truth.tolist()
        assert again.said.tolist() == found.test.predictions.tolist()
        assert again.numbers[again.test].tolist() == found.plan.numbers[found.plan.test].tolist()
        shares = found.test.probabilities
        assert (again.shares is None and shares is None) or np.array_equal(again.shares, shares)


def test_no_answer_holds_many_points(visitor, learned):
    """However wide the table, an answer holds at most 5 000 numbers or words."""
    names = [f"column {k}" for k in range(400)]
    rows = [",".join(str((k * j) % 97) for j in range(400)) for k in range(120)]
    visitor.ask("/upload?name=wide.csv", "\n".join([",".join(names), *rows]).encode())
    views = [visitor.ask("/table", {"name": "wide.csv"}), visitor.ask("/table/names", {"name": "wide.csv"})]
    views += [visitor.ask(f"/runs/{learned[0]}/{view}", {}) for view in ("errors", "threshold", "form")]
    counts = [points(view) for view in views]
    assert max(counts) <= 5000, counts

    # Columns that are not shown can be chosen all the same.
    hidden = visitor.ask("/table/names", {"name": "wide.csv", "part": "N 27"})
    assert hidden == ["column 27", *(f"column {k}" for k in range(270, 280))]
    assert "column 271" not in [one["name"] for one in views[0]["columns"]]


def points(answer):
    """Numbers and words in the longest lists of an answer: what is drawn."""
    if isinstance(answer, dict):
        return sum(points(value) for value in answer.values() if isinstance(value, (dict, list)))
    return sum(points(value) if isinstance(value, (dict, list)) else 1 for value in answer)
