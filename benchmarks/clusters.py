"""Clusters and densities against scikit-learn, SciPy, fastcluster and tslearn, where they are installed.

``python -m benchmarks clusters`` runs all; ``EMPIRISK_BENCH_SHARE=0.2`` takes that share of every data set's rows.
"""

import importlib
import os
import warnings
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import empirisk as er
from benchmarks.problems import DATA
from benchmarks.timing import OURS, compare

SHARE = float(os.environ.get("EMPIRISK_BENCH_SHARE", "1"))
SEEDS = range(10)  # a clustering depends on its start: the mean of ten is compared
#: Two random starts reach different optima: objectives are compared with the room that seeds leave.
LUCK = 0.02


def blobs(rows: int, columns: int, centres: int, spread: float = 2.0) -> np.ndarray:
    """Overlapping clouds around random centres."""
    random = np.random.default_rng(0)
    rows = max(500, int(SHARE * rows))
    middles = spread * random.normal(size=(centres, columns))
    return random.normal(size=(rows, columns)) + middles[random.integers(0, centres, rows)]


def k_means(rounds: int = 50) -> None:
    X = blobs(200_000, 32, 100, 0.7)
    ours = er.KMeans(100, n_init=1, max_iter=rounds, shifts=0, random_state=0)
    theirs = {
        name: KMeans(100, n_init=1, max_iter=rounds, tol=0, algorithm=name, random_state=0)
        for name in ("lloyd", "elkan")
    }
    contestants = {OURS: lambda: ours.fit(X).inertia_}
    contestants |= {f"sklearn {name}": lambda one=one: one.fit(X).inertia_ for name, one in theirs.items()}
    compare(f"k-means {len(X):_}x32, k=100, {rounds} rounds", contestants, 3, tolerance=LUCK)


def mixture(rounds: int = 20) -> None:
    X = blobs(100_000, 10, 10)
    ours = er.GaussianMixture(10, tol=0, max_iter=rounds, random_state=0)
    theirs = GaussianMixture(10, tol=0, max_iter=rounds, random_state=0)
    contestants = {OURS: lambda: ours.fit(X), "sklearn": lambda: theirs.fit(X)}
    compare(f"mixture full {len(X):_}x10, k=10", contestants, 3, lambda machine: -machine.score(X), LUCK)


def kernel_k_means() -> None:
    X = blobs(5_000, 10, 10, 1.0)
    try:
        clustering: Any = importlib.import_module("tslearn.clustering")
    except ImportError:
        print("tslearn: not installed, left out")
        return
    width = 3.0
    ours = er.KMeans(10, er.kernels.Gaussian(width), n_init=1, shifts=0, random_state=0)
    gamma = {"gamma": 1 / (2 * width**2)}
    theirs = clustering.KernelKMeans(10, kernel="rbf", kernel_params=gamma, max_iter=300, tol=0, random_state=0)
    contestants = {OURS: lambda: ours.fit(X).inertia_, "tslearn": lambda: theirs.fit(X).inertia_}
    compare(f"kernel k-means n={len(X):_}", contestants, 3, tolerance=LUCK)


def average_linkage() -> None:
    X = blobs(8_000, 10, 20)
    ours = er.Hierarchical("average")
    contestants = {OURS: lambda: ours.fit(X).linkage_, "scipy": lambda: linkage(X, "average")}
    try:
        fast: Any = importlib.import_module("fastcluster")
        contestants["fastcluster"] = lambda: fast.linkage(pdist(X), "average")
    except ImportError:
        print("fastcluster: not installed, left out")
    compare(f"average linkage n={len(X):_}", contestants, 3, lambda tree: float(tree[:, 2].sum()), 1e-9)


def stored(name: str) -> np.ndarray | None:
    """The rows of a table in `../shared/data`."""
    file = DATA / name / f"{name}.npz"
    if not file.is_file():
        print(f"{name}: no data, left out")
        return None
    with np.load(file) as arrays:
        X = next(arrays[key] for key in arrays.files if arrays[key].ndim > 1)
    return X.reshape(len(X), -1)[: max(500, int(SHARE * len(X)))].astype(np.float64)


def inertias() -> None:
    """The mean inertia of ten seeds on real data, at equal restarts."""
    for name, clusters in (("letter", 26), ("usps", 10), ("mnist", 10)):
        X = stored(name)
        if X is None:
            continue
        ours = [er.KMeans(clusters, n_init=3, random_state=seed).fit(X).inertia_ for seed in SEEDS]
        theirs = [KMeans(clusters, n_init=3, random_state=seed).fit(X).inertia_ for seed in SEEDS]
        print(
            f"{name} k={clusters}: our inertia is {np.mean(ours) / np.mean(theirs):.5f} of scikit-learn's", flush=True
        )


def likelihoods(columns: int = 16) -> None:
    """The mean log-likelihood of ten seeds on real data, all defaults but the number of components."""
    for name, components in (("letter", 26), ("usps", 10), ("mnist", 10)):
        X = stored(name)
        if X is None:
            continue
        X = er.PCA(columns).fit_transform(X[:10_000])
        for form, theirs in (("full", "full"), ("diagonal", "diag")):
            pairs = [
                (
                    er.GaussianMixture(components, form, random_state=seed).fit(X).score(X),
                    GaussianMixture(components, covariance_type=theirs, random_state=seed).fit(X).score(X),
                )
                for seed in SEEDS
            ]
            ours, rival = np.mean(pairs, axis=0)
            print(
                f"{name} {form}, {components} components: log-likelihood {ours:.5f}, scikit-learn {rival:.5f}, "
                f"not below in {sum(one >= other for one, other in pairs)} of {len(pairs)}",
                flush=True,
            )


def run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        k_means()
        mixture()
        kernel_k_means()
        average_linkage()
        inertias()
        likelihoods()
