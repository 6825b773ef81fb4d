"""Joint normal equations by rows, for data with fewer rows than columns."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.design import Design
from empirisk.linalg.factor import Cholesky
from empirisk.linalg.gram import inverse
from empirisk.linalg.joint import Coupling, JointColumns
from empirisk.linalg.threads import in_threads
from empirisk.settings import require

Array = NDArray[np.float64]
SMALL = 2000


def joint_equations(
    design: Design, coupling: Coupling, stiffness: Array, intercept: bool
) -> "JointColumns | JointRows":
    """The equations by rows where there are far too many columns and every weight is stiff, else by columns.

    Small systems go by columns even if these are more: products of rows lose the columns with small entries. Behind a
    kernel there are products of rows only.
    """
    rows, columns = design.shape
    by_rows = design.implicit or (rows < columns and stiffness.size > SMALL and stiffness.min() > 0)
    return (JointRows if by_rows else JointColumns)(design, coupling, stiffness, intercept)


class JointRows:
    """The equations of `JointColumns` through n x n matrices, one for each class and one that couples them.

    With z = S e and m the t-weighted mean of e on each row,  z_k = (1/t_k + A E_k^-1 A')^-1 (r_k + b_k - m)  for every
    class k, where r_k = A (E_k^-1 p_k - h_k) + g_k; m follows from sum_k z_k = 0, b from 1'z_k = q_k, and then
    x_k = E_k^-1 (p_k - A'z_k).

    Parameters
    ----------
    design : Design
        The matrix A.
    coupling : Coupling
        S.
    stiffness : array d x K, > 0
        E, elementwise.
    intercept : bool
        Whether b is free.
    """

    def __init__(self, design: Design, coupling: Coupling, stiffness: Array, intercept: bool):
        rows, classes = coupling.shares.shape
        require(
            24 * classes * rows**2,
            f"{classes} normal matrices of {rows} rows",
            "choose solver='proximal', or use fewer rows",
        )
        self._design, self._coupling, self._stiffness, self._intercept = design, coupling, stiffness, intercept
        products = in_threads(lambda column: design.outer(1.0 / column), list(stiffness.T))
        # With 1'z_k given, adding a multiple of 1 1' only moves b_k, and lifts the null vector 1 of centred rows.
        self._lift = np.array([matrix.diagonal().mean() for matrix in products]) if intercept else np.zeros(classes)
        tasks = zip(products, self._lift, np.sqrt(coupling.shares).T, strict=True)
        self._inverses = in_threads(lambda task: _inverse(*task), list(tasks))
        self._sum = Cholesky(np.sum(self._inverses, axis=0), definite=True)
        if intercept:
            self._responses = np.stack([inverse.sum(axis=1) for inverse in self._inverses], axis=1)
            self._pulled = self._sum.solve(self._responses)
            matrix = np.diag(self._responses.sum(axis=0)) - self._responses.T @ self._pulled
            self._constants = Cholesky(matrix + matrix.diagonal().mean() / classes)

    def solve(
        self, right: Array, constant: Array, rows: Array | None = None, columns: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """(x, b, S e) for the right-hand sides p, q and the shifts g, h."""
        start = right / self._stiffness
        r = self._design.dot(start if columns is None else start - columns)
        z = self._respond(r if rows is None else r + rows)
        b = np.zeros(len(constant))
        if self._intercept:
            b = self._constants.solve(constant - z.sum(axis=0))
            z = z + self._responses * b - self._times(self._pulled @ b)
            b = b - self._lift * constant
            b = b - b.mean()
        z = self._balanced(z)
        return (right - self._design.tdot(z)) / self._stiffness, b, z

    def _respond(self, r: Array) -> Array:
        """z for b = 0."""
        z = np.stack([inverse @ column for inverse, column in zip(self._inverses, r.T, strict=True)], axis=1)
        return z - self._times(self._sum.solve(z.sum(axis=1)))

    def _times(self, mean: Array) -> Array:
        return np.stack([inverse @ mean for inverse in self._inverses], axis=1)

    def _balanced(self, z: Array) -> Array:
        """The largest share gets what the others give away: its own difference has no digits left."""
        largest = self._coupling.shares.argmax(axis=1)[:, None]
        np.put_along_axis(z, largest, 0.0, axis=1)
        np.put_along_axis(z, largest, -z.sum(axis=1, keepdims=True), axis=1)
        return z


def _inverse(products: Array, lift: float, root: Array) -> Array:
    """(1/t + products + lift)^-1, with t = root^2 that may be zero."""
    with np.errstate(over="ignore", invalid="ignore"):  # a thread does not inherit what its caller ignores
        matrix = (products + lift) * root[:, None] * root
    matrix.flat[:: len(matrix) + 1] += 1.0
    found = inverse(matrix)
    found *= root
    found *= root[:, None]
    return found
