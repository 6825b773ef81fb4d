"""The interior-point method: where it begins."""

import numpy as np

import empirisk as er


def test_columns_of_tiny_numbers_do_not_begin_far_away():
    """Weights of a column of squares may be as large as 1e96, but the penalty holds them at 1e48."""
    random = np.random.default_rng(0)
    x = 1e-48 * random.normal(size=(20, 1))
    X, y = np.hstack([x, x**2]), np.arange(20) % 3
    machine = er.LogisticRegression(C=1e48, penalty="l1", solver="interior_point").fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.iterations < 40
