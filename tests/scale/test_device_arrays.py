"""Rows that lie on a device, run by JAX on the processor: they stay there, and answers are arrays of the same kind."""

import copy
import pickle
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.scale.device_rows import HeldRows

RNG = np.random.default_rng(0)
ROWS, WIDTH = 400, 29  # a width that nothing else has
X = (RNG.normal(size=(ROWS, WIDTH)) + 2.0).astype(np.float32)
numbers = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
classes = np.digitize(numbers, np.quantile(numbers, [0.3, 0.6]))
MEDIAN = er.kernels.Gaussian("median")
NYSTROM = er.maps.Nystrom(MEDIAN, rank=20, random_state=0)
MACHINES = {
    "ridge": er.Ridge(),
    "least squares": er.LeastSquares(),
    "lasso": er.Lasso(),
    "logistic": er.LogisticRegression(),
    "svm": er.SVM(),
    "svr": er.SVR(),
    "kernel ridge": er.Ridge(features=MEDIAN),
    "kernel logistic": er.LogisticRegression(features=MEDIAN),
    "kernel svm": er.SVM(features=MEDIAN, multiclass="one_vs_one"),
    "kernel svr": er.SVR(features=MEDIAN.on([0, 1]) * er.kernels.Linear() + er.kernels.Polynomial(2).normalised()),
    "one class": er.OneClassSVM(features=MEDIAN),
    "nystrom ridge": er.Ridge(features=NYSTROM),
    "nystrom by leverage": er.Ridge(features=clone(NYSTROM).set_params(landmarks="leverage")),
    "nystrom svm": er.SVM(features=NYSTROM),
    "fourier": er.LogisticRegression(features=er.maps.RandomFourier(MEDIAN, rank=20, random_state=0)),
    "nystrom": NYSTROM,
    "k-means": er.KMeans(3, random_state=0),
    "k-means behind a kernel": er.KMeans(3, features=MEDIAN, random_state=0),
    "mixture": er.GaussianMixture(2, random_state=0),
    "tied mixture": er.GaussianMixture(2, covariance_type="tied", init="random", random_state=0),
    "pca": er.PCA(2),
    "kernel pca": er.PCA(2, features=MEDIAN),
    "neighbours": er.KNNClassifier(3),
    "neighbours by distance": er.KNNRegressor(3, weights="distance"),
    "neighbours behind a kernel": er.KNNClassifier("loo", features=MEDIAN),
}
ANSWERS = ("predict", "decision_function", "predict_proba", "transform", "score_samples", "raw_predict", "kneighbors")


@dataclass
class Crossings:
    """The arrays that came from a device to memory since the last look: how many of their rows are as wide as X."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def note(self, array):
        if isinstance(array, (jax.Array, HeldRows)):
            self.shapes.append(array.shape)

    def rows(self) -> int:
        wide = [shape[0] for shape in self.shapes if len(shape) == 2 and shape[1] in (WIDTH, WIDTH + 1)]
        self.shapes.clear()
        return max(wide, default=0)


@pytest.fixture
def crossings(monkeypatch):
    """What NumPy takes from a device: all ways there are, `numpy.asarray`, `numpy.array` and the rows' own."""
    seen = Crossings()

    def noted(take):
        def call(array, *args, **kwargs):
            seen.note(array)
            return take(array, *args, **kwargs)

        return call

    for owner, name in ((np, "asarray"), (np, "array"), (HeldRows, "__array__")):
        monkeypatch.setattr(owner, name, noted(getattr(owner, name)))
    # Samples of the rows, by which kernels and maps learn, are few beside all of them in larger tables alone.
    monkeypatch.setattr("empirisk.kernels.vectors.SAMPLE", 40)
    monkeypatch.setattr("empirisk.maps.streamed.SAMPLE", 40)
    return seen


