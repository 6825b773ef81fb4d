"""Seconds from Ctrl-C to the end of a fit, at several moments: ``python -m benchmarks interrupts``.

Each fit runs in a process of its own: warm, after a fit to few rows; or cold, from an empty compile cache. Beside the
seconds stand those of the processor, which say more where others use it.
"""

import os
import subprocess
import sys
import tempfile

GAUSSIAN = "er.kernels.Gaussian(4.0)"
#: The machine and its rows; each fit takes longer than the last moment.
WARM = {
    "Gaussian SVM": (f"er.SVM(C=100.0, features={GAUSSIAN}, tol=1e-9)", 20_000),
    "Gaussian SVR": (f"er.SVR(C=100.0, features={GAUSSIAN}, tol=1e-9)", 10_000),
    "one-class SVM": (f"er.OneClassSVM(features={GAUSSIAN}, tol=1e-9)", 20_000),
    "kernel ridge": (f"er.Ridge(features={GAUSSIAN})", 8_000),
    "leave-one-out": (f"er.Ridge(C='loo', features={GAUSSIAN})", 8_000),
    "kernel k-means": (f"er.KMeans(8, {GAUSSIAN})", 6_000),
    "boosting": ("er.BoostingClassifier(n_estimators=10_000)", 200_000),
    "forest": ("er.ForestClassifier(10_000)", 100_000),
    "exact tree": ("er.TreeClassifier()", 400_000),
}
COLD = ("Gaussian SVR", "one-class SVM", "leave-one-out", "kernel k-means", "boosting", "forest", "exact tree")
MOMENTS = {"warm": (0.3, 0.9, 1.5), "cold": (0.5, 1.2, 2.0)}

PROGRAM = """
import os, signal, sys, threading, time, warnings
import numpy as np
from sklearn.base import clone
import empirisk as er
warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X = random.normal(size=({rows}, 20))
y = (X[:, 0] * X[:, 1] + random.normal(size={rows}) > 0).astype(int)
machine = {machine}
if {warm}:
    few = {{"n_estimators": 5}} if hasattr(machine, "n_estimators") else {{}}
    clone(machine).set_params(**few).fit(X[:500], y[:500])
pressed = []
def press():
    pressed.extend([time.perf_counter(), time.process_time()])
    os.kill(os.getpid(), signal.SIGINT)
timer = threading.Timer({moment}, press)
timer.start()
try:
    machine.fit(X, y)
except KeyboardInterrupt:
    pass
ended = time.perf_counter(), time.process_time()
timer.cancel()
print(f"{{ended[0] - pressed[0]:.2f}} ({{ended[1] - pressed[1]:.2f}})" if pressed else "was ready", flush=True)
os._exit(0)  # what was abandoned is not awaited
"""


def waits(machine: str, rows: int, state: str) -> str:
    """How long Ctrl-C took at each moment."""
    found = []
    for moment in MOMENTS[state]:
        with tempfile.TemporaryDirectory() as cache:
            place = os.environ | ({"NUMBA_CACHE_DIR": cache} if state == "cold" else {})
            program = PROGRAM.format(machine=machine, rows=rows, moment=moment, warm=state == "warm")
            ended = subprocess.run(
                [sys.executable, "-c", program], env=place, capture_output=True, text=True, check=False
            )
        found.append(ended.stdout.strip() or ended.stderr.strip().splitlines()[-1])
    return ", ".join(found)


def run() -> None:
    for name, (machine, rows) in WARM.items():
        print(f"{name:<16} | warm | {waits(machine, rows, 'warm')}", flush=True)
    for name in COLD:
        print(f"{name:<16} | cold | {waits(WARM[name][0], 500, 'cold')}", flush=True)
