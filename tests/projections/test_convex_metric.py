"""The contrastive losses of two margins and of triplets: formulas, and convex forms against semidefinite programs."""

import os
import signal
import threading
import time

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import EmpiriskError, TooLarge, Unsuitable
from empirisk.projections import convex_metric
from empirisk.projections.convex_metric import ConvexHinges, HeldProblem, MetricInteriorPoint
from empirisk.stop import Ending

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
    assert metric.stopped_ == proof.status == Ending.CONVERGED
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


def random_hinges(rng, strength, triplets):
    """Hinges of pairs, or of triplets beside their like pairs, of rows in three columns."""
    differences, amounts = rng.normal(size=(40, 3)), rng.uniform(size=40)
    if triplets:
        far = sparse.csr_array((-np.ones(20), (np.arange(20), np.arange(20, 40))), (20, 40))
        near = sparse.eye_array(20, 40, format="csr")
        signs = sparse.vstack([near, near + far], format="csr")
    else:
        signs = sparse.diags_array(np.repeat([1.0, -1.0], 20), format="csr")
    return ConvexHinges(differences, signs, np.repeat([-0.3, 2.0], 20), amounts, strength * np.eye(3))


@pytest.mark.parametrize("triplets", [False, True])
@pytest.mark.parametrize("strength", [0.0, 0.1])
def test_every_bound_is_one(strength, triplets):
    """Whatever the multipliers, the dual value is below the objective of every metric, and some are above zero."""
    rng = np.random.default_rng(0)
    problem = random_hinges(rng, strength, triplets)
    pushes = np.arange(40) >= 20
    tried = [
        problem.amounts * rng.uniform(size=40) * np.where(pushes, share, 1.0)
        for share in (1.0, 0.3, 0.1, 0.03)
        for _ in range(9)
    ]
    tried.append(problem.amounts * pushes)  # the objective without a metric, which others are below
    metrics = [scale * rng.normal(size=(3, 3)) for scale in (0.0, 0.1, 0.3, 1.0) for _ in range(20)]
    bounds = [problem.dual(multipliers) for multipliers in tried]
    assert 0 < max(bounds) <= min(problem.primal(P) for P in metrics)
    assert min(bounds) >= 0


@pytest.mark.parametrize("triplets", [False, True])
def test_directions_solve_newtons_equations(triplets, monkeypatch):
    """Factored or by conjugate gradients: products of complementary numbers are those wanted, to first order."""
    monkeypatch.setattr(convex_metric, "INEXACT", 1e-13)
    monkeypatch.setattr(convex_metric, "LEFT_OUT", 0.0)
    for most in (3000, 0):
        monkeypatch.setattr(convex_metric, "FACTORED", most)
        search = MetricInteriorPoint(
            HeldProblem.of(random_hinges(np.random.default_rng(0), 0.1, triplets)), np.eye(3), 1e-6
        )
        for _ in range(3):
            search.round()
        problem = search.problem
        Y = problem.slack(search.multipliers)
        values, vectors = np.linalg.eigh(search.factor.T @ Y @ search.factor)
        turn, diagonal = search.factor @ (vectors / values**0.25), np.sqrt(values)
        np.testing.assert_allclose(turn.T @ Y @ turn, np.diag(diagonal), atol=1e-12 * diagonal.max())
        images = problem.differences @ turn
        step = search._scaled(images)(diagonal, 1e-3, None)
        in_M = np.diag(diagonal) @ step.M + step.M @ np.diag(diagonal)
        in_Y = np.diag(diagonal) @ step.Y + step.Y @ np.diag(diagonal)
        scale = np.abs(in_M).max()
        np.testing.assert_allclose(in_M + in_Y, 2 * np.diag(1e-3 - diagonal**2), atol=1e-9 * scale)
        v, w, dv = search.multipliers, search.rest, step.multipliers
        np.testing.assert_allclose(v * step.beyond + dv * search.beyond, 1e-3 - v * search.beyond, atol=1e-9)
        np.testing.assert_allclose(w * step.above - dv * search.above, 1e-3 - w * search.above, atol=1e-9)
        moved = problem.signs @ np.einsum("ij,jk,ik->i", images, step.M, images)
        np.testing.assert_allclose(step.above - step.beyond, moved, atol=1e-9)
        np.testing.assert_allclose(problem.slack(v + dv), Y + np.linalg.inv(turn).T @ step.Y @ np.linalg.inv(turn))


