"""Fits end: limits, interrupts, early stopping, progress."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.certificate import Proof
from empirisk.errors import warn_unfinished
from empirisk.linalg.threads import call_with_deadline
from empirisk.maps.implicit import GramDesign
from empirisk.stop import check_stop, listening_to
from tests.callbacks import Watching


def hard_problem(n=4000, d=300):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * np.logspace(-2, 2, d)
    return X, (X[:, 0] + random.normal(size=n) > 0).astype(int)


def test_iteration_limit_warns_with_the_gap_and_a_remedy():
    X, y = hard_problem(500, 20)
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter\) after 2 .*gap of .*raise max_iter") as told:
        machine = er.SVM(max_iter=2).fit(X, y)
    assert told[0].filename == __file__
    assert not machine.certificate_.converged
    assert machine.certificate_.status == "max_iter"
    assert machine.predict(X).shape == y.shape


@pytest.mark.parametrize(
    "ask",
    [
        lambda X, y: GridSearchCV(er.SVM(max_iter=2), {"C": [1.0, 2.0]}, cv=2).fit(X, y),
        lambda X, y: make_pipeline(StandardScaler(), er.SVM(max_iter=2)).fit(X, y),
        lambda X, y: er.KMeans(3, max_iter=1, random_state=0).fit_predict(X),
        lambda X, y: er.Dictionary(3, max_iter=1, random_state=0).fit_transform(X),
        lambda X, y: er.ContrastiveMetric(max_iter=1).fit(X, y),
        lambda X, y: er.evaluate(er.SVM(max_iter=2), X, y),
    ],
    ids=["search", "pipeline", "fit_predict", "fit_transform", "metric", "evaluate"],
)
def test_a_warning_points_at_the_line_that_asked_whoever_stands_between(ask):
    with pytest.warns(ConvergenceWarning) as told:
        ask(*hard_problem(200, 10))
    assert {one.filename for one in told} == {__file__}


def test_time_limit():
    X, y = hard_problem()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = er.SVM(solver="gradient_descent", max_iter=10**9, max_time=0.3).fit(X, y)
    assert machine.certificate_.status == "max_time"
    assert machine.predict(X).shape == y.shape


INTERRUPTED = """
import os, signal, sys, threading, warnings
import numpy as np
import empirisk as er

random = np.random.default_rng(0)
X = random.normal(size=(4000, 300)) * np.logspace(-2, 2, 300)
y = X[:, 0] + random.normal(size=4000) > 0
machine = er.SVM(solver=sys.argv[1], max_iter=10**9, tol=0.0)
warnings.simplefilter("ignore")
er.SVM(solver=sys.argv[1], max_iter=1).fit(X, y)  # compiled by now
threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    machine.fit(X, y)
    raise AssertionError("it goes on for ever")
except KeyboardInterrupt as stopped:
    assert str(stopped).startswith("SVM was interrupted and keeps the best point so far"), stopped
    assert stopped.kept is machine
assert machine.certificate_.status == "interrupted", machine.certificate_
assert machine.predict(X).shape == y.shape
assert np.isfinite(machine.coef_).all()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.mark.parametrize("solver", ["gradient_descent", "proximal", "dual_ascent", "sgd"])
def test_interrupt_leaves_a_usable_model(solver):
    out = subprocess.run([sys.executable, "-c", INTERRUPTED, solver], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


@pytest.mark.row("E8")
def test_early_stopping_on_a_validation_part():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 50))
    y = (X[:, 0] + random.normal(size=300) > 0).astype(int)
    solver = er.solvers.EarlyStopping(er.solvers.SGD(), validation_fraction=0.3, n_iter_no_change=3)
    machine = er.LogisticRegression(C=100.0, solver=solver, max_iter=500).fit(X, y)
    assert "early" in machine.certificate_.status
    assert machine.n_iter_ < 500


@pytest.mark.row("E8")
@pytest.mark.parametrize("machine", [er.LogisticRegression(), er.SVM(), er.Lasso(), er.Ridge()], ids=repr)
def test_history_of_the_objective(machine):
    X, y = hard_problem(300, 10)
    machine.fit(X, y if not isinstance(machine, er.Regressor) else y + X[:, 0])
    objective = machine.history_["objective"]
    assert len(objective) >= 1
    assert np.isfinite(objective).all()
    assert objective[-1] <= objective[0] * (1 + 1e-9)
    assert len(machine.history_["seconds"]) == len(objective)
    assert np.all(np.diff(machine.history_["seconds"]) >= 0)


