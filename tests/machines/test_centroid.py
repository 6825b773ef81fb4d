"""The nearest centroid behind kernels: class weights by a variance that needs no dimension."""

import numpy as np
import pytest

import empirisk as er

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(45, 3))
NEW = RANDOM.normal(size=(20, 3))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RANDOM.normal(size=45)


@pytest.mark.row("K15")
def test_class_weights_of_the_nearest_centroid_need_no_dimension():
    y, times = np.digitize(F, [-0.4, 0.4]), np.arange(45) % 3
    twice = np.repeat(np.arange(45), times)
    plain = er.NearestCentroid(class_weight={1: 4.0}).fit(X, y, times)
    for features in ("linear", er.kernels.Gaussian(1.2)):
        machine = er.NearestCentroid(features, class_weight={1: 4.0})
        f = machine.fit(X, y, times).decision_function(NEW)
        np.testing.assert_allclose(machine.fit(X[twice], y[twice]).decision_function(NEW), f, rtol=1e-9)
        if features == "linear":
            np.testing.assert_allclose(plain.decision_function(NEW), f, rtol=1e-9)
    # Two round Gaussians of variance 4: the boundary is where costs times densities are equal.
    random = np.random.default_rng(0)
    sample = random.normal(0.0, 2.0, (40000, 3))
    sample[20000:, 0] += 3.0
    machine = er.NearestCentroid(class_weight={1: 5.0}).fit(sample, np.repeat([0, 1], 20000))
    boundary = 1.5 - 4.0 * np.log(5.0) / 3.0
    assert abs(machine.decision_function([[boundary, 0.0, 0.0]])[0]) < 0.3
