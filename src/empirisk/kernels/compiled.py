"""Blocks and sums of kernels on dense vectors, compiled: a thread walks its tiles, product and formula in one call.

A kernel here is a formula of one matrix product, <l_i, r_j>. Tiles have a fixed size, so the bits do not depend on the
number of threads; products go to BLAS, which is kept to one thread.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from empirisk.kernels.tiles import SIDE, result
from empirisk.linalg.compiled import inner_with, multiply, plain_loop
from empirisk.linalg.threads import parallel_map, workers

Array = NDArray[np.float64]

#: Codes of the kernels' formulas in compiled loops.
EXPONENTIAL, DISTANCE, POLYNOMIAL = range(3)
#: Entries that a call makes at most, some hundredths of a second: between calls the threads look at the flag.
ENTRIES = 1 << 21
#: Entries that a call makes at least: fewer, and threads wait for Python's lock longer than they work.
LEAST = 1 << 18
#: Calls for each thread, so that none waits long for the last one.
CALLS = 2


@dataclass(frozen=True)
class Formula:
    """k(a_i, b_j) from <left_i, right_j>.

    Attributes
    ----------
    form : int
        EXPONENTIAL: exp(t). DISTANCE: factor sqrt(-t), or exp of that. POLYNOMIAL: (t + constant)^degree.
    left, right : arrays
        What is multiplied; for the first two forms t = -scale |a_i - b_j|^2, and at most 0.
    points, norms : pairs of arrays
        The vectors themselves and their scaled squared norms, for pairs that are recomputed from their differences:
        those whose norms sum to more than ``floor`` and whose t is above bound - share * sum of norms.
    dtype : type
        The precision of the entries.
    """

    form: int
    left: NDArray
    right: NDArray
    dtype: Any
    points: tuple[NDArray, NDArray] | None = None
    norms: tuple[Array, Array] = (np.zeros(0), np.zeros(0))
    scale: float = 1.0
    factor: float = 1.0
    exponential: bool = True
    degree: int = 1
    constant: float = 0.0
    floor: float = np.inf
    bound: float = 0.0
    share: float = 0.0

    def block(self, out: NDArray | None, symmetric: bool) -> NDArray:
        """k(a_i, b_j); a symmetric block is computed once. ``out`` is overwritten."""
        out = result(len(self.left), len(self.right), self.dtype, out)
        fits = out.dtype == self._kind and out.flags.c_contiguous
        entries, none = out if fits else np.empty(out.shape, self._kind), np.empty((0, 0))
        tiles, side = tiles_of(out.shape, SIDE[self._kind], symmetric), SIDE[self._kind]
        self._walk(shares(tiles, side * side), symmetric, entries, none, none)
        if not fits:
            out[...] = entries
        return out

    def sums(self, coefficients: Array) -> Array:
        """sum_j k(a_i, b_j) c_j for every i and every column of c."""
        rows, columns, side = len(self.left), len(self.right), SIDE[self._kind]
        by_sum, found = np.array(coefficients.T, order="C"), np.zeros((coefficients.shape[1], rows))
        # All tiles of a row of tiles, in order: each sum is that of one thread.
        tiles = tiles_of((rows, columns), side, symmetric=False).reshape(-(-rows // side), -1, 2)
        self._walk(shares(tiles, side * columns), False, np.empty((0, 0), self._kind), by_sum, found)
        return found.T

    @property
    def _kind(self) -> np.dtype:
        """The precision of the products."""
        return np.result_type(self.left, self.right)

    def _walk(self, parts: list[NDArray], symmetric: bool, out: NDArray, coefficients: Array, sums: Array) -> None:
        """Parts of the tiles in threads. What compiled loops get is contiguous, writeable and of one precision."""
        points = (self.left[:0], self.right[:0]) if self.points is None or self.floor == np.inf else self.points
        arrays = (np.require(array, self._kind, ("C", "W")) for array in (self.left, self.right, *points))
        work = (*arrays, *(np.require(norms, np.float64, ("C", "W")) for norms in self.norms))
        numbers = (self.form, self.scale, self.factor, self.exponential, self.degree, self.constant)
        rule = np.array([*numbers, self.floor, self.bound, self.share, symmetric], dtype=np.float64)
        side = SIDE[self._kind]

        def run(tiles: NDArray) -> None:
            memory = np.empty(side * side, self._kind)
            walk(tiles.reshape(-1, 2), side, rule, work, memory, out, coefficients, sums)

        parallel_map(run, parts)


def tiles_of(shape: tuple[int, ...], side: int, symmetric: bool) -> NDArray[np.int64]:
    """First row and first column of every tile; of a symmetric block those on and above the diagonal.

    These go column by column: with its mirror image each touches a new strip of memory, which takes the system time to
    provide; row by row the first few tiles would touch all of it.
    """
    starts = np.arange(0, shape[0], side), np.arange(0, shape[1], side)
    rows, columns = np.meshgrid(*starts, indexing="xy" if symmetric else "ij")
    tiles = np.column_stack([rows.ravel(), columns.ravel()])
    return tiles[tiles[:, 0] <= tiles[:, 1]] if symmetric else tiles


def shares(tasks: NDArray, entries: int) -> list[NDArray]:
    """Tasks of that many entries each, dealt to calls: a few for each thread, none too short and none too long."""
    total = len(tasks) * entries
    calls = max(min(CALLS * workers(), -(-total // LEAST)), -(-total // ENTRIES))
    return np.array_split(tasks, min(calls, len(tasks))) if len(tasks) else []


@intrinsic
def _of_bits(typing_context, bits):
    """The floating-point number that has these bits."""
    number = types.float32 if bits == types.int32 else types.float64

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(number))

    return number(bits), code


def exponential(line):
    """exp(min(x, 0)) of a line in place; written out, because the processor then does several at a time."""
    raise NotImplementedError


@overload(exponential, jit_options={"fastmath": {"nnan", "ninf", "nsz", "contract"}})
def _exponential(line):
    single = line.dtype == types.float32
    # Of a precision's own kind are all numbers: a plain 0.5 or 0.0 would make float64 of all.
    number, whole = (np.float32, np.int32) if single else (np.float64, np.int64)
    half, zero = number(0.5), number(0.0)
    # Below this number the exponential is taken for zero: it has no full digits left.
    least = number(-87.0 if single else -708.0)
    # The logarithm of 2 in two parts, of which the first times any exponent is exact (Cody and Waite).
    high = number(0.693359375 if single else 6.93145751953125e-1)
    low = number(-2.12194440e-4 if single else 1.42860682030941723212e-6)
    # Times this, and rounded: the exponent k of 2, which, so much higher, stands above the bits of the fraction.
    to_exponent = number(1 / np.log(2))
    offset, fraction = (whole(127), whole(23)) if single else (whole(1023), whole(52))
    # 1/degree!, ..., 1/1!, 1/0!: on |r| <= log(2)/2 the next term is below the rounding at these degrees.
    degrees = range(7 if single else 13, -1, -1)
    terms = tuple(number(1 / float(np.prod(np.arange(1.0, degree + 1)))) for degree in degrees)

    def code(line):
        for j in range(len(line)):
            x = line[j] if line[j] < zero else zero
            inside = x if x > least else least
            k = np.floor(inside * to_exponent + half)
            r = (inside - k * high) - k * low
            total = terms[0]
            for term in terms[1:]:
                total = total * r + term
            value = total * _of_bits(whole((whole(k) + offset) << fraction))  # type: ignore[call-arg]
            line[j] = value if x >= least else zero

    return code


# Sums over a tile may be reordered, which lets the processor add several entries at a time.
@inner_with({"reassoc", "contract"})
def _product(line, coefficients):
    """<line, coefficients> in float64."""
    total = 0.0
    for j in range(len(line)):
        total += line[j] * coefficients[j]
    return total


@plain_loop
def walk(tiles, side, rule, work, memory, out, coefficients, sums):
    """The tiles that begin at these rows and columns, into the block; of a symmetric one mirrored too.

    With coefficients, a row for each sum, sums_ki += sum_j k(a_i, b_j) c_kj instead. It is one function, since what it
    hands to others takes longer to compile than what it does.
    """
    left, right, A, B, own, others = work
    form, scale, power, symmetric = int(rule[0]), rule[1], int(rule[4]), rule[9] > 0
    factor, constant, zero = left.dtype.type(rule[2]), left.dtype.type(rule[5]), left.dtype.type(0)
    floor, bound, share = rule[6], rule[7], rule[8]
    for n in range(len(tiles)):
        row, column = tiles[n, 0], tiles[n, 1]
        height, width = len(left) - row, len(right) - column
        height, width = side if side < height else height, side if side < width else width
        tile = memory[: height * width].reshape(height, width)
        multiply(left[row : row + height], right[column : column + width].T, tile)
        for i in range(height):
            line = tile[i]
            if form == POLYNOMIAL:
                for j in range(width):
                    base = line[j] + constant
                    value = base
                    for _ in range(power - 1):
                        value *= base
                    line[j] = value
            if floor < np.inf and form != POLYNOMIAL:
                # Pairs so close that the product has lost its digits are computed from their differences.
                for j in range(width):
                    both = own[row + i] + others[column + j]
                    if both > floor and line[j] > bound - share * both:
                        total = 0.0
                        for k in range(A.shape[1]):
                            difference = A[row + i, k] - B[column + j, k]
                            total += difference * difference
                        line[j] = -scale * total
            if symmetric and row == column and form != POLYNOMIAL:
                line[i] = 0
            if form == DISTANCE:
                for j in range(width):
                    line[j] = factor * np.sqrt(-line[j] if line[j] < zero else zero)
            if form == EXPONENTIAL or (form == DISTANCE and rule[3] > 0):
                exponential(line)
        if sums.shape[1] > 0:  # of no coefficients too: the block has no room
            for k in range(len(coefficients)):
                c = coefficients[k, column : column + width]
                for i in range(height):
                    sums[k, row + i] += _product(tile[i], c)
            continue
        for i in range(height):
            for j in range(width):
                out[row + i, column + j] = tile[i, j]
        if symmetric:
            for strip in range(0, height, 32):  # a transposed copy by strips stays in the first cache
                for j in range(width):
                    end = height if row != column else j
                    for i in range(strip, strip + 32 if strip + 32 < end else end):
                        out[column + j, row + i] = tile[i, j]
