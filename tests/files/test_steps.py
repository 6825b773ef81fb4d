"""Steps of scikit-learn come back with the same answers, made again by scikit-learn from what is public of them."""

import json
import warnings
import zipfile

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
    TargetEncoder,
)

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.files.rebuild import FITS
from tests.files.cases import rows
from tests.files.tampering import forge, refuses, rewrite

WORDS = np.array([["a", "x"], ["b", "x"], ["a", "y"], ["c", "x"], ["a", "z"], ["b", "y"], ["dd", "x"]], dtype=object)
GAPS = np.array([["a", None], ["b", np.nan], ["a", "y"], [None, "y"], ["c", "y"], ["a", "z"]], dtype=object)
NUMBERS = np.array([[0.0, 1.0], [np.nan, 1.0], [2.0, 3.0], [0.0, np.nan], [0.0, 1.0]])
FEW = {"min_frequency": 2, "handle_unknown": "infrequent_if_exist"}
CODES = {"handle_unknown": "use_encoded_value", "unknown_value": -1}

ENCODERS = [
    (OneHotEncoder(**FEW), WORDS),
    (OneHotEncoder(min_frequency=100), WORDS),  # all of them are rare
    (OneHotEncoder(max_categories=1), WORDS[:, :1]),
    (OneHotEncoder(max_categories=2, drop="first"), WORDS),
    (OneHotEncoder(min_frequency=0.4, drop="if_binary"), WORDS),
    (OneHotEncoder(min_frequency=1), WORDS),  # none is rare
    (OneHotEncoder(drop=["a", "y"], sparse_output=False, dtype=np.float32), WORDS),
    (OneHotEncoder(min_frequency=2, drop=["b", "x"]), WORDS),
    (OneHotEncoder(categories=[["dd", "c", "b", "a"], ["z", "y", "x"]], handle_unknown="ignore"), WORDS),
    (OneHotEncoder(handle_unknown="ignore"), WORDS.astype(str)),
    (OneHotEncoder(**FEW), GAPS),
    (OneHotEncoder(drop="first"), GAPS),
    (OneHotEncoder(handle_unknown="warn", max_categories=2), NUMBERS),
    (OneHotEncoder(), np.array([[True], [False]])),
    (OneHotEncoder(min_frequency=2), np.array([[-3], [2], [2]], dtype=np.int8)),
    (OrdinalEncoder(**CODES, min_frequency=2), WORDS),
    (OrdinalEncoder(**CODES, min_frequency=100), GAPS),
    (OrdinalEncoder(encoded_missing_value=-7), GAPS),
    (OrdinalEncoder(max_categories=2), NUMBERS),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), NUMBERS),
    (OrdinalEncoder(dtype=np.int16), WORDS),
]
OTHERS = [
    (TargetEncoder(cv=2), WORDS, np.arange(7.0)),
    (TargetEncoder(cv=2), WORDS, np.array(["p", "q"] * 3 + ["p"])),
    (TargetEncoder(cv=2), WORDS, np.arange(7) % 3),
    (PolynomialFeatures((2, 3), interaction_only=True), rows(), None),
    (PolynomialFeatures(0), rows(), None),
    (PolynomialFeatures(np.int64(2), order="F"), rows(), None),
    (KBinsDiscretizer([2, 5, 3], encode="onehot-dense", strategy="uniform"), rows(), None),
    (KBinsDiscretizer(3, strategy="kmeans", dtype=np.float32), rows(), None),
    (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), np.c_[np.ones(60), rows() > 1], None),
    (SimpleImputer(), NUMBERS, None),
    (SimpleImputer(strategy="median", add_indicator=True), NUMBERS.astype(np.float32), None),
    (SimpleImputer(strategy="most_frequent"), NUMBERS.astype(np.float32), None),
    (SimpleImputer(strategy="most_frequent", missing_values=None), GAPS[:, :1], None),
    (SimpleImputer(strategy="most_frequent", missing_values=3), np.array([[3, 1], [1, 3], [1, 1]]), None),
    (SimpleImputer(strategy="constant", fill_value="?", add_indicator=True), GAPS, None),
    (SimpleImputer(strategy="constant", fill_value=-1.5), NUMBERS, None),
    (SimpleImputer(strategy="constant", missing_values="a", fill_value="b"), WORDS, None),
    (SimpleImputer(missing_values=0), NUMBERS[[0, 2, 4]], None),
    (SimpleImputer(keep_empty_features=True, add_indicator=True), np.c_[NUMBERS, np.full(5, np.nan)], None),
    (SimpleImputer(), np.c_[NUMBERS, np.full(5, np.nan)], None),
    (SimpleImputer(add_indicator=True), sparse.csr_array(NUMBERS), None),
    (MissingIndicator(), NUMBERS[:, ::-1][:3], None),
    (MissingIndicator(features="all", sparse=True), NUMBERS, None),
    (MissingIndicator(missing_values="a"), WORDS, None),
    (PowerTransformer(), rows(), None),
    (PowerTransformer("box-cox", standardize=False), np.exp(rows()), None),
    (TfidfVectorizer(ngram_range=(2, 3), min_df=2, use_idf=False), ["a bee sees a bee", "a bee sees"], None),
    (TfidfVectorizer(analyzer="char", max_df=0.9, stop_words="english", lowercase=False), ["ab", "Ac"], None),
]


