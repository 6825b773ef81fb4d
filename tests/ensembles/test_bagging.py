"""Bagging: bootstrap samples, honest out-of-bag judgement, any machine, weights as repeated rows."""

import os
import signal
from time import sleep

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import empirisk as er
from empirisk.contract.outputs import judged_numbers, squared_errors
from empirisk.contract.resample import Groups
from empirisk.ensembles import bagging
from empirisk.errors import EmpiriskError
from empirisk.linalg.hashes import row_hashes
from empirisk.stop import requested

pytestmark = pytest.mark.row("T5")


@pytest.fixture(scope="module")
def classes():
    return make_classification(600, 8, n_informative=4, n_classes=3, flip_y=0.1, random_state=0)


def test_the_vote_is_the_members_vote(classes):
    X, y = classes
    bag = er.BaggingClassifier(n_estimators=15, random_state=0).fit(X[:400], y[:400])
    votes = np.array([member.predict(X[400:]) for member in bag.estimators_])
    shares = np.stack([(votes == k).mean(axis=0) for k in range(3)], axis=1)
    np.testing.assert_allclose(bag.predict_proba(X[400:]), shares)
    assert np.array_equal(bag.predict(X[400:]), shares.argmax(axis=1))
    mean = er.BaggingClassifier(er.TreeClassifier(max_depth=3), 15, voting="soft", random_state=0).fit(X[:400], y[:400])
    np.testing.assert_allclose(
        mean.predict_proba(X[400:]), np.mean([m.predict_proba(X[400:]) for m in mean.estimators_], axis=0)
    )


def test_a_bag_beats_its_members_and_knows_its_error(classes):
    X, y = classes
    bag = er.BaggingClassifier(n_estimators=100, random_state=0).fit(X[:400], y[:400])
    alone = np.mean([member.score(X[400:], y[400:]) for member in bag.estimators_])
    assert bag.score(X[400:], y[400:]) > alone + 0.05
    assert bag.oob_score_ == pytest.approx(bag.score(X[400:], y[400:]), abs=0.06)
    assert bag.oob_error_ == pytest.approx(1 - bag.oob_score_)


def test_the_out_of_bag_answer_is_that_of_members_that_did_not_see_the_row(classes):
    X, y = classes
    bag = er.BaggingClassifier(KNeighborsClassifier(1), 12, random_state=1).fit(X, y)
    votes, asked = np.zeros((600, 3)), np.zeros(600)
    for member in bag.estimators_:
        seen = {tuple(row) for row in member._fit_X}
        outside = np.array([tuple(row) not in seen for row in X])
        assert 0.3 < outside.mean() < 0.45
        votes[outside, member.predict(X[outside])] += 1
        asked += outside
    expected = np.where(asked[:, None] > 0, votes / np.maximum(asked, 1)[:, None], np.nan)
    np.testing.assert_allclose(bag.oob_decision_function_, expected)
    known = asked > 0
    assert bag.oob_score_ == pytest.approx(np.mean(votes.argmax(axis=1)[known] == y[known]))


def test_numbers_are_averaged():
    X, y = make_regression(400, 6, noise=20.0, random_state=0)
    bag = er.BaggingRegressor(n_estimators=60, random_state=0).fit(X[:300], y[:300])
    np.testing.assert_allclose(bag.predict(X[300:]), np.mean([m.predict(X[300:]) for m in bag.estimators_], axis=0))
    assert bag.score(X[300:], y[300:]) > np.mean([m.score(X[300:], y[300:]) for m in bag.estimators_]) + 0.1
    assert bag.oob_score_ == pytest.approx(bag.score(X[300:], y[300:]), abs=0.1)
    assert bag.oob_error_ == pytest.approx(np.nanmean((bag.oob_prediction_ - y[:300]) ** 2))


@pytest.mark.parametrize(
    "machine",
    [LogisticRegression(), LinearSVC(), KNeighborsClassifier(), make_pipeline(StandardScaler(), LogisticRegression())],
)
def test_any_machine_can_be_bagged(classes, machine):
    X, y = classes
    bag = er.BaggingClassifier(machine, 8, random_state=0).fit(X, y)
    assert bag.score(X, y) > 0.55
    assert np.array_equal(bag.predict(X), bag.classes_[bag.predict_proba(X).argmax(axis=1)])
    sparse = er.BaggingClassifier(machine, 3, random_state=0)
    if "pipeline" not in str(type(machine)):
        assert sparse.fit(csr_array(X), y).predict(csr_array(X)).shape == y.shape


def test_bags_of_our_own_machines(classes):
    X, y = classes
    assert er.BaggingClassifier(er.NearestCentroid(), 10, random_state=0).fit(X, y).score(X, y) > 0.5
    ridge = er.BaggingRegressor(LinearRegression(), 10, random_state=0).fit(X, X @ np.arange(8.0))
    np.testing.assert_allclose(ridge.predict(X), X @ np.arange(8.0), atol=1e-9)


