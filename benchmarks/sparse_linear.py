"""Machines with an l1 penalty against scikit-learn, celer, skglm and liblinear; the lasso path; growth with rows."""

from collections.abc import Callable

import numpy as np
from celer import ElasticNet as CelerElasticNet
from celer import LogisticRegression as CelerLogistic
from skglm import ElasticNet as SkglmElasticNet
from skglm import SparseLogisticRegression
from sklearn.linear_model import ElasticNet, LogisticRegression, lasso_path

import empirisk as er
from benchmarks import problems, rivals
from benchmarks.linear import growth
from benchmarks.problems import Data
from benchmarks.rivals import solution
from benchmarks.timing import OURS, Comparison, compare, loosest
from empirisk import scales

RATIO = 0.5  # of l1 in the elastic net: half of each
#: Tolerances that a rival is given, until its path is as good as ours.
PATH_TOLERANCES = (1e-2, 1e-3, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
EQUAL = 1e-5  # part of the objective by which two paths may differ


def _contestants(data: Data, machines: dict) -> dict[str, Callable]:
    return {name: lambda machine=machine: solution(machine.fit(data.X, data.y)) for name, machine in machines.items()}


def lasso(data: Data, times: float) -> Comparison:
    C = times * problems.critical_C(data)
    contestants = {**_contestants(data, {OURS: er.Lasso(C=C)}), **rivals.lasso(data, C)}
    return compare(f"lasso {data.name}, {times:g} C0", contestants, 5, problems.objective(data, "squared", "l1", C))


def elastic_net(data: Data, times: float) -> None:
    C = times * problems.critical_C(data) * RATIO
    alpha, l1_ratio = scales.to_elastic_net(C, RATIO, data.n)
    machines = {
        OURS: er.ElasticNet(C=C, l1_ratio=RATIO),
        "sklearn": ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-6, max_iter=100_000),
        "celer": CelerElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-6),
        "skglm": SkglmElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-6),
    }
    squares = problems.objective(data, "squared", "none", C)

    def objective(found: tuple[np.ndarray, float]) -> float:
        w = found[0]
        return RATIO * float(np.abs(w).sum()) + 0.5 * (1 - RATIO) * float(w @ w) + squares(found)

    compare(f"elastic net {data.name}, {times:g} C0", _contestants(data, machines), 5, objective)


def logistic(data: Data, times: float) -> None:
    """Without an intercept, which liblinear would penalise and celer does not fit."""
    C = times * 2 / float(np.abs(data.X.T @ data.y).max())
    machines = {
        OURS: er.LogisticRegression(C=C, penalty="l1", fit_intercept=False),
        "liblinear": LogisticRegression(
            C=C, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-4, max_iter=10_000
        ),
        "celer": CelerLogistic(C=C, fit_intercept=False, tol=1e-6),
        "skglm": SparseLogisticRegression(alpha=1 / (C * data.n), fit_intercept=False, tol=1e-5),
    }
    objective = problems.objective(data, "logistic", "l1", C)
    compare(f"l1 logistic {data.name}, {times:g} C0", _contestants(data, machines), 5, objective)


def path(data: Data, count: int = 100) -> None:
    """The whole lasso path by its sum of objectives: both sides as loose as comes within `EQUAL` of the best."""
    smallest = problems.critical_C(data)
    Cs = smallest * np.geomspace(1.0, 1e3, count)
    Xc, yc = data.X - data.X.mean(axis=0), data.y - data.y.mean()

    def theirs(tol: float) -> np.ndarray:
        return lasso_path(Xc, yc, alphas=[scales.to_lasso(C, data.n) for C in Cs], tol=tol)[1].T

    def ours(tol: float) -> np.ndarray:
        return er.selection.path(er.Lasso(tol=tol), data.X, data.y, Cs).coefs

    def objective(coefs: np.ndarray) -> float:
        residuals = yc[:, None] - Xc @ coefs.T
        return float((np.abs(coefs).sum(axis=1) + Cs * (residuals**2).sum(axis=0)).sum())

    aim = (1 + EQUAL) * objective(ours(1e-6))
    runs = {OURS: ours, "sklearn": theirs}
    tolerances = {name: loosest(run, PATH_TOLERANCES, objective, aim) for name, run in runs.items()}
    contestants = {name: (lambda run=run, tol=tolerances[name]: run(tol)) for name, run in runs.items()}
    found = "/".join(f"{tol:g}" for tol in tolerances.values())
    compare(f"lasso path of {count}, {data.name}, tol {found}", contestants, 2, objective, EQUAL)


def labels(n: int, d: int, relevant: int = 50, seed: int = 0) -> Data:
    """Labels that follow few of many columns, with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    f = X[:, :relevant] @ random.normal(size=relevant)
    y = np.where(4 * f / f.std() + random.logistic(size=n) > 0, 1.0, -1.0)
    return Data(f"dense {n:_}x{d}", X, y)


def run() -> None:
    wide = problems.wide_regression()
    for times in (10, 50, 200):
        lasso(wide, times)
    lasso(Data(f"{wide.name} by rows", np.ascontiguousarray(wide.X), wide.y), 50)
    elastic_net(wide, 50)
    path(wide)
    sparse = [data for data in map(problems.sparse_labels, ("a9a", "w8a")) if data is not None]
    for data in (labels(1_000, 5_000), labels(20_000, 200), *sparse):
        for times in (10, 100):
            logistic(data, times)
    tall = problems.tall_regression(20_000), problems.tall_regression(200_000)
    growth("lasso", lambda data: er.Lasso(C=1e-3).fit(data.X, data.y), *tall)
    growth("elastic net", lambda data: er.ElasticNet(C=1e-3).fit(data.X, data.y), *tall)
    growth("lasso path of 100", lambda data: er.selection.path(er.Lasso(tol=1e-4), data.X, data.y), *tall)
    growth(
        "l1 logistic",
        lambda data: er.LogisticRegression(C=0.01, penalty="l1").fit(data.X, data.y),
        labels(20_000, 200),
        labels(200_000, 200),
    )
