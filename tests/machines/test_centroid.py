"""The nearest centroid behind kernels: class weights by a variance that needs no dimension."""

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError

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


@pytest.mark.row("L1")
@pytest.mark.parametrize("features", [None, "linear"])
def test_balanced_class_weights_are_what_the_means_give_already(features):
    """Two round classes of 950 and 50 rows: half-way between the means is where both classes err equally often."""
    random = np.random.default_rng(0)
    sample, y = random.normal(size=(1000, 2)), np.repeat([0, 1], [950, 50])
    sample[y == 1, 0] += 3.0
    plain, balanced = (er.NearestCentroid(features, class_weight=way).fit(sample, y) for way in (None, "balanced"))
    np.testing.assert_array_equal(balanced.decision_function(sample), plain.decision_function(sample))
    # The costs of a dictionary are those of classes that are equally frequent: equal ones change nothing either.
    even = er.NearestCentroid(features, class_weight={0: 2.0, 1: 2.0}).fit(sample, y)
    np.testing.assert_allclose(even.decision_function(sample), plain.decision_function(sample))
    new, labels = random.normal(size=(40000, 2)), np.repeat([0, 1], 20000)
    new[labels == 1, 0] += 3.0
    shares = [np.mean(balanced.predict(new[labels == k]) == k) for k in (0, 1)]
    assert abs(shares[0] - shares[1]) < 0.06  # the mean of 50 rows is off by about 0.14
    assert np.mean(shares) == pytest.approx(0.9332, abs=0.005)  # Phi(3 / 2), the best there is
    with pytest.raises(EmpiriskError, match="class_weight='even' is not known"):
        er.NearestCentroid(class_weight="even").fit(sample, y)


@pytest.mark.parametrize("features", [None, er.kernels.Gaussian()])
def test_a_class_that_costs_nothing_is_never_predicted_and_all_numbers_are_finite(features):
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
    for free in ({0: 0}, {0: 0, 1: 0}, {2: 0.0}):
        machine = er.NearestCentroid(features, class_weight=free).fit(X, y)
        assert set(machine.predict(X)) == set(range(3)) - set(free)
        assert not set(machine.predict(100 * X)) & set(free)
        assert np.isfinite(machine.intercept_).all()
        assert np.isfinite(machine.decision_function(X)).all()
    two = er.NearestCentroid(features, class_weight={0: 0}).fit(X, y > 0)
    assert two.predict(100 * X).all()
    assert np.isfinite(two.intercept_).all()


def test_the_gap_is_not_negative_where_a_centred_kernel_knows_rounding_alone():
    random = np.random.default_rng(0)
    for _ in range(20):
        X = np.tile(random.normal(size=5), (11, 1))
        kernel = er.kernels.Centred(er.kernels.Polynomial(degree=3, constant=0.5))
        certificate = er.NearestCentroid(kernel).fit(X, np.arange(11) % 3).certificate_
        assert certificate.gap >= 0
        assert certificate.relative_gap >= 0
