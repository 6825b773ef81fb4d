"""Faults put into runs: full disks, kills, other runs, no memory, tables that change. Nothing is left half-written."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError, NotWritten
from empirisk.league import Listener
from empirisk.runs.journal import Journal, file_lock

#: Run by `make test-all`.
pytestmark = pytest.mark.long

MACHINES = ["centroid", "tree"]
#: Runs the command with a limit on the size of files, which is what a full disk looks like to a program.
LIMITED = """
import resource, sys
import empirisk.cli.main, empirisk.cli.learn, empirisk.cli.predict
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv = ["empirisk", *sys.argv[2:]]
empirisk.cli.main.app()
"""
#: Kills itself when the new file is whole but not yet in its place.
KILLED = """
import os, signal, sys
import empirisk as er
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
er.save(er.Ridge().fit([[0.0], [1.0]], [0.0, 5.0]), sys.argv[1])
"""


def limited(size: int, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", LIMITED, str(size), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """A model of `learn`, and what its folder holds."""
    out = tmp_path_factory.mktemp("faults") / "iris"
    er.learn("iris", machines=MACHINES, out=out)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("room", [100, 60_000])
def test_learn_on_a_full_disk_leaves_what_was_there(iris, room):
    """The first limit stops the journal, the second the report."""
    before = contents(iris.parent)
    ended = limited(room, "learn", "iris", "--machines", ",".join(MACHINES), "--out", iris, "--seed", "1", "--force")
    assert ended.returncode == 1
    assert ended.stderr.startswith("empirisk: ")
    assert "cannot be written (File too large)" in ended.stderr
    assert ended.stderr.count("\n") == 1
    kept = {name: data for name, data in contents(iris.parent).items() if not name.endswith(".journal")}
    assert kept == before
    for journal in iris.parent.glob("*.journal"):
        journal.unlink()


def test_predict_on_a_full_disk_writes_nothing(iris, tmp_path):
    ended = limited(50, "predict", f"{iris}.model", "iris", "--out", tmp_path / "answers.csv")
    assert ended.returncode == 1
    assert "answers.csv' cannot be written (File too large)" in ended.stderr
    assert not contents(tmp_path)


def test_a_kill_during_save_leaves_the_old_model(tmp_path):
    path = tmp_path / "a.model"
    er.save(er.Ridge().fit([[0.0], [1.0]], [0.0, 1.0]), path)
    before = path.read_bytes()
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert er.load(path).predict([[1.0]]).shape == (1,)


def test_a_folder_that_takes_no_files_is_named():
    ran = CliRunner().invoke(app, ["learn", "iris", "--machines", "centroid", "--out", "/proc/iris"])
    assert ran.exit_code == 1
    assert "nothing can be written to the folder '/proc'" in ran.output


def test_two_runs_on_the_same_outputs(tmp_path):
    out = tmp_path / "iris"
    with file_lock(out), pytest.raises(NotWritten, match=r"out=.*iris' is being written by another run"):
        er.learn("iris", machines=["centroid"], out=out)
    assert not contents(tmp_path)
    er.learn("iris", machines=["centroid"], out=out)
    assert sorted(contents(tmp_path)) == ["iris.model", "iris.report.html"]


def test_a_lock_that_a_killed_run_left_is_no_lock(tmp_path):
    (tmp_path / ".iris.lock").write_bytes(b"")
    with file_lock(tmp_path / "iris"):
        pass
    assert not contents(tmp_path)


def test_a_candidate_without_memory_sits_out(monkeypatch):
    def hungry(self, *_, **__):
        raise MemoryError

    monkeypatch.setattr(er.TreeClassifier, "fit", hungry)
    found = er.learn("iris", machines=MACHINES)
    standings = {standing.name: standing for standing in found.standings}
    assert (standings["tree"].state, standings["tree"].remark) == ("out", "it needs more memory than there is")
    assert found.winner == "centroid"


def test_a_run_without_memory_is_a_sentence_and_writes_nothing(monkeypatch, tmp_path):
    def hungry(*_, **__):
        raise MemoryError

    monkeypatch.setattr("empirisk.league.verdict.judge.test", hungry)
    out = tmp_path / "iris"
    ran = CliRunner().invoke(app, ["learn", "iris", "--machines", "centroid", "--out", str(out)])
    assert ran.exit_code == 1
    assert "empirisk: there is not enough memory; give fewer rows." in ran.output
    assert all(name.endswith(".journal") for name in contents(tmp_path))  # what is done is kept for the next run


@pytest.mark.parametrize("place", ["a.model", "no/a.model", "/proc/a.model"])
def test_a_model_that_cannot_be_written_leaves_what_was_there(monkeypatch, tmp_path, place):
    before, machine = {}, er.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    if place == "a.model":
        er.save(machine, tmp_path / place)
        before = contents(tmp_path)

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotWritten, match=r"a\.model' cannot be written \("):
        er.save(machine.fit([[0.0], [1.0]], [5.0, 1.0]), tmp_path / place)
    assert contents(tmp_path) == before


def test_a_table_that_changes_while_it_is_learned(tmp_path):
    random = np.random.default_rng(0)
    table = tmp_path / "table.csv"
    text = "a,b,y\n" + "\n".join(f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in random.normal(size=(80, 2)))
    table.write_text(text)
    whole = er.learn(table, target="y", machines=["centroid"], out=tmp_path / "whole")

    class Meddler(Listener):
        def understood(self, found):
            table.write_text("a,b\n1,2\n")

    changed = er.learn(table, "y", machines=["centroid"], out=tmp_path / "changed", listener=Meddler())
    assert [one.value for one in changed.test.scores] == [one.value for one in whole.test.scores]
    assert (tmp_path / "changed.model").read_bytes() == (tmp_path / "whole.model").read_bytes()
    with pytest.raises(EmpiriskError, match="target="):
        er.learn(table, target="y", machines=["centroid"], out=tmp_path / "changed", force=True)
    assert (tmp_path / "changed.model").read_bytes() == (tmp_path / "whole.model").read_bytes()


def test_a_journal_that_cannot_be_written_is_a_sentence_and_keeps_what_is_done(tmp_path, monkeypatch):
    path = tmp_path / "a.journal"
    journal = Journal(path, lambda: "mark")
    journal.add("first", 1)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotWritten, match="No space left on device"):
        journal.add("second", 2)
    monkeypatch.undo()
    assert "second" not in journal.done
    assert Journal(path, lambda: "mark").done["first"] == 1
    assert json.loads(path.read_text().splitlines()[0])["fingerprint"] == "mark"
