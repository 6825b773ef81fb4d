"""Kernels of two items as the catalogue writes them: slow, obvious, by the name of the kernel."""

from itertools import combinations
from math import comb, prod

import numpy as np

from empirisk.kernels import Gaussian


def chosen(x, columns):
    return x[list(columns)]


PAIR = {
    "linear": lambda k, x, z: sum(a * b for a, b in zip(x, z, strict=True)),
    "polynomial": lambda k, x, z: (sum(a * b for a, b in zip(x, z, strict=True)) + k.constant) ** k.degree,
    "gaussian": lambda k, x, z: np.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * width(k) ** 2)),
    "laplacian": lambda k, x, z: np.exp(-(sum(abs(x - z) ** k.norm) ** (1 / k.norm)) / width(k)),
    "anova": lambda k, x, z: sum(
        prod(pair(k.kernels_[j] if hasattr(k, "kernels_") else k.kernel or Gaussian(), x[[j]], z[[j]]) for j in group)
        for size in range(1, k.order + 1)
        for group in combinations(range(len(x)), size)
    ),
    "sum": lambda k, x, z: pair(k.child("left"), x, z) + pair(k.child("right"), x, z),
    "product": lambda k, x, z: pair(k.child("left"), x, z) * pair(k.child("right"), x, z),
    "scaled": lambda k, x, z: k.factor * pair(k.child("kernel"), x, z),
    "power": lambda k, x, z: pair(k.child("kernel"), x, z) ** k.exponent,
    "exp": lambda k, x, z: np.exp(pair(k.child("kernel"), x, z)),
    "polynomial_of": lambda k, x, z: sum(c * pair(k.child("kernel"), x, z) ** m for m, c in enumerate(k.coefficients)),
    "times": lambda k, x, z: k.function(x[None])[0] * pair(k.child("kernel"), x, z) * k.function(z[None])[0],
    "on": lambda k, x, z: pair(k.child("kernel"), chosen(x, k.columns), chosen(z, k.columns)),
    "normalised": lambda k, x, z: (
        pair(k.child("kernel"), x, z) / np.sqrt(pair(k.child("kernel"), x, x) * pair(k.child("kernel"), z, z))
    ),
}


def width(kernel) -> float:
    return kernel.width_ if kernel.width == "median" else kernel.width


def pair(kernel, x, z) -> float:
    """k(x, z)."""
    return PAIR[kernel.name()](kernel, x, z)


def block(kernel, X, Z):
    """All k(x, z), by a double loop."""
    return np.array([[pair(kernel, x, z) for z in Z] for x in X])


def subsequences(x, z, length: int, decay: float) -> float:
    """The gap-weighted kernel, by listing every choice of places in both words."""
    return sum(
        decay ** (i[-1] - i[0] + 1 + j[-1] - j[0] + 1)
        for i in combinations(range(len(x)), length)
        for j in combinations(range(len(z)), length)
        if all(x[a] == z[b] for a, b in zip(i, j, strict=True))
    )


def spectrum(x, z, length: int) -> int:
    """The number of pairs of equal substrings."""
    pairs = ((a, b) for a in range(len(x) - length + 1) for b in range(len(z) - length + 1))
    return sum(x[a : a + length] == z[b : b + length] for a, b in pairs)


def refined_labels(graph, rounds: int) -> list:
    """The labels of Weisfeiler-Lehman in every round, written out in full instead of numbered."""
    edges, labels = graph
    current, found = list(labels), list(labels)
    for _ in range(rounds):
        around = [[] for _ in current]
        for u, v, mark in edges:
            around[u].append((mark, current[v]))
            around[v].append((mark, current[u]))
        current = [(own, tuple(sorted(others, key=repr))) for own, others in zip(current, around, strict=True)]
        found += current
    return found


def weisfeiler_lehman(first, second, rounds: int) -> int:
    return sum(a == b for a in refined_labels(first, rounds) for b in refined_labels(second, rounds))


def product_adjacency(first, second):
    """The adjacency matrix of the product graph by Kronecker products, and which of its nodes exist."""
    (edges, labels), (other_edges, other_labels) = first, second
    total = 0
    for mark in "xy":
        total = total + np.kron(adjacency(edges, len(labels), mark), adjacency(other_edges, len(other_labels), mark))
    exists = np.equal.outer(labels, other_labels).ravel()
    return total * np.outer(exists, exists), exists


def adjacency(edges, size: int, mark: str):
    A = np.zeros((size, size))
    for u, v, label in edges:
        if label == mark:
            A[u, v] = A[v, u] = 1
    return A


def random_walk(first, second, decay: float, length: int | None) -> float:
    A, exists = product_adjacency(first, second)
    ones = exists.astype(float)
    if length is None:
        return float(ones @ np.linalg.solve(np.eye(len(A)) - decay * A, ones))
    return float(sum(decay**m * ones @ np.linalg.matrix_power(A, m) @ ones for m in range(length + 1)))


def groups_of_columns(columns: int, order: int) -> int:
    """How many groups of up to ``order`` columns there are."""
    return sum(comb(columns, size) for size in range(1, order + 1))
