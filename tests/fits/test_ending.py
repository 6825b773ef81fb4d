"""Fits that are stopped: soon, with the best point so far, and without a trace in the next fit."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from numba.core import event
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.fits import fit
from empirisk.fits.choice import along as choice_along
from empirisk.fits.choice import choice_of
from empirisk.stop import Ending, interruptible, requested


def press():
    os.kill(os.getpid(), signal.SIGINT)


class PressingAt(event.Listener):
    """Presses Ctrl-C when the compiler begins with its pass of that number."""

    def __init__(self, number):
        self.left = number

    def on_start(self, event):
        self.left -= 1
        if self.left == 0:
            press()
            while not requested():  # the main thread hears it when it has its turn
                time.sleep(0.001)

    def on_end(self, event):
        pass


def _chain():
    """A compiled function that calls another, both new."""
    add = njit(lambda x: x + 1)
    return njit(lambda x: add(x) * 2)


@pytest.mark.parametrize("number", [1, 20, 40])
def test_a_press_while_a_loop_is_compiled_is_heard_at_its_next_pass(number):
    function, counting = _chain(), PressingAt(0)
    with event.install_listener("numba:run_pass", counting):
        assert _chain()(3) == 8
    pressing = PressingAt(number)
    with event.install_listener("numba:run_pass", pressing), pytest.raises(KeyboardInterrupt), interruptible():
        function(3)
    assert pressing.left in (0, -1)  # and not all of them:
    assert -counting.left > number + 1
    assert function(3) == 8  # what was given up is compiled again


def test_a_press_while_a_machine_compiles_leaves_it_as_it_was(monkeypatch):
    X = np.arange(40.0)[:, None]
    machine = er.ForestRegressor(3, random_state=0).fit(X, X[:, 0])
    before = machine.predict(X)

    def compile_first(*_):
        return _chain()(3)

    monkeypatch.setattr("empirisk.trees.forest.SampleGrower.grow", compile_first)  # in threads of the pool
    with event.install_listener("numba:run_pass", PressingAt(5)), pytest.raises(KeyboardInterrupt):
        machine.fit(X, -X[:, 0])
    np.testing.assert_array_equal(machine.predict(X), before)


STORM = """
import os, signal, sys, threading, time, warnings
import numpy as np
import empirisk as er

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(200, 3))
y = X[:, 0] > 0
machine = er.SVM(features=er.kernels.Gaussian())
machine.fit(X, y)
begin = time.perf_counter()
for _ in range(5):
    machine.fit(X, y)
length = (time.perf_counter() - begin) / 5
for k in range(60):
    share = 0.7 + 0.4 * (k % 30) / 30  # around the end
    timer = threading.Timer(share * length, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        timer.start()
        machine.fit(X, y)
        timer.join()
        time.sleep(0)
    except KeyboardInterrupt:  # in the fit, before it had begun to listen, or when it was over
        timer.join()
    machine.fit(X, y)  # nobody presses now
    assert machine.certificate_.converged, (k, machine.certificate_)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_presses_around_the_end_of_a_fit_do_not_reach_the_next():
    out = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


STOPPED = """
import os, signal, threading, time, warnings
import numpy as np
import empirisk as er

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
everything = random.normal(size=(20_000, 20))
kernel = er.kernels.Gaussian(4.0)
for machine, rows in (
    (er.Ridge(features=kernel), 6000),
    (er.Ridge(C="loo", features=kernel), 4000),
    (er.SVM(C=100.0, features=kernel, tol=1e-9), 20_000),
    (er.LogisticRegression(C=100.0, features=kernel, tol=1e-9), 6000),
):
    X = everything[:rows]
    y = X[:, 0] * X[:, 1] + random.normal(size=rows)
    y = y if isinstance(machine, er.Regressor) else y > 0
    machine.fit(X[:300], y[:300])  # compiled by now
    ended = threading.Event()
    threading.Timer(0.4, lambda: ended.is_set() or os.kill(os.getpid(), signal.SIGINT)).start()
    before = machine.coef_ if hasattr(machine, "coef_") else machine.dual_coef_
    try:
        machine.fit(X, y)
        ended.set()
        raise AssertionError(machine)
    except KeyboardInterrupt as stopped:
        if machine.C == "loo":  # without a C there is no fit to keep
            assert "as it was" in str(stopped)
            assert machine.dual_coef_ is before
        else:
            assert stopped.kept is machine
            assert machine.certificate_.status == machine.stopped_ == "interrupted", (machine, machine.certificate_)
        assert machine.predict(X[:5]).shape == (5,)
os._exit(0)  # what was abandoned is not awaited
"""


def test_kernel_machines_are_interrupted_in_the_midst_of_their_work():
    out = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


@pytest.mark.parametrize("kind", [er.Ridge, er.SVM])
def test_a_time_limit_ends_kernel_machines_in_the_midst_of_their_work(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 5))
    y = np.sign(X[:, 0] * X[:, 1] + random.normal(size=5000))
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = kind(C=1e3, features=er.kernels.Gaussian(), max_time=0.05, tol=1e-12).fit(X, y)
    assert machine.certificate_.status == "max_time"
    assert np.isfinite(machine.predict(X[:5])).all()


