"""Normal equations of K coupled outputs, whose per-sample curvature is diag(t_i) - t_i t_i' / sum(t_i)."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.blocks import rowwise, slices
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.design import Array, Design
from empirisk.linalg.factor import Cholesky, stiff
from empirisk.linalg.gram_factor import inverse, scale_both
from empirisk.linalg.threads import parallel_map
from empirisk.settings import require

#: Rows whose products fit into the processor's memory.
PANEL = 512
#: A column this small beside its shift is rounding.
ROUNDING = 2e-15
#: Rounds that take the ridge of a factor out of a solution.
REFINEMENTS = 2
#: Unknowns up to which factoring the equations by columns takes milliseconds.
SMALL = 2000


@plain_loop
def curve_rows(shares, sums, b, start, e, totals):
    """e_i <- S (e_i + b) for rows of a block that begins at ``start``, added up in ``totals``."""
    rows, classes = e.shape
    for i in range(rows):
        mean = 0.0
        for k in range(classes):
            e[i, k] += b[k]
            mean += shares[start + i, k] * e[i, k]
        mean /= sums[start + i]
        for k in range(classes):
            e[i, k] = shares[start + i, k] * (e[i, k] - mean)
            totals[k] += e[i, k]


class Coupling:
    """S = diag(t_i) - t_i t_i' / sum(t_i) on each row of K numbers: the curvature of softmax and of a barrier of max.

    >>> Coupling(np.array([[1.0, 1.0]]))(np.array([[3.0, 1.0]]))
    array([[ 1., -1.]])
    """

    def __init__(self, shares: Array):
        self.shares = np.ascontiguousarray(shares)
        self.sums = np.maximum(self.shares.sum(axis=1), np.finfo(float).tiny)

    def __call__(self, e: Array) -> Array:
        """S e; every row of it sums to zero."""
        mean = np.einsum("ik,ik->i", self.shares, e) / self.sums
        return self.balanced(self.shares * (e - mean[:, None]))

    def balanced(self, z: Array) -> Array:
        """The largest share gets what the others give away: its own difference from the mean has no digits left."""
        largest = self.shares.argmax(axis=1)[:, None]
        np.put_along_axis(z, largest, 0.0, axis=1)
        np.put_along_axis(z, largest, -z.sum(axis=1, keepdims=True), axis=1)
        return z

    def total(self) -> Array:
        """The sum of S over the rows, K x K."""
        roots = self.shares / np.sqrt(self.sums)[:, None]
        total = -(roots.T @ roots)
        np.fill_diagonal(total, 0.0)
        np.fill_diagonal(total, -total.sum(axis=1))
        return total

    def diagonal(self) -> Array:
        """t_k (sum of the other t) / sum(t), without subtracting."""
        below = np.cumsum(self.shares, axis=1)
        above = np.cumsum(self.shares[:, ::-1], axis=1)[:, ::-1]
        others = np.zeros_like(below)
        others[:, 1:] += below[:, :-1]
        others[:, :-1] += above[:, 1:]
        return self.shares * (others / self.sums[:, None])


def negligible_columns(design: Design) -> NDArray[np.bool_]:
    """The columns that are constant up to rounding: what a shift by their mean leaves of them is noise."""
    if design.shift is None:
        return np.zeros(design.shape[1], dtype=bool)
    return design.squared_columns() <= design.shape[0] * (ROUNDING * design.shift) ** 2


class JointColumns:
    """Solves, with shifts g of the rows and h of the columns that are zero unless given,

        E x + A' S e = p,   e = A (x - h) + b + g,   1' S e = q  (with an intercept)

    for x (d x K) and b (K) through the (d+1)K x (d+1)K matrix. Where adding the same number to all classes changes
    nothing, the solution with mean zero is taken.

    Parameters
    ----------
    design : Design
        The matrix A.
    coupling : Coupling
        S.
    stiffness : array d x K, >= 0, or d x K x d x K
        E, elementwise or a matrix.
    intercept : bool
        Whether b is free.
    """

    def __init__(self, design: Design, coupling: Coupling, stiffness: Array, intercept: bool):
        self._design, self._coupling, self._stiffness, self._intercept = design, coupling, stiffness, intercept
        self._own = stiffness if stiffness.ndim == 2 else np.einsum("jkjk->jk", stiffness)
        self._noise = negligible_columns(design)
        self._factor = Cholesky(self._matrix())

    def solve(
        self, right: Array, constant: Array, rows: Array | None = None, columns: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """(x, b, S e) for the right-hand sides p, q and the shifts g, h."""
        if rows is not None:
            push = self._coupling(rows)
            right, constant = right - self._design.tdot(push), constant - push.sum(axis=0)
        if columns is not None:
            right = right - stiff(self._stiffness, columns)
        right = np.where(self._noise[:, None] & (self._own == 0), 0.0, right)
        w, b = self._solve_packed(right, constant)
        e = self._design.dot(w) + b
        for _ in range(REFINEMENTS if self._factor.ridge else 0):
            # Iterative refinement: a few rounds remove the error that the ridge of a semidefinite matrix makes.
            curved = self._coupling(e)
            missing = right - stiff(self._stiffness, w) - self._design.tdot(curved)
            missing[self._noise] = 0.0
            more_w, more_b = self._solve_packed(missing, constant - curved.sum(axis=0))
            w, b = w + more_w, b + more_b
            e = self._design.dot(w) + b
        return w if columns is None else w + columns, b, self._coupling(e if rows is None else e + rows)

    def _solve_packed(self, right: Array, constant: Array) -> tuple[Array, Array]:
        packed = np.vstack([right, constant]) if self._intercept else right
        solution = self._factor.solve(packed.T.ravel()).reshape(packed.shape[::-1]).T
        b = solution[-1].copy() if self._intercept else np.zeros(len(constant))
        return np.ascontiguousarray(solution[: len(right)]), b

    def _matrix(self) -> Array:
        columns, classes = self._own.shape
        size = columns + self._intercept
        # The matrix and its factor, in doubles.
        require(
            16 * (classes * size) ** 2,
            f"A normal matrix of {classes * size} rows",
            "choose solver='proximal', or reduce the number of columns",
        )
        matrix = np.zeros((classes, size, classes, size))
        roots = self._coupling.shares / np.sqrt(self._coupling.sums)[:, None]

        def fill(k: int) -> None:
            panel = self._panel(roots, k)
            matrix[k, :, :k], matrix[:k, :, k] = panel, panel.transpose(1, 2, 0)

        parallel_map(fill, range(classes - 1, 0, -1))
        # Rows of S sum to zero, so the diagonal blocks are what the others lack: a sum of terms of one sign.
        total = -matrix.sum(axis=2)
        for k in range(classes):
            matrix[k, :, k] = total[k]
        self._lift(matrix)
        noise = np.flatnonzero(self._noise)
        matrix[:, noise] = matrix[:, :, :, noise] = 0.0
        square = matrix.reshape(classes * size, classes * size)
        if self._stiffness.ndim == 2:
            square.flat[:: len(square) + 1] += self._padded_stiffness().T.ravel()
        else:
            matrix[:, :columns, :, :columns] += self._stiffness.transpose(1, 0, 3, 2)
        return square

    def _panel(self, roots: Array, k: int) -> Array:
        """-[A, 1]' diag(t_k t_j / sum t) [A, 1] for all classes j < k."""
        size = self._design.shape[1] + self._intercept
        panel = np.zeros((size, k * size))
        for rows in slices(len(roots), PANEL):
            block = self._design.rows(rows).columns(slice(None))
            if self._intercept:
                block = np.hstack([block, np.ones((len(block), 1))])
            own = block * roots[rows, k, None]
            others = (roots[rows, :k, None] * block[:, None, :]).reshape(len(block), k * size)
            panel -= own.T @ others
        return panel.reshape(size, k, size)

    def _padded_stiffness(self) -> Array:
        return np.vstack([self._own, np.zeros(self._own.shape[1])]) if self._intercept else self._own

    def _lift(self, matrix: Array) -> None:
        """Give curvature to adding the same number to all classes, where nothing else does."""
        classes = len(matrix)
        free = np.flatnonzero(~self._padded_stiffness().any(axis=1))
        diagonal = np.einsum("kjkj->j", matrix)[free] / classes**2
        matrix[:, free, :, free] += diagonal[:, None, None]


