"""Bounds: the formulas by hand, fitted machines against the formulas, and simulations that count failures."""

from itertools import combinations, product
from math import comb, exp, inf, log, sqrt

import numpy as np
import pytest
from scipy.stats import norm

import empirisk as er

pytestmark = pytest.mark.row("V8")


# --- finite classes -------------------------------------------------------------------------------------------------


def test_sample_size_by_hand():
    assert er.theory.sample_size(1000, 0.1, 0.05).value == 100  # log(20000) / 0.1 = 99.03
    assert er.theory.sample_size(1, 0.5, 0.5).value == 2
    with pytest.raises(ValueError, match=r"hypotheses=0\.5 must be at least 1"):
        er.theory.sample_size(0.5, 0.1, 0.1)
    with pytest.raises(ValueError, match="epsilon=0 must lie between"):
        er.theory.sample_size(10, 0, 0.1)


def test_a_class_may_be_larger_than_any_float():
    assert er.theory.sample_size(2**2000, 0.1, 0.05).value == np.ceil((2000 * log(2) + log(20)) / 0.1)
    assert "10^602" in str(er.theory.sample_size(2**2000, 0.1, 0.05))
    assert er.theory.finite_class_bound(3**5000, 10**5).value == pytest.approx((5000 * log(3) + log(20)) / 10**5)
    with pytest.raises(ValueError, match="n=a number beyond all floats must be a whole number"):
        er.theory.vc_bound(3, 10**400)


def test_finite_class_by_hand():
    assert er.theory.finite_class_bound(8, 50, 0.1).value == pytest.approx(log(80) / 50)
    assert "The best of 1000 hypotheses on 50 rows" in str(er.theory.finite_class_bound(1000, 50, 0.1, 0.2))
    assert er.theory.finite_class_bound(8, 50, 0.1, 0.2).value == pytest.approx(0.2 + sqrt(log(80) / 100))
    assert er.theory.finite_class_bound(1e9, 10, training_error=0.3).vacuous
    assert "vacuous" in str(er.theory.finite_class_bound(1e9, 10, training_error=0.3))
    assert er.theory.description_bound(10, 100, 0.05, 0.1).value == pytest.approx(
        0.1 + sqrt((10 * log(2) + log(40)) / 200)
    )


def test_finite_class_bound_fails_rarely():
    """The best of 20 thresholds on 60 rows, labels flipped with probability 0.2."""
    random = np.random.default_rng(0)
    cuts, delta, failures = np.linspace(0, 1, 20), 0.1, 0
    truth = 0.2 + 0.6 * np.abs(cuts - 0.5)  # error of each threshold on uniform x with the cut at one half
    for _ in range(400):
        x = random.random(60)
        y = (x > 0.5) ^ (random.random(60) < 0.2)
        errors = ((x[:, None] > cuts) != y[:, None]).mean(axis=0)
        best = int(errors.argmin())
        failures += truth[best] > er.theory.finite_class_bound(20, 60, delta, float(errors[best])).value
    assert failures <= delta * 400


def test_a_consistent_hypothesis_fails_rarely_at_the_sample_size():
    random, delta, epsilon = np.random.default_rng(1), 0.1, 0.1
    n = er.theory.sample_size(50, epsilon, delta).value
    errors = np.linspace(0, 0.5, 50)  # the true errors of 50 hypotheses, each wrong on its own rows
    consistent = (random.random((500, n, 50)) >= errors).all(axis=1)
    failures = (consistent & (errors > epsilon)).any(axis=1)
    assert failures.mean() <= delta


# --- Vapnik and Chervonenkis ----------------------------------------------------------------------------------------


def test_vc_bound_by_hand():
    assert er.theory.vc_bound(5, 1000, 0.1, 0.05).value == pytest.approx(
        0.1 + sqrt((5 * (log(2000 / 5) + 1) + log(80)) / 1000)
    )
    assert er.theory.vc_bound(inf, 100).vacuous


