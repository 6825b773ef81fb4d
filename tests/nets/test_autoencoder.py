"""Autoencoders: the linear one spans the principal components, a deep one does better on a curve."""

import os
import signal
import threading

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.exceptions import ConvergenceWarning

import empirisk as er

random = np.random.default_rng(0)


@pytest.mark.row("W6")
@pytest.mark.parametrize("tied", [False, True])
def test_the_linear_autoencoder_spans_the_principal_components(tied):
    X = random.normal(size=(100, 6)) @ np.diag([5.0, 4.0, 2.0, 1.0, 0.5, 0.2]) @ random.normal(size=(6, 6))
    network = er.Network([], tied=tied, random_state=0).fit(X).learn_to_rebuild(2)
    components = np.linalg.svd(X - X.mean(axis=0))[2][:2]
    assert subspace_angles(network.weights_["0.weight"], components.T).max() < 1e-3
    assert subspace_angles(network.decoder_["0.weight"].T, components.T).max() < 1e-3
    assert network.transform(X).shape == (100, 2)


@pytest.mark.row("W6")
def test_a_deep_autoencoder_follows_a_curve(tmp_path):
    t = np.linspace(-2, 2, 100)
    X = np.column_stack([t, t**2, np.sin(2 * t)])
    network = er.Network([16], "tanh", decay=1e-3, epochs=3000, random_state=0).fit(X).learn_to_rebuild(1)
    rebuilt = network.inverse_transform(network.transform(X))
    direction = np.linalg.svd(X - X.mean(axis=0))[2][0]
    linear = X.mean(axis=0) + np.outer((X - X.mean(axis=0)) @ direction, direction)
    assert np.sum((rebuilt - X) ** 2) < 0.2 * np.sum((linear - X) ** 2)
    er.save(network, tmp_path / "codes.model")
    loaded = er.load(tmp_path / "codes.model")
    np.testing.assert_array_equal(loaded.inverse_transform(loaded.transform(X)), rebuilt)


def test_rows_far_from_zero_are_rebuilt():
    X = 100 + random.normal(size=(60, 1)) * np.array([1.0, -1.0, 2.0])
    network = er.Network([3], "tanh", decay=0.01, epochs=200, validation_fraction=0.2, random_state=0).fit(X)
    rebuilt = network.learn_to_rebuild(1).inverse_transform(network.transform(X))
    assert np.sum((rebuilt - X) ** 2) < 0.5 * np.sum((X - X.mean(axis=0)) ** 2)


def test_codes_that_are_all_the_same_are_named():
    with pytest.raises(er.errors.EmpiriskError, match="lower its decay"):
        er.PCA(n_components=1, features=er.Network([], decay=1e6, random_state=0)).fit(random.normal(size=(10, 3)))


def test_what_has_no_reverse_is_refused():
    for layer in (er.nets.Filter(), er.nets.Branch([er.nets.Conv(2)]), er.nets.Residual([er.nets.Conv(1, padding=1)])):
        with pytest.raises(er.errors.EmpiriskError, match="no way back through"):
            er.Network([layer], shape=(6, 6)).fit(np.zeros((3, 36))).learn_to_rebuild(2)
    with pytest.raises(er.errors.EmpiriskError, match="tied=True takes the weights of dense layers"):
        er.Network([er.nets.Conv(2)], tied=True, shape=(6, 6)).fit(np.zeros((3, 36))).learn_to_rebuild(2)
    with pytest.raises(er.errors.EmpiriskError, match="dropout"):
        er.Network([4], dropout=0.5).fit(np.zeros((3, 4))).learn_to_rebuild(2)


