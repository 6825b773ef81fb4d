"""Linear machines with smooth and cornered losses against scikit-learn, and how their cost grows with the rows."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy import sparse

import empirisk as er
from benchmarks import problems, rivals
from benchmarks.problems import Data
from benchmarks.rivals import solution
from benchmarks.timing import OURS, Comparison, compare


def _ours(machine, data: Data) -> Callable:
    return lambda: solution(machine.fit(data.X, data.y))


def logistic(data: Data, C: float, intercept: bool = True) -> Comparison:
    machine = er.LogisticRegression(C=C, fit_intercept=intercept)
    contestants = {OURS: _ours(machine, data), **rivals.logistic(data, C, intercept)}
    name = f"logistic {data.name} C={C:g}" + ("" if intercept else ", no intercept")
    return compare(name, contestants, 5, problems.objective(data, "logistic", "l2", C))


def hinge(data: Data, C: float) -> Comparison:
    # LinearSVC would penalise an intercept: without one, both minimise the same.
    contestants = {OURS: _ours(er.SVM(C=C, tol=1e-4, fit_intercept=False), data), **rivals.hinge(data, C)}
    return compare(f"hinge {data.name} C={C:g}", contestants, 5, problems.objective(data, "hinge", "l2", C), 1e-4)


def least_absolute(data: Data) -> Comparison:
    contestants = {OURS: _ours(er.LeastAbsolute(), data), **rivals.least_absolute(data)}
    return compare(f"least absolute {data.name}", contestants, 3, problems.objective(data, "absolute", "none", 1.0))


def ridge(data: Data) -> Comparison:
    from sklearn.linear_model import RidgeCV

    Cs = np.geomspace(1e-4, 1e3, 50)
    contestants = {
        OURS: lambda: er.Ridge(C="loo", Cs=Cs).fit(data.X, data.y).C_,
        "RidgeCV": lambda: 1 / (2 * RidgeCV(alphas=1 / (2 * Cs)).fit(data.X, data.y).alpha_),
    }
    return compare(f"ridge, LOO over 50 C {data.name}", contestants, 3)


def growth(name: str, fit: Callable[[Data], object], small: Data, large: Data) -> None:
    """Seconds at n and at 10 n: linear growth has a ratio of about ten."""
    fit(small)
    times = []
    for data in (small, large):
        start = perf_counter()
        fit(data)
        times.append(perf_counter() - start)
    sizes = f"{len(small.y)} rows {times[0]:.3g}s, {len(large.y)} rows {times[1]:.3g}s"
    print(f"{name:<36} | {sizes}: {times[1] / times[0]:.1f} x")


def growths() -> None:
    """Ten times more rows for each."""
    labels = problems.dense_labels(20_000), problems.dense_labels(200_000)
    growth("logistic", lambda data: er.LogisticRegression(C=0.01).fit(data.X, data.y), *labels)
    growth("hinge", lambda data: er.SVM(C=0.01).fit(data.X, data.y), *labels)
    a9a = problems.sparse_labels("a9a")
    if a9a is not None:
        tenfold = Data("a9a ten times", sparse.vstack([a9a.X] * 10, format="csr"), np.tile(a9a.y, 10))
        growth("sparse logistic", lambda data: er.LogisticRegression(C=0.01).fit(data.X, data.y), a9a, tenfold)
        growth("sparse hinge", lambda data: er.SVM(C=0.01).fit(data.X, data.y), a9a, tenfold)
    tall = problems.tall_regression(20_000, 50), problems.tall_regression(200_000, 50)
    growth("ridge, LOO over 50 C", lambda data: er.Ridge(C="loo", Cs=50).fit(data.X, data.y), *tall)
    heavy = problems.heavy_tailed_regression(100_000), problems.heavy_tailed_regression(1_000_000)
    growth("least absolute", lambda data: er.LeastAbsolute().fit(data.X, data.y), *heavy)


def run() -> None:
    dense = problems.dense_labels()
    sets = [data for data in map(problems.sparse_labels, ("a9a", "w8a")) if data is not None]
    for C in (0.01, 1.0):
        logistic(dense, C)
    for data in sets:
        for C in (0.01, 1.0):
            logistic(data, C)
            logistic(data, C, intercept=False)
    # At C = 1 LinearSVC takes a minute.
    hinge(dense, 0.01)
    for data in sets:
        for C in (0.01, 1.0):
            hinge(data, C)
    least_absolute(problems.heavy_tailed_regression())
    ridge(problems.tall_regression())
    growths()
