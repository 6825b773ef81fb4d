"""Compiled loops over CSR rows."""

from numba import njit


@njit(cache=True, nogil=True)
def add_weighted_gram(data, indices, indptr, weights, start, stop, total):
    """Add sum_i weights_i a_i a_i' over rows start..stop to the upper triangle of ``total``."""
    for i in range(start, stop):
        weight = weights[i]
        if weight == 0.0:
            continue
        first, last = indptr[i], indptr[i + 1]
        for p in range(first, last):
            scaled = weight * data[p]
            row = indices[p]
            for q in range(p, last):
                total[row, indices[q]] += scaled * data[q]
