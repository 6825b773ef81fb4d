"""Every machine as ONNX and as Python answers as it does itself."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.exports import write
from empirisk.exports.onnx_file import onnx_model
from empirisk.exports.python_file import python_source, run_source
from empirisk.exports.registry import asked
from empirisk.exports.rows import rows_for
from empirisk.exports.scikit_learn_trees import scikit_learn_trees
from empirisk.exports.write import _outputs, graph_of, run_onnx
from tests.exports.cases import CASES, NEW, OTHERS, X, Y, name_of
from tests.files.subjects import subjects

#: What the exported numbers may differ by, relative to those above one.
DIGITS = 1e-9


def fitted(machine, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(machine).fit(X, Y[target])


def compare(model, rows):
    """Both forms on some rows, which are others than those that the graph is traced on."""
    graph = graph_of(model, rows_for(model, X[:3]))
    told = _outputs(asked(model, rows), model)
    found = run_onnx(onnx_model(graph).SerializeToString(), {"X": rows})
    assert sorted(found) == sorted(told)
    for answers in (found, run_source(python_source(graph), rows)):
        for name, values in told.items():
            wanted = np.asarray(values)
            assert answers[name].shape == wanted.shape
            if wanted.dtype.kind == "f":
                gaps = np.abs(answers[name] - wanted) / np.maximum(np.abs(wanted), 1.0)
                assert gaps.max() < DIGITS, name
            else:
                assert answers[name].tolist() == wanted.tolist(), name


@pytest.mark.parametrize(("machine", "target"), CASES, ids=map(name_of, CASES))
def test_answers_are_those_of_the_machine(machine, target):
    compare(fitted(machine, target), NEW[:-1] if target == "positive" else NEW)


@pytest.mark.long
def test_a_machine_that_has_learned_a_network():
    machine = er.LogisticRegression(features=er.Network([8, 5], epochs=2, random_state=0))
    compare(fitted(machine, "three"), NEW)


TREES = [er.TreeClassifier(), er.ForestClassifier(5, random_state=0), er.BoostingClassifier(n_estimators=5)]
TREES.append(er.AdditiveClassifier(max_iter=20, interactions=2, random_state=0))


@pytest.mark.parametrize("machine", TREES, ids=repr)
@pytest.mark.parametrize("target", ["two", "three"])
def test_missing_values_and_infinities_in_trees(machine, target):
    rows, train = NEW.copy(), X.copy()
    rows[::3, 0], rows[4, :], train[::5, 0], train[::7, 1] = np.nan, np.nan, np.nan, np.nan
    compare(clone(machine).fit(train, Y[target]), rows)


@pytest.mark.parametrize("machine", TREES, ids=repr)
@pytest.mark.parametrize("target", ["two", "three"])
def test_trees_in_older_versions(machine, target):
    """Doubles from ai.onnx.ml 3 too, whose own sums are of single precision."""
    rows, train = NEW.copy(), X.copy()
    rows[::3, 0], train[::5, 0] = np.nan, np.nan
    model = clone(machine).fit(train, Y[target])
    older = onnx_model(graph_of(model, rows_for(model, X[:3])), 3)
    assert [each.version for each in older.opset_import if each.domain == "ai.onnx.ml"] == [3]
    found = run_onnx(older.SerializeToString(), {"X": rows})
    assert found["label"].tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=DIGITS, atol=1e-15)


def test_leaves_alone_and_words_in_older_versions():
    import polars as pl

    bare = er.BoostingRegressor(n_estimators=2, min_samples_leaf=60).fit(X, Y["number"])
    found = run_onnx(onnx_model(graph_of(bare, rows_for(bare, X[:3])), 3).SerializeToString(), {"X": NEW})
    np.testing.assert_allclose(found["number"], bare.predict(NEW), rtol=DIGITS)
    frame = pl.DataFrame({"town": ["Ulm", "Bonn", "Köln"] * 9})
    tree = er.TreeClassifier().fit(frame, [0, 1, 0] * 9)
    with pytest.raises(Unsuitable, match="have no form"):
        onnx_model(graph_of(tree, rows_for(tree, frame)), 3)


def test_a_tree_of_one_leaf():
    compare(er.TreeRegressor(max_depth=1, min_samples_leaf=60).fit(X, Y["number"]), NEW)
    compare(er.BoostingRegressor(n_estimators=2, min_samples_leaf=60).fit(X, Y["number"]), NEW)


@pytest.mark.parametrize("machine", TREES, ids=repr)
def test_categories_of_a_frame_are_words_in_the_graph(machine, tmp_path):
    import polars as pl

    random = np.random.default_rng(0)
    town = random.choice(["Ulm", "Bonn", "Köln", "O'Hara"], 200)
    frame = pl.DataFrame({"size": random.normal(size=200), "town": town})
    model = clone(machine).fit(frame, np.where((town == "Ulm") | (frame["size"].to_numpy() > 1), "a", "b"))
    new = pl.DataFrame({"size": [0.0, None, 2.0, -1.0], "town": ["Ulm", "Bonn", None, "never met"]})
    for ending in (".onnx", ".py"):
        exported = er.export(model, tmp_path / f"model{ending}", new)
        assert (exported.labels, exported.rows) == (0, 4)
        assert exported.difference < DIGITS


@pytest.mark.parametrize("machine", TREES, ids=repr)
def test_trees_that_ask_whether_a_word_is_missing(machine, tmp_path):
    import polars as pl

    frame = pl.DataFrame({"town": ["Ulm", None, "Bonn", None] * 20})
    model = clone(machine).fit(frame, frame["town"].is_null().to_numpy())
    for ending in (".onnx", ".py"):
        exported = er.export(model, tmp_path / f"model{ending}", frame)
        assert exported.labels == 0
        assert exported.difference < DIGITS


def test_missing_words_between_sets_that_lead_to_equal_leaves(tmp_path):
    """ONNX Runtime took two such sets for one: rows with words that were not met reached another leaf."""
    import polars as pl

    random, words = np.random.default_rng(0), np.array([*"abcdefgh", None], dtype=object)
    wrong = []
    for seed in range(12):
        place = random.integers(9, size=150)
        frame = pl.DataFrame({"one": words[place].tolist(), "two": words[random.integers(9, size=150)].tolist()})
        y = (random.random(9) < 0.5)[place] ^ (random.random(150) < 0.1)
        few = er.ForestClassifier(8, max_leaf_nodes=24, splitter="random", random_state=seed).fit(frame, y)
        exported = er.export(few, tmp_path / "model.onnx", frame)
        wrong += [exported] if exported.labels or exported.difference > DIGITS else []
    assert not wrong


def test_an_empty_text_is_no_category_in_a_file(tmp_path):
    import polars as pl

    model = er.TreeClassifier().fit(pl.DataFrame({"town": ["", "Ulm", None, "Bonn"] * 5}), [0, 1, 1, 0] * 5)
    with pytest.raises(Unsuitable, match="'town' has the empty text as a category"):
        er.export(model, tmp_path / "model.onnx")


def test_hundreds_of_categories_are_sets(tmp_path):
    import polars as pl

    random = np.random.default_rng(1)
    words = np.array([f"word {k}" for k in range(150)])
    code = random.integers(150, size=2000)
    frame = pl.DataFrame({"word": words[code]})
    model = er.TreeRegressor(max_depth=6).fit(frame, random.normal(size=150)[code])
    assert er.export(model, tmp_path / "model.onnx", frame).difference == 0.0


def test_huge_numbers(tmp_path):
    rows = np.array([[1e300, 0.0, 0.0, 0.0], [-1e300, 1e200, 5.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    for machine in (er.TreeClassifier(), er.NearestCentroid(), er.KNNClassifier()):
        assert er.export(fitted(machine, "two"), tmp_path / "model.onnx", rows).labels == 0
    far = np.array([[1e100, 0.0, 0.0, 0.0], [-1e100, 1e90, 5.0, 1.0]])
    assert er.export(fitted(er.SVM(features=er.kernels.Gaussian()), "two"), tmp_path / "model.onnx", far).labels == 0


def test_rows_are_made_up_where_none_are_given(tmp_path):
    exported = er.export(fitted(er.LogisticRegression(), "two"), tmp_path / "model.onnx")
    assert exported.rows == 64
    assert exported.difference < DIGITS
    assert str(exported).startswith(f"Wrote {tmp_path / 'model.onnx'}: on 64 rows the largest difference is ")


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (er.Dictionary(3), "Dictionary cannot be exported: its codes"),
        (er.Hierarchical(n_clusters=2), "Hierarchical cannot be exported"),
        (er.SVM(features=lambda a, b: float(a @ b)), "cannot be exported"),
    ],
    ids=["dictionary", "hierarchical", "callable"],
)
def test_what_cannot_be_exported_is_refused_by_name(machine, words, tmp_path):
    model = fitted(machine, "two")
    with pytest.raises(Unsuitable, match=words):
        er.export(model, tmp_path / "model.onnx", X)
    assert list(tmp_path.iterdir()) == []


def test_kernels_on_strings_of_a_table_are_refused(tmp_path):
    model, _ = subjects()["spelled"]()
    with pytest.raises(Unsuitable, match="kernels on strings"):
        er.export(model, tmp_path / "model.onnx")


def test_endings(tmp_path):
    with pytest.raises(EmpiriskError, match="ending that is not known; use one of"):
        er.export(fitted(er.SVM(), "two"), tmp_path / "model.exe")


def test_a_graph_that_says_something_else_is_not_written(tmp_path, monkeypatch):
    model = fitted(er.Ridge(), "number")
    monkeypatch.setattr(write, "asked", lambda model, table: {"predict": np.zeros(len(table))})
    with pytest.raises(EmpiriskError, match="was not written: the file would differ"):
        er.export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_outputs_have_names_that_say_what_they_are():
    def names(machine, target):
        return sorted(graph_of(model := fitted(machine, target), rows_for(model)).outputs)

    assert names(er.LogisticRegression(), "two") == ["label", "probabilities"]
    assert names(er.SVM(), "two") == ["label", "scores"]
    assert names(er.Ridge(), "number") == ["number"]
    assert names(er.PCA(2), "none") == ["transformed"]
    assert {"label"} <= set(names(OTHERS[2], "none"))


TREE_KINDS = [
    (er.TreeRegressor(max_depth=4), "number"),
    (er.ForestRegressor(5, random_state=0), "number"),
    (er.TreeClassifier(max_depth=4), "three"),
    (er.ForestClassifier(5, random_state=0), "two"),
]


@pytest.mark.parametrize(("machine", "target"), TREE_KINDS, ids=lambda each: str(each)[:20])
def test_trees_as_those_of_scikit_learn(machine, target):
    rows = X.astype(np.float32).astype(np.float64)  # as scikit-learn's trees take them
    found = clone(machine).fit(rows, Y[target])
    theirs = scikit_learn_trees(found, rows)
    if target == "number":
        np.testing.assert_allclose(theirs.predict(rows), found.predict(rows))
    else:
        assert theirs.predict(rows).tolist() == found.predict(rows).tolist()
        np.testing.assert_allclose(theirs.predict_proba(rows), found.predict_proba(rows))
    assert all(np.isclose(tree.feature_importances_.sum(), 1) for tree in getattr(found, "estimators_", [found]))


def test_other_machines_are_no_trees_of_scikit_learn():
    with pytest.raises(Unsuitable, match="Ridge is no tree or forest"):
        scikit_learn_trees(fitted(er.Ridge(), "number"))
