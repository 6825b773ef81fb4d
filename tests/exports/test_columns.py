"""Pipelines of scikit-learn that take data frames apart: raw columns in, as for models of tables."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.exports.families.columns import NEVER_MET

DIGITS = 1e-9
RANDOM = np.random.default_rng(0)
SIZE = np.where(RANDOM.random(200) < 0.1, np.nan, RANDOM.normal(size=200))
TOWN = RANDOM.choice(["Ulm", "Bonn", "Köln", "O'Hara"], 200)
KIND = RANDOM.choice(["a", "b", None], 200, p=[0.5, 0.4, 0.1])
ROOMS, SUNNY = RANDOM.integers(1, 5, 200), RANDOM.random(200) < 0.5
ROWS = {"size": SIZE, "rooms": ROOMS, "town": TOWN, "kind": KIND.tolist(), "sunny": SUNNY}
NEW = {
    "size": [0.0, np.nan, -5.0, 1e9, 2.0], "rooms": [1, 2, 3, 4, 99], "town": ["Ulm", "never met", "", "Bonn", "Köln"],
    "kind": ["a", None, "b", "c", "a"], "sunny": [True, False, True, False, True],
}  # fmt: skip
WORDS = ["town", "kind", "sunny"]
Y = np.where(np.nan_to_num(SIZE) + (TOWN == "Ulm") + SUNNY > 1, "yes", "no")
T = np.nan_to_num(SIZE) + ROOMS + (TOWN == "Ulm")
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=30, sparse_output=False),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    TargetEncoder(),
]


def columns(encoder, **settings):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    parts = [("numbers", numbers, ["size"]), ("words", encoder, WORDS), ("rooms", encoder, ["rooms"])]
    return ColumnTransformer(parts, **settings)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_words_go_through_encoders(encoder, frame, tmp_path):
    rows = frame(ROWS)
    steps = columns(encoder, transformer_weights={"rooms": 0.5}, sparse_threshold=0)
    models = [
        make_pipeline(steps, SelectKBest(k=2), er.LogisticRegression()).fit(rows, Y),
        make_pipeline(steps, er.Ridge()).fit(rows, T),
    ]
    for model in models:
        for ending in (".onnx", ".py", ".sql"):
            for given in (frame({name: values[:40] for name, values in ROWS.items()}), frame(NEW)):
                exported = er.export(model, tmp_path / f"model{ending}", given)
                assert (exported.labels, exported.difference < DIGITS) == (0, True)


def test_rows_are_made_up_for_searches_and_calibration(tmp_path):
    inner = make_pipeline(columns(OneHotEncoder()), er.LogisticRegression())
    for model in (
        GridSearchCV(inner, {"logisticregression__C": [0.1, 1.0]}, cv=2),
        CalibratedClassifierCV(inner, cv=2),
        er.VoteClassifier([("a", inner)], voting="soft"),
    ):
        exported = er.export(model.fit(pl.DataFrame(ROWS), Y), tmp_path / "model.py")
        assert (exported.rows, exported.labels, exported.difference < DIGITS) == (64, 0, True)


def test_a_word_that_the_encoder_refuses_has_no_number_in_the_file(tmp_path):
    rows, encoder = pl.DataFrame(ROWS), OneHotEncoder()
    model = make_pipeline(columns(encoder), er.Ridge()).fit(rows, T)
    assert er.export(model, tmp_path / "model.py").difference < DIGITS  # rows are made up, of words that it has met
    with pytest.raises(ValueError, match="unknown categories"):
        er.export(model, tmp_path / "model.py", pl.DataFrame(NEW))
    scope = {}
    exec((tmp_path / "model.py").read_text(), scope)
    found = scope["answers"](NEW)["number"]
    assert np.isnan(found).tolist() == [False, True, True, True, True]
    assert NEVER_MET[1] not in ROOMS


def test_words_that_no_encoder_takes_are_refused(tmp_path):
    parts = [("words", OneHotEncoder(), ["town"]), ("numbers", SimpleImputer(), ["size"])]
    model = make_pipeline(ColumnTransformer(parts, remainder="passthrough"), er.TreeRegressor())
    rows = pl.DataFrame(ROWS).drop("kind")
    with pytest.raises(Unsuitable, match="truth values leave its step 'remainder' as they are"):
        er.export(model.fit(rows, T), tmp_path / "model.onnx", rows)


def test_an_empty_text_beside_a_missing_value_is_refused(tmp_path):
    rows = pd.DataFrame({"town": ["", "Ulm", None, "Bonn"] * 9})
    model = make_pipeline(ColumnTransformer([("town", OneHotEncoder(), ["town"])]), er.Ridge()).fit(rows, T[:36])
    with pytest.raises(Unsuitable, match="which are one in a file"):
        er.export(model, tmp_path / "model.onnx", rows)


@pytest.mark.parametrize("ending", [".onnx", ".py", ".sql"])
def test_rows_that_the_model_refuses_are_named_by_its_own_sentence(ending, tmp_path):
    model = er.GaussianMixture(2, random_state=0).fit(RANDOM.normal(size=(40, 2)))
    with pytest.raises(EmpiriskError, match="NaN"):
        er.export(model, tmp_path / f"model{ending}", [[np.nan, 0.0], [1.0, 1.0]])


def test_a_loaded_pipeline_is_exported_by_the_command(tmp_path):
    model = make_pipeline(columns(OneHotEncoder()), er.LogisticRegression()).fit(pl.DataFrame(ROWS), Y)
    er.save(model, tmp_path / "spam.model")
    ran = CliRunner().invoke(app, ["export", str(tmp_path / "spam.model"), "--onnx", "--python", "--sql"])
    assert ran.exit_code == 0, ran.output
    assert ran.output.count("on 64 rows the largest difference is") == 3
