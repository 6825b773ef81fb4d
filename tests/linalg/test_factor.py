"""Normal equations in both forms, with shifts, and the scaled Cholesky factor."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError

from empirisk.linalg.design import DenseDesign
from empirisk.linalg.factor import Cholesky, ColumnForm, ConjugateGradients, RowForm, normal_equations


def residuals(A, c, E, x, b, e, right, constant, g, h, intercept):
    """What is left of the three equations that the normal equations promise."""
    return (
        E * x + A.T @ (c * e) - right,
        e - (A @ (x - h) + b + g),
        (c @ e - constant) if intercept else b,
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("form", [ColumnForm, RowForm, normal_equations])
def test_the_equations_hold(form, shifted, intercept):
    random = np.random.default_rng(0)
    for n, d in ((30, 8), (8, 30)):
        A, c, E = random.normal(size=(n, d)), random.random(n), random.random(d) + 0.1
        c[0] = 0.0
        right, constant = random.normal(size=d), random.normal() if intercept else 0.0
        g, h = (random.normal(size=n), random.normal(size=d)) if shifted else (np.zeros(n), np.zeros(d))
        system = form(DenseDesign(A), c, E, intercept)
        x, b, e = system.solve(right, constant, g if shifted else None, h if shifted else None)
        for part in residuals(A, c, E, x, b, e, right, constant, g, h, intercept):
            np.testing.assert_allclose(part, 0, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_conjugate_gradients_agree_roughly(intercept):
    random = np.random.default_rng(0)
    A, c, E = random.normal(size=(50, 8)), random.random(50), np.ones(8)
    right, constant = random.normal(size=8), float(intercept)
    exact = normal_equations(DenseDesign(A), c, E, intercept).step(right, constant)
    rough = ConjugateGradients(DenseDesign(A), c, E, intercept).step(right, constant)
    assert np.linalg.norm(rough[0] - exact[0]) <= 0.2 * np.linalg.norm(exact[0])


def test_cholesky_ignores_units_and_survives_dependence():
    random = np.random.default_rng(0)
    units = np.logspace(-6, 6, 5)
    A = random.normal(size=(20, 5)) * units
    matrix, x = A.T @ A, random.normal(size=5) / units
    np.testing.assert_allclose(Cholesky(matrix).solve(matrix @ x), x, rtol=1e-8)
    A[:, 4] = A[:, 3]
    singular = Cholesky(A.T @ A)
    assert singular.ridge > 0
    right = A.T @ random.normal(size=20)
    np.testing.assert_allclose(A.T @ A @ singular.solve(right), right, rtol=1e-5)
    with pytest.raises(LinAlgError):
        Cholesky(np.array([[1.0, 9.0], [9.0, 1.0]]))


def test_nothing_to_solve_for_is_solved():
    assert Cholesky(np.zeros((0, 0))).solve(np.zeros(0)).shape == (0,)
