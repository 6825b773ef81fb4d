"""Principal components, dictionaries and metrics against scikit-learn and metric-learn; real tables where they are there.

EMPIRISK_DATA names the folder with the tables (mnist, usps, letter, spambase, a9a); made-up data stand in without it.
"""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
from metric_learn import LMNN
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA, KernelPCA, MiniBatchDictionaryLearning

import empirisk as er
from benchmarks.timing import OURS, compare

Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tables(most: int = 4_000) -> dict[str, Table]:
    """Rows to learn from and rows to test on, no more than ``most`` of either, of five tables."""
    folder = os.environ.get("EMPIRISK_DATA")
    if folder is None:
        return {}
    root, random, found = Path(folder), np.random.default_rng(0), {}
    for name in ("usps", "letter", "spambase", "mnist", "a9a"):
        file = np.load(root / name / f"{name}.npz")
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


def quality(most: int = 4_000) -> None:
    """Errors of three neighbours, Euclidean and after the large-margin metric, after the same projection."""
    for name, (X, y, X_new, y_new) in tables(most).items():
        if X.shape[1] > 100:
            pca = er.PCA(40).fit(X)
            X, X_new = pca.transform(X), pca.transform(X_new)
        plain = er.KNNClassifier(k=3).fit(X, y)
        learned = er.KNNClassifier(k=3, features=er.LargeMarginMetric(k=3)).fit(X, y)
        errors = [1 - machine.score(X_new, y_new) for machine in (plain, learned)]
        metric = learned.features_
        print(
            f"3-NN, {name:<10} {X.shape[0]:_}x{X.shape[1]:<4} error {errors[0]:.4f}, after the metric {errors[1]:.4f} "
            f"({metric.n_iter_} rounds, {metric.history_['seconds'][-1]:.1f} s)",
            flush=True,
        )


def images(n: int = 60_000) -> np.ndarray:
    """MNIST's images, or rows with a spectrum like theirs."""
    folder = os.environ.get("EMPIRISK_DATA")
    if folder is not None:
        return np.load(Path(folder) / "mnist" / "mnist.npz")["X_train"][:n].reshape(n, -1).astype(np.float64)
    random = np.random.default_rng(0)
    return random.normal(size=(n, 784)) * np.arange(1, 785) ** -0.7 @ random.normal(size=(784, 784))


def components(count: int = 50) -> None:
    X = images()
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


def large_margin(n: int = 9_000, d: int = 27, rounds: int = 50) -> None:
    """The same loss, margin and start for both; ours goes on until its objective is no higher than theirs."""
    random = np.random.default_rng(0)
    y = random.integers(0, 10, n)
    X = random.normal(size=(10, d))[y] + random.normal(size=(n, d)) * np.geomspace(0.5, 2.0, d)
    X /= np.sqrt(2 * d)
    ours = er.LargeMarginMetric(k=3, margin=1.0, max_iter=200)

    def objective(P: np.ndarray) -> float:
        """Ours, at P: the value at the start of a fit on rows that are mapped already has the same neighbours only
        at the start, so the loss itself is asked."""
        from empirisk.linalg.design import design_of

        loss = er.LargeMarginMetric(k=3, margin=1.0)._triplets(design_of(X), np.ones(n), y)
        return loss(X @ P.T)[0]

    contestants = {
        OURS: lambda: ours.fit(X, y).components_,
        "metric-learn": lambda: (
            LMNN(n_neighbors=3, regularization=0.5, max_iter=rounds, init="identity").fit(X, y).components_
        ),
    }
    compare(f"large-margin metric {n:_}x{d}", contestants, 1, objective, 1e-3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'':<36} | peak memory of the process {peak:.2f} GB")


def run() -> None:
    components()
    kernel_components()
    large_margin()
    quality()
