"""Who plays on which table."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import Pipeline

import empirisk as er
from empirisk.league.candidates import everyone as candidates
from empirisk.league.candidates.everyone import CLASSIFIERS, Size
from empirisk.league.contest.fold import limit, was_cut
from empirisk.league.records import CandidateResult, winner
from empirisk.league.request import Request
from empirisk.league.rows.split import FEW_FOLDS, _folds
from empirisk.league.verdict.judge import differences
from empirisk.tables.model import settings_of

BY_NAME = {candidate.name: candidate for candidate in CLASSIFIERS}


def size(rows=1000, columns=10, classes=2, sparse=False):
    return Size(rows, columns, 10.0, classes, sparse, 0)


@pytest.mark.parametrize(("rows", "classes", "refit"), [(15_000, 9, True), (7_000, 40, True), (200_000, 2, False)])
def test_boosting_that_stops_early_learns_from_all_rows_at_last_where_they_are_few(rows, classes, refit):
    boosting = next(one for one in candidates.candidates_for(True) if one.name == "boosting")
    machines = boosting.machines(candidates.Size(rows, 12, 12.0, classes, False, 0))
    plain = [one for one in machines if hasattr(one, "early_stopping")]
    assert plain
    assert {(one.early_stopping, one.refit) for one in plain} == {(True, refit)}


def test_trees_play_on_sparse_tables_that_fit():
    for name in ("tree", "forest", "boosting"):
        assert BY_NAME[name].reason_not_to_run(size(columns=1000, sparse=True)) == ""
        assert "too large" in BY_NAME[name].reason_not_to_run(size(rows=100_000, columns=1000, sparse=True))


def test_a_table_with_words_is_learned_by_trees():
    random = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(400)])
    notes = [" ".join(random.choice(words, 6)) + (" refund" if k % 2 else " thanks") for k in range(300)]
    frame = pl.DataFrame({"note": notes, "angry": ["yes" if k % 2 else "no" for k in range(300)]})
    found = er.learn(frame, "angry", machines=["tree"])
    assert found.model.pipeline[0].sparse_
    assert found.winner == "tree"
    assert found.test.scores[0].value == 1.0


def test_many_classes_and_words_get_fewer_settings():
    assert len(BY_NAME["boosting"].machines(size(columns=1000, sparse=True))) == 2
    assert len(BY_NAME["boosting"].machines(size())) == 4
    many = size(classes=100, rows=4000)
    assert "slow beyond 10 classes" in BY_NAME["svm"].reason_not_to_run(many)
    assert len(BY_NAME["boosting"].machines(many)) == 1
    assert len(BY_NAME["kernel_svm"].machines(many)) < len(BY_NAME["kernel_svm"].machines(size()))
    assert many.large
    assert not size().large


@pytest.mark.long
def test_a_network_plays_where_rows_are_many():
    X = np.random.default_rng(0).normal(size=(5800, 4))
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3], "y": 1e4 * X[:, 0] * X[:, 1]})
    found = er.learn(frame, "y", machines=["ridge", "network"], time=60.0)
    assert found.winner == "network"
    assert found.test.scores[0].value > 0.9


def test_a_network_sits_out_with_the_reason(monkeypatch):
    reason = BY_NAME["network"].reason_not_to_run
    assert reason(size(rows=6000)) == ""
    assert reason(size(rows=1000)) == "it needs at least 3000 rows"
    assert "dense" in reason(size(rows=6000, sparse=True))
    monkeypatch.setitem(sys.modules, "optax", None)
    assert reason(size(rows=6000)) == "it needs optax; install it with: pip install 'empirisk[nets]'"


def test_trees_of_large_forests_see_a_share_of_the_rows():
    [forest] = BY_NAME["forest"].machines(size(rows=200_000))
    assert forest.max_samples == 0.25
    [forest] = BY_NAME["forest"].machines(size())
    assert forest.max_samples == 1.0


def test_a_difference_counts_by_its_own_standard_error():
    """Folds are hard or easy for both: a machine that is worse on every fold alike is worse."""

    def standing(name, place, scores):
        return CandidateResult(name, name, place, scores=np.array(scores), state="done")

    forest = standing("forest", 2, [0.80, 0.90, 0.70])
    assert winner([standing("tree", 1, [0.78, 0.881, 0.679]), forest]).name == "forest"
    assert winner([standing("tree", 1, [0.82, 0.88, 0.69]), forest]).name == "tree"


def test_a_candidate_that_many_rows_have_judged_may_win_on_fewer_folds():
    def standing(name, place, scores, **others):
        return CandidateResult(name, name, place, scores=np.array(scores), **({"state": "done"} | others))

    linear = standing("svm", 1, [0.88, 0.89, 0.88])
    assert winner([linear, standing("forest", 2, [0.95], state="stopped", judged=60_000)]).name == "forest"
    assert winner([linear, standing("forest", 2, [0.95, 0.94], state="tried")]).name == "forest"
    assert winner([linear, standing("forest", 2, [0.95], state="stopped", judged=400)]).name == "svm"
    assert winner([linear, standing("forest", 2, [0.88], state="stopped", judged=60_000)]).name == "svm"
    words = differences([linear], standing("forest", 2, [0.95], state="stopped"), 0.5)
    assert words == {"forest": "chosen", "svm": "compared on one fold only"}
    words = differences([linear], standing("forest", 2, [0.95, 0.96], state="stopped"), 0.5)
    assert set(words) == {"forest", "svm"}


def test_many_rows_need_few_folds():
    y = np.arange(100_001.0)

    class Numbers:
        classes = ()

    assert len(_folds(y, Numbers, y, Request(None), {}, [])) == FEW_FOLDS
    assert len(_folds(y, Numbers, y, Request(None, folds=4), {}, [])) == 4
    assert len(_folds(y[:1000], Numbers, y[:1000], Request(None), {}, [])) == 5


def test_numbers_get_large_trees_where_rows_are_many():
    by_name = {candidate.name: candidate for candidate in candidates.REGRESSORS}
    few, many = size(classes=0), size(rows=20_000, classes=0)
    leaves = [[machine.get_params() for machine in by_name["boosting"].machines(one)] for one in (few, many)]
    assert [max(each.get("max_leaf_nodes", 0) for each in machines) for machines in leaves] == [31, 400]
    on_combinations = [[one["machine__max_leaf_nodes"] for one in each if "machine" in one] for each in leaves]
    assert on_combinations == [[31], [31, 127]]
    # What is slow on many rows, or cannot learn from files, is left out.
    for other in (size(rows=400_000, classes=0), replace(few, sampled=True)):
        assert not any("machine" in machine.get_params() for machine in by_name["boosting"].machines(other))
    assert [by_name["forest"].machines(one)[0].n_estimators for one in (few, many)] == [300, 100]
    assert len(by_name["kernel_ridge"].machines(few)) == 5
    assert len(by_name["kernel_ridge"].machines(many)) == 2


def test_products_of_columns_are_tried_at_once_without_a_compiler():
    """A table of products in a time that is too short for boosting on a machine that has compiled nothing yet."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 4))
    table = pl.DataFrame(X, schema=list("abcd")).with_columns(y=X[:, 0] * X[:, 1] + 0.1 * random.normal(size=2000))
    found = er.learn(table, "y", machines=["ridge", "quadratic"], time=60.0)
    assert found.winner == "quadratic"
    assert next(score.value for score in found.test.scores if score.name == "r2") > 0.95
    by_name = {one.name: one for one in candidates.REGRESSORS}
    assert by_name["quadratic"].reason_not_to_run(candidates.Size(2000, 100, 100.0, 0, False, 0))
    assert not by_name["quadratic"].reason_not_to_run(candidates.Size(2000, 40, 40.0, 0, False, 0))
    assert by_name["quadratic"].early


