"""Some columns of a design: what coordinate descent needs, for dense and for sparse data."""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.linalg.blocks import in_threads
from empirisk.linalg.design import DenseDesign, Design, SparseDesign

Array = NDArray[np.float64]
Columns = NDArray[np.intp]
CHUNK = 128


@singledispatch
def select(design: Design, chosen: Columns) -> Design:
    """The design of the chosen columns, without a shift."""
    return DenseDesign(design.columns(chosen))


@select.register
def _(design: SparseDesign, chosen: Columns) -> Design:
    return SparseDesign(design.by_column[:, chosen])


@singledispatch
def join(left: Design, right: Design) -> Design:
    """[left, right], for designs made by `select`."""
    return DenseDesign(np.concatenate([left.X.T, right.X.T]).T)  # type: ignore[attr-defined]


@join.register
def _(left: SparseDesign, right: SparseDesign) -> Design:
    return SparseDesign(sparse.hstack([left.by_column, right.by_column], format="csc"))


@singledispatch
def cross(left: Design, weights: Array, right: Design) -> Array:
    """left' diag(weights) right, for designs made by `select`."""
    scaled = right.X * weights[:, None]  # type: ignore[attr-defined]
    out = np.empty((left.shape[1], right.shape[1]))

    def run(chunk: slice) -> None:
        out[chunk] = left.X[:, chunk].T @ scaled  # type: ignore[attr-defined]

    in_threads(run, [slice(start, start + CHUNK) for start in range(0, len(out), CHUNK)])
    return out


@cross.register
def _(left: SparseDesign, weights: Array, right: SparseDesign) -> Array:
    return (left.by_column.T @ right.by_column.multiply(weights[:, None]).tocsc()).toarray()


@singledispatch
def correlate(design: Design, chosen: Columns, u: Array) -> Array:
    """A'u for the chosen columns."""
    return select(design, chosen).tdot(u)


@correlate.register
def _(design: SparseDesign, chosen: Columns, u: Array) -> Array:
    return design.by_column[:, chosen].T @ u


@singledispatch
def reading_cost(design: Design) -> float:
    """What it costs to read one column by itself, in units of its share of reading all of them."""
    return 2.0 if design.X.flags.f_contiguous else 20.0  # type: ignore[attr-defined]


@reading_cost.register
def _(design: SparseDesign) -> float:
    return 4.0
