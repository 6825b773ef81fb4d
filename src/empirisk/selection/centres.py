"""Centres of points in the plane: means of parts of about equal weight."""

from collections.abc import Iterator

import numpy as np

from empirisk.contract.inputs import Array

#: Times that parts are cut in two: sixteen centres.
CUTS = 4
#: Columns that are scaled alike differ by rounding alone, which must not decide.
ROUNDING = 1e-9


def centres(points: Array, weights: Array, cuts: int = CUTS) -> Array:
    """The means of parts of the points, cut at the weighted median of their wider side as often as asked.

    They hang on the points alone, and weight 2 is the point twice: there is no draw, as there is for k-means.

    >>> centres(np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 0.0], [9.0, 2.0]]), np.ones(4), cuts=1)
    array([[0., 1.],
           [9., 1.]])
    """
    return np.array(list(_means(points, weights, cuts))).reshape(-1, 2)


def _means(points: Array, weights: Array, cuts: int) -> Iterator[Array]:
    if not weights.sum() > 0:
        return
    mean = np.average(points, axis=0, weights=weights)
    spread = np.average((points - mean) ** 2, axis=0, weights=weights)
    side = int(spread[1] > (1 + ROUNDING) * spread[0])
    order = np.argsort(points[:, side], kind="stable")
    mass = np.cumsum(weights[order])
    low = points[:, side] <= points[order[np.searchsorted(mass, mass[-1] / 2)], side]
    if not cuts or low.all():
        yield mean
        return
    for part in (low, ~low):
        yield from _means(points[part], weights[part], cuts - 1)
