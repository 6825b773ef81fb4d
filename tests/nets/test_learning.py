"""Networks learn with the machine: the equation, its gradient, the certified head, limits, and the same bits."""

import os
import re
import signal
import threading
import time

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import empirisk as er
from empirisk.fits.fit import Limits, SolverRun
from empirisk.nets import learning, training
from empirisk.nets.layers import Pass
from empirisk.nets.objective import Decay, NetworkObjective
from empirisk.nets.plan import NetworkPlan

L2 = er.penalties.L2()
XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def rows(n=80, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def small(**parameters):
    usual = {"layers": [6], "activation": "tanh", "epochs": 60, "n_init": 1, "random_state": 0}
    return er.Network(**(usual | parameters))


# --- the equation -----------------------------------------------------------------------------------------------------


@pytest.mark.row("W1")
@pytest.mark.row("W2")
@pytest.mark.parametrize(
    "layers",
    [
        [er.nets.Conv(2, 3, padding=1), er.nets.BatchNorm(), er.nets.MaxPool(2), er.nets.Dense(3)],
        [
            er.nets.Filter("gaussian", 3),
            er.nets.Branch([er.nets.Conv(2, 2, 1, 1, flip=True), er.nets.Conv(1, 2, 1, 1)]),
            er.nets.MaxPool(3, 2, 1),
            er.nets.MeanPool(2, 1, 1),
        ],
        [
            er.nets.Residual([er.nets.Conv(2, padding=1), er.nets.BatchNorm(), er.nets.Conv(1, padding=1)], "gelu"),
            er.nets.LayerNorm(),
            er.nets.ConvTranspose(2, 2, stride=2, activation="softplus"),
            er.nets.Upsample(9, 7),
            er.nets.Dense(4, "leaky_relu"),
            er.nets.LayerNorm(),
            er.nets.Reshape((2, 2, 1)),
        ],
    ],
    ids=["tiles", "overlapping windows", "blocks and larger images"],
)
def test_the_gradient_is_that_of_finite_differences(layers):
    random = np.random.default_rng(0)
    plan = NetworkPlan(layers, (4, 4, 1), "tanh", False, 0.0)
    objective = NetworkObjective(plan, [(er.losses.Logistic(), 0), (er.losses.Squared(), 0)], L2, Decay(1.0, L2), True)
    x, targets, scale = random.normal(size=(6, 4, 4, 1)), np.sign(random.normal(size=(6, 2))), random.random((6, 2))
    weights = plan.weights("auto", random) | objective.head(random)
    with jax.enable_x64(True):
        weights = {name: value.astype(np.float64) for name, value in weights.items()}
        state = {name: value.astype(np.float64) for name, value in plan.state().items()}

        @jax.jit
        def J(weights):
            run = Pass(state, True, scale.sum(axis=1))
            return objective.penalties(weights) + objective.losses(weights, x, targets, scale, run)

        slopes = jax.jit(jax.grad(J))(weights)
        for name, weight in weights.items():
            direction = random.normal(size=weight.shape)
            step = 1e-5
            ahead, back = (float(J(weights | {name: weight + t * direction})) for t in (step, -step))
            slope = float(np.vdot(slopes[name], direction))
            assert slope == pytest.approx((ahead - back) / (2 * step), rel=1e-6, abs=1e-8)


@pytest.mark.row("W1")
@pytest.mark.parametrize("machine", [er.LogisticRegression(C=3.0), er.SVM(C=3.0), er.Ridge(C=3.0)], ids=repr)
def test_without_hidden_layers_it_is_the_linear_machine(machine):
    X, y = rows()
    plain, empty = clone(machine).fit(X, y), clone(machine).set_params(features=er.Network([])).fit(X, y)
    assert empty.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)


@pytest.mark.row("W1")
def test_a_linear_layer_reaches_the_best_rank_one_fit():
    # The least 1/2 |W|^2 + 1/2 w^2 of all W w = v is |v|.
    X, _ = rows()
    target = X @ np.array([1.0, -2.0, 0.5])
    network = er.Network([1], "linear", epochs=8000, random_state=0)
    found = er.Regressor(C=5.0, features=network).fit(X, target)
    v = found.features_.weights_["0.weight"][:, 0] * found.coef_[0]
    loss = 5.0 * np.sum((found.predict(X) - target) ** 2)
    total = 0.5 * np.sum(found.features_.weights_["0.weight"] ** 2) + found.certificate_.primal

    def value(v, b):
        return np.linalg.norm(v) + 5.0 * np.sum((X @ v + b - target) ** 2)

    from scipy.optimize import minimize

    best = minimize(lambda p: value(p[:3], p[3]), np.append(v, 0.1)).fun
    assert np.linalg.norm(v) + loss <= total * (1 + 1e-6)
    assert total == pytest.approx(best, rel=1e-4)


