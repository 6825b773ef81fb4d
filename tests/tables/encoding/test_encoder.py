"""The encoder learns from training rows alone and takes whatever comes next."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.errors import EmpiriskError

random = np.random.default_rng(0)


def encoder(table, **options):
    return er.tables.TableEncoder(er.tables.understand(table), **options)


def column(encoded, name, values):
    place = encoded.names_.index(name)
    return values[:, place]


def test_numbers_are_filled_flagged_and_scaled_by_training_rows():
    table = {"x": [1.0, 2.0, None, 9.0], "w": [0.0, 1.0, 2.0, 3.0]}
    made = encoder(table).fit(table)
    X = made.transform({"x": [None, float("nan"), float("inf"), 4.0], "w": [None, 0.0, 0.0, 0.0]})
    filled = np.array([1.0, 2.0, 2.0, 9.0])
    expected = (np.array([2.0, 2.0, 2.0, 4.0]) - filled.mean()) / filled.std()
    np.testing.assert_allclose(column(made, "x", X), expected)
    assert column(made, "x missing", X).tolist() == [1, 1, 1, 0]
    assert "w missing" not in made.names_
    assert np.isfinite(X).all()


def test_extreme_and_constant_numbers_stay_finite():
    table = {"huge": [1e308, -1e308, 1e307, 0.0], "tiny": [1e-320, 0.0, 0.0, 1.0]}
    made = encoder(table)
    assert np.isfinite(made.fit_transform(table)).all()
    part = pl.DataFrame(table).head(1)  # a fold in which every column is constant
    assert np.isfinite(made.fit(part).transform(table)).all()


def test_words_rare_unseen_and_missing():
    table = {"town": ["a"] * 30 + ["b"] * 25 + ["rare"] + [None] * 4, "n": list(range(60))}
    made = encoder(table).fit(table)
    assert [name for name in made.names_ if "town" in name] == ["town=a", "town=b", "town=(other)", "town=(missing)"]
    X = made.transform({"town": ["a", "rare", "never met", None], "n": [0] * 4})
    places = [made.names_.index(f"town={word}") for word in ("a", "(other)", "(other)", "(missing)")]
    assert [int(row[place]) for row, place in zip(X, places, strict=True)] == [1, 1, 1, 1]
    assert X[:, [made.names_.index(name) for name in made.names_ if "town" in name]].sum() == 4
    whole = {"t": ["a", "b"] * 30, "n": random.normal(size=60).tolist()}
    assert encoder(whole).fit(whole).transform({"t": ["unseen"], "n": [1]})[0, 1:].tolist() == [0, 0]


def test_large_and_small_frames_are_coded_alike():
    words = random.choice(["a", "b", "c", "d"], 200).tolist()
    table = {"t": [None, "z", *words], "n": list(range(202))}
    made = encoder(table, max_categories=3).fit(table)
    X = made.transform(table)
    rows = [made.transform({"t": [word], "n": [n]})[0] for n, word in enumerate(table["t"])]
    np.testing.assert_array_equal(X, np.array(rows))


def test_means_of_words_see_no_row_of_their_own():
    """With a word for every row, or a target that is noise, the means say nothing of the training rows."""
    n = 2000
    words = [f"w{k}" for k in random.integers(0, 400, n)]
    y = random.integers(0, 2, n)
    table = {"word": words, "n": random.normal(size=n).tolist()}
    made = encoder(table)
    X = made.fit_transform(table, y)
    place = made.names_.index("word mean target")
    assert abs(np.corrcoef(X[:, place], y)[0, 1]) < 0.1
    again = made.transform(table)[:, place]
    assert np.corrcoef(again, y)[0, 1] > 0.3  # the means of all rows do
    unseen = made.transform({"word": ["never"], "n": [0.0]})[0, place]
    np.testing.assert_allclose(unseen, y.mean())
    sums = {word: y[np.array(words) == word] for word in set(words[:20])}
    for word, values in sums.items():
        expected = (values.sum() + 10 * y.mean()) / (len(values) + 10)
        np.testing.assert_allclose(made.transform({"word": [word], "n": [0.0]})[0, place], expected)


def test_means_of_several_classes_and_of_numbers():
    words = [f"w{k}" for k in random.integers(0, 100, 500)]
    table = {"word": words, "n": random.normal(size=500).tolist()}
    made = encoder(table).fit(table, random.integers(0, 3, 500))
    assert [name for name in made.names_ if "mean" in name] == ["word mean target 0", "word mean target 1"]
    made.fit(table, random.normal(size=500))
    assert [name for name in made.names_ if "mean" in name] == ["word mean target"]
    made.fit(table, random.integers(0, 50, 500).astype(str))
    assert not [name for name in made.names_ if "mean" in name]


def test_dates_become_parts():
    table = {"when": ["2024-01-01", "2024-07-01", "2024-07-06", None]}
    made = encoder(table, scale=False).fit(table)
    X = made.transform({"when": [datetime(2024, 7, 6), None]})
    assert column(made, "when Saturday", X).tolist() == [1, 0]
    assert column(made, "when days missing", X).tolist() == [0, 1]
    assert column(made, "when days", X)[0] == (datetime(2024, 7, 6) - datetime(1970, 1, 1)).days
    assert np.isfinite(X).all()


def test_texts_become_weights_of_words():
    texts = [f"the quick fox number {i} jumps over the lazy dog" for i in range(60)]
    table = {"t": [*texts, None], "n": list(range(61))}
    made = encoder(table, max_words=5, max_letters=200).fit(table)
    X = made.transform({"t": ["fox dog unheard", None], "n": [0, 0]})
    assert column(made, "t: fox", X)[0] > 0
    assert column(made, "t: …he…", X)[0] > 0
    assert X[1, [name.startswith("t:") for name in made.names_]].sum() == 0
    assert sum(name.startswith("t:") and "…" not in name for name in made.names_) == 5


def test_trees_get_words_and_no_letters():
    texts = [" ".join(random.choice([f"word{i}" for i in range(3000)], 30)) for _ in range(600)]
    table = {"t": texts, "c": random.choice(["a", "b"], 600).tolist()}
    made = encoder(table).for_trees().fit(table)
    assert sum(name.startswith("t:") for name in made.names_) == 1000
    assert "c=a" in made.names_
    assert made.blocks_[0].letters is None


def test_wide_thin_tables_are_sparse_and_the_same():
    table = {"t": [" ".join(random.choice([f"word{i}" for i in range(800)], 6)) for _ in range(300)]}
    table["n"] = random.normal(size=300).tolist()
    thin, full = encoder(table), encoder(table, sparse=False)
    X = thin.fit_transform(table)
    assert sparse.issparse(X)
    np.testing.assert_array_equal(X.toarray(), full.fit_transform(table))
    np.testing.assert_array_equal(thin.transform(table).toarray(), full.transform(table))


def test_names_and_sources_go_together():
    table = er.tables.read("tickets")
    schema = er.tables.understand(table, without=["escalated"])
    made = er.tables.TableEncoder(schema).fit(table)
    assert len(made.names_) == len(made.sources_) == made.transform(table).shape[1] == len(made.get_feature_names_out())
    for name, source in zip(made.names_, made.sources_, strict=True):
        assert name.startswith(schema.used[source].name)


def test_it_works_in_cross_validation_and_clones():
    table = er.tables.read("tickets")
    target = er.tables.Target.of(table, "escalated")
    schema = er.tables.understand(table, without=["escalated"])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), er.LogisticRegression(C=0.1))
    assert clone(pipeline)[0].schema is schema
    y = target.values(table)
    assert cross_val_score(pipeline, table, y, cv=3).mean() > (y == "no").mean() + 0.05


def test_nothing_to_learn_from_is_said():
    table = {"a": ["x"] * 30, "b": [f"id{i}" for i in range(30)]}
    with pytest.raises(EmpiriskError, match="no column to learn from"):
        encoder(table).fit(table)


def test_models_of_tables_survive_files(tmp_path):
    table = er.tables.read("tickets")
    target = er.tables.Target.of(table, "escalated")
    schema = er.tables.understand(table, without=["escalated"])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), er.LogisticRegression(C=0.1))
    pipeline.fit(table, target.values(table))
    model = er.tables.TableModel(schema, pipeline, target, {"accuracy": 0.9}, {"rows": 600})
    er.save(model, tmp_path / "t.model")
    loaded = er.load(tmp_path / "t.model")
    assert loaded.schema == schema
    assert loaded.target == target
    assert (loaded.scores, loaded.description) == (model.scores, model.description)
    new = table.drop("escalated").reverse()
    assert loaded.answers(new).equals(model.answers(new))
    assert model.answers(new).columns == ["escalated", "P(escalated=no)", "P(escalated=yes)"]
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))


def test_models_without_probabilities_say_so():
    table = er.tables.read("diabetes")
    target = er.tables.Target.of(table, "progress")
    schema = er.tables.understand(table, without=["progress"])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), er.Ridge()).fit(table, target.values(table))
    model = er.tables.TableModel(schema, pipeline, target)
    assert model.answers(table).columns == ["progress"]
    assert model.classes == []
    with pytest.raises(EmpiriskError, match="Ridge, gives no probabilities"):
        model.predict_proba(table)


def test_wide_tables():
    wide = pl.DataFrame(random.normal(size=(100, 5000)), schema=[f"c{i}" for i in range(5000)])
    made = er.tables.TableEncoder(er.tables.understand(wide)).fit(wide)
    assert made.transform(wide).shape == (100, 5000)


def test_columns_of_one_unit_are_scaled_alike():
    """Pixels: a speck in a corner that is nearly always dark stays a small number; another column keeps its scale."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (200, 10)).astype(float)
    pixels[0], pixels[1] = 0, 255
    pixels[:, 9] = np.arange(200) == 7  # dark, but for one speck
    table = pl.DataFrame({f"x{k}": column for k, column in enumerate(pixels.T)} | {"weight": random.normal(3, 9, 200)})
    encoded = er.tables.TableEncoder(er.tables.understand(table, types={"x9": "number"})).fit_transform(table)
    ratios = encoded[:, :10].std(axis=0) / pixels.std(axis=0)
    assert np.allclose(ratios, ratios[0])
    assert np.isclose(np.square(encoded[:, :10].std(axis=0)).mean(), 1)
    assert np.isclose(encoded[:, 10].std(), 1)


