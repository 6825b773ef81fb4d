"""Kernels that learn their metric: gradients by differences, rounds by brute force."""

import os
import signal
import threading
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import Unsuitable
from empirisk.kernels import Gaussian, Laplacian, exp, polynomial
from empirisk.linalg.hashes import row_hashes
from empirisk.projections import learned_kernel_rounds
from tests.estimator_checks import check_contract

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(160, 4))
F = np.sin(2 * (X[:, 0] + X[:, 1])) + 0.05 * RANDOM.normal(size=160)
RADIAL = [
    Gaussian(1.3),
    Laplacian(1.7, norm=2),
    Gaussian(1.3) + 0.5 * Laplacian(2.0, norm=2),
    Gaussian(1.3) * Laplacian(2.0, norm=2),
    Laplacian(2.0, norm=2) ** 3,
    Gaussian(1.0) ** 0,
    exp(Gaussian(2.0)),
    polynomial(Gaussian(2.0), [1.0, 0.5, 2.0]),
]


def gradients(function, rows, step=1e-5):
    """The gradient of a function at some rows, by central differences: rows x outputs x columns."""
    found = []
    for j in range(rows.shape[1]):
        shift = step * np.eye(rows.shape[1])[j]
        found.append((function(rows + shift) - function(rows - shift)).reshape(len(rows), -1) / (2 * step))
    return np.stack(found, axis=2)


def metric_of(function, weights, deviation=1.0):
    slopes = gradients(function, X) / deviation
    outer = np.einsum("i,ikj,ikl->jl", weights, slopes, slopes)
    return outer * len(outer) / np.trace(outer)


@pytest.mark.row("K18")
@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_slopes_are_gradients(kernel):
    Z = RANDOM.normal(size=(7, 4))
    found = kernel.radial_slopes(kernel.prepare(X[:5]), kernel.prepare(Z))[:, :, None] * (X[:5, None] - Z)
    assert found == pytest.approx(gradients(lambda rows: kernel(rows, Z), X[:5]), abs=1e-8)


@pytest.mark.row("K18")
@pytest.mark.parametrize("kernel", ["gaussian", Laplacian(2.0, norm=2) + Gaussian(1.0)])
def test_the_metric_is_the_mean_outer_product_of_gradients(kernel):
    weights = RANDOM.integers(1, 4, len(X)).astype(float)
    machine = er.Ridge(C=5.0, features=er.LearnedKernel(kernel, rounds=1)).fit(X, F, weights)
    plain = er.Ridge(C=5.0, features=er.LearnedKernel(kernel, rounds=0)).fit(X, F, weights)
    assert machine.features_.n_rounds_ == 1
    assert np.array_equal(plain.features_.metric_, np.eye(4))
    assert machine.features_.metric_ == pytest.approx(metric_of(plain.predict, weights), rel=1e-4, abs=1e-6)
    diagonal = er.Ridge(C=5.0, features=er.LearnedKernel(kernel, 1, "diagonal")).fit(X, F, weights).features_
    assert diagonal.metric_ == pytest.approx(np.diag(machine.features_.metric_.diagonal()), rel=1e-6, abs=1e-12)


def test_rounds_are_judged_by_leaving_one_out():
    machine = er.Ridge(C=5.0, features=er.LearnedKernel("gaussian")).fit(X[:60], F[:60])
    known = machine.features_.history_["loss"]
    assert machine.features_.n_rounds_ == known.argmin() > 0
    kernel = Gaussian(float(np.median(np.sqrt(((X[:60, None] - X[:60]) ** 2).sum(axis=2))[np.triu_indices(60, 1)])))
    losses = []
    for row in range(60):
        rest = np.arange(60) != row
        alone = er.Ridge(C=5.0, features=kernel).fit(X[:60][rest], F[:60][rest])
        losses.append((alone.predict(X[[row]]) - F[row]) ** 2)
    assert known[0] == pytest.approx(np.mean(losses), rel=1e-6)


