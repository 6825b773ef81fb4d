"""The best subset against all subsets, its bound when it is stopped, and columns by mutual information."""

import signal
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.selection import BestSubset, InformationSelection
from empirisk.selection.subset import BranchAndBound

pytestmark = pytest.mark.row("F6")


def squares(X, y, columns, weights=None, intercept=True) -> float:
    """The least sum of squares with some columns, plainly."""
    rows = np.column_stack([X[:, columns], np.ones(len(X))]) if intercept else X[:, columns]
    roots = np.sqrt(np.ones(len(X)) if weights is None else weights)[:, None]
    targets = y.reshape(len(y), -1)
    fitted = np.linalg.lstsq(roots * rows, roots * targets, rcond=None)[0]
    return float(np.sum((roots * (targets - rows @ fitted)) ** 2))


def draw(seed, rows=40, columns=9, outputs=None):
    """Correlated columns, of which some count."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns)) @ (np.eye(columns) + 0.5 * random.normal(size=(columns, columns)))
    signal = X @ (random.normal(size=(columns, outputs or 1)) * (random.random((columns, outputs or 1)) < 0.5))
    y = signal + random.normal(size=signal.shape)
    return X, y if outputs else y[:, 0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("intercept", [True, False])
def test_no_subset_is_better(seed, intercept):
    X, y = draw(seed, outputs=2 if seed == 3 else None)
    weights = np.random.default_rng(seed).integers(0, 4, size=len(X)).astype(float)
    for size in range(1, 10):
        found = BestSubset(size, fit_intercept=intercept).fit(X, y, weights)
        every = {S: squares(X, y, list(S), weights, intercept) for S in combinations(range(9), size)}
        best = min(every.values())
        assert found.certificate_.primal == pytest.approx(best, rel=1e-9)
        assert every[tuple(np.flatnonzero(found.support_))] == pytest.approx(best, rel=1e-9)
        assert best * (1 - 2e-9) <= found.certificate_.dual <= best * (1 + 1e-12)
        assert found.certificate_.converged
        assert found.stopped_ == "converged"
        residuals = y - X @ found.coef_.T - found.intercept_
        assert np.sum(weights * (residuals**2).reshape(len(X), -1).sum(axis=1)) == pytest.approx(best, rel=1e-9)
        np.testing.assert_array_equal(found.support_, np.any(np.atleast_2d(found.coef_) != 0, axis=0))


@pytest.mark.parametrize("seed", [18, 30, 86, 155])
def test_nearly_dependent_columns_have_no_coefficients_against_each_other(seed):
    """Those of 1e11, which cancel in predictions, left a sum of squares of five digits, proven to be exact."""
    random = np.random.default_rng(seed)
    rows, columns = (20, 12) if seed % 2 == 0 else (30, 5)
    X = random.normal(size=(rows, 1)) + 1e-12 * random.normal(size=(rows, columns))
    y, times = X[:, 0] + random.normal(size=rows), random.integers(1, 4, rows)
    weighted = BestSubset(2, fit_intercept=False).fit(X, y, sample_weight=times)
    repeated = BestSubset(2, fit_intercept=False).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-6)
    assert np.abs(weighted.coef_).max() < 10


@pytest.mark.parametrize("rows", [6, 8, 40])
def test_dependent_constant_and_too_many_columns(rows):
    """Copies, sums and constants, and more columns than rows."""
    X, y = draw(1, rows)
    X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2], np.full(rows, 7.0)])
    for size in (1, 2, 3):
        found = BestSubset(size).fit(X, y)
        best = min(squares(X, y, list(S)) for S in combinations(range(12), size))
        assert found.certificate_.primal == pytest.approx(best, rel=1e-7)
        assert not found.support_[11]
        assert found.certificate_.dual <= best
    everything = BestSubset(11).fit(X, y)
    assert everything.certificate_.primal == pytest.approx(squares(X, y, list(range(12))), abs=1e-9)
    lone = BestSubset(1).fit(np.ones((5, 2)), np.arange(5.0))
    assert lone.support_.tolist() == [True, False]
    assert lone.certificate_.primal == pytest.approx(10.0)


def test_columns_of_any_scale_and_nearly_alike():
    """Units change nothing, and columns that differ in the sixth digit are told apart."""
    X, y = draw(5, rows=60)
    X[:, 8] = X[:, 0] + 1e-5 * X[:, 8]
    y = y + 1e5 * (X[:, 8] - X[:, 0])
    plain = BestSubset(4).fit(X, y)
    assert plain.certificate_.primal == pytest.approx(
        min(squares(X, y, list(S)) for S in combinations(range(9), 4)), rel=1e-6
    )
    scaled = BestSubset(4).fit(X * np.geomspace(1e-8, 1e8, 9), y)
    np.testing.assert_array_equal(scaled.support_, plain.support_)


def test_forty_columns_are_proven_and_equal_the_planted_ones():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 40))
    planted = np.sort(random.choice(40, 8, replace=False))
    y = X[:, planted] @ np.full(8, 0.7) + random.normal(size=150)
    found = BestSubset(8).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(found.support_), planted)
    assert found.certificate_.converged
    assert found.n_iter_ < 100_000  # of 77 million subsets


def test_a_search_that_is_stopped_keeps_the_best_with_its_bound(monkeypatch):
    monkeypatch.setattr("empirisk.selection.subset.SLICE", 50)
    random = np.random.default_rng(1)
    X, y = random.normal(size=(60, 40)), random.normal(size=60)  # nothing to find
    whole = BestSubset(12).fit(X, y)
    assert whole.certificate_.converged
    bounds = []
    for nodes in (1, 100, 1000):
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            found = BestSubset(12, max_iter=nodes).fit(X, y)
        assert found.stopped_ == "max_iter"
        assert found.n_iter_ == nodes
        certificate = found.certificate_
        assert not certificate.converged
        assert certificate.dual <= whole.certificate_.primal <= certificate.primal
        assert certificate.gap == certificate.primal - certificate.dual
        bounds.append(certificate.dual)
    assert bounds == sorted(bounds)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        found = BestSubset(12, max_time=1e-9).fit(X, y)
    assert found.stopped_ == "max_time"
    assert found.support_.sum() == 12
    assert 0 <= found.certificate_.dual <= whole.certificate_.primal


def test_ctrl_c_keeps_the_best_with_its_bound(monkeypatch):
    monkeypatch.setattr("empirisk.selection.subset.SLICE", 50)
    random = np.random.default_rng(1)
    X, y = random.normal(size=(60, 40)), random.normal(size=60)
    search, slices = BranchAndBound.search, []

    def press(tree, nodes):
        search(tree, nodes)
        slices.append(nodes)
        if len(slices) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(BranchAndBound, "search", press)
    with (
        er.config(interrupt="keep"),
        pytest.warns(ConvergenceWarning, match=r"BestSubset was stopped \(interrupted\) after 150 nodes"),
    ):
        found = BestSubset(12).fit(X, y)
    assert found.stopped_ == "interrupted"
    assert found.certificate_.dual < found.certificate_.primal
    assert found.certificate_.primal == pytest.approx(squares(X, y, np.flatnonzero(found.support_)))


def test_a_loose_tolerance_takes_fewer_nodes():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(60, 30)), random.normal(size=60)
    strict, loose = BestSubset(10).fit(X, y), BestSubset(10, tol=0.05).fit(X, y)
    assert loose.n_iter_ < strict.n_iter_
    assert loose.certificate_.primal <= strict.certificate_.primal * 1.05 / (1 - 1e-9)
    assert loose.certificate_.dual <= strict.certificate_.primal


def test_it_selects_in_pipelines_frames_and_files(tmp_path):
    X, y = draw(2)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(9)])
    for selector in (BestSubset(3), InformationSelection(3, random_state=0)):
        machine = make_pipeline(selector, er.LeastSquares()).fit(frame, y)
        chosen = machine[0].chosen_["columns"]
        assert list(machine[0].get_feature_names_out()) == chosen
        np.testing.assert_allclose(
            machine.predict(frame), er.LeastSquares().fit(frame[chosen], y).predict(frame[chosen])
        )
        np.testing.assert_array_equal(machine[0].get_support(indices=True), [int(name[1:]) for name in chosen])
        er.save(machine[0], tmp_path / "selector.model")
        again = er.load(tmp_path / "selector.model")
        np.testing.assert_array_equal(again.transform(frame), machine[0].transform(frame))
    assert machine[0].set_output(transform="pandas").transform(frame).columns.tolist() == chosen
    found = er.selection.search(
        make_pipeline(BestSubset(), er.LeastSquares()), {"bestsubset__n_features_to_select": [1, 3]}, X, y
    )
    assert found.best_params_["bestsubset__n_features_to_select"] == 3


@pytest.mark.parametrize("classes", [True, False])
def test_mutual_information_is_that_of_scikit_learn(classes):
    X, y = draw(4, rows=80)
    target = (y > 0).astype(int) if classes else y
    found = InformationSelection(2, random_state=0).fit(X, target)
    theirs = (mutual_info_classif if classes else mutual_info_regression)(X, target, random_state=0)
    np.testing.assert_allclose(found.scores_, theirs, atol=1e-6)  # the noise lies on other rows
    assert set(np.flatnonzero(found.support_)) == set(np.argsort(-theirs)[:2])


def test_frequencies_give_mutual_information_exactly():
    """Discrete columns: sum p(x, y) log(p(x, y) / p(x) p(y)), dense and sparse, whatever the values are called."""
    random = np.random.default_rng(0)
    X = random.integers(0, 3, size=(200, 4)) * 0.5
    y = np.where(X[:, 2] + random.integers(0, 2, size=200) > 1, "yes", "no")
    weights = random.integers(0, 3, size=200)
    exact = []
    for column in X.T:
        joint = np.array([[weights[(column == a) & (y == b)].sum() for b in ("no", "yes")] for a in (0, 0.5, 1)])
        joint = joint / joint.sum()
        expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        exact.append(np.sum(joint * np.log(np.where(joint > 0, joint / expected, 1.0))))
    dense = InformationSelection(1, discrete_features=True).fit(X, y, weights)
    np.testing.assert_allclose(dense.scores_, exact, atol=1e-12)
    thin = InformationSelection(1).fit(sparse.csr_array(X), y, weights)
    np.testing.assert_allclose(thin.scores_, exact, atol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(dense.support_), [2])
    mixed = InformationSelection(2, discrete_features=[2, 3], random_state=0).fit(X, y)
    assert mixed.support_[2]


def test_the_order_of_rows_decides_nothing_and_weights_are_repetition():
    X, y = draw(6, rows=70)
    random = np.random.default_rng(0)
    order, weights = random.permutation(70), random.integers(0, 3, size=70)
    one = InformationSelection(3, random_state=0).fit(X[order], y[order], weights[order])
    other = InformationSelection(3, random_state=0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_array_equal(one.scores_, other.scores_)


X, Y = draw(0)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: BestSubset(10).fit(X, Y), "n_features_to_select=10 exceeds the 9 columns"),
        (lambda: BestSubset(0).fit(X, Y), "n_features_to_select=0"),
        (lambda: BestSubset(tol=1.0).fit(X, Y), "tol=1.0 must be a share"),
        (lambda: BestSubset(max_iter=0).fit(X, Y), "max_iter=0"),
        (lambda: BestSubset(max_time=-1).fit(X, Y), "max_time=-1"),
        (lambda: InformationSelection(10).fit(X, Y), "n_features_to_select=10 exceeds"),
        (lambda: InformationSelection(n_neighbors=0).fit(X, Y), "n_neighbors=0"),
        (lambda: BestSubset().fit(1e160 * X, Y), "X holds numbers as large as"),
        (lambda: BestSubset().fit(X, np.full(40, "a")), "no number"),
        (lambda: InformationSelection().fit(X, np.array(["a", None] * 20, dtype=object)), "y mixes labels of"),
        (lambda: InformationSelection().fit(X, Y, np.full(40, 0.5)), "whole numbers"),
        (lambda: InformationSelection().fit(X, Y, np.full(40, 10**6)), "sample_weight stands for 4e.07 rows"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(ask, message):
    with pytest.raises(EmpiriskError, match=message):
        ask()


def test_a_tolerance_is_part_of_the_gap():
    """Subsets that are better by less than ``tol`` were not looked at, so that none of them is ruled out."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 12))
    y = X @ random.normal(size=12) + 3 * random.normal(size=40)
    found = er.selection.BestSubset(6, tol=0.2).fit(X, y).certificate_
    assert found.gap >= 0.2 * found.primal * (1 - 1e-9)
