"""Factorisations of the normal equations of weighted least squares with a ridge."""

from collections.abc import Callable

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

from empirisk.linalg import blocks, tiled
from empirisk.linalg.design import Array, Design
from empirisk.linalg.lapack import copied
from empirisk.linalg.threads import MIN_INTERRUPTIBLE_ORDER
from empirisk.settings import require

#: A pivot below this is rounding, and the columns are dependent.
PIVOT = 1e-7
#: The first ridge that is tried: the rounding of a factor of some hundred columns.
LEAST_RIDGE = 1e-13
#: Columns beyond which a design that streams its products makes no normal matrix.
STREAMED = 4096
#: Relative residuals: of a direction, and of a solution that is refined.
DIRECTION, ACCURACY = 0.05, 1e-3
#: Products that conjugate gradients may take.
PRODUCTS = 250


class Cholesky:
    """A factor of a symmetric positive semidefinite matrix, scaled to unit diagonal first.

    The scaling makes the accuracy independent of the units of the columns. A semidefinite matrix gets the smallest
    ridge that lets it be factored; `ridge` tells how much, relative to the unit diagonal. A matrix known to be
    ``definite`` gets none, however small its pivots.
    """

    def __init__(self, matrix: Array, definite: bool = False):
        diagonal = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
        self._scale = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        scaled = blocks.rowwise(
            lambda scale, rows: rows * scale[:, None] * self._scale, self._scale, matrix, row_bytes=8 * len(matrix)
        )
        scaled.flat[:: len(scaled) + 1] = 1.0
        self.ridge = 0.0
        self._factor, failed = lower(scaled)
        while failed or not (definite or self.ridge or self._factor.diagonal().min(initial=1.0) > PIVOT):
            self.ridge = max(LEAST_RIDGE, 10 * self.ridge)
            if self.ridge > 1:
                raise LinAlgError("the matrix is not positive semidefinite")
            scaled.flat[:: len(scaled) + 1] = 1.0 + self.ridge
            self._factor, failed = lower(scaled)

    def solve(self, right: Array) -> Array:
        """The solution of matrix x = right."""
        scale = self._scale if right.ndim == 1 else self._scale[:, None]
        return scale * solved(self._factor, scale * right)


def by_rank(matrix: Array) -> tuple[Array, NDArray[np.intp], Array]:
    """As many rows U as a semidefinite matrix has rank, the order of its columns in them, and the sizes s of these.

    The matrix is s (U' U) s in that order: a pivoted Cholesky factor, of a matrix scaled to unit diagonal.

    >>> rows, order, sizes = by_rank(np.array([[4.0, 2.0], [2.0, 1.0]]))
    >>> rows, order, sizes
    (array([[1., 1.]]), array([0, 1]), array([2., 1.]))
    """
    diagonal = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    sizes = np.where(diagonal > 0, diagonal, 1.0)
    factor, pivots, rank, _ = lapack.dpstrf(matrix / sizes / sizes[:, None])
    return np.triu(factor)[:rank], pivots.astype(np.intp) - 1, sizes


def lower(matrix: Array) -> tuple[Array, bool]:
    """The lower factor, and whether there is none; by all threads where the matrix is large.

    >>> factor, failed = lower(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> np.tril(factor), bool(failed)
    (array([[2., 0.],
           [1., 2.]]), False)
    """
    if len(matrix) < MIN_INTERRUPTIBLE_ORDER:
        # LAPACK itself: SciPy's functions around it take longer than a small factorisation.
        return lapack.dpotrf(matrix.T, lower=True, clean=False)
    found, failed = copied(matrix), False
    try:
        tiled.factor(found)
    except LinAlgError:
        failed = True
    return found, failed


def solved(factor: Array, right: Array) -> Array:
    """The solution of  L L' x = right  for a factor that `lower` has found.

    >>> solved(lower(np.array([[4.0, 2.0], [2.0, 5.0]]))[0], np.array([8.0, 12.0]))
    array([1., 2.])
    """
    if not len(right):  # LAPACK wraps no empty matrix
        return right
    return (
        lapack.dpotrs(factor, right, lower=True)[0]
        if len(factor) < MIN_INTERRUPTIBLE_ORDER
        else tiled.solve(factor, right)
    )


