"""Forests and boosting against scikit-learn, XGBoost and LightGBM: time at equal error, growth, errors on real data."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from xgboost import XGBClassifier, XGBRegressor

import empirisk as er
from benchmarks.problems import DATA
from benchmarks.timing import OURS, compare
from benchmarks.trees_exact import error_on, labels
from empirisk.settings import settings

ROUNDS, LEAVES, RATE = 100, 31, 0.1  # what the rivals have by default
POINTS = 0.2  # per cent by which an error may exceed the best rival's
ERROR_TOLERANCE = 0.05  # relative: columns and rows are drawn differently, so errors differ a little

Machines = dict[str, Callable[..., Any]]


def boosters(regression: bool = False, rounds: int = ROUNDS) -> Machines:
    """Makers of machines with like settings: rounds, leaves, rate, at least 20 rows (or their weight) in a leaf."""
    threads = settings().threads
    xgb = {"max_leaf_nodes": LEAVES, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist"}
    light = {"num_leaves": LEAVES, "learning_rate": RATE, "n_jobs": threads, "verbose": -1}
    sklearn = {"max_leaf_nodes": LEAVES, "learning_rate": RATE, "early_stopping": False}
    return {
        OURS: partial(er.BoostingRegressor if regression else er.BoostingClassifier, n_estimators=rounds),
        "LightGBM": partial(LGBMRegressor if regression else LGBMClassifier, n_estimators=rounds, **light),
        "XGBoost": partial(
            XGBRegressor if regression else XGBClassifier,
            n_estimators=rounds,
            learning_rate=RATE,
            n_jobs=threads,
            enable_categorical=True,
            **xgb,
        ),
        "sklearn": partial(
            HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier, max_iter=rounds, **sklearn
        ),
    }


def forests(n: int = 50_000, d: int = 30, trees: int = 50) -> None:
    options = {"n_jobs": settings().threads, "random_state": 0, "oob_score": True}
    for classes in (2, 5):
        X, y, new, answers = labels(n, d, classes)
        contestants = {
            OURS: lambda X=X, y=y: er.ForestClassifier(trees, random_state=0).fit(X, y),
            "sklearn": lambda X=X, y=y: RandomForestClassifier(trees, **options).fit(X, y),
        }
        compare(f"forest {n:_}x{d}, {trees} trees, {classes} classes", contestants, 3, error_on(new, answers), 0.05)
    target = X[:, 0] * X[:, 1] + np.random.default_rng(0).normal(size=n)
    contestants = {
        OURS: lambda: er.ForestRegressor(trees, random_state=0).fit(X, target),
        "sklearn": lambda: RandomForestRegressor(trees, max_features=1 / 3, **options).fit(X, target),
    }
    compare(f"regression forest {n:_}x{d}, {trees} trees", contestants, 1, error_on(X, target), 0.3)


def boosting(n: int = 200_000, d: int = 30) -> None:
    X, y, new, answers = labels(n, d)
    contestants = {name: lambda make=make: make().fit(X, y) for name, make in boosters().items()}
    compare(f"boosting {n:_}x{d}, {ROUNDS} x {LEAVES} leaves", contestants, 5, error_on(new, answers), ERROR_TOLERANCE)


def predicting(n: int = 1_000_000, d: int = 30) -> None:
    X, y = make_classification(n, d, n_informative=10, flip_y=0.02, random_state=0)
    machines = {name: make().fit(X[:100_000], y[:100_000]) for name, make in boosters().items()}

    def error(machine: Any) -> float:
        return float((machine.predict(X) != y).mean())

    contestants = {name: partial(error, machine) for name, machine in machines.items()}
    compare(f"predict {n:_}x{d}, {ROUNDS} trees", contestants, 3, tolerance=ERROR_TOLERANCE)


def growth() -> None:
    """Seconds as rows and columns double: linear growth has a ratio of about two."""
    machines = {"forest of 20": er.ForestClassifier(20, random_state=0), "boosting": er.BoostingClassifier()}
    for name, machine in machines.items():
        for what, sizes in (
            ("rows", [(50_000, 30), (100_000, 30), (200_000, 30)]),
            ("columns", [(50_000, 30), (50_000, 60), (50_000, 120)]),
        ):
            seconds = []
            for n, d in sizes:
                X, y, *_ = labels(n, d)
                start = perf_counter()
                machine.fit(X, y)
                seconds.append(perf_counter() - start)
            ratios = ", ".join(f"{b / a:.1f} x" for a, b in pairwise(seconds))
            print(f"{name + ', ' + what + ' doubled':<36} | " + ", ".join(f"{s:.3g}s" for s in seconds) + f": {ratios}")


def read(name: str) -> tuple[Any, np.ndarray] | None:
    """The table and target of a real set; None, with a word, where it is not on this machine."""
    folder = DATA / name
    if (folder / f"{name}.npz").is_file():
        with np.load(folder / f"{name}.npz") as stored:
            return stored["X"].astype(np.float64), stored["y"]
    if (folder / f"{name}.csv.gz").is_file():
        table = pd.read_csv(folder / f"{name}.csv.gz", na_values="?").drop(columns="split", errors="ignore")
        X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
        return X.astype(dict.fromkeys(X.select_dtypes(exclude="number").columns, "category")), y
    print(f"{name}: no data, left out")
    return None


def thirds(y: np.ndarray, parts: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random splits into two thirds to learn from and one third held out."""
    orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(parts)]
    return [(order[len(y) // 3 :], order[: len(y) // 3]) for order in orders]


def mean_error(make: Callable[..., Any], X: Any, y: np.ndarray, parts: int) -> float:
    """Mean over random thirds held out of 1 - accuracy, or of 1 - R^2, in per cent."""
    rows = X.iloc if isinstance(X, pd.DataFrame) else X
    errors = [
        1 - make(random_state=seed).fit(rows[train], y[train]).score(rows[test], y[test])
        for seed, (train, test) in enumerate(thirds(y, parts))
    ]
    return 100 * float(np.mean(errors))


def spambase(parts: int = 10) -> None:
    """The published comparison: a forest of 500 and tuned boosting."""
    found = read("spambase")
    if found is None:
        return
    contestants = {
        "forest of 500": partial(er.ForestClassifier, 500),
        "sklearn's forest of 500": partial(RandomForestClassifier, 500, n_jobs=settings().threads),
        "boosting, 300 rounds": partial(er.BoostingClassifier, n_estimators=300),
        "LightGBM, 300 rounds": boosters(rounds=300)["LightGBM"],
    }
    errors = {name: mean_error(make, *found, parts) for name, make in contestants.items()}
    print(f"{'spambase':<36} | " + ", ".join(f"{name} {error:.2f} %" for name, error in errors.items()), flush=True)


def real_data(parts: int = 3) -> None:
    """Errors with like settings; a mark where the best rival is better by more than `POINTS`."""
    sets = {"adult": False, "letter": False, "california_housing": True, "protein_casp": True, "kin8nm": True}
    for name, regression in sets.items():
        found = read(name)
        if found is None:
            continue
        X, y = found
        codes = y if regression else np.unique(y, return_inverse=True)[1]
        errors = {maker: mean_error(make, X, codes, parts) for maker, make in boosters(regression, 200).items()}
        worse = errors[OURS] - min(errors.values())
        text = ", ".join(f"{maker} {error:.2f} %" for maker, error in errors.items())
        print(f"{name:<36} | {text}" + (f" | ! worse by {worse:.2f}" if worse > POINTS else ""), flush=True)


def slopes(parts: int = 1) -> None:
    """What linear functions in leaves gain."""
    for name in ("california_housing", "kin8nm", "protein_casp", "adult"):
        found = read(name)
        if found is None:
            continue
        make = er.BoostingClassifier if name == "adult" else er.BoostingRegressor
        texts = []
        for leaves in ("constant", "linear", "auto"):
            start = process_time()
            options = {"n_estimators": 400, "learning_rate": 0.05, "leaves": leaves}
            error = mean_error(partial(make, **options), *found, parts)
            texts.append(f"{leaves} {error:.2f} % in {process_time() - start:.1f} s")
        print(f"{'leaves, ' + name:<36} | " + ", ".join(texts), flush=True)


def run() -> None:
    forests()
    boosting()
    predicting()
    growth()
    spambase()
    real_data()
    slopes()
