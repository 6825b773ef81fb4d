"""Additive machines: steps by brute force, sums that add up, constraints that hold."""

import itertools
import os
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.errors import Unsuitable
from empirisk.trees.additive.cycles import GrownShape
from empirisk.trees.additive.steps import accumulate, column_step, interaction, pair_step
from tests.estimator_checks import check_contract

RANDOM = np.random.default_rng(5)
X = RANDOM.uniform(-2, 2, size=(1200, 4))
F = np.sin(2 * X[:, 0]) + X[:, 1] + 1.5 * X[:, 2] * X[:, 3]
Y = F + 0.1 * RANDOM.normal(size=len(X))
SMALL = {"n_bags": 3, "random_state": 0}


def gain(sums, l2):
    return float(sums[0] ** 2 / (sums[1] + l2))


@pytest.mark.parametrize("sign", [0, 1, -1])
def test_a_step_of_two_leaves_is_the_best_one(sign):
    for _ in range(20):
        sums = np.zeros((256, 2))
        sums[:9] = np.column_stack([RANDOM.normal(size=9), RANDOM.uniform(0.5, 2, 9)])
        mass = np.zeros(256)
        mass[:9] = RANDOM.integers(1, 4, 9)
        step = np.empty(256)
        column_step(sums, mass, np.arange(9), 2, 3.0, 0.1, sign, np.empty((5, 64)), step)
        cuts = [k for k in range(1, 9) if mass[:k].sum() >= 3 and mass[k:9].sum() >= 3]
        best = max(cuts, key=lambda k: gain(sums[:k].sum(axis=0), 0.1) + gain(sums[k:9].sum(axis=0), 0.1))
        low, high = (-part[0] / (part[1] + 0.1) for part in (sums[:best].sum(axis=0), sums[best:9].sum(axis=0)))
        if sign * (high - low) < 0:  # pooled
            total = sums[:9].sum(axis=0)
            low = high = -total[0] / (total[1] + 0.1)
        assert step[:9] == pytest.approx(np.where(np.arange(9) < best, low, high))
        assert not step[9:].any()


def halves(box):
    a, b, c, d = box
    rows = [((a, k, c, d), (k, b, c, d)) for k in range(a + 1, b)]
    return rows + [((a, b, c, k), (a, b, k, d)) for k in range(c + 1, d)]


def best_half(cells, box):
    """What a box gains whole, or in its best two parts."""

    def value(a, b, c, d):
        return gain(cells[a:b, c:d].sum(axis=(0, 1)), 0.1)

    return max([value(*box), *(value(*one) + value(*two) for one, two in halves(box))])


def test_a_step_of_a_pair_is_the_best_tree_of_two_levels():
    for _ in range(5):
        cells = np.dstack([RANDOM.normal(size=(4, 5)), RANDOM.uniform(0.5, 2, (4, 5)), np.ones((4, 5))])
        total = np.zeros((5, 6, 3))
        accumulate(cells, total)
        step = np.empty((4, 5))
        pair_step(total, 1.0, 0.1, np.zeros((3, 3)), step)

        best = max(sum(best_half(cells, box) for box in pair) for pair in halves((0, 4, 0, 5)))
        # What a step lowers the loss by, twice: -2 g s - (h + l2 of its leaf) s^2, summed over its leaves.
        found = sum(gain(cells[step == level].sum(axis=0), 0.1) for level in np.unique(step))
        assert found == pytest.approx(best)


def test_interactions_are_gains_beyond_two_cuts():
    cells = np.dstack([RANDOM.normal(size=(3, 4)), np.ones((3, 4)), np.ones((3, 4))])
    total = np.zeros((4, 5, 3))
    accumulate(cells, total)

    def value(part):
        return gain(part.sum(axis=(0, 1)), 0.0)

    best = 0.0
    for a, b in itertools.product(range(1, 3), range(1, 4)):
        corners = (cells[:a, :b], cells[:a, b:], cells[a:, :b], cells[a:, b:])
        cuts = (cells[:a], cells[a:], cells[:, :b], cells[:, b:])
        best = max(best, sum(map(value, corners)) - sum(map(value, cuts)) + value(cells))
    assert interaction(total, 1.0, 0.0) == pytest.approx(best)


@pytest.mark.row("T10")
def test_it_finds_shapes_and_pairs_and_its_parts_add_up():
    machine = er.AdditiveRegressor(**SMALL).fit(X[:900], Y[:900])
    assert machine.pairs_[0].tolist() == [2, 3]
    assert machine.score(X[900:], Y[900:]) > 0.95
    parts = machine.parts(X)
    assert list(machine.part_names()[:5]) == ["x0", "x1", "x2", "x3", "x2 x3"]
    assert parts.sum(axis=1) + machine.intercept_ == pytest.approx(machine.predict(X), abs=1e-9)
    columns = machine.contributions(X)[:, :, 0]
    assert columns.sum(axis=1) + machine.intercept_ == pytest.approx(machine.predict(X), abs=1e-9)
    # Shapes have mean zero over the rows learned from, and pairs hold nothing that a column alone could say.
    assert machine.parts(X[:900]).mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert np.corrcoef(parts[:, 0], np.sin(2 * X[:, 0]))[0, 1] > 0.98
    assert machine.feature_importances_.argmax() in (1, 2, 3)
    plain = er.AdditiveRegressor(interactions=0, **SMALL).fit(X[:900], Y[:900])
    assert len(plain.pairs_) == 0
    assert plain.score(X[900:], Y[900:]) < 0.7


