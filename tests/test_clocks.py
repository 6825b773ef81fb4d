"""Real clocks: limits of time and Ctrl-C end work that would go on and on. Only a hang misses these bounds."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er

#: Run by `make test-all`.
pytestmark = pytest.mark.long

#: Seconds that a limit of one second may take on the slowest machine; without it each of these fits goes on.
SLOWEST_SECONDS = 100.0
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1500, 30)) * np.logspace(-2, 2, 30)
TWO = X[:, 0] + RANDOM.normal(size=1500) > 0
ENDLESS = {"max_iter": 10**9, "tol": 0.0}
GAUSSIAN = er.kernels.Gaussian(30.0)
MACHINES = [
    er.SVM(solver="gradient_descent", **ENDLESS),
    er.SVM(solver="dual_ascent", C=1e6, **ENDLESS),
    er.SVM(solver="sgd", **ENDLESS),
    er.SVM(features=GAUSSIAN, solver="doubly_stochastic", **ENDLESS),
    er.Perceptron(max_iter=10**9),
    er.BoostingClassifier(n_estimators=10**7),
    er.ForestClassifier(n_estimators=10**9),
    er.BaggingClassifier(n_estimators=10**9),
]
IDS = [f"{type(machine).__name__} {getattr(machine, 'solver', '')}" for machine in MACHINES]


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_max_time_ends_every_machine(machine):
    begin = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.set_params(max_time=1.0).fit(X, TWO)
    assert time.monotonic() - begin < SLOWEST_SECONDS
    assert "time" in machine.stopped_
    assert machine.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_ctrl_c_is_heard(machine):
    machine.set_params(max_time=None)
    pressed = threading.Event()

    def press():
        pressed.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, press)
    begin = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt, match="was interrupted and keeps the best point"):
            machine.fit(X, TWO)
    finally:
        timer.cancel()
    assert pressed.is_set()
    assert time.monotonic() - begin < SLOWEST_SECONDS
    assert machine.stopped_ == "interrupted"
    assert machine.predict(X[:3]).shape == (3,)


def test_learn_ends_within_its_time(tmp_path):
    begin = time.monotonic()
    command = [sys.executable, "-m", "empirisk", "learn", "digits", "--time", "6s"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SLOWEST_SECONDS)
    nothing_learned = "for every row; give more time" in done.stdout  # on a busy machine, which its exit code tells
    assert done.returncode == (3 if nothing_learned else 0), done.stderr
    assert 0 < time.monotonic() - begin < SLOWEST_SECONDS
    assert (tmp_path / "digits.model").exists()
