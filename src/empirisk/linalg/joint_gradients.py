"""Joint normal equations without their matrix: conjugate gradients, preconditioned class by class."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.blocks import in_threads
from empirisk.linalg.design import Design
from empirisk.linalg.factor import Cholesky
from empirisk.linalg.joint import Coupling

Array = NDArray[np.float64]
WIDE = 2000
ROWS_PER_COLUMN = 8
LIMIT = 500


class JointGradients:
    """Solves  l2 w + A' S (A w + b) = p,  1' S (A w + b) = q  approximately, for p and q that sum to zero over classes.

    The preconditioner is the matrix of each class alone, from as many evenly spread rows as determine it; for wide
    data its diagonal.

    Parameters
    ----------
    design : Design
        The matrix A.
    coupling : Coupling
        S.
    l2 : float
        The ridge, zero or positive.
    intercept : bool
        Whether b is free.
    """

    def __init__(self, design: Design, coupling: Coupling, l2: float, intercept: bool):
        self._design, self._coupling, self._l2, self._intercept = design, coupling, l2, intercept
        self._condition = self._diagonal() if design.shape[1] > WIDE else self._class_blocks()

    def solve(
        self, right: Array, constant: Array, good: Callable[[Array, float], bool], stop: Callable[[], bool]
    ) -> tuple[Array, Array]:
        """(w, b) such that ``good(residual, share)`` holds, share being what is left of the preconditioned residual.

        ``stop`` is asked before every product, and ends the search with what there is.
        """
        residual = np.vstack([right, constant]) if self._intercept else right
        solution, direction = np.zeros_like(residual), np.zeros_like(residual)
        before = first = 1.0
        for trial in range(LIMIT):
            pulled = self._pull(residual)
            size = float(np.vdot(residual, pulled))
            if trial == 0:
                first = before = size
            if not size > 0 or good(residual[: len(right)], size / first) or stop():
                break
            direction = pulled + (size / before) * direction
            before = size
            product = self._multiply(direction)
            bend = float(np.vdot(direction, product))
            if not bend > 0:
                break
            solution += (size / bend) * direction
            residual = residual - (size / bend) * product
        b = solution[-1].copy() if self._intercept else np.zeros(len(constant))
        return np.ascontiguousarray(solution[: len(right)]), b

    def _multiply(self, packed: Array) -> Array:
        w = packed[: self._design.shape[1]]
        f = self._design.dot(w)
        curved = self._coupling(f + packed[-1] if self._intercept else f)
        product = self._l2 * w + self._design.tdot(curved)
        return np.vstack([product, curved.sum(axis=0)]) if self._intercept else product

    def _pull(self, residual: Array) -> Array:
        """The preconditioned residual, with mean zero over the classes as the solution has."""
        pulled = self._condition(residual - residual.mean(axis=1, keepdims=True))
        return pulled - pulled.mean(axis=1, keepdims=True)

    def _diagonal(self) -> Callable[[Array], Array]:
        own = self._coupling.diagonal()
        diagonal = self._l2 + np.stack([self._design.squared_columns(column) for column in own.T], axis=1)
        if self._intercept:
            diagonal = np.vstack([diagonal, own.sum(axis=0)])
        diagonal = np.where(diagonal > 0, diagonal, 1.0)
        return lambda residual: residual / diagonal

    def _class_blocks(self) -> Callable[[Array], Array]:
        rows, columns = self._design.shape
        stride = max(1, rows // (ROWS_PER_COLUMN * (columns + 1)))
        sample = self._design.rows(slice(None, None, stride)).columns(slice(None))
        if self._intercept:
            sample = np.hstack([sample, np.ones((len(sample), 1))])
        roots = np.sqrt(stride * self._coupling.diagonal()[::stride])

        def factor(k: int) -> Cholesky:
            scaled = sample * roots[:, k, None]
            matrix = scaled.T @ scaled
            matrix.flat[: columns * len(matrix) : len(matrix) + 1] += self._l2
            return Cholesky(matrix)

        factors = in_threads(factor, range(roots.shape[1]))
        return lambda residual: np.stack(
            [factor.solve(column) for factor, column in zip(factors, residual.T, strict=True)], axis=1
        )
