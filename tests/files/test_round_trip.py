"""What is saved comes back: the same answers to the last bit, and an estimator like any other."""

import io
import pickle
import zipfile
from operator import attrgetter

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.preprocessing import LabelEncoder, StandardScaler

import empirisk as er
from tests.files.cases import (
    answers,
    assert_same,
    built,
    fitted,
    holding,
    public_classes,
    public_estimators,
    rows,
    step_pipelines,
    target,
    text_steps,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def through_file(value, path):
    er.save(value, path)
    return er.load(path)


@pytest.mark.parametrize("name", public_estimators())
def test_every_public_estimator_answers_the_same_after_a_file(name, path):
    machine = fitted(built(attrgetter(name)(er)))
    loaded = through_file(machine, path)
    X = rows(80)
    assert type(loaded) is type(machine)
    assert repr(loaded) == repr(machine)
    assert_same(answers(machine, X), answers(loaded, X))
    assert_same(answers(machine, X), answers(pickle.loads(pickle.dumps(loaded)), X))
    again = fitted(clone(loaded).set_params(**_seed(loaded)))
    assert_same(answers(again, X), answers(fitted(clone(machine).set_params(**_seed(machine))), X))
    assert set(vars(loaded)) == {key for key in machine.__getstate__() if "callback" not in key}


def _seed(machine):
    return {"random_state": 0} if "random_state" in machine.get_params() else {}


@pytest.mark.parametrize("name", public_classes())
def test_every_public_class_keeps_its_parameters(name, path):
    machine = built(attrgetter(name)(er))
    loaded = through_file(machine, path)
    assert type(loaded) is type(machine)
    assert repr(loaded) == repr(machine)


@pytest.mark.parametrize("name", [name for name in er.kernels.NAMES if er.kernels.find(name).takes == "vectors"])
def test_fitted_kernels_give_the_same_blocks(name, path):
    kernel = 0.5 * er.kernels.find(name).on([0, 1]) + er.kernels.Gaussian(width="median").fit(rows())
    kernel.fit(rows())
    loaded = through_file(kernel, path)
    np.testing.assert_array_equal(kernel.block(rows(), rows(5)), loaded.block(rows(), rows(5)), strict=True)


@pytest.mark.parametrize("name", step_pipelines())
def test_pipelines_with_steps_of_scikit_learn(name, path):
    machine = fitted(step_pipelines()[name], rows().round(0) if name in ("columns", "one-hot") else None)
    X = rows(80).round(0)
    assert_same(answers(machine, X), answers(through_file(machine, path), X))


@pytest.mark.parametrize("step", text_steps(), ids=lambda step: type(step).__name__)
def test_text_steps(step, path):
    texts = ["the cat sat", "a dog and the cat", "Ünïcode \ud83d\ude00 dog"]
    step.fit(texts)
    loaded = through_file(step, path)
    new = ["cat dog unheard of", ""]
    np.testing.assert_array_equal(step.transform(new).toarray(), loaded.transform(new).toarray(), strict=True)
    assert loaded.get_feature_names_out().tolist() == step.get_feature_names_out().tolist()


def test_label_encoder(path):
    encoder = LabelEncoder().fit(["b", "a", "b"])
    assert through_file(encoder, path).transform(["b", "a"]).tolist() == [1, 0]


def test_several_classes_weights_and_the_certificate(path):
    X, y = load_iris(return_X_y=True)
    machine = er.LogisticRegression(class_weight={0: 1.0, 1: 2.0, 2: 0.5}).fit(X, y)
    loaded = through_file(machine, path)
    assert loaded.class_weight == machine.class_weight
    assert loaded.certificate_ == machine.certificate_
    assert loaded.history_.keys() == machine.history_.keys()
    assert_same(answers(machine, X), answers(loaded, X))


def test_names_of_columns_and_pruning_tables(path):
    frame = pl.DataFrame(rows(), schema=["a", "b", "c"])
    tree = er.TreeRegressor(ccp_alpha="cv").fit(frame, target(er.Ridge(), rows()))
    loaded = through_file(tree, path)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    for found, kept in ((loaded.cv_results_, tree.cv_results_), (loaded.pruned_.removed, tree.pruned_.removed)):
        assert found.keys() == kept.keys()
        assert all(np.array_equal(found[name], kept[name]) for name in kept)
    assert loaded.text() == tree.text()


def test_categories_of_trees(path):
    frame = pl.DataFrame({"colour": ["red", "blue", "green", None] * 15, "size": np.arange(60.0)})
    y = np.arange(60) % 4 < 2
    machine = er.ForestClassifier(n_estimators=5, categorical_features=["colour"], random_state=0).fit(frame, y)
    loaded = through_file(machine, path)
    assert_same(answers(machine, frame), answers(loaded, frame))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2.5, -0.0, float("nan"), float("inf"), 10**30],
        (1, ("a", {"b": {2, 3}}), frozenset({"x"})),
        {1: "one", (2, 3): None, "x": slice(1, None, 2)},
        np.float32(0.1),
        np.int64(3),
        np.bool_(True),
        np.str_("text"),
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(3.0),
        np.zeros((0, 4), dtype=np.float32),
        np.array(["a", "bc", ""]),
        np.array(["a", None, 2.5, float("nan"), True], dtype=object),
        np.array([True, False]),
        np.array(["2020-01-01T00:00:00", "NaT"], dtype="datetime64[us]"),
        np.dtype(np.float32),
        np.float64,
        float,
    ],
    ids=repr,
)
def test_plain_values_keep_their_type(value, path):
    (loaded,) = through_file(holding((value,)), path).kw_args["value"]
    assert type(loaded) is type(value)
    assert repr(loaded) == repr(value)
    if isinstance(value, np.ndarray):
        assert (loaded.dtype, loaded.shape) == (value.dtype, value.shape)
        assert loaded.flags.c_contiguous == value.flags.c_contiguous
        assert not loaded.flags.writeable  # what was checked stays as it is
        assert loaded.flags.aligned


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_matrices(kind, path):
    matrix = kind(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]))
    loaded = through_file(holding(matrix), path).kw_args["value"]
    assert type(loaded) is kind
    np.testing.assert_array_equal(loaded.toarray(), matrix.toarray(), strict=True)