@pytest.mark.row("K18")
@pytest.mark.parametrize(
    "machine",
    [
        er.SVM(C=2.0),
        er.LogisticRegression(C=2.0),
        er.SVR(C=2.0),
        er.Regressor(loss="huber", C=2.0),
        er.SVM(C=2.0, multiclass="one_vs_one"),
    ],
    ids=repr,
)
def test_any_loss_learns_a_metric_and_is_certified(machine):
    numbers = machine.__sklearn_tags__().estimator_type == "regressor"
    three = er.SVM(multiclass="one_vs_one").get_params() == machine.get_params() | {"C": 1.0}
    y = F if numbers else np.digitize(F, [-0.4, 0.4]) if three else F > 0
    machine = clone(machine).set_params(features=er.LearnedKernel("gaussian", rounds=3)).fit(X, y)
    kernel = machine.features_
    assert machine.certificate_.converged
    assert kernel.n_rounds_ == kernel.history_["loss"].argmin()
    leading = np.abs(np.linalg.eigh(kernel.metric_)[1][:, -1])
    assert kernel.n_rounds_ == 0 or leading[:2].min() > leading[2:].max()


def test_several_outputs_count_alike():
    targets = np.column_stack([np.sin(2 * X[:, 0]), 1e6 * np.sin(2 * X[:, 3])])
    diagonal = er.Ridge(C=5.0, features=er.LearnedKernel("gaussian")).fit(X, targets).features_.metric_.diagonal()
    assert diagonal[[0, 3]].min() > 5 * diagonal[[1, 2]].max()


def test_a_learned_metric_predicts_better_and_noise_has_none():
    new = RANDOM.normal(size=(500, 4))
    truth = np.sin(2 * (new[:, 0] + new[:, 1]))
    plain, learned = (er.Ridge(C=5.0, features=er.LearnedKernel(rounds=rounds)).fit(X, F) for rounds in (0, 5))
    assert np.mean((learned.predict(new) - truth) ** 2) < 0.5 * np.mean((plain.predict(new) - truth) ** 2)
    assert learned.features_.history_["loss"].min() <= learned.features_.history_["loss"][0]


@pytest.mark.parametrize("machine", [er.Ridge(C=2.0), er.LogisticRegression(C=2.0)], ids=repr)
def test_weights_are_repetition_and_the_order_does_not_matter(machine):
    y = F if isinstance(machine, er.Ridge) else F > 0
    weights = RANDOM.integers(0, 3, len(X))
    machine = clone(machine).set_params(features=er.LearnedKernel("gaussian", rounds=2))
    score = (lambda m: m.predict(X)) if isinstance(machine, er.Ridge) else lambda m: m.decision_function(X)
    weighted = clone(machine).fit(X, y, weights)
    repeated = clone(machine).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    shuffled = RANDOM.permutation(len(X))
    mixed = clone(machine).fit(X[shuffled], y[shuffled], weights[shuffled])
    assert score(repeated) == pytest.approx(score(weighted), abs=1e-5)
    assert score(mixed) == pytest.approx(score(weighted), abs=1e-5)
    assert weighted.features_.n_rounds_ == repeated.features_.n_rounds_ == mixed.features_.n_rounds_


