"""Linear functions in the leaves of boosting: by least squares, only where they help, refused where they cannot be."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_friedman1

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.exports.shap import tree_model
from empirisk.linalg.hashes import equal_rows
from empirisk.trees.linear_leaves import FOLDS, PRIOR_ROWS
from empirisk.trees.nodes import Nodes
from empirisk.trees.rounds import folds_of
from tests.estimator_checks import check_contract

L2, RATE = 0.3, 0.5
ONE = {"n_estimators": 1, "learning_rate": RATE, "max_leaf_nodes": 6, "min_samples_leaf": 5, "l2_regularization": L2}


@pytest.fixture(scope="module")
def numbers():
    X, y = make_friedman1(200, 5, noise=1.0, random_state=0)
    X[::6, 0] = np.nan
    return X, y


def path_columns(nodes, leaf):
    parents, found = nodes.parents(), set()
    while parents[leaf] >= 0:
        leaf = parents[leaf]
        found.add(int(nodes.feature[leaf]))
    return sorted(found)


def slopes_by_least_squares(Z, g, h, scale, penalty):
    """b that makes least  sum g b z + h (b z)^2 / 2 + penalty sum (b s)^2 / 2:  rows at the ends are added."""
    A = np.vstack([np.sqrt(h)[:, None] * Z, np.sqrt(penalty) * np.diag(scale)])
    return np.linalg.lstsq(A, np.append(-g / np.sqrt(h), np.zeros(Z.shape[1])), rcond=None)[0]


def naive_round(machine, X, g, h, whole, fold=None):
    """The step of the only tree of a machine on its training rows, and how many leaves have slopes."""
    nodes, step, sloped = Nodes.unpack(machine.packed_), np.zeros(len(X)), 0
    leaves, penalty = nodes.predict_leaf(X)[:, 0], L2 + PRIOR_ROWS * whole
    for leaf in np.unique(leaves):
        rows, columns = np.flatnonzero(leaves == leaf), path_columns(nodes, leaf)
        constant = -g[rows].sum() / (h[rows].sum() + L2)
        step[rows] = RATE * constant
        rows = rows[~np.isnan(X[np.ix_(rows, columns)]).any(axis=1)]
        own, hessian = X[np.ix_(rows, columns)], h[rows]
        Z = own - hessian @ own / hessian.sum()
        scale, slope = np.ptp(Z, axis=0) / 2, g[rows] + hessian * constant
        change = 0.0
        for k in range(FOLDS if fold is not None else 0):
            out = fold[rows] == k
            said = Z[out] @ slopes_by_least_squares(Z[~out], slope[~out], hessian[~out], scale, penalty)
            change += said @ slope[out] + 0.5 * hessian[out] @ said**2
        if change <= 0:
            step[rows] += RATE * Z @ slopes_by_least_squares(Z, slope, hessian, scale, penalty)
            sloped += 1
    return step, sloped


@pytest.mark.row("T8")
def test_slopes_are_ridge_regressions_on_gradient_and_curvature(numbers):
    X, y = numbers
    weights = np.random.default_rng(0).random(len(y)) + 0.5
    machine = er.BoostingRegressor(leaves="linear", **ONE).fit(X, y, sample_weight=weights)
    start = weights @ y / weights.sum()
    step, _ = naive_round(machine, X, 2 * weights * (start - y), 2 * weights, 2.0)
    np.testing.assert_allclose(machine.predict(X), start + step, rtol=1e-9)
    labels = y > np.median(y) + 1
    machine = er.BoostingClassifier(leaves="linear", **ONE).fit(X, labels)
    start = machine.baseline_[0]
    p = expit(start)
    step, _ = naive_round(machine, X, p - labels, np.full(len(y), p * (1 - p)), 0.25)
    np.testing.assert_allclose(machine.decision_function(X), start + step, rtol=1e-9)


def test_auto_has_slopes_where_rows_that_they_were_not_fitted_to_gain(numbers):
    X, y = numbers
    kept = set()
    for seed in range(5):
        target = y * (seed > 1) + 5 * np.random.default_rng(seed).normal(size=len(y))
        machine = er.BoostingRegressor(leaves="auto", **ONE).fit(X, target)
        fold = folds_of(equal_rows(X, target)[1])
        step, sloped = naive_round(machine, X, 2 * (target.mean() - target), np.full(len(y), 2.0), 2.0, fold)
        np.testing.assert_allclose(machine.predict(X), target.mean() + step, rtol=1e-9)
        assert np.count_nonzero(machine.packed_.get("slope_counts", 0)) == sloped
        kept.add(sloped)
    assert len(kept) > 1


def test_a_line_is_learned_and_ends_where_the_rows_end():
    X = np.linspace(0, 1, 300)[:, None]
    options = {"n_estimators": 5, "learning_rate": 1.0, "max_leaf_nodes": 2, "l2_regularization": 0.0}
    errors = {}
    for leaves in ("constant", "linear", "auto"):
        machine = er.BoostingRegressor(leaves=leaves, **options).fit(X, 10 * X[:, 0])
        errors[leaves] = np.abs(machine.predict(X) - 10 * X[:, 0]).mean()
    assert errors["linear"] == pytest.approx(errors["auto"])
    assert errors["linear"] < 0.3 * errors["constant"]
    assert machine.predict([[-5.0], [9.0]]) == pytest.approx(machine.predict([[0.0], [1.0]]))
    assert machine.predict([[np.nan]]) == pytest.approx(5.0, abs=3.0)  # constants of leaves


def test_noise_has_few_slopes():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 4)), random.normal(size=3000)
    machine = er.BoostingRegressor(leaves="auto", n_estimators=20).fit(X, y)
    leaves = Nodes.unpack(machine.packed_).is_leaf
    assert np.count_nonzero(machine.packed_["slope_counts"]) < 0.3 * leaves.sum()


@pytest.mark.parametrize("leaves", ["linear", "auto"])
@pytest.mark.parametrize("subsample", [1.0, 0.7])
def test_stages_stops_and_further_rounds(numbers, leaves, subsample):
    X, y = numbers
    options = {"leaves": leaves, "subsample": subsample, "random_state": 0, "min_samples_leaf": 5}
    machine = er.BoostingRegressor(n_estimators=9, **options).fit(X, y)
    stages = list(machine.staged_predict(X))
    np.testing.assert_allclose(stages[-1], machine.predict(X), rtol=1e-12)
    np.testing.assert_allclose(machine.staged_losses(X, y), machine.history_["loss"], rtol=1e-12)
    again = er.BoostingRegressor(n_estimators=4, warm_start=True, **options).fit(X, y)
    again.set_params(n_estimators=9).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    rows = {"X_val": X[150:], "y_val": y[150:]}
    stopped = er.BoostingRegressor(n_estimators=30, early_stopping=True, **options).fit(X[:150], y[:150], **rows)
    held = stopped.history_["validation_loss"]
    np.testing.assert_allclose(stopped.staged_losses(X[150:], y[150:]), held[: stopped.n_estimators_], rtol=1e-12)
    stopped.set_params(refit=True).fit(X[:150], y[:150], **rows)
    whole = er.BoostingRegressor(n_estimators=stopped.n_estimators_, **options).fit(X, y)
    assert subsample < 1 or np.array_equal(stopped.predict(X), whole.predict(X))


@pytest.mark.parametrize("leaves", ["linear", "auto"])
def test_weights_are_repetition_and_threads_and_units_do_not_matter(numbers, leaves):
    X, y = numbers
    machine = er.BoostingRegressor(leaves=leaves, n_estimators=8, random_state=0)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted, every = clone(machine).fit(X, y, sample_weight=times), np.repeat(np.arange(len(y)), times)
    repeated = clone(machine).fit(X[every], y[every])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    many, target = make_friedman1(20_000, 10, noise=1.0, random_state=0)
    said = []
    for threads in (1, 3):
        with er.config(threads=threads):
            said.append(clone(machine).fit(many, target).predict(many))
    np.testing.assert_array_equal(*said)
    if leaves == "linear":  # "auto" draws the folds of rows by what the rows hold
        scaled = clone(machine).fit(1e6 * X - 1e7, y)
        np.testing.assert_allclose(scaled.predict(1e6 * X - 1e7), machine.fit(X, y).predict(X), rtol=1e-6)


@pytest.mark.parametrize("outputs", ["classes", "numbers"])
def test_several_outputs(numbers, outputs):
    X, y = numbers
    if outputs == "numbers":
        machine = er.BoostingRegressor(leaves="linear", n_estimators=5).fit(X, np.column_stack([y, -y]))
        np.testing.assert_allclose(machine.predict(X)[:, 1], -machine.predict(X)[:, 0], rtol=1e-9)
    else:
        machine = er.BoostingClassifier(leaves="linear", n_estimators=5).fit(X, np.digitize(y, [10, 15]))
        last = list(machine.staged_decision_function(X))[-1]
        np.testing.assert_allclose(last, machine.decision_function(X), rtol=1e-12)


def test_slopes_keep_to_groups_of_columns_and_leave_categories_alone(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    machine = er.BoostingRegressor(leaves="linear", interaction_cst="no_interactions", n_estimators=20).fit(X, y)
    a, b = X[:50], X[50:100]
    mixed = np.column_stack([a[:, :2], b[:, 2:]]), np.column_stack([b[:, :2], a[:, 2:]])
    np.testing.assert_allclose(sum(map(machine.predict, (a, b))), sum(map(machine.predict, mixed)))
    X[:, 1] = np.random.default_rng(0).integers(0, 30, len(X))  # as mean targets
    X[:, 2] = np.random.default_rng(1).integers(0, 3, len(X))  # as sets
    target = y + 5 * (X[:, 2] == 1) + 5 * (X[:, 1] % 3)
    machine = er.BoostingRegressor(leaves="linear", categorical_features=[1, 2], n_estimators=20).fit(X, target)
    assert set(machine.packed_["slope_columns"]) == {0, 3, 4}
    last = list(machine.staged_losses(X, target))[-1]
    np.testing.assert_allclose(last, np.mean((machine.predict(X) - target) ** 2))


def test_what_has_no_slopes_is_refused_or_constant(numbers):
    X, y = numbers
    for options in ({"monotonic_cst": {"x1": 1}}, {"loss": "absolute"}, {"loss": "poisson"}):
        machine = er.BoostingRegressor(n_estimators=3, **options)
        with pytest.raises(Unsuitable, match="leaves='constant'"):
            clone(machine).set_params(leaves="linear").fit(X, np.abs(y))
        auto = clone(machine).set_params(leaves="auto").fit(X, np.abs(y))
        np.testing.assert_array_equal(auto.predict(X), machine.fit(X, np.abs(y)).predict(X))
    with pytest.raises(EmpiriskError, match="leaves='curved' is not known"):
        er.BoostingRegressor(leaves="curved").fit(X, y)


def test_what_reads_numbers_of_leaves_refuses(numbers, tmp_path):
    machine = er.BoostingRegressor(leaves="linear", n_estimators=3).fit(*numbers)
    with pytest.raises(AttributeError, match="linear functions"):
        _ = machine.nodes_
    for write in (tree_model, lambda machine: er.export(machine, tmp_path / "it.py")):
        with pytest.raises(Unsuitable):
            write(machine)
    assert machine.apply(numbers[0]).shape == (200, 3)
    assert machine.decision_path(numbers[0])[0].shape[0] == 200


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("slope_counts", lambda found: found + 1),
        ("slope_counts", lambda found: found[::-1].copy()),
        ("slope_columns", lambda found: found + 5),
        ("slope_columns", lambda found: found[:-1]),
        ("slope_values", lambda found: found[:, ::-1].copy()),
        ("slope_values", lambda found: found * np.nan),
        ("slope_values", None),
    ],
)
def test_files_with_wrong_slopes_are_refused(numbers, tmp_path, part, change):
    X, y = numbers
    machine = er.BoostingRegressor(leaves="linear", n_estimators=2, min_samples_leaf=5, max_leaf_nodes=4).fit(X, y)
    er.save(machine, tmp_path / "good.model")
    np.testing.assert_array_equal(er.load(tmp_path / "good.model").predict(X), machine.predict(X))
    found = machine.packed_.pop(part)
    if change is not None:
        machine.packed_[part] = change(found)
    with pytest.raises(EmpiriskError, match="would not load"):
        er.save(machine, tmp_path / "bad.model")


@pytest.mark.parametrize("machine", [er.BoostingClassifier, er.BoostingRegressor])
def test_contract(machine):
    check_contract(machine(leaves="auto", n_estimators=5))
