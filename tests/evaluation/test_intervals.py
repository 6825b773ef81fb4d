"""Intervals hold the truth as often as they say, in simulations with known truth; nothing is optimistic on noise."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.evaluation.answers import answers_of
from empirisk.evaluation.intervals import EvaluatedPart, EvaluatedSets, corrected_t, score
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.evaluation.splits import make_splits

#: Run by `make test-all`.
pytestmark = pytest.mark.long

CLASSES = np.arange(2)


def classes(random, n, d, shift, rare=0.5):
    y = (random.random(n) < rare).astype(int)
    X = random.normal(size=(n, d))
    X[:, 0] += shift * (2 * y - 1)
    return X, y


def from_rates(recall, alarms, rare) -> dict[str, float]:
    """Scores of labels from the rates of hits and false alarms and the share of the positive class."""
    hits, yes = rare * recall, rare * recall + (1 - rare) * alarms
    return {
        "accuracy": hits + (1 - rare) * (1 - alarms),
        "balanced_accuracy": (recall + 1 - alarms) / 2,
        "recall": recall,
        "precision": hits / yes if yes > 0 else 0.0,
        "f1": 2 * hits / (rare + yes),
    }


def true_scores(machine, shift, rare) -> dict[str, float]:
    """The scores of a fitted discriminant analysis on all rows there could be."""
    w, b = machine.coef_[0], machine.intercept_[0]
    length, push = np.linalg.norm(w), shift * w[0]
    found = from_rates(norm.cdf((push + b) / length), norm.cdf((b - push) / length), rare)
    return found | {"roc_auc": norm.cdf(np.sqrt(2) * push / length)}


def quick_metric(name) -> Metric:
    """The metric of that name without scikit-learn's checks, which take most of the time of a simulation."""

    def of_labels(judge, rows, y):
        said = judge.predict(rows)
        if y.min() == y.max():
            raise ValueError
        return from_rates(said[y == 1].mean(), said[y == 0].mean(), y.mean())[name]

    def of_order(judge, rows, y):
        if y.min() == y.max():
            raise ValueError
        f = judge.decision_function(rows)
        return np.mean(f[y == 1][:, None] > f[y == 0])

    return Metric(name, of_order if name == "roc_auc" else of_labels)


def one_trial(X, y, cv, repeats, seed):
    """The machines of all splits and their answers."""
    splits = make_splits(cv, y, classes=True, repeats=repeats, random_state=seed)
    machines = [LinearDiscriminantAnalysis().fit(X[train], y[train]) for train, _ in splits]
    parts = [
        EvaluatedPart(test, y[test], answers_of(machine, X[test], CLASSES), None)
        for machine, (_, test) in zip(machines, splits, strict=True)
    ]
    return machines, EvaluatedSets(parts, len(splits), 0.25, None, 0.95)


NAMES = ["accuracy", "balanced_accuracy", "f1", "precision", "recall", "roc_auc"]


def coverage(runs, n, d, shift, rare, cv, repeats) -> dict[str, float]:
    """How often each interval holds the mean true score of the machines that were trained."""
    random = np.random.default_rng(7)
    metrics = [quick_metric(name) for name in NAMES]
    held = []
    for run in range(runs):
        X, y = classes(random, n, d, shift, rare)
        machines, trial = one_trial(X, y, cv, repeats, run)
        truths = [true_scores(machine, shift, rare) for machine in machines]
        aims = [np.mean([one[metric.name] for one in truths]) for metric in metrics]
        limits = [score(metric, trial, np.zeros(1)).interval for metric in metrics]
        held.append([low <= aim <= high for (low, high), aim in zip(limits, aims, strict=True)])
    return dict(zip(NAMES, np.mean(held, axis=0), strict=True))


@pytest.mark.row("V2")
@pytest.mark.row("V4")
@pytest.mark.parametrize(
    ("n", "d", "shift", "rare", "cv", "repeats"),
    [
        (100, 15, 0.8, 0.5, 5, 1),
        (100, 4, 0.0, 0.5, 5, 1),
        (300, 4, 0.0, 0.5, 5, 1),
        (60, 4, 0.0, 0.5, 10, 1),
        (100, 4, 0.5, 0.25, 5, 1),
        (100, 4, 0.0, 0.5, 5, 3),
        (200, 4, 0.8, 0.5, "holdout", None),
    ],
)
def test_coverage_for_classes(n, d, shift, rare, cv, repeats):
    """With signal and without, also for scores that depend on how often a machine happens to say yes."""
    found = coverage(200, n, d, shift, rare, cv, repeats)
    assert min(found.values()) >= 0.93, found
    assert np.mean(list(found.values())) <= 0.985, found


