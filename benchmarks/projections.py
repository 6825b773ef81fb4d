"""Principal components, dictionaries and metrics against scikit-learn and metric-learn, on real tables."""

import importlib
import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.utils
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA, DictionaryLearning, KernelPCA
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from benchmarks.problems import DATA
from benchmarks.timing import OURS, compare
from empirisk.linalg.design import design_of

Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tables(most: int = 4_000) -> dict[str, Table]:
    """Rows to learn from and rows to test on, no more than ``most`` of either, of five tables."""
    random, found = np.random.default_rng(0), {}
    for name in ("usps", "letter", "spambase", "mnist", "a9a"):
        file = np.load(DATA / name / f"{name}.npz")
        if name == "a9a":
            X = csr_matrix(
                (file["train_data"], file["train_indices"], file["train_indptr"]), shape=file["train_shape"]
            ).toarray()
            y = file["train_y"]
        elif "X" in file:
            X, y = file["X"], file["y"]
        else:
            X, y = file["X_train"], file["y_train"]
        chosen = random.permutation(len(y))[: 2 * most]
        X = X[chosen].reshape(len(chosen), -1).astype(np.float64)
        half = len(chosen) // 2
        found[name] = X[:half], y[chosen[:half]], X[half:], y[chosen[half:]]
    return found


def lmnn(rounds: int) -> Any:
    """metric-learn's machine; its release calls scikit-learn's checks by an argument that has got another name."""
    checks: Any = importlib.import_module("metric_learn._util")
    for name in ("check_X_y", "check_array"):
        check = getattr(sklearn.utils, name)

        def renamed(*args, check=check, force_all_finite=True, **kwargs):
            return check(*args, ensure_all_finite=force_all_finite, **kwargs)

        setattr(checks, name, renamed)
    return importlib.import_module("metric_learn").LMNN(
        n_neighbors=3, regularization=0.5, max_iter=rounds, init="identity"
    )


def quality(most: int = 4_000) -> None:
    """Errors of three neighbours, Euclidean and after the large-margin metric, after the same projection."""
    for name, (X, y, X_new, y_new) in tables(most).items():
        if X.shape[1] > 100:
            pca = er.PCA(40).fit(X)
            X, X_new = pca.transform(X), pca.transform(X_new)
        plain = er.KNNClassifier(n_neighbors=3).fit(X, y)
        learned = er.KNNClassifier(n_neighbors=3, features=er.LargeMarginMetric(n_neighbors=3)).fit(X, y)
        errors = [1 - machine.score(X_new, y_new) for machine in (plain, learned)]
        metric = learned.features_
        print(
            f"3-NN, {name:<10} {X.shape[0]:_}x{X.shape[1]:<4} error {errors[0]:.4f}, after the metric {errors[1]:.4f} "
            f"({metric.n_iter_} rounds, {metric.history_['seconds'][-1]:.1f} s)",
            flush=True,
        )


def components(count: int = 50) -> None:
    X = np.load(DATA / "mnist" / "mnist.npz")["X_train"].reshape(60_000, -1).astype(np.float64)
    total = np.sum((X - X.mean(axis=0)) ** 2)

    def left(pca) -> float:
        """The share of the variance that is not kept."""
        return 1 - np.sum(((X - X.mean(axis=0)) @ pca.components_.T) ** 2) / total

    contestants: dict[str, Callable] = {OURS: lambda: er.PCA(count).fit(X)}
    for solver in ("covariance_eigh", "randomized", "arpack"):
        contestants[f"sklearn {solver}"] = lambda solver=solver: PCA(count, svd_solver=solver).fit(X)
    compare(f"PCA {len(X):_}x784 to {count}", contestants, 3, left, 1e-6)


def kernel_components(n: int = 5_000, count: int = 10, width: float = 4.0) -> None:
    X = np.random.default_rng(0).normal(size=(n, 20))

    def left(pca) -> float:
        """n less the sum of the eigenvalues."""
        values = pca.singular_values_**2 if isinstance(pca, er.PCA) else pca.eigenvalues_
        return n - float(np.sum(values))

    kernel, gamma = er.kernels.Gaussian(width), 0.5 / width**2
    contestants: dict[str, Callable] = {OURS: lambda: er.PCA(count, kernel).fit(X)}
    for solver in ("arpack", "randomized"):
        contestants[f"sklearn {solver}"] = lambda solver=solver: KernelPCA(
            count, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0
        ).fit(X)
    compare(f"kernel PCA {n:_} to {count}", contestants, 3, left, 1e-4)


def large_margin(n: int = 9_000, d: int = 27, rounds: int = 100) -> None:
    """The same loss, margin and start for both; theirs is given few rounds, which are not enough to reach ours."""
    random = np.random.default_rng(0)
    y = random.integers(0, 10, n)
    X = random.normal(size=(10, d))[y] + random.normal(size=(n, d)) * np.geomspace(0.5, 2.0, d)
    X /= 3.0  # neighbours at about the margin
    ours = er.LargeMarginMetric(n_neighbors=3, margin=1.0, max_iter=200)

    loss = er.LargeMarginMetric(n_neighbors=3, margin=1.0)._triplets(design_of(X), np.ones(n), y)

    def objective(P: np.ndarray) -> float:
        return loss(X @ P.T)[0]

    contestants = {OURS: lambda: ours.fit(X, y).components_}
    if importlib.util.find_spec("metric_learn"):
        contestants["metric-learn"] = lambda: lmnn(rounds).fit(X, y).components_
    else:
        print("metric-learn: not installed, left out")
    compare(f"large-margin metric {n:_}x{d}", contestants, 1, objective, 1e-3)


def large_margin_memory(n: int = 9_000, d: int = 27) -> None:
    """The most that a process needs that does nothing but this fit."""
    program = (
        "import numpy as np, resource, empirisk as er\n"
        "random = np.random.default_rng(0)\n"
        f"y = random.integers(0, 10, {n})\n"
        f"X = random.normal(size=(10, {d}))[y] + random.normal(size=({n}, {d}))\n"
        "er.LargeMarginMetric(n_neighbors=3, max_iter=200).fit(X, y)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)"
    )
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    print(f"large-margin metric {n:_}x{d}: peak memory {float(found.stdout):.2f} GB", flush=True)


def dictionaries(n: int = 5_000, atoms: int = 64) -> None:
    X = np.load(DATA / "usps" / "usps.npz")["X_train"][:n].astype(np.float64)
    C = 0.5

    def objective(A: np.ndarray) -> float:
        machine = er.Dictionary(len(A), C=C, init=A, max_iter=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return float(machine.fit(X).history_["objective"][0])

    # scikit-learn's scale: alpha |z|_1 + 1/2 |x - z A|^2.
    rival = DictionaryLearning(atoms, alpha=0.5 / C, max_iter=10, fit_algorithm="cd", random_state=0)
    contestants = {
        OURS: lambda: er.Dictionary(atoms, C=C, random_state=0).fit(X).components_,
        "sklearn cd": lambda: rival.fit(X).components_,
    }
    compare(f"dictionary of {atoms}, {n:_}x256", contestants, 1, objective, 1e-2)


def run() -> None:
    components()
    kernel_components()
    large_margin()
    large_margin_memory()
    dictionaries()
    quality()
