"""Scores and drift on new rows, rows that no training row is like, other tests, refits, and models kept from loss."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import accuracy_score
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.league.verdict.score import score
from empirisk.service.openapi import describe, example_row
from empirisk.service.pages import form
from empirisk.tables.model import settings_of
from empirisk.tables.understanding.profile import drift, profile, sentences, unusual


def shop(rows=300, seed=0, shift=0.0):
    random = np.random.default_rng(seed)
    age, town = random.normal(40 + shift, 10, rows), random.choice(["Ulm", "Bonn", "Kiel"], rows)
    bought = age + 15 * (town == "Ulm") + random.normal(0, 5, rows) > 45
    day = pl.Series([f"2024-0{1 + k % 9}-1{k % 10}" for k in range(rows)])
    return pl.DataFrame({"age": age, "town": town, "day": day, "bought": np.where(bought, "yes", "no")})


@pytest.fixture(scope="module")
def model():
    return er.learn(shop(), "bought", machines=["logistic"], folds=3).model


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_new_rows_are_scored_with_intervals(model):
    new = shop(200, seed=1)
    found = score(model, new)
    assert found.scores[0].value == accuracy_score(new["bought"].to_numpy(), model.predict(new))
    assert found.scores[0].interval[0] < found.scores[0].value < found.scores[0].interval[1]
    assert found.drift == []
    assert score(model, new, "auc").scores[0].name == "roc_auc"


def test_the_score_that_decided_comes_first():
    table = shop().drop("bought")
    found = er.learn(table, "age", machines=["ridge"], metric="mae", folds=2)
    names = [one.name for one in score(found.model, table).scores]
    assert names[0] == found.test.scores[0].name
    assert len(names) == len(set(names)) > 1


def test_rows_that_cannot_be_scored_are_left_out_and_said(model):
    new = shop(100, seed=1).with_columns(pl.Series("bought", ["perhaps", None] + ["yes", "no"] * 49))
    found = score(model, new)
    assert found.rows == 98
    assert found.warnings[0] == "1 rows without a value of 'bought' were left out. [ER029]"
    assert found.warnings[1] == "1 rows of classes that the model does not know were left out. [ER029]"
    with pytest.raises(EmpiriskError, match="lacks the column 'bought'"):
        score(model, new.drop("bought"))


def test_columns_that_moved_are_named(model):
    new = shop(400, seed=1, shift=12.0).with_columns(pl.lit("Rom").alias("town"))
    found = {entry.column: entry for entry in score(model, new).drift}
    assert list(found) == ["town", "age"]
    assert found["town"].moved == 1.0
    assert found["town"].sentence == "town another word: 0 % of the training rows, 100 % of these"
    assert "and above" in found["age"].sentence


def test_drift_is_a_two_sample_test():
    """Its statistic is that of the table of counts, and the same rows never drift."""
    table = pl.DataFrame({"a": ["x"] * 60 + ["y"] * 40})
    schema = er.tables.understand(table)
    known = profile(schema.features(table), schema)
    other = pl.DataFrame({"a": ["x"] * 40 + ["y"] * 60})
    # Half of the sum of |p - q| is 0.2; the chance is 0.0047, which is below 0.01.
    assert chi2_contingency([[60, 40], [40, 60]], correction=False).pvalue == pytest.approx(0.0047, abs=1e-4)
    assert drift(known, other)[0].moved == pytest.approx(0.2)
    assert drift(known, pl.DataFrame({"a": ["x"] * 43 + ["y"] * 57})) == []
    assert drift(known, table) == []


def test_what_no_training_row_had_is_told_by_row(model):
    new = shop(4).with_columns(
        pl.Series("town", ["Ulm", "Rom", None, "Kiel"]), pl.Series("age", [40.0, 41.0, 400.0, None])
    )
    found = model.unusual(new)
    assert found[1] == ["town='Rom' was not met in training"]
    assert found[2][0].startswith("age=400 is far outside ")
    assert set(found) == {1, 2}
    days = [date(2020, 1, 1) + timedelta(days) for days in range(0, 400, 10)]
    schema = er.tables.understand({"day": days})
    told = unusual({}, schema, schema.features({"day": [date(2020, 6, 1), date(2031, 1, 1), None]}))
    assert told == {1: ["day=2031-01-01 is far outside 2020-01-01 to 2021-01-25"]}
    many = sentences({row: ["odd"] for row in range(40)})
    assert len(many) == 11
    assert many[-1] == "and 30 more rows"


def test_warnings_in_the_shell_and_a_score(shell, model):
    er.save(model, "shop.model")
    shop(20, seed=2).with_columns(pl.lit("Rom").alias("town")).write_csv("new.csv")
    result = shell("predict", "shop.model", "new.csv", "--out", "p.csv")
    assert "! row 1: town='Rom' was not met in training" in result.output
    result = shell("score", "shop.model", "new.csv")
    assert result.exit_code == 0, result.output
    assert "in the test" in result.output
    assert "town another word" in result.output


def test_a_test_of_ones_own(tmp_path):
    tests = shop(60, seed=5)
    found = er.learn(shop(), "bought", machines=["logistic"], folds=3, test_file=tests, refit=True)
    assert np.array_equal(found.test.truth, tests["bought"].to_numpy())
    assert found.train_rows == 300
    assert found.model.description["refitted"] == "on all 360 rows"
    assert any("learned from all 360 rows; the scores are those of" in warning for warning in found.warnings)
    again = er.learn(shop(), "bought", machines=["logistic"], folds=3, test_file=tests)
    assert again.test.scores[0].value == found.test.scores[0].value
    assert not np.array_equal(again.model.predict_proba(tests), found.model.predict_proba(tests))
    with pytest.raises(EmpiriskError, match="test_file lacks the column 'town'"):
        er.learn(shop(), "bought", test_file=tests.drop("town"))


def test_no_model_is_lost_silently(shell, tmp_path):
    words = ["learn", "iris", "--machines", "centroid", "--quiet"]
    assert shell(*words).exit_code == 0
    before = (tmp_path / "iris.model").read_bytes()
    result = shell(*words, "--seed", "1")
    assert result.exit_code == 1
    assert "'iris.model' exists; choose another name, or replace it with --force" in result.output
    assert (tmp_path / "iris.model").read_bytes() == before
    assert shell("learn", "iris", "--no-target").exit_code == 1
    assert (tmp_path / "iris.model").read_bytes() == before
    assert shell(*words, "--seed", "1", "--force").exit_code == 0


def test_settings_are_shown_where_they_are_defaults_too():
    assert settings_of(er.LogisticRegression()).startswith("LogisticRegression(C=1")
    X = np.arange(20.0)[:, None]
    fitted = er.Ridge(C="loo").fit(X, X[:, 0])
    assert f"C={fitted.C_:.4g}" in settings_of(fitted)


def test_no_training_row_is_shown_by_the_service(model):
    row = example_row(model)
    assert row["town"] in ("Ulm", "Bonn", "Kiel")
    assert row["age"] not in [float(value) for value in shop()["age"]]
    text = form(model) + str(describe(model, 100, 10))
    assert not [value for value in map(str, shop()["age"].to_list()) if value in text]
