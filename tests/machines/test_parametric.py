"""Machines that are not linear in their parameters: against their truth, linear machines, and least squares."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from scipy.optimize import curve_fit
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.stop import Ending
from tests.callbacks import Watching
from tests.estimator_checks import check_contract

pytestmark = pytest.mark.row("E10")


def linear(X, theta):
    return X @ theta[:-1] + theta[-1]


def drawn(columns, random):
    return 0.1 * random.normal(size=columns + 1)


def ellipse(X, theta):
    return 1 - theta[0] * (X[:, 0] - theta[2]) ** 2 - theta[1] * (X[:, 1] - theta[3]) ** 2


def rectangle(X, theta):
    sides = np.column_stack([theta[0] * (X[:, 0] - theta[2]) ** 2, theta[1] * (X[:, 1] - theta[3]) ** 2])
    return 1 - sides.max(axis=1)


def exponentials(X, theta):
    return theta[0] * np.exp(-theta[1] * X[:, 0]) + theta[2] * np.exp(-theta[3] * X[:, 0])


def slopes_of_exponentials(X, theta):
    first, second = np.exp(-theta[1] * X[:, 0]), np.exp(-theta[3] * X[:, 0])
    return np.column_stack([first, -theta[0] * X[:, 0] * first, second, -theta[2] * X[:, 0] * second])


@pytest.fixture(scope="module")
def plane():
    return np.random.default_rng(0).uniform(-2, 2, size=(300, 2))


@pytest.fixture(scope="module")
def decay():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 6, 80)
    return x[:, None], 2 * np.exp(-0.4 * x) + 3 * np.exp(-2.5 * x) + 0.01 * rng.normal(size=80)


@pytest.mark.parametrize(
    "machine",
    [
        er.Parametric(linear, drawn),
        er.Parametric(linear, drawn, "logistic", "l2"),
        er.Parametric(linear, drawn, "squared", "l2", task="classification"),
    ],
    ids=["numbers", "classes", "classes by squares"],
)
def test_check_estimator_passes_with_nothing_skipped(machine):
    check_contract(machine)


def test_a_linear_function_is_the_linear_machine():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 + 0.1 * rng.normal(size=80)
    ours, theirs = er.Parametric(linear, np.zeros(4), tol=1e-9).fit(X, y), er.LeastSquares().fit(X, y)
    np.testing.assert_allclose(ours.params_, [*theirs.coef_, theirs.intercept_], atol=1e-5)
    labels = y > 0
    odds = er.Parametric(lambda X, w: X @ w, np.zeros(3), "logistic", "l2", C=2.0, tol=1e-9).fit(X, labels)
    known = er.LogisticRegression(C=2.0, fit_intercept=False).fit(X, labels)
    np.testing.assert_allclose(odds.params_, known.coef_[0], atol=1e-4)
    np.testing.assert_allclose(odds.predict_proba(X), known.predict_proba(X), atol=1e-4)
    assert odds.certificate_.primal == pytest.approx(known.certificate_.primal, rel=1e-8)


def test_a_joint_loss_has_one_theta_for_all_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.2 * rng.normal(size=90), [-0.5, 0.5])]
    joint = er.Parametric(lambda X, W: X @ W, np.zeros((2, 3)), "softmax", "l2", tol=1e-9).fit(X, y)
    known = er.LogisticRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(joint.predict_proba(X), known.predict_proba(X), atol=1e-4)
    rest = er.Parametric(linear, np.zeros(3), "logistic", "l2", random_state=0).fit(X, y)
    assert rest.params_.shape == (3, 3)
    assert set(rest.history_) == {"objective", "seconds", "problem"}
    each = er.Parametric(linear, np.zeros(3), "logistic", "l2").fit(X, y == "b")
    np.testing.assert_allclose(rest.params_[1], each.params_, atol=1e-4)
    np.testing.assert_allclose(rest.predict_proba(X).sum(axis=1), 1.0)


def test_an_ellipse_and_a_rectangle(plane):
    inside = 2 * (plane[:, 0] - 0.3) ** 2 + 0.6 * (plane[:, 1] + 0.2) ** 2 < 1
    round_one = er.Parametric(
        lambda X, theta: theta[4] * ellipse(X, theta), [1.0, 1.0, 0.0, 0.0, 1.0], "logistic", "l2", C=10.0
    ).fit(plane, inside)
    assert round_one.score(plane, inside) > 0.98
    np.testing.assert_allclose(round_one.params_[2:4], [0.3, -0.2], atol=0.1)
    box = np.abs(plane - [0.1, -0.3]).max(axis=1) < 0.8
    square = er.Parametric(
        lambda X, theta: theta[4] * rectangle(X, theta),
        lambda columns, random: random.uniform(size=5),
        "logistic",
        "l2",
        method="nelder_mead",  # corners stop the others
        n_init=5,
        random_state=0,
    ).fit(plane, box)
    assert square.score(plane, box) > 0.9
    assert square.certificate_.primal == square.objectives_.min()


@pytest.mark.parametrize("jacobian", [None, "differences", slopes_of_exponentials])
def test_a_sum_of_exponentials_is_least_squares(decay, jacobian):
    X, y = decay
    machine = er.Parametric(exponentials, [1.0, 0.3, 1.0, 2.0], jacobian=jacobian, tol=1e-8).fit(X, y)
    known, _ = curve_fit(lambda x, *theta: exponentials(x[:, None], theta), X[:, 0], y, [1.0, 0.3, 1.0, 2.0])
    np.testing.assert_allclose(machine.params_, known, rtol=1e-3)
    assert machine.score(X, y) > 0.999


def test_functions_written_in_jax(decay):
    jnp = pytest.importorskip("jax.numpy")
    X, y = decay

    def function(X, theta):
        return theta[0] * jnp.exp(-theta[1] * X[:, 0]) + theta[2] * jnp.exp(-theta[3] * X[:, 0])

    start = [1.0, 0.3, 1.0, 2.0]
    ours, same = (er.Parametric(f, start, tol=1e-8).fit(X, y) for f in (function, exponentials))
    np.testing.assert_allclose(ours.params_, same.params_, rtol=1e-4)
    assert ours.predict(X).dtype == np.float64


def test_weight_two_is_the_row_twice(plane):
    y = plane[:, 0] ** 2 + plane[:, 1] ** 2 < 1.5
    twice = np.arange(len(y)) % 3 == 0
    machine = er.Parametric(ellipse, [1.0, 1.0, 0.1, 0.1], "logistic", "l2", tol=1e-9)
    weighted = clone(machine).fit(plane, y, sample_weight=1.0 + twice)
    repeated = clone(machine).fit(np.concatenate([plane, plane[twice]]), np.concatenate([y, y[twice]]))
    np.testing.assert_allclose(weighted.params_, repeated.params_, rtol=1e-4)
    left_out = clone(machine).fit(plane, y, sample_weight=1.0 * twice)
    np.testing.assert_allclose(left_out.params_, clone(machine).fit(plane[twice], y[twice]).params_, rtol=1e-6)
    balanced = clone(machine).set_params(class_weight={True: 3.0}).fit(plane, y)
    tripled = clone(machine).fit(plane, y, sample_weight=np.where(y, 3.0, 1.0))
    np.testing.assert_allclose(balanced.params_, tripled.params_, rtol=1e-6)


def test_several_starts_escape_a_bad_minimum():
    x = np.linspace(0, 10, 100)[:, None]
    y = np.sin(1.7 * x[:, 0])
    wave = er.Parametric(lambda X, t: np.sin(t[0] * X[:, 0]), [4.0], n_init=30, random_state=0)
    found = wave.fit(x, y)
    assert len(found.objectives_) == 30
    assert found.objectives_[0] > 10
    assert found.certificate_.primal < 1e-6
    assert abs(found.params_[0]) == pytest.approx(1.7, abs=1e-4)


def test_evidence_and_tags():
    X = np.linspace(-1, 1, 30)[:, None]
    machine = er.Parametric(linear, np.zeros(2)).fit(X, 2 * X[:, 0])
    assert (machine.certificate_.converged, machine.stopped_, machine.solver_) == (True, Ending.CONVERGED, "bfgs")
    assert machine.certificate_.dual == -np.inf
    assert "gradient is at most" in machine.certificate_.reason
    assert machine.history_["objective"][-1] == pytest.approx(machine.certificate_.primal, abs=1e-12)
    assert is_regressor(machine)
    assert not hasattr(machine, "decision_function")
    classes = er.Parametric(linear, loss="hinge")
    assert is_classifier(classes)
    assert not hasattr(classes, "predict_proba")
    search = GridSearchCV(er.Parametric(linear, drawn, penalty="l2", random_state=0), {"C": [0.1, 10.0]}, cv=3)
    assert search.fit(X, 2 * X[:, 0]).best_params_ == {"C": 10.0}
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))


class Counting(Watching):
    def __init__(self):
        self.tasks = []

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.tasks.append(context.task_name)


def test_callbacks_see_every_iteration():
    X = np.linspace(-1, 1, 30)[:, None]
    counter = Counting()
    machine = er.Parametric(linear, np.ones(2)).set_callbacks(counter).fit(X, 2 * X[:, 0])
    assert counter.tasks.count("iteration") == machine.n_iter_


def slow_line(X, theta):
    time.sleep(0.005)
    return linear(X, theta) ** 3


def test_limits_end_a_fit_and_ctrl_c_keeps_the_best():
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = X[:, 0] ** 3
    with pytest.warns(ConvergenceWarning, match=r"Parametric did not reach tol \(max_time\)"):
        machine = er.Parametric(slow_line, np.ones(4), n_init=50, max_time=0.4, tol=0.0).fit(X, y)
    assert machine.stopped_ == Ending.MAX_TIME
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.perf_counter()
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = er.Parametric(slow_line, np.ones(4), n_init=50, tol=0.0).fit(X, y)
    assert machine.stopped_ == Ending.INTERRUPTED
    assert time.perf_counter() - begin < 1.3
    assert np.isfinite(machine.predict(X)).all()


def test_a_function_is_no_part_of_a_file(tmp_path):
    machine = er.Parametric(linear, np.zeros(2)).fit(np.eye(2)[:, :1], [0.0, 1.0])
    with pytest.raises(EmpiriskError, match="is the function linear, which a model file cannot hold"):
        er.save(machine, tmp_path / "line.model")


BAD = [
    ({"start": None}, "start=None: give the first parameters"),
    ({"start": "here"}, "start is no array of numbers"),
    ({"start": [np.nan, 0.0, 0.0]}, "start=.nan, 0, 0. holds NaN or infinity"),
    ({"function": 3}, "function=3 cannot be called"),
    ({"function": lambda X, theta: 1.0}, r"function returned an array of shape \(\), where \(20,\) is needed"),
    ({"function": lambda X, theta: "no"}, "function returned what is no array of numbers"),
    ({"function": lambda X, theta: np.full(len(X), np.nan)}, "f is inf at start"),
    ({"jacobian": 3}, "jacobian=3 must be a function"),
    ({"jacobian": lambda X, theta: np.eye(2)}, r"jacobian returned an array of shape \(2, 2\), where \(20, 3\)"),
    ({"penalty": "l1"}, "penalty='l1' has corners"),
    ({"loss": "zero_one"}, "no slopes to go down"),
    ({"loss": "hinge", "task": "regression"}, "loss='hinge' is not a regression loss"),
    ({"task": "magic"}, "task='magic' is not known"),
    ({"method": "magic"}, "method='magic' is not known"),
    ({"n_init": 0}, "n_init=0"),
    ({"C": 0.0}, "C=0.0 must be positive"),
]


@pytest.mark.parametrize(("changed", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_input_is_refused_with_a_sentence(changed, sentence):
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = (X[:, 0] > 0).astype(int)
    machine = er.Parametric(linear, np.zeros(3)).fit(X, X[:, 0])
    before = machine.params_
    with pytest.raises(EmpiriskError, match=sentence):
        machine.set_params(**changed).fit(X, y)
    assert machine.params_ is before


def test_several_classes_that_do_not_converge_are_one_warning():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), np.arange(60) % 6
    machine = er.Parametric(lambda X, theta: X @ theta, [1.0, 1.0], "logistic", max_iter=1)
    with pytest.warns(ConvergenceWarning, match="did not reach tol") as caught:
        machine.fit(X, y)
    assert len(caught) == 1