def test_c_of_texts_is_for_texts_alone():
    """Many words of categories make a table sparse too; there C = 10 fits noise, in several times the time."""
    first = {one.name: one for one in candidates.CLASSIFIERS}["logistic"].machines
    assert first(candidates.Size(2500, 500, 1.0, 2, True, 0))[0].C == 10.0
    assert first(candidates.Size(2500, 500, 25.0, 2, True, 0))[0].C == 0.1


def test_boosting_tries_the_loss_of_counts_and_skewed_amounts():
    boosting = candidates.candidates_for(False, ["boosting"])[-1]
    for deviance in ("gamma", "poisson"):
        size = candidates.Size(2000, 5, 5.0, 0, False, 0, deviance=deviance)
        assert [machine.loss for machine in boosting.machines(size)[:2]] == [deviance, "squared"]
        assert [machine.loss for machine in boosting.quick(size)] == [deviance, "squared"]
    usual = boosting.machines(candidates.Size(2000, 5, 5.0, 0, False, 0))
    assert {(one[-1] if isinstance(one, Pipeline) else one).loss for one in usual} == {"squared"}
    prices = np.exp(np.random.default_rng(0).normal(size=500))
    assert candidates.deviance_of(prices) == "gamma"
    assert candidates.deviance_of(np.append(prices, 0.0)) == ""


def test_boosting_learns_from_combinations_of_columns(tmp_path):
    """A wave of a difference: the setting with combinations wins; its model is explained, saved and exported."""
    random = np.random.default_rng(0)
    table = pl.DataFrame(
        {name: random.uniform(1, 9, 900) for name in "abcd"} | {"kind": random.choice(["x", "y"], 900)}
    )
    table = table.with_columns(y=(pl.col("b") - pl.col("d")).sin() * 3 + pl.col("a") + (pl.col("kind") == "x"))
    found = er.learn(table, "y", machines=["boosting"], folds=2, out=tmp_path / "it")
    machine = found.model.machine
    assert isinstance(machine, Pipeline)
    assert settings_of(machine).startswith("BoostingRegressor(")
    assert " of CombinedColumns(" in settings_of(machine)
    rows = table.head(5)
    model = er.load(tmp_path / "it.model")
    np.testing.assert_array_equal(model.predict(rows), found.model.predict(rows))
    rest = model.predict(rows) - model.explain(rows).sum(axis=1)
    np.testing.assert_allclose(rest, rest[0])
    er.export(model, tmp_path / "it.onnx")
    limit(machine, 3.0)
    assert machine[-1].max_time == 3.0
    machine[-1].stopped_ = "max_time"
    assert was_cut(machine)


def test_places_are_circles_for_boosting(tmp_path):
    """What lies around some towns: the setting with distances from places wins, and is a whole model."""
    random = np.random.default_rng(0)
    north, east = random.uniform(47, 55, 1500), random.uniform(6, 15, 1500)
    towns = random.uniform((47, 6), (55, 15), (6, 2))
    y = np.exp(-((north[:, None] - towns[:, 0]) ** 2) - (east[:, None] - towns[:, 1]) ** 2).sum(axis=1)
    table = pl.DataFrame({"size": random.normal(size=1500), "Longitude": east, "Latitude": north, "y": y})
    found = er.learn(table, "y", machines=["boosting"], folds=2, out=tmp_path / "it")
    assert found.model.machine[0].coordinates == [(2, 1)]
    model, rows = er.load(tmp_path / "it.model"), table.head(5)
    np.testing.assert_array_equal(model.predict(rows), found.model.predict(rows))
    er.export(model, tmp_path / "it.onnx")
