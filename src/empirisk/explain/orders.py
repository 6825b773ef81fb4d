"""Shapley values of any machine: what telling it one column after the other adds, in several orders."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Numbers asked about together at the most, for each row; there are two orders at the least.
MOST_NUMBERS = 20_000_000


def values_in_orders(
    say: Callable[[Array], Array], X: Array, sources: NDArray[np.intp], columns: int, background: Array
) -> Array:
    """What each column adds to the answers to each row, rows x columns x outputs.

    Each row of the background becomes the row that is explained, column by column, in a random order and in the
    opposite one; a column adds what the answer changes by, on average. The sum is the answer, less the mean answer to
    the background. Where no more than two columns act together, these are the exact Shapley values.

    Parameters
    ----------
    say : callable
        From rows to answers, rows x outputs.
    X : array, rows x numbers
        What is explained.
    sources : array of int
        For each of the numbers, the place of its column.
    columns : int
        How many there are.
    background : array, rows x numbers
        Rows that stand for what is usual.

    Examples
    --------
    >>> say = lambda rows: rows[:, :1] * rows[:, 1:]
    >>> values_in_orders(say, np.array([[2.0, 3.0]]), np.array([0, 1]), 2, np.zeros((1, 2)))[:, :, 0]
    array([[3., 3.]])
    """
    draw = np.random.default_rng(0)
    background = background[: max(MOST_NUMBERS // (2 * (columns + 1) * X.shape[1]), 1)]
    forth = np.array([draw.permutation(columns) for _ in background])
    orders, behind = np.concatenate([forth, forth[:, ::-1]]), np.concatenate([background, background])
    # After so many steps the columns are told that come before in the order.
    told = np.argsort(orders, axis=1)[:, None, :] < np.arange(columns + 1)[:, None]
    found = []
    for row in X:
        rows = np.where(told[:, :, sources], row, behind[:, None, :])
        said = say(rows.reshape(-1, X.shape[1])).reshape(*told.shape[:2], -1)
        added = np.zeros((columns, said.shape[2]))
        np.add.at(added, orders, np.diff(said, axis=1))
        found.append(added / len(orders))
    return np.array(found)