@pytest.mark.row("V4")
def test_the_simulated_intervals_are_those_of_an_evaluation():
    X, y = classes(np.random.default_rng(0), 80, 4, 0.3)
    for repeats in (1, 2):
        result = er.evaluate(LinearDiscriminantAnalysis(), X, y, repeats=repeats, scoring=NAMES)
        _, trial = one_trial(X, y, 5, repeats, 0)
        for name in NAMES:
            found = score(quick_metric(name), trial, np.zeros(1))
            assert result.scores[name].value == pytest.approx(found.value, abs=1e-12)
            assert result.scores[name].interval == pytest.approx(found.interval, abs=1e-9)


@pytest.mark.row("V4")
def test_a_class_that_is_never_named():
    """No hit is no proof of zero: what could have been counted decides, not the number of rows."""
    X, y = np.zeros((100, 1)), (np.arange(100) < 15).astype(int)
    never = er.evaluate(DummyClassifier(), X, y, scoring=["precision", "recall", "f1", "balanced_accuracy", "accuracy"])
    limits = {name: one.interval for name, one in never.scores.items()}
    assert limits["precision"][0] == 0
    assert limits["precision"][1] > 0.7  # nothing was said to be positive, so nothing is known
    assert 0.1 < limits["recall"][1] < 0.4  # 0 of 15
    assert 0.1 < limits["f1"][1] < 0.5
    low, high = limits["balanced_accuracy"]
    assert 0.4 < low < 0.49
    assert 0.51 < high < 0.6
    perfect = er.evaluate(DummyClassifier(strategy="constant", constant=1), X, y, scoring="recall")
    assert 0.6 < perfect.score.interval[0] < 0.9
    assert perfect.score.interval[1] == 1


@pytest.mark.row("V2")
def test_coverage_of_a_score_that_few_rows_make_too_high():
    """Average precision of any order of rows is the share of positives where there is nothing to find."""
    random, rare = np.random.default_rng(7), 0.25
    metric = find_metrics("average_precision", CLASSES, None)[0]
    values, held = [], []
    for run in range(200):
        X, y = classes(random, 100, 4, 0.0, rare)
        found = score(metric, one_trial(X, y, 5, 1, run)[1], np.zeros(1))
        values.append(found.value)
        held.append(found.interval[0] <= rare <= found.interval[1])
        assert found.interval[0] <= found.value <= found.interval[1]
    assert np.mean(values) > rare + 0.05
    assert 0.93 <= np.mean(held) <= 0.99


@pytest.mark.row("V2")
@pytest.mark.parametrize("slope", [1.0, 0.0])
def test_coverage_for_numbers(slope):
    """y = slope x_1 + noise of variance 1, so that a machine's true errors are known from its weights."""
    n, d, runs, random = 80, 12, 150, np.random.default_rng(7)
    held = []
    with er.config(threads=1):
        for run in range(runs):
            X = random.normal(size=(n, d))
            y = slope * X[:, 0] + random.normal(size=n)
            result = er.evaluate(LinearRegression(), X, y, random_state=run)
            squared = []
            for fold in result.folds:
                machine = LinearRegression().fit(X[fold.train], y[fold.train])
                squared.append(1 + np.sum((machine.coef_ - slope * np.eye(d)[0]) ** 2) + machine.intercept_**2)
            error = np.mean(squared)
            aims = {
                "r2": 1 - error / (1 + slope**2),
                "rmse": np.sqrt(error),
                "mae": np.mean(np.sqrt(squared)) * np.sqrt(2 / np.pi),
            }
            limits = {name: one.interval for name, one in result.scores.items()}
            held.append([limits[name][0] <= aim <= limits[name][1] for name, aim in aims.items()])
    found = np.mean(held, axis=0)
    assert np.all(found >= 0.93), found
    assert np.mean(found) <= 0.985, found


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
        found = er.evaluate(machine, X, y, scoring="balanced_accuracy").score
        values.append(found.value)
        held += found.interval[0] <= 0.5 <= found.interval[1]
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
