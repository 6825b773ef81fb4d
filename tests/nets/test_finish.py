"""The end of a training on few rows: L-BFGS on the whole objective finds what SciPy's finds from several starts."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.nets import finish
from empirisk.nets.finish import Finish

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([-1.0, 1.0, 1.0, -1.0])


def naive(X, y, units, loss, C, starts):
    """The least objective of one hidden layer of tanh that SciPy's L-BFGS finds from some first weights."""
    columns = X.shape[1]

    def value(p):
        W, b = p[: columns * units].reshape(columns, units), p[columns * units : -units - 1]
        w, c = p[-units - 1 : -1], p[-1]
        h = np.tanh(X @ W + b)
        f = h @ w + c
        losses, slope = (np.logaddexp(0, -y * f), -y / (1 + np.exp(y * f))) if loss == "logistic" else (
            (f - y) ** 2, 2 * (f - y),
        )  # fmt: skip
        inner = np.outer(C * slope, w) * (1 - h**2)
        parts = [(W + X.T @ inner).ravel(), inner.sum(axis=0), w + h.T @ (C * slope), [C * slope.sum()]]
        return 0.5 * np.sum(W**2) + 0.5 * w @ w + C * losses.sum(), np.concatenate(parts)

    found = []
    for seed in range(starts):
        draw = np.random.default_rng(seed)
        first = np.concatenate([draw.normal(size=columns * units), np.zeros(units), draw.normal(size=units), [0.0]])
        found.append(minimize(value, first, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-13}).fun)
    return min(found)


def reached(machine):
    """The whole objective: the head's, and the penalty on the network."""
    weights = machine.features_.weights_
    hidden = sum(np.sum(weight.astype(float) ** 2) for name, weight in weights.items() if name.endswith("weight"))
    return machine.certificate_.primal + 0.5 * hidden


def problem(name):
    if name == "xor":
        return *XOR, er.LogisticRegression(C=100.0), "logistic", 4
    if name == "moons":
        X, y = make_moons(150, noise=0.2, random_state=1)
        return X, 2.0 * y - 1, er.LogisticRegression(C=10.0), "logistic", 5
    X = np.random.default_rng(0).normal(size=(80, 3))
    return X, np.abs(X[:, 0]) + X[:, 1] * X[:, 2], er.Ridge(C=10.0), "squared", 3 if name == "few units" else 6


@pytest.mark.row("W2")
@pytest.mark.parametrize(("name", "seed"), [("xor", 0), ("moons", 0), ("products", 0), ("few units", 2)])
def test_small_networks_reach_what_lbfgs_reaches_from_several_starts(name, seed):
    """From the first start alone the last of these ends a third higher."""
    X, y, machine, loss, units = problem(name)
    best = naive(X, y, units, loss, machine.C, starts=5)
    machine.set_params(features=er.Network([units], "tanh", random_state=seed)).fit(X, y)
    assert reached(machine) <= best * (1 + 1e-5)


@pytest.mark.row("W2")
def test_the_certificate_notes_the_gradient_in_all_weights():
    X, y, machine, *_ = problem("xor")
    network = er.Network([4], "tanh", random_state=0)
    machine.set_params(features=network).fit(X, y)
    found = machine.features_
    assert found.gradient_norm_ < 1e-3
    assert f"norm {found.gradient_norm_:.2g}" in machine.certificate_.reason
    assert f"the objective with the network is {reached(machine):.6g}"[:-1] in machine.certificate_.reason
    # The same by differences: the objective in the weights of the network, the head as it is.
    W, b, w = (a.astype(float) for a in (found.weights_["0.weight"], found.weights_["0.bias"], machine.coef_[0]))

    def value(W, b, w, c):
        losses = np.logaddexp(0, -y * (np.tanh(X @ W + b) @ w + c))
        return 0.5 * np.sum(W**2) + 0.5 * w @ w + 100.0 * losses.sum()

    step, parts, squares = 1e-5, [W, b, w, machine.intercept_], 0.0
    for number, part in enumerate(parts):
        for place in np.ndindex(part.shape):
            ahead, back = ([p.copy() for p in parts] for _ in range(2))
            ahead[number][place] += step
            back[number][place] -= step
            squares += ((value(*ahead) - value(*back)) / (2 * step)) ** 2
    assert np.sqrt(squares) == pytest.approx(found.gradient_norm_, abs=1e-6)
    short = machine.set_params(features__epochs=5, features__finish=False).fit(X, y)
    assert short.features_.gradient_norm_ > 1e-3


def test_the_history_ends_with_the_finish():
    X, y, machine, *_ = problem("xor")
    machine.set_params(features=er.Network([4], "tanh", random_state=0)).fit(X, y)
    history = machine.features_.history_
    assert history["step"][-1] > machine.features_.n_steps_ == history["step"][-2]
    assert history["objective"][-1] <= history["objective"][-2]
    assert history["objective"][-1] == pytest.approx(reached(machine), rel=1e-5)
    assert (np.diff(history["seconds"]) > 0).all()


def test_a_head_in_closed_form_changes_nothing_but_the_way():
    X, y, *_ = problem("products")
    ends = []
    for projects in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not projects:
                patch.setattr("empirisk.nets.objective.NetworkObjective.projects", frozenset())
            machine = er.Ridge(C=1.0, features=er.Network([3], "tanh", random_state=0)).fit(X, y)
        ends.append(reached(machine))
    assert ends[0] == pytest.approx(ends[1], rel=1e-4)


