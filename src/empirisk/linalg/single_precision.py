"""Factors and normal matrices in float32 of data in float64: half the time, for solutions that are refined."""

import numpy as np

from empirisk.lazy import lazy
from empirisk.linalg.design import Array, DenseDesign, Design
from empirisk.linalg.gram_factor import ScaledGram

#: Rows of a matrix below which a factor in float64 takes milliseconds too.
LEAST = 1000
#: The largest rounding error of the factor, in units of the ridge, that a few rounds of refinement make up for.
COARSE = 0.05
EPSILON = float(np.finfo(np.float32).eps)
#: Sizes of numbers whose squares and products stay within the range of float32.
SMALLEST, LARGEST = 1e-20, 1e30
#: Products below which a normal matrix takes milliseconds in float64.
WORTHWHILE = 1e7
#: The largest rounding error of a normal matrix, in units of the ridge, that spoils no step of Newton's method.
ROUGH = 0.2


class SingleGram(ScaledGram):
    """K, untouched, and the float32 factor of K + diag(ridge).

    Parameters
    ----------
    K : array n x n, C-ordered float64
        A symmetric matrix.
    ridge : array of n
        What is added to the diagonal.

    Examples
    --------
    >>> system = SingleGram(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones(2))
    >>> system.solve(np.array([4.0, 4.0])).round(5), system.product(np.array([1.0, 1.0]))
    (array([1., 1.]), array([3., 3.]))
    """

    exact = False

    def __init__(self, K: Array, ridge: Array):
        super().__init__(K, np.float32)
        self.renew(None, ridge)

    @lazy
    def response(self) -> Array:
        """About the solution for ones."""
        return self.solve(np.ones(len(self._K)))

    def restored(self) -> Array:
        """K in the memory that it came in."""
        return self._K

    def product(self, v: Array) -> Array:
        """K v, for a vector or for several as columns."""
        return DenseDesign(self._K).dot(v)


def single_suffices(K: Array, root: Array, ridge: float) -> bool:
    """Whether the float32 factor of  ridge + D^1/2 K D^1/2  pays: the matrix is large, and so is its ridge.

    >>> single_suffices(np.eye(2), np.ones(2), 1.0)  # not large
    False
    """
    if len(K) < LEAST or ridge < SMALLEST:
        return False
    # Kernels are mostly positive: the first eigenvector is then near the root itself.
    direction = root * root
    largest = float(direction @ DenseDesign(K).dot(direction)) / float(direction.sum())
    largest = max(largest, float((K.diagonal() * direction).max()))
    return EPSILON * largest <= COARSE * ridge and largest < LARGEST


class CoarseDesign(DenseDesign):
    """A dense design that sums its normal matrix in float32.

    >>> CoarseDesign(np.array([[1.0], [2.0]])).gram()
    array([[5.]])
    """

    gram_type = np.float32


def coarse(design: Design, weights: Array, ridge: float) -> Design:
    """The design with its normal matrix in float32, if beside the ridge its rounding is small; else as it is."""
    # A device sums in float64 as fast.
    small = design.shape[0] * design.shape[1] ** 2 < WORTHWHILE
    if not isinstance(design, DenseDesign) or design.remark or small or ridge < SMALLEST:
        return design
    total = float(weights @ design.squared_rows())
    fine = EPSILON * total <= ROUGH * ridge and total < LARGEST
    return CoarseDesign(design.X, design.shift) if fine else design
