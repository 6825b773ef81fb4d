"""Exact leave-one-out for ridge regression, at every C of a grid from one decomposition.

With weights c, X and y centred by their weighted means and scaled by sqrt(c), and lambda = 1/(2C), the residual of a
row left out is (G y)_i / G_ii with G = (X X' + lambda)^-1 on the complement of the intercept. G has the eigenvectors of
X X' or, through X'X, of the smaller of the two.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve

from empirisk.linalg import blocks, lapack
from empirisk.linalg.design import DenseDesign
from empirisk.linalg.rowspace import RowVector
from empirisk.linalg.threads import interruptible_call
from empirisk.problem import Array, Problem
from empirisk.settings import require
from empirisk.solvers.closed.decomposed import Weighted, eigenpairs

#: Up to here the n x n form is taken even for tall data: it does not cancel where the fit interpolates.
ROWS = 1000
#: Up to this share of the rows, a factor of a Gram matrix is decomposed faster than the matrix.
THIN = 0.4


@dataclass(frozen=True)
class EigenDecomposition:
    """Eigenvectors and eigenvalues of the smaller product matrix, and what is needed to apply G.

    Attributes
    ----------
    vectors : array n x r
        Either orthonormal (by rows) or the scores X V (by columns).
    values : array of r
        Eigenvalues of X X' or X'X.
    root : array of n
        sqrt(c).
    constant : array of n
        The unit vector of the intercept, zero without one.
    by_rows : bool
        Which of the two it is.
    """

    vectors: Array
    values: Array
    root: Array
    constant: Array
    by_rows: bool

    def residuals(self, y: Array, Cs: Array) -> Array:
        """Leave-one-out residuals y_i - f_{-i}(x_i), one column per C."""
        shrink = 1.0 / (2.0 * Cs)
        target = self.root * y
        target = target - self.constant * (self.constant @ target)
        inverse = 1.0 / (self.values[:, None] + shrink)
        weights = inverse * (self.vectors.T @ target)[:, None]
        out = np.empty((len(y), len(Cs)))

        def run(rows: slice) -> None:
            if self.by_rows:
                diagonal, product = self.vectors[rows] ** 2 @ inverse, self.vectors[rows] @ weights
                out[rows] = product / diagonal / self.root[rows, None]
            else:
                constant, root = self.constant[rows], self.root[rows]
                out[rows] = residuals_from_scores(self.vectors[rows], target[rows], root, constant, inverse, weights)

        blocks.over_rows(run, len(y), 8 * (self.vectors.shape[1] + 3 * len(Cs)))
        return out


def residuals_from_scores(
    scores: Array, target: Array, root: Array, constant: Array, inverse: Array, weights: Array
) -> Array:
    """The residuals of some rows left out, one column per C: each row needs no other, where X'X is decomposed."""
    # lambda G = (1 - constant constant') - scores inverse scores', and lambda cancels in the quotient.
    diagonal = (1.0 - constant**2)[:, None] - scores**2 @ inverse
    return (target[:, None] - scores @ weights) / diagonal / root[:, None]


@dataclass(frozen=True)
class LeftOutInPasses:
    """The same for rows that are not in memory, of which there are many more than columns: by their summed moments.

    Attributes
    ----------
    problem : Problem
        The problem, of whose design the rows are read.
    vectors, values : arrays d x d and d
        The eigenvectors and eigenvalues of X'X.
    centre : array of d
        The weighted mean of the rows, zero without an intercept.
    """

    problem: Problem
    vectors: Array
    values: Array
    centre: Array

    @classmethod
    def of(cls, problem: Problem) -> "LeftOutInPasses":
        """The moments of a ridge problem, from two passes."""
        total, design = problem.weights.sum(), problem.design
        centre = design.tdot(problem.weights) / total if problem.intercept else np.zeros(design.shape[1])
        values, vectors = eigenpairs(design.gram(problem.weights) - total * np.outer(centre, centre))
        return cls(problem, vectors, np.maximum(values, 0.0), centre)

    def losses(self, targets: list[RowVector], Cs: Array, most: float) -> tuple[Array, Array]:
        """The mean of the squared residuals of rows left out, no loss above ``most``, and its standard error."""
        problem, rows = self.problem, self.problem.rowspace
        total, vectors = problem.weights.sum(), self.vectors
        inverse = 1.0 / (self.values[:, None] + 1.0 / (2.0 * Cs))
        levels = [rows.dot(problem.weights, y) / total if problem.intercept else 0.0 for y in targets]
        weights = []
        for y, level in zip(targets, levels, strict=True):
            moment = problem.design.tdot(rows.map(lambda s, y, level=level: s * (y - level), problem.weights, y))
            weights.append(inverse * (vectors.T @ moment)[:, None])
        share = 1.0 / np.sqrt(total) if problem.intercept else 0.0

        def run(scores: Array, s: Array, *targets: Array) -> Array:
            root = np.sqrt(s)
            scaled, lost = root[:, None] * scores, np.zeros((len(s), len(Cs)))
            for y, level, each in zip(targets, levels, weights, strict=True):
                lost += residuals_from_scores(scaled, root * (y - level), root, root * share, inverse, each) ** 2
            lost = np.fmin(lost, most)
            return np.stack([s @ lost, s @ lost**2])

        sums = problem.design.sum_of_predictions(vectors, -self.centre @ vectors, run, problem.weights, *targets)
        mean, squares = sums / total
        return mean, np.sqrt(np.maximum(squares - mean**2, 0.0) / max(total - 1, 1))


