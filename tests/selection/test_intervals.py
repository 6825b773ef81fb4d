"""Intervals hold the truth as often as they say, in simulations with known truth; nothing is optimistic on noise."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.selection.intervals import corrected_t


def classes(random, n, d, shift):
    y = (random.random(n) < 0.5).astype(int)
    X = random.normal(size=(n, d))
    X[:, 0] += shift * (2 * y - 1)
    return X, y


def true_scores(X, y, shift) -> tuple[float, float]:
    """Accuracy and area under the ROC curve of discriminant analysis trained on these rows, by formula."""
    machine = LinearDiscriminantAnalysis().fit(X, y)
    w, b = machine.coef_[0], machine.intercept_[0]
    length, push = np.linalg.norm(w), shift * w[0]
    accuracy = (norm.cdf((push + b) / length) + norm.cdf((push - b) / length)) / 2
    return accuracy, norm.cdf(np.sqrt(2) * push / length)


def coverage(runs, sample, truth, **options):
    """How often each interval holds the mean true score (of the one machine, for a holdout)."""
    random = np.random.default_rng(7)
    intervals, truths = [], []
    with er.config(threads=1):
        for run in range(runs):
            X, y = sample(random)
            result = er.evaluate(X=X, y=y, random_state=run, **options)
            intervals.append(np.squeeze([score.interval for score in result.scores.values()]))
            truths.append(truth(X[result.folds[0].train], y[result.folds[0].train]))
    aim = np.array(truths) if options.get("cv") == "holdout" else np.mean(truths, axis=0)
    low, high = np.moveaxis(np.array(intervals), -1, 0)
    return ((low <= aim) & (aim <= high)).mean(axis=0)


@pytest.mark.row("V2")
@pytest.mark.parametrize(
    ("n", "d", "shift", "cv", "name", "runs"),
    [
        (100, 15, 0.8, 5, "accuracy", 200),
        (100, 4, 0.0, 5, "accuracy", 200),
        (200, 4, 0.8, "holdout", "accuracy", 150),
        (100, 15, 0.8, 5, "roc_auc", 100),
    ],
)
def test_coverage_for_classes(n, d, shift, cv, name, runs):
    found = coverage(
        runs,
        lambda random: classes(random, n, d, shift),
        lambda X, y: true_scores(X, y, shift)[["accuracy", "roc_auc"].index(name)],
        machine=LinearDiscriminantAnalysis(),
        scoring=name,
        cv=cv,
    )
    assert 0.93 <= found <= 0.98


@pytest.mark.row("V2")
def test_coverage_for_numbers():
    """y = x_1 + noise of variance 1, so that a machine's true errors are known from its weights."""

    n, d = 80, 12

    def sample(random):
        X = random.normal(size=(n, d))
        return X, X[:, 0] + random.normal(size=n)

    def truth(X, y):
        machine = LinearRegression().fit(X, y)
        squared = 1 + np.sum((machine.coef_ - np.eye(d)[0]) ** 2) + machine.intercept_**2
        return 1 - squared / 2, np.sqrt(squared), np.sqrt(squared * 2 / np.pi)

    found = coverage(150, sample, truth, machine=LinearRegression(), scoring=["r2", "rmse", "mae"])
    assert np.all((found >= 0.93) & (found <= 0.98)), found


def test_groups_widen_the_interval():
    """Ten copies of each row say no more than one of them."""
    random = np.random.default_rng(0)
    X, y = classes(random, 60, 3, 0.5)
    many, labels, groups = np.repeat(X, 10, axis=0), np.repeat(y, 10), np.repeat(np.arange(60), 10)
    once = er.evaluate(er.LeastSquaresClassifier(), X, y, scoring=["accuracy", "f1"])
    copies = er.evaluate(er.LeastSquaresClassifier(), many, labels, groups=groups, scoring=["accuracy", "f1"])
    for name in ("accuracy", "f1"):
        widths = [np.diff(result.scores[name].interval)[0] for result in (once, copies)]
        assert 0.7 < widths[1] / widths[0] < 1.5


def test_corrected_t_by_hand():
    values = np.array([0.5, 0.6, 0.7, 0.6])
    half = 3.182446 * np.std(values, ddof=1) * np.sqrt(1 / 4 + 1 / 3)
    np.testing.assert_allclose(corrected_t(values, 1 / 3, 0.95), (0.6 - half, 0.6 + half), rtol=1e-6)
    assert np.isnan(corrected_t(values[:1], 1 / 3, 0.95)).all()


# --- no optimism on noise -------------------------------------------------------------------------------------------


def noise(seed, n=80, d=10):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)), np.arange(n) % 2


@pytest.mark.row("V2")
@pytest.mark.row("F5")
@pytest.mark.row("F6")
@pytest.mark.row("V6")
@pytest.mark.parametrize(
    "machine",
    [
        er.selection.Search(er.LeastSquaresClassifier(penalty="l2"), {"C": [1e-3, 1e-2, 0.1, 1.0, 10.0]}),
        er.selection.GreedySelection(er.NearestCentroid(), most=2, cv=3),
        make_pipeline(
            er.selection.L1Selection(er.LogisticRegression(penalty="l1", C=0.2), n_samples=4, random_state=0),
            er.LeastSquaresClassifier(),
        ),
        er.selection.Balanced(er.TreeClassifier(), how="upsample", jitter=0.01, random_state=0),
        er.selection.Threshold(er.LeastSquaresClassifier()),
    ],
    ids=["search", "greedy", "l1", "upsample", "threshold"],
)
def test_noise_is_found_to_be_noise(machine):
    """On average over data sets the accuracy is that of chance, and nearly every interval holds it."""
    values, held = [], 0
    for seed in range(8):
        X, y = noise(seed)
        score = er.evaluate(machine, X, y, scoring="balanced_accuracy").score
        values.append(score.value)
        held += score.interval[0] <= 0.5 <= score.interval[1]
    assert abs(np.mean(values) - 0.5) < 4 * np.std(values) / np.sqrt(8) + 0.01
    assert np.mean(values) < 0.55
    assert held >= 6


def test_upsampling_before_the_split_would_have_lied():
    """The same upsampling outside the folds: copies of a row stand on both sides, and noise looks learnable."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 5)), (np.arange(100) < 15).astype(int)
    copies = np.concatenate([np.arange(100), random.choice(15, size=70)])
    outside = er.evaluate(er.TreeClassifier(), X[copies], y[copies], scoring="balanced_accuracy").score
    inside = er.selection.Balanced(er.TreeClassifier(), random_state=0)
    honest = er.evaluate(inside, X, y, scoring="balanced_accuracy").score
    assert outside.value > 0.8
    assert honest.value < 0.65
