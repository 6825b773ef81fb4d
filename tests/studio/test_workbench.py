"""The workbench over plain HTTP: tables, runs in their processes, and what is asked of results."""

import json
import os
import shutil
import signal
import time

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.studio.workbench import job
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.opening import open_source
from empirisk.studio.workbench.results import compare, open_run
from empirisk.studio.workbench.runs import lines
from tests.studio.studios import ask, enter, running

EVIL = "<script>alert(1)</script>"


class Visitor:
    """One who has entered a studio."""

    def __init__(self, studio):
        self.port, self.cookie = studio[0], enter(studio)

    def ask(self, path, body=None):
        """The answer as JSON, which must be good."""
        status, _, text = ask(self.port, path, self.cookie, body)
        assert status == 200, text
        return json.loads(text)

    def refused(self, path, body=None):
        """The status and the sentence of a refusal."""
        status, _, text = ask(self.port, path, self.cookie, body)
        assert status >= 400
        return status, json.loads(text)["error"]

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
    """Two runs on the same table, both over; made here, without the start of two processes."""
    folder, found = StudioFolder(parent), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "obey", lambda job: None)
        patch.setattr("empirisk.report.page.page", lambda learned, file: f"report of {learned.name}")
        for machine in ("logistic", "tree"):
            request = {"data": "tickets", "target": "escalated", "machines": [machine]}
            made = folder.new_run({"name": machine, "table": "tickets", "request": request})
            job.work(made)
            found.append(made.name)
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
    assert notes["lines"]["shell"].startswith("empirisk learn mine.csv --target label --types rooms=category")
    visitor.ask("/table/delete", {"name": "mine 2.csv"})
    assert "mine 2.csv" not in [one["name"] for one in visitor.ask("/list")["tables"]]


def test_no_path_of_a_client_is_opened(visitor, parent):
    for name in ("/etc/passwd", "../secret.csv", "tables/../../x.csv"):
        assert visitor.refused("/table", {"name": name})[0] == 404
        assert visitor.refused("/learn", {"name": name, "options": {"target": "x"}})[0] == 404
    for name in ("..", "passwd", "x.exe", ".csv", ""):
        assert visitor.refused(f"/upload?name={name}", b"a,b\n")[0] == 415
    assert visitor.refused("/runs/..%2F..%2Fx")[0] == 404
    assert visitor.refused("/learn", {"name": "iris", "options": {"out": "/tmp/x"}})[0] == 422
    assert not list((parent / "empirisk-studio").rglob("*.part"))


def test_results_answer(visitor, learned):
    run = learned[0]
    told = visitor.ask(f"/runs/{run}")
    assert "of cases" in told["summary"]
    assert "empirisk learn tickets --target escalated --machines logistic" in told["lines"]["shell"]
    counts = visitor.ask(f"/runs/{run}/threshold", {})["threshold"]["counts"]
    rows = visitor.ask(f"/runs/{run}/errors", {"columns": ["vip"]})
    half = counts["thresholds"].index(0.5)
    wrong = counts["alarms"][half] + counts["positives"] - counts["found"][half]
    assert rows["wrong"] == wrong == len(rows["rows"])
    assert rows["columns"] == ["vip"]
    assert visitor.ask(f"/runs/{run}/effect", {"column": "earlier_tickets"})["numbers"]
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
            stopped: "failed",
            killed: "cut off",
        }
        visitor.ask(f"/runs/{killed}/do", {"do": "resume"})
        assert visitor.ask(f"/runs/{killed}")["state"] == "running"


def process_of(folder):
    """The number of the process of a run."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if str(folder.absolute()).encode() in words:
                return int(entry)
    raise AssertionError("no process")


def test_what_the_studio_is_started_with(tmp_path):
    assert open_source(tmp_path, None)[1] == ""
    table = tmp_path / "a b.csv"
    table.write_text("x,y\n1,2\n")
    folder, start = open_source(tmp_path, table)
    assert start == "#table=a b.csv"
    assert folder.table("a b.csv") == str(table)
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
    found = lines(
        "t.csv", {"target": "y", "time": 60.0, "machines": ["tree", "svm"], "types": {"a": "text"}, "balance": True}
    )
    assert found["shell"] == (
        "empirisk learn t.csv --target y --time 60 --machines tree,svm --types a=text --balance --out result"
    )
    assert "time=60.0, machines=['tree', 'svm']" in found["python"]