def joint_equations(
    design: Design, coupling: Coupling, stiffness: Array, intercept: bool
) -> "JointColumns | JointRows":
    """The equations by rows where there are far too many columns and every weight is stiff, else by columns.

    Small systems go by columns even if these are more: products of rows lose the columns with small entries. Behind a
    kernel there are products of rows only.
    """
    rows, columns = design.shape
    wide = rows < columns and stiffness.ndim == 2 and stiffness.size > SMALL and stiffness.min() > 0
    by_rows = design.implicit or wide
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
        # Of each class the products, what is factored and its inverse, in doubles.
        require(
            24 * classes * rows**2,
            f"{classes} normal matrices of {rows} rows",
            "choose solver='proximal', or use fewer rows",
        )
        self._design, self._coupling, self._stiffness, self._intercept = design, coupling, stiffness, intercept
        products = parallel_map(lambda column: design.outer(1.0 / column), list(stiffness.T))
        # With 1'z_k given, adding a multiple of 1 1' only moves b_k, and lifts the null vector 1 of centred rows.
        self._lift = np.array([matrix.diagonal().mean() for matrix in products]) if intercept else np.zeros(classes)
        tasks = zip(products, self._lift, np.sqrt(coupling.shares).T, strict=True)
        self._inverses = parallel_map(lambda task: _inverse(*task), list(tasks))
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
        z = self._coupling.balanced(z)
        return (right - self._design.tdot(z)) / self._stiffness, b, z

    def _respond(self, r: Array) -> Array:
        """z for b = 0."""
        z = np.stack([inverse @ column for inverse, column in zip(self._inverses, r.T, strict=True)], axis=1)
        return z - self._times(self._sum.solve(z.sum(axis=1)))

    def _times(self, mean: Array) -> Array:
        return np.stack([inverse @ mean for inverse in self._inverses], axis=1)


def _inverse(products: Array, lift: float, root: Array) -> Array:
    """(1/t + products + lift)^-1, with t = root^2 that may be zero."""
    matrix = rowwise(lambda part: part + lift, products, row_bytes=8 * len(root))
    scale_both(matrix, root)
    matrix.flat[:: len(matrix) + 1] += 1.0
    found = inverse(matrix)
    scale_both(found, root)
    return found