@pytest.mark.long
@pytest.mark.row("W1")
@pytest.mark.row("W2")
def test_xor_is_learned_from_every_seed():
    for seed in range(20):
        machine = er.LogisticRegression(C=100.0, features=er.Network([4], random_state=seed)).fit(*XOR)
        np.testing.assert_array_equal(machine.predict(XOR[0]), XOR[1])


@pytest.mark.parametrize(
    "machine",
    [er.SVM(C=10.0), er.LogisticRegression(C=10.0), er.Classifier("squared_hinge"), er.Classifier("crammer_singer")],
    ids=repr,
)
def test_the_certified_head_is_never_worse_than_the_trained_one(machine, monkeypatch):
    kept = {}

    def spy(trained, problems, heads=learning._heads):
        points = heads(trained, problems)
        kept["starts"] = [problem.primal(point) for problem, point in zip(problems, points, strict=True)]
        return points

    monkeypatch.setattr(learning, "_heads", spy)
    X, _ = rows()
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    machine = clone(machine).set_params(features=small()).fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.primal <= sum(kept["starts"]) * (1 + 1e-12)


def test_a_head_stopped_too_early_gives_way_to_the_trained_one():
    X, y = rows()
    machine = er.LogisticRegression(C=10.0, features=small(epochs=200), solver="gradient_descent", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    problem = er.LogisticRegression(C=10.0).problems(machine.features_.transform(X), y)[0]
    assert machine.certificate_.primal < problem.origin_value


def test_the_learned_map_serves_any_other_machine():
    X, y = rows(128)
    phi = er.SVM(C=10.0, features=small(layers=[16], epochs=300)).fit(X, y).features_.transform(X)
    assert er.KNNClassifier().fit(phi, y).score(phi, y) > 0.95


@pytest.mark.row("W5")
def test_several_outputs_share_one_network():
    X, _ = rows(120)
    Y = np.column_stack([np.abs(X[:, 0]), np.abs(X[:, 1])])
    for machine in (er.Ridge(C=100.0), er.SVR(C=10.0)):
        fitted = clone(machine).set_params(features=small(layers=[20], epochs=1000)).fit(X, Y)
        assert fitted.coef_.shape == (2, 20)
        assert fitted.score(X, Y) > 0.8


@pytest.mark.row("W5")
def test_every_output_may_have_a_loss_of_its_own():
    X, y = rows(100)
    network = small(epochs=2000, layers=[12]).fit(X, y)
    (classes,) = er.LogisticRegression(C=10.0).problems(X, y)
    (numbers,) = er.Regressor("absolute", C=10.0).problems(X, X[:, 2])
    problems, fits = network.learn_with([classes, numbers], SolverRun("auto", Limits(1e-6, None, None)))
    right = np.sign(problems[0].predict(fits[0].point)) == classes.y
    assert right.mean() > 0.9
    assert np.abs(problems[1].predict(fits[1].point) - X[:, 2]).mean() < 0.2


@pytest.mark.row("W5")
def test_several_labels_and_a_loss_for_each_target_on_one_network():
    X, _ = rows(120)
    labels = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 2] > 0]).astype(int)
    machine = er.LogisticRegression(C=100.0, features=small(layers=[12], epochs=1500, learning_rate_init=0.01)).fit(
        X, labels
    )
    assert machine.coef_.shape == (2, 12)
    assert machine.score(X, labels) > 0.9
    targets = np.column_stack([np.abs(X[:, 0]), X[:, 1]])
    losses = ["squared", "absolute"]
    numbers = er.Regressor(losses, C=100.0, features=small(layers=[12], epochs=1500, learning_rate_init=0.01)).fit(
        X, targets
    )
    assert numbers.score(X, targets) > 0.8
    phi = numbers.features_.transform(X)
    for number, loss in enumerate(losses):  # each head is the best for the loss of its target
        best = er.Regressor(loss, C=100.0).fit(phi, targets[:, number])
        np.testing.assert_allclose(numbers.predict(X)[:, number], best.predict(phi), atol=1e-3)


