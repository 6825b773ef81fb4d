"""The loops of nearest neighbours: selection, exact distances, votes."""

import numpy as np
from numba import njit

CHUNK = 128
#: Queries and known rows of a tile of products, which stays in the cache while it is looked through.
ROWS, COLUMNS = 128, 1024


@njit(cache=True, nogil=True)
def select(products, norms, first, values, places):
    """Merge the columns of a block into sorted lists of the smallest  norms_j - 2 products_ij.

    Columns are numbered from ``first``; of equal values the one that came first stays first.
    """
    longest = values.shape[1]
    for i in range(products.shape[0]):
        worst = values[i, longest - 1]
        for start in range(0, products.shape[1], CHUNK):
            # Most chunks hold nothing near. Slices, without a branch, let the processor compare many at once.
            part, level = products[i, start : start + CHUNK], norms[start : start + CHUNK]
            near = 0
            for j in range(len(part)):
                near |= level[j] - part[j] - part[j] < worst
            if near == 0:
                continue
            for j in range(len(part)):
                value = level[j] - part[j] - part[j]
                if value < worst:
                    place = longest - 1
                    while place > 0 and value < values[i, place - 1]:
                        values[i, place] = values[i, place - 1]
                        places[i, place] = places[i, place - 1]
                        place -= 1
                    values[i, place] = value
                    places[i, place] = first + start + j
                    worst = values[i, longest - 1]


@njit(cache=True, nogil=True)
def sort_exactly(A, B, places, squares):
    """Squared distances |a_i - b_j|^2 of the listed pairs from their differences, and the lists in their order."""
    for i in range(places.shape[0]):
        for n in range(places.shape[1]):
            total = 0.0
            other = places[i, n]
            for k in range(A.shape[1]):
                difference = A[i, k] - B[other, k]
                total += difference * difference
            place = n
            while place > 0 and (
                total < squares[i, place - 1] or (total == squares[i, place - 1] and other < places[i, place - 1])
            ):
                squares[i, place] = squares[i, place - 1]
                places[i, place] = places[i, place - 1]
                place -= 1
            squares[i, place] = total
            places[i, place] = other


@njit(cache=True, nogil=True)
def search(start, stop, queries, known, norms, values, places):
    """The lists of the nearest known rows of some queries: products by BLAS, selection while they are in the cache."""
    memory = np.empty(ROWS * COLUMNS, known.dtype)
    for row in range(start, stop, ROWS):
        end = min(row + ROWS, stop)
        for first in range(0, len(known), COLUMNS):
            last = min(first + COLUMNS, len(known))
            tile = memory[: (end - row) * (last - first)].reshape(end - row, last - first)
            np.dot(queries[row:end], known[first:last].T, tile)
            select(tile, norms[first:last], first, values[row:end], places[row:end])


@njit(cache=True, nogil=True)
def centred(exact, centre, start, stop, out, norms):
    """Rows around a centre in the precision of ``out``, and their squared norms."""
    for i in range(start, stop):
        total = norms.dtype.type(0)
        for k in range(exact.shape[1]):
            value = out.dtype.type(exact[i, k] - centre[k])
            out[i, k] = value
            total += value * value
        norms[i] = total


@njit(cache=True, nogil=True)
def shares(places, distances, weights, own, k, by_distance, out):
    """What each listed neighbour counts: weight until k is reached, over the distance (to the nearest) if asked for.

    ``own`` is the number of a row among the neighbours, which is then left out once; -1 for a new row.
    Neighbours at distance zero, if there are any, count alone where weights go by distance.
    """
    for i in range(places.shape[0]):
        left = k
        nearest = 0.0
        exact = False
        for n in range(places.shape[1]):
            amount = weights[places[i, n]]
            if places[i, n] == own[i]:
                amount = max(amount - 1.0, 0.0)
            amount = min(amount, left)
            left -= amount
            if by_distance and amount > 0:
                if distances[i, n] == 0:
                    exact = True
                elif exact:
                    amount = 0.0
                else:
                    nearest = distances[i, n] if nearest == 0 else nearest
                    amount *= nearest / distances[i, n]
            out[i, n] = amount


@njit(cache=True, nogil=True)
def add_votes(places, amounts, codes, votes):
    """Add what neighbours count to the votes of their classes."""
    for i in range(places.shape[0]):
        for n in range(places.shape[1]):
            votes[i, codes[places[i, n]]] += amounts[i, n]
