"""Losses over the rows of large data in one compiled pass: a thread does its whole share without Python's lock."""

import numpy as np

from empirisk.linalg.compiled import loop


@loop
def logistic_pass(X, w, constant, y, scale, bounds, f, u, total):
    """For each block of rows between two bounds: f = X w + constant, u = scale loss'(y, f), and total += X'u.

    Returns sum_i scale_i ln(1 + exp(-y_i f_i)). A block stays in the cache between its two products.
    """
    value = 0.0
    part = np.empty(len(total))
    for k in range(len(bounds) - 1):
        start, stop = bounds[k], bounds[k + 1]
        np.dot(X[start:stop], w, f[start:stop])
        for i in range(start, stop):
            f[i] += constant
            t = y[i] * f[i]
            small = np.exp(-abs(t))
            value += scale[i] * (max(0.0, -t) + np.log1p(small))
            u[i] = -y[i] * scale[i] * (small if t > 0 else 1.0) / (1.0 + small)
        np.dot(u[start:stop], X[start:stop], part)
        for j in range(len(total)):
            total[j] += part[j]
    return value
