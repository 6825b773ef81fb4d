"""Kernel ridge, kernel logistic regression, Nystrom features and neighbours, against scikit-learn and bare LAPACK."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy.linalg import lapack
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import empirisk as er
from benchmarks.timing import OURS, compare

WIDTH = 4.0  # of the Gaussian: about the distance of two rows


def smooth(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * random.normal(size=n)


def factor(X: np.ndarray, ridge: float) -> None:
    """What kernel ridge cannot do without: the Gram matrix and its Cholesky factor."""
    K = er.kernels.Gaussian(WIDTH)(X)
    K.flat[:: len(K) + 1] += ridge
    lapack.dpotrf(K.T, lower=1, overwrite_a=1, clean=0)


def untold(run: Callable[[], object]) -> Callable[[], None]:
    """The same work, without a result to grade."""

    def call() -> None:
        run()

    return call


def ridge(n: int = 6_000, d: int = 20) -> None:
    X, y = smooth(n, d)
    contestants = {
        OURS: untold(lambda: er.Ridge(C=5.0, features=er.kernels.Gaussian(WIDTH)).fit(X, y)),
        "Gram + Cholesky": untold(lambda: factor(X, 0.1)),
        "KernelRidge": untold(lambda: KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5 / WIDTH**2).fit(X, y)),
    }
    timings = compare(f"kernel ridge {n:_}x{d}", contestants, 2).timings
    bare, rival = (timings[name].median / timings[OURS].median for name in ("Gram + Cholesky", "KernelRidge"))
    print(f"{'':<36} | {1 / bare:.2f} x Gram + Cholesky, {rival:.1f} x faster than KernelRidge")


def leave_one_out(n: int = 3_000) -> None:
    """20 values of C in units of one fit: few where the Gram matrix has few directions, else an eigendecomposition."""
    for d, width in ((2, 1.5), (3, 2.0), (20, WIDTH)):
        X, y = smooth(n, d)
        kernel = er.kernels.Gaussian(width)
        seconds = []
        for C in (1.0, "loo"):
            start = perf_counter()
            er.Ridge(C=C, features=kernel).fit(X, y)
            seconds.append(perf_counter() - start)
        print(f"{f'leave-one-out {n:_}x{d}, 20 values of C':<36} | {seconds[1] / seconds[0]:.1f} fits")


def logistic(n: int = 5_000, d: int = 20) -> None:
    X, _ = smooth(n, d)
    y = X[:, 0] * X[:, 1] > 0
    K = er.kernels.Gaussian(WIDTH)(X)
    K.flat[:: n + 1] += 0.1
    for C in (1.0, 100.0):
        contestants = {
            OURS: untold(lambda C=C: er.LogisticRegression(C=C, features=er.kernels.Gaussian(WIDTH)).fit(X, y)),
            "Cholesky": untold(lambda: lapack.dpotrf(K.copy().T, lower=1, overwrite_a=1, clean=0)),
        }
        comparison = compare(f"kernel logistic {n:_}x{d}, C={C:g}", contestants, 2)
        print(f"{'':<36} | {1 / comparison.ratio:.1f} Cholesky factorisations")


def nystrom(n: int = 200_000, d: int = 30, rank: int = 1_000, C: float = 10.0) -> None:
    X, _ = smooth(n, d)
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, 1, -1)
    width = 5.0
    theirs = Nystroem(gamma=0.5 / width**2, n_components=rank, random_state=1)
    # The same landmarks for both: the features differ by a rotation, and the optimum does not.
    landmarks = clone(theirs).fit(X).components_

    def hinge(machine) -> float:
        """The objective of either machine on its own features."""
        if isinstance(machine, er.SVM):
            return machine.certificate_.primal
        w, b = machine[-1].coef_[0], machine[-1].intercept_[0]
        return 0.5 * w @ w + C * np.maximum(0, 1 - y * (machine[0].transform(X) @ w + b)).sum()

    ours = er.maps.Nystrom(er.kernels.Gaussian(width), rank, landmarks)
    # What LinearSVC reaches within its iterations is a few 1e-5 above the optimum: ours is timed there, and at 1e-6.
    for tol in (1e-6, 1e-4):
        contestants = {
            OURS: lambda tol=tol: er.SVM(C=C, features=ours, tol=tol).fit(X, y),
            "Nystroem + LinearSVC": lambda: make_pipeline(clone(theirs), LinearSVC(C=C, loss="hinge")).fit(X, y),
        }
        compare(f"Nystrom {rank} + hinge {n:_}x{d}, tol {tol:g}", contestants, 1, hinge, 1e-4)


def neighbours(n: int = 50_000, queries: int = 10_000, d: int = 64, k: int = 10) -> None:
    random = np.random.default_rng(0)
    X, new = random.normal(size=(n, d)), random.normal(size=(queries, d))
    y = X[:, 0] > 0
    ours = er.KNNClassifier(k).fit(X, y)
    theirs = KNeighborsClassifier(k, algorithm="brute").fit(X, y)
    error = {OURS: lambda: ours.predict(new), "sklearn brute": lambda: theirs.predict(new)}
    compare(f"{k}-NN, {queries:_} in {n:_}x{d}", error, 3, lambda found: np.mean(found != (new[:, 0] > 0)))


def run() -> None:
    ridge()
    leave_one_out()
    logistic()
    neighbours()
    nystrom()
