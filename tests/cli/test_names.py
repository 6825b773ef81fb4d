"""Names and cells that a terminal, a page, a picture or a spreadsheet would take for more are shown as text."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.formats import printable
from empirisk.plots.style import plain
from empirisk.service import pages
from empirisk.tables.reading.spreadsheet import harmless

ESCAPE = "\x1b"
TARGET = "y[/x]"
NAMES = ["[bold]", "[/]", f"{ESCAPE}[31mred", "two\nlines", "$a$ and $b", ":warning:", "=cmd()"]
NAMES.append("<script>alert(1)</script>")
CLASSES = [f"[red]{ESCAPE}]0;title\x07", "=1+1", "</script>&$x$"]


def table(rows=120):
    random = np.random.default_rng(0)
    numbers = {name: random.normal(size=rows) for name in NAMES}
    code = np.digitize(numbers[NAMES[0]], [-0.4, 0.4])
    words = {"[word]": np.array([f"[b]{ESCAPE}[1m", "=2+3", "-5", "plain", "@SUM(1)"])[np.arange(rows) % 5]}
    return pl.DataFrame({**numbers, **words, TARGET: np.array(CLASSES)[code]})


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("names")
    table().write_csv(place / "t.csv")
    done = run("learn", place / "t.csv", "--target", TARGET, "--machines", "tree,logistic", "--out", place / "t[bold]")
    assert done.exit_code == 0, done.output
    (place / "said.txt").write_text(done.output)
    return place


def test_the_terminal_shows_names_as_they_are(folder):
    said = (folder / "said.txt").read_text()
    assert f"target {TARGET}: 3 classes" in said
    assert f"{folder}/t[bold].model and {folder}/t[bold].report.html" in said
    assert ESCAPE not in said


def test_nothing_that_is_told_of_a_model_steers_a_terminal(folder):
    model = folder / "t[bold].model"
    for words in (("show", model), ("score", model, folder / "t.csv"), ("learn", folder / "t.csv", "--target", "none")):
        done = run(*words)
        assert ESCAPE not in done.output
        assert "\x07" not in done.output
    shown = run("show", model).output
    for name in NAMES:
        assert printable(name) in shown
    assert "two\\nlines" in shown
    assert "\\x1b[31mred" in shown


def test_the_report_shows_them_too(folder):
    page = (folder / "t[bold].report.html").read_text()
    assert ESCAPE not in page
    assert "\x07" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "could not be drawn" not in page
    assert "could not be made" not in page
    assert "[bold]" in page
    assert "y[/x]" in page


def test_pages_of_the_service(folder):
    model = er.load(folder / "t[bold].model")
    form = pages.form(model)
    assert "<script>alert" not in form
    assert "[bold]" in form


def test_pictures():
    assert plain("$a$ and $b") == r"\$a\$ and \$b"
    assert plain(f"{ESCAPE}[31mred") == "\\x1b[31mred"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_cells_that_a_spreadsheet_would_run_begin_with_an_apostrophe(folder, tmp_path, ending):
    model, out = folder / "t[bold].model", tmp_path / f"out.{ending}"
    assert run("predict", model, folder / "t.csv", "--keep", "-o", out).exit_code == 0
    found = pl.read_csv(out, separator="," if ending == "csv" else "\t", infer_schema=False)
    assert set(found["[word]"]) == {f"[b]{ESCAPE}[1m", "'=2+3", "-5", "plain", "'@SUM(1)"}
    assert {"'=1+1", CLASSES[0], CLASSES[2]} >= set(found[f"predicted {TARGET}"])
    assert "'=cmd()" in found.columns
    assert any(cell.startswith("-") for cell in found["[bold]"])  # numbers stay numbers
    assert run("predict", model, folder / "t.csv", "--keep", "--raw", "-o", out).exit_code == 0
    found = pl.read_csv(out, separator="," if ending == "csv" else "\t", infer_schema=False)
    assert {"=2+3", "@SUM(1)", "-5"} <= set(found["[word]"])
    assert "=cmd()" in found.columns


def test_other_formats_are_as_they_are(folder, tmp_path):
    run("predict", folder / "t[bold].model", folder / "t.csv", "--keep", "-o", tmp_path / "out.parquet")
    assert "=2+3" in set(pl.read_parquet(tmp_path / "out.parquet")["[word]"])


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", False),
        ("+cmd|' /C calc'!A0", False),
        ("-2+3", False),
        ("@SUM(A1)", False),
        ("\t=1", False),
        ("\r=1", False),
        ("\x00=1", False),
        ("\uff1d1+1", False),
        ("-3.5", True),
        ("+1e-5", True),
        ("-1,234.5", True),
        ("-12 %", True),
        ("-", True),
        ("--", True),
        ("- item", False),
        ("plain = text", True),
        ("", True),
        (None, True),
    ],
)
def test_what_a_spreadsheet_would_run(cell, safe):
    frame = pl.DataFrame({"a": [cell]}, schema={"a": pl.String})
    assert harmless(frame)["a"].to_list() == [cell if safe else f"'{cell}"]


def test_texts_of_any_kind_become_printable():
    assert printable("a\nb\tc") == "a\\nb\\tc"
    assert printable("a\nb\tc\r", lines=True) == "a\nb\tc\\r"
    assert printable("Größe 尺寸 \u200d😀") == "Größe 尺寸 \u200d😀"
    assert printable("\u202eabc\ud800\x9b") == "\\u202eabc\\ud800\\x9b"
