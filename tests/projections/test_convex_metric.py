"""The contrastive loss of two margins: its formula, and its convex form against a semidefinite program."""

import os
import signal
import threading
import time

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.certificate import Status
from empirisk.errors import TooLarge
from empirisk.projections.convex_metric import PairHinges

pytestmark = pytest.mark.row("N2")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(36) % 2
    X = rng.normal(size=(36, 3)) * [0.7, 1.0, 3.0]
    X[:, 0] += 1.5 * y
    return X, y


def two_margins(Z, y, c, alpha, beta, inner, outer):
    """The loss of all pairs, as the formula says."""
    same, pairs = y[:, None] == y, c[:, None] * c
    D = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    pulled, pushed = np.maximum(D - inner, 0), np.maximum(outer - D, 0)
    return (
        alpha * np.sum((pairs * pulled)[same]) / pairs[same].sum()
        + beta * np.sum((pairs * pushed)[~same]) / pairs[~same].sum()
    )


def optimum(X, y, c, alpha, beta, inner, outer, strength):
    """The same over all M >= 0, as a semidefinite program."""
    i, j = np.nonzero(np.ones((len(X), len(X))))
    same, amounts, D = y[i] == y[j], c[i] * c[j], X[i] - X[j]
    M = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
    squares = cp.sum(cp.multiply(D @ M, D), axis=1)
    like, unlike = np.flatnonzero(same), np.flatnonzero(~same)
    loss = (
        alpha * amounts[like] @ cp.pos(squares[like] - inner) / amounts[like].sum()
        + beta * amounts[unlike] @ cp.pos(outer - squares[unlike]) / amounts[unlike].sum()
    )
    problem = cp.Problem(cp.Minimize(loss + strength * cp.trace(M)))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("settings", [
    {},
    {"similar_margin": 0.5, "margin": 2.0},
    {"alpha": 3.0, "beta": 0.5, "similar_margin": 1.0, "margin": 4.0},
    {"similar_margin": 0.2, "margin": 3.0, "strength": 0.05},
], ids=repr)  # fmt: skip
def test_the_convex_form_is_the_optimum_of_a_semidefinite_program(data, settings):
    X, y = data
    c = np.linspace(0.5, 2.0, len(y))
    metric = er.ContrastiveMetric(loss="two_margins", convex=True, tol=1e-6, **settings).fit(X, y, sample_weight=c)
    proof = metric.certificate_
    numbers = metric.alpha, metric.beta, metric.similar_margin, metric.margin_
    truth = optimum(X, y, c, *numbers, metric.strength)
    assert proof.converged
    assert metric.stopped_ == proof.status == Status.CONVERGED
    assert proof.relative_gap <= 1e-6
    assert proof.dual <= truth * (1 + 1e-7)
    assert proof.primal == pytest.approx(truth, rel=2e-6)
    here = two_margins(metric.transform(X), y, c, *numbers) + metric.strength * np.sum(metric.components_**2)
    assert here == pytest.approx(proof.primal, rel=1e-9)
    values = metric.history_["objective"]
    assert (np.diff(values) <= 0).all()


def test_the_form_in_P_starts_at_the_formula_and_is_no_better(data):
    X, y = data
    factor = er.ContrastiveMetric(loss="two_margins", similar_margin=0.5, margin=4.0).fit(X, y)
    convex = er.ContrastiveMetric(loss="two_margins", similar_margin=0.5, margin=4.0, convex=True).fit(X, y)
    ones = np.ones(len(y))
    for Z, value in zip((X, factor.transform(X)), factor.history_["objective"][[0, -1]], strict=True):
        assert two_margins(Z, y, ones, 1.0, 1.0, 0.5, 4.0) == pytest.approx(value, rel=1e-9)
    assert factor.history_["objective"][-1] >= convex.certificate_.dual
    assert not hasattr(factor, "certificate_")
    assert factor.margin_ == 4.0


