"""Losses of a metric: what the distances between the images of rows cost, and how to move the images.

Each takes Z = X P', the images of all rows, and gives its value and its gradient in Z.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.lazy import lazy
from empirisk.linalg.blocks import Array, slices
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.threads import parallel_map
from empirisk.settings import settings
from empirisk.stop import check_stop

#: Rows whose distances to all others are looked at together.
ROWS = 256
#: Differences of numbers between two looks at the clock: a tenth of a second.
PAIRS = 1 << 27
#: Entries that are compared at once before any of them is looked at.
CHUNK = 128
#: Lists of impostors reach this much beyond the margin, so that they stay complete while the images move a little.
REACH = 0.2
#: Lists take no more than this part of the memory budget; beyond it they are made again each time, block by block.
LIST_SHARE = 16
#: Gradients are summed on their own for at most so many shares of the rows, a number that no thread changes,
SHARES = 16
#: and for as few as keep them within so many bytes.
GRADIENT_BYTES = 1 << 28
#: Distances below this part of the margin have no direction worth following.
TINY = 1e-6

#: What a squared distance of unlike rows costs, and the derivative.
Push = Callable[[Array], tuple[Array, Array]]


def hinge_of_squares(margin: float) -> Push:
    """max(0, margin - s)."""
    return lambda squares: (np.maximum(margin - squares, 0.0), -(squares < margin).astype(np.float64))


def square_of_hinge(margin: float) -> Push:
    """max(0, margin - sqrt(s))^2."""

    def push(squares: Array) -> tuple[Array, Array]:
        distances = np.maximum(np.sqrt(squares), TINY * margin)
        short = np.maximum(margin - distances, 0.0)
        return short**2, -short / distances

    return push


def laplacian_times(Z: Array, first: NDArray[np.intp], second: NDArray[np.intp], weights: Array) -> Array:
    """The gradient in Z of  sum over pairs of  weight_ij |z_i - z_j|^2."""
    ties = sparse.csr_matrix((weights, (first, second)), shape=(len(Z), len(Z)))
    ties = ties + ties.T
    levels = np.asarray(ties.sum(axis=1))
    return 2 * (levels * Z - ties @ Z)


@dataclass(frozen=True)
class ListedPairs:
    """sum over listed pairs of  pull_ij |z_i - z_j|^2 + push_ij push(|z_i - z_j|^2)."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    pulls: Array
    pushes: Array
    push: Push

    def __call__(self, Z: Array) -> tuple[float, Array]:
        squares = np.sum((Z[self.first] - Z[self.second]) ** 2, axis=1)
        costs, slopes = self.push(squares)
        gradient = laplacian_times(Z, self.first, self.second, self.pulls + self.pushes * slopes)
        return float(self.pulls @ squares + self.pushes @ costs), gradient


