"""The first fit ever, in a fresh process with an empty compile cache: ``python -m benchmarks first``.

Seconds are those of the processor (of all threads, user and system), so that other work on the machine does not count.
Add machines to `FIRST`: an expression of the machine, fitted to 500 rows of 10 columns and two classes (or numbers).
"""

import os
import subprocess
import sys
import tempfile

#: Twelve common machines, whose first fits are added up.
TWELVE = {
    "logistic": "er.LogisticRegression()",
    "linear SVM": "er.SVM()",
    "Gaussian SVM": "er.SVM(features=er.kernels.Gaussian(2.0))",
    "ridge": "er.Ridge()",
    "lasso": "er.Lasso()",
    "5-NN": "er.KNNClassifier(5)",
    "exact tree": "er.TreeClassifier()",
    "forest": "er.ForestClassifier()",
    "boosting": "er.BoostingClassifier()",
    "k-means": "er.KMeans()",
    "PCA": "er.PCA()",
    "mixture": "er.GaussianMixture(3)",
}
FIRST = {
    "softmax": "er.LogisticRegression(multiclass='joint')",
    "l1 logistic": "er.LogisticRegression(penalty='l1')",
    "least absolute": "er.LeastAbsolute()",
    "kernel ridge": "er.Ridge(features=er.kernels.Gaussian(2.0))",
    "kernel logistic": "er.LogisticRegression(features=er.kernels.Gaussian(2.0))",
    "Gaussian SVR": "er.SVR(features=er.kernels.Gaussian(2.0))",
    "one-class SVM": "er.OneClassSVM(features=er.kernels.Gaussian(2.0))",
    "Nystrom SVM": "er.SVM(features=er.maps.Nystrom(er.kernels.Gaussian(2.0), rank=50))",
    "regression tree": "er.TreeRegressor()",
    "AdaBoost": "er.AdaBoostClassifier()",
    "mini-batches": "er.KMeans(batch_size=100)",
    "kernel k-means": "er.KMeans(features=er.kernels.Gaussian(2.0))",
    "hierarchical": "er.Hierarchical()",
    "density": "er.GaussianDensity()",
    "kernel PCA": "er.PCA(2, er.kernels.Gaussian(2.0))",
    "dictionary": "er.Dictionary(20)",
    "pursuit": "er.Dictionary(20, 'ksvd', 'omp')",
    "contrastive metric": "er.ContrastiveMetric()",
    "large-margin metric": "er.LargeMarginMetric()",
}

PROGRAM = """
import time
import empirisk as er
import numpy as np
machine = {machine}
X = np.random.default_rng(0).normal(size=(500, 10))
y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
imported = time.process_time()
machine.fit(X, y)
fitted = time.process_time()
for answer in ("predict", "transform"):
    if hasattr(machine, answer):
        getattr(machine, answer)(X)
predicted = time.process_time()
machine.fit(X, y)
print(imported, fitted - imported, predicted - fitted, time.process_time() - predicted)
"""


def first(name: str, machine: str) -> float:
    """Print one line for a machine; returns the seconds of its first fit and first predictions."""
    with tempfile.TemporaryDirectory() as cache:
        place = os.environ | {"NUMBA_CACHE_DIR": cache}
        program = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(machine=machine)]
        found = subprocess.run(program, env=place, capture_output=True, text=True, check=True)
    imported, fit, predict, again = map(float, found.stdout.split())
    print(
        f"{name:<20} | fit {fit:5.2f} s, predict {predict:4.2f} s, fit again {1e3 * again:6.1f} ms"
        f" (imports {imported:.2f} s)",
        flush=True,
    )
    return fit + predict


def run() -> None:
    total = sum(first(name, machine) for name, machine in TWELVE.items())
    print(f"{'sum of the twelve':<20} | {total:.1f} s; at most 15")
    for name, machine in FIRST.items():
        first(name, machine)
