"""k-means and neighbours with their products on a device: labels, means and lists are those of the processor."""

import numpy as np
import pytest

import empirisk as er
from empirisk.scale.accelerators import chosen

RNG = np.random.default_rng(2)
X = RNG.normal(size=(700, 7))
TABLES = {"apart": X, "equal rows": np.repeat(X[:200], 3, axis=0), "equal distances": np.round(X), "far away": X + 1e4}


#: Bytes of a device that holds the rows, and of one to which they go in blocks.
MEMORY = {"held": 1 << 33, "sent": 10_000}


@pytest.fixture(params=MEMORY)
def memory(request, monkeypatch):
    """What the device holds."""
    monkeypatch.setitem(vars(chosen("jax:cpu")), "memory", MEMORY[request.param])


@pytest.mark.parametrize("name", TABLES)
def test_clusters_are_those_of_the_processor(name, memory):
    rows, weights = TABLES[name], RNG.integers(1, 3, size=len(TABLES[name]))
    machine = er.KMeans(6, n_init=2, random_state=0)
    here = machine.fit(rows, sample_weight=weights)
    labels, centres, rounds = here.labels_, here.cluster_centers_, here.n_iter_
    with er.config(device="jax:cpu"):
        there = machine.fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(there.labels_, labels)
    np.testing.assert_allclose(there.cluster_centers_, centres, rtol=1e-12, atol=1e-12)
    assert there.n_iter_ == rounds


@pytest.mark.parametrize("name", TABLES)
def test_neighbours_are_those_of_the_processor(name, memory):
    rows = TABLES[name]
    machine = er.KNNClassifier(5).fit(rows, rows[:, 0] > np.median(rows[:, 0]))
    asked = rows[:90] + np.where(RNG.random((90, 7)) < 0.5, 0.0, 0.1)
    distances, places = machine.kneighbors(asked)
    with er.config(device="jax:cpu"):
        again = machine.kneighbors(asked)
    np.testing.assert_array_equal(again[1], places)
    np.testing.assert_array_equal(again[0], distances)