def test_dimensions_of_classes():
    assert er.theory.vc_dimension("linear", 7).value == 8
    assert er.theory.vc_dimension("linear", 7, constant=False).value == 7
    assert er.theory.vc_dimension("polynomial", 5, degree=2).value == comb(7, 2)
    assert er.theory.vc_dimension("polynomial", 5, degree=2, constant=False).value == comb(6, 2) + 1
    with pytest.raises(ValueError, match="no class known"):
        er.theory.vc_dimension("ellipse", 2)
    with pytest.raises(ValueError, match="features=None must be a whole number"):
        er.theory.vc_dimension("linear")


def test_a_tree_cannot_shatter_more_than_its_dimension_says():
    """Stumps on one column label at most 2m of 2^m ways, so they shatter 2 rows and not 3; the bound is above that."""
    assert 2 <= er.theory.vc_dimension("tree", 1, leaves=2).value <= 5
    wide = er.theory.vc_dimension("tree", 1000, leaves=2).value
    assert wide > er.theory.vc_dimension("tree", 10, leaves=2).value
    assert er.theory.vc_dimension("tree", 10, leaves=1).value == 1


def shattered(labellings: np.ndarray) -> int:
    """The size of the largest set of columns on which the rows show every pattern."""
    points = labellings.shape[1]
    sizes = [
        size
        for size in range(1, points + 1)
        for chosen in combinations(range(points), size)
        if len(np.unique(labellings[:, chosen], axis=0)) == 2**size
    ]
    return max(sizes, default=0)


def test_boxes_shatter_two_rows_for_every_column():
    random = np.random.default_rng(3)
    assert er.theory.vc_dimension("rectangle", 2).value == 4
    diamond = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    corners = [(low, high) for low in product([-2, -0.5, 0.5], repeat=2) for high in product([-0.5, 0.5, 2], repeat=2)]
    inside = np.array([((diamond >= low) & (diamond <= high)).all(axis=1) for low, high in corners])
    assert shattered(inside) == 4
    # Of five rows the four outermost hold the fifth: no box has them without it.
    for _ in range(20):
        five = random.normal(size=(5, 2))
        outer = {int(five[:, j].argmin()) for j in range(2)} | {int(five[:, j].argmax()) for j in range(2)}
        rest = next(row for row in range(5) if row not in outer)
        low, high = five[list(outer)].min(axis=0), five[list(outer)].max(axis=0)
        assert ((five[rest] >= low) & (five[rest] <= high)).all()


def boolean_trees(leaves: int, rows: np.ndarray) -> set[tuple]:
    """The labellings of rows of 0 and 1 by all trees of at most so many leaves."""
    found = {(0,) * len(rows), (1,) * len(rows)}
    if leaves > 1:
        for first in range(1, leaves):
            for left, right in product(boolean_trees(first, rows), boolean_trees(leaves - first, rows)):
                found |= {tuple(np.where(column == 0, left, right)) for column in rows.T}
    return found


def test_trees_on_columns_of_zero_and_one():
    rows = np.array(list(product([0, 1], repeat=3)))
    for leaves in (1, 2, 3, 4):
        exact = shattered(np.array(list(boolean_trees(leaves, rows))))
        bound = er.theory.vc_dimension("boolean_tree", 3, leaves=leaves).value
        assert leaves <= exact <= bound <= 8
    assert er.theory.vc_dimension("boolean_tree", 3).value == 8
    assert er.theory.vc_dimension("boolean_tree", 3, leaves=9).value == 8


def test_tree_bound_by_description_length():
    found = er.theory.tree_bound(4, n=10_000, features=5, training_error=0.1, theorem="description")
    assert found.value == pytest.approx(0.1 + sqrt((8 * np.log2(8) + np.log2(40)) / 20_000))
    three_nodes = er.theory.tree_bound(2, n=10_000, features=5, training_error=0.1, theorem="description")
    assert three_nodes.value == pytest.approx(0.1294, abs=5e-5)  # the texts' number
    # Code words for all trees of four leaves exist with eight words to a tree, not with a word for each split alone.
    trees = comb(6, 3) / 4 * 5**3 * 2**4
    assert 2 ** (4 * np.log2(8)) < trees < 2 ** (8 * np.log2(8))
    X = np.array(list(product([0.0, 1.0], repeat=3)) * 50)
    tree = er.TreeClassifier().fit(X, X[:, 0] * X[:, 1])
    assert er.theory.tree_bound(tree, X, X[:, 0] * X[:, 1], theorem="description").value == pytest.approx(
        sqrt((6 * np.log2(6) + np.log2(40)) / 800)
    )
    with pytest.raises(ValueError, match="columns of 0 and 1; use theorem='growth'"):
        er.theory.tree_bound(tree, X + 0.5, X[:, 0] * X[:, 1], theorem="description")
    with pytest.raises(ValueError, match="theorem='text' is not known"):
        er.theory.tree_bound(4, n=10, features=5, training_error=0.1, theorem="text")