def test_weights_are_counts_of_rows_and_order_does_not_matter(classes):
    X, y = classes
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=600)
    rows = rng.permutation(np.repeat(np.arange(600), counts))
    for bag in (
        er.BaggingClassifier(n_estimators=5, random_state=3),
        er.BaggingRegressor(n_estimators=5, random_state=3),
    ):
        weighted = bag.fit(X, y, counts).predict(X)
        assert np.array_equal(weighted, bag.fit(X[rows], y[rows]).predict(X))
    resampling = er.BaggingClassifier(KNeighborsClassifier(), 5, random_state=3)  # takes no weights: rows are repeated
    assert np.array_equal(resampling.fit(X, y, counts).predict(X), resampling.fit(X[rows], y[rows]).predict(X))


def test_threads_change_nothing(classes):
    X, y = classes
    found = []
    for threads in (1, 3):
        with er.config(threads=threads):
            bag = er.BaggingClassifier(n_estimators=12, random_state=0).fit(X, y)
            found.append((bag.predict_proba(X), bag.oob_score_))
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_samples_are_bootstrap_samples():
    X, y = np.arange(500.0)[:, None], np.zeros(500)
    weights = np.r_[np.full(250, 3.0), np.full(250, 1.0)]
    groups = Groups.of(X, y, weights)
    drawn = np.mean([groups.draw(1.0, np.random.default_rng(seed)) for seed in range(200)], axis=0)
    assert drawn.sum() == pytest.approx(1000)  # whole weights count rows
    by_row = drawn[groups.member]
    assert by_row[:250].mean() == pytest.approx(3, rel=0.02)
    assert by_row[250:].mean() == pytest.approx(1, rel=0.05)
    assert Groups.of(X, y, weights / 7).size == 500  # fractions weigh rows, but do not count them
    assert Groups.of(X, y, weights).draw(0.5, np.random.default_rng(0)).sum() == 500


def test_equal_rows_have_equal_hashes_in_every_kind_of_table():
    X = np.array([[1.0, 0.0, np.nan], [0.0, 2.0, -1.0], [1.0, -0.0, np.nan], [0.0, 1.0, 0.0]])
    hashes = row_hashes(X)
    assert hashes[0] == hashes[2]
    assert len(set(hashes.tolist())) == 3
    assert np.array_equal(hashes, row_hashes(csr_array(X)))
    frame = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    assert np.array_equal(hashes, row_hashes(pd.DataFrame(frame)))
    assert np.array_equal(hashes, row_hashes(pl.DataFrame(frame)))
    words = row_hashes(pl.DataFrame({"a": ["u", "v", "u", None], "b": [1, 1, 1, 1]}))
    assert words[0] == words[2]
    assert len(set(words.tolist())) == 3


def test_data_frames_with_words():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"city": rng.choice(["a", "b", "c"], size=200), "x": rng.normal(size=200)})
    y = (frame["city"] == "a").to_numpy() ^ (rng.random(200) < 0.1)
    for table in (frame, frame.to_pandas()):
        bag = er.BaggingClassifier(n_estimators=10, oob_importances=True, random_state=0).fit(table, y)
        assert bag.score(table, y) > 0.9
        assert bag.feature_importances_[0] > 0.2
        assert abs(bag.feature_importances_[1]) < 0.1


def test_importances_outside_the_samples_are_fair_to_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    X[:, 0] = rng.integers(0, 2, size=400)
    y = np.where(rng.random(400) < 0.8, X[:, 0], 1 - X[:, 0])
    for kind in (er.BaggingClassifier, er.BaggingRegressor):
        for table in (X, csr_array(X)):
            bag = kind(n_estimators=30, oob_importances=True, random_state=0).fit(table, y)
            assert bag.feature_importances_[0] > 0.1
            assert np.abs(bag.feature_importances_[1:]).max() < 0.04
        fair = bag.importances(X, y, random_state=0)
        assert fair.columns == ["feature", "importance", "deviation"]


def test_a_rare_class_does_not_stop_machines_that_need_two():
    X, y = np.arange(30.0)[:, None], np.r_[np.zeros(29), 1]
    bag = er.BaggingClassifier(LogisticRegression(), 20, random_state=0).fit(X, y)
    assert all(len(member.classes_) == 2 for member in bag.estimators_)
    hopeless = er.BaggingClassifier(LogisticRegression(), 3, class_weight={0: 1e9, 1: 1e-9}, random_state=0).fit(X, y)
    assert (hopeless.predict(X) == 0).all()


def test_degenerate_data():
    one = er.BaggingClassifier(n_estimators=3, random_state=0).fit([[1.0]], ["a"])
    assert one.predict([[5.0]]).tolist() == ["a"]
    assert np.isnan(one.oob_score_)
    constant = er.BaggingRegressor(n_estimators=3, random_state=0).fit(np.ones((5, 1)), np.full(5, 2.0))
    assert constant.predict([[0.0]]) == [2.0]


