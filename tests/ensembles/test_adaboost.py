"""AdaBoost: its own equations, its bound, perfect and hopeless learners, several classes."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier as Rival
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.callbacks import Watching

pytestmark = pytest.mark.row("T7")


def noisy(seed=0, classes=2, n=300):
    return make_classification(n, 8, n_informative=5, n_classes=classes, flip_y=0.1, random_state=seed)


def replay(boost, X, y, first):
    """The rounds once more, by the equations of the documentation."""
    K, weights = len(boost.classes_), first / first.sum()
    votes, bound = np.zeros((len(y), K)), 1.0
    for number, member in enumerate(boost.estimators_):
        said = member.predict(X)
        sign = np.where(said == y, 1.0, -1.0)
        z = weights @ sign
        alpha = 0.5 * np.log((1 + z) / (1 - z)) + 0.5 * np.log(K - 1)
        weights = weights * np.exp(-alpha * sign)
        bound *= weights.sum()
        weights /= weights.sum()
        votes[np.arange(len(y)), np.searchsorted(boost.classes_, said)] += alpha
        error = first @ (boost.classes_[votes.argmax(axis=1)] != y) / first.sum()
        yield alpha, z / 2, error, bound, boost.alphas_[number]
    np.testing.assert_allclose(votes, boost._scores(X))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("learner", [None, er.TreeClassifier(max_depth=2), DecisionTreeClassifier(max_depth=1)])
def test_every_round_follows_the_equations(classes, learner):
    X, y = noisy(classes=classes)
    weights = np.random.default_rng(0).integers(1, 4, size=300).astype(float)
    boost = er.AdaBoostClassifier(learner, 25, random_state=0).fit(X, y, weights)
    assert boost.stopped_ == "finished"
    alphas, edges, errors, bounds, stated = map(np.array, zip(*replay(boost, X, y, weights), strict=True))
    np.testing.assert_allclose(stated, alphas, rtol=1e-9)
    np.testing.assert_allclose(boost.edges_, edges, atol=1e-12)
    np.testing.assert_allclose(boost.training_errors_, errors, atol=1e-12)
    np.testing.assert_allclose(boost.bound_, bounds, rtol=1e-9)
    if classes == 2:
        np.testing.assert_allclose(boost.bound_, np.cumprod(np.sqrt(1 - 4 * boost.edges_**2)), rtol=1e-9)
        assert (boost.bound_ <= np.exp(-2 * np.cumsum(boost.edges_**2)) + 1e-12).all()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_training_error_never_exceeds_the_bound(classes):
    for seed in range(3):
        X, y = noisy(seed, classes)
        for learner in (None, er.TreeClassifier(max_depth=3), LogisticRegression()):
            for rate in (1.0, 0.3):
                boost = er.AdaBoostClassifier(learner, 15, learning_rate=rate).fit(X, y)
                assert (boost.training_errors_ <= boost.bound_ + 1e-12).all()
                assert boost.training_errors_[-1] == pytest.approx(np.mean(boost.predict(X) != y))


def test_it_is_the_machine_of_scikit_learn_where_both_mean_the_same():
    X, y = noisy(n=1000)
    ours = er.AdaBoostClassifier(n_estimators=40).fit(X, y)
    theirs = Rival(n_estimators=40).fit(X, y)
    assert np.mean(ours.predict(X) != theirs.predict(X)) < 0.005
    np.testing.assert_allclose(2 * ours.alphas_, theirs.estimator_weights_, rtol=1e-6)


@pytest.mark.parametrize("max_depth", [1, 2, 4])
def test_columns_sorted_once_give_the_trees_that_fitting_anew_gives(max_depth):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 3] = rng.integers(0, 9, size=300)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] + np.isin(X[:, 3], [1, 4])) > rng.normal(size=300)).astype(int)
    rules = {"max_depth": max_depth, "categorical_features": [3]}
    shared = er.AdaBoostClassifier(er.TreeClassifier(**rules), 12).fit(X, y)
    anew = er.AdaBoostClassifier(er.TreeClassifier(max_features=4, **rules), 12).fit(X, y)
    for one, other in zip(shared.estimators_, anew.estimators_, strict=True):
        assert np.array_equal(one.nodes_.threshold, other.nodes_.threshold, equal_nan=True)
        assert np.array_equal(one.predict(X), other.predict(X))
    np.testing.assert_allclose(shared.decision_function(X), anew.decision_function(X))


class Stubborn(ClassifierMixin, BaseEstimator):
    """A learner that ignores the weights: right on a part of the rows, wrong on the others."""

    def __init__(self, right=0.5):
        self.right = right

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.answers_ = dict(zip(X[:, 0], y, strict=True))
        return self

    def predict(self, X):
        answers = np.array([self.answers_[x] for x in X[:, 0]])
        place = np.searchsorted(self.classes_, answers)
        wrong = np.arange(len(X)) >= round(self.right * len(X))
        return self.classes_[np.where(wrong, (place + 1) % len(self.classes_), place)]


def line(classes=2, n=40):
    return np.arange(float(n))[:, None], np.arange(n) % classes


def test_a_perfect_learner_ends_it():
    X, y = line()
    boost = er.AdaBoostClassifier(er.TreeClassifier(), 50).fit(X, y)
    assert boost.stopped_ == "perfect_learner"
    assert len(boost.estimators_) == 1
    assert boost.training_errors_.tolist() == boost.bound_.tolist() == [0.0]
    assert boost.edges_.tolist() == [0.5]
    assert np.array_equal(boost.predict(X), y)
    assert np.isfinite(boost.alphas_).all()


def test_a_perfect_learner_outvotes_those_before_it():
    class Late(Stubborn):
        """Wrong on other rows in every round, until it is right on all."""

        rounds = 0

        def fit(self, X, y, sample_weight=None):
            Late.rounds += 1
            self.round_ = Late.rounds
            return super().fit(X, y)

        def predict(self, X):
            right = np.array([self.answers_[x] for x in X[:, 0]])
            wrong = (X[:, 0] % 7 == self.round_) | (X[:, 0] % 7 == 0)
            return np.where(wrong & (self.round_ < 5), 1 - right, right)

    X, y = line()
    boost = er.AdaBoostClassifier(Late(), 50).fit(X, y)
    assert boost.stopped_ == "perfect_learner"
    assert len(boost.estimators_) == 5
    assert boost.training_errors_[-2] > 0
    assert boost.training_errors_[-1] == boost.bound_[-1] == 0
    assert np.array_equal(boost.predict(X), y)


def test_a_learner_that_is_always_wrong_is_turned_round():
    X, y = line()
    boost = er.AdaBoostClassifier(Stubborn(right=0.0), 50).fit(X, y)
    assert boost.stopped_ == "perfect_learner"
    assert boost.alphas_[0] < 0
    assert boost.edges_.tolist() == [-0.5]
    assert np.array_equal(boost.predict(X), y)
    assert boost.training_errors_.tolist() == [0.0]


def test_a_learner_worse_than_chance_counts_against_its_answers():
    X, y = line()
    boost = er.AdaBoostClassifier(Stubborn(right=0.25), 1).fit(X, y)
    assert boost.alphas_[0] == pytest.approx(0.5 * np.log(0.25 / 0.75))
    assert boost.training_errors_[0] == pytest.approx(0.25)
    assert boost.bound_[0] == pytest.approx(2 * np.sqrt(0.25 * 0.75))


def test_a_learner_as_good_as_chance_ends_it():
    X, y = line()
    boost = er.AdaBoostClassifier(DummyClassifier(), 50).fit(X, y)
    assert boost.stopped_ == "no_edge"
    assert boost.alphas_.tolist() == [0.0]
    assert boost.training_errors_[0] <= boost.bound_[0] == 1
    later = er.AdaBoostClassifier(Stubborn(right=0.75), 50).fit(X, y)  # after one round its edge is gone
    assert later.stopped_ == "no_edge"
    assert later.training_errors_.tolist() == [0.25]
    several = er.AdaBoostClassifier(Stubborn(right=0.1), 50).fit(*line(classes=4))
    assert several.stopped_ == "no_edge"
    assert several.training_errors_.tolist() == [0.9]
    assert several.bound_[0] >= 0.9


def test_stages_and_margins():
    X, y = noisy(classes=2)
    boost = er.AdaBoostClassifier(n_estimators=20).fit(X, y)
    stages = list(boost.staged_predict(X))
    np.testing.assert_allclose([np.mean(stage != y) for stage in stages], boost.training_errors_)
    assert np.array_equal(stages[-1], boost.predict(X))
    margins = boost.margins(X, y)
    expected = np.where(y == 1, 1, -1) * boost.decision_function(X) / np.abs(boost.alphas_).sum()
    np.testing.assert_allclose(margins, expected)
    assert np.abs(margins).max() <= 1
    X, y = noisy(classes=4)
    several = er.AdaBoostClassifier(n_estimators=20).fit(X, y)
    margins = several.margins(X, y)
    right = several.predict(X) == y
    assert (margins[right] >= 0).all()
    assert (margins[~right] <= 0).all()
    with pytest.raises(EmpiriskError, match="y holds classes that were not in the training data"):
        several.margins(X, y + 7)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_the_exponential_loss(classes):
    X, y = noisy(classes=classes)
    boost = er.AdaBoostClassifier(n_estimators=30).fit(X, y)
    shares, scores = boost.predict_proba(X), boost.decision_function(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    if classes == 2:
        np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-2 * scores)))
    assert np.array_equal(boost.predict(X), boost.classes_[shares.argmax(axis=1)])


def test_weights_are_counts_of_rows():
    X, y = noisy(classes=3)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=300)
    rows = rng.permutation(np.repeat(np.arange(300), counts))
    boost = er.AdaBoostClassifier(n_estimators=15)
    weighted = boost.fit(X, y, counts)
    found = weighted.predict_proba(X), weighted.bound_
    repeated = boost.fit(X[rows], y[rows])
    np.testing.assert_allclose(found[0], repeated.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(found[1], repeated.bound_, rtol=1e-9)


def test_class_weights_are_first_weights():
    X, y = noisy()
    by_class = er.AdaBoostClassifier(n_estimators=10, class_weight={0: 3}).fit(X, y)
    by_row = er.AdaBoostClassifier(n_estimators=10).fit(X, y, np.where(y == 0, 3.0, 1.0))
    assert np.array_equal(by_class.decision_function(X), by_row.decision_function(X))


def test_words_and_missing_values_reach_the_trees():
    rng = np.random.default_rng(0)
    city = rng.choice(["a", "b", "c", "d"], size=200)
    frame = pl.DataFrame({"city": [None if name == "d" else name for name in city.tolist()], "x": rng.normal(size=200)})
    y = np.where(np.isin(city, ["b", "d"]), "in", "out")
    boost = er.AdaBoostClassifier(n_estimators=5).fit(frame, y)
    assert boost.score(frame, y) == 1
    assert boost.score(frame.to_pandas(), y) == 1
    assert boost.importances(frame, y, random_state=0)["importance"][0] > 0.3


def test_refitting_with_another_kind_of_learner():
    X, y = noisy()
    boost = er.AdaBoostClassifier(n_estimators=5).fit(X, y)
    other = boost.set_params(estimator=LogisticRegression()).fit(X, y)
    assert other.score(X, y) > 0.6
    assert boost.set_params(estimator=None).fit(X, y).score(X, y) > 0.6


class Recorder(Watching):
    def __init__(self, stop_after):
        self.errors, self.stop_after = [], stop_after

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        if context.task_name == "round":
            self.errors.append(np.mean(fitted_estimator.predict(X) != y))
        return len(self.errors) >= self.stop_after


def test_callbacks_follow_and_stop_the_rounds():
    X, y = noisy()
    recorder = Recorder(stop_after=6)
    boost = er.AdaBoostClassifier(n_estimators=30).set_callbacks(recorder).fit(X, y)
    assert boost.stopped_ == "callback"
    np.testing.assert_allclose(recorder.errors, boost.training_errors_)
    assert len(boost.estimators_) == 6


def test_time_ends_a_fit_with_the_rounds_that_are_there():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        boost = er.AdaBoostClassifier(n_estimators=5000, max_time=1e-9).fit(X, y)
    assert boost.stopped_ == "max_time"
    assert len(boost.estimators_) == len(boost.alphas_) == 1


@pytest.mark.parametrize(
    ("boost", "message"),
    [
        (er.AdaBoostClassifier(n_estimators=0), "n_estimators=0 must be"),
        (er.AdaBoostClassifier(learning_rate=0), "learning_rate=0 must be"),
        (er.AdaBoostClassifier(KNeighborsClassifier()), "does not take sample_weight"),
        (er.AdaBoostClassifier(er.TreeClassifier(max_depth=-2)), "max_depth=-2 must be"),
        (er.AdaBoostClassifier(max_time=0), "max_time=0 must be"),
    ],
)
def test_parameters_without_meaning_are_refused(boost, message):
    with pytest.raises(EmpiriskError, match=message):
        boost.fit(*noisy())


def test_one_class_is_no_trouble():
    boost = er.AdaBoostClassifier(n_estimators=3).fit([[1.0], [2.0]], ["a", "a"])
    assert boost.predict([[3.0]]).tolist() == ["a"]
    assert boost.stopped_ == "perfect_learner"


@pytest.mark.parametrize("classes", [2, 6])
def test_weight_two_is_the_row_twice_where_classes_and_errors_are_equal_but_for_rounding(classes):
    """After a round the weights of right and wrong rows are equal but for rounding: leaves of as many are the rule."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y, times = rng.integers(0, 3, (13, 3)), np.arange(13) % classes, rng.integers(1, 4, 13)
        each = np.repeat(np.arange(13), times)
        weighted = er.AdaBoostClassifier(n_estimators=8).fit(X, y, times)
        repeated = er.AdaBoostClassifier(n_estimators=8).fit(X[each], y[each])
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9, atol=1e-9)
        assert weighted.stopped_ == repeated.stopped_


@pytest.mark.parametrize("heavy", [0, 1])
def test_a_class_may_have_next_to_no_weight(heavy):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    machine = er.AdaBoostClassifier(n_estimators=4).fit(X, y, np.where(y == heavy, 1e9, 1e-9))
    assert np.isfinite(machine.decision_function(X)).all()
    assert np.all(machine.predict(X)[y == heavy] == heavy)