def test_dimension_of_fitted_machines():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    assert er.theory.vc_dimension(er.SVM().fit(X, y)).value == 4
    assert er.theory.vc_dimension(er.SVM(features=er.maps.Polynomial(2)).fit(X, y)).value == comb(5, 2)
    for kernel, dimension in ((er.kernels.Linear(), 4), (er.kernels.Polynomial(2), comb(5, 2)), ("gaussian", inf)):
        assert er.theory.vc_dimension(er.SVM(features=kernel).fit(X, y)).value == dimension
    tree = er.TreeClassifier(max_leaf_nodes=4).fit(X, y)
    assert er.theory.vc_dimension(tree).value == er.theory.vc_dimension("tree", 3, leaves=4).value
    with pytest.raises(ValueError, match="neither linear nor a kernel machine nor a tree"):
        er.theory.vc_dimension(er.BaggingClassifier(n_estimators=2).fit(X, y))


def test_tree_bound_of_a_machine_is_the_formula():
    random = np.random.default_rng(2)
    X = random.normal(size=(500, 3))
    y = X[:, 0] + 0.3 * random.normal(size=500) > 0
    tree = er.TreeClassifier(max_leaf_nodes=3).fit(X, y)
    n, L, wrong = 500, 3, 1 - tree.score(X, y)
    growth = 2 * (2 * n * 3) ** (L - 1) * 2**L  # Catalan(2) = 2
    expected = wrong + sqrt((log(growth) + log(4 * L * (L + 1) / 0.05)) / n)
    assert er.theory.tree_bound(tree, X, y).value == pytest.approx(expected)
    with pytest.raises(ValueError, match="training rows X and y"):
        er.theory.tree_bound(tree)


# --- simulations: true errors known, bounds that say something, failures counted --------------------------------------

FLIPPED = 0.1


def noisy(truth, random):
    """Labels flipped with probability 0.1."""
    return truth ^ (random.random(len(truth)) < FLIPPED)


def error_of(machine, fresh, truth):
    """The error on noisy labels, from that on clean ones of a large sample, so that the noise adds none of its own."""
    return FLIPPED + (1 - 2 * FLIPPED) * np.mean(machine.predict(fresh) != truth)


def test_vc_bound_fails_rarely():
    """The best threshold on a line, the class whose dimension is 1, on 2000 rows with labels flipped."""
    random, delta, n, failures, optimistic = np.random.default_rng(5), 0.1, 2000, 0, 0
    for _ in range(300):
        x = np.sort(random.random(n))
        y = noisy(x > 0.5, random)
        # Said to be positive: what lies above the k-th row.
        errors = (np.r_[0, np.cumsum(y)] + np.r_[np.cumsum(~y[::-1])[::-1], 0]) / n
        best = int(errors.argmin())
        cut = 0.0 if best == 0 else x[best - 1]
        truth = FLIPPED + (1 - 2 * FLIPPED) * abs(cut - 0.5)
        bound = er.theory.vc_bound(1, n, float(errors[best]), delta)
        assert not bound.vacuous
        failures += truth > bound.value
        optimistic += truth > errors[best]
    assert optimistic > 150  # the training error itself is no bound
    assert failures <= delta * 300


def test_tree_bound_fails_rarely():
    random, delta, failures, optimistic = np.random.default_rng(6), 0.1, 0, 0
    fresh = random.normal(size=(20_000, 2))
    for _ in range(30):
        X = random.normal(size=(2000, 2))
        y = noisy(X[:, 0] > 0, random)
        tree = er.TreeClassifier(max_leaf_nodes=4).fit(X, y)
        bound, truth = er.theory.tree_bound(tree, X, y, delta=delta), error_of(tree, fresh, fresh[:, 0] > 0)
        assert not bound.vacuous
        failures += truth > bound.value
        optimistic += truth > 1 - tree.score(X, y)
    assert optimistic > 15
    assert failures <= delta * 30