@pytest.mark.parametrize("bits", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_random_generators_go_on_where_they_were(bits, path):
    random = np.random.Generator(getattr(np.random, bits)(3))
    random.normal(size=3)
    loaded = through_file(er.SVM(random_state=random), path).random_state
    assert loaded.normal() == random.normal()


def test_random_state_goes_on_where_it_was(path):
    random = np.random.RandomState(3)
    random.normal()
    loaded = through_file(er.SVM(random_state=random), path).random_state
    assert loaded.normal() == random.normal()


def test_shared_objects_stay_shared(path):
    scaler, array = StandardScaler(), np.arange(3.0)
    one, other, first, second = through_file(holding([scaler, scaler, array, array]), path).kw_args["value"]
    assert one is other
    assert first is second
    with zipfile.ZipFile(path) as archive:
        assert len([name for name in archive.namelist() if name.startswith("arrays/")]) == 1


def test_the_same_model_gives_the_same_bytes(path, tmp_path):
    machine = fitted(er.Ridge())
    er.save(machine, path)
    er.save(machine, tmp_path / "b.model")
    assert path.read_bytes() == (tmp_path / "b.model").read_bytes()


def test_numpy_reads_the_arrays_without_us(path):
    machine = fitted(er.Ridge())
    er.save(machine, path)
    with zipfile.ZipFile(path) as archive:
        read = [
            np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            for name in archive.namelist()
            if name.startswith("arrays/")
        ]
    assert any(np.array_equal(array, machine.coef_) for array in read)


def test_a_parameter_newer_than_the_file_gets_its_default(path, monkeypatch):
    er.save(er.SVM(), path)
    monkeypatch.setattr(er.SVM, "__getstate__", lambda self: {k: v for k, v in vars(self).items() if k != "tol"})
    er.save(er.SVM(tol=0.5), path)
    assert er.load(path).tol == er.SVM().tol
