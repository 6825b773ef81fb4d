"""The rivals on our scale: each takes data and C, and returns the (w, b) it found."""

from collections.abc import Callable
from functools import partial

import numpy as np
from celer import Lasso as CelerLasso
from skglm import Lasso as SkglmLasso
from sklearn.linear_model import Lasso, LogisticRegression, QuantileRegressor, Ridge
from sklearn.svm import LinearSVC

from benchmarks.problems import Data
from empirisk import scales

Rival = Callable[[], tuple[np.ndarray, float]]


def solution(machine) -> tuple[np.ndarray, float]:
    """The weights and the intercept of a fitted linear machine with one output."""
    return np.ravel(machine.coef_), float(np.ravel(machine.intercept_)[0])


def _fit(machine, data: Data) -> tuple[np.ndarray, float]:
    return solution(machine.fit(data.X, data.y))


def _rivals(data: Data, machines: dict) -> dict[str, Rival]:
    return {name: partial(_fit, machine, data) for name, machine in machines.items()}


def logistic(data: Data, C: float, intercept: bool = True, tol: float = 1e-6) -> dict[str, Rival]:
    """scikit-learn's solvers; liblinear, which penalises an intercept, takes part where there is none."""
    solvers = {"lbfgs": tol, "newton-cholesky": tol} | ({} if intercept else {"liblinear": 1e-4})
    machines = {
        f"sklearn {name}": LogisticRegression(C=C, solver=name, tol=tol, fit_intercept=intercept, max_iter=10_000)
        for name, tol in solvers.items()
    }
    return _rivals(data, machines)


def hinge(data: Data, C: float, tol: float = 1e-3) -> dict[str, Rival]:
    """scikit-learn's LinearSVC, without the intercept, which it would penalise."""
    machine = LinearSVC(loss="hinge", C=C, tol=tol, max_iter=100_000, fit_intercept=False, random_state=0)
    return _rivals(data, {"sklearn LinearSVC": machine})


def lasso(data: Data, C: float, tol: float = 1e-6) -> dict[str, Rival]:
    """Coordinate descent three times: scikit-learn, celer, skglm."""
    alpha = scales.to_lasso(C, data.n)
    machines = {
        "sklearn": Lasso(alpha, tol=tol, max_iter=100_000),
        "celer": CelerLasso(alpha, tol=tol),
        "skglm": SkglmLasso(alpha, tol=tol),
    }
    return _rivals(data, machines)


def ridge(data: Data, C: float) -> dict[str, Rival]:
    """scikit-learn's direct solvers."""
    alpha = scales.to_ridge(C)
    return _rivals(data, {f"sklearn {name}": Ridge(alpha, solver=name) for name in ("cholesky", "svd")})


def least_absolute(data: Data) -> dict[str, Rival]:
    """scikit-learn's median regression without a penalty, by interior point: the simplex took eight times longer."""
    return _rivals(data, {"sklearn": QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs-ipm")})