@pytest.mark.parametrize(("unit", "begin", "C"), [(1e4, 1e6, 100.0), (1e-3, 0.0, 1e8)])
def test_targets_of_any_size_are_learned(unit, begin, C):
    X, _ = rows(300)
    Y = begin + unit * np.column_stack([np.abs(X[:, 0]), X[:, 1] ** 2])
    network = small(layers=[20], activation="relu", epochs=1000, batch_size=300)
    machine = er.Regressor("squared", C=C, features=network).fit(X, Y)
    assert machine.score(X, Y) > 0.95
    phi = machine.features_.transform(X)
    plain = er.Regressor("squared", C=C).fit(phi, Y)
    assert machine.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)
    history = machine.features_.history_["objective"]
    objective = machine.certificate_.primal + 0.5 * np.sum(machine.features_.weights_["0.weight"].astype(float) ** 2)
    assert objective <= history[-1] * (1 + 1e-5)


# --- choosing C -------------------------------------------------------------------------------------------------------


def test_cross_validation_fits_the_network_again_for_every_value():
    X, y = rows(60)
    weights = 1.0 + np.arange(60) % 2
    folds = StratifiedKFold(2)
    machine = er.LogisticRegression(
        C="cv", Cs=[0.1, 10.0], cv=folds, features=small(epochs=200, learning_rate_init=0.05)
    )
    chosen = clone(machine).fit(X, y, sample_weight=weights)
    table = np.zeros((2, 2))
    for fold, (train, test) in enumerate(folds.split(X, y)):
        for place, C in enumerate((0.1, 10.0)):
            alone = clone(machine).set_params(C=C).fit(X[train], y[train], sample_weight=weights[train])
            lost = er.losses.Logistic().value(2.0 * y[test] - 1, alone.decision_function(X[test]))
            table[fold, place] = np.average(lost, weights=weights[test])
    np.testing.assert_allclose(chosen.choice_.losses, table, rtol=1e-5)
    assert chosen.choice_.chosen == chosen.C_
    whole = clone(machine).set_params(C=chosen.C_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(whole.coef_, chosen.coef_)


def test_cross_validation_shares_the_time_out():
    X, y = rows(60)
    machine = er.LogisticRegression(C="cv", Cs=[0.1, 10.0], cv=2, features=small(epochs=10**6), max_time=1.5)
    clone(machine).set_params(features__epochs=1, max_time=None).fit(X, y)  # compiles, which is not what is timed here
    with pytest.warns(ConvergenceWarning, match="max_time") as told:
        machine.fit(X, y)
    # The folds are silent: the network that is kept tells of its own end. (A slow machine may leave out a value of C.)
    assert sum("training of the network was stopped" in str(warning.message) for warning in told) == 1
    assert machine.features_.n_steps_ > 50


def test_leave_one_out_has_no_closed_form_for_a_network():
    X, y = rows(20)
    with pytest.raises(er.errors.EmpiriskError, match=r"Network\(.*learns; use C='cv'"):
        er.Ridge(C="loo", features=small()).fit(X, y)


# --- rows as a set ----------------------------------------------------------------------------------------------------


def test_weights_copies_and_order_give_the_same_bits():
    X, y = rows(150)
    weights = np.arange(150) % 3
    network = small(batch_size=32, epochs=5)
    weighted = er.LogisticRegression(features=network).fit(X, y, sample_weight=weights).features_.weights_
    order = np.random.default_rng(1).permutation(weights.sum())
    repeated = (
        er.LogisticRegression(features=network)
        .fit(np.repeat(X, weights, axis=0)[order], np.repeat(y, weights)[order])
        .features_.weights_
    )
    for name, value in weighted.items():
        np.testing.assert_array_equal(value, repeated[name])


def test_the_machine_lends_its_seed():
    X, y = rows()
    fits = [er.LogisticRegression(features=small(random_state=None), random_state=s).fit(X, y) for s in (3, 3, 4)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert not np.array_equal(fits[0].coef_, fits[2].coef_)


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.row("E8")
@pytest.mark.row("W4")
def test_early_stopping_restores_the_best_weights():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5))
    y = random.integers(0, 2, 60)  # nothing to learn: the held-out loss soon rises
    network = er.Network(
        [50],
        validation_fraction=0.3,
        look_every=10,
        n_iter_no_change=3,
        learning_rate_init=0.03,
        n_init=1,
        random_state=0,
    )
    network.set_params(schedule="constant")
    features = er.LogisticRegression(C=1e4, features=network).fit(X, y).features_
    losses = features.history_["validation_objective"]
    assert features.stopped_ == "early_stopping"
    assert losses.argmin() == len(losses) - 4
    assert features.n_steps_ < 2000
    network.set_params(epochs=10 * (losses.argmin() + 1))  # steps see all rows: it ends at its best
    best = er.LogisticRegression(C=1e4, features=network).fit(X, y).features_
    assert best.stopped_ == "finished"
    for name, value in best.weights_.items():
        np.testing.assert_array_equal(features.weights_[name], value)


