"""The leading eigenvectors of a symmetric matrix that is known by its products: a block Krylov space with restarts."""

from collections.abc import Callable

import numpy as np

from empirisk.linalg.blocks import Array
from empirisk.stop import Stopped

#: Columns that are multiplied at a time: one pass over the data serves all of them, and equal eigenvalues are told
#: apart up to this number.
BLOCK = 16
#: Blocks that are added between two restarts.
DEPTH = 4
#: A pair is found when |A v - value v| is this small beside the value,
TOLERANCE = 1e-8
#: or beside the largest value: no product is exact beyond its own rounding.
ROUNDING = 1e-15
#: Restarts before the best pairs so far are taken: each brings several digits unless the values are all but equal.
RESTARTS = 60
#: A column of which less is left has half of its digits in its rounding.
LOST = 1e-8


def leading(
    multiply: Callable[[Array], Array], size: int, count: int, tell: Callable[[Array], bool] = lambda values: False
) -> tuple[Array, Array]:
    """The largest ``count`` eigenvalues, decreasing, and their eigenvectors as columns.

    The start is random with a seed of its own, so that equal matrices give equal bits. Where work is stopped, the best
    pairs so far are the result.

    Parameters
    ----------
    multiply : callable
        A V for a positive semidefinite A and any V with ``size`` rows.
    size : int
        The number of rows of A.
    count : int
        How many pairs; with those that the method adds, few beside the size.
    tell : callable
        Hears the values after each restart; True if it is to be the last.

    Examples
    --------
    >>> diagonal = np.arange(500.0)
    >>> values, vectors = leading(lambda V: diagonal[:, None] * V, 500, 2)
    >>> values.round(9)
    array([499., 498.])
    """
    kept = count + BLOCK
    most = kept + DEPTH * BLOCK
    if most > size:
        raise ValueError(f"{count} leading pairs of {size} need more columns than the matrix has")
    random = np.random.default_rng(0)
    V = _orthonormal(random.normal(size=(size, kept)), np.empty((size, 0)), random)
    AV = multiply(V)
    values, S = _ritz(V, AV)
    for _ in range(RESTARTS):
        V, AV = V @ S[:, :kept], AV @ S[:, :kept]
        residuals = AV - V * values[:kept]
        # A product of n terms has a rounding that grows with their number.
        bounds = np.maximum(TOLERANCE * np.abs(values[:kept]), np.sqrt(size) * ROUNDING * abs(values[0]))
        found = np.linalg.norm(residuals, axis=0) <= bounds
        if found[:count].all() or tell(np.maximum(values[:count], 0.0)):
            break
        try:
            V, AV = _extended(multiply, V, AV, residuals[:, np.argsort(found, kind="stable")[:BLOCK]], random)
        except Stopped:
            break
        values, S = _ritz(V, AV)
    return np.maximum(values[:count], 0.0), V[:, :count]


def _extended(
    multiply: Callable[[Array], Array], V: Array, AV: Array, extra: Array, random: np.random.Generator
) -> tuple[Array, Array]:
    """The space with some blocks of a Krylov space more, and its image."""
    for _ in range(DEPTH):
        Q = _orthonormal(extra, V, random)
        extra = multiply(Q)
        V, AV = np.hstack([V, Q]), np.hstack([AV, extra])
    return V, AV


def _orthonormal(block: Array, basis: Array, random: np.random.Generator) -> Array:
    """An orthonormal basis of the block's columns, orthogonal to the basis.

    A column of which the basis, or the columns before it, leave rounding alone, as where the matrix has a low rank,
    gives way to a random one: its rounding may lie in the basis again.
    """
    sizes = np.linalg.norm(block, axis=0)
    block, left = np.linalg.qr(block - basis @ (basis.T @ block))
    lost = np.abs(np.diag(left)) <= LOST * sizes
    block[:, lost] = random.normal(size=(len(block), lost.sum())) / np.sqrt(len(block))
    # Once more: what is left of a column may be rounding for a part.
    return np.linalg.qr(block - basis @ (basis.T @ block))[0]


def _ritz(V: Array, AV: Array) -> tuple[Array, Array]:
    """Eigenvalues of the matrix in the space of V, decreasing, and the coordinates of their vectors."""
    T = V.T @ AV
    values, S = np.linalg.eigh(0.5 * (T + T.T))
    return values[::-1], S[:, ::-1]