@pytest.mark.row("T10")
def test_classes_two_and_more():
    two = er.AdditiveClassifier(**SMALL).fit(X[:900], F[:900] > 0)
    assert two.score(X[900:], F[900:] > 0) > 0.9
    assert two.predict_proba(X).sum(axis=1) == pytest.approx(1)
    labels = np.array(["a", "b", "c"])[np.digitize(F, [-1, 1])]
    three = er.AdditiveClassifier(n_bags=2, random_state=0, max_iter=100).fit(X[:900], labels[:900])
    assert three.score(X[900:], labels[900:]) > 0.8
    assert three.parts(X).sum(axis=1) + three.intercept_ == pytest.approx(three.decision_function(X), abs=1e-9)


@pytest.mark.parametrize("loss", ["huber", "poisson", "gamma"])
def test_other_smooth_losses(loss):
    rate = np.exp(np.sin(2 * X[:, 0]))
    y = RANDOM.poisson(rate) if loss == "poisson" else rate * RANDOM.gamma(20, 1 / 20, len(X))
    machine = er.AdditiveRegressor(loss, interactions=0, max_iter=200, **SMALL).fit(X[:900], y[:900])
    assert np.corrcoef(machine.predict(X[900:]), rate[900:])[0, 1] > 0.9
    with pytest.raises(Unsuitable, match="has corners"):
        er.AdditiveRegressor("absolute").fit(X, Y)


@pytest.mark.row("T10")
def test_constraints_hold_exactly_everywhere():
    noisy = Y + 2 * RANDOM.normal(size=len(X))
    machine = er.AdditiveRegressor(monotonic_cst=[1, -1, 0, 0], **SMALL).fit(X, noisy)
    assert not np.isin(machine.pairs_, (0, 1)).any()
    rows = RANDOM.uniform(-3, 3, size=(50, 4))
    for column, sign in ((0, 1), (1, -1)):
        grid = np.sort(RANDOM.uniform(-3, 3, 400))
        for row in rows[:10]:
            moved = np.tile(row, (400, 1))
            moved[:, column] = grid
            assert (sign * np.diff(machine.predict(moved)) >= 0).all()
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = er.AdditiveRegressor(monotonic_cst={"b": -1, "a": 1}, **SMALL).fit(frame, noisy)
    assert np.array_equal(named.shapes_, machine.shapes_)


@pytest.mark.row("T10")
def test_categories_and_missing_values_have_bins_of_their_own():
    words = RANDOM.choice(["red", "green", "blue"], len(X))
    frame = pd.DataFrame({"x": np.where(RANDOM.random(len(X)) < 0.2, np.nan, X[:, 0]), "word": words})
    y = np.where(frame.x.isna(), 3.0, np.sin(2 * X[:, 0])) + 2.0 * (words == "green")
    machine = er.AdditiveRegressor(interactions=0, **SMALL).fit(frame, y)
    assert machine.score(frame, y) > 0.99
    new = pd.DataFrame({"x": [np.nan, np.nan], "word": ["green", "red"]})
    assert machine.predict(new) == pytest.approx([5.0, 3.0], abs=0.2)
    assert np.isfinite(machine.predict(pd.DataFrame({"x": [0.0], "word": ["never seen"]}))).all()
    figure = er.plots.shapes(machine)
    assert {axes.get_xlabel() for axes in figure.axes} == {"x", "word"}
    with pytest.raises(ValueError, match="output=1"):
        er.plots.shapes(machine, output=1)
    assert len(er.plots.shapes(er.AdditiveRegressor(**SMALL).fit(X, Y), most=5).axes) >= 5


def test_a_random_target_is_not_learned():
    machine = er.AdditiveRegressor(**SMALL).fit(X[:900], RANDOM.normal(size=900))
    assert np.var(machine.predict(X[900:])) < 0.05


def test_weights_are_repetition_and_the_order_does_not_matter():
    weights = RANDOM.integers(0, 3, 300)
    machine = er.AdditiveRegressor(n_bags=2, max_iter=20, interactions=2, random_state=0)
    weighted = clone(machine).fit(X[:300], Y[:300], weights)
    repeated = clone(machine).fit(np.repeat(X[:300], weights, axis=0), np.repeat(Y[:300], weights))
    order = RANDOM.permutation(300)
    mixed = clone(machine).fit(X[order], Y[order], weights[order])
    assert repeated.predict(X) == pytest.approx(weighted.predict(X), abs=1e-9)
    assert mixed.predict(X) == pytest.approx(weighted.predict(X), abs=1e-9)


