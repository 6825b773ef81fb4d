"""Leaves of a learned kernel: the soft join and the fits in the leaves by brute force, and identities."""

import gc
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.certificate import verify
from empirisk.errors import EmpiriskError
from empirisk.fits.fit import Limits, SolverRun
from empirisk.maps.implicit import GramDesign
from empirisk.projections.learned_kernel_leaves import JoinedLeaves, LeafFits
from tests.callbacks import Watching
from tests.estimator_checks import check_contract

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(220, 3))
F = np.sin(2 * X[:, 0] + X[:, 1]) + X[:, 2] ** 2 + 0.05 * RANDOM.normal(size=220)
NEW = RANDOM.normal(size=(60, 3))
SMALL = er.LearnedKernel("gaussian", rounds=1, leaf_size=70)


def naive_shares(tree, x):
    """The share of each leaf at one row, by walking down the tree."""

    def walk(node, share):
        if node >= len(tree.directions_):
            return [share]
        start, end = tree.starts_[node], tree.ends_[node]
        u = min(max((x @ tree.directions_[node] - start) / (end - start), 0.0), 1.0)
        right = 3 * u**2 - 2 * u**3
        return walk(2 * node + 1, share * (1 - right)) + walk(2 * node + 2, share * right)

    return np.array(walk(0, 1.0))


def problems_of(machine, *data):
    problems = machine.problems(*data)
    kernel = problems.machine.features_
    return kernel, list(problems), SolverRun("auto", Limits(1e-9, None, None))


@pytest.mark.row("K18")
def test_rows_are_joined_by_shares_that_add_up_and_change_smoothly():
    tree = er.Ridge(features=SMALL).fit(X, F).features_.kernel_
    assert tree.leaves == 4
    found = tree.shares(NEW)
    assert found == pytest.approx(np.array([naive_shares(tree, x) for x in NEW]), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(NEW)))
    assert 0 < np.mean((found > 0) & (found < 1)) < 0.5
    # Balanced: a tenth of the rows of a node, half of it on either side of the split, is on both sides.
    assert ((tree.shares(X) > 0).sum(axis=0) <= 70).all()
    machine = er.Ridge(C=20.0, features=SMALL).fit(X, F)
    line = np.zeros((20_001, 3))
    line[:, 0] = np.linspace(-2, 2, len(line))
    assert np.abs(np.diff(machine.predict(line))).max() < 0.01


@pytest.mark.row("K18")
@pytest.mark.parametrize("intercept", [True, False])
def test_the_leaves_are_ridge_machines_of_their_rows(intercept):
    """Each by its linear system, with the rows that it shares as heavy as they are in it, joined by hand."""
    weights = RANDOM.integers(1, 4, len(X)).astype(float)
    machine = er.Ridge(C=4.0, features=SMALL, fit_intercept=intercept).fit(X, F + 7, weights)
    tree = machine.features_.kernel_
    level = np.average(F + 7, weights=weights) if intercept else 0.0
    shares, joined, objective = tree.shares(X), np.full(len(NEW), level), 0.0
    for leaf, member in enumerate(tree.members_):
        rows = np.flatnonzero(shares[:, leaf] > 1e-6)
        scale = 2 * 4.0 * weights[rows] * shares[rows, leaf]
        K = member(X[rows])
        alpha = np.linalg.solve(K + np.diag(1 / scale), F[rows] + 7 - level)
        joined += tree.shares(NEW)[:, leaf] * (member(NEW, X[rows]) @ alpha)
        objective += alpha @ K @ alpha / 2 + scale / 2 @ (F[rows] + 7 - level - K @ alpha) ** 2
    assert machine.predict(NEW) == pytest.approx(joined, rel=1e-7)
    assert machine.certificate_.primal == pytest.approx(objective, rel=1e-9)
    assert machine.certificate_.converged
    # By convexity the joined function has at most the losses of the leaves.
    own = 4.0 * weights @ (F + 7 - machine.predict(X)) ** 2
    assert own <= objective


