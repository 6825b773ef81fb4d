"""The compiled pass over large data is the loss that states itself, row by row."""

import numpy as np
import pytest

import empirisk as er
from empirisk import losses
from empirisk.linalg import design as designs
from empirisk.linalg.design import DenseDesign
from empirisk.problem import Problem


def problem(shift, n=5000, d=7):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(n, d)) + 2, np.where(random.random(n) < 0.4, -1.0, 1.0)
    design = DenseDesign(X, X.mean(axis=0) if shift else None)
    return Problem(losses.Logistic(), er.penalties.L2(), 0.3, design, y, random.random(n) + 0.5)


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_the_pass_is_the_loss(monkeypatch, shift, size):
    given = problem(shift)
    w, b = size * np.random.default_rng(1).normal(size=7), 0.7
    plain = given.predict_and_correlate(w, b)
    monkeypatch.setattr(designs, "LARGE", 1)
    for mine, theirs in zip(given.predict_and_correlate(w, b), plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-9 * size)


def test_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(designs, "LARGE", 1)
    given = problem(True, n=200_000)
    found = []
    for threads in (1, 2, 5):
        with er.config(threads=threads):
            found.append(given.predict_and_correlate(np.linspace(-1, 1, 7), 0.1))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert np.array_equal(mine, theirs)