def fitted(machine, rows):
    regresses = isinstance(machine, (er.Ridge, er.Lasso, er.SVR, er.LeastSquares, er.KNNRegressor))
    return clone(machine).fit(rows, numbers if regresses else classes)


def each(machines, quick):
    """The names of machines, of which those take long that are not listed: what they run, another one runs too."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.long) for name in machines]


QUICK = "ridge", "lasso", "svm", "kernel svr", "nystrom by leverage", "k-means", "tied mixture", "pca", "neighbours"


@pytest.mark.parametrize("name", each(MACHINES, QUICK))
def test_rows_on_a_device_stay_there(name, crossings):
    """No copy of them comes to memory, by a fit or by an answer; what comes out is what rows in memory give."""
    machine = MACHINES[name]
    here = fitted(machine, X)
    with er.config(device="jax:cpu"):
        rows = jnp.asarray(X)
        there = fitted(machine, rows)
        assert crossings.rows() <= ROWS // 5
        for answer in ANSWERS:
            if not hasattr(there, answer):
                continue
            found, expected = (getattr(one, answer)(given) for one, given in ((there, rows), (here, X)))
            found, expected = (given[0] if isinstance(given, tuple) else given for given in (found, expected))
            assert crossings.rows() <= ROWS // 5, answer
            assert isinstance(found, jax.Array), answer
            if np.asarray(expected).dtype.kind in "iu":  # of classes, those of rows on a border may differ
                assert np.mean(np.asarray(found) != expected) <= 0.01, answer
            else:
                np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max(), err_msg=answer)


def test_a_copy_would_be_seen(crossings):
    """The counter counts: a machine that has no code for devices copies the rows."""
    with er.config(device="jax:cpu"):
        er.TreeClassifier(max_depth=2).fit(jnp.asarray(X), classes)
    assert crossings.rows() == ROWS


class Tensor:
    """Rows as torch has them on an accelerator: nothing gives their numbers but DLPack."""

    __module__ = "torch"
    dtype, device, ndim = "torch.float32", "cuda:0", 2

    def __init__(self, rows):
        self._rows, self.shape = rows, rows.shape
        self.__dlpack__, self.__dlpack_device__ = rows.__dlpack__, rows.__dlpack_device__

    def detach(self):
        return self._rows

    def cpu(self):
        raise AssertionError("the rows came to memory")

    def __len__(self):
        return len(self._rows)

    def __array__(self, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


TORCH = "ridge", "kernel svm", "nystrom ridge", "k-means", "mixture", "pca", "neighbours"


@pytest.mark.parametrize("name", each(TORCH, ("ridge", "k-means")))
def test_rows_of_torch_stay_where_they_are(name, monkeypatch):
    """Nothing asks NumPy for an array of torch, which has none of those on an accelerator."""
    asked = []
    torch = SimpleNamespace(Tensor=Tensor, asarray=lambda answers, device: asked.append(device) or answers)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with er.config(device="jax:cpu"):
        rows = Tensor(jnp.asarray(X))
        machine = fitted(MACHINES[name], rows)
        for answer in ANSWERS:
            if hasattr(machine, answer):
                getattr(machine, answer)(rows)
        if hasattr(machine, "score") and name != "pca":
            machine.score(rows, numbers if name in ("ridge", "nystrom ridge") else classes)
    assert set(asked) == {"cuda:0"}


def test_models_of_rows_on_a_device_are_kept_and_answer_for_rows_anywhere(tmp_path):
    for machine in (er.KNNRegressor(3), er.PCA(2, features=MEDIAN)):
        with er.config(device="jax:cpu"):
            there = fitted(machine, jnp.asarray(X))
            answer = there.transform if hasattr(there, "transform") else there.predict
            expected = np.asarray(answer(jnp.asarray(X)))
        er.save(there, tmp_path / "model.er")
        for one in (there, er.load(tmp_path / "model.er"), pickle.loads(pickle.dumps(there)), copy.deepcopy(there)):
            answer = one.transform if hasattr(one, "transform") else one.predict
            np.testing.assert_allclose(answer(X), expected, atol=1e-3 * np.abs(expected).max())
            assert type(answer(X)) is np.ndarray


def test_a_kernel_that_reads_rows_takes_them_to_memory():
    def first(rows):
        return 1 + rows[:, 0] ** 2

    for kernel in (er.kernels.Gaussian(2.0).times(first), er.kernels.Centred(er.kernels.Linear())):
        machine = er.Ridge(features=kernel)
        expected = machine.fit(X, numbers).predict(X)
        with er.config(device="jax:cpu"):
            found = machine.fit(jnp.asarray(X), numbers).predict(jnp.asarray(X))
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_rows_on_a_device_are_checked_there():
    machines = (
        er.Ridge(),
        er.SVM(features="gaussian"),
        er.KMeans(2),
        er.GaussianMixture(2),
        er.KNNClassifier(1),
        NYSTROM,
    )
    with er.config(device="jax:cpu"):
        rows = jnp.asarray(X)
        for machine in machines:
            with pytest.raises(er.errors.EmpiriskError, match="X contains NaN or infinity"):
                fitted(machine, rows.at[3, 1].set(jnp.nan))
            one = fitted(machine, rows)
            with pytest.raises(ValueError, match=f"X has 3 features, but .* is expecting {WIDTH}"):
                (one.predict if hasattr(one, "predict") else one.transform)(rows[:, :3])
        with pytest.raises(er.errors.EmpiriskError, match="complex numbers"):
            er.Ridge().fit(rows.astype(jnp.complex64), numbers)
        whole = er.Ridge().fit(jnp.round(rows).astype(jnp.int32), numbers).coef_
    np.testing.assert_allclose(whole, er.Ridge().fit(np.round(X), numbers).coef_, rtol=1e-6)


def test_words_are_answered_as_words():
    words = np.array(["a", "b", "c"])[classes]
    with er.config(device="jax:cpu"):
        machine = er.LogisticRegression().fit(jnp.asarray(X), words)
        assert machine.score(jnp.asarray(X), words) == machine.score(X, words)
        assert machine.predict(jnp.asarray(X)).dtype.kind == "U"
    assert isinstance(er.KMeans(2, random_state=0).fit(X).predict(jnp.asarray(X)), jax.Array)  # wherever it is computed


def test_neighbours_in_doubt_are_found_in_double_precision():
    """A far row takes all digits of float32 from the others, and then those of float64; equal rows keep their order."""
    rows = np.concatenate([RNG.normal(size=(150, 6)), RNG.normal(size=(150, 6)) * 1e-9 + 5.0, [[1e12] * 6]])
    rows = np.concatenate([rows, rows[:40]])
    expected = er.KNNRegressor(4).fit(rows, np.arange(len(rows))).kneighbors(rows)
    with er.config(device="jax:cpu"), jax.enable_x64(True):
        there = jnp.asarray(rows)
        found = er.KNNRegressor(4).fit(there, np.arange(len(rows))).kneighbors(there)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-300)
    np.testing.assert_array_equal(found[1], expected[1])


def test_clusters_of_equal_and_weighted_rows():
    """Doubts, empty clusters and weights are settled as in memory."""
    rows = np.repeat(RNG.normal(size=(60, 2)), 3, axis=0)
    weights = RNG.integers(0, 3, size=180).astype(float)
    for init in ("splitting", "box", rows[:5] + 0.1):
        machine = er.KMeans(5, init=init, n_init=2, random_state=0)
        if not isinstance(init, str):
            machine.set_params(n_init=1)
        expected = clone(machine).fit(rows, sample_weight=weights)
        with er.config(device="jax:cpu"), jax.enable_x64(True):
            found = clone(machine).fit(jnp.asarray(rows), sample_weight=weights)
        assert found.inertia_ == pytest.approx(expected.inertia_, rel=1e-9)
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, atol=1e-9)