@pytest.mark.parametrize("features", [None, er.kernels.Linear(), er.kernels.Polynomial(2)], ids=str)
def test_margin_bound_of_a_support_vector_machine_fails_rarely(features):
    """Two clusters in twenty columns: behind a kernel of many features the margin alone makes the bound small."""
    random, delta, failures = np.random.default_rng(7), 0.1, 0

    def sample(n):
        y = random.random(n) < 0.5
        X = random.uniform(-0.1, 0.1, size=(n, 20))
        X[:, 0] += np.where(y, 1.0, -1.0)
        return X, y

    fresh, clean = sample(5000)
    for _ in range(12):
        X, y = sample(1000)
        y = y ^ (random.random(1000) < 0.03)
        svm = er.SVM(C=0.01, features=features).fit(X, y)
        bound = er.theory.margin_bound(svm, X, y, delta)
        assert not bound.vacuous
        failures += 0.03 + 0.94 * np.mean(svm.predict(fresh) != clean) > bound.value
    assert failures <= delta * 12
    dimension = er.theory.vc_dimension(svm).value
    # The margin pays where there are many features; with few, its choice costs more than it gains.
    assert dimension < 100 or bound.value < er.theory.vc_bound(dimension, 1000, 0.03, delta).value


def test_adaboost_bounds_fail_rarely():
    """The bound on the training error never, that on the true error at most as often as allowed."""
    random, delta, failures = np.random.default_rng(8), 0.1, 0
    fresh = random.normal(size=(20_000, 2))
    for _ in range(10):
        X = random.normal(size=(300, 2))
        y = noisy(X[:, 0] + X[:, 1] > 0, random)
        small = er.AdaBoostClassifier(n_estimators=30).fit(X, y)
        bound = er.theory.adaboost_bound(small)
        assert not bound.vacuous
        assert 1 - small.score(X, y) <= bound.value
    for _ in range(4):
        X = random.normal(size=(40_000, 2))
        y = noisy(X[:, 0] > 0, random)
        machine = er.AdaBoostClassifier(n_estimators=5).fit(X, y)
        bound = er.theory.adaboost_margin_bound(machine, X, y, margin=0.4, delta=delta)
        assert not bound.vacuous
        failures += error_of(machine, fresh, fresh[:, 0] > 0) > bound.value
    assert failures <= delta * 4


# --- margins and votes ----------------------------------------------------------------------------------------------


def test_margin_dimension_by_hand():
    assert er.theory.margin_dimension(3.0, 0.5, 10).value == 11
    assert er.theory.margin_dimension(3.0, 1.5, 10).value == 5
    assert er.theory.margin_dimension(3.0, 1.5).value == 5
    with pytest.raises(ValueError, match="margin=0 must be a positive number"):
        er.theory.margin_dimension(3.0, 0)


def test_margin_bound_of_a_hard_svm():
    X = np.repeat([[-3.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [3.0, 0.0]], 250, axis=0)
    y = np.repeat(["a", "a", "b", "b"], 250)
    machine = er.SVM(C=np.inf).fit(X, y)
    h = min(3.0**2 / 1.0**2, 2) + 1  # radius 3 around the middle, margin 1
    expected = sqrt((h * (log(2000 / h) + 1) + log(80 * h * (h + 1))) / 1000)  # the data chose h
    assert er.theory.margin_bound(machine, X, y).value == pytest.approx(expected, rel=1e-6)
    twin = er.SVM(C=np.inf, features=er.kernels.Linear()).fit(X, y)  # the same hyperplane behind a kernel
    assert er.theory.margin_bound(twin, X, y).value == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="two classes"):
        er.theory.margin_bound(er.SVM().fit(X, np.arange(1000) % 3), X, y)