def normal_equations(design: Design, curvatures: Array, stiffness: Array, intercept: bool) -> "NormalEquations":
    """The normal equations, by columns (d x d) or, when n < d, by rows (n x n), to be solved for many right-hand sides.

    Those of a design that streams its products, with more columns than are worth a matrix, are solved by products.

    The equations are, with shifts g of the rows and h of the columns that are zero unless given,

        E x + A' (c e) = p,   e = A (x - h) + b + g,   sum_i c_i e_i = q  (with an intercept).

    The unknowns x = w + h and e keep their accuracy where E and c are huge, which w and A w + b alone would not.

    Parameters
    ----------
    design : Design
        The matrix A.
    curvatures : array of n, >= 0
        c, one number per row.
    stiffness : array of d, >= 0, or d x d
        E, one number per column or a matrix; zero entries and a matrix need the d x d form.
    intercept : bool
        Whether b is free.
    """
    rows, columns = design.shape
    if design.streams and columns > STREAMED and stiffness.ndim == 1:
        return ConjugateGradients(design, curvatures, stiffness, intercept, ACCURACY)
    by_rows = rows < columns and stiffness.ndim == 1 and stiffness.min(initial=np.inf) > 0
    form = RowForm if by_rows else ColumnForm
    return form(design, curvatures, stiffness, intercept)


def stiff(stiffness: Array, x: Array) -> Array:
    """E x, of a stiffness that is a number for each weight or a matrix.

    >>> stiff(np.array([1.0, 2.0]), np.ones(2)), stiff(np.array([[1.0, 1.0], [1.0, 2.0]]), np.ones(2))
    (array([1., 2.]), array([2., 3.]))
    """
    return stiffness * x if stiffness.ndim == x.ndim else np.tensordot(stiffness, x, x.ndim)


class ByColumns:
    """Solutions in the weights, from those without shifts."""

    _design: Design
    _curvatures: Array
    _stiffness: Array

    def solve(
        self, right: Array, constant: float, rows: Array | None = None, columns: Array | None = None
    ) -> tuple[Array, float, Array]:
        """(x, b, e) for the right-hand sides p, q and the shifts g, h."""
        if rows is not None:
            push = self._curvatures * rows
            right, constant = right - self._design.tdot(push), constant - float(push.sum())
        if columns is not None:
            right = right - stiff(self._stiffness, columns)
        w, b = self.step(right, constant)
        e = self._design.dot(w) + b
        return w if columns is None else w + columns, b, e if rows is None else e + rows

    def step(self, right: Array, constant: float) -> tuple[Array, float]:
        """(x, b) alone, without shifts."""
        raise NotImplementedError


class ColumnForm(ByColumns):
    """The d x d form of the normal equations."""

    def __init__(self, design: Design, curvatures: Array, stiffness: Array, intercept: bool):
        columns = design.shape[1]
        # The matrix and its factor, in doubles.
        require(
            16 * columns**2,
            f"A {columns} x {columns} normal matrix",
            "choose solver='coordinate_descent', 'dual_ascent' or 'proximal', or reduce the number of columns",
        )
        matrix = np.empty((columns + intercept, columns + intercept))
        gram = design.gram(curvatures)

        def fill(rows: slice) -> None:
            matrix[rows, :columns] = gram[rows]

        blocks.over_rows(fill, columns, 8 * columns)
        if stiffness.ndim == 1:
            matrix.flat[: columns * (columns + intercept) : columns + intercept + 1] += stiffness
        else:
            matrix[:columns, :columns] += stiffness
        if intercept:
            matrix[:columns, -1] = matrix[-1, :columns] = design.tdot(curvatures)
            matrix[-1, -1] = curvatures.sum()
        self._design, self._curvatures, self._stiffness, self._intercept = design, curvatures, stiffness, intercept
        self._factor = Cholesky(matrix)

    @property
    def dependent(self) -> bool:
        """Whether columns were found to be dependent, so that the solution is one of many."""
        return self._factor.ridge > 0

    def step(self, right, constant):
        solution = self._factor.solve(np.append(right, constant) if self._intercept else right)
        return (solution[:-1], float(solution[-1])) if self._intercept else (solution, 0.0)


