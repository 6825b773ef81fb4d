"""Gradient boosting: Newton steps as a naive loop makes them, every loss, constraints, early stopping, stages."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification, make_friedman1
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.trees.binned import together
from tests.catalog import MARGIN_LOSSES, RESIDUAL_LOSSES
from tests.trees import naive_boost

pytestmark = [pytest.mark.row("T8"), pytest.mark.row("E2")]

RATE, LEAVES, L2, ROUNDS = 0.3, 5, 0.5, 4
OPTIONS = {
    "learning_rate": RATE,
    "max_leaf_nodes": LEAVES,
    "l2_regularization": L2,
    "n_estimators": ROUNDS,
    "min_samples_leaf": 0,
}


def naive(X, start, derivatives):
    """Scores (n_outputs, n_rows) after some rounds; ``derivatives`` gives gradient and curvature for each output."""
    F = np.repeat(np.atleast_1d(start)[:, None], len(X), axis=1).astype(float)
    for _ in range(ROUNDS):
        G, H = derivatives(F)
        steps = [
            naive_boost.predict(naive_boost.grow(X, g, h, LEAVES, L2), g, h, L2) for g, h in zip(G, H, strict=True)
        ]
        F += RATE * np.array(steps)
    return F


@pytest.fixture(scope="module")
def numbers():
    X, y = make_friedman1(120, 5, noise=1.0, random_state=0)
    X[::6, 0] = np.nan
    return X, y


def test_squared_loss_is_the_naive_loop(numbers):
    X, y = numbers
    weights = np.random.default_rng(0).random(len(y)) + 0.5
    expected = naive(X, weights @ y / weights.sum(), lambda F: (2 * weights * (F - y), 2 * weights * np.ones_like(F)))
    machine = er.BoostingRegressor(**OPTIONS).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(machine.predict(X), expected[0], rtol=1e-9)


def test_logistic_loss_is_the_naive_loop(numbers):
    X, y = numbers
    y = (y > np.median(y) + 1).astype(int)
    expected = naive(X, np.log(y.mean() / (1 - y.mean())), lambda F: (expit(F) - y, expit(F) * expit(-F)))
    machine = er.BoostingClassifier(**OPTIONS).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), expected[0], rtol=1e-7)
    np.testing.assert_allclose(machine.predict_proba(X)[:, 1], expit(expected[0]), rtol=1e-7)


def test_softmax_is_the_naive_loop(numbers):
    X, y = numbers
    y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    hot = (y == np.arange(3)[:, None]).astype(float)

    def derivatives(F):
        P = softmax(F, axis=0)
        return P - hot, 1.5 * P * (1 - P)

    expected = naive(X, np.log(hot.mean(axis=1)), derivatives)
    machine = er.BoostingClassifier(**OPTIONS).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), expected.T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(machine.predict_proba(X), softmax(expected.T, axis=1), rtol=1e-7)


def test_leaves_of_the_absolute_loss_are_medians(numbers):
    X, y = numbers
    machine = er.BoostingRegressor("absolute", learning_rate=1.0, n_estimators=1, max_leaf_nodes=4).fit(X, y)
    assert machine.baseline_[0] == np.median(y)
    leaves = machine.nodes_.predict_leaf(X)[:, 0]
    for leaf in np.unique(leaves):
        assert machine.predict(X)[leaves == leaf] == pytest.approx(np.median(y[leaves == leaf]))


SMOOTH = [loss for loss in MARGIN_LOSSES if loss.name() not in ("zero_one", "perceptron")]


@pytest.mark.parametrize("loss", RESIDUAL_LOSSES, ids=repr)
def test_every_loss_of_numbers_falls(numbers, loss):
    X, y = numbers
    machine = er.BoostingRegressor(loss, n_estimators=40).fit(X, y)
    start = loss.value(y, np.full(len(y), machine.baseline_[0])).mean()
    reached = loss.value(y, machine.predict(X)).mean()
    assert reached < 0.5 * start
    assert machine.history_["loss"][-1] == pytest.approx(reached, rel=1e-9)
    assert (np.diff(machine.history_["loss"]) <= 1e-9 * start).all()


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_loss_of_the_margin_learns(loss, classes):
    X, y = make_classification(500, 6, n_informative=4, n_classes=classes, random_state=0)
    machine = er.BoostingClassifier(loss, n_estimators=60).fit(X, y)
    assert machine.score(X, y) > 0.9
    assert machine.history_["loss"][-1] < 0.5 * machine.history_["loss"][0]
    if loss.probabilistic:
        shares = machine.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert np.array_equal(machine.classes_[shares.argmax(axis=1)], machine.predict(X))
    else:
        assert not hasattr(machine, "predict_proba")


def test_stages_end_where_predictions_are(numbers):
    X, y = numbers
    machine = er.BoostingRegressor(n_estimators=7).fit(X, y)
    stages = list(machine.staged_predict(X))
    assert len(stages) == 7
    assert np.array_equal(stages[-1], machine.predict(X))
    shorter = er.BoostingRegressor(n_estimators=3).fit(X, y)
    assert np.array_equal(stages[2], shorter.predict(X))
    X, y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    machine = er.BoostingClassifier(n_estimators=7).fit(X, y)
    assert np.array_equal(list(machine.staged_predict(X))[-1], machine.predict(X))
    assert np.array_equal(list(machine.staged_predict_proba(X))[-1], machine.predict_proba(X))


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic", "hinge"])
@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_constraints_hold_everywhere(loss, sign):
    random = np.random.default_rng(1)
    X = random.normal(size=(1500, 3))
    y = 1000 * (sign * (X[:, 0] + np.sin(4 * X[:, 0])) + X[:, 1] * X[:, 2]) + 300 * random.normal(size=1500)
    kind = er.BoostingRegressor if loss in ("squared", "absolute") else er.BoostingClassifier
    target = y if kind is er.BoostingRegressor else (y > 0).astype(int)
    machine = kind(loss, n_estimators=40, monotonic_cst=[sign, 0, 0]).fit(X, target)
    grid = np.repeat(random.normal(size=(200, 3)), 50, axis=0)
    grid[:, 0] = np.tile(np.linspace(-3, 3, 50), 200)
    scores = machine.predict(grid) if kind is er.BoostingRegressor else machine.decision_function(grid)
    steps = sign * np.diff(scores.reshape(200, 50), axis=1)
    assert (steps >= -1e-12 * np.abs(scores).max()).all()
    assert steps.sum() > 0
    assert machine.score(X, target) > 0.75  # the constraint does not keep it from learning
    free = kind(loss, n_estimators=40).fit(X, target)
    scores = free.predict(grid) if kind is er.BoostingRegressor else free.decision_function(grid)
    assert (sign * np.diff(scores.reshape(200, 50), axis=1) < 0).any()


@pytest.mark.parametrize("rows", [800, 60_000])  # grown alone, and by a team
def test_interaction_constraints_hold_everywhere(rows):
    """f is a sum of functions of the groups: what one group adds does not depend on the columns of another."""
    random = np.random.default_rng(2)
    X = random.normal(size=(rows, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 0] * X[:, 2]
    machine = er.BoostingRegressor(n_estimators=10, interaction_cst=[[0, 1], [2, 3]]).fit(X, y)
    first, second = random.normal(size=(2, 300, 4))
    crossed, other = np.hstack([first[:, :2], second[:, 2:]]), np.hstack([second[:, :2], first[:, 2:]])

    def excess(machine):
        f = machine.predict
        return np.abs(f(first) + f(second) - f(crossed) - f(other)).max()

    assert excess(machine) < 1e-9
    assert excess(er.BoostingRegressor(n_estimators=10).fit(X, y)) > 0.1
    # It still learns the pairs that are allowed.
    alone = er.BoostingRegressor(n_estimators=10, interaction_cst="no_interactions").fit(X, y)
    assert machine.score(X, y) > alone.score(X, y) + 0.1
    # In a sum of functions of two columns, no three of them change f together.
    pairs = er.BoostingRegressor(n_estimators=10, interaction_cst="pairwise").fit(X, y).predict
    cubes = [np.where([[*corner, True]], first, second) for corner in product([True, False], repeat=3)]
    signs = [(-1) ** sum(corner) for corner in product([True, False], repeat=3)]
    assert np.abs(sum(sign * pairs(cube) for sign, cube in zip(signs, cubes, strict=True))).max() < 1e-9


def test_interaction_constraints_by_name_and_what_they_may_be():
    X, y = np.random.default_rng(0).normal(size=(2, 200, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = er.BoostingRegressor(n_estimators=3, interaction_cst=[["a", "c"]]).fit(frame, y[:, 0])
    placed = er.BoostingRegressor(n_estimators=3, interaction_cst=[{0, 2}, {1}]).fit(frame, y[:, 0])
    np.testing.assert_array_equal(named.predict(frame), placed.predict(frame))
    for given, message in (
        ("all", "'pairwise' or a list"),
        ([["z"]], "names the column 'z'"),
        ([[5]], "names the column 5"),
    ):
        with pytest.raises(ValueError, match=message):
            er.BoostingRegressor(interaction_cst=given).fit(frame, y[:, 0])
    with pytest.raises(ValueError, match="66 groups"):
        er.BoostingRegressor(interaction_cst="pairwise").fit(
            np.random.default_rng(0).normal(size=(50, 12)), np.arange(50)
        )


def test_early_stopping_keeps_the_best_round():
    X, y = make_classification(1500, 10, flip_y=0.3, random_state=0)
    machine = er.BoostingClassifier(
        learning_rate=0.3,
        n_estimators=500,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=8,
        random_state=0,
    ).fit(X, y)
    held = machine.history_["validation_loss"]
    assert machine.stopped_ == "early_stopping"
    assert machine.n_estimators_ == held.argmin() + 1
    assert len(held) == machine.n_estimators_ + 8
    assert len(machine.nodes_.roots) == machine.n_estimators_
    shorter = er.BoostingClassifier(
        learning_rate=0.3,
        n_estimators=machine.n_estimators_,
        early_stopping=True,
        validation_fraction=0.2,
        random_state=0,
    ).fit(X, y)
    assert shorter.stopped_ == "finished"
    assert np.array_equal(shorter.predict_proba(X), machine.predict_proba(X))


@pytest.mark.parametrize("kind", ["numbers", "two", "three", "labels"])
def test_rows_to_stop_by_may_be_given(kind):
    """Stopping by given rows is to keep the best of all stages on them, and `staged_losses` are the losses there."""
    X, y = make_classification(900, 8, n_informative=5, n_classes=3, flip_y=0.3, random_state=0)
    target = {"numbers": y + X[:, 0], "two": y > 0, "three": y, "labels": np.column_stack([y, X[:, 0] > 0])}[kind]
    machine = er.BoostingRegressor() if kind == "numbers" else er.BoostingClassifier()
    machine.set_params(n_estimators=60, learning_rate=0.3)
    weights = np.random.default_rng(0).random(900) + 0.5
    free = clone(machine).fit(X[:600], target[:600])
    losses = free.staged_losses(X[600:], target[600:], weights[600:])
    machine.set_params(early_stopping=True, n_iter_no_change=5)
    rows = {"X_val": X[600:], "y_val": target[600:], "sample_weight_val": weights[600:]}
    machine.fit(X[:600], target[:600], **rows)
    assert machine.n_estimators_ == losses.argmin() + 1 < 60
    np.testing.assert_allclose(machine.history_["validation_loss"], losses[: machine.n_estimators_ + 5], rtol=1e-12)
    machine.set_params(refit=True).fit(X[:600], target[:600], **rows)
    share = 600 / (600 + weights[600:].sum())
    assert machine.n_estimators_ == round((losses.argmin() + 1) / share)
    whole = clone(machine).set_params(early_stopping=False, refit=False, n_estimators=machine.n_estimators_)
    every = np.append(np.ones(600), weights[600:])
    np.testing.assert_array_equal(machine.predict(X), whole.fit(X, target, sample_weight=every).predict(X))


def test_staged_losses_are_those_of_the_answers(numbers):
    X, y = numbers
    machine = er.BoostingRegressor("absolute", n_estimators=7).fit(X, y)
    expected = [np.abs(y - said).mean() for said in machine.staged_predict(X)]
    np.testing.assert_allclose(machine.staged_losses(X, y), expected)
    labels = y > np.median(y)
    machine = er.BoostingClassifier(n_estimators=7).fit(X, labels)
    expected = [log_loss(labels, shares) for shares in machine.staged_predict_proba(X)]
    np.testing.assert_allclose(machine.staged_losses(X, labels), expected)
    np.testing.assert_allclose(machine.staged_errors(X, labels)[-1], 1 - machine.score(X, labels))


def test_a_pipeline_hands_on_the_rows_to_stop_by():
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    options = {"early_stopping": True, "n_iter_no_change": 3}
    with config_context(enable_metadata_routing=True):
        machine = er.BoostingRegressor(**options).set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(PCA(3, random_state=0), machine, transform_input=["X_val"])
        pipeline.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    mapped = pipeline[0].transform(X)
    alone = er.BoostingRegressor(**options).fit(mapped[:300], y[:300], X_val=mapped[300:], y_val=y[300:])
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(mapped))


def test_a_refit_takes_all_rows_in_proportion():
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    options = {"early_stopping": True, "validation_fraction": 0.25, "n_estimators": 400, "random_state": 0}
    stopped = er.BoostingRegressor(**options).fit(X, y)
    whole = er.BoostingRegressor(**options, refit=True).fit(X, y)
    assert whole.n_estimators_ == round(stopped.n_estimators_ / 0.75)
    assert whole.stopped_ == "early_stopping"
    plain = er.BoostingRegressor(n_estimators=whole.n_estimators_).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), plain.predict(X))
    np.testing.assert_array_equal(whole.history_["validation_loss"], stopped.history_["validation_loss"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X_val": [[0.0]]}, "belong together"),
        ({"X_val": [[0.0]], "y_val": [0]}, "set early_stopping=True"),
        ({"X_val": [[0.0]], "y_val": [7], "early_stopping": True}, "classes that were not in the training data"),
        ({"X_val": [[0.0]], "y_val": [0, 1], "early_stopping": True}, "inconsistent numbers of samples"),
        ({"X_val": [[0.0]], "y_val": [[0, 1]], "early_stopping": True}, "2 columns of labels"),
        ({"refit": True}, "set early_stopping=True"),
    ],
    ids=lambda value: "",
)
def test_rows_to_stop_by_must_fit(given, message):
    options = {name: given[name] for name in ("early_stopping", "refit") if name in given}
    rows = {name: given[name] for name in ("X_val", "y_val") if name in given}
    with pytest.raises(ValueError, match=message):
        er.BoostingClassifier(**options).fit([[0.0], [1.0], [2.0]], [0, 1, 0], **rows)


def test_rows_and_columns_can_be_drawn():
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    plain = er.BoostingRegressor(random_state=0).fit(X[:500], y[:500])
    drawn = er.BoostingRegressor(subsample=0.5, max_features=0.5, random_state=0).fit(X[:500], y[:500])
    again = er.BoostingRegressor(subsample=0.5, max_features=0.5, random_state=0).fit(X[:500], y[:500])
    assert np.array_equal(drawn.predict(X), again.predict(X))
    assert not np.array_equal(drawn.predict(X), plain.predict(X))
    assert drawn.score(X[500:], y[500:]) > 0.85
    features = drawn.nodes_.feature
    used = [set(features[drawn.nodes_.roots[k] : drawn.nodes_.roots[k + 1]]) - {-1} for k in range(50)]
    assert max(map(len, used)) <= 5
    assert len(set.union(*used)) == 10


def test_importances_are_fair_to_noise():
    random = np.random.default_rng(2)
    X = np.column_stack([random.integers(0, 2, 2000), random.normal(size=(2000, 5))])
    y = X[:, 0] + random.normal(size=2000)
    machine = er.BoostingRegressor().fit(X[:1000], y[:1000])
    importances = machine.importances(X[1000:], y[1000:], random_state=0)["importance"].to_numpy()
    assert importances[0] > 0.2
    assert (importances[1:] < 0.05).all()


def test_boosting_is_as_good_as_that_of_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    ours = cross_val_score(er.BoostingClassifier(), X, y, cv=5).mean()
    assert ours > cross_val_score(GradientBoostingClassifier(random_state=0), X, y, cv=5).mean() - 0.005
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    ours = cross_val_score(er.BoostingRegressor(max_leaf_nodes=8), X, y, cv=3).mean()
    assert ours > cross_val_score(GradientBoostingRegressor(random_state=0), X, y, cv=3).mean() - 0.01


@pytest.mark.parametrize("exponent", [-250, -100, 100])
def test_the_scale_of_numbers_does_not_matter(numbers, exponent):
    X, y = numbers
    scale = 2.0**exponent
    plain = er.BoostingRegressor(n_estimators=5).fit(X, y).predict(X)
    np.testing.assert_allclose(er.BoostingRegressor(n_estimators=5).fit(X, scale * y).predict(X) / scale, plain)


@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_the_order_of_rows_does_not_matter_even_where_rounding_decides(numbers, subsample):
    X, y = numbers
    random = np.random.default_rng(0)
    order, weights = random.permutation(len(y)), 10 ** random.uniform(-9, 9, len(y))
    machine = er.BoostingRegressor(n_estimators=5, subsample=subsample, random_state=0)
    plain = machine.fit(X, y, sample_weight=weights).predict(X)
    machine.fit(X[order], y[order], sample_weight=weights[order])
    np.testing.assert_array_equal(machine.predict(X), plain)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (er.BoostingClassifier("zero_one"), "no slope"),
        (er.BoostingClassifier("perceptron"), "already least at f = 0"),
        (er.BoostingClassifier("crammer_singer"), "no curvature"),
        (er.BoostingClassifier("absolute"), "not a loss for classification"),
        (er.BoostingRegressor("hinge"), "not a loss for regression"),
    ],
)
def test_losses_that_cannot_be_boosted_are_refused(machine, message):
    X, y = make_classification(60, 4, random_state=0)
    with pytest.raises(Unsuitable, match=message):
        machine.fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be"),
        ({"l2_regularization": -1}, "l2_regularization=-1 must be"),
        ({"subsample": 1.5}, "subsample=1.5 must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change=0 must be"),
        ({"early_stopping": "auto"}, "early_stopping='auto' must be"),
        ({"early_stopping": True, "validation_fraction": 1.0}, "validation_fraction=1 must be below 1"),
        ({"monotonic_cst": [1, 0]}, r"monotonic_cst has shape \(2,\)"),
        ({"monotonic_cst": [2, 0, 0, 0]}, "must hold -1"),
        ({"monotonic_cst": {"age": 1}}, "names columns that X does not have"),
        ({"monotonic_cst": [1, 0, 0, 0], "categorical_features": [0]}, "categories have no order"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters_without_meaning_are_refused(options, message):
    X, y = make_classification(60, 4, random_state=0)
    with pytest.raises(EmpiriskError, match=message):
        er.BoostingRegressor(**options).fit(np.round(X), y)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_bits_are_the_same_on_any_number_of_threads(monkeypatch, loss):
    monkeypatch.setattr(together, "SHARE", 1 << 12)  # so that a table of moderate size is worth 16 threads
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * random.normal(size=20_000) > 0
    found = []
    for threads in (1, 2, 3, 5, 16):
        with er.config(threads=threads):
            found.append(er.BoostingClassifier(loss, n_estimators=3, random_state=0).fit(X, y).packed_)
    for packed in found[1:]:
        assert all(np.array_equal(packed[name], found[0][name]) for name in found[0])
