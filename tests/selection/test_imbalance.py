"""Rare classes: resampled rows, corrected probabilities, and thresholds."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, f1_score

import empirisk as er
from empirisk.selection import Balanced, Threshold, choose_threshold

random = np.random.default_rng(0)
X = random.normal(size=(2000, 2))
P = 1 / (1 + np.exp(-(2 * X[:, 0] - 3)))
Y = (random.random(2000) < P).astype(int)


class Rows(er.NearestCentroid):
    """Remembers what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.given_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.row("V6")
@pytest.mark.parametrize("how", ["weights", "subsample", "upsample"])
def test_probabilities_are_those_of_the_true_shares(how):
    machine = Balanced(er.LogisticRegression(C=100.0), how=how, random_state=0).fit(X, Y)
    np.testing.assert_allclose(machine.trained_prior_, [0.5, 0.5], atol=1e-9)
    assert machine.prior_[1] == pytest.approx(Y.mean())
    found = machine.predict_proba(X)[:, 1]
    assert np.abs(found - P).mean() < 0.03
    raw = machine.set_params(correct=False).predict_proba(X)[:, 1]
    assert np.abs(raw - P).mean() > 0.15
    np.testing.assert_allclose(found / (1 - found), raw / (1 - raw) * Y.mean() / (1 - Y.mean()), rtol=1e-6)


@pytest.mark.row("V6")
def test_what_the_machine_learns_from():
    table, labels, _ = Balanced(Rows(), how="subsample", random_state=0).fit(X, Y).estimator_.given_
    assert np.bincount(labels).tolist() == [Y.sum(), Y.sum()]
    kept = {tuple(row) for row in table}
    assert len(kept) == len(table)
    assert kept <= {tuple(row) for row in X}
    table, labels, _ = Balanced(Rows(), how="upsample", random_state=0).fit(X, Y).estimator_.given_
    most = (Y == 0).sum()
    assert np.bincount(labels).tolist() == [most, most]
    assert {tuple(row) for row in table} == {tuple(row) for row in X}
    table, labels, _ = Balanced(Rows(), how="upsample", jitter=0.1, random_state=0).fit(X, Y).estimator_.given_
    np.testing.assert_array_equal(table[:2000], X)
    copies = table[2000:]
    assert len({tuple(row) for row in copies}) == len(copies)
    gap = np.abs(copies[:, None, 0] - X[Y == 1][:, 0]).min(axis=1)
    assert 0 < gap.max() < 1  # near a row of its own class


