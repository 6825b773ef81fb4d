"""Choice of columns: greedy steps against brute force, and l1 with stability."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.errors import EmpiriskError

random = np.random.default_rng(3)
X = random.normal(size=(80, 6))
F = 2 * X[:, 1] - X[:, 4] + 0.5 * X[:, 2] + 0.5 * random.normal(size=80)
CV = [(np.arange(80) % 4 != k, np.arange(80) % 4 == k) for k in range(4)]


def error(columns) -> float:
    splits = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in CV]
    scores = cross_val_score(LinearRegression(), X[:, columns], F, cv=splits, scoring="neg_mean_squared_error")
    return -scores.mean()


@pytest.mark.row("F5")
def test_forward_steps_are_the_best_and_stop_at_the_rise():
    found = er.selection.GreedySelection(LinearRegression(), cv=CV).fit(X, F)
    columns: list[int] = []
    for step in found.path_:
        options = {new: error([*columns, new]) for new in range(6) if new not in columns}
        best = min(options, key=options.get)
        assert step.column == best
        assert step.error == pytest.approx(options[best])
        columns.append(best)
    errors = [step.error for step in found.path_]
    assert all(step.kept for step in found.path_[:-1])
    assert found.path_[-1].kept == (errors[-1] < errors[-2])
    assert {1, 2, 4} <= set(np.flatnonzero(found.support_))
    chosen = np.flatnonzero(found.support_)
    np.testing.assert_allclose(found.predict(X), LinearRegression().fit(X[:, chosen], F).predict(X[:, chosen]))
    np.testing.assert_array_equal(found.transform(X), X[:, chosen])


@pytest.mark.row("F5")
def test_backward_steps_are_the_best():
    found = er.selection.GreedySelection(LinearRegression(), direction="backward", cv=CV).fit(X, F)
    assert found.path_[0].columns == (0, 1, 2, 3, 4, 5)
    assert found.path_[0].error == pytest.approx(error(list(range(6))))
    options = {gone: error([one for one in range(6) if one != gone]) for gone in range(6)}
    assert found.path_[1].column == min(options, key=options.get)
    assert {1, 2, 4} <= set(np.flatnonzero(found.support_))
    fewer = er.selection.GreedySelection(LinearRegression(), direction="backward", most=2, cv=CV).fit(X, F)
    assert fewer.support_.sum() <= 2


@pytest.mark.row("F5")
def test_greedy_choice_with_names_classes_and_sparse_tables():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    machine = er.selection.GreedySelection(er.LeastSquaresClassifier(), most=2)
    named = machine.fit(frame, F > 0)
    assert named.chosen_["columns"] == ["b", "e"]
    assert list(named.get_feature_names_out()) == ["b", "e"]
    thin = er.selection.GreedySelection(er.LeastSquaresClassifier(), most=2).fit(sparse.csr_array(X), F > 0)
    np.testing.assert_array_equal(thin.support_, named.support_)
    np.testing.assert_array_equal(thin.classes_, [False, True])
    pipeline = make_pipeline(er.selection.GreedySelection(er.Ridge(), most=3), er.TreeRegressor(max_depth=3))
    result = er.evaluate(pipeline, X, F)
    assert all(len(one["greedyselection__columns"]) <= 3 for one in result.parameters)
    with pytest.raises(ValueError, match="direction='up' is not known"):
        er.selection.GreedySelection(er.Ridge(), direction="up").fit(X, F)
    with pytest.raises(ValueError, match="1 <= least <= most"):
        er.selection.GreedySelection(er.Ridge(), least=3, most=2).fit(X, F)


@pytest.mark.row("F6")
def test_l1_selects_the_columns_that_matter_again_and_again():
    wide = np.hstack([X, random.normal(size=(80, 20))])
    found = er.selection.L1Selection(random_state=0).fit(wide, F)
    assert {1, 2, 4} <= set(np.flatnonzero(found.support_))
    assert found.frequencies_[[1, 4]].min() == 1
    once = er.selection.L1Selection(n_samples=0).fit(wide, F)
    np.testing.assert_array_equal(once.support_, once.estimator_.coef_ != 0)
    assert found.support_.sum() < once.support_.sum()  # stability drops what one fit kept by chance
    strict = er.selection.L1Selection(threshold=1.0, random_state=0).fit(wide, F)
    assert set(np.flatnonzero(strict.support_)) <= set(np.flatnonzero(found.support_))
    assert strict.expected_errors_ < found.expected_errors_
    again = er.selection.L1Selection(random_state=0).fit(wide, F)
    np.testing.assert_array_equal(found.frequencies_, again.frequencies_)


@pytest.mark.row("F6")
def test_l1_for_classes_and_bad_arguments():
    labels = np.where(X[:, 1] > 0, "up", "down")
    found = er.selection.L1Selection(er.LogisticRegression(penalty="l1", C=0.2), n_samples=10, random_state=0)
    assert found.fit(X, labels).support_[1]
    with pytest.raises(ValueError, match=r"threshold=0\.3 must lie above 0\.5"):
        er.selection.L1Selection(threshold=0.3).fit(X, F)
    with pytest.raises(ValueError, match="has no coef_"):
        er.selection.L1Selection(er.TreeRegressor()).fit(X, F)


@pytest.mark.parametrize("weight", [1.0, 1e6, 1e9, 1e30])
def test_stability_selection_takes_weights_of_any_size(weight):
    X = np.random.default_rng(0).normal(size=(60, 5))
    y = 3 * X[:, 0] + X[:, 1]
    found = er.selection.L1Selection(er.Lasso(C=1.0 / weight), n_samples=4, random_state=0)
    found.fit(X, y, sample_weight=np.full(len(y), weight))
    assert found.support_[0]


def test_halves_hold_every_class_or_say_that_they_cannot():
    X = np.random.default_rng(0).normal(size=(60, 5))
    labels = np.arange(len(X)) % 20
    selection = er.selection.L1Selection(er.LogisticRegression(penalty="l1"), n_samples=2, random_state=0)
    selection.fit(X, np.minimum(labels, 12))
    with pytest.raises(EmpiriskError, match="a class so rare, or of so little weight"):
        selection.fit(X, labels == 3, sample_weight=np.where(labels == 3, 1e-12, 1.0))


def test_information_does_not_depend_on_the_size_of_numbers():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    selection = er.selection.InformationSelection(random_state=0)
    for target, factor in ((y, 1.0), (X[:, 0] + X[:, 1], 2.0**900)):
        plain = selection.fit(X, target).scores_
        for size in (2.0**900, 2.0**-900):
            np.testing.assert_allclose(selection.fit(X * size, target * factor).scores_, plain)
