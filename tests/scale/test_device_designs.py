"""Dense data and streamed maps on a device, run by JAX on the processor: the products and the fits of the processor."""

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.linalg import factor
from empirisk.linalg.accelerator import accelerator
from empirisk.linalg.design import DenseDesign
from empirisk.maps.streamed import StreamedDesign
from empirisk.scale import device_dense, device_features
from empirisk.scale.device_dense import DeviceDense, SentDense

RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 4)) + 3.0
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=300)
MAPS = [
    er.maps.Nystrom(er.kernels.Gaussian(2.0), rank=30, random_state=0),
    er.maps.RandomFourier(er.kernels.Gaussian(2.0), rank=30, random_state=0),
]


def the_device():
    with er.config(device="jax:cpu"):
        found = accelerator(1.0)
    assert found is not None
    return found


def pairs():
    """A design on the device, and its twin in memory."""
    device = the_device()
    yield DeviceDense(device, X), DenseDesign(X)
    for features in MAPS:
        fitted = features.fit(X)
        items = fitted._items(X)[1]
        yield device_features.streamed_design(device, fitted, items), StreamedDesign(fitted, items)


def test_products_are_those_in_memory():
    weights = np.where(RNG.random(300) < 0.5, 0.0, RNG.random(300))
    for there, here in pairs():
        chosen = np.array([4, 2, 200])
        for one, other in ((there, here), (there.centred(), here.centred()), (there.rows(chosen), here.rows(chosen))):
            rows, columns = other.shape
            assert one.shape == other.shape
            w, u = RNG.normal(size=(columns, 2)), RNG.normal(size=rows)
            near = {"rtol": 1e-8, "atol": 1e-8}
            np.testing.assert_allclose(one.dot(w), other.dot(w), **near)
            np.testing.assert_allclose(one.predict(w[:, 0], 2.0), other.predict(w[:, 0], 2.0), **near)
            np.testing.assert_allclose(one.tdot(u), other.tdot(u), **near)
            np.testing.assert_allclose(one.gram(weights[:rows]), other.gram(weights[:rows]), **near)
            curved = [design.curved_product(w[:, 0], 2.0, weights[:rows]) for design in (one, other)]
            for found, expected in zip(*curved, strict=True):
                np.testing.assert_allclose(found, expected, **near)
            np.testing.assert_allclose(one.squared_columns(), other.squared_columns(), **near)
            # What float32 rounds are k(x, z) <= 1 and the entries of the projected weights.
            inward = getattr(one, "_inward", lambda w: w)(w)
            np.testing.assert_allclose(one.rough.dot(w), other.dot(w), atol=1e-6 * np.abs(inward).sum())
            np.testing.assert_allclose(one.X, other.X, **near)


@pytest.mark.parametrize("features", [None, *MAPS], ids=["dense", "nystrom", "fourier"])
def test_a_fit_is_that_of_the_processor_within_the_gaps(features):
    for machine in (er.Ridge(C=2.0), er.LogisticRegression(), er.SVM(), er.LeastSquares()):
        machine.set_params(features=features)
        target = y if hasattr(machine, "raw_predict") else y > np.median(y)
        here = machine.fit(X, target).certificate_
        with er.config(device="jax:cpu"):
            there = machine.fit(X, target).certificate_
            assert len(machine.predict(X)) == 300
        assert there.converged
        assert abs(here.primal - there.primal) <= here.gap + there.gap, machine
        assert "products on cpu:0" in there.reason


