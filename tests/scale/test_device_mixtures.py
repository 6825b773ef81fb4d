"""Mixtures whose sums over the rows are made on a device: the same rounds, and the same fit."""

import numpy as np
import pytest

import empirisk as er
from empirisk.clusters.device_moments import DeviceMoments, moments_of
from empirisk.clusters.expectation import Moments
from empirisk.scale.accelerators import chosen
from empirisk.stop import Stopped, stopping

random = np.random.default_rng(0)
X = random.normal(size=(3001, 4)) * [1, 2, 0.5, 1] + random.integers(0, 3, (3001, 1)) * 4 + 1e4
WEIGHTS = random.integers(1, 4, len(X)).astype(float)


@pytest.mark.parametrize(
    ("form", "held"), [("full", True), ("full", False), ("tied", True), ("diag", True), ("spherical", True)]
)
def test_a_round_is_that_of_the_processor(form, held, monkeypatch):
    """Where the rows stay on the device, and where they go there in each round, in several blocks."""
    device = chosen("jax:cpu")
    monkeypatch.setitem(vars(device), "memory", 16 * X.size - (not held))
    monkeypatch.setattr(device, "height", 1)
    here = Moments(X, WEIGHTS, form, 1e-6)
    with er.config(device="jax:cpu"):
        there = moments_of(X, WEIGHTS, form, 1e-6, 3)
    assert isinstance(there, DeviceMoments)
    assert (there._there._held is not None) == held
    assert there._there._span < len(X)
    start = here.of_cells(random.integers(0, 3, len(X)), X[:3])
    (likelihood, found), (expected, mixture) = there.round(start), here.round(start)
    assert likelihood == pytest.approx(expected, rel=1e-12)
    for name in ("weights", "means", "whole"):
        np.testing.assert_allclose(getattr(found, name), getattr(mixture, name), rtol=1e-9)


def test_the_fit_is_that_of_the_processor(monkeypatch):
    machine = er.GaussianMixture(3, n_init=2, tol=1e-9, random_state=0)
    expected = machine.fit(X.astype(np.float32), sample_weight=WEIGHTS)
    likelihood, means = expected.lower_bound_, expected.means_
    seen, sums = [], DeviceMoments._expected
    monkeypatch.setattr(DeviceMoments, "_expected", lambda *given: seen.append(1) or sums(*given))
    with er.config(device="jax:cpu"):
        found = machine.fit(X.astype(np.float32), sample_weight=WEIGHTS)
    assert len(seen) >= found.n_iter_
    assert found.lower_bound_ == pytest.approx(likelihood, rel=1e-10)
    np.testing.assert_allclose(found.means_, means, rtol=1e-8)


def test_a_round_looks_at_the_clock():
    with er.config(device="jax:cpu"):
        there = moments_of(X, WEIGHTS, "full", 1e-6, 3)
    with pytest.raises(Stopped), stopping(lambda: True):
        there.round(there.at_centres(X[:3]))