def test_the_history_tells_of_every_look():
    X, y = rows()
    features = er.LogisticRegression(features=small(epochs=200, look_every=50)).fit(X, y).features_
    history = features.history_
    assert history["step"].tolist() == [50, 100, 150, 200]
    assert history["gradient_norm"].shape == history["drift"].shape == (4, 4)
    assert history["objective"][-1] < history["objective"][0]
    assert features.history_names_ == ["0.bias", "0.weight", "head.bias", "head.weight"]
    assert (np.diff(history["drift"][:, [1, 3]], axis=0) != 0).all()


class Listener:
    """Keeps what it is told of epochs and iterations, and asks to stop the training after some epochs."""

    def __init__(self, epochs=10**6):
        self.epochs, self.told, self.seen = epochs, [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "training":
            self.rounds = context.max_subtasks

    def on_fit_task_end(self, estimator, context, *, fitted_estimator, X, y):
        if context.task_name in ("epoch", "iteration"):
            self.told.append(context.task_name)
            self.seen.append(fitted_estimator.decision_function(X))
        return self.told.count("epoch") >= self.epochs and context.task_name == "epoch"


@pytest.mark.parametrize("machine", [er.LogisticRegression(C=10.0), er.SVM(C=10.0)], ids=repr)
def test_callbacks_see_the_machine_at_every_epoch_and_may_stop_the_training(machine):
    X, y = rows()
    y = y + (X[:, 2] > 0)  # three classes
    network, listener = small(epochs=200, look_every=50), Listener()
    machine.set_params(features=network).set_callbacks(listener).fit(X, y)
    assert listener.rounds == listener.told.count("epoch") == 4
    assert listener.told[3:5] == ["epoch", "iteration"]
    # After two epochs it is the machine of half as many steps, but for its head, which is as trained.
    half = er.LogisticRegression(C=10.0) if isinstance(machine, er.LogisticRegression) else er.SVM(C=10.0)
    stopping = Listener(2)
    half.set_params(features=network).set_callbacks(stopping).fit(X, y)
    assert half.features_.stopped_ == "callback"
    assert half.features_.n_steps_ == 100
    np.testing.assert_array_equal(stopping.seen[1], listener.seen[1])
    # The last iteration of the head is what the machine is.
    np.testing.assert_allclose(listener.seen[-1], machine.decision_function(X), atol=1e-3)


def test_the_progress_bar_counts_epochs(capsys):
    X, y = rows()
    er.Ridge(features=small(epochs=200, look_every=50)).set_callbacks(ProgressBar()).fit(X, y)
    assert "training" in capsys.readouterr().out


def test_verbose_tells_the_time_left(capsys):
    X, y = rows()
    er.Ridge(features=small(epochs=200, look_every=50, validation_fraction=0.2, verbose=True)).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r"step 50 of 200: objective [\d.e+]+, held out [\d.e+]+, \d+ s left", lines[0])


def test_the_batch_objective_is_the_objective():
    X, y = rows()
    machine = er.LogisticRegression(C=2.0, features=small(epochs=1, learning_rate_init=1e-9)).fit(X, y)
    network = clone(machine.features).fit(X)
    random = np.random.default_rng([network.seed_, 0, 1])
    objective = NetworkObjective(network.plan(), [(er.losses.Logistic(), 0)], L2, Decay(1.0, L2), True)
    w = objective.head(random)["head.weight"][:, 0]
    f = network.transform(X) @ w
    J = 0.5 * np.sum(network.weights_["0.weight"] ** 2) + 0.5 * w @ w
    J += 2.0 * er.losses.Logistic().value(2.0 * y - 1, f).sum()
    assert machine.features_.history_["objective"][0] == pytest.approx(J, rel=1e-5)


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "nesterov", "rmsprop", "adagrad"])
def test_optimisers_by_name(optimiser):
    X, y = rows()
    history = (
        er.LogisticRegression(features=small(optimiser=optimiser, learning_rate_init=0.05)).fit(X, y).features_.history_
    )
    assert history["objective"][-1] < history["objective"][0] or len(history["objective"]) == 1