def test_conjugate_gradients_come_to_the_same_optimum(data, monkeypatch):
    metric = er.ContrastiveMetric(loss="two_margins", convex=True)
    factored = metric.fit(*data).certificate_.primal
    monkeypatch.setattr(convex_metric, "FACTORED", 0)
    assert metric.fit(*data).certificate_.converged
    assert metric.certificate_.primal == pytest.approx(factored, rel=2e-5)


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
        assert metric.set_params(max_iter=1).fit(X, y).certificate_.status == Ending.MAX_ITER
    metric.set_params(max_iter=500)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert metric.set_params(max_time=0.5).fit(X, y).certificate_.status == Ending.MAX_TIME
    assert time.perf_counter() - begin < 1.6
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
        assert metric.set_params(max_time=None).fit(X, y).stopped_ == "interrupted"
    assert np.isfinite(metric.transform(X)).all()


def test_more_pairs_than_memory_are_refused():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    with er.config(memory="50MB"), pytest.raises(TooLarge, match="the 4498500 pairs of 3000 rows"):
        er.ContrastiveMetric(loss="two_margins").fit(X, X[:, 0] > 0)


# --- triplets ---------------------------------------------------------------------------------------------------------


def triplet_loss(Z, rows, amounts, alpha, beta, inner, margin):
    """The loss of triplets, as the formula says."""
    i, j, other = rows.T
    near, far = np.sum((Z[i] - Z[j]) ** 2, axis=1), np.sum((Z[i] - Z[other]) ** 2, axis=1)
    pulled, pushed = np.maximum(near - inner, 0), np.maximum(margin + near - far, 0)
    return (alpha * amounts @ pulled + beta * amounts @ pushed) / amounts.sum()


def triplet_optimum(X, rows, amounts, alpha, beta, inner, margin, strength):
    """The same over all M >= 0, as a semidefinite program."""
    i, j, other = rows.T
    M = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
    near, far = (cp.sum(cp.multiply((X[i] - X[k]) @ M, X[i] - X[k]), axis=1) for k in (j, other))
    loss = amounts @ (alpha * cp.pos(near - inner) + beta * cp.pos(margin + near - far)) / amounts.sum()
    problem = cp.Problem(cp.Minimize(loss + strength * cp.trace(M)))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


def class_triplets(y):
    return np.argwhere((y[:, None, None] == y[None, :, None]) & (y[:, None, None] != y[None, None, :]))


TRIPLETS = [
    {},
    {"similar_margin": 0.5, "margin": 2.0},
    {"alpha": 3.0, "beta": 0.5, "margin": 4.0},
    {"alpha": 0.0, "margin": 3.0, "strength": 0.05},
]


@pytest.mark.parametrize("settings", TRIPLETS, ids=repr)
def test_triplets_of_the_user_have_the_optimum_of_a_semidefinite_program(data, settings):
    X, _ = data
    rng = np.random.default_rng(1)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(150)])
    c = np.linspace(0.5, 2.0, len(X))
    metric = er.ContrastiveMetric(loss="triplets", convex=True, tol=1e-6, **settings)
    metric.fit(X, triplets=rows, sample_weight=c)
    proof, amounts = metric.certificate_, np.prod(c[rows], axis=1)
    numbers = metric.alpha, metric.beta, metric.similar_margin, metric.margin_
    truth = triplet_optimum(X, rows, amounts, *numbers, metric.strength)
    assert proof.converged
    assert proof.dual <= truth * (1 + 1e-7)
    assert proof.primal == pytest.approx(truth, rel=2e-6)
    here = triplet_loss(metric.transform(X), rows, amounts, *numbers) + metric.strength * np.sum(metric.components_**2)
    assert here == pytest.approx(proof.primal, rel=1e-9)
    assert (np.diff(metric.history_["objective"]) <= 0).all()


def test_triplets_of_classes_are_all_of_them(data):
    X, y = data[0][:16], data[1][:16]
    c = np.linspace(0.5, 2.0, len(y))
    rows = class_triplets(y)
    amounts = np.prod(c[rows], axis=1)
    metric = er.ContrastiveMetric(0.3, loss="triplets", convex=True, tol=1e-6).fit(X, y, sample_weight=c)
    far = np.sum((X[rows[:, 0]] - X[rows[:, 2]]) ** 2, axis=1)
    assert metric.margin_ == pytest.approx(amounts @ far / amounts.sum())
    truth = triplet_optimum(X, rows, amounts, 0.3, 1.0, 0.0, metric.margin_, 0.0)
    assert metric.certificate_.primal == pytest.approx(truth, rel=2e-6)
    assert metric.certificate_.dual <= truth * (1 + 1e-7)
    factor = er.ContrastiveMetric(0.3, loss="triplets").fit(X, y, sample_weight=c)
    for Z, value in zip((X, factor.transform(X)), factor.history_["objective"][[0, -1]], strict=True):
        assert triplet_loss(Z, rows, amounts, 0.3, 1.0, 0.0, factor.margin_) == pytest.approx(value, rel=1e-9)
    assert factor.history_["objective"][-1] >= metric.certificate_.dual
    assert factor.history_["objective"][-1] < factor.history_["objective"][0]


