"""One list of kernels for every generic test, the ways to combine them, and points to try them on."""

import numpy as np

from empirisk.kernels import (
    Anova,
    Centred,
    Diffusion,
    ExpectedLikelihood,
    Gaussian,
    Laplacian,
    Linear,
    MeanEmbedding,
    Polynomial,
    RandomWalk,
    Spectrum,
    Subsequence,
    WeisfeilerLehman,
    exp,
    polynomial,
)

VECTOR_KERNELS = [
    Linear(),
    Polynomial(),
    Polynomial(3, 0.5),
    Gaussian(0.8),
    Gaussian("median"),
    Laplacian(1.5),
    Laplacian("median", 2),
    Anova(),
    Anova(Polynomial(2), order=3),
]

SPARSE_KERNELS = [kernel for kernel in VECTOR_KERNELS if kernel.sparse]


def first_column(X):
    """A factor f(x) that changes sign."""
    return np.asarray(X)[:, 0] + 0.1


UNARY = {
    "scaled": lambda k: 0.3 * k,
    "power": lambda k: k**2,
    "exp": lambda k: exp(k.normalised()),
    "polynomial": lambda k: polynomial(k, [0.5, 0.0, 0.2]),
    "times": lambda k: k.times(first_column),
    "on": lambda k: k.on([0, 2]),
    "normalised": lambda k: k.normalised(),
    "centred": Centred,
}

BINARY = {
    "sum": lambda k1, k2: k1 + k2,
    "product": lambda k1, k2: k1 * k2,
}


def points(kind: str, rows: int = 18, seed: int = 0):
    """Random points, points that repeat, or points in far more dimensions than there are points."""
    rng = np.random.default_rng(seed)
    columns = 100 if kind == "high-dimensional" else 3
    X = rng.normal(size=(rows, columns)) / np.sqrt(columns)
    return X[rng.integers(0, rows // 4, rows)] if kind == "duplicates" else X


POINTS = ("random", "duplicates", "high-dimensional")


def words(count: int, longest: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abc"), rng.integers(0, longest))) for _ in range(count)]


def graphs(count: int, largest: int = 6, seed: int = 0) -> list[tuple]:
    """Labelled graphs as (edges with labels, labels of nodes)."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        size = int(rng.integers(1, largest + 1))
        pairs = [(u, v) for u in range(size) for v in range(u)]
        edges = [(u, v, "xy"[rng.integers(2)]) for u, v in pairs if rng.random() < 0.5]
        made.append((edges, [int(label) for label in rng.integers(0, 2, size)]))
    return made


def samples(count: int, columns: int = 2, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(1, 7), columns)) + rng.normal(size=columns) for _ in range(count)]


RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)

OBJECT_KERNELS = [
    (Spectrum(2), words(12, 9)),
    (Spectrum(3, blended=True, normalise=True), words(12, 9)),
    (Subsequence(2, 0.6), words(12, 9)),
    (Subsequence(3, 0.9, blended=True, normalise=True), words(12, 9)),
    (WeisfeilerLehman(2), graphs(10)),
    (WeisfeilerLehman(0, normalise=True), graphs(10)),
    (RandomWalk(0.03), graphs(10)),
    (RandomWalk(0.5, length=3, normalise=True), graphs(10)),
    (Diffusion(RING, 0.7), [0, 3, 5, 3, 1]),
    (Diffusion(RING, 0.7, normalise=True), [0, 3, 5, 3, 1]),
    (MeanEmbedding(), samples(9)),
    (MeanEmbedding(Gaussian("median") + 0.1 * Linear(), normalise=True), samples(9)),
    (ExpectedLikelihood(0.1), samples(9)),
    (ExpectedLikelihood(0.1, normalise=True), samples(9)),
]