def test_what_has_no_metric_is_refused():
    for features, error, message in (
        (er.LearnedKernel(Laplacian(1.0)), Unsuitable, "no function of the Euclidean distance"),
        (er.LearnedKernel(Gaussian(1.0).on([0])), Unsuitable, "no function of the Euclidean distance"),
        (er.LearnedKernel("linear"), Unsuitable, "no function of the Euclidean distance"),
        (er.LearnedKernel("spectrum"), Unsuitable, "a metric is one of vectors"),
        (er.LearnedKernel(rounds=-1), ValueError, "rounds=-1"),
        (er.LearnedKernel(metric="round"), ValueError, "metric='round'"),
        (er.LearnedKernel(leaf_size=5), ValueError, "leaf_size=5 must be a whole number of at least 20"),
        (er.LearnedKernel() + Gaussian(1.0), Unsuitable, "all that features= holds"),
        (er.maps.Nystrom(er.LearnedKernel() + Gaussian(1.0)), Unsuitable, "all that features= holds"),
        (er.maps.Nystrom(er.maps.SeveralKernels([Gaussian(1.0)])), Unsuitable, "all that features= holds"),
    ):
        with pytest.raises(error, match=message):
            er.Ridge(features=features).fit(X, F)
    with pytest.raises(Unsuitable, match="penalty='l2'"):
        er.Regressor(penalty="none", features=er.LearnedKernel()).fit(X, F)
    with pytest.raises(AttributeError, match="learned with a machine"):
        er.LearnedKernel().metric_  # noqa: B018


def test_limits_end_the_rounds():
    machine = er.LogisticRegression(features=er.LearnedKernel("gaussian"), max_time=1e-9)
    with pytest.warns(Warning, match="max_time"):
        machine.fit(X, F > 0)
    assert machine.stopped_ == "max_time"
    assert len(machine.features_.history_["loss"]) == 1


def test_ctrl_c_keeps_the_metric_so_far():
    rows = RANDOM.normal(size=(3000, 3))
    machine = er.LogisticRegression(C=100.0, features=er.LearnedKernel("gaussian", rounds=1000))
    clone(machine).set_params(features__rounds=1).fit(X, F > 0)  # compiled
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="LogisticRegression was interrupted and keeps the best point"):
        machine.fit(rows, np.sin(3 * rows[:, 0]) > 0)
    assert machine.stopped_ == "interrupted"
    assert machine.predict(rows[:5]).shape == (5,)


def test_few_rows_keep_the_metric():
    few = er.Ridge(features=er.LearnedKernel()).fit(X[:10], F[:10]).features_
    assert few.n_rounds_ == 0
    assert np.array_equal(few.metric_, np.eye(4))


@pytest.mark.row("K18")
@pytest.mark.parametrize("machine", [er.Ridge(C=5.0), er.Regressor(loss="huber", C=5.0)], ids=repr)
def test_of_many_rows_some_learn_the_metric_and_all_are_fitted(monkeypatch, machine):
    machine = clone(machine).set_params(features=er.LearnedKernel(Gaussian(1.3), rounds=2))
    drawn = np.sort(np.argsort(row_hashes(X))[:100])
    alone = clone(machine).fit(X[drawn], F[drawn])
    monkeypatch.setattr(learned_kernel_rounds, "METRIC_ROWS", 100)
    whole = clone(machine).fit(X, F)
    np.testing.assert_allclose(whole.features_.history_["loss"], alone.features_.history_["loss"], rtol=1e-4)
    np.testing.assert_allclose(whole.features_.metric_, alone.features_.metric_, atol=1e-3)
    assert whole.certificate_.converged
    assert len(whole.support_vectors_) > 100
    # Weights are repetition, and rows without weight are none.
    weights = RANDOM.integers(0, 3, len(X))
    weighted = clone(machine).fit(X, F, weights)
    repeated = clone(machine).fit(np.repeat(X, weights, axis=0), np.repeat(F, weights))
    assert repeated.predict(X) == pytest.approx(weighted.predict(X), abs=1e-4)


def test_of_many_rows_a_rare_class_has_its_share(monkeypatch):
    y = np.arange(len(X)) < 24
    monkeypatch.setattr(learned_kernel_rounds, "METRIC_ROWS", 80)
    machine = er.LogisticRegression(C=2.0, features=er.LearnedKernel("gaussian", rounds=1))
    seen = []

    def ranks(problems):
        seen.append([problem.y for problem in problems])
        return kept(problems)

    kept = learned_kernel_rounds._ranks
    monkeypatch.setattr(learned_kernel_rounds, "_ranks", ranks)
    machine.fit(X, y)
    every, some = (Counter(parts[0].tolist()).most_common() for parts in seen[:2])
    assert [count for _, count in every] == [136, 24]
    assert [count for _, count in some] == [68, 20]  # its share would be 12, and 20 is the least


