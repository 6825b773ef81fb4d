"""Data and objectives of the linear benchmarks, all on our scale: R(w) + C * sum loss."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

# Real data sits beside the repository, where somebody has put it there, or in the folder EMPIRISK_DATA.
DATA = Path(os.environ.get("EMPIRISK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Data:
    """A named table of samples and targets."""

    name: str
    X: Any
    y: np.ndarray

    @property
    def n(self) -> int:
        return self.X.shape[0]


def dense_labels(n: int = 100_000, d: int = 100, seed: int = 0) -> Data:
    """Two overlapping classes: about one label in eight is on the wrong side of the best hyperplane."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    w = random.normal(size=d)
    f = X @ w / np.linalg.norm(w)
    y = np.where(random.random(n) < 1 / (1 + np.exp(-4 * f)), 1.0, -1.0)
    return Data(f"dense {n:_}x{d}", X, y)


def sparse_labels(name: str) -> Data | None:
    """The set ``"a9a"`` or ``"w8a"``; None, with a word, where it is not on this machine."""
    file = DATA / name / f"{name}.npz"
    if not file.is_file():
        print(f"{name}: no data, left out")
        return None
    with np.load(file) as stored:
        parts = (stored["train_data"], stored["train_indices"], stored["train_indptr"])
        X = sparse.csr_matrix(parts, shape=tuple(stored["train_shape"]), dtype=np.float64)
        y = np.where(stored["train_y"] > 0, 1.0, -1.0)
    return Data(f"{name} {X.shape[0]:_}x{X.shape[1]}", X, y)


def wide_regression(n: int = 1_000, d: int = 20_000, relevant: int = 50, seed: int = 0) -> Data:
    """More columns than rows and few that matter: a lasso's home."""
    random = np.random.default_rng(seed)
    X = np.asfortranarray(random.normal(size=(n, d)))
    w = np.zeros(d)
    w[random.choice(d, relevant, replace=False)] = random.normal(size=relevant)
    return Data(f"wide {n:_}x{d:_}", X, X @ w + random.normal(size=n))


def heavy_tailed_regression(n: int = 20_000, d: int = 20, seed: int = 0) -> Data:
    """Errors with outliers (Student's t with 2 degrees): where least absolute deviations earns its keep."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return Data(f"heavy-tailed {n:_}x{d}", X, X @ random.normal(size=d) + random.standard_t(2, size=n))


def tall_regression(n: int = 20_000, d: int = 200, seed: int = 0) -> Data:
    """Plain least-squares data."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return Data(f"tall {n:_}x{d}", X, X @ random.normal(size=d) + random.normal(size=n))


LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "hinge": lambda y, f: np.maximum(0, 1 - y * f),
    "squared_hinge": lambda y, f: np.maximum(0, 1 - y * f) ** 2,
    "logistic": lambda y, f: np.logaddexp(0, -y * f),
    "squared": lambda y, f: (y - f) ** 2,
    "absolute": lambda y, f: np.abs(y - f),
}
PENALTIES: dict[str, Callable[[np.ndarray], float]] = {
    "none": lambda w: 0.0,
    "l2": lambda w: 0.5 * float(w @ w),
    "l1": lambda w: float(np.abs(w).sum()),
}


def objective(data: Data, loss: str, penalty: str, C: float) -> Callable[[tuple[np.ndarray, float]], float]:
    """R(w) + C * sum loss as a function of (w, b): plain NumPy, and no code of any contestant."""

    def value(solution: tuple[np.ndarray, float]) -> float:
        w, b = solution
        return PENALTIES[penalty](w) + C * float(LOSSES[loss](data.y, data.X @ w + b).sum())

    return value


def critical_C(data: Data) -> float:
    """The largest C at which the lasso with an intercept is all zeros."""
    return float(1 / (2 * np.abs(data.X.T @ (data.y - data.y.mean())).max()))
