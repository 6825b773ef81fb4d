"""What a result can do without is left out where it fails, and named in the report."""

import time

import numpy as np
import polars as pl

import empirisk as er
from empirisk import plots
from empirisk.league.verdict import judge
from empirisk.report.page import page as page_of
from empirisk.stop import interruptible, requested


def table(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 2))
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "yes", "no")})


def sequences(words=2000, copies=3):
    """Words that occur three times each: a machine learns them, but a small share of the rows holds none twice.

    They are of so many letters that no two of these occur together twice either.
    """
    random = np.random.default_rng(0)
    drawn = ["".join(map(chr, random.integers(0x4E00, 0x9FFF, 40))) for _ in range(words)]
    rows = [f"{word} {chr(0x3400 + number)}" for number, word in enumerate(drawn * copies)]  # no two rows are equal
    return pl.DataFrame({"sequence": rows, "kind": np.resize(["ei", "ie", "n"], words).tolist() * copies})


def test_a_table_whose_small_shares_hold_no_word_worth_keeping(tmp_path, monkeypatch):
    monkeypatch.setattr(judge, "CURVE_SHARES", (0.0132, 1.0))
    monkeypatch.setattr(judge, "CURVE_SECONDS", 1000.0)
    found = er.learn(sequences(), "kind", types={"sequence": "text"}, machines=["centroid"], out=tmp_path / "dna")
    assert found.winner == "centroid"
    assert found.curve is None
    [sentence] = [warning for warning in found.warnings if warning.startswith("The learning curve could not be made: ")]
    assert sentence.split(" [")[0] in (tmp_path / "dna.report.html").read_text().replace("&#39;", "'")
    assert (tmp_path / "dna.model").exists()


def test_a_part_ends_with_the_time(monkeypatch):
    """A fit of the learning curve that takes all the time there is."""
    steps = []

    def endless(*_, **__):
        with interruptible():
            while not requested():
                time.sleep(0.01)
                steps.append(0)
        return "a curve of cut fits"

    monkeypatch.setattr(judge, "curve", endless)
    found = er.learn(table(), "y", machines=["centroid"], time=3.0)
    assert steps
    assert found.curve is None
    assert found.warnings[-1] == "The time given left no room for the learning curve. [ER033]"


def test_what_fails_is_named(monkeypatch, tmp_path):
    def broken(*_, **__):
        raise TypeError("no such thing")

    monkeypatch.setattr(judge, "importances", broken)
    monkeypatch.setattr(plots, "to_svg", broken)
    found = er.learn(table(), "y", machines=["centroid"], out=tmp_path / "it")
    assert "Importances could not be made: TypeError: no such thing [ER034]" in found.warnings
    page = page_of(found)
    assert "Importances could not be made: TypeError: no such thing" in page
    assert "This picture could not be drawn (TypeError: no such thing)." in page
    assert (tmp_path / "it.model").exists()


def test_a_candidate_that_fails_is_shown_and_the_others_play_on(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(er.TreeClassifier, "fit", broken)
    found = er.learn(table(), "y", machines=["centroid", "tree"])
    tree = next(one for one in found.standings if one.name == "tree")
    assert (tree.state, tree.remark) == ("out", "ZeroDivisionError: float division by zero")
    assert "ZeroDivisionError: float division by zero" in page_of(found)


def test_a_model_keeps_nothing_of_every_training_row(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 3))
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X @ [1.0, 2.0, -1.0]})
    found = er.learn(frame, "y", machines=["ridge"], out=tmp_path / "ridge")
    assert found.winner == "ridge"
    assert found.model.machine.choice_.losses.shape == (1, 20)
    assert (tmp_path / "ridge.model").stat().st_size < 60_000
    frame = frame.with_columns(y=pl.Series(np.where(X[:, 0] > 0, "yes", "no")))
    er.learn(frame, "y", machines=["svm"], out=tmp_path / "svm")
    assert (tmp_path / "svm.model").stat().st_size < 60_000
