"""Joint normal equations without their matrix: conjugate gradients, preconditioned class by class."""

from collections.abc import Callable

import numpy as np

from empirisk.linalg import blocks
from empirisk.linalg.coupled import Coupling, curve_rows, negligible_columns
from empirisk.linalg.design import Array, Design
from empirisk.linalg.factor import Cholesky
from empirisk.linalg.threads import parallel_map

Good = Callable[[Array, float, float], bool]
#: Columns for which a preconditioner from a factor pays; beyond, the diagonal serves.
WIDE = 1000
#: Rows for each column from which the preconditioner is made.
ROWS_PER_COLUMN = 24
#: Steps after which the preconditioner has failed.
LIMIT = 500
#: Steps for each unknown: without rounding one would do.
MARGIN = 4
#: What the diagonal is raised by, so that the factor of some of the rows exists.
SOFT = 1e-8


def conjugate_gradients(
    right: Array,
    multiply: Callable[[Array], Array],
    condition: Callable[[Array], Array],
    inner: Callable[[Array, Array], float],
    good: Good,
    stop: Callable[[], bool],
) -> Array:
    """x with  multiply(x) = right,  up to what ``good`` allows.

    Parameters
    ----------
    right : array
        The right-hand side; residuals have its shape.
    multiply, condition : callable
        From a direction to a residual, and from a residual to a direction near the one that removes it.
    inner : callable
        The product of a residual and a direction, which are of one space but may be written differently.
    good, stop : callable
        good(residual, size, first) tells whether a residual is small enough, by itself or by the size of its
        preconditioned product beside the first; ``stop`` is asked before every product, and ends the search.
    """
    residual, direction, before, first = right, None, 0.0, 0.0
    solution = np.zeros(0)
    for _ in range(min(LIMIT, MARGIN * right.size)):
        pulled = condition(residual)
        size = inner(residual, pulled)
        if direction is None:
            solution, direction = np.zeros_like(pulled), np.zeros_like(pulled)
            before = first = size
        elif good(residual, size, first):
            break
        if not size > 0 or stop():
            break
        direction = pulled + (size / before) * direction
        before = size
        product = multiply(direction)
        bend = inner(product, direction)
        if not bend > 0:
            break
        solution += (size / bend) * direction
        residual = residual - (size / bend) * product
    return solution


