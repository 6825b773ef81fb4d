"""A machine that is fitted again is as one that is fitted for the first time, whatever was in its slot before."""

import itertools

import numpy as np
import pytest

import empirisk as er

X = np.random.default_rng(0).normal(size=(20, 3))
Y = (X[:, 0] > 0).astype(int)
SLOTS = {
    "nothing": None,
    "kernel": er.kernels.Gaussian(2.0),
    "map": er.maps.Polynomial(2),
    "streamed map": er.maps.Nystrom("gaussian", 4, random_state=0),
}
MACHINES = (
    er.SVM(),
    er.Ridge(),
    er.PCA(2),
    er.KMeans(2, random_state=0),
    er.KNNClassifier(),
    er.NearestCentroid(),
    er.Perceptron(random_state=0),
    er.OneClassSVM(),
)


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(SLOTS, 2)))
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_another_slot_leaves_nothing_of_the_last_one(machine, before, after, tmp_path):
    first = type(machine)(**machine.get_params() | {"features": SLOTS[after]}).fit(X, Y)
    again = type(machine)(**machine.get_params() | {"features": SLOTS[before]}).fit(X, Y)
    again.set_params(features=SLOTS[after]).fit(X, Y)
    assert vars(again).keys() == vars(first).keys()
    answer = "predict" if hasattr(machine, "predict") else "transform"
    np.testing.assert_array_equal(getattr(again, answer)(X), getattr(first, answer)(X))
    er.save(again, tmp_path / "a.model")
    np.testing.assert_array_equal(getattr(er.load(tmp_path / "a.model"), answer)(X), getattr(first, answer)(X))
