"""scikit-learn's contract for trees and for ensembles of them: every check passes, none is skipped."""

import pytest

import empirisk as er
from tests.estimator_checks import check_contract


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(er.TreeClassifier(), marks=pytest.mark.row("T1")),
        pytest.param(er.TreeClassifier("entropy", max_leaf_nodes=8), marks=pytest.mark.row("T1")),
        pytest.param(er.TreeRegressor(), marks=pytest.mark.row("T2")),
        pytest.param(er.TreeRegressor("absolute"), marks=pytest.mark.row("T2")),
        pytest.param(er.BaggingClassifier(n_estimators=20), marks=pytest.mark.row("T5")),
        pytest.param(er.BaggingRegressor(n_estimators=20), marks=pytest.mark.row("T5")),
        pytest.param(er.ForestClassifier(20), marks=pytest.mark.row("T6")),
        pytest.param(er.ForestRegressor(20), marks=pytest.mark.row("T6")),
        pytest.param(er.AdaBoostClassifier(), marks=pytest.mark.row("T7")),
        pytest.param(er.BoostingClassifier(n_estimators=20), marks=pytest.mark.row("T8")),
        pytest.param(
            er.BoostingClassifier(n_estimators=20, early_stopping=True, subsample=0.8), marks=pytest.mark.row("T8")
        ),
        pytest.param(er.BoostingRegressor(n_estimators=20), marks=pytest.mark.row("T8")),
        pytest.param(er.BoostingRegressor("absolute", n_estimators=20), marks=pytest.mark.row("T8")),
    ],
    ids=repr,
)
def test_the_contract_holds(machine):
    check_contract(machine)
