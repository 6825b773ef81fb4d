"""Contents that are refused: classes, trees and arrays that are not what a model file holds."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

import empirisk as er
from empirisk.files import arrays
from tests.files.cases import fitted, holding, rows
from tests.files.tampering import change_array, forge, refuses, rewrite


@pytest.mark.parametrize(
    "root",
    [
        {"object": ["os.system", 0, {}]},
        {"object": ["builtins.eval", 0, {}]},
        {"object": ["errors.EmpiriskError", 0, {}]},
        {"object": ["sklearn.SVC", 0, {}]},
        {"object": ["files.load.load", 0, {}]},
        {"object": ["config", 0, {}]},
        {"object": [["SVM"], 0, {}]},
    ],
    ids=str,
)
def test_only_classes_in_the_tables_are_built(path, root):
    forge(er.SVM(), path)
    rewrite(path, tree=lambda tree: tree.update(root=root))
    refuses(path, "does not load")


@pytest.mark.parametrize(
    "root",
    [
        {"object": ["SVM", 0, {"predict": 1}]},
        {"object": ["SVM", 0, {"__class__": 1}]},
        {"object": ["SVM", 0, {"a b": 1}]},
        {"object": ["SVM", 0]},
        {"object": ["kernels.Scaled", 0, {"factor": 2.0}]},
        {"object": ["Certificate", 0, {}]},
        {"object": ["sklearn.Pipeline", 0, {"memory": "/tmp/pickles", "steps": []}]},
        {"object": ["sklearn.TfidfVectorizer", 0, {"input": "filename"}]},
        {"same": 5},
        {"unknown": 5},
        {"a": 1, "b": 2},
        {},
        {"float": "1e5"},
        {"tuple": 3},
        {"dict": [[{"dict": []}, 1]]},
        {"set": [[]]},
        {"array": [0, "|O", [1], False]},
        {"array": [0, "<f8", [2**62], False]},
        {"array": [0, "<f8", [-1], False]},
        {"array": [5, "<f8", [1], False]},
        {"array": ["../x", "<f8", [1], False]},
        {"objects": [[10**9], []]},
        {"texts": [[1], 10**12, ["a"]]},
        {"sparse": ["csr_matrix", [1, 1], [1.0], [7], [0, 1]]},
        {"scalar": ["<f8", "text"]},
        {"generator": {"dict": [["bit_generator", "os"]]}},
        {"frame": [["a", "Object", [1]]]},
        {"type": "os.system"},
        {"dtype": "O8"},
    ],
    ids=str,
)
def test_a_tree_that_does_not_fit_is_one_sentence(path, root):
    forge(er.SVM(), path)
    rewrite(path, tree=lambda tree: tree.update(root=root))
    refuses(path, "model file is damaged")


def test_deep_and_broken_json(path):
    forge(er.SVM(), path)
    deep = b'{"root": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    rewrite(path, change=lambda members: members.update({"tree.json": deep}))
    refuses(path, "damaged")
    for text in (b"\xff", b"{", b'{"root": NaN}', b"[]", b'{"root": ' + b"9" * 5000 + b"}"):
        forge(er.SVM(), path)
        rewrite(path, change=lambda members, text=text: members.update({"tree.json": text}))
        refuses(path, "damaged")


def test_arrays_must_be_what_the_tree_announces(path):
    forge(holding(np.array([True, False])), path)
    rewrite(
        path, change=lambda members: members.update({"arrays/0.npy": arrays.header("|b1", (2,), False) + b"\x01\x07"})
    )
    refuses(path, "true and false")
    forge(holding(np.zeros(4)), path)
    rewrite(path, change=lambda members: members.update({"arrays/0.npy": arrays.header("<f8", (4,), True) + bytes(32)}))
    refuses(path, "size or type")
    forge(holding(np.zeros(4)), path)
    rewrite(path, change=lambda members: members.update({"arrays/0.npy": members["arrays/0.npy"] + b"x"}))
    refuses(path, "size or type")


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left", 0, 10**8),
        ("left", 0, -5),
        ("left", 0, 0),
        ("feature", 0, 3),
        ("feature", 0, -2),
        ("roots", 0, 1),
        ("category_start", 0, 10**6),
        ("category_counts", 0, -1),
    ],
)
def test_trees_that_point_outside_are_refused(path, machine, name, place, value):
    forge(machine, path)
    change_array(path, name, lambda array: array.__setitem__(place, value))
    refuses(path, "damaged: in its Nodes")


@pytest.mark.parametrize(
    ("kept", "change"),
    [
        (er.SVM(features=er.kernels.Laplacian(2.0)), {"support_vectors_": np.zeros((5, 2))}),
        (
            er.SVM(features=er.maps.Nystrom(er.kernels.Laplacian(2.0), 5, random_state=0)),
            {"landmarks_": np.zeros((5, 1))},
        ),
        (er.KNNClassifier(), {"rows_": np.zeros((60, 1))}),
        (er.KNNClassifier(), {"rows_": np.zeros((10, 3))}),
        (er.KNNClassifier(), {"codes_": np.full(60, 7)}),
        (er.KNNClassifier(), {"codes_": np.full(60, -1)}),
        (er.ForestClassifier(n_estimators=2, max_depth=2, random_state=0), {"n_features_in_": 1}),
        (er.BoostingRegressor(n_estimators=2, max_leaf_nodes=3, random_state=0), {"n_estimators_": 50}),
        (er.TreeClassifier(max_depth=2), {"n_features_in_": 1}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_rows_and_trees_that_do_not_fit_are_refused(path, kept, change):
    """Compiled code would read, or write, beyond the end of an array."""
    kept = fitted(kept)
    owner = kept.features_ if "landmarks_" in change else kept
    vars(owner).update(change)
    forge(kept, path)
    refuses(path, "damaged: in its (SVM|Nystrom|KNN|Forest|Boosting|Tree)")


@pytest.mark.parametrize(
    "options", [{}, {"min_frequency": 10}, {"drop": "first"}, {"drop": "first", "max_categories": 3}]
)
@pytest.mark.parametrize(
    "change",
    [
        {"categories_": [np.arange(9.0)] * 2},
        {"categories_": [np.arange(7.0)[::-1]] * 3},
        {"categories_": [np.zeros(7)] * 3},
        {"drop_idx_": np.array([-5, None, None], dtype=object)},
        {"drop_idx_": np.array([50, None, None], dtype=object)},
    ],
    ids=str,
)
def test_encoders_that_would_write_outside_are_refused(path, options, change):
    encoder = OneHotEncoder(**options).fit(rows().round(0))
    forge(encoder, path)
    assert er.load(path).transform(rows().round(0)).nnz == encoder.transform(rows().round(0)).nnz
    vars(encoder).update(change)
    forge(encoder, path)
    refuses(path, "damaged")


def test_vocabularies_and_words_that_would_write_outside_are_refused(path):
    texts = ["a bee", "bee sea", "sea dee"]
    for place in (10**6, -1, 0.5):
        vectorizer = TfidfVectorizer().fit(texts)
        vectorizer.vocabulary_["bee"] = place
        forge(vectorizer, path)
        refuses(path, "damaged: in its TfidfVectorizer, vocabulary_")
    table = {"t": ["a", "b", None] * 20, "n": list(range(60))}
    encoder = er.tables.TableEncoder(er.tables.understand(table)).fit(table)
    object.__setattr__(encoder.words_, "others", np.array([-3], dtype=np.int8))
    forge(encoder, path)
    refuses(path, "damaged: in its Words, others")
