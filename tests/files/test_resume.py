"""A run of `learn` that was killed and started again writes the model of an undisturbed run, to the byte."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import empirisk as er

KILLED = """
import os, sys
import empirisk as er
from empirisk.league.learn import Listener

class Killer(Listener):
    left = int(sys.argv[3])
    def played(self, standing):
        if standing.state == "done":
            Killer.left -= 1
        if Killer.left == 0:
            os._exit(137)  # as a kill: nothing is closed, nothing is tidied up

job = {"target": "kind", "machines": ["centroid", "logistic", "tree"], "out": sys.argv[2]}
er.learn(sys.argv[1], listener=Killer(), **job)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("resume") / "table.csv"
    lines = ["a,b,word,text,kind"]
    for i in range(120):
        a, b = random.normal(size=2).round(3)
        word, text = ("red", "blue", "green")[i % 3], ("good film", "bad play", "the good old play")[i % 3 - 1]
        lines.append(f"{a},{b},{word},{text} {i % 7},{'yes' if a + b + (i % 3) > 1 else 'no'}")
    path.write_text("\n".join(lines))
    return path


def learned(table: Path, out: Path, killed_after: int) -> bytes:
    """The bytes of the model that a run writes, in a process of its own, killed and started again if asked for."""
    for kills in [killed_after, 0] if killed_after else [0]:
        ended = subprocess.run(
            [sys.executable, "-c", KILLED, str(table), str(out), str(kills or -1)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == (137 if kills else 0), ended.stderr
        assert bool(list(out.parent.glob("*.journal"))) == bool(kills)
    return out.with_name(f"{out.name}.model").read_bytes()


def test_killed_and_resumed_is_the_same_to_the_byte(table, tmp_path):
    for number in (0, 1):
        (tmp_path / str(number)).mkdir()
    whole = learned(table, tmp_path / "0" / "out", 0)
    assert learned(table, tmp_path / "1" / "out", 2) == whole
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == ["out.model", "out.report.html"]


def test_without_durations_the_same_work_gives_the_same_bytes(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    for machine in (er.LogisticRegression(), er.BoostingRegressor(n_estimators=3, random_state=0)):
        for name in ("a", "b"):
            er.save(machine.fit(X, (X[:, 0] > 0) * 1), tmp_path / name, durations=False)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        loaded = er.load(tmp_path / "a")
        assert "seconds" not in loaded.history_
    assert np.isnan(er.load(tmp_path / "a").history_["loss"]).sum() == 0


def test_a_certificate_without_seconds_says_none(tmp_path):
    machine = er.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    er.save(machine, tmp_path / "a", durations=False)
    assert " s;" not in str(er.load(tmp_path / "a").certificate_)
    assert " s;" in str(machine.certificate_)