@pytest.mark.parametrize(
    "machine",
    [
        er.Ridge(C=3.0),
        er.SVR(C=2.0),
        er.Regressor(loss="poisson", C=2.0),
        er.LogisticRegression(C=2.0),
        er.SVM(C=2.0),
        er.SVM(C=2.0, multiclass="one_vs_one"),
    ],
    ids=repr,
)
def test_the_certificate_is_that_of_the_joined_problem(machine):
    """The bounds of the leaves add up to what `verify` says of all rows at once, behind the joined kernel."""
    y = F if "loss" not in machine.get_params() else np.abs(F).round()
    if machine.__sklearn_tags__().estimator_type == "classifier":
        y = np.digitize(F, [-0.4, 0.9])
    machine = clone(machine).set_params(features=SMALL)
    kernel, problems, run = problems_of(machine, X, y)
    _, joined, fits = LeafFits(kernel, problems, run).learn()
    for before, problem, fit in zip(problems, joined, fits, strict=True):
        level = fit.point.b if problem.loss.residual_form else 0.0
        alone = replace(problem, y=problem.y - level, intercept=False)
        known = verify(alone, replace(fit.point, b=np.zeros_like(fit.point.b)))
        assert fit.certificate.converged
        assert fit.certificate.primal == pytest.approx(known.primal, rel=1e-9)
        assert known.gap <= 1e-6 * abs(known.primal)
        assert fit.certificate.gap <= 1e-6 * abs(known.primal)
        # The shares of a row add up to its weight, less what is too little to teach a leaf anything.
        origins = problem.design.root.origins[problem.rows]
        assert np.bincount(origins, problem.weights)[before.places] == pytest.approx(before.weights, abs=1e-5)


def test_one_leaf_is_the_plain_machine():
    for machine, y in ((er.Ridge(C=2.0), F), (er.LogisticRegression(C=2.0), F > 0)):
        one, plain = (
            clone(machine).set_params(features=er.LearnedKernel("gaussian", 2, leaf_size=size)).fit(X, y)
            for size in (len(X), None)
        )
        assert np.array_equal(one.dual_coef_, plain.dual_coef_)
        assert np.array_equal(one.features_.metric_, plain.features_.metric_)
        ask = "predict" if isinstance(machine, er.Ridge) else "decision_function"
        assert np.array_equal(getattr(one, ask)(NEW), getattr(plain, ask)(NEW))


def test_the_joined_kernel_is_one():
    tree = er.Ridge(features=SMALL).fit(X, F).features_.kernel_
    matrix = tree(X)
    assert np.linalg.eigvalsh(matrix).min() > -1e-9
    assert np.array_equal(matrix, matrix.T)
    assert tree.diagonal(X) == pytest.approx(matrix.diagonal())
    assert tree(X, NEW) == pytest.approx(
        sum(
            np.outer(tree.shares(X)[:, leaf], tree.shares(NEW)[:, leaf]) * member(X, NEW)
            for leaf, member in enumerate(tree.members_)
        )
    )
    with pytest.raises(EmpiriskError, match="the numbers of leaves, 0 to 3"):
        tree(np.column_stack([X, np.full(len(X), 4.0)]))
    with pytest.raises(EmpiriskError, match="X has 2 columns, and the tree was learned from 3"):
        tree(X[:, :2])


def test_leaves_that_lack_a_class_and_several_outputs():
    y = (X[:, 0] > 1.5).astype(int)
    for machine in (er.LogisticRegression(C=5.0), er.SVM(C=5.0), er.Classifier(loss="squared", C=5.0)):
        machine = clone(machine).set_params(features=SMALL).fit(X, y)
        assert machine.certificate_.converged
        assert machine.score(X, y) > 0.97
    apart, kinds = X + 9 * (np.arange(len(X)) % 3)[:, None], np.arange(len(X)) % 3
    for machine in (er.SVM(multiclass="one_vs_one"), er.LogisticRegression(), er.Classifier(loss="squared")):
        machine = clone(machine).set_params(features=SMALL).fit(apart, kinds)
        assert machine.certificate_.converged
        assert "and " not in machine.certificate_.solver
        assert machine.score(apart, kinds) == 1
        inside = machine.features_.kernel_.shares(apart) > 0
        assert min(len(np.unique(kinds[column])) for column in inside.T) < 3  # no rows of some pairs
    machine = er.Ridge(C=5.0, features=SMALL).fit(X, np.column_stack([F, -F]))
    assert machine.predict(NEW)[:, 1] == pytest.approx(-machine.predict(NEW)[:, 0], rel=1e-6)


@pytest.mark.parametrize("machine", [er.Ridge(C=2.0), er.LogisticRegression(C=2.0)], ids=repr)
def test_weights_are_repetition_and_the_order_does_not_matter(machine):
    y = F if isinstance(machine, er.Ridge) else F > 0
    weights = RANDOM.integers(0, 3, len(X))
    machine = clone(machine).set_params(features=SMALL)
    score = (lambda m: m.predict(X)) if isinstance(machine, er.Ridge) else lambda m: m.decision_function(X)
    weighted = clone(machine).fit(X, y, weights)
    repeated = clone(machine).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    shuffled = RANDOM.permutation(len(X))
    mixed = clone(machine).fit(X[shuffled], y[shuffled], weights[shuffled])
    assert weighted.features_.kernel_.leaves > 1
    assert score(repeated) == pytest.approx(score(weighted), abs=1e-5)
    assert score(mixed) == pytest.approx(score(weighted), abs=1e-5)