def test_few_columns_of_one_range_are_scaled_each_for_itself():
    """Two truth values among numbers have a range in common, and no unit."""
    random = np.random.default_rng(0)
    table = pl.DataFrame({"a": [True, False] * 50, "b": [True] * 90 + [False] * 10, "c": random.normal(size=100)})
    encoded = er.tables.TableEncoder(er.tables.understand(table)).fit_transform(table)
    assert np.allclose(encoded.std(axis=0), 1)


def test_labels_that_are_missing_are_named():
    table = {"town": ["Ulm", "Bonn", "Ulm"], "age": [1.0, 2.0, 3.0]}
    encoder = er.tables.TableEncoder(er.tables.understand(table))
    with pytest.raises(er.errors.EmpiriskError, match="y mixes labels of the types NoneType, str"):
        encoder.fit(table, np.array(["a", None, "b"], dtype=object))


def test_numbers_of_words_and_letters_are_whole_numbers():
    table = pl.DataFrame({"x": ["a b", "c d", "a d"], "n": [1.0, 2.0, 3.0]})
    for setting in ({"max_letters": 0.5}, {"max_letters": -1}, {"max_words": 2.5}, {"max_categories": 0}):
        with pytest.raises(EmpiriskError, match=f"{next(iter(setting))}=.* must be a whole number of at least"):
            encoder(table, **setting).fit(table)
