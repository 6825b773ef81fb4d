"""Networks go on: `partial_fit` over portions of rows, and `warm_start` from the last weights."""

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er


def rings(rows, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 2))
    return X, np.where(np.linalg.norm(X, axis=1) < 1.2, "in", "out")


@pytest.mark.row("L16")
@pytest.mark.row("W2")
def test_portions_are_learned_from_as_they_come(tmp_path):
    X, y = rings(2000)
    Z, z = rings(500, 1)
    machine = er.LogisticRegression(
        C=10.0, features=er.Network([16], "tanh", learning_rate_init=0.03, batch_size=10, random_state=0)
    )
    scores = []
    for portion in 3 * np.array_split(np.arange(2000), 40):
        machine.partial_fit(X[portion], y[portion], classes=["in", "out"])
        scores.append(machine.score(Z, z))
    assert scores[-1] > 0.93 > scores[0]
    assert machine.features_.n_steps_ == 600
    assert machine.certificate_.status == machine.stopped_ == "partial_fit"
    assert machine.seen_.tolist() == [[6000, 6000]]
    losses = machine.history_["loss"]
    assert len(losses) == 120
    assert losses[-5:].mean() < 0.5 * losses[0]
    # A file in the midst goes on to the same bits.
    er.save(machine, tmp_path / "midst.model")
    loaded = er.load(tmp_path / "midst.model")
    for goes_on in (machine, loaded):
        goes_on.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(loaded.coef_, machine.coef_)
    np.testing.assert_array_equal(loaded.features_.weights_["0.weight"], machine.features_.weights_["0.weight"])


@pytest.mark.row("L16")
def test_a_call_makes_one_pass_over_its_rows():
    X, y = rings(300)
    machine = er.LogisticRegression(features=er.Network([4], batch_size=128, random_state=0))
    machine.partial_fit(X, y, classes=["in", "out"])
    assert machine.features_.n_steps_ == 3
    machine.partial_fit(X[:1], y[:1])  # one row, and one class
    assert machine.features_.n_steps_ == 4
    # The first loss is that of the first weights, by the formula.
    first = er.Network([4], random_state=0).fit(X)
    draw = np.random.default_rng([first.seed_, 0, 1])
    head = (draw.normal(size=(4, 1)) / 2).astype(np.float32)
    margins = np.where(y == "out", 1, -1) * (first.transform(X) @ head)[:, 0]
    assert machine.history_["loss"][0] == pytest.approx(np.logaddexp(0, -margins).mean(), rel=1e-5)


@pytest.mark.row("L16")
@pytest.mark.parametrize(
    ("machine", "target"),
    [
        (er.Ridge(C=10.0), lambda X: 500 + 20 * X[:, 0] * X[:, 1]),
        (er.Regressor(["squared", "absolute"], C=10.0), lambda X: np.column_stack([X[:, 0] ** 2, X[:, 1]])),
    ],
    ids=["far from zero", "a loss each"],
)
def test_numbers_are_learned_from_portions(machine, target):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    y = target(X)
    machine = clone(machine).set_params(
        features=er.Network([16], "tanh", learning_rate_init=0.02, batch_size=50, random_state=0)
    )
    for _ in range(4):
        for portion in np.array_split(np.arange(3000), 10):
            machine.partial_fit(X[portion], y[portion])
    assert machine.score(X, y) > 0.9


def test_classes_beyond_two_and_a_pass_after_a_fit():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, 2))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    network = er.Network([16], "tanh", epochs=300, n_init=1, learning_rate_init=0.01, random_state=0)
    machine = er.LogisticRegression(C=10.0, features=network).fit(X[:300], y[:300])
    fitted, before = machine.score(X, y), machine.decision_function(X)
    machine.partial_fit(X[300:], y[300:])
    assert not np.array_equal(machine.decision_function(X), before)
    assert machine.score(X, y) > fitted - 0.03
    with pytest.raises(er.errors.EmpiriskError, match="not among the classes"):
        machine.partial_fit(X[:3], [0, 1, 7])
    with pytest.raises(er.errors.EmpiriskError, match="beyond all numbers; lower the network's rate"):
        clone(machine).set_params(features__learning_rate_init=1e30).partial_fit(1e6 * X, y, classes=[0, 1, 2])


def test_frozen_layers_and_masks_hold():
    X, y = rings(100)
    mask = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    network = er.Network([3, 4], "tanh", masks={"0.weight": mask}, freeze=[1], random_state=0)
    machine = er.LogisticRegression(features=network).partial_fit(X, y, classes=["in", "out"])
    before = {name: value.copy() for name, value in machine.features_.weights_.items()}
    after = machine.partial_fit(X, y).features_.weights_
    np.testing.assert_array_equal(after["1.weight"], before["1.weight"])
    assert not np.array_equal(after["0.weight"], before["0.weight"])
    assert not after["0.weight"][mask == 0].any()


@pytest.mark.row("L16")
@pytest.mark.parametrize("machine", [er.LogisticRegression(C=10.0), er.Ridge(C=10.0)], ids=repr)
def test_a_warm_start_goes_on_from_the_last_weights(machine):
    X, y = rings(200)
    y = y if hasattr(machine, "predict_proba") else 300 + 20 * X[:, 0] * X[:, 1]
    network = er.Network([8], "tanh", epochs=40, n_init=1, random_state=0)
    warm = clone(machine).set_params(features=network, warm_start=True).fit(X, y)
    reached = [whole(warm)]
    for _ in range(3):
        reached.append(whole(warm.fit(X, y)))
    assert reached[-1] < reached[0]
    first = warm.features_.history_["objective"][0]
    assert first < 1.2 * reached[0]  # it does not begin anew
    assert first < 0.9 * clone(warm).fit(X, y).features_.history_["objective"][0]
    cold = clone(warm).set_params(warm_start=False)
    np.testing.assert_array_equal(cold.fit(X, y).coef_, cold.fit(X, y).coef_)


def test_a_warm_start_never_ends_higher_where_lbfgs_ends_it():
    X, y = rings(100)
    machine = er.LogisticRegression(C=10.0, features=er.Network([5], random_state=3), warm_start=True).fit(X, y)
    reached = whole(machine)
    assert whole(machine.fit(X, y)) <= reached * (1 + 1e-6)


def test_a_warm_start_of_other_layers_or_classes_begins_anew():
    X, y = rings(60)
    machine = er.LogisticRegression(features=er.Network([4], epochs=5, n_init=1, random_state=0), warm_start=True).fit(
        X, y
    )
    wider = machine.set_params(features__widths=[6]).fit(X, y)
    np.testing.assert_array_equal(wider.coef_, clone(wider).fit(X, y).coef_)
    other = wider.fit(X, np.arange(60) % 3)
    np.testing.assert_array_equal(other.coef_, clone(other).fit(X, np.arange(60) % 3).coef_)


def whole(machine):
    """The objective, the penalty on the network included."""
    weights = machine.features_.weights_["0.weight"].astype(float)
    return machine.certificate_.primal + 0.5 * np.sum(weights**2)
