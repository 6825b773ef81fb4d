"""Rankings: dominance, hulls, cost curves, gains, lift and precision at k, against brute force over thresholds."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.evaluation import cost_curve, dominance, gains, precision_at_k, roc_hull

pytestmark = pytest.mark.row("V10")


def draw(seed, rows=40, levels=12):
    """Classes, scores with ties, and whole weights."""
    random = np.random.default_rng(seed)
    truth = random.random(rows) < 0.4
    truth[:2] = True, False
    scores = np.round(levels * (random.normal(size=rows) + truth)) / levels
    return truth, scores, random.integers(1, 4, size=rows)


def rates(truth, scores, weights=None):
    false, true, _ = roc_curve(truth, scores, sample_weight=weights, drop_intermediate=False)
    return false, true


# --- hulls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_hull_is_what_every_slope_touches(seed):
    truth, scores, weights = draw(seed)
    hull = roc_hull(truth, scores, sample_weight=weights)
    false, true = rates(truth, scores, weights)
    # Concave, above all points, and made of points: the best point for every direction is a corner.
    slopes = [(b[1] - a[1]) / max(b[0] - a[0], 1e-300) for a, b in pairwise(zip(*corners(hull), strict=True))]
    assert (np.diff(slopes) < 0).all()
    assert (np.interp(false, *corners(hull)) >= true - 1e-12).all()
    for angle in np.linspace(0, np.pi / 2, 50):
        best = (np.sin(angle) * true - np.cos(angle) * false).max()
        corner = np.sin(angle) * hull.true_positive_rate - np.cos(angle) * hull.false_positive_rate
        assert corner.max() == pytest.approx(best, abs=1e-12)
    for threshold, f, t in zip(hull.thresholds, *corners(hull), strict=True):
        said = scores >= threshold
        assert f == pytest.approx(weights[said & ~truth].sum() / weights[~truth].sum())
        assert t == pytest.approx(weights[said & truth].sum() / weights[truth].sum())
    assert hull.area >= roc_auc_score(truth, scores, sample_weight=weights) - 1e-12


def corners(hull):
    return hull.false_positive_rate, hull.true_positive_rate


def test_a_coin_between_two_thresholds_reaches_the_edge():
    truth, scores, _ = draw(3, rows=60)
    hull = roc_hull(truth, scores)
    for rate in (0.0, 0.05, 0.3, 0.77, 1.0):
        coin = hull.at(rate)
        first, second = (scores >= threshold for threshold in coin.thresholds)
        chance = (1 - coin.probability) * first + coin.probability * second
        assert chance[~truth].mean() == pytest.approx(rate)
        assert chance[truth].mean() == pytest.approx(coin.true_positive_rate)
        assert coin.true_positive_rate >= np.interp(rate, *rates(truth, scores)) - 1e-12
        many = np.mean([coin.predict(scores, seed) for seed in range(400)], axis=0)
        assert np.abs(many - chance).max() < 0.13


# --- dominance ------------------------------------------------------------------------------------------------------


def precision_along(truth, scores, recalls):
    """Precision at each recall, by false positives that are straight in true positives between thresholds."""
    order = np.unique(scores)[::-1]
    hits = np.array([0, *(np.sum(truth & (scores >= t)) for t in order)])
    alarms = np.array([0, *(np.sum(~truth & (scores >= t)) for t in order)])
    false = np.interp(recalls * truth.sum(), hits + 1e-9 * np.arange(len(hits)), alarms)
    return recalls * truth.sum() / (recalls * truth.sum() + false)


@pytest.mark.parametrize("seed", range(40))
def test_dominance_by_brute_force_and_the_same_for_precision_and_recall(seed):
    random = np.random.default_rng(seed)
    truth, first, _ = draw(seed, rows=14, levels=2)
    worse = first - random.choice([0.0, 2.0], size=14, p=[0.7, 0.3]) * truth
    second = worse if seed % 4 else draw(seed + 99, 14, 2)[1]
    found = dominance(truth, first, second)
    grid = np.linspace(0, 1, 3001)[1:-1] + 1e-7  # beside the steps
    ours, theirs = (np.interp(grid, *rates(truth, scores)) for scores in (first, second))
    above, below = (ours > theirs + 1e-9).any(), (theirs > ours + 1e-9).any()
    # Between the steps alone, curves may differ in their straight rises at 0 or at 1.
    if above and below:
        assert found.winner == "neither"
        gaps = ours - theirs
        changes = np.diff(np.sign(gaps[np.abs(gaps) > 1e-9]))
        assert len(found.roc_crossings) == np.count_nonzero(changes)
    elif above or below:
        assert found.winner == ("first" if above else "second")
        assert len(found.roc_crossings) == 0
    ours, theirs = (precision_along(truth, scores, grid) for scores in (first, second))
    above, below = (ours > theirs + 1e-6).any(), (theirs > ours + 1e-6).any()
    if above or below:
        assert found.winner == ("neither" if above and below else "first" if above else "second")
    for (false, true), (recall, precision) in zip(found.roc_crossings, found.pr_crossings, strict=True):
        assert recall == true
        total = true * truth.sum() + false * (~truth).sum()
        assert precision == pytest.approx(true * truth.sum() / total)
    assert found.areas == pytest.approx([roc_auc_score(truth, scores) for scores in (first, second)])


def test_the_two_sides_of_a_comparison_mirror_each_other():
    truth, first, weights = draw(0)
    second = draw(1)[1]
    one = dominance(truth, first, second, sample_weight=weights)
    other = dominance(truth, second, first, sample_weight=weights)
    assert one.winner == other.winner == "neither"
    np.testing.assert_allclose(one.roc_crossings, other.roc_crossings)
    repeated = dominance(*(np.repeat(part, weights) for part in (truth, first, second)))
    np.testing.assert_allclose(repeated.roc_crossings, one.roc_crossings)
    assert dominance(truth, first, np.exp(first)).winner == "equal"
    assert "equal" in str(dominance(truth, first, first))


def test_weights_in_another_order_make_no_crossings():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floats: the same place all the same."""
    truth = np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype=bool)
    weights = np.array([0.1, 0.2, 0.3, 0.7, 0.1, 0.2, 0.3, 0.7])
    first = np.array([5.0, 4.0, 3.0, 0.0, 9.0, 8.0, 2.0, 1.0])
    second = np.array([3.0, 4.0, 5.0, 0.0, 8.0, 9.0, 1.0, 2.0])
    assert dominance(truth, first, second, sample_weight=weights).winner == "equal"


