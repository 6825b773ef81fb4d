"""The first fit ever, in a fresh process with an empty compile cache: ``python -m benchmarks first``.

Add machines to `FIRST`: an expression of the machine, fitted to 500 rows of 10 columns and two classes (or numbers).
"""

import os
import subprocess
import sys
import tempfile

FIRST = {
    "import": "None",
    "logistic": "er.LogisticRegression()",
    "linear SVM": "er.SVM()",
    "Gaussian SVM": "er.SVM(features=er.kernels.Gaussian(2.0))",
    "softmax": "er.LogisticRegression(multiclass='joint')",
    "l1 logistic": "er.LogisticRegression(penalty='l1')",
    "lasso": "er.Lasso()",
    "least absolute": "er.LeastAbsolute()",
    "kernel ridge": "er.Ridge(features=er.kernels.Gaussian(2.0))",
    "kernel logistic": "er.LogisticRegression(features=er.kernels.Gaussian(2.0))",
    "Gaussian SVR": "er.SVR(features=er.kernels.Gaussian(2.0))",
    "one-class SVM": "er.OneClassSVM(features=er.kernels.Gaussian(2.0))",
    "Nystrom SVM": "er.SVM(features=er.maps.Nystrom(er.kernels.Gaussian(2.0), rank=50))",
    "10-NN": "er.KNNClassifier(10)",
    "exact tree": "er.TreeClassifier()",
    "regression tree": "er.TreeRegressor()",
    "forest": "er.ForestClassifier()",
    "boosting": "er.BoostingClassifier()",
    "AdaBoost": "er.AdaBoostClassifier()",
    "k-means": "er.KMeans()",
    "mini-batches": "er.KMeans(batch_size=100)",
    "kernel k-means": "er.KMeans(features=er.kernels.Gaussian(2.0))",
    "hierarchical": "er.Hierarchical()",
    "mixture": "er.GaussianMixture(3)",
    "density": "er.GaussianDensity()",
    "PCA": "er.PCA()",
    "kernel PCA": "er.PCA(2, er.kernels.Gaussian(2.0))",
    "dictionary": "er.Dictionary(20)",
    "pursuit": "er.Dictionary(20, 'ksvd', 'omp')",
    "contrastive metric": "er.ContrastiveMetric()",
    "large-margin metric": "er.LargeMarginMetric()",
}

PROGRAM = """
import time
start, began = time.perf_counter(), time.process_time()
import empirisk as er
imported = time.perf_counter()
machine = {machine}
if machine is None:
    print(f"{{imported - start:.2f}} s")
else:
    import numpy as np
    X = np.random.default_rng(0).normal(size=(500, 10))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    before, used = time.perf_counter(), time.process_time()
    machine.fit(X, y)
    fitted, spent = time.perf_counter(), time.process_time()
    for answer in ("predict", "transform"):
        if hasattr(machine, answer):
            getattr(machine, answer)(X)
    predicted = time.perf_counter()
    machine.fit(X, y)
    again = time.perf_counter()
    print(f"fit {{fitted - before:.2f}} s (processor {{spent - used:.2f}} s), predict {{predicted - fitted:.2f}} s, "
          f"fit again {{1e3 * (again - predicted):.1f}} ms")
"""


def first(name: str, machine: str) -> None:
    """Print one line for a machine."""
    with tempfile.TemporaryDirectory() as cache:
        place = os.environ | {"NUMBA_CACHE_DIR": cache}
        program = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(machine=machine)]
        found = subprocess.run(program, env=place, capture_output=True, text=True, check=False)
    print(f"{name:<20} | {found.stdout.strip() or found.stderr.strip().splitlines()[-1]}", flush=True)


def run() -> None:
    for name, machine in FIRST.items():
        first(name, machine)