def test_adaboost_bounds():
    edges = np.array([0.3, 0.1, 0.2])
    found = er.theory.adaboost_bound(edges)
    assert found.value == pytest.approx(np.prod(np.sqrt(1 - 4 * edges**2)))
    assert found.value <= exp(-2 * (edges**2).sum())
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = X[:, 0] + X[:, 1] + 0.5 * random.normal(size=200) > 0
    machine = er.AdaBoostClassifier(n_estimators=20).fit(X, y)
    bound = er.theory.adaboost_bound(machine)
    assert 1 - machine.score(X, y) <= bound.value
    assert bound.value == pytest.approx(er.theory.adaboost_bound(machine.edges_).value, rel=1e-9)
    by_margin = er.theory.adaboost_margin_bound(machine, X, y, margin=0.3)
    h = max(er.theory.vc_dimension(tree).value for tree in machine.estimators_)
    small = (machine.margins(X, y) <= 0.3).mean()
    expected = small + 2 / 0.3 * sqrt(2 * h * log(np.e * 200 / h) / 200) + sqrt(log(20) / 400)
    assert by_margin.value == pytest.approx(expected)
    assert by_margin.vacuous
    with pytest.raises(ValueError, match="edges must be numbers"):
        er.theory.adaboost_bound([0.7])
    with pytest.raises(ValueError, match="margins must be numbers"):
        er.theory.adaboost_margin_bound([2.0], dimension=2)


def test_majority_vote_by_hand_and_by_drawing():
    assert er.theory.majority_vote(0.3, voters=3).value == pytest.approx(3 * 0.09 * 0.7 + 0.027)
    assert er.theory.majority_vote(0.3, voters=2).value == pytest.approx(0.3)
    assert er.theory.majority_vote(0.6, voters=5).vacuous
    rates = np.array([0.1, 0.2, 0.4, 0.3, 0.45])
    votes = np.random.default_rng(0).random((40_000, 5)) < rates
    assert er.theory.majority_vote(rates).value == pytest.approx((votes.sum(axis=1) > 2.5).mean(), abs=0.007)
    with pytest.raises(ValueError, match="must be a rate from 0 to 1"):
        er.theory.majority_vote(1.3, voters=2)


def test_majority_vote_bound_is_above_the_vote():
    for rate in (0.0, 0.1, 0.3, 0.45):
        for voters in (1, 2, 7, 100):
            bound = er.theory.majority_vote_bound(rate, voters).value
            assert bound == pytest.approx(exp(-voters * (0.5 - rate) ** 2))
            assert er.theory.majority_vote(rate, voters).value <= bound
    assert er.theory.majority_vote_bound(0.5, 1000).vacuous


def test_cover_hart_both_ways():
    for classes in (2, 3, 10):
        for best in (0.0, 0.05, 0.3, (classes - 1) / classes):
            upper = er.theory.cover_hart(bayes=best, classes=classes).value
            assert best <= upper
            assert er.theory.cover_hart(neighbour=upper, classes=classes).value == pytest.approx(best, abs=1e-9)
    assert er.theory.cover_hart(bayes=0.2).value == pytest.approx(2 * 0.2 * 0.8)
    with pytest.raises(ValueError, match="takes one of bayes= and neighbour="):
        er.theory.cover_hart()
    with pytest.raises(ValueError, match=r"bayes=0\.6 exceeds 0\.5"):
        er.theory.cover_hart(bayes=0.6)


def test_nearest_neighbours_lie_between_the_bounds():
    """Two normal classes one apart on a line: the best error is known, the neighbour's is measured."""
    random = np.random.default_rng(4)
    y, fresh = random.integers(2, size=3000), random.integers(2, size=3000)
    x, z = y + random.normal(size=3000), fresh + random.normal(size=3000)
    nearest = np.abs(z[:, None] - x).argmin(axis=1)
    error, best = (y[nearest] != fresh).mean(), norm.cdf(-0.5)
    assert best - 0.02 <= error <= er.theory.cover_hart(bayes=best).value + 0.02


@pytest.mark.row("V8")
def test_networks_have_a_dimension_of_their_weights():
    found = er.theory.vc_dimension("network", edges=100)
    assert found.value == int(2 * 100 * np.log2(np.e * 100))
    # One sign unit on d columns has d + 1 weights, and the dimension d + 1: the bound is above it.
    assert er.theory.vc_dimension("network", edges=3).value >= er.theory.vc_dimension("linear", 2).value
    machine = er.SVM(features=er.Network([2], epochs=2)).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(er.errors.EmpiriskError, match="'network', edges"):
        er.theory.vc_dimension(machine)
