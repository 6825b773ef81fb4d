"""Seconds of fits on an accelerator, with X in memory at the start, beside the seconds that they should take.

``python -m benchmarks device`` runs every row on the accelerator that JAX sees. ``EMPIRISK_BENCH_ROWS=kmeans,svm`` runs
those alone, in this order, ``EMPIRISK_BENCH_SHARE=0.01`` takes that share of rows, landmarks and clusters,
``EMPIRISK_BENCH_DEVICE=jax:cpu`` the code of accelerators on the processor, ``EMPIRISK_BENCH_LIMIT=60`` ends a fit
after so many seconds, and ``EMPIRISK_BENCH_BUDGET=220`` begins no more fits than so many seconds allow. A fit is timed
with all that JAX compiles for it, and once more without where there is time; ``EMPIRISK_BENCH_PROFILE=12`` prints the
functions in which that second one spent most, each with its own seconds and those of what it called.
"""

import cProfile
import io
import os
import pstats
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import empirisk as er
from benchmarks.timing import timed

SHARE = float(os.environ.get("EMPIRISK_BENCH_SHARE", "1"))
ONLY = os.environ.get("EMPIRISK_BENCH_ROWS", "")
DEVICE = os.environ.get("EMPIRISK_BENCH_DEVICE", "gpu")
LIMIT = float(os.environ.get("EMPIRISK_BENCH_LIMIT", "60"))
BUDGET = float(os.environ.get("EMPIRISK_BENCH_BUDGET", "inf"))
PROFILED = int(os.environ.get("EMPIRISK_BENCH_PROFILE", "0"))
BEGIN = perf_counter()
#: The rooms whose functions a profile shows.
INNER = "empirisk/(scale|solvers|maps|linalg|clusters|fits)/"
#: Columns of the rows of kernel machines: those of the HIGGS table.
COLUMNS = 28


@dataclass(frozen=True)
class Row:
    """What is timed.

    Attributes
    ----------
    name, title : str
        By what it is chosen, and what it is.
    target : float
        The seconds that it should take on an H200.
    make : callable
        Gives what is timed: a function that fits or searches and returns what was reached, in words.
    """

    name: str
    title: str
    target: float
    make: Callable[[], Callable[[], str]]


def left() -> float:
    """The seconds that a fit may take."""
    return min(LIMIT, BUDGET - (perf_counter() - BEGIN))


def size(count: int, least: int = 20) -> int:
    """The share of a number."""
    return max(least, int(SHARE * count))


def rows(count: int, columns: int = COLUMNS) -> NDArray:
    """Rows of a normal law."""
    return np.random.default_rng(0).normal(size=(count, columns))


def curve(X: NDArray) -> NDArray:
    """A target that is not linear, with noise."""
    noise = np.random.default_rng(1).normal(size=len(X))
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.5 * noise


def fit(machine: Any, X: NDArray, y: NDArray | None = None) -> Callable[[], str]:
    """A fit, and its certificate in words."""

    def run() -> str:
        fitted = machine.fit(X, y)
        proof = getattr(fitted, "certificate_", None)
        if proof is None:
            return f"{fitted.n_iter_} rounds, inertia {fitted.inertia_:.6g}"
        return f"{proof.status}, gap {proof.relative_gap:.1e}, {proof.iterations} iterations, {proof.solver}"

    return run


def kernel_machine(kind: Any, count: int, tol: float, labels: bool = False, **options: Any) -> Callable[[], str]:
    """A machine behind the full Gaussian kernel of median width, or on landmarks of it."""
    X = rows(size(count))
    y = curve(X)
    rank = options.pop("rank", None)
    kernel = er.kernels.Gaussian("median")
    features = kernel if rank is None else er.maps.Nystrom(kernel, rank=size(rank), random_state=0)
    target = y > np.median(y) if labels else y
    return fit(kind(features=features, tol=tol, max_time=left(), **options), X, target)


def digits() -> Callable[[], str]:
    """As many rows as MNIST has, of ten classes around their means, one against one."""
    X, random = rows(size(60_000, 200), 784), np.random.default_rng(2)
    classes = random.integers(0, 10, len(X))
    X = (random.normal(size=(10, 784)) * 0.3)[classes] + X
    machine = er.SVM(features=er.kernels.Gaussian("median"), multiclass="one_vs_one", tol=1e-3, max_time=left())
    return fit(machine, X.astype(np.float32), classes)