def test_fewer_components_are_graded_as_they_are(data):
    X, y = data
    settings = {"loss": "two_margins", "margin": 6.0, "similar_margin": 2.0, "convex": True}
    whole = er.ContrastiveMetric(**settings).fit(X, y)
    part = er.ContrastiveMetric(**settings, n_components=1).fit(X, y)
    assert part.components_.shape == (1, 3)
    values, vectors = np.linalg.eigh(whole.components_.T @ whole.components_)
    np.testing.assert_allclose(np.abs(part.components_[0]), np.abs(values[-1] ** 0.5 * vectors[:, -1]), atol=1e-8)
    loss = two_margins(part.transform(X), y, np.ones(len(y)), 1.0, 1.0, 2.0, 6.0)
    assert part.certificate_.primal == pytest.approx(loss)
    assert part.certificate_.dual == whole.certificate_.dual
    assert not part.certificate_.converged


def test_every_bound_is_one(data):
    """Whatever the multipliers, the dual value is below the objective of every metric."""
    X, y = data
    i, j = np.triu_indices(len(y), 1)
    rng = np.random.default_rng(0)
    for strength in (0.0, 0.1):
        problem = PairHinges(X[i] - X[j], y[i] == y[j], rng.uniform(size=len(i)), 0.3, 2.0, np.full(3, strength))
        bounds = [problem.dual(rng.uniform(size=len(i)) ** power) for power in (0.1, 1, 5, 20)]
        metrics = [scale * rng.normal(size=(3, 3)) for scale in (0.0, 0.1, 0.3, 1.0) for _ in range(20)]
        assert max(bounds) <= min(problem.primal(P) for P in metrics)
        assert min(bounds) >= 0


def test_the_gradient_of_the_rounded_hinges(data):
    X, y = data
    i, j = np.triu_indices(len(y), 1)
    rng = np.random.default_rng(0)
    problem = PairHinges(X[i] - X[j], y[i] == y[j], rng.uniform(size=len(i)), 0.3, 2.0, np.full(3, 0.1))
    P, multipliers = rng.normal(size=(3, 3)), rng.uniform(size=len(i))
    _, gradient = problem.rounded(P, multipliers, 0.2)
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        ends = [problem.rounded(P + sign * step, multipliers, 0.2)[0] for sign in (-1, 1)]
        assert gradient[place] == pytest.approx((ends[1] - ends[0]) / 2e-6, rel=1e-5)


def test_weights_units_and_sparse_rows_change_nothing(data):
    X, y = data
    metric = er.ContrastiveMetric(loss="two_margins", convex=True, margin=3.0)
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = metric.fit(X, y, sample_weight=counts).certificate_.primal
    repeated = metric.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).certificate_.primal
    assert weighted == pytest.approx(repeated, rel=2e-5)
    plain = metric.fit(X, y).certificate_.primal
    assert metric.fit(X * [1e3, 1.0, 1e-3], y).certificate_.primal == pytest.approx(plain, rel=2e-5)
    assert metric.fit(sparse.csr_array(X), y).certificate_.primal == pytest.approx(plain, rel=2e-5)
    assert metric.fit(X.astype(np.float32), y).components_.dtype == np.float32


def test_pairs_of_the_user_and_a_model_file(data, tmp_path):
    X, _ = data
    similar, dissimilar = [[0, 2], [4, 6], [1, 3]], [[0, 1], [2, 3], [4, 5]]
    metric = er.ContrastiveMetric(loss="two_margins", convex=True, strength=0.01)
    metric.fit(X, similar=similar, dissimilar=dissimilar)
    assert metric.certificate_.converged
    er.save(metric, tmp_path / "metric.model")
    again = er.load(tmp_path / "metric.model")
    np.testing.assert_array_equal(again.transform(X), metric.transform(X))
    assert again.certificate_.gap == metric.certificate_.gap


def test_limits_and_ctrl_c():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    metric = er.ContrastiveMetric(loss="two_margins", convex=True, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert metric.set_params(max_iter=1).fit(X, y).certificate_.status == Status.ITERATIONS
    metric.set_params(max_iter=500)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert metric.set_params(max_time=0.5).fit(X, y).certificate_.status == Status.TIME
    assert time.perf_counter() - begin < 1.6
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        assert metric.set_params(max_time=None).fit(X, y).stopped_ == "interrupted"
    assert np.isfinite(metric.transform(X)).all()


def test_more_pairs_than_memory_are_refused():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    with er.config(memory="50MB"), pytest.raises(TooLarge, match="the 4498500 pairs of 3000 rows"):
        er.ContrastiveMetric(loss="two_margins").fit(X, X[:, 0] > 0)
