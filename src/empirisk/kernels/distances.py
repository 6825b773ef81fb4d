"""-scale |x - z|^2 for blocks of rows: one matrix product on columns that carry the norms along."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import OutOfRange
from empirisk.kernels import tiles
from empirisk.kernels.compiled import Formula
from empirisk.lazy import lazy

SAMPLE = 64  # rows: any point among the data will do as a centre


def robust_centre(A: NDArray) -> NDArray:
    """A point in the middle of the rows: distances do not depend on the origin, their rounding does.

    The median of some rows, because one far row would draw a mean away from all others.
    """
    if len(A) == 0:
        return np.zeros(A.shape[1], A.dtype)
    step = max(1, len(A) // SAMPLE)
    return np.median(A[::step][:SAMPLE], axis=0).astype(A.dtype)


class Packed:
    """Rows ready for products: around a centre they are widened to [sqrt(2 scale) x, 1, -scale |x|^2].

    The rows as they came are seldom needed again: of some of them it is known which they are.
    """

    def __init__(
        self, table: NDArray, chosen: NDArray[np.intp] | slice, norms: NDArray, wide: NDArray, centre: NDArray
    ):
        self._table, self._chosen, self.norms, self.wide, self.centre = table, chosen, norms, wide, centre
        self.dtype, self.shape = table.dtype, (len(wide), table.shape[1])

    @lazy
    def points(self) -> NDArray:
        """The rows."""
        return self._table[self._chosen]

    def __len__(self) -> int:
        return len(self.wide)

    def __getitem__(self, chosen) -> "Packed":
        numbers = np.arange(len(self._table))[self._chosen][chosen]
        return Packed(self._table, numbers, self.norms[chosen], self.wide[chosen], self.centre)

    def rows(self) -> NDArray:
        """The other form, [sqrt(2 scale) x, -scale |x|^2, 1]: its product with the first is the exponent."""
        swapped = self.wide.copy()
        swapped[:, -2], swapped[:, -1] = -self.norms, 1
        return swapped


class Exponents:
    """-scale |a_i - b_j|^2; B is A if None. Either may be packed."""

    def __init__(self, A: Any, B: Any, scale: float, centre: NDArray | None):
        self.symmetric, self.scale, self.dtype = B is None, scale, tiles.dtype_of(A)
        B = A if B is None else B
        tiles.require_same_columns(A, B)
        self.thin = tiles.thin(A, B)
        if self.thin:
            self.A, self.B = A, B
            left = scale * tiles.squared_norms(A)
            self.norms = (left, left if self.symmetric else scale * tiles.squared_norms(B))
        else:
            self.B = packed(B, scale, centre)
            self.A = self.B if self.symmetric else packed(A, scale, self.B.centre)
            self.norms = (self.A.norms, self.B.norms)

    @property
    def largest(self) -> float:
        """The largest sum of scaled squared norms of a pair: its rounding is how far off an exponent may be."""
        return float(self.norms[0].max(initial=0.0) + self.norms[1].max(initial=0.0))

    def formula(self, form: int, **options: Any) -> Formula:
        """A formula of the exponents of rows that are not thin."""
        points = (self.A.points, self.B.points) if "floor" in options else None
        return Formula(form, self.A.rows(), self.B.wide, self.dtype, points, self.norms, self.scale, **options)

    def fill_thin(self, out: NDArray | None, finish: Callable[[NDArray], Any]) -> NDArray:
        """finish(tile) on all tiles of exponents, of sparse rows with few entries."""
        left, right = (norms.astype(self.dtype) for norms in self.norms)

        def end(rows: slice, columns: slice, tile: NDArray) -> None:
            tile *= self.dtype(2 * self.scale)
            tile -= left[rows, None]
            tile -= right[None, columns]
            np.minimum(tile, 0, out=tile)
            if self.symmetric and rows.start >= columns.start:
                np.fill_diagonal(tile[:, rows.start - columns.start :], 0)
            finish(tile)

        return tiles.products(self.A, None if self.symmetric else self.B, out, end)


def packed(A: Any, scale: float, centre: NDArray | None) -> Packed:
    """The rows packed around a centre; packed rows stay as they are if they have that centre."""
    if isinstance(A, Packed):
        if centre is None or A.centre is centre or np.array_equal(A.centre, centre):
            return A
        A = A.points
    A = tiles.dense(A)  # a sparse table with many entries multiplies faster so
    centre = robust_centre(A) if centre is None else centre
    if not np.isfinite(scale):
        raise OutOfRange("X holds values so small that squared widths vanish; scale its columns.")
    wide = np.empty((A.shape[0], A.shape[1] + 2), A.dtype)
    np.subtract(A, centre, out=wide[:, :-2])
    norms = scale * tiles.squared_norms(wide[:, :-2])
    if norms.max(initial=0.0) > np.finfo(A.dtype).max / 8:
        raise OutOfRange("X holds values so large that squared distances overflow; scale its columns.")
    wide[:, :-2] *= A.dtype.type(np.sqrt(2 * scale))
    wide[:, -2], wide[:, -1] = 1, -norms
    return Packed(np.ascontiguousarray(A), slice(None), norms, wide, centre)