def test_a_row_of_weight_two_is_in_triplets_as_the_row_twice(data):
    X, y = data[0][:14], data[1][:14]
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    for convex in (True, False):
        metric = er.ContrastiveMetric(loss="triplets", convex=convex, tol=1e-7, margin=3.0)
        weighted = metric.fit(X, y, sample_weight=counts).history_["objective"][[0, -1]]
        repeated = metric.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).history_["objective"][[0, -1]]
        np.testing.assert_allclose(weighted, repeated, rtol=1e-6 if convex else 1e-3)


def test_the_convex_form_converges_where_multipliers_did_not():
    """Redundant columns, few rows in many columns, clouds apart, large offsets, unequal weights: all are certified."""
    for seed in range(4):
        X, y = make_classification(80, 8, random_state=seed)
        rng = np.random.default_rng(seed)
        blobs = rng.normal(scale=0.1, size=(30, 3)) + np.arange(30)[:, None] % 2
        weights = 10.0 ** rng.uniform(-3, 3, 30)
        for rows, classes, c in [
            (X, y, None),
            (rng.normal(size=(10, 12)), np.arange(10) % 2, None),
            (blobs, np.arange(30) % 2, None),
            (blobs + 1e6, np.arange(30) % 2, weights),
            (np.round(3 * blobs), rng.integers(0, 2, 30), weights),
        ]:
            for loss in ("two_margins", "triplets"):
                rows, classes = rows[:30], classes[:30]
                weight = None if c is None else c[:30]
                metric = er.ContrastiveMetric(loss=loss, convex=True).fit(rows, classes, sample_weight=weight)
                assert metric.certificate_.converged


def test_what_nothing_holds_is_had_for_nothing():
    """Where no like rows differ, unlike ones may be as far apart as they need: the optimum is proved to be zero."""
    X = np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0], [1.0, 3.0, 0.0]])
    for loss in ("two_margins", "triplets"):
        metric = er.ContrastiveMetric(loss=loss, convex=True, margin=5.0).fit(X, [0, 0, 1, 1])
        assert metric.certificate_.primal == pytest.approx(0.0, abs=1e-10)
        assert metric.certificate_.converged
        assert metric.components_.shape == (3, 3)
        Z = metric.transform(X)
        assert np.sum((Z[0] - Z[2]) ** 2) >= 5.0 * (1 - 1e-9)


def test_triplets_that_make_no_sense_are_refused(data):
    X, y = data
    metric = er.ContrastiveMetric(loss="triplets")
    for given, match in [
        ({"triplets": [[0, 1]]}, r"triplets has shape \(1, 2\); give row numbers of X in three columns"),
        ({"triplets": [[0, 1, 99]]}, "triplets names the row 99; X has 36 rows"),
        ({"similar": [[0, 1]], "dissimilar": [[0, 2]]}, "triplets belongs to loss='triplets'"),
        ({"similar": [[0, 1]], "triplets": [[0, 1, 2]]}, "not both"),
        ({"triplets": [[0, 1, 2]], "sample_weight": np.arange(36.0)}, "leaves no triplet with weight"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            metric.fit(X, **given)
    with pytest.raises(EmpiriskError, match="triplets belongs to loss='triplets'"):
        er.ContrastiveMetric().fit(X, triplets=[[0, 1, 2]])
    with pytest.raises(Unsuitable, match="alpha=0 and strength=0"):
        er.ContrastiveMetric(0.0, loss="triplets", convex=True).fit(X, y)
    many = np.random.default_rng(0).normal(size=(900, 2))
    with er.config(memory="50MB"), pytest.raises(TooLarge, match="triplets of 900 rows"):
        er.ContrastiveMetric(loss="triplets").fit(many, many[:, 0] > 0)


def test_a_fit_without_digits_left_says_so(data):
    metric = er.ContrastiveMetric(0.1, loss="triplets", convex=True, tol=0.0, margin=3.0)
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        metric.fit(data[0][:20], data[1][:20])
    assert metric.stopped_ == metric.certificate_.status == Ending.STALLED
    assert metric.certificate_.relative_gap < 1e-7