# --- costs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_curve_is_the_least_of_all_thresholds(seed):
    truth, scores, weights = draw(seed)
    curve = cost_curve(truth, scores, sample_weight=weights)
    false, true = rates(truth, scores, weights)
    for place in np.linspace(0, 1, 101):
        costs = place * (1 - true) + (1 - place) * false
        assert curve.at(place) == pytest.approx(costs.min(), abs=1e-12)
        said = scores >= curve.threshold_at(place)
        misses = 1 - weights[said & truth].sum() / weights[truth].sum()
        alarms = weights[said & ~truth].sum() / weights[~truth].sum()
        assert place * misses + (1 - place) * alarms == pytest.approx(costs.min(), abs=1e-12)
    assert curve.area == pytest.approx(np.mean([curve.at(z) for z in np.linspace(0, 1, 20001)]), abs=1e-4)


def test_the_cost_curve_agrees_with_the_threshold_by_cost():
    truth, scores, _ = draw(7, rows=80)
    for cost in ((1.0, 1.0), (1.0, 6.0), (4.0, 1.0)):
        choice = er.selection.choose_threshold(truth, scores, by="cost", cost=cost)
        most = cost[1] * truth.sum(), cost[0] * (~truth).sum()
        assert cost_curve(truth, scores).at(most[0] / sum(most)) == pytest.approx(choice.value / sum(most))


# --- gains ----------------------------------------------------------------------------------------------------------


def test_gains_and_precision_at_k_are_means_over_the_orders_of_ties():
    truth, scores = np.array([1, 0, 1, 0, 1], dtype=bool), np.array([2.0, 1.0, 1.0, 1.0, 0.0])
    found = gains(truth, scores)
    for k in range(1, 6):
        orders = [np.array([0, *tied, 4]) for tied in permutations([1, 2, 3])]
        assert precision_at_k(truth, scores, k) == pytest.approx(np.mean([truth[order[:k]].mean() for order in orders]))
        assert found.at(k / 5) == pytest.approx(np.mean([truth[order[:k]].sum() / 3 for order in orders]))
        assert found.lift_at(k / 5) == pytest.approx(precision_at_k(truth, scores, k) / 0.6)
    np.testing.assert_allclose(found.precision, found.rate * found.lift)


def test_weights_are_repetition():
    truth, scores, weights = draw(5)
    twice = np.repeat(truth, weights), np.repeat(scores, weights)
    one, other = gains(truth, scores, sample_weight=weights), gains(*twice)
    np.testing.assert_allclose(one.found, other.found)
    np.testing.assert_allclose(one.lift, other.lift)
    assert precision_at_k(truth, scores, 9, sample_weight=weights) == pytest.approx(precision_at_k(*twice, 9))
    assert roc_hull(truth, scores, sample_weight=weights).area == pytest.approx(roc_hull(*twice).area)
    # A row without weight is no threshold.
    more = np.append(scores, 77.0), np.append(truth, False), np.append(weights, 0)
    assert gains(more[1], more[0], sample_weight=more[2]).thresholds[1] < 77


def test_results_of_evaluations_and_classes_are_taken():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 2))
    result = er.evaluate(er.LogisticRegression(), X, np.where(X[:, 0] > 0.5, "yes", "no"))
    assert gains(result).at(1.0) == 1.0
    assert gains(result, positive="no").rate == pytest.approx(1 - gains(result).rate)
    three = er.evaluate(er.LogisticRegression(), X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert roc_hull(three, positive=2).area > 0.9
    with pytest.raises(EmpiriskError, match="positive is missing"):
        roc_hull(three)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: precision_at_k([0, 1], [0.1, 0.2], 3), "k=3 must be above 0 and at most 2"),
        (lambda: precision_at_k([0, 1], [0.1, 0.2], 0), "k=0 must be"),
        (lambda: roc_hull([0, 1], [0.1, 0.2]).at(1.5), "false_positive_rate=1.5"),
        (lambda: cost_curve([0, 1], [0.1, 0.2]).at("x"), "probability_cost='x'"),
        (lambda: gains([0, 0], [0.1, 0.2]), "classes"),
        (lambda: dominance([0, 1], [0.1, 0.2], [0.1]), "one row for each"),
    ],
)
def test_bad_questions_are_answered_in_a_sentence(ask, message):
    with pytest.raises(EmpiriskError, match=message):
        ask()