@pytest.mark.row("W6")
def test_pca_with_a_network_is_an_autoencoder(tmp_path):
    X = random.normal(size=(80, 5)) @ random.normal(size=(5, 5))
    plain = er.PCA(n_components=2).fit(X)
    linear = er.PCA(n_components=2, features=er.Network([], random_state=0)).fit(X)
    back, best = (pca.inverse_transform(pca.transform(X)) for pca in (linear, plain))
    assert np.sum((back - X) ** 2) == pytest.approx(np.sum((best - X) ** 2), rel=0.01)
    codes = linear.transform(X)
    assert abs(np.corrcoef(codes.T)[0, 1]) < 1e-6
    er.save(linear, tmp_path / "auto.model")
    np.testing.assert_array_equal(er.load(tmp_path / "auto.model").inverse_transform(codes), back)
    with pytest.raises(er.errors.EmpiriskError, match="size of the codes"):
        er.PCA(features=er.Network([3])).fit(X)


@pytest.mark.parametrize("limit", ["max_time", "interrupted"])
def test_time_and_ctrl_c_end_the_training_of_components(limit):
    X = np.random.default_rng(0).normal(size=(300, 4))
    machine = er.PCA(2, er.Network([3], epochs=10**6, random_state=0), max_time=0.5 if limit == "max_time" else None)
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    if limit == "interrupted":
        timer.start()
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=limit) as told:
        machine.fit(X)
    assert {one.filename for one in told} == {__file__}
    timer.cancel()
    assert machine.stopped_ == limit
    assert np.isfinite(machine.transform(X)).all()


def blobs(rows, seed=0):
    """Images of 8 x 8 with one bright spot, wherever it is."""
    draw = np.random.default_rng(seed)
    middles = draw.uniform(2, 6, size=(rows, 2))
    places = np.arange(8.0)
    down, across = (np.exp(-0.5 * (places - middles[:, axis, None]) ** 2) for axis in (0, 1))
    return (down[:, :, None] * across[:, None, :]).reshape(rows, -1)


@pytest.mark.row("W6")
@pytest.mark.parametrize(
    "layers",
    [
        [er.nets.Conv(4, 3, padding=1), er.nets.MaxPool(2), er.nets.Dense(16)],
        [er.nets.Conv(4, 3, stride=2), er.nets.Flatten(), er.nets.LayerNorm(), er.nets.Dense(16)],
        [er.nets.MeanPool(2), er.nets.Conv(3, 2), er.nets.Dense(12)],
    ],
    ids=["pooling", "stride", "pooling first"],
)
def test_a_convolutional_autoencoder_rebuilds_images(layers, tmp_path):
    X = blobs(150)
    network = er.Network(
        layers, "gelu", shape=(8, 8), decay=1e-3, epochs=150, learning_rate_init=0.01, batch_size=50, random_state=0
    )
    machine = er.PCA(3, network).fit(X)
    codes = machine.transform(X)
    back = machine.inverse_transform(codes)
    assert codes.shape == (150, 3)
    assert back.shape == X.shape
    assert np.sum((back - X) ** 2) < 0.4 * np.sum((X - X.mean(axis=0)) ** 2)
    er.save(machine, tmp_path / "images.model")
    np.testing.assert_array_equal(er.load(tmp_path / "images.model").inverse_transform(codes), back)


@pytest.mark.row("W6")
@pytest.mark.parametrize("change", [er.nets.Noise(0.5), er.nets.Masking(0.3)], ids=repr)
def test_a_denoising_autoencoder_rebuilds_the_rows_as_they_were(change):
    draw = np.random.default_rng(0)
    basis = draw.normal(size=(2, 20))
    X, clean = (draw.normal(size=(rows, 2)) @ basis for rows in (300, 500))
    lost = []
    for augment in ((), (change,)):
        network = er.Network(
            [20], "tanh", decay=1e-2, augment=augment, epochs=400, learning_rate_init=0.01, random_state=0
        )
        network.fit(X).learn_to_rebuild(8)  # more codes than there are directions: noise has a way through
        kept = np.where(draw.random(clean.shape) < 0.3, 0.0, clean)
        spoilt = clean + 0.5 * draw.normal(size=clean.shape) if isinstance(change, er.nets.Noise) else kept
        lost.append(np.mean((network.inverse_transform(network.transform(spoilt)) - clean) ** 2))
    assert lost[1] < 0.6 * lost[0]