def through_file(step, path):
    er.save(step, path)
    return er.load(path)


def quiet(method, *tables):
    """What a method says: scikit-learn warns of unknown categories and of columns without an entry."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(*tables)


def assert_answers(step, loaded, X):
    one, other = quiet(step.transform, X), quiet(loaded.transform, X)
    assert type(one) is type(other)
    one, other = (found.toarray() if sparse.issparse(found) else found for found in (one, other))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other), strict=True)
    assert step.get_feature_names_out().tolist() == loaded.get_feature_names_out().tolist()
    assert repr(step) == repr(loaded)
    assert vars(step).keys() - {"_stop_words_id"} == vars(loaded).keys() - {"_stop_words_id"}


@pytest.mark.parametrize(("step", "X"), ENCODERS, ids=str)
def test_encoders(step, X, path):
    step.fit(X)
    loaded = through_file(step, path)
    assert_answers(step, loaded, X)
    for found, kept in zip(loaded.categories_, step.categories_, strict=True):
        assert found.dtype == kept.dtype
    if step.handle_unknown != "error":
        new = np.where(np.arange(X.shape[0])[:, None] == 0, X[-1:], X)
        new[1] = "unheard" if X.dtype.kind in "OU" else 77
        assert_answers(step, loaded, new)
    if isinstance(step, OneHotEncoder):
        codes = step.transform(X)
        assert repr(step.inverse_transform(codes)) == repr(loaded.inverse_transform(codes))
    assert_answers(step, through_file(loaded, path), X)  # once more


@pytest.mark.parametrize(("step", "X", "y"), OTHERS, ids=lambda value: str(value)[:60])
def test_other_steps(step, X, y, path):
    quiet(step.fit, X, y)
    loaded = through_file(step, path)
    assert_answers(step, loaded, X)
    assert_answers(step, through_file(loaded, path), X)


@pytest.mark.parametrize("name", ["pandas", "polars"])
@pytest.mark.parametrize(
    "remainder", ["drop", "passthrough", StandardScaler(), SimpleImputer(strategy="most_frequent")]
)
def test_named_columns(name, remainder, path):
    frame = pl.DataFrame({"n": [1.0, 2.0, 4.0], "w": ["a", "b", "a"], "t": ["a bee", "sea", "a sea"], "k": [3, 1, 3]})
    table = pytest.importorskip("pandas").DataFrame(frame.to_dict(as_series=False)) if name == "pandas" else frame
    steps = [
        ("words", OneHotEncoder(min_frequency=2), ["w"]),
        ("text", TfidfVectorizer(), "t"),  # one column, not a table of one
        ("none", StandardScaler(), []),
        ("both", "passthrough", ["n"]),
        ("gone", "drop", ["n"]),
    ]
    step = ColumnTransformer(steps, remainder=remainder, transformer_weights={"words": 2.0}).fit(table)
    loaded = through_file(step, path)
    assert_answers(step, loaded, table)
    turned = table[["k", "t", "w", "n"]]
    assert_answers(step, loaded, turned)


@pytest.mark.parametrize("columns", [[0, 2], slice(1, 3), np.array([2, 0])], ids=str)
@pytest.mark.parametrize("remainder", ["passthrough", PowerTransformer()])
def test_columns_by_number(columns, remainder, path):
    inner = make_pipeline(SimpleImputer(add_indicator=True), PolynomialFeatures(2))
    X = rows()
    X[0] = np.nan
    step = ColumnTransformer([("some", inner, columns)], remainder=remainder, sparse_threshold=0).fit(X)
    assert_answers(step, through_file(step, path), X)


@pytest.mark.parametrize("strategy", ["most_frequent", "prior", "stratified", "uniform", "constant"])
def test_answers_that_look_at_no_row(strategy, path):
    step = DummyClassifier(strategy=strategy, constant="b", random_state=0).fit(rows(5), list("abbca"))
    loaded = through_file(step, path)
    assert loaded.predict(rows(9)).tolist() == step.predict(rows(9)).tolist()
    np.testing.assert_array_equal(loaded.predict_proba(rows(9)), step.predict_proba(rows(9)), strict=True)


@pytest.mark.parametrize("targets", [1, 2])
def test_targets_transformed(targets, path):
    X = rows()
    y = X[:, 0] if targets == 1 else X[:, :2]
    step = TransformedTargetRegressor(er.Ridge(), transformer=StandardScaler()).fit(X, y)
    np.testing.assert_array_equal(through_file(step, path).predict(X), step.predict(X), strict=True)


def test_what_scikit_learn_does_not_make_again_is_refused(path):
    X = rows()
    step = TransformedTargetRegressor(er.Ridge()).fit(X, X[:, :1])
    with pytest.raises(EmpiriskError, match=r"TransformedTargetRegressor is not saved, .* fit it anew"):
        er.save(step, path)
    step = PolynomialFeatures(2).fit(X)
    step._of_a_newer_version = 3
    with pytest.raises(EmpiriskError, match=r"PolynomialFeatures is not saved, .* _of_a_newer_version"):
        er.save(make_pipeline(step), path)
    assert not path.exists()


def test_files_hold_what_is_public(path):
    """Private attributes of scikit-learn are in no file, but a step inside a step and the type of the rows."""
    found = set()

    def look(tree):
        if isinstance(tree, dict) and "object" in tree and tree["object"][0] in FITS:
            found.update(key for key in tree["object"][2] if key.startswith("_"))
        for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
            look(child)

    for step, X, *y in ENCODERS + OTHERS:
        er.save(quiet(step.fit, X, *y), path)
        with zipfile.ZipFile(path) as archive:
            look(json.loads(archive.read("tree.json")))
    assert found == {"_sklearn_version", "_scaler", "_tfidf", "_fit_dtype", "_fill_dtype"}


def test_older_files_name_rare_categories_by_their_places(path):
    """And they have private attributes, which are not looked at."""
    step = OneHotEncoder(**FEW).fit(WORDS)
    er.save(step, path)

    def older(tree):
        state = tree["root"]["object"][2]
        state.pop("infrequent_categories_", None)
        state |= {"_infrequent_indices": [[2, 3], [2]], "_n_features_outs": [10**9], "_infrequent_enabled": False}

    rewrite(path, tree=older)
    assert_answers(step, er.load(path), WORDS)
    rewrite(path, tree=lambda tree: tree["root"]["object"][2].update(_infrequent_indices=[[2, 9], [2]]))
    refuses(path, "hold together")


@pytest.mark.parametrize(
    ("step", "X", "change"),
    [
        (OneHotEncoder(drop="first"), WORDS, {"drop_idx_": np.array([5, 0], dtype=object)}),
        (OneHotEncoder(drop="first"), WORDS, {"drop_idx_": None}),
        (OneHotEncoder(), NUMBERS, {"categories_": [np.array([1.0, 0.0, np.nan])] * 2}),
        (OneHotEncoder(), WORDS, {"categories_": [np.array(["a", "a"], dtype=object)] * 2}),
        (PolynomialFeatures(2), rows(), {"n_output_features_": 7}),
        (PolynomialFeatures(2), rows(), {"n_features_in_": 10**12, "degree": 0}),
        (KBinsDiscretizer(3), rows(), {"n_bins_": np.array([3, 3, 10**9])}),
        (SimpleImputer(), NUMBERS, {"_fit_dtype": np.dtype("<U100000")}),
        (SimpleImputer(), NUMBERS, {"_fit_dtype": 3}),
        (PowerTransformer(), rows(), {"_scaler": StandardScaler().fit(rows(5, 2))}),
        (PowerTransformer(), rows(), {"_scaler": StandardScaler()}),
        (PowerTransformer(), rows(), {"_scaler": None}),
        (TfidfVectorizer(), ["a bee", "sea"], {"_tfidf": StandardScaler().fit(rows(5, 2))}),
        (MissingIndicator(), NUMBERS, {"features_": np.array([1, 0])}),
        (ColumnTransformer([("a", "drop", [0])], remainder="passthrough"), rows(), {"n_features_in_": 10**12}),
        (ColumnTransformer([("a", StandardScaler(), [0])]), rows(), {"transformers": [("a", "drop", [9])]}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_states_that_no_fit_gives_are_refused(step, X, change, path):
    step = quiet(step.fit, X)
    vars(step).update(change)
    forge(step, path)
    refuses(path, "damaged: |more than the limit")


@pytest.mark.parametrize(
    "rare", [[{"objects": [[1], ["e"]]}, None], [None], [None, {"objects": [[0], []]}], 3], ids=str
)
def test_rare_categories_that_are_none_are_refused(rare, path):
    er.save(OneHotEncoder(**FEW).fit(WORDS), path)
    rewrite(path, tree=lambda tree: tree["root"]["object"][2].update(infrequent_categories_=rare))
    refuses(path, "damaged: ")