def test_rows_that_a_device_does_not_hold_are_sent_in_blocks(monkeypatch):
    """For normal matrices of many columns, which are worth the way; the fits are those of the processor."""
    wide = RNG.normal(size=(250, 70)) + 5.0
    target, weights = wide[:, 0] + RNG.normal(size=250), RNG.integers(0, 3, 250).astype(float)
    device = the_device()
    monkeypatch.setitem(vars(device), "memory", 32 * wide.size - 1)
    monkeypatch.setattr(device_dense, "SENT", 8 * 70 * 60)
    there, here = device.dense_design(wide), DenseDesign(wide)
    assert isinstance(there, SentDense)
    for one, other in ((there, here), (there.centred(), here.centred()), (there.rows(slice(9)), here.rows(slice(9)))):
        some = weights[: other.shape[0]]
        np.testing.assert_allclose(one.gram(), other.gram(), rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(one.gram(some), other.gram(some), rtol=1e-10, atol=1e-9)
    for machine in (er.Ridge(C=2.0), er.LogisticRegression(C=0.1)):
        labels = target if hasattr(machine, "raw_predict") else target > np.median(target)
        expected = machine.fit(wide, labels, sample_weight=weights).certificate_
        with er.config(device="jax:cpu"):
            found = machine.fit(wide, labels, sample_weight=weights).certificate_
        assert found.converged
        assert abs(found.primal - expected.primal) <= found.gap + expected.gap
        assert "normal matrices on cpu:0, to which blocks of rows are sent" in found.reason
    directions = er.PCA(2).fit(wide).components_
    with er.config(device="jax:cpu"):
        np.testing.assert_allclose(er.PCA(2).fit(wide).components_, directions, atol=1e-8)


def test_many_columns_are_solved_by_products(monkeypatch):
    monkeypatch.setattr(factor, "STREAMED", 20)
    machine = er.Ridge(C=2.0, features=MAPS[0])
    here = machine.fit(X, y).predict(X)
    with er.config(device="jax:cpu"):
        there = machine.fit(X, y)
    assert there.certificate_.converged
    np.testing.assert_allclose(there.predict(X), here, atol=1e-4)


def test_a_triangular_root_of_landmarks_gives_the_same_kernel():
    kernel = er.kernels.Gaussian(1.0)
    root = the_device().inverse_root(kernel, X[:40])
    np.testing.assert_allclose(root @ root.T @ kernel(X[:40]), np.eye(40), atol=1e-6)
    assert the_device().inverse_root(kernel, X[[0, 0]]) is None  # singular


def test_machines_without_a_target_are_those_of_the_processor():
    for machine in (er.PCA(2), er.KMeans(3, random_state=0), er.GaussianMixture(2, random_state=0)):
        here = machine.fit(X)
        found = {
            name: getattr(here, name) for name in ("components_", "cluster_centers_", "means_") if hasattr(here, name)
        }
        with er.config(device="jax:cpu"):
            there = machine.fit(X)
        for name, value in found.items():
            np.testing.assert_allclose(getattr(there, name), value, atol=1e-8)


def test_many_machines_behind_a_kernel_are_solved_side_by_side():
    """One against one: each certified, the same bits on any number of threads, and the processor's within the gaps."""
    classes = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    machine = er.SVM(features=er.kernels.Gaussian(1.0), multiclass="one_vs_one", tol=1e-6)
    expected = machine.fit(X, classes)
    found = []
    for threads in (1, 3):
        with er.config(device="jax:cpu", threads=threads):
            found.append(clone(machine).fit(X, classes))
    assert found[0].certificate_.converged
    np.testing.assert_array_equal(found[0].dual_coef_, found[1].dual_coef_)
    assert found[0].certificate_.primal == pytest.approx(expected.certificate_.primal, rel=2e-6)
    assert "products on cpu:0" in found[0].certificate_.reason


def test_rows_of_jax_stay_where_they_are(monkeypatch):
    import jax.numpy as jnp

    def taken(self):
        raise AssertionError("the rows came to memory")

    for machine, target in ((er.Ridge(C=2.0), y), (er.LogisticRegression(), y > np.median(y))):
        expected = machine.fit(X.astype(np.float32), target).coef_
        with er.config(device="jax:cpu"), monkeypatch.context() as patched:
            patched.setattr(DeviceDense, "X", property(taken))
            machine.fit(jnp.asarray(X, jnp.float32), target)
        np.testing.assert_allclose(machine.coef_, expected, rtol=1e-5, atol=1e-7)
        assert "products on cpu:0" in machine.certificate_.reason
    expected = er.PCA(2).fit(X.astype(np.float32)).components_
    monkeypatch.setattr("empirisk.projections.pca.SMALL", 0)  # what is small is decomposed in memory
    with er.config(device="jax:cpu"), monkeypatch.context() as patched:
        patched.setattr(DeviceDense, "X", property(taken))
        found = er.PCA(2).fit(jnp.asarray(X, jnp.float32)).components_
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32
    with er.config(device="jax:cpu"), pytest.raises(er.errors.EmpiriskError, match="X contains NaN"):
        er.Ridge().fit(jnp.full((3, 2), jnp.nan), np.arange(3.0))
