"""`learn` without a limit of time beside tuned machines of scikit-learn and LightGBM, on the same split.

The tables are read from EMPIRISK_TABLES=adult,prices. Automatic rivals, with a limit of time: `benchmarks.judging`.
"""

import os
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from joblib import parallel_backend
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC

import empirisk as er
from benchmarks.tables import TABLES
from empirisk.league.request import Request
from empirisk.league.rows.split import plan

ROWS = 10_000  # of the larger tables, drawn at random: more would take the rivals hours
LEAVES = {"num_leaves": [7, 31], "learning_rate": [0.05, 0.1], "n_estimators": [100, 400]}
#: Every round grows a tree for each class: where they are many, the whole grid would take an hour.
MANY_CLASSES, FEW_LEAVES = 10, {"num_leaves": [7, 31], "n_estimators": [60]}
CLASSIFIERS = {
    "logistic": (LogisticRegression(max_iter=2000), {"C": [0.01, 0.1, 1.0, 10.0]}),
    "SVC": (SVC(), {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01]}),
    "neighbours": (KNeighborsClassifier(), {"n_neighbors": [1, 5, 15], "weights": ["uniform", "distance"]}),
    "forest": (RandomForestClassifier(300, random_state=0), {"max_features": ["sqrt", 0.5]}),
    "LightGBM": (LGBMClassifier(verbose=-1, random_state=0, n_jobs=1), LEAVES),
}
REGRESSORS = {
    "ridge": (RidgeCV(np.logspace(-3, 3, 20)), {}),
    "SVR": (SVR(), {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01]}),
    "neighbours": (KNeighborsRegressor(), {"n_neighbors": [1, 5, 15], "weights": ["uniform", "distance"]}),
    "forest": (RandomForestRegressor(300, random_state=0), {"max_features": [0.33, 1.0]}),
    "LightGBM": (LGBMRegressor(verbose=-1, random_state=0, n_jobs=1), LEAVES),
}
WORDS = TfidfVectorizer(sublinear_tf=True)
TEXTS = {
    "words, logistic": (
        make_pipeline(WORDS, LogisticRegression(max_iter=2000)),
        {"logisticregression__C": [1, 10, 100]},
    ),
    "words, linear SVM": (make_pipeline(WORDS, LinearSVC()), {"linearsvc__C": [0.1, 1.0, 10.0]}),
    "word pairs, linear SVM": (
        make_pipeline(TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), LinearSVC()),
        {"linearsvc__C": [0.1, 1.0, 10.0]},
    ),
}


class Result(NamedTuple):
    """What one side reached: the loss of every test row, seconds, seconds of processors, and its best machine."""

    losses: np.ndarray
    seconds: float
    work: float
    numbers: bool
    winner: str = ""


BETTER, WORSE = "ours is better", "OURS IS WORSE"


def run() -> None:
    for name in os.environ["EMPIRISK_TABLES"].split(",") if os.environ.get("EMPIRISK_TABLES") else TABLES:
        run_table(name)


def run_table(name: str) -> None:
    """Print what ours and every rival reach on one table."""
    warnings.simplefilter("ignore")
    target, make = TABLES[name]
    try:
        table = name if make is None else make()
    except FileNotFoundError:
        print(f"  {name}: no data, left out")
        return
    if isinstance(table, pl.DataFrame) and table.height > ROWS:
        table = table.sample(ROWS, seed=0)
    watch = _Watch()
    learned = er.learn(table, target)
    losses = _losses(learned.test.truth, learned.test.predictions)
    ours = Result(losses, *watch.read(), learned.classes is None, learned.winner)
    print(f"  {name}: {_shown(ours)}", flush=True)
    rivals = {}
    for rival, result in _rivals(plan(Request(table, target))):
        rivals[rival] = result
        print(f"    {rival} {_shown(result)}, {_verdict(ours, result)}", flush=True)
    best = min(rivals, key=lambda rival: rivals[rival].losses.mean())
    others, work = (sum(times) for times in zip(*((r.seconds, r.work) for r in rivals.values()), strict=True))
    print(f"    best rival {best}: {_verdict(ours, rivals[best])}; all rivals {others:.0f} s")
    print(f"    ratio {others / ours.seconds:.2g}, of processors' time {work / ours.work:.2g}", flush=True)


def _losses(truth: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Squared error, or whether it is wrong, of each row."""
    return (truth - said) ** 2 if truth.dtype.kind == "f" else (truth != said).astype(float)


def _shown(result: Result) -> str:
    """The machine, error rate or root mean squared error, its interval of 95 %, and the time."""
    mean, noise = result.losses.mean(), 2 * result.losses.std() / np.sqrt(len(result.losses))
    ends = np.array([mean, max(mean - noise, 0.0), mean + noise])
    value, low, high = np.sqrt(ends) if result.numbers else ends
    times = f"in {result.seconds:.1f} s ({result.work:.1f} s of processors)"
    return f"{result.winner} {value:.4g} [{low:.4g}, {high:.4g}] {times}"


def _verdict(ours: Result, rival: Result) -> str:
    """Whether ours is within two paired standard errors of a rival, or better."""
    worse = ours.losses - rival.losses
    noise = 2 * worse.std() / np.sqrt(len(worse))
    if abs(worse.mean()) <= noise:
        return "within noise"
    return WORSE if worse.mean() > 0 else BETTER


def _rivals(found: Any) -> Iterator[tuple[str, Result]]:
    """Every rival, tuned on the training part by five-fold cross-validation."""
    y, truth = found.y[found.train], found.y[found.test]
    watch = _Watch()
    encoder = er.tables.TableEncoder(found.schema)
    X, X_test = encoder.fit_transform(found.frame[found.train], y), encoder.transform(found.frame[found.test])
    encoding = watch.read()
    for name, (machine, grid) in (CLASSIFIERS if found.classes is not None else REGRESSORS).items():
        if name == "LightGBM" and len(found.target.classes) > MANY_CLASSES:
            grid = FEW_LEAVES
        yield name, _tuned(machine, grid, X, y, X_test, truth, encoding)
    texts = found.schema.of_kind("text")
    if texts and found.classes is not None:
        rows = found.frame.select(pl.concat_str(texts, separator=" ", ignore_nulls=True)).to_series().to_numpy()
        for name, (machine, grid) in TEXTS.items():
            yield name, _tuned(machine, grid, rows[found.train], y, rows[found.test], truth, (0.0, 0.0))


def _tuned(machine, grid, X, y, X_test, truth, before: tuple[float, float]) -> Result:
    watch = _Watch()
    # Threads, so that the time of processors is that of this process alone.
    with parallel_backend("threading"):
        tuned = GridSearchCV(machine, grid, cv=5, n_jobs=2).fit(X, y)
    said = tuned.predict(X_test)
    seconds, work = np.add(before, watch.read())
    return Result(_losses(truth, said), seconds, work, truth.dtype.kind == "f")


class _Watch:
    """Seconds, and seconds of processors, since it was made."""

    def __init__(self):
        self._begin = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
