"""Outputs that are closed, full or left do not cost the model: it is written, and no traceback is."""

import shlex
import subprocess
import sys

import pytest

import empirisk as er

LEARN = ["-m", "empirisk", "learn", "iris", "--target", "species", "--machines", "tree"]
FULL = "empirisk: reading or writing failed (No space left on device); make room, or choose another place.\n"


def shell(arguments, redirection, folder):
    """The exit status of a command in bash behind this redirection, and what it said beside."""
    line = f"{shlex.join([sys.executable, *arguments])} {redirection}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        (">&- 2>&- <&-", 0, ""),
        ("> /dev/full", 1, FULL),
        ("| head -1", 0, ""),
        # Each is a process with a whole contest: those that are nearly one of the above are for `make test-all`.
        pytest.param("2>&-", 0, "", marks=pytest.mark.long),
        pytest.param(">&-", 0, "", marks=pytest.mark.long),
        pytest.param("> /dev/full 2>&1", 1, "", marks=pytest.mark.long),
        pytest.param("--json | true", 0, "", marks=pytest.mark.long),
    ],
)
def test_the_model_and_the_report_are_written_all_the_same(redirection, status, said, tmp_path):
    ended = shell(LEARN, redirection, tmp_path)
    assert ended.returncode == status, ended.stderr
    assert ended.stderr == said
    assert er.load(tmp_path / "iris.model").classes == ["setosa", "versicolor", "virginica"]
    assert (tmp_path / "iris.report.html").read_text().rstrip().endswith("</html>")


@pytest.mark.long  # seven processes
def test_predictions_that_nobody_reads(tmp_path):
    er.save(er.learn("iris", target="species", machines=["tree"]).model, tmp_path / "iris.model")
    predict = ["-m", "empirisk", "predict", "iris.model", "iris"]
    for redirection, status, said in ((">&-", 0, ""), ("| head -1", 0, ""), ("2>&-", 0, ""), ("> /dev/full", 1, FULL)):
        ended = shell(predict, redirection, tmp_path)
        assert (ended.returncode, ended.stderr) == (status, said), redirection
    ended = shell(predict, "-o out.csv > /dev/full", tmp_path)
    assert (ended.returncode, ended.stderr) == (1, FULL)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 151
    ended = shell(["-m", "empirisk", "learn", "-", "--target", "a"], "<&-", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("empirisk: The table 'standard input' is empty")


def test_errors_are_told_where_no_output_is_open(tmp_path):
    ended = shell(["-m", "empirisk", "learn", "nowhere.csv"], ">&-", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("empirisk: There is no table 'nowhere.csv'")
    assert shell(["-m", "empirisk", "learn", "nowhere.csv"], "2>&-", tmp_path).returncode == 1


def test_letters_that_an_output_has_not_are_codes(tmp_path):
    (tmp_path / "t.csv").write_text("尺寸,y\n1,a\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "empirisk", "learn", "t.csv", "--target", "z"],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "latin-1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("empirisk: ")
    assert "\\u5c3a\\u5bf8" in ended.stderr