def test_masks_and_frozen_layers_hold_in_the_finish():
    X, y, machine, *_ = problem("xor")
    mask = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    machine.set_params(features=er.Network([3, 2], "tanh", masks={"0.weight": mask}, freeze=[1], random_state=0))
    found = machine.fit(X, y).features_
    assert found.history_["step"][-1] > found.n_steps_
    assert not found.weights_["0.weight"][mask == 0].any()
    first = er.Network([3, 2], "tanh", random_state=0).fit(X)
    tried = [first.first_weights(attempt)["1.weight"] for attempt in range(10)]
    assert any(np.array_equal(found.weights_["1.weight"], weight) for weight in tried)


@pytest.mark.parametrize(
    "parameters",
    [{"dropout": 0.1}, {"batch_norm": True}, {"augment": [er.nets.Noise()]}, {"validation_fraction": 0.3}],
    ids=repr,
)
def test_what_is_random_in_training_is_not_finished(parameters):
    X, y, machine, *_ = problem("products")
    machine.set_params(features=er.Network([3], n_init=1, random_state=0, **parameters)).fit(X, y)
    assert machine.features_.history_["step"][-1] == machine.features_.n_steps_
    with pytest.raises(er.errors.Unsuitable, match="finish=True minimises over all rows as they are"):
        machine.set_params(features__finish=True).fit(X, y)
    with pytest.raises(er.errors.EmpiriskError, match="finish='later' must be True, False or 'auto'"):
        machine.set_params(features__finish="later").fit(X, y)


def test_a_number_of_epochs_is_kept_unless_the_finish_is_asked_for():
    X, y, machine, *_ = problem("products")
    ends = []
    for asked in ("auto", False, True):
        network = er.Network([3], "tanh", epochs=10, n_init=1, finish=asked, random_state=0)
        ends.append(reached(machine.set_params(features=network).fit(X, y)))
    assert ends[0] == ends[1] > ends[2]


@pytest.mark.parametrize("limit", ["max_time", "interrupted"])
def test_time_and_ctrl_c_end_the_finish(limit, monkeypatch):
    X, y, machine, *_ = problem("products")
    network = er.Network([6], "tanh", n_init=1, random_state=0)
    machine.set_params(features=network).fit(X, y)  # compiles
    run = Finish._run

    def endless(self, weights, gain):
        while not self._deadline():
            time.sleep(0.01)
        return run(self, weights, gain)

    monkeypatch.setattr(Finish, "_run", endless)
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    if limit == "interrupted":
        timer.start()
    begin = time.perf_counter()
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=limit):
        machine.set_params(max_time=1.0 if limit == "max_time" else None).fit(X, y)
    timer.cancel()
    assert time.perf_counter() - begin < 30
    assert machine.stopped_ == machine.features_.stopped_ == limit
    assert np.isfinite(machine.predict(X)).all()


def test_the_same_bits_again():
    X, y, machine, *_ = problem("products")
    fits = [
        machine.set_params(features=er.Network([3], "tanh", random_state=0)).fit(X, y).coef_.copy() for _ in range(2)
    ]
    np.testing.assert_array_equal(*fits)


@pytest.mark.row("W2")
@pytest.mark.parametrize("penalty", ["l1", er.penalties.ElasticNet(0.7)], ids=repr)
def test_l1_on_the_weights_of_a_network_makes_zeros(penalty):
    X, _, _, *_ = problem("products")
    y = np.sin(2 * X[:, 0])  # of one column
    network = er.Network([5], "tanh", decay=3.0, penalty=penalty, random_state=0)
    machine = er.Lasso(C=5.0, features=network).fit(X, y)
    weights = machine.features_.weights_["0.weight"]
    assert (weights == 0).sum() >= 10  # of 15; exactly zero, and where they should be, since the subgradient is small
    assert np.abs(weights[1:]).max() < 0.01 < np.abs(weights[0]).max()
    assert machine.score(X, y) > 0.9
    assert machine.features_.gradient_norm_ < 0.1
    ratio = 1.0 if penalty == "l1" else 0.7
    W = weights.astype(float)
    hidden = 3.0 * (ratio * np.abs(W).sum() + 0.5 * (1 - ratio) * np.sum(W**2))
    note = f"the objective with the network is {machine.certificate_.primal + hidden:.6g}"
    assert note[:-1] in machine.certificate_.reason


def test_a_penalty_that_a_network_cannot_have_is_named():
    X, y, machine, *_ = problem("products")
    with pytest.raises(er.errors.EmpiriskError, match="penalty='ridge' is not known"):
        machine.set_params(features=er.Network([3], penalty="ridge")).fit(X, y)


@pytest.mark.row("W6")
def test_an_autoencoder_of_digits_is_better_than_pca_after_few_evaluations(monkeypatch):
    X = load_digits().data[:600] / 16
    counts, run = [], Finish._run

    def counted(self, weights, gain):
        counts.append(run(self, weights, gain))
        return counts[-1]

    monkeypatch.setattr(Finish, "_run", counted)
    deep = er.PCA(8, er.Network([32], random_state=0)).fit(X)
    plain = er.PCA(8).fit(X)
    lost = [np.mean((pca.inverse_transform(pca.transform(X)) - X) ** 2) for pca in (deep, plain)]
    assert lost[0] < 0.55 * lost[1]
    assert lost[0] < 0.00982  # what 5000 steps of L-BFGS on all weights reached
    assert sum(end.evaluations for end in counts) < 1500


def test_rows_are_filled_up_by_an_eighth_at_most():
    assert [finish._filled(rows) for rows in (1, 64, 65, 600, 1000, 5000)] == [64, 64, 128, 640, 1024, 5120]