def test_rows_that_support_are_rows_of_the_user_and_files_hold_the_tree(tmp_path):
    machine = er.Ridge(C=2.0, features=SMALL).fit(X, F)
    assert np.array_equal(machine.support_vectors_[:, :-1], X[machine.support_])
    assert np.bincount(machine.support_).max() > 1
    assert np.array_equal(np.unique(machine.support_), np.arange(len(X)))
    er.save(machine, tmp_path / "it.model")
    again = er.load(tmp_path / "it.model")
    assert np.array_equal(again.predict(NEW), machine.predict(NEW))
    assert np.array_equal(again.features_.metric_, machine.features_.metric_)
    assert repr(again.features_) == "LearnedKernel('gaussian', rounds=1, leaf_size=70)"
    mean = np.mean([member.metric_ for member in machine.features_.kernel_.members_], axis=0)
    assert np.array_equal(machine.features_.metric_, mean)
    assert er.plots.metric(machine).axes
    history = machine.features_.history_
    assert np.array_equal(np.unique(history["leaf"]), np.arange(4))
    assert machine.fit(X[:50], F[:50]).features_.metric_.trace() == pytest.approx(3.0)  # and no tree is left
    assert not isinstance(machine.features_.kernel_, JoinedLeaves)


def test_rows_in_single_precision_stay_so():
    single = er.Ridge(C=2.0, features=SMALL).fit(X.astype(np.float32), F)
    assert single.support_vectors_.dtype == np.float32
    double = er.Ridge(C=2.0, features=SMALL).fit(X.astype(np.float32).astype(np.float64), F)
    assert single.predict(NEW.astype(np.float32)) == pytest.approx(double.predict(NEW), abs=1e-3)


class Seeing(Watching):
    """Counts the tasks that end."""

    ended = 0

    def on_fit_task_end(self, estimator, context, **data):
        self.ended += 1


def test_callbacks_see_a_fit_of_leaves():
    watch = Seeing()
    machine = er.Ridge(C=2.0, features=SMALL).set_callbacks(watch).fit(X, F)
    assert watch.ended
    assert np.array_equal(machine.predict(NEW), er.Ridge(C=2.0, features=SMALL).fit(X, F).predict(NEW))


def test_several_threads_give_the_same_bits():
    with er.config(threads=1):
        one = er.Ridge(C=2.0, features=SMALL).fit(X, F).predict(NEW)
    with er.config(threads=3):
        assert np.array_equal(er.Ridge(C=2.0, features=SMALL).fit(X, F).predict(NEW), one)


def test_limits_end_the_leaves_and_ctrl_c_keeps_what_there_is():
    machine = er.LogisticRegression(features=SMALL, max_time=1e-9)
    with pytest.warns(Warning, match="max_time"):
        machine.fit(X, F > 0)
    assert machine.stopped_ == "max_time"
    assert machine.predict(NEW).shape == (len(NEW),)
    rows = RANDOM.normal(size=(6000, 3))
    machine = er.LogisticRegression(C=100.0, features=er.LearnedKernel("gaussian", 1000, leaf_size=2000))
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="LogisticRegression was interrupted and keeps the best point"):
        machine.fit(rows, np.sin(3 * rows[:, 0]) > 0)
    assert machine.stopped_ == "interrupted"
    assert machine.predict(rows[:5]).shape == (5,)


def test_rows_that_do_not_fit_together_fit_leaf_by_leaf():
    kernel = er.kernels.Gaussian(1.0)
    with er.config(memory="300KB"):
        with pytest.raises(er.errors.TooLarge):
            er.Ridge(features=er.LearnedKernel(kernel, rounds=0, leaf_size=None)).fit(X, F)
        machine = er.Ridge(features=er.LearnedKernel(kernel, rounds=0, leaf_size=60)).fit(X, F)
    assert machine.certificate_.converged


def test_rows_that_are_all_equal_stay_together():
    rows = np.repeat([[1.0, 2.0], [3.0, 4.0]], 30, axis=0) + np.concatenate([np.zeros((30, 2)), np.eye(30)[:, :2]])
    machine = er.Ridge(C=5.0, features=er.LearnedKernel("gaussian", leaf_size=20)).fit(rows, rows[:, 0])
    assert np.isfinite(machine.predict(rows)).all()


def test_designs_of_leaves_are_gone_without_the_collector():
    """They hold matrices, so that the memory of all leaves would wait for it."""
    gc.collect()
    gc.disable()
    try:
        er.Ridge(features=er.LearnedKernel("gaussian", rounds=1, leaf_size=60)).fit(X, F)
        assert not [one for one in gc.get_objects() if isinstance(one, GramDesign)]
    finally:
        gc.enable()


def test_contract():
    check_contract(er.Ridge(features=er.LearnedKernel("gaussian", rounds=1, leaf_size=20)))