class JointGradients:
    """Solves  l2 w + A' S (A w + b) = p,  1' S (A w + b) = q  approximately, for p and q that sum to zero over classes.

    Parameters
    ----------
    design : Design
        The matrix A.
    l2 : float
        The ridge, zero or positive.
    intercept : bool
        Whether b is free.
    """

    def __init__(self, design: Design, l2: float, intercept: bool):
        self._design, self._l2, self._intercept = design, l2, intercept
        rows, columns = design.shape
        self._stride = max(1, rows // (ROWS_PER_COLUMN * (columns + 1)))
        self._sample = design.rows(slice(None, None, self._stride)) if columns <= WIDE else design
        self._parts = _parts(design)
        self._noise = negligible_columns(design)
        self._gram: Array | None = None
        self._products = 0

    def renew(self, coupling: Coupling) -> None:
        """Take S, and renew the preconditioner if that pays.

        For wide data it is the diagonal. Otherwise the first is the product of the mean of S with the Gram matrix,
        exact where all predictions are equal. Later it is the matrix of each class alone, made anew when the
        products spent since the last one cost more than making it.
        """
        self._coupling = coupling
        rows, columns = self._design.shape
        if columns > WIDE:
            self._condition = self._diagonal()
            return
        # In products with the data: one with K classes costs about as much as twelve passes over a column.
        price = (self._sample.shape[0] * columns + columns**2 / 3) / (12 * rows)
        if self._gram is None:
            self._gram = self._bordered(self._sample.gram(), np.ones(self._sample.shape[0])) / self._sample.shape[0]
            self._condition = self._kronecker(self._gram)
        elif self._products >= price:
            self._condition, self._products = self._class_blocks(), 0

    def solve(self, right: Array, constant: Array, good: Good, stop: Callable[[], bool]) -> tuple[Array, Array]:
        """(w, b) such that ``good(residual, size, first)`` holds; the sizes are those of the preconditioned residual.

        ``stop`` is asked before every product, and ends the search with what there is.
        """
        right = np.where(self._noise[:, None], 0.0, right)
        packed = np.vstack([right, constant]) if self._intercept else right
        solution = conjugate_gradients(
            packed,
            self._multiply,
            self._pull,
            lambda residual, direction: float(np.vdot(residual, direction)),
            lambda residual, size, first: good(residual[: len(right)], size, first),
            stop,
        )
        b = solution[-1].copy() if self._intercept else np.zeros(len(constant))
        return np.ascontiguousarray(solution[: len(right)]), b

    def _multiply(self, packed: Array) -> Array:
        self._products += 1
        w = packed[: self._design.shape[1]]
        b = packed[-1] if self._intercept else np.zeros(packed.shape[1])

        def run(parts: list[tuple[int, Design]]) -> tuple[Array, Array]:
            product, sums = np.zeros_like(w), np.zeros(len(b))
            for start, part in parts:
                curved = part.dot(w)
                curve_rows(self._coupling.shares, self._coupling.sums, b, start, curved, sums)
                product += part.tdot(curved)
            return product, sums

        products, totals = zip(*parallel_map(run, self._parts), strict=True)
        product, sums = np.sum(products, axis=0), np.sum(totals, axis=0)
        product[self._noise] = 0.0
        product += self._l2 * w
        return np.vstack([product, sums]) if self._intercept else product

    def _pull(self, residual: Array) -> Array:
        """The preconditioned residual, with mean zero over the classes as the solution has."""
        pulled = self._condition(residual - residual.mean(axis=1, keepdims=True))
        return pulled - pulled.mean(axis=1, keepdims=True)

    def _bordered(self, gram: Array, weights: Array) -> Array:
        """[A, 1]' diag(weights) [A, 1] on the sampled rows, given its leading part."""
        if not self._intercept:
            return gram
        border = self._sample.tdot(weights)
        return np.block([[gram, border[:, None]], [border, weights.sum()]])

    def _factor(self, matrix: Array) -> Cholesky:
        columns = self._design.shape[1]
        # Dependent columns leave the matrix singular; for a preconditioner a small ridge is exact enough.
        matrix.flat[:: len(matrix) + 1] *= 1 + SOFT
        matrix.flat[: columns * len(matrix) : len(matrix) + 1] += self._l2
        return Cholesky(matrix)

    def _diagonal(self) -> Callable[[Array], Array]:
        own = self._coupling.diagonal()
        diagonal = self._l2 + np.stack([self._design.squared_columns(column) for column in own.T], axis=1)
        if self._intercept:
            diagonal = np.vstack([diagonal, own.sum(axis=0)])
        diagonal = np.where(diagonal > 0, diagonal, 1.0)
        return lambda residual: residual / diagonal

    def _kronecker(self, gram: Array) -> Callable[[Array], Array]:
        values, vectors = np.linalg.eigh(self._coupling.total())
        values, vectors = values[1:], vectors[:, 1:]
        factors = parallel_map(lambda value: self._factor(value * gram), values)
        return lambda residual: _each(factors, residual @ vectors) @ vectors.T

    def _class_blocks(self) -> Callable[[Array], Array]:
        own = self._stride * self._coupling.diagonal()[:: self._stride]
        factors = [self._factor(self._bordered(self._sample.gram(column), column)) for column in own.T.copy()]
        return lambda residual: _each(factors, residual)


def _parts(design: Design) -> list[list[tuple[int, Design]]]:
    """The design in a few groups of blocks that stay in the cache from A w to A' S A w; in one piece if it is wide."""
    rows, columns = design.shape
    if columns > WIDE or 8 * rows * columns <= blocks.SMALL:
        return [[(0, design)]]
    return [[(part.start, design.rows(part)) for part in group] for group in blocks.groups(rows, 8 * columns)]


def _each(factors: list[Cholesky], columns: Array) -> Array:
    return np.stack([factor.solve(column) for factor, column in zip(factors, columns.T, strict=True)], axis=1)