def clusters() -> Callable[[], str]:
    """Fifty rounds of k-means from the first rows."""
    X = rows(size(4_000_000, 2000), 32)
    machine = er.KMeans(size(1000), init=X[: size(1000)], n_init=1, shifts=0, max_iter=50, max_time=left())
    return fit(machine, X)


def neighbours() -> Callable[[], str]:
    """The ten nearest of many rows."""
    X, asked = rows(size(1_000_000), 64), rows(size(10_000), 64) + 0.1
    machine = er.KNNRegressor(10).fit(X, X[:, 0])
    return lambda: f"mean distance {machine.kneighbors(asked)[0].mean():.6g}"


def full(kind: Any, count: int, tol: float, **options: Any) -> Callable[[], Callable[[], str]]:
    """A machine behind the full kernel, made when its turn has come."""
    return lambda: kernel_machine(kind, count, tol, **options)


def landmarks(kind: Any, tol: float, **options: Any) -> Callable[[], Callable[[], str]]:
    """A machine on 20 000 landmarks of a million rows."""
    return full(kind, 1_000_000, tol, rank=20_000, **options)


ROWS = (
    Row("ridge", "kernel ridge 200 000 x 28, C = 0.1, gap 1e-4", 4, full(er.Ridge, 200_000, 1e-4, C=0.1)),
    Row("ridge_C1", "kernel ridge 200 000 x 28, C = 1, gap 1e-4", 20, full(er.Ridge, 200_000, 1e-4, C=1.0)),
    Row("kmeans", "k-means 4 000 000 x 32, k = 1000, 50 rounds", 3, clusters),
    Row("neighbours", "10 neighbours of 10 000 in 1 000 000 x 64", 0.3, neighbours),
    Row("nystrom_ridge", "Nystrom ridge 1 000 000 x 28, rank 20 000, gap 1e-6", 10, landmarks(er.Ridge, 1e-6)),
    Row("svm", "Gaussian SVM 200 000 x 28, gap 1e-3", 60, full(er.SVM, 200_000, 1e-3, labels=True)),
    Row("nystrom_logistic", "Nystrom logistic, gap 1e-3", 60, landmarks(er.LogisticRegression, 1e-3, labels=True)),
    Row("nystrom_svm", "Nystrom SVM, gap 1e-3", 60, landmarks(er.SVM, 1e-3, labels=True)),
    Row("digits", "SVM 60 000 x 784, ten classes one against one", 5, digits),
    Row("ridge_million", "kernel ridge 1 000 000 x 28, C = 0.1, gap 1e-3", 60, full(er.Ridge, 1_000_000, 1e-3, C=0.1)),
    Row("million_C1", "kernel ridge 1 000 000 x 28, C = 1, gap 1e-3", 240, full(er.Ridge, 1_000_000, 1e-3, C=1.0)),
)


def profiled(work: Callable[[], str]) -> tuple[float, str]:
    """The seconds of a fit, and in which functions it spent most of them."""
    profile, begin = cProfile.Profile(), perf_counter()
    profile.runcall(work)
    seconds, text = perf_counter() - begin, io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(INNER, PROFILED)
    return seconds, "".join(f"    {line}\n" for line in text.getvalue().splitlines()[7:] if line.strip())


def run() -> None:
    """Every row, or those of ``EMPIRISK_BENCH_ROWS``."""
    named = {row.name: row for row in ROWS}
    for row in [named[name] for name in ONLY.split(",")] if ONLY else ROWS:
        if left() <= 0:
            print(f"{row.title:<58} no time left", flush=True)
            continue
        with er.config(device=DEVICE), warnings.catch_warnings(action="ignore"):
            work = row.make()
            first, reached = timed(work)
            print(f"{row.title:<58} first {first:6.3g} s, target {row.target:g} s | {reached}", flush=True)
            if first < left():
                seconds, functions = profiled(work) if PROFILED else (timed(work)[0], "")
                print(f"{'':<58} again {seconds:6.3g} s\n{functions}", end="", flush=True)
