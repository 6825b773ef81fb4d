"""Networks on images, transfer, and the contract of estimators."""

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.base import clone

import empirisk as er
from empirisk.nets.augment import augmented
from tests.estimator_checks import check_contract

random = np.random.default_rng(0)


def stripes(n, seed=0):
    """Images with a bright row or a bright column somewhere."""
    random = np.random.default_rng(seed)
    images, y, where = 0.3 * random.normal(size=(n, 6, 6, 1)), np.arange(n) % 2, random.integers(0, 6, n)
    for image, upright, place in zip(images, y, where, strict=True):
        image[(slice(None), place) if upright else place] += 1.0
    return images.astype(np.float32), y


@pytest.mark.row("W3")
def test_a_convolutional_network_learns_stripes():
    X, y = stripes(128)
    Z, z = stripes(200, seed=1)
    network = er.Network.convolutional((4,), dense=(8,), epochs=200, n_init=1, random_state=0)
    machine = er.LogisticRegression(C=10.0, features=network).fit(X, y)
    assert machine.score(Z, z) > 0.97
    flat = clone(machine).set_params(features__shape=(6, 6, 1)).fit(X.reshape(128, -1), y)
    found = flat.decision_function(Z.reshape(200, -1))
    np.testing.assert_allclose(found, machine.decision_function(Z), rtol=1e-4, atol=1e-4)
    shapes = [out.shape for out in machine.features_.layer_outputs(Z)]
    assert shapes == [(200, 6, 6, 4), (200, 3, 3, 4), (200, 8)]
    with pytest.raises(er.errors.EmpiriskError, match="rows of shape"):
        machine.predict(Z[:, :, :5])


@pytest.mark.row("W3")
@pytest.mark.parametrize("shape", [(16, 16, 1), (32, 32, 3), (96, 96, 3)])
def test_the_large_preset_fits_the_image(shape):
    network = er.Network.alexnet(shape, width=6).fit(np.zeros((2, *shape), np.float32))
    assert network.plan().width == 192
    assert sum(isinstance(layer, er.nets.Conv) for layer in network.layers_) == 5


@pytest.mark.row("W4")
def test_augmentations_keep_the_shape_and_change_the_image():
    x = np.zeros((40, 8, 8, 1), np.float32)
    x[:, 3:5, 2:4] = 1.0

    def changed(kind):
        return np.asarray(jax.jit(lambda images: augmented((kind,), images, jax.random.key(0)))(x))

    kinds = (er.nets.Mirror(), er.nets.Shift(2), er.nets.Noise(0.1), er.nets.Scale(0.3), er.nets.Crop(0.7))
    for kind in kinds:
        found = changed(kind)
        assert found.shape == x.shape
        assert 0.2 < (np.abs(found - x).max(axis=(1, 2, 3)) > 1e-3).mean() <= 1
    np.testing.assert_array_equal(changed(er.nets.Mirror(1.0)), x[:, :, ::-1])
    assert (changed(er.nets.Shift(2)).sum(axis=(1, 2, 3)) == 4).all()
    np.testing.assert_allclose(changed(er.nets.Scale(0.0)), x, atol=1e-6)


@pytest.mark.row("W4")
def test_weights_from_a_foreign_file_frozen_under_a_new_head(tmp_path):
    X, y = random.normal(size=(60, 3)), random.integers(0, 2, 60)
    foreign = {"fc.weight": random.normal(size=(5, 3)).astype("f4"), "fc.bias": np.zeros(5, "f4")}
    save_file(foreign, tmp_path / "foreign.safetensors")
    names = {"fc.weight": "0.weight", "fc.bias": "0.bias"}
    weights = er.nets.read_weights(tmp_path / "foreign.safetensors", names, layout="torch")
    network = er.Network([5, 4], weights=weights, freeze=[0], epochs=10, n_init=1, random_state=0)
    features = er.LogisticRegression(features=network).fit(X, y).features_
    np.testing.assert_array_equal(features.weights_["0.weight"], foreign["fc.weight"].T)
    assert not np.array_equal(features.weights_["1.weight"], clone(network).fit(X).weights_["1.weight"])
    tuned = er.Network([5, 4], weights=features.weights_, epochs=10, n_init=1, random_state=0)
    np.testing.assert_array_equal(clone(tuned).fit(X).weights_["1.weight"], features.weights_["1.weight"])
    with pytest.raises(er.errors.EmpiriskError, match="the file holds"):
        er.nets.read_weights(tmp_path / "foreign.safetensors", {"fc2.weight": "0.weight"})
    (tmp_path / "broken").write_bytes(b"nothing")
    with pytest.raises(er.errors.EmpiriskError, match="no safetensors file"):
        er.nets.read_weights(tmp_path / "broken")


