"""The same bits, however many threads BLAS and LAPACK would like to have."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import empirisk as er

GAUSSIAN = er.kernels.Gaussian(8.0)
#: Each would multiply or factor with several threads: rows, columns and classes are enough for that.
MACHINES = {
    "Newton": lambda: er.LogisticRegression(),
    "joint Newton": lambda: er.LogisticRegression(multiclass="joint"),
    "kernel Newton": lambda: er.LogisticRegression(features=GAUSSIAN),
    "joint behind a kernel": lambda: er.LogisticRegression(multiclass="joint", features=GAUSSIAN, tol=1e-3),
    "linear SVM": lambda: er.SVM(multiclass="one_vs_rest"),
    "kernel SVM": lambda: er.SVM(features=GAUSSIAN),
    "joint SVM": lambda: er.SVM(multiclass="joint", tol=1e-3),
    "l1": lambda: er.LogisticRegression(penalty="l1"),
    "Nystrom": lambda: er.SVM(features=er.maps.Nystrom(GAUSSIAN, rank=200)),
    "random waves": lambda: er.Ridge(features=er.maps.RandomFourier(GAUSSIAN, rank=300)),
    "ridge": lambda: er.Ridge(C="loo"),
    "wide ridge": lambda: er.Ridge(features=er.maps.Polynomial(2)),
    "minimum norm": lambda: er.LeastSquares(features=er.maps.Polynomial(2)),
    "kernel ridge": lambda: er.Ridge(features=GAUSSIAN),
    "kernel ridge, C by leave-one-out": lambda: er.Ridge(C="loo", features=GAUSSIAN),
    "absolute": lambda: er.LeastAbsolute(),
    "lasso": lambda: er.Lasso(C=0.1),
    "one class": lambda: er.OneClassSVM(features=GAUSSIAN),
    "centroids": lambda: er.NearestCentroid(),
    "neighbours": lambda: er.KNNClassifier(5),
    "forest": lambda: er.ForestClassifier(4),
    "boosting": lambda: er.BoostingClassifier(n_estimators=3),
    "k-means": lambda: er.KMeans(8, n_init=1),
    "kernel k-means": lambda: er.KMeans(4, features=GAUSSIAN, n_init=1),
    "mixture": lambda: er.GaussianMixture(3),
    "density": lambda: er.GaussianDensity(),
    "PCA": lambda: er.PCA(20),
    "wide PCA": lambda: er.PCA(5, features=er.maps.Polynomial(2)),
    "kernel PCA": lambda: er.PCA(5, features=GAUSSIAN),
    "dictionary": lambda: er.Dictionary(30, max_iter=3),
    "pursuit": lambda: er.Dictionary(20, "ksvd", "omp", max_iter=2),
    "contrastive metric": lambda: er.ContrastiveMetric(max_iter=5),
    "large-margin metric": lambda: er.LargeMarginMetric(max_iter=5),
}
ANSWERS = ("decision_function", "predict", "predict_proba", "transform", "score_samples")


def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(700, 45))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=len(X)), [-1.0, 0.0, 1.0])


def bits(make) -> str:
    """A short name for all numbers that a machine learns and answers."""
    X, y = table()
    machine = make()
    if "random_state" in machine.get_params():
        machine.set_params(random_state=0)
    machine.fit(X, y)
    found = [value for name, value in sorted(vars(machine).items()) if name.endswith("_") and name != "history_"]
    found += [getattr(machine, answer)(X) for answer in ANSWERS if hasattr(machine, answer)]
    if hasattr(machine, "inverse_transform"):
        found.append(machine.inverse_transform(machine.transform(X[:300])))
    arrays = [value for value in found if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"]
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MACHINES)
def test_threads_of_blas_change_no_bit(name):
    with threadpool_limits(1, user_api="blas"):
        alone = bits(MACHINES[name])
    with threadpool_limits(3, user_api="blas"):
        assert bits(MACHINES[name]) == alone


def test_blocks_of_kernels_have_the_same_bits():
    X, _ = table()
    for kernel in (GAUSSIAN, er.kernels.Linear(), er.kernels.Polynomial(2), GAUSSIAN + er.kernels.Linear()):
        with threadpool_limits(1, user_api="blas"):
            alone = kernel(X, X[:650])
        with threadpool_limits(3, user_api="blas"):
            np.testing.assert_array_equal(kernel(X, X[:650]), alone)


def test_leave_one_out_in_closed_form_has_the_same_bits():
    X, y = table()
    found = set()
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="blas"):
            result = er.evaluate(er.Ridge(features=GAUSSIAN), X, y.astype(float), cv="loo")
            found.add(result.score.value)
    assert len(found) == 1


CHILD = """
from tests.contract.test_bits import MACHINES, bits
from empirisk import config
with config(threads={threads}):
    print([bits(MACHINES[name]) for name in ("Newton", "kernel ridge", "kernel Newton", "PCA")])
"""


def test_the_environment_changes_no_bit():
    found = set()
    for threads, told in ((1, "1"), (2, "4"), (3, "2")):
        environment = os.environ | {"OMP_NUM_THREADS": told, "OPENBLAS_NUM_THREADS": told}
        program = [sys.executable, "-c", CHILD.format(threads=threads)]
        found.add(subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1
