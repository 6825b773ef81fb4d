"""Layers against slow obvious references, in all cases of stride and padding."""

import itertools

import jax
import numpy as np
import pytest

import empirisk as er
from empirisk.nets.layers import Pass
from empirisk.nets.plan import Plan
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
    plan = Plan([branch], (6, 6, 1), "linear", False, 0.0)
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


def test_batch_norm_goes_before_the_activation():
    plan = Plan([er.nets.Dense(3), er.nets.BatchNorm(), er.nets.Dense(2)], (4,), "relu", False, 0.5)
    kinds = [type(layer).__name__ for _, layer, _ in plan.steps]
    assert kinds == ["Dense", "BatchNorm", "Activation", "Dropout", "Dense", "Activation", "Dropout"]
    inside = Plan([er.nets.Dense(3)], (4,), "relu", True, 0.0)
    assert [type(layer).__name__ for _, layer, _ in inside.steps] == ["Dense", "BatchNorm", "Activation"]


@pytest.mark.parametrize(("init", "variance"), [("he", 2 / 300), ("glorot", 2 / 500), ("normal", 1 / 300)])
def test_first_weights_have_their_variance(init, variance):
    plan = Plan([er.nets.Dense(200)], (300,), "relu", False, 0.0)
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
    ],
)
def test_bad_layers_are_named(layers, words):
    with pytest.raises(er.errors.EmpiriskError, match=words):
        er.Network(layers, shape=(6, 6)).fit(np.zeros((3, 36)))
