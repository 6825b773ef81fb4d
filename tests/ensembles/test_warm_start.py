"""Ensembles that go on: with more members they are what a single fit makes of them, to the bit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

import empirisk as er
from empirisk.contract import warm
from empirisk.errors import EmpiriskError

X, Y = make_classification(80, 6, n_informative=4, flip_y=0.3, random_state=0)
T = X @ np.arange(6.0) + np.random.default_rng(0).normal(size=80)
RANDOM = {"warm_start": True, "random_state": 3}
MACHINES = [
    (er.ForestClassifier(7, **RANDOM), Y),
    (er.ForestRegressor(7, **RANDOM), T),
    (er.BaggingClassifier(er.TreeClassifier(max_depth=3), 7, max_features=3, **RANDOM), Y),
    (er.BaggingRegressor(er.Ridge(), 7, **RANDOM), T),
    (er.BoostingClassifier(n_estimators=7, subsample=0.7, max_features=3, **RANDOM), Y),
    (er.BoostingRegressor("absolute", n_estimators=7, **RANDOM), T),
    (er.BoostingRegressor(n_estimators=7, early_stopping=True, **RANDOM), T),
    (er.AdaBoostClassifier(n_estimators=7, **RANDOM), Y),
    (er.AdaBoostClassifier(er.TreeClassifier(max_depth=2, max_features=3), n_estimators=7, **RANDOM), Y),
]


def learned(machine):
    """All fitted numbers but the seconds."""
    history = {name: values for name, values in getattr(machine, "history_", {}).items() if name != "seconds"}
    names = ("oob_score_", "feature_importances_", "alphas_", "bound_", "training_errors_", "n_estimators_")
    return [machine.predict(X), history, *(getattr(machine, name, None) for name in names)]


def test_more_members_are_those_of_a_single_fit(monkeypatch):
    went_on, wrong = [], []
    keep = warm.WarmStart.__init__
    monkeypatch.setattr(
        warm.WarmStart, "__init__", lambda self, *given: (keep(self, *given), went_on.append(self.work is not None))[0]
    )
    for machine, target in MACHINES:
        going, whole = clone(machine), clone(machine).set_params(n_estimators=12, warm_start=False)
        for count in (7, 9, 12):
            going.set_params(n_estimators=count).fit(X, target)
        try:
            np.testing.assert_equal(learned(going), learned(whole.fit(X, target)))
        except AssertionError as error:
            wrong.append((machine, str(error)[:300]))
        if went_on[-4:] != [False, True, True, False]:
            wrong.append((machine, went_on[-4:]))
    assert not wrong


def test_other_rows_parameters_or_fewer_members_begin_anew():
    machine = er.ForestClassifier(5, **RANDOM).fit(X, Y)
    for change, rows in (({}, X + 1), ({"max_depth": 2}, X), ({"n_estimators": 3}, X), ({"warm_start": False}, X)):
        machine.set_params(n_estimators=5, max_depth=None, warm_start=True).fit(X, Y)
        again = machine.set_params(**change).fit(rows, Y)
        fresh = clone(again).fit(rows, Y)
        assert again.n_estimators_ == again.n_estimators
        np.testing.assert_equal(again.packed_, fresh.packed_)
    with pytest.raises(EmpiriskError, match="warm_start='yes'"):
        er.BoostingClassifier(warm_start="yes").fit(X, Y)
