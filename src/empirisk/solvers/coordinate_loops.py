"""Compiled loops of coordinate descent on a Gram matrix."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def slack(w, gradient, l1, l2):
    """How far w is from optimal:  sum_j distance_j |w_j|  plus |w|_1 times the largest violation.

    To first order this is the duality gap of  l1 |w|_1 + l2/2 |w|^2  plus a smooth part with the given gradient.
    """
    total, norm, excess = 0.0, 0.0, 0.0
    for j in range(len(w)):
        size = abs(w[j])
        if size > 0.0:
            sign = 1.0 if w[j] > 0.0 else -1.0
            slope = sign * gradient[j] + l2 * size + l1
            total += abs(slope) * size
            norm += size
            excess = max(excess, -slope)
        else:
            excess = max(excess, abs(gradient[j]) - l1)
    if norm == 0.0:
        return 0.0 if excess <= 0.0 else 1e300
    return total + excess * norm


@njit(cache=True, nogil=True)
def sweep(matrix, diagonal, w, gradient, l1, l2, sweeps, goal):
    """Minimise over one weight after another, at most ``sweeps`` times round, until the slack is within ``goal``.

    ``gradient`` is that of the smooth part and is kept up to date; columns with a zero diagonal are left alone.
    """
    size = len(w)
    for _ in range(sweeps):
        for j in range(size):
            curvature = diagonal[j]
            if curvature <= 0.0:
                continue
            old = w[j]
            pull = curvature * old - gradient[j]
            if pull > l1:
                new = (pull - l1) / (curvature + l2)
            elif pull < -l1:
                new = (pull + l1) / (curvature + l2)
            else:
                new = 0.0
            if new != old:
                w[j] = new
                step = new - old
                row = matrix[j]
                for i in range(size):
                    gradient[i] += step * row[i]
        if slack(w, gradient, l1, l2) <= goal:
            return


@njit(cache=True, nogil=True)
def add_rows(matrix, chosen, factors, total):
    """total += sum_k factors_k matrix[chosen_k], over as many columns as there are totals."""
    for k in range(len(chosen)):
        row = matrix[chosen[k]]
        for i in range(len(total)):
            total[i] += factors[k] * row[i]


# Sums may be reordered, which lets a processor add several numbers at once; NaN and infinity stay exact.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def column_products(rows, chosen, u, out):
    """out_k = <rows[chosen_k], u>."""
    for k in range(len(chosen)):
        row = rows[chosen[k]]
        total = 0.0
        for i in range(len(u)):
            total += row[i] * u[i]
        out[k] = total


@njit(cache=True, nogil=True)
def add_chosen_gram(data, indices, indptr, weights, places, first, last, total):
    """Add sum_i weights_i a_i a_i' over CSR rows first..last to ``total``, for columns with a place >= 0.

    Each pair of columns is added once, above or below the diagonal.
    """
    size = total.shape[0]
    flat = total.ravel()
    kept = np.empty(size + 1, np.int32)
    values = np.empty(size + 1)
    for i in range(first, last):
        count = 0
        for p in range(indptr[i], indptr[i + 1]):
            # Written always and kept only if chosen: a branch here would be mispredicted half of the time.
            place = places[indices[p]]
            kept[count] = place
            values[count] = data[p]
            count += place >= 0
        for p in range(count):
            row = kept[p] * size
            scaled = weights[i] * values[p]
            for q in range(p, count):
                flat[row + kept[q]] += scaled * values[q]
