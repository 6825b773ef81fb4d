"""Clusterings and densities through a model file: the same answers, and nothing that does not hold together."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError

X = np.random.default_rng(0).normal(size=(60, 3))
MACHINES = [
    er.KMeans(4, random_state=0),
    er.KMeans(4, StandardScaler(), random_state=0),
    er.KMeans(4, er.kernels.Gaussian(2.0), random_state=0),
    er.KMeans(4, batch_size=10, random_state=0),
    er.Hierarchical("ward", n_clusters=3),
    *(er.GaussianDensity(form) for form in ("full", "diagonal", "spherical")),
    *(er.GaussianMixture(2, form, random_state=0) for form in ("full", "tied", "diagonal", "spherical")),
]


def _through_a_file(machine, path):
    er.save(machine, path)
    return er.load(path)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_what_is_loaded_answers_alike(machine, tmp_path):
    machine.fit(X)
    loaded = _through_a_file(machine, tmp_path / "it.model")
    for name in ("predict", "transform", "score_samples", "predict_proba"):
        if hasattr(machine, name):
            np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(machine, name)(X))
    if hasattr(machine, "cut"):
        np.testing.assert_array_equal(loaded.cut(5), machine.cut(5))
        np.testing.assert_array_equal(loaded.labels_, machine.labels_)


@pytest.mark.parametrize(
    ("machine", "change"),
    [
        (er.KMeans(3), {"cluster_centers_": np.zeros((3, 2))}),
        (er.KMeans(3), {"labels_": np.full(60, 3)}),
        (er.KMeans(3, "gaussian"), {"squares_of_means_": np.zeros(2)}),
        (er.Hierarchical(), {"leaves_": np.arange(60) + 1}),
        (er.GaussianDensity(), {"covariance_": np.eye(2)}),
        (er.GaussianMixture(2), {"means_": np.zeros((3, 3))}),
    ],
    ids=str,
)
def test_states_that_do_not_hold_together_are_refused(machine, change, tmp_path):
    vars(machine.fit(X)).update(change)
    with pytest.raises(EmpiriskError):
        _through_a_file(machine, tmp_path / "it.model")
