"""Seconds over the number of threads, with the rival beside them: ``python -m benchmarks cores``.

A row is a `Row`: what it is called, how to make its data, ours as a function of the data, and the rivals as functions
of the data and the number of threads. Add rows to `ROWS`, or import `curve` and call it from another family.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

import empirisk as er
from empirisk.settings import config, settings

REPEATS = 3
HELD = 0.1  # part of the rows on which the error is measured


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    data: Callable[[], tuple]
    ours: Callable[..., Any]
    rivals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    grade: Callable[[Any, tuple], float] | None = None  # an objective or error of the result: smaller is better


def threads_to_try() -> list[int]:
    """1, 2, 4, ... up to the cores of this machine, and then twice as many, which must not hurt."""
    cores, counts = settings().threads, [1]
    while 2 * counts[-1] < cores:
        counts.append(2 * counts[-1])
    return sorted({*counts, cores, 2 * cores})


def curve(row: Row) -> None:
    """Print the seconds of ours for every number of threads, the speed-up, and the rivals with all cores."""
    data, cores = row.data(), settings().threads
    seconds: dict[int, float] = {}
    row.ours(*data)  # compiled and warm
    for threads in threads_to_try():
        with config(threads=threads):
            seconds[threads], result = best_of(partial(row.ours, *data))
    single = seconds[1]
    times = "  ".join(f"{threads}: {taken:.3g}s" for threads, taken in seconds.items())
    parts = [f"{row.name:<40}", times, f"speed-up {single / seconds[cores]:.1f} on {cores}"]
    if row.grade is not None:
        parts.append(f"ours {row.grade(result, data):.4g}")
    for name, rival in row.rivals.items():
        with threadpool_limits(cores):
            taken, result = best_of(partial(rival, *data, threads=cores))
        grade = f", {row.grade(result, data):.4g}" if row.grade is not None else ""
        parts.append(f"{name} {taken:.3g}s (ratio {taken / seconds[cores]:.2f}{grade})")
    print(" | ".join(parts), flush=True)


def best_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """The least time of a few runs, and the last result."""
    taken, result = [], None
    for _ in range(REPEATS):
        start = perf_counter()
        result = run()
        taken.append(perf_counter() - start)
    return min(taken), result


# --- rows -------------------------------------------------------------------------------------------------------------


def classes(n: int, d: int) -> tuple:
    """Labelled rows, of which the last tenth is held out."""
    return make_classification(n, d, n_informative=d // 3, flip_y=0.02, random_state=0)


def learned(machine: Any, X: Any, y: Any) -> Any:
    """The machine fitted to all rows but those held out."""
    count = round(len(y) * (1 - HELD))
    return machine.fit(X[:count], y[:count])


def held_error(machine: Any, data: tuple) -> float:
    """The share of wrong classes among the rows held out."""
    X, y = data
    count = round(len(y) * (1 - HELD))
    return 1.0 - machine.score(X[count:], y[count:])


def light(X: Any, y: Any, threads: int) -> Any:
    from lightgbm import LGBMClassifier

    return learned(LGBMClassifier(n_estimators=100, num_leaves=31, n_jobs=threads, verbose=-1), X, y)


def extreme(X: Any, y: Any, threads: int) -> Any:
    from xgboost import XGBClassifier

    options: dict[str, Any] = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist"}
    return learned(XGBClassifier(n_estimators=100, learning_rate=0.1, n_jobs=threads, **options), X, y)


def histogram(X: Any, y: Any, threads: int) -> Any:
    return learned(HistGradientBoostingClassifier(max_iter=100, early_stopping=False), X, y)


def forest(X: Any, y: Any, threads: int, trees: int = 64) -> Any:
    return learned(RandomForestClassifier(trees, n_jobs=threads, oob_score=True, random_state=0), X, y)


BOOSTERS = {"LightGBM": light, "XGBoost": extreme, "HistGradientBoosting": histogram}

ROWS = [
    Row(
        "boosting 400 000 x 60, 100 trees",
        lambda: classes(440_000, 60),
        lambda X, y: learned(er.BoostingClassifier(), X, y),
        BOOSTERS,
        held_error,
    ),
    Row(
        "boosting 200 000 x 30, 100 trees",
        lambda: classes(220_000, 30),
        lambda X, y: learned(er.BoostingClassifier(), X, y),
        BOOSTERS,
        held_error,
    ),
    Row(
        "boosting 500 x 30, 100 trees",
        lambda: classes(555, 30),
        lambda X, y: learned(er.BoostingClassifier(), X, y),
        BOOSTERS,
        held_error,
    ),
    Row(
        "forest 100 000 x 60, 64 trees",
        lambda: classes(110_000, 60),
        lambda X, y: learned(er.ForestClassifier(64, random_state=0), X, y),
        {"RandomForest": forest},
        held_error,
    ),
]


def run() -> None:
    for row in ROWS:
        curve(row)
