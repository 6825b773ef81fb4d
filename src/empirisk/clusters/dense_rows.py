"""The rounds of k-means on an array: products in float32, bounds that skip rows, doubts settled in float64.

A row whose nearest centre is beyond doubt keeps it unseen (Hamerly's bounds). The others are gathered and multiplied
with all centres at once; where float32 cannot tell the nearest centre, the distances are computed from the differences
in float64, so that the labels are those of exact arithmetic. Every thread does its whole share in compiled code.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.linalg.blocks import Array, slices
from empirisk.linalg.compiled import inner_with, loop, loop_with, multiply
from empirisk.linalg.threads import parallel_map
from empirisk.stop import check_stop

FEW = 64  # rows whose distances stay in the first cache
BATCH = 256  # rows gathered for one product: it and the centres stay in the second cache
PRODUCTS_OF_THREAD = 1 << 25  # in some milliseconds: more threads would wait for each other
SHARES = 48  # at most, so that sums over shares stay cheap; enough for the cores of one machine
SMALLEST_SHARE = 4096  # rows: a smaller one is over before the next has begun
LOOSE = np.float32(1e-6)  # added to bounds in every round: more than float32 loses in the sums
OWN_LOOSE = np.float32(1e-5)  # added to the distance to the own centre, a sum of squares in float32
FAR = 1e15  # in units of the rows; centres are clipped here: float32 distances beyond have no correct digits
PIECE = 1 << 30  # products between two looks at the clock: a tenth of a second on a slow core
EXACT = 1e-13  # a row leaves its cluster for a gain beyond the rounding of float64

_FAST = {"reassoc", "contract", "nnan", "nsz"}


@inner_with(_FAST)
def nearest(row, centres, values, limit, own):
    """The nearest in float64 of the centres whose value is within the limit; of equally near ones the own wins."""
    found, least = np.int32(own), np.inf
    for turn in range(2):  # the own centre first
        for c in range(len(centres)):
            if (c == own) == (turn == 0) and values[c] <= limit:
                total = 0.0
                for j in range(len(row)):
                    gap = np.float64(row[j]) - centres[c, j]
                    total += gap * gap
                if total < least:
                    found, least = np.int32(c), total * (1 - EXACT) if c == own else total
    return found


@inner_with(_FAST)
def transfer(row, weight, old, new, sums):
    """Move a row of a weight from the sums of its old cluster, if it has one, to those of the new one."""
    for j in range(len(row)):
        value = weight * np.float64(row[j])
        sums[new, j] += value
        if old >= 0:
            sums[old, j] -= value
    sums[new, len(row)] += weight
    if old >= 0:
        sums[old, len(row)] -= weight


@loop_with(_FAST)
def assign(data, means, state, work, span):
    """Give each row of the share its nearest centre, and move it from the sums of its old cluster to the new.

    ``data`` holds the points, their squared norms, the rows as they came, their order and weights; ``means`` a table
    of the centres, limits on them, and the centres as such; ``state`` labels, bounds and the sums of clusters; ``work``
    memory, since memory made in compiled code costs compile time. Points are the rows around their mean, with a last
    column of ones; the table holds -2 c and a lower bound of |c|^2, so that a product is a lower bound of
    |p - c|^2 - |p|^2. Limits are, for every centre, how far it and the farthest-moved other went, half the distance to
    the nearest other, the rounding of |c|^2 and of |c|. Bounds are upper ones on the distance to the own centre and
    lower ones to any other. Returns how many rows changed.
    """
    points, norms, X, order, weights = data
    table, limits, centres = means
    labels, bounds, sums = state
    rows, values, best, held = work
    start, stop, rounding = int(span[0]), int(span[1]), np.float32(span[2])
    count_of_centres, width = table.shape
    changes = 0
    i = start
    while i < stop:
        count = 0
        while i < stop and count < BATCH:
            label = labels[i]
            if label >= 0:
                upper = (bounds[i, 0] + limits[label, 0]) * (1 + LOOSE)
                lower = bounds[i, 1] * (1 - LOOSE) - limits[label, 1]
                away = max(lower, limits[label, 2])
                if upper >= away:
                    here, there, total = points[i, :-1], table[label, :-1], np.float32(0)
                    for j in range(len(here)):
                        difference = here[j] + np.float32(0.5) * there[j]
                        total += difference * difference
                    upper = np.sqrt(total) * (1 + OWN_LOOSE) + limits[label, 4] + rounding * np.sqrt(norms[i])
                bounds[i, 0], bounds[i, 1] = upper, lower
                if upper < away:
                    i += 1
                    continue
            held[0, count] = i - start
            for j in range(width):
                rows[count, j] = points[i, j]
            count += 1
            i += 1
        if count == 0:
            break
        multiply(table, rows.T, values)
        for r in range(BATCH):
            best[0, r], best[1, r], held[1, r] = np.inf, np.inf, 0
        for c in range(count_of_centres):
            for r in range(BATCH):  # selects without a branch: many rows at once
                value = values[c, r]
                nearer = value < best[0, r]
                best[1, r] = best[0, r] if nearer else min(best[1, r], value)
                held[1, r] = np.int32(c) if nearer else held[1, r]
                best[0, r] = value if nearer else best[0, r]
        for r in range(count):
            row = start + held[0, r]
            old, new = labels[row], held[1, r]
            limit = best[0, r] + limits[new, 3] + 2 * rounding * norms[row]
            lower = best[1, r]
            source = order[row]
            if lower <= limit:
                lower = best[0, r]
                new = nearest(X[source], centres, values[:, r], limit, old)
            above = max(values[new, r] + limits[new, 3] + norms[row] * (1 + rounding), np.float32(0))
            below = max(lower + norms[row] * (1 - rounding), np.float32(0))
            bounds[row, 0], bounds[row, 1] = np.sqrt(above) * (1 + LOOSE), np.sqrt(below) * (1 - LOOSE)
            if new != old:
                changes += 1
                labels[row] = new
                transfer(X[source], weights[row], old, new, sums)
    return changes


@loop_with(_FAST)
def approach(points, candidates, weights, closest, span, out, totals):
    """Squared distances to the nearest of the centres so far and each candidate, and their weighted totals.

    ``closest`` holds the distances so far. A last line in ``totals`` counts the weight of rows apart from all.
    Distances come from differences, so that those of equal rows are zero.
    """
    for first in range(span[0], span[1], FEW):
        last = min(first + FEW, span[1])
        # Slices have no negative indices, which would keep the loops from taking many entries at once.
        block, weight, nearest = points[first:last], weights[first:last], closest[first:last]
        for c in range(len(candidates)):
            there, values = candidates[c], out[c, first:last]
            for i in range(len(values)):
                here, total = block[i], np.float32(0)
                for j in range(len(there)):
                    difference = here[j] - there[j]
                    total += difference * difference
                values[i] = total
            amount, apart = 0.0, 0.0
            for i in range(len(values)):
                value = values[i] if values[i] < nearest[i] else nearest[i]
                values[i] = value
                amount += weight[i] * value
                apart += weight[i] if value > 0 else 0.0
            totals[0, c] += amount
            totals[1, c] += apart


@loop
def count_labels(labels, span, counts):
    """Add the rows of a share to the counts of their clusters."""
    for row in range(span[0], span[1]):
        counts[labels[row]] += 1


def squares_between(centres: Array) -> Array:
    """The squared distance of every two rows."""
    squares = np.einsum("kj,kj->k", centres, centres)
    return np.maximum(squares[:, None] + squares - 2 * (centres @ centres.T), 0.0)


def shares_of(rows: int) -> list[tuple[int, int]]:
    """Fixed parts of the rows: they depend on their number alone."""
    step = max(SMALLEST_SHARE, -(-rows // SHARES))
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


class DenseRows:
    """Rows of an array, and the state of one run of k-means on them.

    Parameters
    ----------
    X : array
        The rows, of float32 or float64.
    weights : array
        What each row of ``order`` counts.
    order : array of int
        The order in which the rows are seen, which may leave rows out.
    """

    floats = np.float32
    settled = ("centres",)  # beside the labels, what a half-step that is given up may have changed
    labels: NDArray[np.int32]
    bounds: NDArray[np.float32]
    centres: Array
    totals: Array
    filled: NDArray[np.bool_]

    def __init__(self, X: NDArray, weights: Array, order: NDArray[np.intp]):
        self.X, self.weights, self.order = np.ascontiguousarray(X), weights, order
        self.count, self.width = len(order), X.shape[1]
        self.shares = shares_of(self.count)
        self.rounding = 2 * (self.width + 4) * float(np.finfo(np.float32).eps)
        self._scale_rows()

    def _scale_rows(self) -> None:
        """The rows around their mean, in units of the largest entry, in float32."""
        total = self.weights.sum()
        sums, lows, highs = zip(*parallel_map(self._sums_and_ends, self.shares), strict=True)
        self.mean = sum(sums) / total
        sizes = np.maximum(np.max(highs, axis=0) - self.mean, self.mean - np.min(lows, axis=0))
        self.unit = float(sizes.max(initial=0.0)) or 1.0
        self.points = np.empty((self.count, self.width + 1), np.float32)
        self.norms = np.empty(self.count, np.float32)

        def fill(span: tuple[int, int]) -> float:
            rows = slice(*span)
            centred = (self._part(span) - self.mean) / self.unit
            self.points[rows, :-1], self.points[rows, -1] = centred, 1.0
            squares = np.einsum("ij,ij->i", centred, centred)
            self.norms[rows] = squares
            return float(self.weights[rows] @ squares)

        #: sum_i c_i |x_i - mean|^2
        self.spread = sum(parallel_map(fill, self.shares)) * self.unit**2

    def _part(self, span: tuple[int, int]) -> Array:
        return self.X[self.order[slice(*span)]].astype(np.float64, copy=False)

    def _sums_and_ends(self, span: tuple[int, int]) -> tuple[Array, Array, Array]:
        part = self._part(span)
        return self.weights[slice(*span)] @ part, part.min(axis=0), part.max(axis=0)

    def begin(self) -> "DenseRows":
        """A run on the same rows."""
        run = object.__new__(type(self))
        vars(run).update(vars(self))
        run.labels = np.full(self.count, -1, np.int32)
        run.bounds = np.zeros((self.count, 2), np.float32)
        return run

    # --- starts -------------------------------------------------------------------------------------------------------

    def start_at_rows(self, chosen: NDArray[np.intp]) -> None:
        """Centres at some of the rows."""
        self.start_at(self.X[self.order[chosen]])

    def start_from_labels(self, labels: NDArray, clusters: int) -> None:
        """Centres at the means of given clusters."""
        self.labels[:] = labels
        sums = self._tally(clusters)
        totals = np.where(sums[:, -1] > 0, sums[:, -1], 1.0)
        self.start_at(sums[:, :-1] / totals[:, None])

    def start_at(self, centres: Array) -> None:
        """Given centres."""
        self.centres = np.ascontiguousarray(centres, dtype=np.float64)
        self.labels[:] = -1
        self._before = self.centres
        self._sums = np.zeros((len(self.shares), len(centres), self.width + 1))

    def box(self) -> tuple[Array, Array]:
        """The smallest and the largest value of every column."""
        ends = parallel_map(lambda span: (self._part(span).min(axis=0), self._part(span).max(axis=0)), self.shares)
        return np.minimum.reduce([low for low, _ in ends]), np.maximum.reduce([high for _, high in ends])

    def exact_squares(self, chosen: NDArray[np.intp]) -> Array:
        """The squared distance of every row to the nearest of some rows, in float64."""
        nearest = np.full(self.count, np.inf)
        for source in self.order[chosen]:
            gaps = self.X[self.order].astype(np.float64, copy=False) - self.X[source]
            np.minimum(nearest, np.einsum("ij,ij->i", gaps, gaps), out=nearest)
        return nearest

    def squares_to(self, chosen: NDArray[np.intp], closest: NDArray, out: NDArray) -> NDArray:
        """Writes what `approach` finds to ``out``, a line for each row that is chosen; returns its totals by share."""
        totals = np.zeros((len(self.shares), 2, len(chosen)))
        candidates = self.points[chosen, :-1]

        def run(share: int) -> None:
            approach(self.points, candidates, self.weights, closest, self.shares[share], out, totals[share])

        parallel_map(run, range(len(self.shares)))
        return totals

    # --- rounds -------------------------------------------------------------------------------------------------------

    def table(self) -> tuple[NDArray[np.float32], Array, Array]:
        """The centres as `assign` multiplies with them, and in units around the mean, and their squared norms."""
        scaled = np.clip((self.centres - self.mean) / self.unit, -FAR, FAR)
        squares = np.einsum("kj,kj->k", scaled, scaled)
        table = np.empty((len(scaled), self.width + 1), np.float32)
        table[:, :-1], table[:, -1] = -2 * scaled, squares * (1 - self.rounding)
        return table, scaled, squares

    def assign(self) -> int:
        """Every row to its nearest centre; how many changed."""
        table, scaled, squares = self.table()
        limits = self._limits(scaled, squares)
        step = max(1, PIECE // (table.size * BATCH)) * BATCH

        def run(share: int) -> int:
            work = (
                np.zeros((BATCH, self.width + 1), np.float32),
                np.empty((len(table), BATCH), np.float32),
                np.empty((2, BATCH), np.float32),
                np.empty((2, BATCH), np.int32),
            )
            data = self.points, self.norms, self.X, self.order, self.weights
            means = table, limits, self.centres
            state = self.labels, self.bounds, self._sums[share]
            changes = 0
            for piece in slices(self.shares[share][1], step, self.shares[share][0]):
                check_stop()
                changes += assign(data, means, state, work, (piece.start, piece.stop, self.rounding))
            return changes

        threads = 1 + self.count * table.size // PRODUCTS_OF_THREAD
        changes = sum(parallel_map(run, range(len(self.shares)), threads))
        self._before = self.centres
        return changes

    def _limits(self, scaled: Array, squares: Array) -> NDArray[np.float32]:
        moves = np.sqrt(((self.centres - self._before) ** 2).sum(axis=1)) / self.unit * (1 + 1e-6)
        farthest = np.full(len(moves), moves.max())
        if len(moves) > 1:
            farthest[moves.argmax()] = np.partition(moves, -2)[-2]
        between = squares_between(scaled) - 1e-12 * (squares[:, None] + squares)
        np.fill_diagonal(between, np.inf)
        half = 0.5 * np.sqrt(np.maximum(between.min(axis=1), 0.0)) * (1 - 1e-6)
        kept = [moves, farthest, half, 2 * self.rounding * squares, self.rounding * np.sqrt(squares)]
        with np.errstate(over="ignore"):  # a distance beyond all rows, or a move that leaves no bound
            return np.column_stack(kept).astype(np.float32)

    def move(self) -> None:
        """Every centre to the mean of its rows; one without rows stays."""
        sums = self._sums.sum(axis=0)
        # Counted, not weighed: what was added and taken away again may leave a rest.
        counts = np.zeros((len(self.shares), len(self.centres)), np.int64)
        parallel_map(lambda share: count_labels(self.labels, self.shares[share], counts[share]), range(len(counts)))
        self.filled = counts.sum(axis=0) > 0
        self.totals = np.where(self.filled, sums[:, -1], 0.0)
        means = sums[:, :-1] / np.where(self.filled, sums[:, -1], 1.0)[:, None]
        self.centres = np.where(self.filled[:, None], means, self.centres)

    def renew(self) -> None:
        """The sums computed again from the labels: rounding errors of many updates are removed."""
        totals = self._tally(len(self.centres))
        self._sums[:] = 0.0
        self._sums[0] = totals
        self.move()

    def _tally(self, clusters: int) -> Array:
        """The weighted sum of each cluster's rows, and its weight."""

        def run(span: tuple[int, int]) -> Array:
            rows = slice(*span)
            places = self.labels[rows], np.arange(span[1] - span[0])
            member = sparse.csr_array((self.weights[rows], places), shape=(clusters, span[1] - span[0]))
            return np.column_stack([member @ self._part(span), member.sum(axis=1)])

        return np.add.reduce(parallel_map(run, self.shares))

    def relabel(self, row: int, cluster: int) -> None:
        """Move a row, and those equal to it, to a cluster that was empty."""
        one = self.X[self.order[row]]
        # The rows as they came: points in float32 may be equal where these are not.
        parts = parallel_map(lambda span: (self.X[self.order[slice(*span)]] == one).all(axis=1), self.shares)
        equal = np.concatenate(parts)
        self.labels[equal] = cluster
        self.bounds[equal] = np.inf, 0.0
        self.renew()

    def row(self, row: int) -> Array:
        """One of the rows."""
        return self.X[self.order[row]].astype(np.float64)

    def own_squares(self) -> Array:
        """The squared distance of every row to its centre."""

        def run(span: tuple[int, int]) -> Array:
            gaps = self._part(span) - self.centres[self.labels[slice(*span)]]
            return np.einsum("ij,ij->i", gaps, gaps)

        return np.concatenate(parallel_map(run, self.shares))

    settled_squares = own_squares

    def squares_between_means(self) -> Array:
        """The squared distance of every two centres."""
        return squares_between(self.centres - self.mean)

    def inertia_of_means(self) -> float:
        """The inertia right after `move`, from the means alone."""
        return float(self.spread - self.totals @ ((self.centres - self.mean) ** 2).sum(axis=1))