def test_an_optax_object_and_a_schedule_of_ones_own():
    import optax

    X, y = rows()
    given = small(optimiser=optax.sgd(0.01), epochs=20)
    named = small(optimiser="sgd", learning_rate_init=0.01, schedule=lambda step: 1.0, epochs=20)
    one, other = (er.LogisticRegression(features=network).fit(X, y).features_.weights_ for network in (given, named))
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-5, atol=1e-6)


def test_a_loss_that_is_not_finite_stops_with_the_last_good_weights():
    X, y = rows()
    network = small(optimiser="sgd", learning_rate_init=1e30, look_every=1)
    with pytest.warns(ConvergenceWarning, match=r"not_finite.*lower the network's rate") as told:
        machine = er.Ridge(features=network).fit(X, y.astype(float))
    assert told[0].filename == __file__
    assert all(np.isfinite(value).all() for value in machine.features_.weights_.values())
    assert np.isfinite(machine.predict(X)).all()


def test_the_time_limit_holds():
    X, y = rows()
    network = er.Network([6], "tanh", epochs=10**6, random_state=0)
    er.LogisticRegression(features=clone(network).set_params(epochs=1)).fit(X, y)  # compiled
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = er.LogisticRegression(features=network, max_time=1.0).fit(X, y)
    assert machine.stopped_ == machine.features_.stopped_ == "max_time"
    assert time.perf_counter() - begin < 60


def test_ctrl_c_keeps_what_was_learned():
    X, y = rows(500)
    machine = er.LogisticRegression(features=small(epochs=10**6, schedule="constant", look_every=20))
    clone(machine).set_params(features__epochs=20).fit(X, y)  # compiled
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="LogisticRegression was interrupted and keeps the best point"):
        machine.fit(X, y)
    assert machine.stopped_ == machine.features_.stopped_ == "interrupted"
    assert machine.score(X, y) > 0.5
    # What is kept is what was learned in so many steps.
    steps = machine.features_.n_steps_
    same = er.LogisticRegression(features=small(schedule="constant", look_every=20, epochs=-(-steps // 3))).fit(X, y)
    assert abs(same.features_.n_steps_ - steps) < 3
    np.testing.assert_allclose(
        same.features_.history_["objective"][: steps // 20], machine.features_.history_["objective"][: steps // 20]
    )


@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path, monkeypatch, validation):
    X, y = rows(100)
    network = er.Network(
        [er.nets.Dense(6), er.nets.BatchNorm()], dropout=0.2, batch_size=32, epochs=30, look_every=15,
        validation_fraction=validation, n_iter_no_change=50, checkpoint=tmp_path / "training", random_state=0,
    )  # fmt: skip
    machine = er.LogisticRegression(features=network)
    whole = clone(machine).fit(X, y)
    assert not (tmp_path / "training").exists()
    looks, look = [], training.NetworkTraining._look

    def killed(self, *args):
        looks.append(look(self, *args))
        if len(looks) == 3:
            raise MemoryError("killed")
        return looks[-1]

    monkeypatch.setattr(training.NetworkTraining, "_look", killed)
    with pytest.raises(MemoryError):
        clone(machine).fit(X, y)
    again = clone(machine).fit(X, y)
    assert len(looks) == len(whole.features_.history_["step"])
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    for name, value in whole.features_.weights_.items():
        np.testing.assert_array_equal(again.features_.weights_[name], value)
    np.testing.assert_array_equal(again.features_.history_["objective"], whole.features_.history_["objective"])


def test_a_checkpoint_of_other_data_is_passed_over(tmp_path):
    X, y = rows(100)
    machine = er.LogisticRegression(features=small(checkpoint=tmp_path / "training", epochs=10**6), max_time=1.0)
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert (tmp_path / "training").exists()
    other = er.LogisticRegression(features=small(checkpoint=tmp_path / "training")).fit(-X, y)
    plain = er.LogisticRegression(features=small()).fit(-X, y)
    np.testing.assert_array_equal(other.coef_, plain.coef_)


def test_memory_does_not_grow_over_epochs():
    X, y = rows(400)
    network = small(batch_size=32, look_every=5)
    er.LogisticRegression(features=clone(network).set_params(epochs=2)).fit(X, y)
    before = len(jax.live_arrays())
    er.LogisticRegression(features=clone(network).set_params(epochs=20)).fit(X, y)
    assert len(jax.live_arrays()) <= before


# --- searches, refusals, files ----------------------------------------------------------------------------------------


def test_a_search_reaches_everything():
    X, y = rows()
    grid = {"features__widths": [[2], [6]], "features__learning_rate_init": [0.01], "features__dropout": [0.0]}
    search = GridSearchCV(er.LogisticRegression(features=small(epochs=20)), grid, cv=2).fit(X, y)
    assert search.best_estimator_.coef_.shape[1] in (2, 6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"optimiser": "adamant"}, "optimiser='adamant' is not known"),
        ({"schedule": "soon"}, "schedule='soon' is not known"),
        ({"learning_rate_init": -1.0}, "learning_rate_init=-1.0 must be"),
        ({"batch_size": 0}, "batch_size=0 must be"),
        ({"epochs": 0}, "epochs=0 must be"),
        ({"activation": "swish"}, "activation='swish' is not known"),
        ({"init": "ones"}, "init='ones' is not known"),
        ({"weights": {"9.weight": [1.0]}}, "weights has '9.weight'"),
        ({"weights": {"0.bias": [1.0]}}, "must have"),
        ({"masks": {"0.weight": [1.0]}}, "fits no weight"),
        ({"freeze": [3]}, "names layer 3"),
        ({"shape": (2, 2)}, "does not fit rows of 3"),
        ({"augment": [er.nets.Mirror()]}, "needs images"),
        ({"augment": ["mirror"]}, "must hold objects"),
        ({"decay": -1.0}, "decay=-1.0 must be"),
        ({"validation_fraction": 2.0}, "validation_fraction=2.0 must be"),
    ],
)
def test_bad_parameters_are_named_and_nothing_is_damaged(parameters, words):
    X, y = rows(20)
    machine = er.LogisticRegression(features=small(epochs=2)).fit(X, y)
    before = machine.predict(X)
    machine.set_params(**{f"features__{name}": value for name, value in parameters.items()})
    with pytest.raises(er.errors.EmpiriskError, match=words):
        machine.fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), before)


