"""More threads than cores: 16 threads on two cores beside 2, and four processes side by side beside four fits in turn.

``python -m benchmarks crowded``; each machine runs in a fresh process that is kept to two cores. Ratios of about 1 are
good, above 1.1 threads get in each other's way.
"""

import os
import subprocess
import sys

MACHINES = {
    "logistic 400_000x60": ("er.LogisticRegression()", 400_000, 60),
    "hinge 400_000x60": ("er.SVM(tol=1e-3)", 400_000, 60),
    "Gaussian SVM 8_000x30": ("er.SVM(features=er.kernels.Gaussian.from_gamma(1 / 30), tol=1e-3)", 8_000, 30),
    "kernel ridge 3_000x20": ("er.Ridge(features=er.kernels.Gaussian.from_gamma(1 / 20))", 3_000, 20),
    "10-NN 30_000x30": ("Neighbours()", 30_000, 30),
    "forest 20_000x30": ("er.ForestClassifier(16, random_state=0)", 20_000, 30),
    "boosting 50_000x30": ("er.BoostingClassifier(n_estimators=30)", 50_000, 30),
}

PROGRAM = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import time
from multiprocessing import get_context
import numpy as np
import empirisk as er

class Neighbours:
    def fit(self, X, y):
        return er.KNNClassifier(10).fit(X, y).predict(X[:3000])

def data():
    random = np.random.default_rng(0)
    X = random.normal(size=({rows}, {columns}))
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + random.normal(size={rows}) > 0.5).astype(int)

def seconds(threads, X, y):
    with er.config(threads=threads):
        start = time.perf_counter()
        {machine}.fit(X, y)
        return time.perf_counter() - start

def work(table, ready, done):
    seconds(2, *table)
    ready.wait()
    seconds(2, *table)
    done.wait()

def side_by_side(table):
    fork = get_context("fork")
    ready, done = fork.Barrier(5), fork.Barrier(5)
    processes = [fork.Process(target=work, args=(table, ready, done)) for _ in range(4)]
    for process in processes:
        process.start()
    ready.wait()
    begin = time.perf_counter()
    done.wait()
    taken = time.perf_counter() - begin
    for process in processes:
        process.join()
    return taken

table = data()
seconds(1, *(part[:500] for part in table))  # all that is imported and compiled
together = min(side_by_side(table) for _ in range(2))
seconds(2, *table)
few, many = zip(*((seconds(2, *table), seconds(16, *table)) for _ in range(5)))
few, many = min(few), min(many)
print(f"2 threads {{few:.3g}}s, 16 threads {{many:.3g}}s: {{many / few:.2f}} | four processes {{together:.3g}}s: "
      f"{{together / (4 * few):.2f}} of four fits in turn")
"""


def run() -> None:
    for name, (machine, rows, columns) in MACHINES.items():
        program = [sys.executable, "-c", PROGRAM.format(machine=machine, rows=rows, columns=columns)]
        found = subprocess.run(program, env=os.environ.copy(), capture_output=True, text=True, check=False)
        print(f"{name:<24} | {found.stdout.strip() or found.stderr.strip().splitlines()[-1]}", flush=True)
