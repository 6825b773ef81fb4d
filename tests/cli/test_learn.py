"""empirisk learn, as a user types it."""

import html
import io
import json
import shlex
import signal
import subprocess
import sys
from time import perf_counter
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.learn import Screen
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.formats import seconds_of
from empirisk.league import Job, Listener, Request
from empirisk.league.records import CandidateResult


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """A run on a bundled table: the folder it wrote to, and what it printed."""
    folder = tmp_path_factory.mktemp("iris")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(app, ["learn", "iris", "--machines", "centroid,logistic"])
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_a_bundled_table(iris):
    folder, told = iris
    assert files(folder) == ["iris.model", "iris.report.html"]
    assert "Logistic regression was chosen" in told
    assert "Was it luck?" in told
    assert "right about species in 100.0 % of cases; always guessing 'setosa', the most frequent one, would be" in told
    assert er.load(folder / "iris.model").target.name == "species"


def test_json_is_json_and_nothing_else(shell, tmp_path):
    result = shell("learn", "diabetes", "--machines", "ridge", "--json", "--out", "sugar", "--metric", "mae")
    found = json.loads(result.stdout)
    assert found["winner"] == "ridge"
    assert found["metric"] == "mae"
    assert found["test"][0]["low"] < found["test"][0]["value"] < found["test"][0]["high"]
    assert found["league"][0]["score"] > 0
    assert files(tmp_path) == ["sugar.model", "sugar.report.html"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["learn", "no.csv", "--target", "y"], "There is no table 'no.csv'"),
        (["learn", "iris", "--target", "speces"], "did you mean 'species'?"),
        (["learn", "iris", "--time", "soon"], "write it like 60s"),
        (["learn", "iris", "--machines", "forrest"], "did you mean 'forest'?"),
        (["learn", "iris", "--drop", "colour"], "drop='colour' is not a column"),
        (["learn", "iris", "--time", "0"], "time=0.0 must be a number above 0"),
        (["learn", ".", "--target", "y"], "There is no table '.'"),
        (["learn", "iris", "--out", "/proc/iris"], "nothing can be written to the folder '/proc'"),
        (["learn", "iris", "--types", "sepal_width"], "write it like zip=category"),
        (["learn", "iris", "--types", "sepal_width=colour"], "choose one of number"),
    ],
)
def test_a_mistake_gets_one_sentence_and_no_files(shell, tmp_path, words, sentence):
    result = shell(*words)
    assert result.exit_code == 1
    assert sentence in result.output
    assert result.stderr.count("\n") == 1
    assert result.stdout.count("\n") <= 1  # that it is reading
    assert files(tmp_path) == []


@pytest.mark.parametrize(("text", "value"), [("90", 90.0), ("60s", 60.0), ("5m", 300.0), ("1.5h", 5400.0)])
def test_times(text, value):
    assert seconds_of(text) == value


def test_files_go_where_a_user_means_and_quiet_is_quiet(shell, tmp_path):
    (tmp_path / "my models").mkdir()
    for out in ("my models", "my models/flowers.model", "petals"):
        result = shell("learn", "iris", "--machines", "centroid", "--quiet", "--out", out)
        assert (result.exit_code, result.output) == (0, "")
    assert files(tmp_path / "my models") == [
        "flowers.model",
        "flowers.report.html",
        "iris.model",
        "iris.report.html",
    ]
    assert files(tmp_path) == ["my models", "petals.model", "petals.report.html"]


def test_the_report_holds_the_command_as_it_was_typed(shell, tmp_path):
    rows = "".join(f"{k % 5},{k},{'yes' if k % 2 else 'no'}\n" for k in range(60))
    (tmp_path / "no names.csv").write_text(rows)
    words = ["learn", "no names.csv", "--no-header", "--machines", "centroid", "--time", "20s", "--out", "a"]
    for more in (["--target", "column_3"], ["--no-target", "--force"]):
        assert shell(*words, *more).exit_code == 0
        page = html.unescape((tmp_path / "a.report.html").read_text())
        assert shlex.join(["empirisk", *words, *more]) in page
    assert (
        er.learn("iris", machines=["centroid"], seed=1).origin.command
        == "er.learn('iris', machines=['centroid'], seed=1)"
    )


def test_a_column_holds_what_the_user_says(shell, tmp_path):
    rows = "".join(f"{k % 4 + 1},{k % 7},{'yes' if k % 4 in (0, 2) else 'no'}\n" for k in range(120))
    (tmp_path / "grades.csv").write_text(f"grade,noise,paid\n{rows}")
    words = ["learn", "grades.csv", "--target", "paid", "--machines", "logistic", "--json"]
    told = json.loads(shell(*words).stdout)
    assert any("--types grade=category" in warning for warning in told["warnings"])
    assert told["test"][0]["value"] < 1.0
    assert (
        json.loads(shell(*words, "--force", "--types", "grade=category,noise=number").stdout)["test"][0]["value"] == 1.0
    )