@pytest.mark.row("V6")
def test_balanced_takes_tables_of_every_kind():
    plain = Balanced(er.LogisticRegression(), how="upsample", random_state=0).fit(X[:200], Y[:200]).predict_proba(X)
    frame = pd.DataFrame(X, columns=["a", "b"])
    framed = Balanced(er.LogisticRegression(), how="upsample", random_state=0).fit(frame[:200], Y[:200])
    np.testing.assert_allclose(framed.predict_proba(frame), plain, rtol=1e-6)
    thin = Balanced(er.LogisticRegression(), how="upsample", jitter=0.1, random_state=0)
    assert thin.fit(sparse.csr_array(X[:200]), Y[:200]).predict(sparse.csr_array(X)).shape == (2000,)
    texts = ["good", "good", "good", "bad"] * 5
    bag = Balanced(er.maps.bag_of_words(er.SVM()), how="subsample", random_state=0)
    assert bag.fit(texts, [1, 1, 1, 0] * 5).predict(["bad"]) == [0]
    for options, sentence in (
        ({"how": "smote"}, "how='smote'"),
        ({"how": "weights", "jitter": 1}, "jitter=1 must be 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Balanced(er.SVM(), **options).fit(X, Y)
    with pytest.raises(ValueError, match="needs a classifier"):
        Balanced(er.Ridge()).fit(X, Y)


@pytest.mark.row("V5")
@pytest.mark.parametrize("by", ["accuracy", "balanced_accuracy", "f1", "cost"])
def test_the_threshold_is_the_best_of_all(by):
    scores, truth = np.round(random.normal(size=40), 1), random.integers(2, size=40)
    weights = random.integers(1, 4, size=40).astype(float)
    scores = scores + 0.5 * truth

    def result(cut):
        said = (scores >= cut).astype(int)
        if by == "cost":
            return weights @ ((said > truth) * 2.0 + (said < truth) * 3.0)
        rules = {"accuracy": lambda: np.average(said == truth, weights=weights)}
        rules["balanced_accuracy"] = lambda: balanced_accuracy_score(truth, said, sample_weight=weights)
        rules["f1"] = lambda: f1_score(truth, said, sample_weight=weights, zero_division=0)
        return rules[by]()

    found = choose_threshold(truth, scores, by=by, cost=(2.0, 3.0), sample_weight=weights)
    tried = [result(cut) for cut in [*np.unique(scores), np.inf]]
    assert found.value == pytest.approx(min(tried) if by == "cost" else max(tried))
    assert result(found.threshold) == pytest.approx(found.value)
    for cut, value in zip(found.thresholds, found.values, strict=True):
        assert result(cut) == pytest.approx(value)
    said = scores >= found.threshold
    assert found.true_positive_rate[found.index] == pytest.approx(
        np.average(said[truth == 1], weights=weights[truth == 1])
    )


@pytest.mark.row("E6")
@pytest.mark.row("V5")
def test_predictions_agree_with_the_threshold():
    for machine in (er.LogisticRegression(), er.SVM()):
        careful = Threshold(machine, by="cost", cost=(1.0, 20.0)).fit(X[:500], Y[:500])
        plain = machine.fit(X[:500], Y[:500])
        np.testing.assert_array_equal(careful.predict(X), (careful.decision_function(X) >= 0).astype(int))
        assert careful.predict(X).sum() > plain.predict(X).sum()
        assert not hasattr(careful, "predict_proba")
    given = Threshold(er.LogisticRegression(), threshold=0.2).fit(X[:500], Y[:500])
    np.testing.assert_array_equal(given.predict(X), given.estimator_.predict_proba(X)[:, 1] >= 0.2)
    assert given.choice_ is None


@pytest.mark.row("E6")
def test_costs_choose_the_threshold_that_theory_says():
    """With right probabilities it is  cost of a false positive / sum of both costs."""
    found = choose_threshold(Y, P, by="cost", cost=(1.0, 4.0))
    assert found.threshold == pytest.approx(0.2, abs=0.06)
    machine = Threshold(er.LogisticRegression(C=100.0), by="cost", cost=(1.0, 4.0)).fit(X, Y)
    assert machine.threshold_ == pytest.approx(0.2, abs=0.08)
    result = er.evaluate(machine, X[:300], Y[:300], scoring="accuracy", cv=3)
    assert all(0 < one["threshold"] < 1 for one in result.parameters)


@pytest.mark.row("E6")
def test_bad_thresholds_are_refused():
    with pytest.raises(ValueError, match="must be two numbers"):
        Threshold(er.SVM(), by="cost").fit(X[:100], Y[:100])
    with pytest.raises(ValueError, match="by='gain' is not known"):
        Threshold(er.SVM(), by="gain").fit(X[:100], Y[:100])
    with pytest.raises(ValueError, match="for two classes, not 3 classes"):
        Threshold(er.SVM()).fit(X[:99], np.arange(99) % 3)
    with pytest.raises(ValueError, match="threshold='low' must be a number"):
        Threshold(er.SVM(), threshold="low").fit(X[:100], Y[:100])
    with pytest.raises(ValueError, match="two classes, the positive one among them"):
        choose_threshold([1, 1], [0.5, 0.6])


@pytest.mark.parametrize("how", ["subsample", "upsample", "weights"])
def test_weights_that_count_millions_of_rows_make_no_millions_of_rows(how):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 2)), np.arange(30) % 5 == 0
    machine = er.selection.Balanced(er.LogisticRegression(C=1e-6), how=how, random_state=0)
    many = clone(machine).fit(X, y, sample_weight=np.full(30, 10**6))
    few = clone(machine).set_params(estimator__C=1.0).fit(X, y, sample_weight=np.ones(30))
    assert abs(many.predict_proba(X) - few.predict_proba(X)).max() < 0.1
    if how == "upsample":
        with er.config(memory="100MB"), pytest.raises(er.errors.TooLarge, match="rows drawn with jitter"):
            machine.set_params(jitter=0.1).fit(X, y, sample_weight=np.full(30, 10**6))


def test_noise_of_sparse_tables_does_not_depend_on_what_is_stored():
    X, y = (np.random.default_rng(0).random((12, 4)) < 0.5).astype(float), np.arange(12) % 4 == 0
    rows, columns = np.indices(X.shape).reshape(2, -1)
    order = np.random.default_rng(1).permutation(X.size)
    stored = sparse.coo_matrix((X.ravel()[order], (rows[order], columns[order])), shape=X.shape)
    machine = Balanced(er.LogisticRegression(), jitter=0.1, random_state=0)
    found = clone(machine).fit(stored, y).predict_proba(X)
    np.testing.assert_allclose(found, clone(machine).fit(sparse.csr_matrix(X), y).predict_proba(X), rtol=1e-6)


def test_weights_that_stand_for_millions_of_rows_are_not_drawn_with_jitter():
    X, y = np.arange(20.0)[:, None], np.arange(20) == 0
    weights = np.full(20, 1e6)
    with pytest.raises(er.errors.EmpiriskError, match="divide the weights, or give jitter=0"):
        er.selection.Balanced(er.LogisticRegression(), jitter=0.1).fit(X, y, sample_weight=weights)
    er.selection.Balanced(er.LogisticRegression()).fit(X, y, sample_weight=weights)