def test_leave_one_out_that_has_no_time_says_so():
    X = np.random.default_rng(0).normal(size=(1500, 5))
    with pytest.raises(EmpiriskError, match=r"max_time=1e-06 s were over before C='loo'"):
        er.Ridge(C="loo", features=er.kernels.Gaussian(), max_time=1e-6).fit(X, X[:, 0])


def test_a_choice_of_C_that_runs_out_of_time_goes_by_what_it_has_tried(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.sign(X[:, 0])
    calls = []

    def along(problems, Cs, run, tol):
        # The clock ends the second fold after two values.
        for fits in choice_along(problems, Cs, run, tol):
            calls.append(1)
            over = len(calls) > len(Cs) + 2
            yield [
                replace(fit, certificate=replace(fit.certificate, status=Ending.MAX_TIME)) if over else fit
                for fit in fits
            ]

    monkeypatch.setattr("empirisk.fits.choice.along", along)
    with pytest.warns(
        ConvergenceWarning, match=r"max_time\) and chosen from 4 of 4 values by 1 of 5 folds; raise max_time"
    ):
        machine = er.LogisticRegression(C="cv", Cs=4, max_time=60).fit(X, y)
    assert machine.choice_.losses.shape == (1, 4)
    assert machine.certificate_.converged
    assert machine.stopped_ == Ending.MAX_TIME  # though the last fit is whole
    assert len(calls) == 4 + 3


def test_a_choice_of_C_with_no_time_at_all_takes_the_first_value():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(ConvergenceWarning) as told:
        machine = er.SVM(C="cv", Cs=4, max_time=1e-6).fit(X, np.sign(X[:, 0]))
    assert "from 1 of 4 values by 1 of 5 folds" in str(told[0].message)
    assert machine.choice_.values[0] == machine.C_
    assert machine.stopped_ == Ending.MAX_TIME


def test_the_proofs_of_all_problems_that_were_stopped_share_their_time(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    ends = []

    def graded(problem, point, watch):
        ends.append(watch.proofs_end())
        return real(problem, point, watch)

    real = fit._graded
    monkeypatch.setattr(fit, "_graded", graded)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        er.SVM(max_time=1e-6, multiclass="one_vs_one").fit(X, np.arange(60) % 6)
    assert len(ends) == 15
    assert len(set(ends)) == 1


@pytest.mark.parametrize("lost", ["no digits", "no number"])
def test_a_solver_that_loses_itself_leaves_finite_weights_and_says_so(monkeypatch, lost):
    def solve(self, problem, watch, start=None):
        if lost == "no digits":
            raise np.linalg.LinAlgError("not positive definite")
        return replace(problem.origin(), b=np.nan)

    monkeypatch.setattr(er.solvers.Newton, "solve", solve)
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(ConvergenceWarning, match="stalled"):
        machine = er.LogisticRegression(solver="newton").fit(X, X[:, 0] > 0)
    assert np.isfinite(machine.coef_).all()
    assert np.isfinite(machine.intercept_).all()
    assert not machine.certificate_.converged


def test_corners_behind_a_kernel_of_zero_rows():
    machine = er.Regressor("squared_absolute", features=er.kernels.Linear()).fit(np.zeros((5, 3)), [1, 2, 3, 4, 5])
    assert machine.predict(np.zeros((1, 3))) == pytest.approx(3.0, abs=1e-6)


def test_a_problem_that_resists_every_solver_speaks_for_those_like_it(monkeypatch):
    random, solve, asked = np.random.default_rng(0), fit._solve, []
    monkeypatch.setattr(fit, "_solve", lambda solver, *rest: asked.append(solver.name()) or solve(solver, *rest))
    (problem,) = er.Lasso().problems(random.normal(size=(8, 2)), random.normal(size=8))
    limits = fit.Limits(tol=0.0, max_iter=None, max_time=None)
    fit.SolverRun("auto", limits)([problem])
    table, asked[:] = asked.copy(), []
    assert len(table) > 1
    fit.SolverRun("auto", limits, resisted=[])([problem] * 3)
    assert asked == [*table, table[0], table[0]]


def test_solvers_that_give_up_again_and_again_are_not_asked_for_each_problem(monkeypatch):
    solve, asked = fit._solve, []

    def last_alone(solver, problem, watch, start):
        asked.append(solver.name())
        if solver.name() == "proximal":
            return solve(solver, problem, watch, start)
        watch.status = Ending.STALLED
        return problem.origin()

    monkeypatch.setattr(fit, "_solve", last_alone)
    random = np.random.default_rng(0)
    (problem,) = er.Lasso().problems(random.normal(size=(8, 2)), random.normal(size=8))
    fit.SolverRun("auto", fit.Limits(tol=1e-4, max_iter=None, max_time=None), resisted=[])([problem] * 20)
    table = asked[: asked.index("proximal") + 1]
    assert asked == [*table, *table[: fit.MAX_FALLBACK_FAILURES], *[table[0]] * 18]


def test_hopeless_held_out_losses_have_an_error_too():
    losses = np.array([[1.0, 1e200, np.inf], [2.0, 1e300, np.nan]])
    chosen = choice_of(np.arange(1.0, 4.0), losses, np.ones(2), "1se")
    assert chosen.chosen == 1.0
    assert np.all(np.isfinite(chosen.error))
