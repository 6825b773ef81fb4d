"""Rows that lie on an accelerator, as arrays of JAX, torch and CuPy: are answers those of NumPy, and what is copied?

``python -m benchmarks arrays`` fits every machine of the accelerator on the same rows in each kind, and prints the
largest difference of its answers to those of rows in memory, relative to the largest of them (for classes the share
that differs), and the bytes that came from the device to memory: of arrays as wide as the rows, and of all.
``EMPIRISK_BENCH_DEVICE=jax:cpu`` tries it without an accelerator, ``EMPIRISK_BENCH_ROWS=ridge,kmeans`` some of the
machines, ``EMPIRISK_BENCH_SHARE=0.1`` a tenth of the rows, and ``EMPIRISK_BENCH_BUDGET=55`` begins no more of them
after so many seconds.
"""

import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

import empirisk as er

DEVICE = os.environ.get("EMPIRISK_BENCH_DEVICE", "auto")
ONLY = os.environ.get("EMPIRISK_BENCH_ROWS", "")
BUDGET = float(os.environ.get("EMPIRISK_BENCH_BUDGET", "55"))
ROWS = int(5000 * float(os.environ.get("EMPIRISK_BENCH_SHARE", "1")))
WIDTH = 61  # that nothing else has
MEDIAN = er.kernels.Gaussian("median")
NYSTROM = er.maps.Nystrom(MEDIAN, rank=50, random_state=0)
MACHINES = {
    "kernel_ridge": er.Ridge(features=MEDIAN),
    "kernel_svm": er.SVM(features=MEDIAN),
    "kernel_logistic": er.LogisticRegression(features=MEDIAN),
    "kmeans": er.KMeans(5, random_state=0),
    "neighbours": er.KNNRegressor(5),
    "mixture": er.GaussianMixture(2, random_state=0),
    "pca": er.PCA(3),
    "nystrom": er.Ridge(features=NYSTROM),
    "fourier": er.LogisticRegression(features=er.maps.RandomFourier(MEDIAN, rank=50, random_state=0)),
    "ridge": er.Ridge(),
    "logistic": er.LogisticRegression(),
    "svm": er.SVM(),
    "lasso": er.Lasso(),
    "kernel_svr": er.SVR(features=MEDIAN),
    "nystrom_svm": er.SVM(features=NYSTROM),
    "kernel_pca": er.PCA(3, features=MEDIAN),
    "least_squares": er.LeastSquares(),
    "svr": er.SVR(),
}
ANSWERS = ("predict", "decision_function", "predict_proba", "transform", "score_samples", "kneighbors")


def of_jax(X: np.ndarray) -> Any:
    """An array of JAX, where JAX puts it."""
    return importlib.import_module("jax.numpy").asarray(X)


def of_torch(X: np.ndarray) -> Any:
    """A tensor, on the accelerator if torch sees one."""
    torch = importlib.import_module("torch")
    return torch.asarray(X, device="cuda" if torch.cuda.is_available() else "cpu")


def of_cupy(X: np.ndarray) -> Any:
    """An array of CuPy."""
    return importlib.import_module("cupy").asarray(X)


KINDS: dict[str, Callable[[np.ndarray], Any]] = {"jax": of_jax, "torch": of_torch, "cupy": of_cupy}


@contextmanager
def copies_noted(seen: list[Any]) -> Iterator[None]:
    """Within, the shape and bytes of all that NumPy is given of arrays of others are added to ``seen``."""
    held = importlib.import_module("empirisk.scale.device_rows").HeldRows
    owners = [(np, "asarray"), (np, "array"), (held, "__array__")]
    if there("torch"):
        owners.append((importlib.import_module("torch").Tensor, "cpu"))
    before = [(owner, name, getattr(owner, name)) for owner, name in owners]

    def noted(take: Callable) -> Callable:
        def call(array: Any, *args: Any, **options: Any) -> Any:
            if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
                seen.append((tuple(array.shape), int(np.prod(array.shape)) * array.dtype.itemsize))
            return take(array, *args, **options)

        return call

    for owner, name, take in before:
        setattr(owner, name, noted(take))
    try:
        yield
    finally:
        for owner, name, take in before:
            setattr(owner, name, take)


def there(package: str) -> bool:
    """Whether a package is installed and loads."""
    try:
        importlib.import_module(package)
    except (ImportError, OSError):
        return False
    return True


def in_memory(answer: Any) -> np.ndarray:
    """An answer of any kind as NumPy's, the distances where there are neighbours too."""
    answer = answer[0] if isinstance(answer, tuple) else answer
    answer = answer.detach().cpu() if hasattr(answer, "detach") else answer
    return answer.get() if hasattr(answer, "get") else np.asarray(answer)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest answer; of classes the share that differs."""
    if expected.dtype.kind in "iu":
        return float(np.mean(found != expected))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def tried(machine: Any, rows: Any, y: np.ndarray, expected: dict[str, np.ndarray]) -> str:
    """A fit and its answers on rows of some kind, in words."""
    seen: list[Any] = []
    begin = perf_counter()
    with copies_noted(seen):
        fitted = clone(machine).fit(rows, y)
        answers = {name: getattr(fitted, name)(rows) for name in expected}
    seconds = perf_counter() - begin
    wide = sum(
        size for shape, size in seen if len(shape) == 2 and shape[1] in (WIDTH, WIDTH + 1) and shape[0] > ROWS // 4
    )
    apart = max(difference(in_memory(answers[name]), expected[name]) for name in expected)
    kinds = {
        type(each[0] if isinstance(each, tuple) else each).__module__.partition(".")[0] for each in answers.values()
    }
    copied = f"copies of X {wide} bytes (all that came {sum(size for _, size in seen):.3g})"
    return f"differs by {apart:.1e}, {copied}, answers of {'/'.join(sorted(kinds))}, {seconds:.2f} s"


def run() -> None:
    """Every machine in every kind that is installed."""
    begin, random = perf_counter(), np.random.default_rng(0)
    X = (random.normal(size=(ROWS, WIDTH)) + 1.0).astype(np.float32)
    y = np.sin(X[:, 0]) + X[:, 1]
    kinds = {name: make(X) for name, make in KINDS.items() if there(name)}
    absent = ", ".join(sorted(set(KINDS) - set(kinds))) or "none"
    print(f"rows {ROWS} x {WIDTH}, {X.nbytes} bytes; kinds: {', '.join(kinds)}; not there: {absent}")
    for name in ONLY.split(",") if ONLY else MACHINES:
        if perf_counter() - begin > BUDGET:
            print(f"{name:<16} no time left", flush=True)
            continue
        machine = MACHINES[name]
        target = (
            y
            if isinstance(machine, (er.Ridge, er.SVR, er.Lasso, er.LeastSquares, er.KNNRegressor))
            else (y > 1.0).astype(int)
        )
        with er.config(device="cpu"), warnings.catch_warnings(action="ignore"):
            here = clone(machine).fit(X, target)
            expected = {each: in_memory(getattr(here, each)(X)) for each in ANSWERS if hasattr(here, each)}
        for kind, rows in kinds.items():
            with er.config(device=DEVICE), warnings.catch_warnings(action="ignore"):
                try:
                    told = tried(machine, rows, target, expected)
                except Exception as problem:  # noqa: BLE001 - what fails is a row of the table
                    told = f"FAILED: {type(problem).__name__}: {str(problem)[:200]}"
            print(f"{name:<16} {kind:<6} {told}", flush=True)
