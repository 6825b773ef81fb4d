"""Exact trees, bagging and AdaBoost against scikit-learn: time at equal error, growth, and the error of a bag."""

from collections.abc import Callable
from itertools import pairwise
from time import perf_counter

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import empirisk as er
from benchmarks.problems import DATA
from benchmarks.timing import OURS, compare

ERROR_TOLERANCE = 0.05  # relative: ties are decided differently, so errors on new rows differ a little


def labels(n: int = 50_000, d: int = 30, classes: int = 2) -> tuple[np.ndarray, ...]:
    """Rows to learn from, and as many new ones."""
    X, y = make_classification(2 * n, d, n_informative=10, n_classes=classes, flip_y=0.02, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


def error_on(X: np.ndarray, y: np.ndarray) -> Callable:
    return lambda machine: 1 - machine.score(X, y)


def trees(n: int = 50_000, d: int = 30) -> None:
    for classes in (2, 5):
        X, y, new, answers = labels(n, d, classes)
        for depth in (None, 10):
            contestants = {
                OURS: lambda X=X, y=y, depth=depth: er.TreeClassifier(max_depth=depth).fit(X, y),
                "sklearn": lambda X=X, y=y, depth=depth: DecisionTreeClassifier(max_depth=depth, random_state=0).fit(
                    X, y
                ),
            }
            compare(f"tree {n:_}x{d}, {classes} classes, depth {depth}", contestants, 3, error_on(new, answers), 0.05)
    target = X[:, 0] * X[:, 1] + np.random.default_rng(0).normal(size=n)
    contestants = {
        OURS: lambda: er.TreeRegressor(max_depth=10).fit(X, target),
        "sklearn": lambda: DecisionTreeRegressor(max_depth=10, random_state=0).fit(X, target),
    }
    compare(f"regression tree {n:_}x{d}, depth 10", contestants, 3, error_on(X, target), ERROR_TOLERANCE)


def adaboost(n: int = 50_000, d: int = 30) -> None:
    X, y, new, answers = labels(n, d)
    contestants = {
        OURS: lambda: er.AdaBoostClassifier(n_estimators=100).fit(X, y),
        "sklearn": lambda: AdaBoostClassifier(n_estimators=100).fit(X, y),
    }
    compare(f"AdaBoost {n:_}x{d}, 100 stumps", contestants, 1, error_on(new, answers), ERROR_TOLERANCE)


def bagging(n: int = 5_000, d: int = 30) -> None:
    X, y, new, answers = labels(n, d)
    contestants = {
        OURS: lambda: er.BaggingClassifier(n_estimators=50, random_state=0).fit(X, y),
        "sklearn": lambda: BaggingClassifier(n_estimators=50, n_jobs=2, oob_score=True, random_state=0).fit(X, y),
    }
    compare(f"bagging {n:_}x{d}, 50 trees", contestants, 1, error_on(new, answers), 0.15)


def growth() -> None:
    """Seconds as rows and columns double: linear growth has a ratio of about two."""
    for name, sizes in (
        ("rows", [(25_000, 30), (50_000, 30), (100_000, 30)]),
        ("columns", [(25_000, 30), (25_000, 60)]),
    ):
        seconds = []
        for n, d in sizes:
            X, y, *_ = labels(n, d)
            start = perf_counter()
            er.TreeClassifier(max_depth=10).fit(X, y)
            seconds.append(perf_counter() - start)
        ratios = ", ".join(f"{b / a:.1f} x" for a, b in pairwise(seconds))
        print(
            f"{'tree, depth 10, ' + name + ' doubled':<36} | " + ", ".join(f"{s:.3g}s" for s in seconds) + f": {ratios}"
        )


def spambase(n_estimators: int = 200, parts: int = 10) -> None:
    """Mean error of a bag over random thirds held out, beside its own out-of-bag estimate."""
    file = DATA / "spambase" / "spambase.npz"
    if not file.is_file():
        print("spambase: no data, left out")
        return
    with np.load(file) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    held, outside = [], []
    for seed in range(parts):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[: len(y) // 3], order[len(y) // 3 :]
        bag = er.BaggingClassifier(n_estimators=n_estimators, random_state=seed).fit(X[train], y[train])
        held.append(1 - bag.score(X[test], y[test]))
        outside.append(bag.oob_error_)
    print(
        f"{'spambase, bag of ' + str(n_estimators):<36} | error {np.mean(held):.2%}, out of bag {np.mean(outside):.2%}"
    )


def run() -> None:
    trees()
    adaboost()
    bagging()
    growth()
    spambase()
