"""The course of a fit: callbacks follow and stop it, Ctrl-C leaves the best point so far."""

import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from tests.callbacks import Watching

MACHINES = [
    pytest.param(er.Dictionary(4, coding="omp", nonzeros=2, random_state=0, tol=0), marks=pytest.mark.row("U9")),
    pytest.param(er.LargeMarginMetric(tol=0), marks=pytest.mark.row("N3")),
    pytest.param(er.ContrastiveMetric(tol=0), marks=pytest.mark.row("N2")),
]


class Recorder(Watching):
    """Calls a function after every round, with the number of rounds and what the machine gives by then."""

    def __init__(self, act):
        self.act, self.seen = act, []

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        if context.task_name != "iteration":
            return False
        self.seen.append(fitted_estimator.components_)
        return self.act(len(self.seen))


def interrupt(count):
    if count == 3:
        signal.raise_signal(signal.SIGINT)
    return False


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 6)), rng.integers(0, 2, 80)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_callback_sees_every_round_and_may_stop_the_fit(machine, data):
    recorder = Recorder(lambda count: count >= 3)
    fitted = clone(machine).set_callbacks(recorder).fit(*data)
    assert (fitted.stopped_, fitted.n_iter_, len(recorder.seen)) == ("callback", 3, 3)
    np.testing.assert_array_equal(recorder.seen[-1], fitted.components_)
    assert len(fitted.history_["objective"]) == 4


@pytest.mark.parametrize("machine", MACHINES)
def test_ctrl_c_leaves_the_best_point_so_far(machine, data):
    recorder = Recorder(interrupt)
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
        fitted = clone(machine).set_callbacks(recorder).fit(*data)
    assert fitted.stopped_ == "interrupted"
    np.testing.assert_array_equal(recorder.seen[2], fitted.components_)
    assert np.isfinite(fitted.transform(data[0])).all()