def test_rows_of_a_group_stay_together_and_the_report_tells_so(shell, tmp_path):
    rows = "".join(f"P{k // 4:03d},{k % 7},{'yes' if k % 5 else 'no'}\n" for k in range(120))
    (tmp_path / "visits.csv").write_text(f"patient,x,paid\n{rows}")
    words = ["learn", "visits.csv", "--target", "paid", "--machines", "centroid", "--json"]
    asked = json.loads(shell(*words).stdout)["warnings"]
    assert any("keep their rows together with --groups patient" in warning for warning in asked)
    told = json.loads(shell(*words, "--force", "--group", "patient").stdout)["warnings"]
    sentence = "24 of its values are learned from, and the test is on 6 others."
    assert any(sentence in warning for warning in told)
    assert not any("keep their rows together" in warning for warning in told)
    assert sentence in (tmp_path / "visits.report.html").read_text(encoding="utf-8")


def test_a_time_that_is_none():
    with pytest.raises(EmpiriskError, match="is not a time"):
        seconds_of("tomorrow")


def test_ctrl_c_finishes_with_what_is_done(tmp_path):
    command = [sys.executable, "-m", "empirisk", "learn", "digits"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("Nearest centroid"):
                running.send_signal(signal.SIGINT)
                break
        rest = running.stdout.read()
    assert running.returncode == 0, rest
    assert "interrupted: going on with what is done" in rest
    assert "Nearest centroid was chosen" in rest
    assert "digits.model" in files(tmp_path)


def test_lines_in_a_pipe_are_a_table(iris):
    lines = iris[1].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("machine"))
    head, *rows = lines[start : start + 4]
    assert [row.split("  ")[0] for row in rows] == [
        "Always the most frequent class",
        "Nearest centroid",
        "Logistic regression",
    ]
    end = head.index("accuracy") + len("accuracy")
    assert all(row[end - 1].isdigit() and row[end] == " " for row in rows)
    assert all(row[head.index("proof") :].startswith("gap") for row in rows[1:])
    assert len(set(lines)) >= len(lines) - 1  # but for empty lines none comes twice


def test_a_terminal_shows_the_best_first_and_what_is_done():
    screen = Screen(Console(width=80, force_terminal=True, file=io.StringIO()), perf_counter(), limit=60.0)
    screen.deciding(SimpleNamespace(name="accuracy"))
    screen._rows = {
        name: CandidateResult(name, title, 0, scores=np.array([score]), state="done", remark=remark)
        for name, title, score, remark in [
            ("a", "Always the most frequent class", 0.3, ""),
            ("b", "Gaussian support vector machine", 0.9, "[odd] words that go on and on until the line is full " * 3),
        ]
    }
    screen._doing = "Random forest, fold 2 of 5"
    shown = io.StringIO()
    Console(width=80, file=shown).print(screen._view())
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("Gaussian support vector machine")
    assert lines[2].startswith("Always the most frequent class")
    assert lines[3].startswith("Random forest, fold 2 of 5 (0 s, ")
    assert lines[3].endswith("s left)")
    assert len(lines) == 4


def test_a_run_that_goes_on_says_so(shell, tmp_path):
    rows = "".join(f"{k},{k % 7},{'yes' if k % 3 else 'no'}\n" for k in range(90))
    (tmp_path / "t.csv").write_text(f"a,b,y\n{rows}")
    options = {"data": "t.csv", "target": "y", "machines": ["centroid", "tree"], "out": "t"}

    class Stopping(Listener):
        def played(self, result):
            if result.name == "centroid" and result.state == "done":
                job.stop()

    job = Job(Request(**options, listener=Stopping()))
    with pytest.raises(KeyboardInterrupt):
        job.run()
    told = shell("learn", "t.csv", "--target", "y", "--machines", "centroid,tree").output
    assert "going on where an earlier run ended: 10 fits are known" in told


def test_every_step_is_told():
    class Heard(Listener):
        steps: list[str] = []  # noqa: RUF012

        def doing(self, what):
            self.steps.append(what)

    er.learn("iris", machines=["centroid"], folds=2, listener=Heard())
    assert Heard.steps[0] == "reading iris"
    assert "Nearest centroid, fold 2 of 2" in Heard.steps
    assert Heard.steps[-5:] == ["the test", "importances", "effects", "the learning curve", "drawing and writing"]