@pytest.mark.row("W4")
def test_a_new_head_on_a_network_with_batch_normalisation():
    X, y = random.normal(2.0, 3.0, size=(60, 3)), random.integers(0, 2, 60)
    layers = [er.nets.Dense(5), er.nets.BatchNorm(), er.nets.Dense(4)]
    learned = (
        er.LogisticRegression(features=er.Network(layers, epochs=30, n_init=1, random_state=0)).fit(X, y).features_
    )
    everything = learned.weights_ | learned.state_
    still = er.SVM(features=er.Network(layers, weights=everything, freeze=True)).fit(X, y)
    np.testing.assert_array_equal(still.features_.transform(X), learned.transform(X))
    partly = er.Network(layers, weights=everything, freeze=[0, 1], epochs=10, n_init=1, random_state=1)
    features = er.LogisticRegression(features=partly).fit(X, y).features_
    np.testing.assert_array_equal(features.layer_outputs(X)[1], learned.layer_outputs(X)[1])
    assert not np.array_equal(features.weights_["2.weight"], learned.weights_["2.weight"])
    with pytest.raises(er.errors.EmpiriskError, match=r"weights\['1.mean'\] has shape \(2,\)"):
        er.Network(layers, weights={"1.mean": [0.0, 0.0]}).fit(X)


@pytest.mark.long
@pytest.mark.row("W3")
def test_the_large_preset_and_all_layers_together_learn(tmp_path):
    X, y = stripes(64)
    nets = er.nets
    layers = [
        nets.Filter("gaussian", 3), nets.Branch([nets.Conv(2, 3, padding=1, flip=True), nets.Conv(2, 5, padding=2)]),
        nets.BatchNorm(), nets.MaxPool(3, 2, 1), nets.Flatten(), nets.Dense(8, "tanh", "glorot"), nets.Dropout(0.1),
    ]  # fmt: skip
    changes = [nets.Mirror(), nets.Shift(1), nets.Noise(0.05), nets.Scale(0.1), nets.Crop(0.9)]
    network = er.Network(layers, augment=changes, epochs=60, n_init=1, random_state=0)
    machine = er.SVM(C=10.0, features=network).fit(X, y)
    assert machine.score(X, y) > 0.85
    er.save(machine, tmp_path / "all.model")
    np.testing.assert_array_equal(er.load(tmp_path / "all.model").decision_function(X), machine.decision_function(X))
    large = er.Network.alexnet((6, 6, 1), width=6, dropout=0.0, epochs=15, n_init=1, random_state=0)
    assert er.LogisticRegression(C=10.0, features=large).fit(X, y).score(X, y) > 0.85


def test_networks_are_bagged():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    machine = er.LogisticRegression(C=10.0, features=er.Network([3], epochs=30, n_init=1))
    bag = er.BaggingClassifier(machine, n_estimators=3, random_state=0).fit(X, y)
    assert bag.score(X, y) > 0.9


def tiny(**parameters):
    return er.Network([3], "tanh", **({"epochs": 20, "n_init": 1} | parameters))


@pytest.mark.parametrize(
    "machine",
    [
        er.LogisticRegression(features=tiny()),
        er.Network([3]),
        # XLA compiles for each shape of rows that the checks hand over: seconds for every further machine.
        pytest.param(er.Ridge(C=10.0, features=tiny(epochs=600)), marks=pytest.mark.long),
        # A part held out leaves out the exact steps at the end, which take long.
        pytest.param(
            er.PCA(n_components=1, features=tiny(decay=0.01, validation_fraction=0.2, random_state=0)),
            marks=pytest.mark.long,
        ),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_scikit_learns_contract(machine):
    check_contract(machine, least=40)
