"""Bayes rule of known distributions: dice counted by hand, normal tails, quadratures, and rows that were drawn."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import multivariate_normal, norm

import empirisk as er
from empirisk.theory import FiniteBayes, GaussianBayes

pytestmark = pytest.mark.row("V8")

DICE = list(product(range(1, 7), repeat=2))


# --- finite distributions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y"), [(sum, max), (max, sum), (min, max), (lambda d: d[0], lambda d: sum(d) > 7)])
def test_two_dice_by_counting(x, y):
    rule = FiniteBayes.of_outcomes(DICE, x, y)
    wrong = 0
    for value in {x(d) for d in DICE}:
        labels = [y(d) for d in DICE if x(d) == value]
        wrong += len(labels) - max(labels.count(label) for label in labels)
        shares = [labels.count(label) / len(labels) for label in rule.classes_.tolist()]
        np.testing.assert_allclose(rule.predict_proba([value])[0], shares)
        assert labels.count(rule.predict([value])[0]) == max(labels.count(label) for label in labels)
    found = rule.error()
    assert found.value == wrong / 36
    assert found.interval == (found.value, found.value)
    assert rule.risk().value == found.value


def test_no_rule_over_a_finite_domain_costs_less():
    """All 3^4 rules, with costs that are not symmetric."""
    random = np.random.default_rng(0)
    joint, costs = random.dirichlet(np.ones(12)).reshape(4, 3), random.uniform(0, 5, size=(3, 3))
    rule = FiniteBayes(joint, ["a", "b", "c", "d"], ["x", "y", "z"], costs)
    every = [sum(joint[i] @ costs[:, j] for i, j in enumerate(answers)) for answers in product(range(3), repeat=4)]
    assert rule.risk().value == pytest.approx(min(every))
    best = list(product(range(3), repeat=4))[int(np.argmin(every))]
    assert rule.predict(["a", "b", "c", "d"]).tolist() == ["xyz"[j] for j in best]
    wrong = sum(joint[i].sum() - joint[i, j] for i, j in enumerate(best))
    assert rule.error().value == pytest.approx(wrong)


def test_a_machine_is_graded_on_a_finite_distribution_exactly():
    rule = FiniteBayes.of_outcomes(DICE, x=lambda d: (d[0], d[0] % 2), y=lambda d: sum(d) > 7)
    X, y = rule.sample(500, random_state=0)
    assert X.shape == (500, 2)
    machine = er.TreeClassifier(max_depth=1).fit(X, y)
    wrong = sum(machine.predict([[d[0], d[0] % 2]])[0] != (sum(d) > 7) for d in DICE)
    assert rule.error(machine).value == pytest.approx(wrong / 36)
    assert rule.error(machine).value >= rule.error().value
    values, counts = np.unique(X[:, 0], return_counts=True)
    assert len(values) == 6
    assert abs(counts / 500 - 1 / 6).max() < 0.06


def test_columns_that_say_nothing_make_a_vacuous_rule():
    rule = FiniteBayes(np.outer([0.2, 0.8], [0.3, 0.7]))
    assert rule.error().vacuous
    assert not FiniteBayes([[1, 0], [0, 1]]).error().vacuous
    assert FiniteBayes([[1, 0], [0, 1]]).error().value == 0


# --- Gaussians ------------------------------------------------------------------------------------------------------


def test_two_gaussians_of_one_covariance_have_the_closed_form():
    """Phi(-D/2 + log(odds)/D) and its mirror image, D the distance of Mahalanobis."""
    random = np.random.default_rng(0)
    for width in (1, 2, 5):
        A = random.normal(size=(width, width))
        covariance, means = A @ A.T + np.eye(width), random.normal(size=(2, width))
        gap = means[1] - means[0]
        D = np.sqrt(gap @ np.linalg.solve(covariance, gap))
        for prior in (0.5, 0.8):
            t = np.log(prior / (1 - prior)) / D
            exact = prior * norm.cdf(-D / 2 - t) + (1 - prior) * norm.cdf(-D / 2 + t)
            rule = GaussianBayes(means, covariance, priors=[prior, 1 - prior])
            assert rule.error().value == pytest.approx(exact, rel=1e-12)
            assert rule.error().low == rule.error().high


@pytest.mark.parametrize("seed", range(8))
def test_gaussians_on_a_line_by_quadrature(seed):
    random = np.random.default_rng(seed)
    count = 2 + seed % 3
    means, variances = random.normal(scale=2, size=(count, 1)), random.uniform(0.05, 4, size=count)
    priors = random.dirichlet(3 * np.ones(count))
    rule = GaussianBayes(means, variances, priors)

    def joint(x):
        return priors * norm.pdf(x, means[:, 0], np.sqrt(variances))

    grid = np.linspace(-15, 15, 601)
    exact = sum(quad(lambda x: joint(x).sum() - joint(x).max(), a, b, epsabs=1e-14)[0] for a, b in pairwise(grid))
    found = rule.error()
    assert found.low == found.high
    assert found.value == pytest.approx(exact, rel=1e-7)
    np.testing.assert_array_equal(rule.predict(grid[:, None]), [joint(x).argmax() for x in grid])


def test_costs_of_two_classes_on_a_line_are_exact():
    costs = np.array([[0.0, 1.0], [7.0, 0.0]])
    rule = GaussianBayes([[0.0], [2.0]], [1.0, 3.0], costs=costs)
    joint = lambda x: 0.5 * norm.pdf(x, [0.0, 2.0], np.sqrt([1.0, 3.0]))  # noqa: E731
    exact = sum(quad(lambda x: (joint(x) @ costs).min(), a, a + 0.1, epsabs=1e-14)[0] for a in np.arange(-20, 20, 0.1))
    assert rule.risk().value == pytest.approx(exact, rel=1e-6)
    assert rule.error().value > GaussianBayes([[0.0], [2.0]], [1.0, 3.0]).error().value


def test_a_rare_class_may_never_be_predicted():
    rule = GaussianBayes([[0.0], [0.1]], 1.0, priors=[1 - 1e-9, 1e-9])
    assert rule.error().value == pytest.approx(1e-9)
    assert rule.error().vacuous
    equal = GaussianBayes([[1.0], [1.0]], 1.0, priors=[0.3, 0.7])
    assert equal.error().value == pytest.approx(0.3)


def test_the_estimate_in_the_plane_holds_the_quadrature():
    means, covariances = np.array([[0.0, 0.0], [1.5, 1.0]]), np.array([np.diag([1.0, 2.0]), [[1.0, 0.5], [0.5, 0.6]]])
    parts = [multivariate_normal(m, c) for m, c in zip(means, covariances, strict=True)]
    exact, _ = dblquad(lambda y, x: 0.5 * min(part.pdf([x, y]) for part in parts), -7, 9, -8, 8, epsabs=1e-4)
    rule = GaussianBayes(means, covariances)
    found = rule.error()
    assert found.low < exact < found.high
    assert found.high - found.low < 0.002
    assert rule.error().value == found.value  # the same rows again


def test_three_means_on_a_line_are_exact_and_agree_with_the_estimate():
    means = np.outer([0.0, 1.0, 2.5], [1.0, 2.0, -1.0])
    rule = GaussianBayes(means, 2.0, priors=[0.2, 0.5, 0.3])
    found = rule.error()
    assert found.low == found.high
    value, half = rule._estimate(None, rule.costs, 0.999, 1)
    assert abs(value - found.value) < half


def test_machines_that_learn_from_drawn_rows_come_near_and_never_below():
    rule = GaussianBayes([[0.0, 0.0], [2.0, 0.0]], 1.0, priors=[0.7, 0.3], classes=["no", "yes"])
    X, y = rule.sample(4000, random_state=0)
    machine = er.LogisticRegression().fit(X, y)
    graded = rule.error(machine)
    assert graded.high > rule.error().value
    assert graded.value < rule.error().value + 0.005
    assert abs(np.mean(rule.predict(X) != y) - rule.error().value) < 0.02
    with pytest.raises(ValueError, match="none of the classes"):
        rule.error(er.LogisticRegression().fit(X, y == "yes"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FiniteBayes([[0.0, 0.0]]), "joint must be a table"),
        (lambda: FiniteBayes([[1.0, -1.0]]), "joint must be a table"),
        (lambda: FiniteBayes(np.eye(2), values=["a", "a"]), "2 different values"),
        (lambda: FiniteBayes(np.eye(2), classes=[1]), "2 different labels"),
        (lambda: FiniteBayes(np.eye(2), costs=np.eye(3)), "2 x 2 finite numbers"),
        (lambda: FiniteBayes(np.eye(2)).predict([5]), "X holds 5"),
        (lambda: FiniteBayes.of_outcomes(DICE, sum, max, [1.0]), "one number for each of the 36"),
        (lambda: GaussianBayes([1.0, 2.0]), "means must be a table"),
        (lambda: GaussianBayes(np.eye(2), priors=[0.5, 0.6]), "with the sum 1"),
        (lambda: GaussianBayes(np.eye(2), np.ones((2, 3))), "covariances of shape"),
        (lambda: GaussianBayes(np.eye(2), -1.0), "positive definite"),
        (lambda: GaussianBayes(np.eye(2)).predict([[1.0]]), "must have 2 columns"),
        (lambda: GaussianBayes(np.eye(2)).error(confidence=1.0), "confidence=1.0"),
    ],
)
def test_bad_distributions_are_refused_in_a_sentence(make, message):
    with pytest.raises(er.errors.EmpiriskError, match=message):
        make()