@pytest.mark.row("K18")
@pytest.mark.parametrize("machine", [er.Ridge(C=5.0), er.LogisticRegression(C=5.0)], ids=repr)
def test_landmarks_of_a_learned_metric(machine, tmp_path):
    """With all rows as landmarks the machine is that behind the kernel itself; with some of them it is near to that."""
    y = F if isinstance(machine, er.Ridge) else np.digitize(F, [-0.4, 0.4])
    weights = RANDOM.integers(0, 3, len(X))
    exact = clone(machine).set_params(features=er.LearnedKernel(Gaussian(1.5), rounds=2)).fit(X, y, weights)
    for rank, close in ((len(X), 1e-3), (110, 0.1)):
        features = er.maps.Nystrom(er.LearnedKernel(Gaussian(1.5), rounds=2), rank=rank, random_state=0)
        found = clone(machine).set_params(features=features).fit(X, y, weights)
        kernel = found.features_.kernel_
        assert found.certificate_.converged
        assert kernel.n_rounds_ == exact.features_.n_rounds_ > 0
        assert kernel.metric_ == pytest.approx(exact.features_.metric_, abs=1e-3)
        ask = "predict" if isinstance(machine, er.Ridge) else "decision_function"
        assert getattr(found, ask)(X) == pytest.approx(getattr(exact, ask)(X), abs=close)
        repeated = clone(found).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        assert repeated.features_.kernel_.metric_ == pytest.approx(kernel.metric_, abs=1e-4)
    er.save(found, tmp_path / "it.model")
    assert np.array_equal(er.load(tmp_path / "it.model").predict(X), found.predict(X))
    assert er.plots.metric(found).axes
    alone = er.maps.Nystrom(er.LearnedKernel(Gaussian(1.5)), rank=40, random_state=0).fit(X)
    plain = er.maps.Nystrom(Gaussian(1.5), rank=40, random_state=0).fit(X)
    assert np.array_equal(alone.transform(X), plain.transform(X))  # nothing is learned without a machine
    er.save(alone, tmp_path / "alone.model")


def test_the_metric_of_landmarks_ends_with_the_time():
    features = er.maps.Nystrom(er.LearnedKernel("gaussian"), rank=20)
    with pytest.warns(Warning, match="max_time"):
        machine = er.LogisticRegression(features=features, max_time=1e-9).fit(X, F > 0)
    assert machine.stopped_ == "max_time"
    with pytest.raises(er.errors.EmpiriskError, match="learns; use C='cv'"):
        er.Ridge(C="loo", features=features).fit(X, F)


def test_contract():
    check_contract(er.Ridge(features=er.LearnedKernel("gaussian", rounds=2)))


def test_a_kernel_is_learned_where_the_ridge_is_below_the_rounding_of_products():
    """Three constant columns make all rows equal: with C = 1e8 and heavy rows the matrix of a ridge has no factor."""
    X, y = np.full((20, 3), 1e6), np.random.default_rng(0).normal(size=20)
    machine = er.Ridge(C=1e8, features=er.LearnedKernel(metric="diagonal", rounds=1), fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y, sample_weight=np.full(20, 1e30))
    assert machine.predict(X) == pytest.approx(np.full(20, y.mean()), rel=1e-3)


def test_targets_that_are_all_equal_teach_no_metric_and_warn_of_nothing():
    machine = er.SVR(features=er.LearnedKernel(metric="diagonal", rounds=1), fit_intercept=False)
    machine.fit(X[:20], np.full(20, 1e9))
    np.testing.assert_array_equal(machine.features_.root_, np.ones(4))
