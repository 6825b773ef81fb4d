"""Rare classes, probabilities from every winner, and intervals of numbers."""

import json
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.evaluation.metrics import mean_average_precision
from empirisk.league.candidates.calibrate import calibrated
from empirisk.league.verdict.judge import metric_for


def frauds(rows=800):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    rare = 2.5 * X[:, 0] - 2.0 * X[:, 1] + random.logistic(size=rows) > 6.5
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": np.where(rare, "fraud", "ok")})


def amounts(rows, seed):
    random = np.random.default_rng(seed)
    x, z = random.normal(size=rows), random.normal(size=rows)
    return pl.DataFrame({"x": x, "z": z, "amount": 3 * x - z + random.exponential(size=rows)})


def test_a_rare_class_is_not_judged_by_accuracy():
    found = er.learn(frauds(), "kind", machines=["logistic"])
    assert found.metric == "average_precision"
    truth, shares = found.test.truth, found.test.probabilities[:, 0]
    assert found.test.scores[0].value == pytest.approx(average_precision_score(truth == "fraud", shares))
    count = int((truth == "fraud").sum())
    hits = int((truth[np.argsort(-shares, kind="stable")[: max(count, 10)]] == "fraud").sum())
    assert f"the model finds {hits} of the {count} with kind fraud among" in found.summary()
    assert "right kind in" not in found.summary()
    assert er.learn(frauds(), "kind", machines=["centroid"], metric="acc").metric == "accuracy"
    assert er.learn(frauds(), "kind", machines=["centroid"], balance=True).metric == "balanced_accuracy"


def test_of_several_classes_one_may_be_rare():
    y = np.array(["a"] * 60 + ["b"] * 39 + ["c"])
    assert metric_for(None, np.unique(y), balance=False, y=y).name == "average_precision_macro"
    assert metric_for("ap", np.unique(y), balance=False).name == "average_precision_macro"
    scores = np.random.default_rng(0).random((100, 3))
    each = [average_precision_score(y == label, scores[:, k]) for k, label in enumerate("abc")]
    assert mean_average_precision(y, scores, classes=np.array(list("abc"))) == pytest.approx(np.mean(each))
    assert mean_average_precision(y[:99], scores[:99], classes=np.array(list("abc"))) > 0


def test_margins_are_calibrated_on_rows_not_learned_from(tmp_path, monkeypatch):
    module = sys.modules["empirisk.league.run"]
    monkeypatch.setattr(module, "winner", lambda standings, prefer: next(one for one in standings if one.name == "svm"))
    found = er.learn(frauds(300), "kind", machines=["svm"], metric="accuracy", folds=3, out=tmp_path / "it")
    assert found.model.has_probabilities
    assert isinstance(found.model.machine, er.SVM)
    assert found.model.description["probabilities"].startswith("its margins, calibrated")
    assert "calibrated on rows that it had not learned from" in (tmp_path / "it.report.html").read_text()
    loaded = er.load(tmp_path / "it.model")
    assert np.array_equal(loaded.predict_proba(frauds(5)), found.model.predict_proba(frauds(5)))
    # The same curve, from the same folds, by hand.
    shares = found.model.predict_proba(frauds(50))
    assert np.array_equal(found.model.predict(frauds(50)), np.array(["fraud", "ok"])[shares.argmax(axis=1)])


def test_a_score_of_probabilities_lets_machines_of_margins_play():
    found = er.learn(frauds(300), "kind", machines=["svm", "centroid"], metric="logloss", folds=3)
    assert {one.name: one.state for one in found.standings} == dict.fromkeys(("baseline", "svm", "centroid"), "done")


def test_a_class_of_one_row_is_not_calibrated():
    machine = er.SVM()
    assert calibrated(machine, np.array(["a", "a", "b"])) is machine
    assert calibrated(er.SVM(), np.array(["a", "a", "b", "b"])).cv == 2


def test_intervals_hold_as_many_as_they_say():
    found = er.learn(amounts(1500, 0), "amount", machines=["ridge"], test=0.3)
    new = amounts(20_000, 1)
    for coverage in (0.5, 0.9, 0.99):
        low, high = found.model.predict_interval(new, coverage)
        inside = np.mean((new["amount"].to_numpy() >= low) & (new["amount"].to_numpy() <= high))
        assert inside == pytest.approx(coverage, abs=3 * np.sqrt(coverage * (1 - coverage) / 450) + 0.005)


def test_intervals_are_the_ranks_of_the_residuals():
    found = er.learn(amounts(95, 0), "amount", machines=["ridge"])
    residuals = np.sort(found.test.truth - found.test.predictions)
    assert len(residuals) == 19
    low, high = found.model.predict_interval(amounts(3, 1), 0.9)
    assert np.allclose(low, found.model.predict(amounts(3, 1)) + residuals[0])
    assert np.allclose(high, found.model.predict(amounts(3, 1)) + residuals[18])
    with pytest.raises(EmpiriskError, match=r"needs more than the 19 rows of the test; they are enough for 0.9"):
        found.model.predict_interval(amounts(3, 1), 0.95)
    with pytest.raises(EmpiriskError, match="must lie between 0 and 1"):
        found.model.predict_interval(amounts(3, 1), 90)


def test_intervals_from_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    er.learn(amounts(300, 0), "amount", machines=["ridge"], out="it")
    amounts(4, 1).write_csv("new.csv")
    result = CliRunner().invoke(app, ["predict", "it.model", "new.csv", "--interval", "90", "--out", "p.jsonl"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert all(row["amount low"] < row["amount"] < row["amount high"] for row in rows)
    assert "between 0 and 100" in CliRunner().invoke(app, ["predict", "it.model", "new.csv", "--interval", "0"]).output
    er.learn("iris", machines=["centroid"], out="iris")
    assert (
        "Intervals are for numbers"
        in CliRunner().invoke(app, ["predict", "iris.model", "iris", "--interval", "9"]).output
    )
