"""Layers against slow obvious references, in all cases of stride and padding."""

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import norm

import empirisk as er
from empirisk.nets.layers import Pass
from empirisk.nets.plan import NetworkPlan
from tests.naive import slide_naively

random = np.random.default_rng(0)
CASES = list(itertools.product((1, 2, 3), (1, 2), (0, 1)))  # size, stride, padding


def run(layer, x, weights=None, **told):
    with jax.enable_x64(True):
        out = layer.apply(weights or {}, "", x, Pass({}, **told))
    return np.asarray(out)


@pytest.mark.row("W3")
@pytest.mark.parametrize(("size", "stride", "padding"), CASES)
@pytest.mark.parametrize("flip", [False, True])
def test_convolution_is_the_sum_over_windows(size, stride, padding, flip):
    x, kernel, bias = random.normal(size=(2, 7, 6, 2)), random.normal(size=(size, size, 2, 3)), random.normal(size=3)
    layer = er.nets.Conv(3, size, stride, padding, flip=flip)
    turned = kernel[::-1, ::-1] if flip else kernel
    wanted = bias + slide_naively(x, size, stride, padding, 0.0, lambda part: np.einsum("abc,abcf->f", part, turned))
    found = run(layer, x, {"weight": kernel, "bias": bias})
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert found.shape[1:] == layer.output((7, 6, 2))
    assert found.shape[1] == np.floor((7 - size + 2 * padding) / stride + 1)


@pytest.mark.row("W3")
@pytest.mark.parametrize(("size", "stride", "padding"), [case for case in CASES if 2 * case[2] <= case[0]])
def test_pooling_takes_the_largest_or_the_mean_of_windows(size, stride, padding):
    x = random.normal(size=(2, 7, 6, 2))
    for layer, outside, pool in (
        (er.nets.MaxPool(size, stride, padding), -np.inf, lambda window: window.max(axis=(0, 1))),
        (er.nets.MeanPool(size, stride, padding), np.nan, lambda window: np.nanmean(window, axis=(0, 1))),
    ):
        wanted = slide_naively(x, size, stride, padding, outside, pool)
        found = run(layer, x)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert found.shape[1:] == layer.output((7, 6, 2))


@pytest.mark.row("W4")
def test_batch_normalisation_uses_the_batch_in_training_and_running_moments_after():
    layer, x = er.nets.BatchNorm(momentum=0.9), random.normal(3.0, 2.0, size=(50, 4))
    weights = {"scale": np.full(4, 2.0), "shift": np.full(4, -1.0)}
    pass_ = Pass({"mean": np.zeros(4), "variance": np.ones(4)}, True, rows=np.ones(50))
    with jax.enable_x64(True):
        found = np.asarray(layer.apply(weights, "", x, pass_))
        later = np.asarray(layer.apply(weights, "", x, Pass(pass_.state)))
    np.testing.assert_allclose(found.mean(axis=0), -1, atol=1e-9)
    np.testing.assert_allclose(found.std(axis=0), 2, rtol=1e-4)
    mean, variance = 0.1 * x.mean(axis=0), 0.9 + 0.1 * x.var(axis=0)
    np.testing.assert_allclose(later, 2 * (x - mean) / np.sqrt(variance + 1e-5) - 1, rtol=1e-9)
    # A row of weight 2 is the row twice, and one of weight 0 is not there.
    rows = np.arange(50) % 3
    weighted = Pass({"mean": np.zeros(4), "variance": np.ones(4)}, True, rows=rows.astype(float))
    with jax.enable_x64(True):
        layer.apply(weights, "", x, weighted)
    np.testing.assert_allclose(weighted.state["mean"], 0.1 * np.repeat(x, rows, axis=0).mean(axis=0), rtol=1e-9)


@pytest.mark.row("W4")
def test_dropout_scales_what_it_keeps():
    x = np.ones((200, 50), np.float32)
    found = run(er.nets.Dropout(0.25), x, training=True, key=lambda: jax.random.key(0))
    assert set(np.unique(found).round(4)) == {0.0, np.float32(1 / 0.75).round(4)}
    assert abs(found.mean() - 1) < 0.02
    np.testing.assert_array_equal(run(er.nets.Dropout(0.25), x), x)