def is_tall(rows: int, columns: int) -> bool:
    """Whether X'X is decomposed: up to `ROWS` rows, X X' does not cancel where the fit interpolates."""
    return rows > columns and rows > min(4 * columns, ROWS)


def decompose(problem: Problem) -> EigenDecomposition:
    """The decomposition of the design of a ridge problem."""
    rows, columns = problem.design.shape
    # Four arrays of doubles: the products, a copy, the vectors, and what is computed from them.
    require(32 * rows * min(rows, columns), "Leave-one-out for all rows", "use C='cv'")
    data = Weighted.of(problem)
    constant = np.sqrt(data.share)
    if is_tall(rows, columns):
        values, vectors = eigenpairs(data.gram())
        return EigenDecomposition(data.dot(vectors), np.maximum(values, 0.0), data.root, constant, by_rows=False)
    if problem.design.implicit and rows > ROWS:
        thin = _thin_factor(problem.design.row_products)
        if thin is not None:
            mean = data.share @ thin if problem.intercept else None
            return decompose(replace(problem, design=DenseDesign(thin, mean)))
    matrix = data.outer()
    # Lifted above all others, the constant is the last eigenvector, and is left out.
    matrix += np.multiply.outer((2 * np.trace(matrix) + 1) * constant, constant)
    values, vectors = eigenpairs(matrix)
    kept = slice(rows - 1 if problem.intercept else rows)
    return EigenDecomposition(vectors[:, kept], np.maximum(values[kept], 0.0), data.root, constant, by_rows=True)


def left_out_diagonal(problem: Problem) -> Array:
    """What the coefficients of a kernel ridge problem are divided by to give  y_i - f_{-i}(x_i), at its C.

    With M = K + diag(l2 / 2s) and S the inverse of M on the complement of the constant (M^-1 itself without an
    intercept), the coefficients are S y, and the residual of a row left out is (S y)_i / S_ii.
    """
    matrix = problem.design.row_products.copy()
    # Products are known but for rounding: a smaller ridge would leave a matrix that has no factor.
    rounding = len(matrix) * np.finfo(float).eps * float(matrix.diagonal().max())
    matrix[np.diag_indices_from(matrix)] += np.maximum(problem.penalty.l2 / (2.0 * problem.scale), rounding)
    factor: Array = interruptible_call(lambda: np.asarray(np.linalg.cholesky(matrix), dtype=np.float64), len(matrix))
    response: Array = cho_solve((factor, True), np.ones(len(factor)))
    lapack.invert_product(factor)
    return factor.diagonal() - (response**2 / response.sum() if problem.intercept else 0.0)


def _thin_factor(K: Array) -> Array | None:
    """G with K = G G' to the last digit, if it has far fewer columns than rows: smooth kernels of few variables."""
    tolerance = 4 * np.finfo(float).eps * float(K.diagonal().max())
    # Every other row has at most the rank of all, and tells for an eighth of the price where that is too large.
    most = int(THIN * len(K))
    if lapack.thin_factor(K[::2, ::2], tolerance, most) is None:
        return None
    return lapack.thin_factor(K, tolerance, most)
