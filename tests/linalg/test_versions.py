"""Packages that are newer than the tests: their internals are left alone, and the results have the same bits."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
import threadpoolctl

import empirisk as er
from empirisk.linalg.versions import NEWEST_TESTED, internals_known


@pytest.mark.parametrize("version", ["0.68.1", "0.61.0", "0.69.0rc1", "1.0"])
def test_internals_of_a_newer_version_are_left_alone(version):
    assert internals_known("numba", version) is (version < "0.69")


def test_the_installed_versions_are_those_of_the_tests():
    for package in (numba, threadpoolctl):
        assert internals_known(package.__name__, package.__version__)
        assert package.__version__.startswith("{}.{}.".format(*NEWEST_TESTED[package.__name__]))


def test_a_package_can_be_named_whose_internals_are_left_alone(monkeypatch):
    monkeypatch.setenv("EMPIRISK_PLAIN", "scipy,numba")
    assert not internals_known.__wrapped__("numba", "0.61.0")
    assert internals_known.__wrapped__("threadpoolctl", "3.5.0")


def answers() -> str:
    """Bits of machines whose loops are of every kind: records, sums in any order, BLAS, teams of threads."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 6))
    y = X[:, 0] + 0.3 * random.normal(size=300)
    classes = y > 0
    large = random.normal(size=(30_000, 8))
    with er.config(threads=2):
        found = [
            er.Lasso(C=0.5).fit(X, y).coef_,
            er.SVM(features="gaussian").fit(X, classes).decision_function(X),
            er.SVM(solver="dual_ascent").fit(X, classes).coef_,
            er.KNNClassifier().fit(X, classes).predict_proba(X),
            er.ForestClassifier(10, random_state=0).fit(X, classes).predict_proba(X),
            er.BoostingClassifier(n_estimators=20, random_state=0).fit(large, large[:, 0] > 0).predict_proba(large),
            er.KMeans(3, random_state=0).fit(X).cluster_centers_,
        ]
    return " ".join(np.ascontiguousarray(array).tobytes().hex()[:4000] for array in found)


CHILD = """
from empirisk.trees.binned import together
from tests.linalg.test_versions import answers
assert together.MOST_THREADS == 1
print(answers())
"""


@pytest.mark.long  # all loops are compiled again
def test_machines_have_the_same_bits_without_internals(tmp_path):
    ours = {"EMPIRISK_PLAIN": "numba,threadpoolctl", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], env=os.environ | ours, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == answers().split(), done.stderr
