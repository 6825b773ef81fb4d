"""Blocks and sums of kernels on dense vectors, compiled: a thread walks its tiles, product and formula in one call.

A kernel here is a formula of one matrix product, <l_i, r_j>. Tiles have a fixed size, so the bits do not depend on the
number of threads; products go to BLAS, which is kept to one thread.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from empirisk.kernels.tiles import result
from empirisk.linalg.compiled import inner_with, multiply, plain_loop
from empirisk.linalg.threads import in_threads, workers

Array = NDArray[np.float64]

#: Formulas of kernels, as compiled loops know them.
EXPONENTIAL, DISTANCE, POLYNOMIAL = range(3)
#: Rows and columns of a tile, which stays in the second cache between the product and the formula.
SIDE = {np.dtype(np.float32): 512, np.dtype(np.float64): 256}
#: Entries that a call makes at most, some hundredths of a second: between calls the threads look at the flag.
ENTRIES = 1 << 21
#: Entries that a call makes at least: fewer, and threads wait for Python's lock longer than they work.
LEAST = 1 << 18
#: Calls for each thread, so that none waits long for the last one.
CALLS = 2


class Work(NamedTuple):
    """The arrays that the loops take, of one kind each: contiguous, writeable, and of one precision."""

    left: NDArray
    right: NDArray
    A: NDArray
    B: NDArray
    own: Array
    others: Array


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
        work = self._work()
        left = work.left
        fits = out.dtype == left.dtype and out.flags.c_contiguous
        entries = out if fits else np.empty(out.shape, left.dtype)
        rule, side = self._rule(symmetric), SIDE[left.dtype]
        none = np.empty((0, 0))

        def run(tiles: NDArray) -> None:
            walk(tiles, side, rule, work, np.empty(side * side, left.dtype), entries, none, none)

        in_threads(run, shares(tiles_of(out.shape, side, symmetric), side * side))
        if not fits:
            out[...] = entries
        return out

    def sums(self, coefficients: Array) -> Array:
        """sum_j k(a_i, b_j) c_j for every i and every column of c."""
        work = self._work()
        left, right = work.left, work.right
        rule, side = self._rule(symmetric=False), SIDE[left.dtype]
        by_sum, found = np.array(coefficients.T, order="C"), np.zeros((coefficients.shape[1], len(left)))
        tiles, none = tiles_of((len(left), len(right)), side, symmetric=False), np.empty((0, 0), left.dtype)
        columns = -(-len(right) // side)

        def run(starts: NDArray) -> None:
            # All tiles of a row of tiles, in order: each sum is that of one thread.
            walk(
                tiles[starts[0] * columns : (starts[-1] + 1) * columns],
                side,
                rule,
                work,
                np.empty(side * side, left.dtype),
                none,
                by_sum,
                found,
            )

        in_threads(run, shares(np.arange(len(tiles) // max(columns, 1)), side * len(right)))
        return found.T

    def _work(self) -> Work:
        kind = np.result_type(self.left, self.right)
        points = (self.left[:0], self.right[:0]) if self.points is None or self.floor == np.inf else self.points
        left, right, A, B = (np.require(array, kind, ("C", "W")) for array in (self.left, self.right, *points))
        own, others = (np.require(norms, np.float64, ("C", "W")) for norms in self.norms)
        return Work(left, right, A, B, own, others)

    def _rule(self, symmetric: bool) -> Array:
        numbers = (self.form, self.scale, self.factor, self.exponential, self.degree, self.constant)
        return np.array([*numbers, self.floor, self.bound, self.share, symmetric], dtype=np.float64)


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


def _taylor(degree: int, kind: type) -> tuple:
    """1/degree!, ..., 1/1!, 1/0!: on |r| <= log(2)/2 the next term is below the rounding."""
    return tuple(kind(1 / float(np.prod(np.arange(1.0, k + 1)))) for k in range(degree, -1, -1))


TERMS32, TERMS64 = _taylor(7, np.float32), _taylor(13, np.float64)  # the degrees at which that is so
# The logarithm of 2 in two parts, of which the first times any exponent is exact (Cody and Waite).
HIGH32, LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
HIGH64, LOW64 = 6.93145751953125e-1, 1.42860682030941723212e-6  # of double precision
ROUND32, ROUND64 = np.float32(1 / np.log(2)), 1 / np.log(2)  # times these, and rounded: the exponent of 2
HALF32, ZERO32 = np.float32(0.5), np.float32(0.0)  # 0.5 and 0.0 alone would make float64 of all
# Below these numbers the exponential is taken for zero: it has no full digits left.
LEAST32, LEAST64 = np.float32(-87.0), -708.0


def exponential(line):
    """exp(min(x, 0)) of a line in place; written out, because the processor then does several at a time."""
    raise NotImplementedError


@overload(exponential, jit_options={"fastmath": {"nnan", "ninf", "nsz", "contract"}})
def _exponential(line):
    if line.dtype == types.float32:

        def single(line):
            for j in range(len(line)):
                x = line[j] if line[j] < ZERO32 else ZERO32
                inside = x if x > LEAST32 else LEAST32
                k = np.floor(inside * ROUND32 + HALF32)
                r = (inside - k * HIGH32) - k * LOW32
                total = TERMS32[0]
                for term in TERMS32[1:]:
                    total = total * r + term
                # 2^k: the exponent, 127 more than k, stands above the 23 bits of the fraction.
                bits = np.int32((np.int32(k) + np.int32(127)) << np.int32(23))
                value = total * _of_bits(bits)  # type: ignore[call-arg]
                line[j] = value if x >= LEAST32 else ZERO32

        return single

    def double(line):
        for j in range(len(line)):
            x = line[j] if line[j] < 0 else 0.0
            inside = x if x > LEAST64 else LEAST64
            k = np.floor(inside * ROUND64 + 0.5)
            r = (inside - k * HIGH64) - k * LOW64
            total = TERMS64[0]
            for term in TERMS64[1:]:
                total = total * r + term
            value = total * _of_bits((np.int64(k) + 1023) << 52)  # type: ignore[call-arg]  # as above, 52 bits
            line[j] = value if x >= LEAST64 else 0.0

    return double


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
        multiply(left[row : row + height], right[column : column + width].T, tile)  # type: ignore[call-arg]
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
        if len(coefficients):
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