def test_more_threads_give_the_same_bits():
    machine = er.AdditiveClassifier(n_bags=4, max_iter=20, random_state=0)
    with er.config(threads=1):
        alone = clone(machine).fit(X, F > 0).decision_function(X)
    with er.config(threads=3):
        together = clone(machine).fit(X, F > 0).decision_function(X)
    assert np.array_equal(alone, together)


def test_ctrl_c_keeps_what_was_learned():
    machine = er.AdditiveRegressor(max_iter=10**6, n_iter_no_change=10**6, interactions=0, n_bags=2)
    clone(machine).set_params(max_iter=1).fit(X, Y)  # compiled
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="AdditiveRegressor was interrupted"):
        machine.fit(X, Y)
    assert machine.stopped_ == "interrupted"
    assert machine.score(X, Y) > 0.1  # the pair is most of it


def test_a_time_limit_ends_it():
    with pytest.warns(Warning, match="max_time"):
        machine = er.AdditiveRegressor(max_time=1e-6, **SMALL).fit(X, Y)
    assert machine.stopped_ == "max_time"
    assert machine.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize(
    "argument",
    [
        {"n_bags": 0},
        {"interactions": -1},
        {"validation_fraction": 1.0},
        {"max_leaf_nodes": 100},
        {"learning_rate": 0.0},
    ],
    ids=repr,
)
def test_arguments_are_checked(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        er.AdditiveRegressor(**argument).fit(X, Y)


@pytest.mark.parametrize("machine", [er.AdditiveClassifier, er.AdditiveRegressor])
def test_contract(machine):
    check_contract(machine(n_bags=2, max_iter=50))


def test_of_pairs_that_gain_the_same_rounding_takes_none():
    """Five rows in five bins of twelve columns: many pairs gain the same, and the first of them is taken."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        X, y, times = random.normal(size=(5, 12)), np.array([1, 0, 1, 0, 0]), np.array([1, 3, 1, 3, 3])
        machine = er.AdditiveClassifier(interactions=2, max_iter=3, n_bags=2, random_state=0)
        weighted = machine.fit(X, y, sample_weight=times)
        rows = random.permutation(np.repeat(np.arange(5), times))
        repeated = clone(machine).fit(X[rows], y[rows])
        np.testing.assert_array_equal(weighted.pairs_, repeated.pairs_)
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize(("second", "moved"), [(1.0 - 1e-15, False), (0.9, True)])
def test_of_cycles_that_are_as_good_rounding_takes_none(monkeypatch, second, moved):
    losses = itertools.chain([1.0], [second] * 4, itertools.repeat(2.0))  # after each of four columns
    monkeypatch.setattr("empirisk.trees.additive.cycles.Bag.loss", lambda bag: next(losses))
    machine = er.AdditiveRegressor(n_bags=1, interactions=0, max_iter=3, random_state=0).fit(X[:100], Y[:100])
    assert np.any(machine.shapes_ != 0) == moved


def test_columns_of_noise_rest_while_others_learn(monkeypatch):
    rows = RANDOM.uniform(-2, 2, size=(1000, 12))
    truth = np.sin(4 * rows[:, 0]) * 3 + rows[:, 1] * rows[:, 2]
    target = truth + 2 * RANDOM.normal(size=len(rows))
    machine = er.AdditiveRegressor(interactions=3, **SMALL)
    errors, noise = [], []
    for rests in (True, False):
        if not rests:
            monkeypatch.setattr("empirisk.trees.additive.cycles.GrownShape.note", lambda own, change, loss: None)
        machine.fit(rows, target)
        errors.append(np.mean((machine.predict(rows) - truth) ** 2))
        noise.append(machine.feature_importances_[3:].sum())
    assert errors[0] < 0.7 * errors[1]
    assert noise[0] < 0.7 * noise[1]


def test_a_term_keeps_the_shape_at_which_its_steps_had_helped_most():
    own = GrownShape(SimpleNamespace(), np.zeros((1, 2)))
    for step, (change, misses) in enumerate([(0.1, 1), (0.1, 2), (-0.5, 0), (-1e-16, 1), (0.2, 2), (-0.1, 3)]):
        own.shape += 1.0
        own.note(change, 1.0)
        assert own.misses == misses
        assert own.best[0, 0] == (3 if step >= 2 else 0)


def test_how_many_pairs_there_are_follows_the_table():
    machine = er.AdditiveRegressor()
    counts = [machine._count_pairs(rows * width, width) for rows, width in ((1000, 8), (1000, 30), (500_000, 30))]
    assert counts == [24, 50, 10]
    assert er.AdditiveRegressor(interactions=7)._count_pairs(10**9, 30) == 7
    found = er.AdditiveRegressor(n_bags=2, max_iter=2, random_state=0).fit(X, Y).pairs_
    assert 2 <= len(found) <= 6  # of four columns there are six
