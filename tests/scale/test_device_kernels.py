"""Kernels on a device, run by JAX on the processor: blocks, sums and fits are those of the processor's own code."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.linalg.accelerator import accelerator
from empirisk.scale.device_kernels import DeviceItems, SentItems, items_on
from tests.kernel_catalog import first_column, points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
KERNELS = [  # every operation of an expression is in one of them; tests of expressions have every kernel
    er.kernels.Gaussian("median").on([0]) * er.kernels.Linear().on([1, 2]) + 0.5 * er.kernels.Polynomial(2),
    er.kernels.exp(er.kernels.Laplacian(1.5).normalised()) + er.kernels.Centred(er.kernels.Laplacian(2.0, 2)),
    er.kernels.Anova(order=2).times(first_column) ** 2 + er.kernels.polynomial(er.kernels.Gaussian(), [1.0, 0.5]),
    er.maps.SeveralKernels([er.kernels.Gaussian().on([0]), er.kernels.Linear()]),
]


def the_device():
    with er.config(device="jax:cpu"):
        found = accelerator(1.0)
    assert found is not None
    return found


def test_blocks_and_sums_are_those_of_the_processor():
    device, others, V = the_device(), points("random", 37, seed=3), RNG.normal(size=(300, 2))
    for kernel in KERNELS:
        fitted = kernel.fit(X)
        A, B = fitted.prepare(X), fitted.prepare(others)
        expected = fitted.between(B, A)
        size = abs(expected).max()
        right, left = (DeviceItems.of(device, fitted.expression(items), np.float64) for items in (A, B))
        np.testing.assert_allclose(left.block(right), expected, rtol=1e-9, atol=1e-9 * size, err_msg=str(kernel))
        np.testing.assert_allclose(left.sums(right, V), expected @ V, atol=1e-7 * size, err_msg=str(kernel))
        some = np.array([5, 2, 250])
        np.testing.assert_allclose(
            left.take(some % 37).block(right.take(some)), expected[np.ix_(some % 37, some)], atol=1e-9 * size
        )
        single = left.block(DeviceItems.of(device, fitted.expression(A), np.float32))
        assert abs(single - expected).max() <= 1e-4 * size, kernel


def test_sums_over_items_that_fill_no_power_of_two():
    """Blocks end soon after the items, however many there are; both products of a block are made of it at once."""
    device, kernel = the_device(), er.kernels.Gaussian(2.0).fit(X)
    for rows, others in ((700, 300), (1100, 1300), (2100, 30)):
        A, B = RNG.normal(size=(rows, 3)), RNG.normal(size=(others, 3))
        left, right = (DeviceItems.of(device, kernel.expression(items), np.float64) for items in (A, B))
        K, c, scales = kernel(A, B), RNG.normal(size=others), RNG.random(rows)
        np.testing.assert_allclose(left.sums(right, c), K @ c, atol=1e-9)
        found, total = left.weighted_sums(right, c, 0.5, scales)
        np.testing.assert_allclose(found, K.T @ (scales * (K @ c + 0.5)), atol=1e-9)
        assert total == pytest.approx(float(scales @ (K @ c + 0.5)))


def test_items_that_a_device_does_not_hold_are_sent_in_parts(monkeypatch):
    device, V, scales = the_device(), RNG.normal(size=(300, 2)), RNG.random(300)
    kernel = er.kernels.Gaussian(1.0).fit(X)
    items, few = kernel.prepare(X), kernel.prepare(X[:20])
    held, basis = (items_on(device, kernel.expression(each), np.float64) for each in (items, few))
    monkeypatch.setitem(vars(device), "memory", 4 * 8 * X.size - 1)
    sent = items_on(device, kernel.expression(items), np.float64)
    assert isinstance(sent, SentItems)
    assert len(list(sent.parts())) == 2
    K = kernel.between(items)
    some = np.array([200, 3, 77])
    for left in (sent, held):
        np.testing.assert_allclose(left.block(sent), K, atol=1e-9)
        np.testing.assert_allclose(left.sums(sent, V), K @ V, atol=1e-9)
    np.testing.assert_allclose(sent.sums(held, V), K @ V, atol=1e-9)
    np.testing.assert_allclose(sent.take(some).block(held), K[some], atol=1e-9)
    c = RNG.normal(size=20)
    (found, total), (expected, whole) = (each.weighted_sums(basis, c, 0.5, scales) for each in (sent, held))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert total == pytest.approx(whole)
    for machine in (
        er.Ridge(C=2.0, features=er.kernels.Gaussian(1.0)),
        er.LogisticRegression(features=er.maps.Nystrom(er.kernels.Gaussian(1.0), rank=20, random_state=0)),
    ):
        target = y if hasattr(machine, "raw_predict") else y > 0
        here, values = machine.fit(X, target).certificate_, machine.predict(X)
        with er.config(device="jax:cpu"):
            there = machine.fit(X, target).certificate_
            again = machine.predict(X)
        assert there.converged
        assert abs(here.primal - there.primal) <= here.gap + there.gap
        np.testing.assert_allclose(again, values, atol=2e-2 * abs(values).max())
        assert "products on cpu:0" in there.reason


@pytest.mark.parametrize(
    "machine",
    [
        er.Ridge(C=2.0, features=er.kernels.Gaussian("median")),
        er.Ridge(C=2.0, features=er.kernels.Laplacian(2.0, 2), fit_intercept=False),
        er.SVR(C=2.0, features=er.kernels.Gaussian() + er.kernels.Linear()),
        er.SVM(features=er.kernels.Polynomial(3)),
        er.LogisticRegression(features=er.kernels.Laplacian(2.0)),
        er.OneClassSVM(features=er.kernels.Gaussian()),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_a_fit_is_that_of_the_processor_within_the_gaps(machine):
    target = y if hasattr(machine, "raw_predict") else np.where(y > 0, "up", "down")
    here = machine.fit(X, target).certificate_
    values = machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)
    with er.config(device="jax:cpu"):
        there = machine.fit(X, target).certificate_
        again = machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)
    assert there.converged
    assert there.relative_gap <= machine.tol
    assert abs(here.primal - there.primal) <= here.gap + there.gap
    assert "products on cpu:0" in there.reason
    assert "cpu:0" not in here.reason
    np.testing.assert_allclose(again, values, atol=2e-2 * abs(values).max())


def test_weights_count_rows_on_a_device():
    weights = RNG.integers(1, 3, size=60)
    machine = er.Ridge(features=er.kernels.Gaussian(1.0))
    with er.config(device="jax:cpu"):
        weighted = machine.fit(X[:60], y[:60], sample_weight=weights).predict(X)
        repeated = machine.fit(np.repeat(X[:60], weights, axis=0), np.repeat(y[:60], weights)).predict(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_what_cannot_run_there_runs_on_the_processor_and_the_certificate_says_so():
    words = ["ab", "abab", "ba", "bb", "bab", "aab"] * 3
    with er.config(device="jax:cpu"):
        machine = er.SVM(features=er.kernels.Spectrum(2)).fit(words, [len(word) % 2 for word in words])
    assert "on the processor, since it has no formula for cpu:0" in machine.certificate_.reason


def test_a_backend_that_does_not_start_is_a_sentence_for_networks_and_no_matter_for_others(monkeypatch):
    """A plugin for a device that is not there: JAX then starts nothing, not even the processor."""

    def failing():
        raise RuntimeError("Unable to initialize backend 'cuda': no devices (you may need to uninstall the plugin)")

    monkeypatch.setattr("jax.default_backend", failing)
    monkeypatch.setattr("jax.devices", lambda *_: failing())
    for device in ("auto", "gpu"):
        with er.config(device=device), pytest.raises(er.errors.EmpiriskError, match=r"set .* JAX_PLATFORMS=cpu"):
            er.Ridge(features=er.Network([2], epochs=1)).fit(X, y)
    with er.config(device="auto"):
        assert accelerator(1e18) is None


def test_a_device_that_is_not_there_is_named():
    words = r"device='gpu' is not there; JAX sees \['cpu'\]"
    with er.config(device="gpu"), pytest.raises(er.errors.EmpiriskError, match=words):
        er.Ridge(features=er.kernels.Gaussian()).fit(X, y)
    with er.config(device="gpu"), pytest.raises(er.errors.EmpiriskError, match=words):
        er.learn(X, y, machines=["ridge"])
    with er.config(device="cpu"):
        assert accelerator(1e18) is None
    with er.config(device="auto"):
        assert accelerator(1e18) is None  # JAX sees no accelerator here


def shell(tmp_path, *more):
    rows = tmp_path / "rows.csv"
    np.savetxt(rows, np.column_stack([X, y])[:90], delimiter=",", header="a,b,c,y", comments="")
    words = ["learn", rows, "--target", "y", "--machines", "kernel_ridge", "--folds", "2", "--out", tmp_path / "found"]
    return CliRunner().invoke(app, [*map(str, words), *more])


@pytest.mark.long
def test_the_shell_learns_on_a_device(tmp_path):
    found = shell(tmp_path, "--device", "jax:cpu")
    assert found.exit_code == 0, found.output
    assert "products on cpu:0" in er.load(tmp_path / "found.model").machine.certificate_.reason


def test_a_device_that_the_shell_does_not_find_is_a_sentence(tmp_path):
    found = shell(tmp_path, "--device", "gpu")
    assert found.exit_code != 0
    assert "device='gpu' is not there; JAX sees ['cpu']" in " ".join(found.output.split())


def test_a_stopped_fit_keeps_its_best_point():
    with er.config(device="jax:cpu", stop=lambda: True, interrupt="keep"), warnings.catch_warnings(action="ignore"):
        assert er.SVM(features=er.kernels.Gaussian()).fit(X, y > 0).stopped_ == "interrupted"