def test_time_ends_a_fit_with_the_members_that_are_there(classes):
    X, y = classes
    bag = er.BaggingClassifier(n_estimators=500, max_time=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        bag.fit(X, y)
    assert 1 <= len(bag.estimators_) < 500
    assert bag.predict(X).shape == y.shape


class Slow(DummyClassifier):
    """The first two copies fit at once, all others take their time."""

    copies = 0

    def fit(self, X, y, sample_weight=None):
        Slow.copies += 1
        if Slow.copies > 2:
            sleep(4)
        return super().fit(X, y, sample_weight)


def test_ctrl_c_is_heard_while_a_member_answers(classes, monkeypatch):
    monkeypatch.setattr(bagging, "ASKED", 5)
    presses = iter([signal.SIGINT])  # one: the thread goes on to the next member, which nobody awaits

    class Pressed(er.KNNClassifier):
        def predict(self, X):
            for number in presses:
                os.kill(os.getpid(), number)
                while not requested():  # the main thread hears it when it has its turn
                    sleep(0.001)
            return super().predict(X)

    keep = er.config(threads=1, interrupt="keep")
    with keep, pytest.warns(ConvergenceWarning, match="1 of 9 machines"):
        bag = er.BaggingClassifier(Pressed(), n_estimators=9, random_state=0).fit(*classes)
    assert bag.stopped_ == "interrupted"
    assert np.count_nonzero(~np.isnan(bag.oob_decision_function_[:, 0])) == 5


def test_rows_that_are_asked_about_in_parts_get_the_same_answers(classes, monkeypatch):
    whole = er.BaggingClassifier(n_estimators=5, random_state=0).fit(*classes)
    monkeypatch.setattr(bagging, "ASKED", 7)
    parts = er.BaggingClassifier(n_estimators=5, random_state=0).fit(*classes)
    np.testing.assert_array_equal(parts.oob_decision_function_, whole.oob_decision_function_)


def test_time_does_not_wait_for_a_slow_member(classes):
    with pytest.warns(ConvergenceWarning, match="after 2 of 9 machines"):
        bag = er.BaggingClassifier(Slow(), n_estimators=9, max_time=0.3).fit(*classes)
    assert len(bag.estimators_) == 2


class Recorder:
    """A callback that counts the members, and says stop after some."""

    def __init__(self, stop_after):
        self.ended, self.stop_after = 0, stop_after

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.closed = True

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "machine":
            self.ended += 1
            assert len(fitted_estimator.estimators_) == self.ended
        return self.ended >= self.stop_after


def test_callbacks_follow_and_stop_a_fit(classes):
    X, y = classes
    recorder = Recorder(stop_after=7)
    bag = er.BaggingClassifier(n_estimators=20, random_state=0).set_callbacks(recorder).fit(X, y)
    assert recorder.ended == len(bag.estimators_) == 7
    assert recorder.closed


@pytest.mark.parametrize(
    ("bag", "message"),
    [
        (er.BaggingClassifier(n_estimators=0), "n_estimators=0 must be"),
        (er.BaggingClassifier(max_samples=1.5), "max_samples=1.5 must be"),
        (er.BaggingClassifier(voting="loud"), "voting='loud' is not known"),
        (er.BaggingClassifier(LinearSVC(), voting="soft"), "voting='soft' needs probabilities"),
        (er.BaggingRegressor(max_time=-1), "max_time=-1 must be"),
        (er.BaggingClassifier(class_weight="even"), "class_weight='even' is not known"),
    ],
)
def test_parameters_without_meaning_are_refused(classes, bag, message):
    with pytest.raises(EmpiriskError, match=message):
        bag.fit(*classes)


def test_a_failed_fit_leaves_the_bag_as_it_was(classes):
    X, y = classes
    bag = er.BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    before = bag.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        bag.fit(X[:, :3], np.where(y == 0, np.nan, y))
    assert np.array_equal(bag.predict(X), before)


def test_a_target_whose_squares_overflow_is_refused():
    with pytest.raises(EmpiriskError, match="y holds numbers beyond 1e"):
        er.BaggingRegressor(n_estimators=2).fit(np.arange(6.0)[:, None], [0.0, 0.0, 0.0, 0.0, 0.0, 1e200])


def test_errors_whose_squares_are_beyond_all_numbers_are_infinite_and_no_warning():
    """Warnings are errors here: a row of 1e200 that a ridge has not seen is predicted that far away."""
    assert squared_errors(np.array([[1e200], [1.0]]), np.zeros(2)).tolist() == [np.inf, 1.0]
    assert judged_numbers(np.array([[1e200], [1.0]]), np.array([0.0, 1.0]), np.ones(2)) == (np.inf, -np.inf)
