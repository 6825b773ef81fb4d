"""Walks in the product of two labelled graphs."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _product(first, second):
    """The product of two graphs (labels of nodes, ends of edges, labels of edges): its size, its edges from and to."""
    (labels, ends, marks), (other_labels, other_ends, other_marks) = first, second
    place = np.full((len(labels), len(other_labels)), -1)
    count = 0
    for u in range(len(labels)):
        for v in range(len(other_labels)):
            if labels[u] == other_labels[v]:
                place[u, v] = count
                count += 1
    edges = 0
    for filling in range(2):
        sources, targets = np.empty(edges, np.int64), np.empty(edges, np.int64)
        edges = 0
        for e in range(len(marks)):
            for f in range(len(other_marks)):
                source, target = place[ends[0, e], other_ends[0, f]], place[ends[1, e], other_ends[1, f]]
                if marks[e] == other_marks[f] and source >= 0 and target >= 0:
                    if filling:
                        sources[edges], targets[edges] = source, target
                    edges += 1
    return count, sources, targets


@njit(cache=True, nogil=True)
def _step(values, sources, targets, decay):
    """decay A values."""
    out = np.zeros_like(values)
    for e in range(len(sources)):
        out[sources[e]] += decay * values[targets[e]]
    return out


@njit(cache=True, nogil=True)
def count_walks(first, second, decay, length):
    """sum_{l <= length} decay^l 1' A^l 1 of the product graph."""
    count, sources, targets = _product(first, second)
    values = np.ones(count)
    total = values.sum()
    for _ in range(length):
        values = _step(values, sources, targets, decay)
        total += values.sum()
    return total


@njit(cache=True, nogil=True)
def sum_walks(first, second, decay):
    """1' (I - decay A)^-1 1 of the product graph, by conjugate gradients: the matrix is positive definite."""
    count, sources, targets = _product(first, second)
    x = np.zeros(count)
    residual = np.ones(count)
    direction = residual.copy()
    square = float(count)
    # In exact arithmetic ``count`` rounds are enough; with rounding a few more.
    for _ in range(2 * count + 10):
        if square <= 1e-28 * count:
            break
        image = direction - _step(direction, sources, targets, decay)
        size = square / (direction @ image)
        x += size * direction
        residual -= size * image
        before, square = square, residual @ residual
        direction = residual + (square / before) * direction
    return x.sum()