def test_progress_bar_and_monitor():
    X, y = hard_problem(300, 5)
    monitor = ScoringMonitor(scoring="accuracy")
    machine = er.LogisticRegression().set_callbacks(monitor, ProgressBar()).fit(X, y)
    assert machine.score(X, y) > 0.5
    several = er.SVM().set_callbacks(ProgressBar()).fit(X, np.arange(300) % 3)
    assert several.coef_.shape == (3, 5)


def test_callbacks_see_every_iteration_and_may_stop_the_fit():
    class Stopper(Watching):
        """Counts iterations and asks to stop after two."""

        def __init__(self):
            self.ended, self.scores = 0, []

        def on_fit_task_end(self, estimator, context, *, fitted_estimator, X, y):
            if context.task_name != "iteration":
                return False
            self.ended += 1
            self.scores.append(fitted_estimator.score(X, y))
            return self.ended == 2

    X, y = hard_problem(300, 5)
    stopper = Stopper()
    machine = er.SVM().set_callbacks(stopper).fit(X, y)
    assert stopper.ended == 2
    assert all(0 <= score <= 1 for score in stopper.scores)
    assert machine.certificate_.status == machine.stopped_ == "callback"


def test_same_bits_for_any_number_of_threads():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 30))
    y = X[:, 0] + random.normal(size=20_000)
    for make, target in ((er.LogisticRegression, y > 0), (er.SVM, y > 0), (er.Ridge, y), (er.LeastAbsolute, y)):
        found = []
        for threads in (1, 2, 3):
            with er.config(threads=threads):
                found.append(make().fit(X, target).coef_)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


def test_float32_data_are_kept_and_agree():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 5))
    y = X[:, 0] + random.normal(size=500)
    for make, target in ((er.LogisticRegression, y > 0), (er.SVM, y > 0), (er.Ridge, y), (er.Lasso, y)):
        single, double = make().fit(X.astype(np.float32), target), make().fit(X, target)
        assert single.certificate_.converged
        np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-3, atol=1e-4)


def test_a_choice_looks_at_the_clock_where_every_fit_ends_at_once():
    machine = er.Classifier("perceptron", C="cv", max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="chosen from 1 of"):
        machine.fit(np.zeros((10, 2)), np.arange(10) % 2)
    assert machine.choice_.cut


def test_the_time_limit_is_for_the_choice_of_C_and_the_fit_together():
    X, y = hard_problem()
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning) as told:
        er.SVM(C="cv", solver="gradient_descent", max_iter=10**9, max_time=0.3, Cs=10).fit(X, y)
    assert time.perf_counter() - begin < 0.5 * 50 * 0.3
    assert "of 10 values by 1 of 5 folds" in str(told[0].message)
    assert told[0].filename == __file__


def test_an_interrupted_choice_of_C_keeps_the_best_of_what_was_tried(monkeypatch):
    X, y = hard_problem(500, 20)
    proofs = []

    def pressed(*arguments, **options):
        if len(proofs) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        proofs.append(1)
        return Proof(*arguments, **options)

    monkeypatch.setattr("empirisk.solvers.base.Proof", pressed)
    machine = er.LogisticRegression(C="cv")
    with pytest.raises(KeyboardInterrupt, match="LogisticRegression was interrupted and keeps the best point"):
        machine.fit(X, y)
    assert len(proofs) < 20  # of hundreds
    assert machine.stopped_ == "interrupted"
    assert machine.choice_.cut
    assert machine.choice_.chosen == machine.C_
    assert machine.certificate_.converged  # the last fit had its half second


def test_a_warning_of_a_thread_that_helps_points_at_the_line_that_asked():
    with pytest.warns(ConvergenceWarning) as told:
        call_with_deadline(lambda: time.perf_counter() + 60, partial(warn_unfinished, "it was cut.", "ER002"))
    assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("machine", [er.SVM(), er.SVR(), er.OneClassSVM(), er.LogisticRegression()], ids=repr)
def test_ctrl_c_before_the_first_point_makes_no_matrix_for_a_proof(machine, monkeypatch):
    monkeypatch.setattr(GramDesign, "matrix", property(lambda self: check_stop()))
    X, y = hard_problem(200, 10)
    machine.set_params(features="gaussian")
    keep = er.config(interrupt="keep")
    with keep, listening_to(lambda: True), pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.fit(X, y)
    assert machine.certificate_.status == "interrupted"
    assert machine.certificate_.gap == np.inf
    assert np.isfinite(machine.predict(X)).all()
