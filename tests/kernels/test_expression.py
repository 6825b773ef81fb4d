"""Kernels as expressions: every vector kernel of the algebra has one, and its values are those of its block."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import empirisk as er
from empirisk.kernels.expression import evaluate, evaluate_diagonal
from tests.kernel_catalog import BINARY, POINTS, UNARY, VECTOR_KERNELS, points

COMBINED = [change(kernel) for kernel in VECTOR_KERNELS for change in UNARY.values() if change is not UNARY["on"]]
COMBINED += [join(left, right) for left, right in pairwise(VECTOR_KERNELS) for join in BINARY.values()]
COMBINED += [er.kernels.Gaussian(0.7).on([0, 2]), er.kernels.Gaussian().on([0]) * er.kernels.Linear().on([1, 2])]


@pytest.mark.parametrize("kind", POINTS)
def test_an_expression_has_the_values_of_the_block(kind):
    X = points(kind)
    Z = points(kind, rows=7, seed=1)
    for kernel in [*VECTOR_KERNELS, *COMBINED]:
        fitted = kernel.fit(X)
        A, B = fitted.prepare(X), fitted.prepare(Z)
        left, right = fitted.expression(A), fitted.expression(B)
        assert left is not None, kernel
        assert len(left) == len(X)
        expected = fitted.between(A, B)
        np.testing.assert_allclose(
            evaluate(left, right), expected, rtol=1e-9, atol=1e-9 * abs(expected).max(), err_msg=str(kernel)
        )
        own = fitted.diagonals(A)
        np.testing.assert_allclose(
            evaluate_diagonal(left), own, rtol=1e-9, atol=1e-9 * abs(own).max(), err_msg=str(kernel)
        )


def test_rows_whose_squares_are_no_numbers_are_far():
    kernel, rows = er.kernels.Gaussian(1.0), np.array([[0.0, 1.0], [1e200, -1e300]])
    np.testing.assert_array_equal(evaluate(kernel.expression(rows), kernel.expression(rows)), np.eye(2))


def test_what_is_no_formula_of_dense_vectors_has_none():
    assert er.kernels.Spectrum(2).expression(er.kernels.Spectrum(2).prepare(["ab", "abc"])) is None
    assert er.kernels.Gaussian().expression(sparse.csr_matrix(np.eye(3))) is None
    both = er.kernels.Spectrum(2) + er.kernels.Spectrum(3)
    assert both.expression(both.prepare(["ab", "abc"])) is None


def test_a_block_of_its_own_inherits_no_expression():
    class Half(er.kernels.Gaussian):
        def between(self, A, B=None, out=None):
            return 0.5 * super().between(A, B, out)

    assert Half().expression(np.eye(2)) is None
