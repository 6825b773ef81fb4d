"""Trees get words as codes, one column for each column of the table, and all that is said of them is in words."""

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.league.request import Request
from empirisk.league.rows.split import plan
from empirisk.plots.report import tree as drawn

TOWNS = np.array([f"town {k}" for k in range(12)])


def table(rows=600, text=False):
    random = np.random.default_rng(0)
    town, x = random.integers(0, 12, rows), random.normal(size=rows)
    # Neighbours in the alphabet have nothing in common: one split on a set of towns says it all.
    high = np.isin(town, [0, 3, 5, 8, 11]) ^ (random.random(rows) < 0.05)
    frame = pl.DataFrame({"x": x, "town": TOWNS[town], "y": np.where(high, "high", "low")})
    frame = frame.with_columns(pl.when(pl.int_range(rows) % 20 == 7).then(None).otherwise(pl.col("town")).alias("town"))
    words = [" ".join(random.choice(["red", "green", "blue"], 25)) for _ in range(rows)]
    return frame.with_columns(pl.Series("note", words)) if text else frame


def test_codes_stand_for_words():
    found = plan(Request(table(), "y"))
    encoder = found.encoder.for_trees()
    X = encoder.fit_transform(found.frame, found.y)
    [place] = encoder.coded_places
    assert encoder.names_[place] == "town"
    words = encoder.categories()[place]
    missing = found.frame["town"].is_null().to_numpy()
    assert np.array_equal(np.isnan(X[:, place]), missing)
    assert [words[int(code)] for code in X[~missing, place]] == found.frame["town"].drop_nulls().to_list()
    new = found.frame.head(2).with_columns(town=pl.Series(["town 3", "Atlantis"]))
    assert words[int(encoder.transform(new)[0, place])] == "town 3"
    assert np.isnan(encoder.transform(new)[1, place])


def test_texts_leave_the_encoder_as_it_is():
    found = plan(Request(table(text=True), "y"))
    assert found.encoder.for_trees().codes is False


@pytest.mark.parametrize("machine", ["tree", "forest", "boosting"])
def test_trees_see_one_column_for_each_column(machine, tmp_path):
    found = er.learn(table(), "y", machines=[machine, "logistic"], out=tmp_path / "towns")
    by_name = {one.name: one for one in found.standings}
    assert by_name[machine].machine.categorical_features == [1]
    assert by_name[machine].mean > 0.85
    assert "categorical_features" not in found.model.description["settings"]
    alone = er.learn(table(), "y", machines=[machine])
    model, rows = alone.model, table().head(40)
    assert model.machine.n_features_in_ < 5
    er.save(model, tmp_path / "one.model")
    loaded = er.load(tmp_path / "one.model")
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    np.testing.assert_allclose(loaded.explain(rows), model.explain(rows))
    # Contributions are complete: those of a row, and the mean prediction, make its prediction.
    for_high = model.explain(rows).sum(axis=1) * np.where(model.predict(rows) == "high", 1, -1)
    chance = model.predict_proba(rows)[:, model.classes.index("high")]
    assert np.ptp(for_high - (np.log(chance / (1 - chance)) if machine == "boosting" else chance)) < 1e-6


def test_the_tree_is_drawn_with_words():
    found = er.learn(table(), "y", machines=["tree"])
    picture = drawn(found.model.machine, found.model.pipeline[0])
    assert "town 3" in picture


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ([f"{k / 7:.2f}" for k in range(80)], "n/k"),
        ([f"{k} kg" for k in range(80)], "heavy"),
        ([f"${k + 1000:,}" for k in range(80)], "call us"),
    ],
)
@pytest.mark.parametrize("words", [1, 20])
def test_numbers_with_some_words_are_said_to_be_some(numbers, word, words):
    values = [word if row in range(5, 5 + words) else value for row, value in enumerate(numbers)]
    found = plan(Request({"x": values, "y": ["a", "b"] * 40, "z": [0.5, 1.5, 2.0, 3.0] * 20}, "y"))
    if words == 1:
        said = f"Column 'x': 1 cell such as {word!r}, no number, taken as missing."
    else:
        said = f"'x' holds numbers, but for {words} rows such as {word!r} (row 6)"
    assert any(said in told for told in found.warnings)


def test_words_with_some_numbers_are_words():
    found = plan(Request({"x": ["red", "blue", "7", None] * 20, "y": ["a", "b"] * 40}, "y"))
    assert not any("holds numbers" in told for told in found.warnings)
