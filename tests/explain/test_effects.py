"""Effects are partial dependence: the mean prediction with one column set for all rows."""

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.explain import effects as effects_room
from empirisk.explain.effects import effects
from empirisk.tables.kinds import KINDS

RANDOM = np.random.default_rng(0)


def table(rows=300):
    age, town = RANDOM.normal(40, 10, rows), RANDOM.choice(["Ulm", "Bonn", "Köln"], rows)
    rise = np.select([town == "Ulm", town == "Bonn"], [0.0, 20.0], 5.0)
    return pl.DataFrame(
        {"age": age, "town": town, "note": ["a note"] * rows, "y": 2 * age + rise + RANDOM.normal(size=rows)}
    )


@pytest.fixture(scope="module")
def learned():
    return er.learn(table(), "y", machines=["ridge"])


def test_an_effect_is_the_mean_prediction_with_the_column_set(learned):
    found = {one.column: one for one in learned.effects}
    rows = learned.plan.frame[learned.plan.test]  # fewer than are looked at, so all
    town = found["town"]
    for k, word in enumerate(town.values):
        said = learned.model.predict(rows.with_columns(town=pl.lit(word)))
        assert town.mean[0, k] == pytest.approx(said.mean())


def test_the_effect_of_a_linear_machine_is_a_line_without_doubt(learned):
    age = next(one for one in learned.effects if one.column == "age")
    values = np.array(age.values)
    slopes = np.diff(age.mean[0]) / np.diff(values)
    np.testing.assert_allclose(slopes, slopes[0])
    assert slopes[0] == pytest.approx(2, rel=0.05)
    # All rows move alike: their differences are no doubt about the effect of this column.
    np.testing.assert_allclose(age.low, age.high)


def test_classes_have_probabilities_between_zero_and_one():
    found = er.learn("iris", machines=["logistic"])
    assert found.effects[0].outputs == ["setosa", "versicolor", "virginica"]
    for one in found.effects:
        np.testing.assert_allclose(one.mean.sum(axis=0), 1)
        assert (one.low >= 0).all()
        assert (one.low <= one.mean).all()
        assert (one.mean <= one.high).all()
        assert (one.high <= 1).all()


def test_machines_without_probabilities_have_the_share_that_was_named(learned, monkeypatch):
    found = er.learn("iris", machines=["centroid"])
    monkeypatch.delattr(type(found.model.pipeline), "predict_proba")
    names = [column.name for column in found.plan.schema.used]
    for one in effects(found.plan, found.model.pipeline, names, 0):
        np.testing.assert_allclose(
            one.mean * len(found.plan.test), np.round(one.mean * len(found.plan.test)), atol=1e-9
        )


def test_it_stops_when_the_time_is_over(learned, monkeypatch):
    names = [column.name for column in learned.plan.schema.used]
    assert len(effects(learned.plan, learned.model.pipeline, names, 0, seconds=0.0)) == 1
    monkeypatch.setattr(effects_room, "COLUMNS", 1)
    assert len(effects(learned.plan, learned.model.pipeline, names, 0)) == 1


@pytest.mark.parametrize("name", ["rows", "count", "value", "town"])
def test_a_column_may_have_any_name(name):
    words = pl.Series(name, ["b", "a", "b", None, "c", "a"])
    assert KINDS["category"].trial_values(words, 10) == ["a", "b", "c"]
