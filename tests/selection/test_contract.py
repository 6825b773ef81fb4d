"""scikit-learn's contract for machines around machines: every check passes, none is skipped."""

import pytest

import empirisk as er
from empirisk import selection
from tests.estimator_checks import check_contract

AROUND = [
    selection.Search(er.LeastSquaresClassifier(penalty="l2"), {"C": [0.1, 1.0]}, cv=3),
    selection.Threshold(er.LeastSquaresClassifier(penalty="l2"), by="f1", cv=3),
    selection.Balanced(er.LogisticRegression(), how="upsample", jitter=0.1),
    selection.Balanced(er.LogisticRegression(), how="subsample"),
    selection.GreedySelection(er.Ridge(), cv=2, most=1),
    selection.L1Selection(er.Lasso(), n_samples=3),
    selection.InformationSelection(random_state=0),
    selection.BestSubset(),
    selection.CombinedColumns(2),
]


@pytest.mark.parametrize("machine", AROUND, ids=lambda machine: type(machine).__name__)
def test_the_contract_holds(machine):
    check_contract(machine)
