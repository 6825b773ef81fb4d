"""Sparse codes: rows as combinations of few atoms, x = z_1 a_1 + ... + z_p a_p, all rows of a block in one loop."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.linalg.blocks import Array, over_rows
from empirisk.linalg.compiled import loop, plain
from empirisk.linalg.design import DenseDesign

#: Coordinate descent ends where no step is larger than this part of the largest product with an atom.
CLOSE = 1e-9
#: Most sweeps over the atoms of one row.
SWEEPS = 10_000
#: An atom whose part outside the span of the chosen ones is smaller than this adds nothing.
DEPENDENT = 1e-10


class Products(NamedTuple):
    """What codes are computed from: X A', A A', and |x|^2."""

    crossed: Array
    gram: Array
    squares: Array

    def errors(self, codes: Array) -> Array:
        """|x - z A|^2 of every row."""
        bent = 2 * self.crossed - DenseDesign(codes).dot(self.gram)
        return np.maximum(self.squares - np.einsum("ij,ij->i", codes, bent), 0.0)


class Coding:
    """A way to find codes: what they cost besides the error, and what becomes of the atoms."""

    #: Whether atoms have unit length, so that codes carry the sizes.
    normed = True
    #: Whether codes have a fixed number of entries, which K-SVD keeps.
    counted = True

    def codes(self, products: Products, start: Array | None) -> Array:
        """The codes of all rows; ``start`` holds earlier ones, from which none gets worse."""
        fresh = self.fresh(products)
        if start is None:
            return fresh
        worse = products.errors(fresh) > products.errors(start)
        fresh[worse] = start[worse]
        return fresh

    def fresh(self, products: Products) -> Array:
        """The codes of all rows, whatever they were before."""
        raise NotImplementedError

    def costs(self, codes: Array, errors: Array) -> Array:
        """The objective of every row."""
        return errors


class LassoCoding(Coding):
    """The minimum of  |z|_1 + C |x - z A|^2: the machine `LassoCoding` with the atoms as columns, row by row."""

    counted = False

    def __init__(self, C: float):
        self.C = C

    def codes(self, products, start):
        codes = np.zeros_like(products.crossed) if start is None else start.copy()

        def run(rows: slice) -> None:
            shrink_codes(products.gram, products.crossed[rows], 0.5 / self.C, codes[rows])

        over_rows(run, len(codes), 64 * codes.shape[1])
        return codes

    def costs(self, codes, errors):
        return np.abs(codes).sum(axis=1) + self.C * errors


class MatchingPursuit(Coding):
    """Orthogonal matching pursuit: ``count`` times the atom that fits best is added, and all codes are fitted again."""

    def __init__(self, count: int):
        self.count = count

    def fresh(self, products):
        codes = np.zeros_like(products.crossed)

        def run(rows: slice) -> None:
            pursue(products.gram, products.crossed[rows], self.count, codes[rows])

        over_rows(run, len(codes), 64 * codes.shape[1])
        return codes


class ThresholdedCodes(Coding):
    """Least-squares codes, of which the ``count`` largest stay; "soft" takes what the next has off each of them."""

    def __init__(self, count: int, soft: bool):
        self.count, self.soft = count, soft

    def fresh(self, products):
        # Atoms that point the same way but for the rounding of their products count as one.
        inverse: Array = np.asarray(np.linalg.pinv(products.gram, rcond=DEPENDENT, hermitian=True), dtype=np.float64)
        codes: NDArray = DenseDesign(products.crossed).dot(inverse)
        if self.count >= codes.shape[1]:
            return codes
        sizes = np.abs(codes)
        places = np.argsort(-sizes, axis=1, kind="stable")
        out = np.zeros_like(codes)
        kept = places[:, : self.count]
        values = np.take_along_axis(codes, kept, axis=1)
        if self.soft:
            next_size = np.take_along_axis(sizes, places[:, [self.count]], axis=1)
            values = np.sign(values) * (np.abs(values) - next_size)
        np.put_along_axis(out, kept, values, axis=1)
        return out


class NearestAtom(Coding):
    """One entry, 1, for the nearest atom: what k-means does."""

    normed = False

    def fresh(self, products):
        nearest = np.argmin(np.diag(products.gram) - 2 * products.crossed, axis=1)
        return np.eye(len(products.gram))[nearest]


def coding(name: Any, C: float, count: int, threshold: Any) -> Coding:
    """The coding by its name."""
    table = {
        "l1": lambda: LassoCoding(C),
        "omp": lambda: MatchingPursuit(count),
        "top_k": lambda: ThresholdedCodes(count, threshold == "soft"),
        "indicator": NearestAtom,
    }
    if not isinstance(name, str) or name not in table:
        raise EmpiriskError(f"coding={name!r} must be one of {list(table)}.")
    return table[name]()


# The loops below are plain: an expression on whole arrays takes a second each to compile.


@loop
def shrink_codes(gram, crossed, level, codes):
    """Coordinate descent on  1/2 |x - z A|^2 + level |z|_1  for every row, from the codes given."""
    size = gram.shape[0]
    slopes = np.empty(size)
    for i in range(crossed.shape[0]):
        close = 0.0
        for j in range(size):
            slopes[j] = crossed[i, j]
            close = max(close, CLOSE * abs(crossed[i, j]))
        for j in range(size):
            if codes[i, j] != 0:
                take_off(slopes, codes[i, j], gram[j])
        everything = True
        for _ in range(SWEEPS):
            largest = 0.0
            for j in range(size):
                old = codes[i, j]
                if gram[j, j] <= 0 or (old == 0 and not everything):
                    continue
                aim = slopes[j] + gram[j, j] * old
                new = max(abs(aim) - level, 0.0) / gram[j, j]
                new = new if aim > 0 else -new
                if new != old:
                    codes[i, j] = new
                    take_off(slopes, new - old, gram[j])
                    largest = max(largest, abs(new - old) * gram[j, j])
            # The atoms in use are settled among themselves before the others are asked again.
            if largest <= close and everything:
                break
            everything = largest <= close


@plain
def take_off(values, factor, line):
    """values -= factor * line."""
    for j in range(len(values)):
        values[j] -= factor * line[j]


@loop
def pursue(gram, crossed, count, codes):
    """Orthogonal matching pursuit for every row.

    The chosen atoms are made orthonormal as they come: what a new one adds is found by its products with all atoms,
    less those with the earlier directions.
    """
    size = gram.shape[0]
    slopes, free = np.empty(size), np.empty(size)
    lines, gains = np.empty((count, size)), np.empty(count)
    chosen = np.empty(count, np.int64)
    for i in range(crossed.shape[0]):
        largest = 0.0
        for j in range(size):
            slopes[j], free[j] = crossed[i, j], 1.0
            largest = max(largest, abs(slopes[j]))
        used = 0
        while used < count:
            place, best = -1, DEPENDENT * largest
            for j in range(size):
                if free[j] * abs(slopes[j]) > best:
                    place, best = j, abs(slopes[j])
            if place < 0:
                break
            free[place] = 0.0
            line = lines[used]
            for j in range(size):
                line[j] = gram[place, j]
            for a in range(used):
                take_off(line, lines[a, place], lines[a])
            if line[place] <= DEPENDENT * gram[place, place]:
                continue
            length = np.sqrt(line[place])
            for j in range(size):
                line[j] /= length
            gains[used] = slopes[place] / length
            take_off(slopes, gains[used], line)
            chosen[used] = place
            used += 1
        # From the directions back to the atoms: a triangular system, the last atom first.
        for a in range(used - 1, -1, -1):
            value = gains[a]
            for b in range(a + 1, used):
                value -= lines[a, chosen[b]] * codes[i, chosen[b]]
            codes[i, chosen[a]] = value / lines[a, chosen[a]]
