"""scikit-learn's contract: every check passes, none is skipped, and no warning is raised."""

import os
import subprocess
import sys

import pytest

CODE = """
import sys
from sklearn.utils.estimator_checks import check_estimator
import empirisk as er
results = check_estimator({machine}, on_fail="raise", on_skip=None)
missed = {{result["check_name"] for result in results if result["status"] != "passed"}}
if not hasattr({machine}, "decision_function"):  # there is nothing to check in a method that does not exist
    missed.discard("check_classifiers_multilabel_output_format_decision_function")
print(len(results), sorted(missed))
"""


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param("er.TreeClassifier()", marks=pytest.mark.row("T1")),
        pytest.param("er.TreeClassifier('entropy', max_leaves=8)", marks=pytest.mark.row("T1")),
        pytest.param("er.TreeRegressor()", marks=pytest.mark.row("T2")),
        pytest.param("er.TreeRegressor('absolute')", marks=pytest.mark.row("T2")),
        pytest.param("er.BaggingClassifier(n_estimators=20)", marks=pytest.mark.row("T5")),
        pytest.param("er.BaggingRegressor(n_estimators=20)", marks=pytest.mark.row("T5")),
        pytest.param("er.AdaBoostClassifier()", marks=pytest.mark.row("T7")),
    ],
)
def test_the_contract_holds(machine):
    check_contract(machine)


def check_contract(machine):
    """Run every check of scikit-learn on a machine in a process of its own."""
    # One of the checks runs only in a process that starts with this variable.
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-W", "error", "-c", CODE.format(machine=machine)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    count, missed = done.stdout.split(maxsplit=1)
    assert int(count) > 50
    assert missed.strip() == "[]"
