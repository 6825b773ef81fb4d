"""Masked arrays, and data frames in which two columns have one name, in front of every estimator."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.files.cases import built, takes_function
from tests.fuzz import machines

MACHINES = [name for name in machines.machines() if name != "tables.TableEncoder"]  # it reads tables in its own way


def target(machine, X):
    return X[:, 0] + 0.5 * X[:, 1] if machines.learns_numbers(machine) else (X[:, 0] > 0).astype(int)


def rows():
    X = np.random.default_rng(0).normal(size=(24, 3))
    mask = np.zeros(X.shape, dtype=bool)
    mask[::5, 1] = True
    return X, np.ma.array(np.where(mask, 1e9, X), mask=mask)


def machine_of(name):
    made = machines.machines()[name]
    machine = machines.draw(name, np.random.default_rng(0)).machine if takes_function(made) else built(made)
    small = {"n_estimators": 3, "random_state": 0}
    return machine.set_params(**{key: value for key, value in small.items() if key in machine.get_params(deep=False)})


@pytest.mark.parametrize("name", MACHINES)
def test_masked_entries_are_missing(name):
    X, masked = rows()
    machine = machine_of(name)
    y = target(machine, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not get_tags(machine).input_tags.allow_nan:
            with pytest.raises(ValueError, match="NaN"):
                machine.fit(masked, y)
            return
        answer = "predict" if hasattr(machine, "predict") else "transform"
        found = getattr(machine.fit(masked, y), answer)(masked)
        again = getattr(machine.fit(masked.filled(np.nan), y), answer)(masked.filled(np.nan))
    np.testing.assert_array_equal(found, again)


def test_a_mask_counts_in_what_follows_a_fit():
    X, masked = rows()
    for machine in (er.Ridge(), er.Ridge(features=StandardScaler()), er.Ridge(features=er.kernels.Gaussian(1.0))):
        machine.fit(X, X[:, 0])
        with pytest.raises(ValueError, match="NaN"):
            machine.predict(masked)
    with pytest.raises(EmpiriskError, match="NaN"):
        er.kernels.Gaussian(1.0)(masked)


SOME = [er.Ridge(), er.TreeRegressor(), er.VoteRegressor(), er.SVM(), er.ForestClassifier()]


@pytest.mark.parametrize("machine", SOME, ids=repr)
def test_targets_and_weights_have_no_mask(machine):
    X, _ = rows()
    masked = np.ma.array(target(machine, X), mask=np.arange(len(X)) == 3)
    with pytest.raises(EmpiriskError, match="y is masked in some rows"):
        machine.fit(X, masked)
    with pytest.raises(EmpiriskError, match="sample_weight is masked in some rows"):
        machine.fit(X, target(machine, X), sample_weight=np.ma.array(np.ones(len(X)), mask=np.arange(len(X)) == 3))


@pytest.mark.parametrize("name", MACHINES)
def test_two_columns_of_one_name_are_refused(name):
    X, _ = rows()
    machine = machine_of(name)
    with pytest.raises(EmpiriskError, match="several columns of the name 'a'; give each column a name of its own"):
        machine.fit(pd.DataFrame(X, columns=["a", "b", "a"]), target(machine, X))


def test_two_columns_of_one_name_are_refused_in_front_of_a_map():
    X, _ = rows()
    with pytest.raises(EmpiriskError, match="several columns of the name 'a'"):
        er.Ridge(features=StandardScaler()).fit(pd.DataFrame(X, columns=["a", "b", "a"]), X[:, 0])


NUMERIC = [
    er.maps.Periodic(),
    er.maps.RandomFourier(er.kernels.Gaussian(1.0), rank=4, random_state=0),
    er.Ridge(),
    er.SVM(features=er.kernels.Gaussian(1.0)),
    er.PCA(),
    er.Parametric(lambda X, theta: X @ theta, [0.0, 0.0]),
]


@pytest.mark.parametrize("machine", NUMERIC, ids=lambda machine: type(machine).__name__)
def test_words_in_place_of_numbers_are_named(machine):
    X, _ = rows()
    y = target(machine, X)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "high", "low")})
    with pytest.raises(EmpiriskError, match=r"X holds what is no number \(.*'(high|low)'\); encode words"):
        machine.fit(frame, y)
    machine.fit(X[:, :2], y)
    with pytest.raises(EmpiriskError, match=r"X holds what is no number"):
        (machine.predict if hasattr(machine, "predict") else machine.transform)(frame.to_numpy())
    assert hasattr(machine, "n_features_in_")


def test_words_in_a_target_of_numbers_are_named():
    X, _ = rows()
    for machine in (er.Ridge(), er.selection.BestSubset(), NUMERIC[-1]):
        with pytest.raises(EmpiriskError, match="y holds"):
            machine.fit(X[:, :2], np.where(X[:, 0] > 0, "high", "low"))


def test_tables_are_validated_in_one_place():
    """Elsewhere the mask of an array would be forgotten."""
    package = Path(er.__file__).parent
    direct = re.compile(r"^from sklearn\.utils(\.validation)? import .*\b(validate_data|check_array)\b", re.MULTILINE)
    found = [path.name for path in package.rglob("*.py") if direct.search(path.read_text())]
    assert not found, f"import it from empirisk.validation in {found}"


def test_transformers_of_others_do_not_compute_in_half_precision():
    X = np.random.default_rng(0).normal(loc=100.0, size=(20, 3)).astype(np.float16)
    y = X[:, 0].astype(float)
    half, double = (er.Ridge(features=StandardScaler()).fit(rows, y) for rows in (X, X.astype(float)))
    np.testing.assert_array_equal(half.coef_, double.coef_)
    np.testing.assert_array_equal(half.predict(X), double.predict(X.astype(float)))
