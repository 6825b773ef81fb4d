"""Random search in a class of hypotheses: the best of what was drawn, and its bound."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.stop import Ending
from tests.estimator_checks import check_contract

pytestmark = pytest.mark.row("E10")


def circle(columns, random):
    centre, radius = random.uniform(size=columns), random.uniform()
    return lambda X: radius**2 - ((X - centre) ** 2).sum(axis=1)


def linear(X, theta):
    return X @ theta[:-1] + theta[-1]


def drawn(columns, random):
    return random.normal(size=columns + 1)


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(size=(200, 2))
    return X, np.where(np.abs(X - 0.5).max(axis=1) < 0.3, "in", "out")


@pytest.mark.parametrize("loss", ["zero_one", "hinge", "squared"])
def test_check_estimator_passes_with_nothing_skipped(loss):
    machine = er.selection.HypothesisSearch(er.Parametric(linear, drawn), loss, n_draws=30)
    check_contract(machine)


def test_the_best_of_what_was_drawn(data):
    X, y = data
    search = er.selection.HypothesisSearch(circle, n_draws=50, random_state=3).fit(X, y == "in")
    random = er.selection.HypothesisSearch(circle, n_draws=50, random_state=3).fit(X, y == "in")
    np.testing.assert_array_equal(search.history_["risk"], random.history_["risk"])
    assert search.risk_ == search.history_["risk"].min() == pytest.approx(1 - search.score(X, y == "in"))
    np.testing.assert_array_equal(search.history_["objective"], np.minimum.accumulate(search.history_["risk"]))
    assert (search.n_iter_, search.stopped_) == (50, Ending.FINISHED)
    more = er.selection.HypothesisSearch(circle, n_draws=500, random_state=3).fit(X, y == "in")
    np.testing.assert_array_equal(more.history_["risk"][:50], search.history_["risk"])


def test_the_bound_is_that_of_a_finite_class(data):
    X, y = data
    search = er.selection.HypothesisSearch(circle, n_draws=100, delta=0.1, random_state=0).fit(X, y == "in")
    assert search.bound_ == er.theory.finite_class_bound(100, 200, 0.1, search.risk_)
    assert er.selection.HypothesisSearch(circle, n_draws=5).fit(X, y == "in", sample_weight=np.ones(200)).bound_ is None
    assert er.selection.HypothesisSearch(circle, "hinge", n_draws=5).fit(X, y == "in").bound_ is None


def test_the_bound_holds_on_new_rows():
    rng = np.random.default_rng(0)
    failed = 0
    test = rng.uniform(size=(5000, 2))
    for seed in range(40):
        X = rng.uniform(size=(100, 2))
        inside, truth = (np.abs(rows - 0.5).max(axis=1) < 0.3 for rows in (X, test))
        search = er.selection.HypothesisSearch(circle, n_draws=50, delta=0.2, random_state=seed).fit(X, inside)
        failed += 1 - search.score(test, truth) > search.bound_.value
    assert failed <= 8


def test_parameters_of_a_parametric_machine_are_drawn():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3
    search = er.selection.HypothesisSearch(er.Parametric(linear, drawn), "squared", n_draws=400, random_state=0)
    search.fit(X, y)
    assert search.risk_ == pytest.approx(np.mean((search.predict(X) - y) ** 2))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(search)).predict(X), search.predict(X))


def test_several_classes_and_weights():
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.4, 0.4])

    def planes(columns, random):
        W = random.normal(size=(columns + 1, 3))
        return lambda X: X @ W[:-1] + W[-1]

    search = er.selection.HypothesisSearch(planes, n_draws=300, random_state=0).fit(X, y)
    assert search.risk_ == pytest.approx(1 - search.score(X, y))
    assert search.risk_ < 0.4
    twice = np.arange(90) % 2 == 0
    weighted = er.selection.HypothesisSearch(planes, n_draws=50, random_state=0).fit(X, y, sample_weight=1.0 + twice)
    rows = np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]])
    repeated = er.selection.HypothesisSearch(planes, n_draws=50, random_state=0).fit(*rows)
    np.testing.assert_allclose(weighted.history_["risk"], repeated.history_["risk"])
    soft = er.selection.HypothesisSearch(planes, "softmax", n_draws=50, random_state=0).fit(X, y)
    assert soft.decision_function(X).shape == (90, 3)


def test_it_ends_where_nothing_is_left_to_gain_and_at_its_limits(data):
    X, _ = data

    def half(columns, random):
        return lambda X: X[:, 0] - 0.5

    search = er.selection.HypothesisSearch(half).fit(X, X[:, 0] > 0.5)
    assert (search.n_iter_, search.stopped_, search.risk_) == (1, Ending.CONVERGED, 0.0)

    def slow(columns, random):
        time.sleep(0.01)
        return circle(columns, random)

    search = er.selection.HypothesisSearch(slow, n_draws=10_000, max_time=0.2).fit(X, X[:, 0] > 0.5)
    assert search.stopped_ == Ending.MAX_TIME
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    search = er.selection.HypothesisSearch(slow, n_draws=10_000)
    with pytest.raises(KeyboardInterrupt, match="HypothesisSearch was interrupted and keeps the best"):
        search.fit(X, X[:, 0] > 0.5)
    assert search.stopped_ == Ending.INTERRUPTED
    assert search.n_iter_ < 200


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"draw": 3}, "draw=3 cannot be called"),
        ({"draw": er.Parametric(linear, [0.0])}, "whose start is fixed"),
        ({"draw": lambda columns, random: lambda X: X}, r"returned an array of shape \(200, 2\), where \(200,\)"),
        ({"draw": lambda columns, random: lambda X: "no"}, "cannot be asked for numbers"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"delta": 2.0}, "delta=2.0"),
        ({"max_time": -1.0}, "max_time=-1.0"),
        ({"loss": "magic"}, "loss='magic' is not known"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(data, changed, sentence):
    X, y = data
    with pytest.raises(EmpiriskError, match=sentence):
        er.selection.HypothesisSearch(**{"draw": circle} | changed).fit(X, y)


def test_weight_two_is_the_row_twice_also_where_hypotheses_err_alike():
    random = np.random.default_rng(2)
    X, y, times = random.normal(size=(31, 2)), np.arange(31) % 2, random.integers(1, 4, 31)
    rows = np.repeat(np.arange(31), times)

    def line(columns, random):
        w = random.normal(size=columns)
        return lambda X: X @ w

    machine = er.selection.HypothesisSearch(line, n_draws=300, random_state=0)
    weighted = clone(machine).fit(X, y, sample_weight=times)
    repeated = clone(machine).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighted.history_["risk"], repeated.history_["risk"])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


def test_the_order_of_the_rows_does_not_choose_between_hypotheses_of_equal_risk():
    X, y = np.ones((30, 1)), np.arange(30) % 2  # the hinge losses of w and of -w add up to 30 for all w within one

    def plane(columns, random):
        w = random.uniform(-1, 1, size=columns)
        return lambda X: X @ w

    machine = er.selection.HypothesisSearch(plane, "hinge", n_draws=20, random_state=0)
    first = clone(machine).fit(X, y).decision_function(X[:1])
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(30)
        found = clone(machine).fit(X, y[order])
        np.testing.assert_array_equal(found.decision_function(X[:1]), first)
        assert found.risk_ in found.history_["risk"]
