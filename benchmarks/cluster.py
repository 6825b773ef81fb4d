"""A cluster of two worker processes: seconds, bytes that reach the client, and fits in which a worker is killed.

``python -m benchmarks cluster``; ``EMPIRISK_SIZE=0.05`` is a run of a minute.
"""

import gc
import logging
import os
import signal
import threading
import time
import warnings

import numpy as np

import empirisk as er

#: Share of the full sizes.
SIZE = float(os.environ.get("EMPIRISK_SIZE", "1"))
#: Rows, columns and partitions of the table.
ROWS, COLUMNS, PARTS = int(4_000_000 * SIZE), 20, 16
MACHINES = {
    "ridge": (er.Ridge(), "number"),
    "logistic": (er.LogisticRegression(), "label"),
    "hinge": (er.SVM(C=1e-3, tol=1e-4), "label"),
    "k-means, 10": (er.KMeans(10, random_state=0, max_iter=10), None),
    "boosting, 5": (er.BoostingClassifier(n_estimators=5), "label"),
}


def table(rows: int):
    """Rows and targets that are made on the workers."""
    import dask.array as da

    state = da.random.RandomState(0)
    X = state.normal(size=(rows, COLUMNS), chunks=(-(-rows // PARTS), COLUMNS))
    number = X @ np.random.default_rng(0).normal(size=COLUMNS) + 2 * state.normal(size=rows, chunks=-(-rows // PARTS))
    return X, {"number": number, "label": (number > 0).astype(int), None: None}


def fitted(machine, X, y) -> tuple[float, int]:
    """Seconds of a fit, and the bytes that came to the client."""
    from empirisk.scale.cluster import DaskCluster

    before, begin = DaskCluster.received_in_all, time.perf_counter()
    machine.fit(X, y)
    return time.perf_counter() - begin, DaskCluster.received_in_all - before


def learned(machine) -> np.ndarray:
    """What a fit has found."""
    found = vars(machine)
    return found["packed_"]["slot"] if "packed_" in found else found.get("coef_", found.get("cluster_centers_"))


def run() -> None:
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(silence_logs=logging.CRITICAL, **options) as cluster, Client(cluster) as client:
        print(f"  {ROWS} x {COLUMNS} rows in {PARTS} partitions on two worker processes")
        for name, (machine, target) in MACHINES.items():
            half = table(ROWS // 2)
            _, fewer = fitted(machine, half[0], half[1][target])
            X, targets = table(ROWS)
            seconds, received = fitted(machine, X, targets[target])
            before = learned(machine).copy()
            victim = next(iter(client.run(os.getpid).values()))
            killer = threading.Timer(seconds / 3, os.kill, (victim, signal.SIGKILL))
            killer.start()
            again, _ = fitted(machine, X, targets[target])
            killer.join()
            same = np.array_equal(before, learned(machine))
            print(
                f"  {name:<12} {seconds:7.2f} s   {received / 1e6:7.3f} MB to the client, {fewer / 1e6:.3f} MB of half "
                f"the rows   with a worker killed {again:7.2f} s, {'the same bits' if same else 'OTHER BITS'}"
            )
        del X, targets, half
        gc.collect()
        time.sleep(2.0)
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        print(f"  {left} tasks left on the scheduler")
