"""Normal equations of K coupled outputs, whose per-sample curvature is diag(t_i) - t_i t_i' / s_i."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from empirisk.settings import settings
from empirisk.linalg.design import Design
from empirisk.linalg.factor import Cholesky

Array = NDArray[np.float64]
DIRECT = 3000


class JointEquations:
    """Solves  E w + A' S(A w + b) = p,  1' S(A w + b) = q  for w (d x K) and b (K).

    S acts on each row f_i of K numbers as t_i * (f_i - <t_i, f_i> / s_i), with <t_i, 1> = s_i: the curvature of the
    softmax and of the barrier of a maximum. Directly by Cholesky for up to a few thousand unknowns, else by
    preconditioned conjugate gradients.

    Parameters
    ----------
    design : Design
        The matrix A.
    shares : array n x K, >= 0
        t.
    sums : array of n
        s.
    stiffness : float or array d x K, >= 0
        E, elementwise.
    intercept : bool
        Whether b is free.
    """

    def __init__(self, design: Design, shares: Array, sums: Array, stiffness: Array | float, intercept: bool):
        self._design, self._shares, self._sums, self._intercept = design, shares, sums, intercept
        self._shape = (design.shape[1], shares.shape[1])
        self._stiffness = np.broadcast_to(np.asarray(stiffness, dtype=float), self._shape)
        size = (self._shape[0] + intercept) * self._shape[1]
        self._factor = Cholesky(self._matrix()) if size <= DIRECT and 8 * size**2 <= settings().memory else None

    def curve(self, f: Array) -> Array:
        """S f."""
        return self._shares * (f - (self._shares * f).sum(axis=1, keepdims=True) / self._sums[:, None])

    def solve(self, right: Array, constant: Array) -> tuple[Array, Array]:
        """The steps (w, b) for the right-hand sides (p, q)."""
        packed = self._pack(right, constant)
        return self._unpack(self._iterate(packed) if self._factor is None else self._factor.solve(packed))

    def _pack(self, w: Array, b: Array) -> Array:
        return np.concatenate([w.T, b[:, None]], axis=1).ravel() if self._intercept else w.T.ravel()

    def _unpack(self, packed: Array) -> tuple[Array, Array]:
        rows = packed.reshape(self._shape[1], -1)
        if not self._intercept:
            return np.ascontiguousarray(rows.T), np.zeros(self._shape[1])
        return np.ascontiguousarray(rows[:, :-1].T), rows[:, -1].copy()

    def _block(self, weights: Array) -> Array:
        """[A, 1]' diag(weights) [A, 1] for weights >= 0."""
        gram = self._design.gram(weights)
        if not self._intercept:
            return gram
        border = self._design.tdot(weights)
        return np.block([[gram, border[:, None]], [border, weights.sum()]])

    def _matrix(self) -> Array:
        classes, size = self._shape[1], self._shape[0] + self._intercept
        matrix = np.zeros((classes, size, classes, size))
        for k in range(classes):
            for other in range(k):
                block = -self._block(self._shares[:, k] * self._shares[:, other] / self._sums)
                matrix[k, :, other] = matrix[other, :, k] = block
            own = self._shares[:, k] * (self._sums - self._shares[:, k]) / self._sums
            matrix[k, :, k] = self._block(np.maximum(own, 0.0))
        square = matrix.reshape(classes * size, classes * size)
        square.flat[:: len(square) + 1] += self._pack(np.array(self._stiffness), np.zeros(classes))
        return square

    def _iterate(self, packed: Array) -> Array:
        def multiply(vector: Array) -> Array:
            w, b = self._unpack(vector)
            curved = self.curve(self._design.dot(w) + b)
            return self._pack(self._stiffness * w + self._design.tdot(curved), curved.sum(axis=0))

        own = self._shares * (1 - self._shares / self._sums[:, None])
        diagonal = np.stack([self._design.squared_columns(own[:, k]) for k in range(self._shape[1])], axis=1)
        diagonal = self._pack(diagonal + self._stiffness, own.sum(axis=0))
        diagonal = np.where(diagonal > 0, diagonal, 1.0)
        size = len(packed)
        operator = LinearOperator((size, size), multiply, dtype=float)
        condition = LinearOperator((size, size), lambda vector: vector / diagonal, dtype=float)
        return cg(operator, packed, rtol=1e-3, maxiter=200, M=condition)[0]