class RowForm:
    """The n x n form: z = c e solves  (1/c + A E^-1 A') z = A (E^-1 p - h) + b + g,  and then x = E^-1 (p - A'z)."""

    dependent = False  # E > 0 leaves one solution

    def __init__(self, design: Design, curvatures: Array, stiffness: Array, intercept: bool):
        rows = design.shape[0]
        # The matrix and its factor, in doubles.
        require(16 * rows**2, f"A {rows} x {rows} normal matrix", "use fewer rows, or solver='dual_ascent'")
        self._design, self._curvatures, self._stiffness, self._intercept = design, curvatures, stiffness, intercept
        self._root = np.sqrt(curvatures)
        uniform = stiffness[0] == stiffness.min() == stiffness.max()
        products = design.row_products if uniform else design.outer(1.0 / stiffness)
        share = stiffness[0] if uniform else 1.0
        # With sum z given, adding a multiple of 1 1' only moves b, and lifts the null vector 1 of centred rows.
        self._lift = lift = float(products.diagonal().mean() / share) if intercept else 0.0

        def weighted(scale: Array, part: Array) -> Array:
            return (part / share + lift) * scale[:, None] * self._root

        matrix = blocks.rowwise(weighted, self._root, products, row_bytes=8 * rows)
        matrix.flat[:: rows + 1] += 1.0
        self._factor = Cholesky(matrix, definite=True)
        self._response = self._respond(np.ones(rows)) if intercept else np.zeros(rows)

    def _respond(self, f: Array) -> Array:
        return self._root * self._factor.solve(self._root * f)

    def solve(
        self, right: Array, constant: float, rows: Array | None = None, columns: Array | None = None
    ) -> tuple[Array, float, Array]:
        """(x, b, e) for the right-hand sides p, q and the shifts g, h."""
        start = right / self._stiffness
        f = self._design.dot(start if columns is None else start - columns)
        z = self._respond(f if rows is None else f + rows)
        total = float(self._response.sum())
        b = (constant - float(z.sum())) / total if total > 0 else 0.0
        z = z + b * self._response
        b = b - self._lift * constant
        x = (right - self._design.tdot(z)) / self._stiffness
        curved = self._curvatures > 0
        e = np.divide(z, self._curvatures, out=np.zeros_like(z), where=curved)
        if not curved.all():
            flat = self._design.dot(x if columns is None else x - columns) + b
            e = np.where(curved, e, flat if rows is None else flat + rows)
        return x, b, e

    def step(self, right: Array, constant: float) -> tuple[Array, float]:
        """(x, b) alone, without shifts."""
        return self.solve(right, constant)[:2]


class ConjugateGradients(ByColumns):
    """The same equations without a matrix: conjugate gradients, preconditioned by the design or by the diagonal.

    A direction needs one digit; where so many products do not give it, the line search will do.
    """

    dependent = False

    def __init__(
        self, design: Design, curvatures: Array, stiffness: Array, intercept: bool, accuracy: float = DIRECTION
    ):
        self._design, self._curvatures, self._stiffness, self._intercept = design, curvatures, stiffness, intercept
        self._accuracy = accuracy
        self._condition = design.preconditioner(curvatures, stiffness) or self._by_diagonal()

    def _by_diagonal(self) -> Callable[[Array], Array]:
        diagonal = self._stiffness + self._design.squared_columns(self._curvatures)
        diagonal = np.where(diagonal > 0, diagonal, 1.0)
        return lambda residual: residual / diagonal

    def _multiply(self, vector: Array) -> Array:
        w = vector[: len(self._stiffness)]
        product, total = self._design.rough.curved_product(w, float(vector[len(w) :].sum()), self._curvatures)
        product += self._stiffness * w
        return np.append(product, total) if self._intercept else product

    def _conditioned(self, residual: Array) -> Array:
        count = len(self._stiffness)
        return np.append(self._condition(residual[:count]), residual[count:] / (self._curvatures.sum() or 1.0))

    def step(self, right, constant):
        packed = np.append(right, constant) if self._intercept else right
        size = len(packed)
        operators = [LinearOperator((size, size), each, dtype=float) for each in (self._multiply, self._conditioned)]
        solution = cg(operators[0], packed, rtol=self._accuracy, maxiter=PRODUCTS, M=operators[1])[0]
        return (solution[:-1], float(solution[-1])) if self._intercept else (solution, 0.0)


#: The equations in any form.
NormalEquations = ColumnForm | RowForm | ConjugateGradients