def test_a_branch_joins_its_layers():
    branch = er.nets.Branch([er.nets.Conv(2, 3, padding=1), er.nets.Conv(3, 5, padding=2)])
    x = random.normal(size=(2, 6, 6, 1)).astype(np.float32)
    plan = NetworkPlan([branch], (6, 6, 1), "linear", False, 0.0)
    weights = plan.weights("normal", np.random.default_rng(0))
    found = np.asarray(plan.apply(weights, x, Pass({}))).reshape(2, 6, 6, 5)
    one = run(branch.layers[0], x, {name[4:]: value for name, value in weights.items() if name.startswith("0.0.")})
    np.testing.assert_allclose(found[..., :2], one, atol=1e-6)


def test_fixed_filters():
    x = random.normal(size=(1, 9, 9, 2))
    laplace = er.nets.Filter("laplace", 5)
    wanted = slide_naively(x, 5, 1, 2, 0.0, lambda window: np.einsum("abc,ab->c", window, laplace.kernel()))
    np.testing.assert_allclose(run(laplace, x), wanted, atol=1e-12)
    assert abs(laplace.kernel().sum()) < 1e-12
    np.testing.assert_allclose(run(laplace, np.ones((1, 9, 9, 1)))[0, 2:-2, 2:-2], 0, atol=1e-12)


@pytest.mark.row("W1")
@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("gelu", lambda x: x * norm.cdf(x)),
        ("leaky_relu", lambda x: np.where(x >= 0, x, 0.01 * x)),
        ("softplus", lambda x: np.logaddexp(0, x)),
        ("relu", lambda x: np.maximum(x, 0)),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_activations_are_their_formulas(name, twin):
    x = np.linspace(-6, 6, 50)[:, None]
    np.testing.assert_allclose(run(er.nets.Activation(name), x), twin(x), atol=1e-9)
    with jax.enable_x64(True):
        slope = jax.vmap(jax.grad(lambda t: er.nets.Activation(name).apply({}, "", t, Pass({}))))(x[:, 0])
    np.testing.assert_allclose(slope, (twin(x + 1e-6) - twin(x - 1e-6))[:, 0] / 2e-6, atol=1e-6)


@pytest.mark.row("W4")
@pytest.mark.parametrize("shape", [(5,), (3, 4, 5)])
def test_layer_normalisation_is_that_of_every_sample(shape):
    x, scale, shift = random.normal(2.0, 3.0, size=(6, *shape)), random.normal(size=5), random.normal(size=5)
    apart = x - x.mean(axis=-1, keepdims=True)
    wanted = apart / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * scale + shift
    weights = {"scale": scale, "shift": shift}
    np.testing.assert_allclose(run(er.nets.LayerNorm(), x, weights), wanted, atol=1e-10)
    np.testing.assert_array_equal(run(er.nets.LayerNorm(), x, weights, training=True), wanted_of_rows(x, weights))


def wanted_of_rows(x, weights):
    """The rows through the layer one by one: none depends on the others."""
    return np.concatenate([run(er.nets.LayerNorm(), row[None], weights) for row in x])


def test_layer_norm_goes_before_the_activation():
    plan = NetworkPlan([er.nets.Dense(3), er.nets.LayerNorm(), er.nets.Dense(2)], (4,), "relu", False, 0.0)
    kinds = [type(layer).__name__ for _, layer, _ in plan.steps]
    assert kinds == ["Dense", "LayerNorm", "Activation", "Dense", "Activation"]


@pytest.mark.row("W3")
def test_a_residual_block_adds_its_input():
    block = er.nets.Residual([7, er.nets.LayerNorm(), 4])
    plan = NetworkPlan([block], (4,), "tanh", False, 0.0)
    weights = {name: value.astype(float) for name, value in plan.weights("auto", np.random.default_rng(0)).items()}
    assert sorted(weights) == ["0.0.bias", "0.0.weight", "0.1.scale", "0.1.shift", "0.2.bias", "0.2.weight"]
    x = random.normal(size=(5, 4))
    inner = x @ weights["0.0.weight"] + weights["0.0.bias"]
    inner = (inner - inner.mean(axis=1, keepdims=True)) / np.sqrt(inner.var(axis=1, keepdims=True) + 1e-5)
    wanted = np.tanh(x + np.tanh(inner) @ weights["0.2.weight"] + weights["0.2.bias"])
    with jax.enable_x64(True):
        found = np.asarray(plan.apply(weights, x, Pass({})))
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    own = NetworkPlan([er.nets.Residual([er.nets.Activation("softplus")], "linear")], (4,), "tanh", False, 0.0)
    np.testing.assert_allclose(own.apply({}, x, Pass({})), x + np.logaddexp(0, x), atol=1e-5)