@dataclass(frozen=True)
class DistanceHinges:
    """sum_k a_k max(0, b_k + sum_p S_kp |z_i(p) - z_j(p)|^2): hinges of sums of squared distances over pairs p.

    A pair within a margin and a triplet are both of this form: S_k then has the entry 1, -1, or one of each.

    Attributes
    ----------
    first, second : arrays of p
        The pairs of rows.
    signs : sparse matrix, k x p
        S.
    offsets, amounts : arrays of k
        b and a.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    signs: sparse.csr_array
    offsets: Array
    amounts: Array

    def __call__(self, Z: Array) -> tuple[float, Array]:
        excess = self.offsets + self.signs @ np.sum((Z[self.first] - Z[self.second]) ** 2, axis=1)
        forces = self.signs.T @ (self.amounts * (excess > 0))
        value = float(self.amounts @ np.maximum(excess, 0.0))
        return value, laplacian_times(Z, self.first, self.second, forces)


@dataclass(frozen=True)
class ClassPairs:
    """The contrastive loss of all ordered pairs of rows, by class:

        pull sum_{same} c_i c_j |z_i - z_j|^2  +  push sum_{other} c_i c_j max(0, margin - |z_i - z_j|)^2.

    The pairs of one class need sums alone; the others come in blocks of rows.
    """

    codes: NDArray[np.intp]
    weights: Array
    pull: float
    push: float
    margin: float

    def __call__(self, Z: Array) -> tuple[float, Array]:
        count = int(self.codes.max()) + 1
        member = sparse.csr_matrix((self.weights, (self.codes, np.arange(len(Z)))), shape=(count, len(Z)))
        totals, sums = np.asarray(member.sum(axis=1)).ravel(), member @ Z
        norms = np.einsum("ij,ij->i", Z, Z)
        pulled = 2 * float(totals @ (member @ norms) - np.sum(sums * sums))
        gradient = 4 * self.pull * self.weights[:, None] * (totals[self.codes, None] * Z - sums[self.codes])

        def run(start: int) -> float:
            rows = slice(start, min(start + ROWS, len(Z)))
            tile = Z[rows] @ Z.T
            levels, value = np.empty(len(tile)), 0.0
            for few in slices(len(tile), max(1, PAIRS // Z.size)):
                check_stop()
                place = (start + few.start, self.margin, value)
                value = repel(tile[few], (Z, norms), self.codes, self.weights, place, levels[few])
            gradient[rows] += 4 * self.push * (levels[:, None] * Z[rows] - tile @ Z)
            return value

        pushed = sum(parallel_map(run, range(0, len(Z), ROWS)))
        return self.pull * pulled + self.push * pushed, gradient


@plain_loop
def repel(tile, images, codes, weights, place, levels):
    """Turn products of rows into the weights of their differences; returns what the pairs cost, with those before."""
    start, margin, total = place
    Z, norms = images
    for i in range(tile.shape[0]):
        own, weight = codes[start + i], weights[start + i]
        level = 0.0
        for j in range(tile.shape[1]):
            square = norms[start + i] + norms[j] - 2 * tile[i, j]
            force = 0.0
            if codes[j] != own and square < margin * margin:
                square = 0.0  # again, from the differences: the product loses the digits of a small distance
                for k in range(Z.shape[1]):
                    square += (Z[start + i, k] - Z[j, k]) ** 2
                distance = min(max(np.sqrt(square), TINY * margin), margin)
                amount = weight * weights[j]
                total += amount * (margin - distance) ** 2
                force = -amount * (margin - distance) / distance
            tile[i, j] = force
            level += force
        levels[i] = level
    return total


class Triplets:
    """Large-margin neighbours:

        sum_i c_i sum_j a_ij ( |z_i - z_j|^2 + C sum_l c_l max(0, margin + |z_i - z_j|^2 - |z_i - z_l|^2) )

    over the target neighbours j of row i, which count a_ij, and over all rows l of other classes, the impostors.

    No impostor is missed: the lists of rows that are near reach beyond the margin, and hold as long as no image has
    moved further than that. What they would need beyond the memory budget is not kept.

    Parameters
    ----------
    targets, amounts : arrays n x k
        The target neighbours, and what each counts.
    codes, weights : arrays of n
        Classes and weights of the rows.
    C, margin : float
        As in the formula.
    """

    def __init__(self, targets: NDArray, amounts: Array, codes: NDArray, weights: Array, C: float, margin: float):
        self._targets, self._amounts = targets, amounts
        self._codes, self._weights = codes, weights
        self._numbers = (C, margin)
        self._margin = margin
        self._blocks = [slice(start, min(start + ROWS, len(codes))) for start in range(0, len(codes), ROWS)]
        self._lists: list[Any] | None = None
        self._radius, self._centre = np.zeros(len(codes)), np.empty((0, 0))

    def __call__(self, Z: Array) -> tuple[float, Array]:
        far = np.zeros(len(Z))
        farthest(Z, self._targets, self._amounts, far)
        reach = np.sqrt(self._margin + far)
        images = _Images(Z)
        if not self._complete(Z, reach):
            self._renew(images, reach)
        count = max(1, min(SHARES, len(self._blocks), GRADIENT_BYTES // max(Z.nbytes, 1)))
        parts = np.array_split(np.arange(len(self._blocks)), count)

        def run(share: int) -> tuple[float, Array]:
            total, gradient, work = 0.0, np.zeros_like(Z), np.empty((2, self._targets.shape[1]))
            for number in parts[share]:
                rows = self._blocks[number]
                near = self._near(images, rows, reach) if self._lists is None else self._lists[number]
                data = (self._targets, self._amounts, self._weights)
                total += pull_and_push(Z, data, near, (rows.start, rows.stop), self._numbers, work, gradient)
            return total, gradient

        found = parallel_map(run, range(count))
        total, gradient = found[0]
        for value, part in found[1:]:
            total, gradient = total + value, gradient + part
        return total, gradient

    def _complete(self, Z: Array, reach: Array) -> bool:
        """Whether the lists hold all impostors: an image is no nearer than it was, less what both have moved."""
        if self._lists is None:
            return False
        moved = np.sqrt(np.sum((Z - self._centre) ** 2, axis=1))
        return bool(np.all(reach + moved + moved.max() <= self._radius))

    def _renew(self, images: "_Images", reach: Array) -> None:
        """Make the lists, unless they would be too long."""
        most = settings().memory // (LIST_SHARE * 4)
        self._radius, self._centre = reach + REACH * np.sqrt(np.mean(reach**2)), images.Z.copy()
        self._lists = None
        first = self._near(images, self._blocks[0], self._radius)
        if len(first[0]) * len(self._blocks) > 2 * most:
            return
        found = parallel_map(lambda rows: self._near(images, rows, self._radius), self._blocks)
        if sum(len(places) for places, _ in found) <= most:
            self._lists = found

    def _near(self, images: "_Images", rows: slice, radius: Array) -> tuple[NDArray, NDArray]:
        """The rows of other classes within a radius of some rows, and where the list of each begins."""
        tile = images.single[rows] @ images.single.T
        limits = (radius[rows] ** 2 + images.rounding[rows] - images.norms[rows]).astype(np.float32)
        places, starts = np.empty(tile.size, np.int32), np.zeros(len(tile) + 1, np.int64)
        gather(tile, images.norms, limits, self._codes, rows.start, places, starts)
        return places[: starts[-1]].copy(), starts


class _Images:
    """The images in float32, and what their squared distances may be wrong by."""

    def __init__(self, Z: Array):
        self.Z = Z

    @lazy
    def single(self) -> NDArray[np.float32]:
        return self.Z.astype(np.float32)

    @lazy
    def norms(self) -> NDArray[np.float32]:
        return np.einsum("ij,ij->i", self.single, self.single)

    @lazy
    def rounding(self) -> Array:
        return 4 * (self.Z.shape[1] + 4) * float(np.finfo(np.float32).eps) * (self.norms + float(self.norms.max()))


@plain_loop
def farthest(Z, targets, amounts, out):
    """The largest squared distance to a target neighbour that counts."""
    for i in range(len(out)):
        for t in range(targets.shape[1]):
            if amounts[i, t] > 0:
                square = 0.0
                for k in range(Z.shape[1]):
                    square += (Z[i, k] - Z[targets[i, t], k]) ** 2
                out[i] = max(out[i], square)


@plain_loop
def gather(tile, norms, limits, codes, first, places, starts):
    """List the columns of other classes with  norms_j - 2 tile_ij < limits_i, row by row."""
    count = 0
    for i in range(tile.shape[0]):
        own, limit = codes[first + i], limits[i]
        for start in range(0, tile.shape[1], CHUNK):
            # Most chunks hold nothing near. Slices, without a branch, let the processor compare many at once.
            part, level = tile[i, start : start + CHUNK], norms[start : start + CHUNK]
            near = 0
            for j in range(len(part)):
                near |= level[j] - part[j] - part[j] < limit
            if near == 0:
                continue
            for j in range(len(part)):
                if level[j] - part[j] - part[j] < limit and codes[start + j] != own:
                    places[count] = start + j
                    count += 1
        starts[i + 1] = count


@plain_loop
def pull_and_push(Z, data, near, rows, numbers, work, gradient):
    """The loss of some rows; adds to the gradient of all."""
    targets, amounts, weights = data
    places, starts = near
    C, margin = numbers
    width, count = Z.shape[1], targets.shape[1]
    squares, forces = work
    total = 0.0
    for i in range(rows[0], rows[1]):
        reach = -1.0
        for t in range(count):
            amount = weights[i] * amounts[i, t]
            square = 0.0
            if amount > 0:
                for k in range(width):
                    square += (Z[i, k] - Z[targets[i, t], k]) ** 2
                reach = max(reach, square)
            squares[t], forces[t] = square, amount
            total += amount * square
        if reach < 0:
            continue
        for p in range(starts[i - rows[0]], starts[i - rows[0] + 1]):
            other = places[p]
            square = 0.0
            for k in range(width):
                square += (Z[i, k] - Z[other, k]) ** 2
            if square >= margin + reach:
                continue
            pushed = 0.0
            for t in range(count):
                excess = margin + squares[t] - square
                if amounts[i, t] > 0 and excess > 0:
                    amount = C * weights[i] * amounts[i, t] * weights[other]
                    total += amount * excess
                    forces[t] += amount
                    pushed += amount
            for k in range(width):
                step = 2 * pushed * (Z[i, k] - Z[other, k])
                gradient[i, k] -= step
                gradient[other, k] += step
        for t in range(count):
            if forces[t] > 0:
                for k in range(width):
                    step = 2 * forces[t] * (Z[i, k] - Z[targets[i, t], k])
                    gradient[i, k] += step
                    gradient[targets[i, t], k] -= step
    return total