def test_the_hard_margin_is_refused():
    with pytest.raises(er.errors.EmpiriskError, match="C=inf"):
        er.SVM(C=np.inf, features=er.Network([4])).fit(*XOR)


def test_the_device_is_a_setting():
    X, y = rows(20)
    with er.config(device="cpu"):
        er.LogisticRegression(features=small(epochs=2)).fit(X, y)
    with er.config(device="abacus"), pytest.raises(er.errors.EmpiriskError, match="device='abacus' is not there"):
        er.LogisticRegression(features=small(epochs=2)).fit(X, y)


def test_a_machine_with_a_network_is_saved_and_loaded(tmp_path):
    X, _ = rows()
    layers = [er.nets.Dense(5), er.nets.BatchNorm(), er.nets.Branch([er.nets.Dense(4), er.nets.Dense(3)])]
    layers += [
        er.nets.LayerNorm(),
        er.nets.Residual([6, er.nets.BatchNorm(), 7], "gelu"),
        er.nets.Activation("softplus"),
    ]
    network = small(layers=layers, epochs=5)
    machine = er.Classifier("squared", features=network).fit(X, np.arange(80) % 3)
    er.save(machine, tmp_path / "net.model")
    loaded = er.load(tmp_path / "net.model")
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))


@pytest.mark.parametrize(
    ("what", "of_X", "of_y", "of_weights"),
    [("X", 1e40, 1.0, 1.0), ("y", 1.0, 1e40, 1.0), ("y", 1.0, 1e-45, 1.0), (r"C \* sample_weight", 1.0, 1.0, 1e40)],
)
def test_numbers_beyond_single_precision_are_refused(what, of_X, of_y, of_weights):
    X, y = np.random.default_rng(0).normal(size=(8, 3)), np.arange(8.0) + 1.0
    machine = er.Ridge(features=er.Network([3], epochs=1, n_init=1))
    with pytest.raises(er.errors.EmpiriskError, match=rf"{what} holds .* divide them by their size first"):
        machine.fit(of_X * X, of_y * y, sample_weight=np.full(8, of_weights))


def test_autoencoders_refuse_rows_beyond_single_precision():
    X = 1e40 * np.random.default_rng(0).normal(size=(8, 3))
    with pytest.raises(er.errors.EmpiriskError, match=r"X holds numbers as large as .*; beyond 1e\+30"):
        er.PCA(2, er.Network([3], epochs=1)).fit(X)