@pytest.mark.row("W6")
@pytest.mark.parametrize(("size", "stride", "padding"), CASES)
def test_a_transposed_convolution_is_the_transpose(size, stride, padding):
    # <Conv x, z> = <x, ConvTranspose z> for the same filters, in and out exchanged.
    shape = (7, 6, 2)
    forward = er.nets.Conv(3, size, stride, padding)
    back = er.nets.ConvTranspose(2, size, stride, padding)
    high, wide, _ = back.output(forward.output(shape))
    back = er.nets.ConvTranspose(2, size, stride, padding, (7 - high, 6 - wide))
    kernel = random.normal(size=(size, size, 2, 3))
    x, z = random.normal(size=(2, *shape)), random.normal(size=(2, *forward.output(shape)))
    ahead = run(forward, x, {"weight": kernel, "bias": np.zeros(3)})
    returned = run(back, z, {"weight": kernel.transpose(0, 1, 3, 2), "bias": np.zeros(2)})
    assert returned.shape == x.shape
    assert back.output(forward.output(shape)) == shape
    assert np.vdot(ahead, z) == pytest.approx(np.vdot(x, returned))


@pytest.mark.row("W6")
def test_places_are_repeated():
    x = random.normal(size=(2, 3, 2, 2))
    np.testing.assert_array_equal(run(er.nets.Upsample(6, 4), x), x.repeat(2, axis=1).repeat(2, axis=2))
    assert run(er.nets.Upsample(7, 5), x).shape == (2, 7, 5, 2)
    np.testing.assert_array_equal(run(er.nets.Reshape((3, 2, 2)), x.reshape(2, -1)), x)


def test_batch_norm_goes_before_the_activation():
    plan = NetworkPlan([er.nets.Dense(3), er.nets.BatchNorm(), er.nets.Dense(2)], (4,), "relu", False, 0.5)
    kinds = [type(layer).__name__ for _, layer, _ in plan.steps]
    assert kinds == ["Dense", "BatchNorm", "Activation", "Dropout", "Dense", "Activation", "Dropout"]
    inside = NetworkPlan([er.nets.Dense(3)], (4,), "relu", True, 0.0)
    assert [type(layer).__name__ for _, layer, _ in inside.steps] == ["Dense", "BatchNorm", "Activation"]


@pytest.mark.parametrize(("init", "variance"), [("he", 2 / 300), ("glorot", 2 / 500), ("normal", 1 / 300)])
def test_first_weights_have_their_variance(init, variance):
    plan = NetworkPlan([er.nets.Dense(200)], (300,), "relu", False, 0.0)
    weight = plan.weights(init, np.random.default_rng(0))["0.weight"]
    assert abs(weight.var() / variance - 1) < 0.02


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([0], "width=0 must be a whole number"),
        ("256", "must be a list of widths"),
        ([er.nets.Conv(4, 9)], "larger than the image"),
        ([er.nets.Dense(3), er.nets.Conv(4)], "needs images"),
        ([er.nets.MaxPool(2, padding=2)], "at most half"),
        ([er.nets.Dropout(1.0)], "rate=1.0 of Dropout"),
        ([er.nets.BatchNorm(epsilon="x")], "epsilon='x' of BatchNorm"),
        ([er.nets.BatchNorm(2.0)], "momentum=2.0 of BatchNorm"),
        ([er.nets.Activation(["tanh"])], r"activation=\['tanh'\] is not known"),
        ([er.nets.Filter("sobel")], "kind='sobel'"),
        ([er.nets.Branch([])], "not empty"),
        ([er.nets.Residual([])], "layers of Residual must be a list of layers, not empty"),
        ([er.nets.Residual([er.nets.Conv(1)])], r"from samples of shape \(6, 6, 1\) to \(4, 4, 1\)"),
        ([er.nets.LayerNorm(0.0)], "epsilon=0.0 of LayerNorm"),
        ([er.nets.Dense(4), er.nets.Upsample(8, 8)], "put Reshape before it"),
        ([er.nets.Upsample(0, 8)], "height=0 must be"),
        ([er.nets.ConvTranspose(1, 1, padding=9)], "leaves nothing of an image"),
        ([er.nets.Reshape((5, 5, 1))], "gets samples of 36 numbers"),
    ],
)
def test_bad_layers_are_named(layers, words):
    with pytest.raises(er.errors.EmpiriskError, match=words):
        er.Network(layers, shape=(6, 6)).fit(np.zeros((3, 36)))
