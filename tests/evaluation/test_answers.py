"""What machines answer: all of it from one look at the rows."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.evaluation.answers import answers_of


def rows_of(classes):
    return np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % classes


def check_same(said, machine, X):
    np.testing.assert_array_equal(said.predictions, machine.predict(X))
    for name, answers in (("predict_proba", said.probabilities), ("decision_function", said.decisions)):
        assert (answers is not None) == hasattr(machine, name)
        if answers is not None:
            np.testing.assert_array_equal(answers, getattr(machine, name)(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "machine",
    [
        er.SVM(),
        er.LogisticRegression(features=er.kernels.Gaussian()),
        er.NearestCentroid(),
        er.KNNClassifier(3),
        er.TreeClassifier(max_depth=3),
        er.ForestClassifier(n_estimators=5),
        er.BaggingClassifier(n_estimators=5),
        er.VoteClassifier(),
        er.VoteClassifier([er.LogisticRegression(), er.TreeClassifier()], voting="soft"),
        er.BoostingClassifier(n_estimators=5),
        er.AdaBoostClassifier(n_estimators=5),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_scores_are_computed_once(machine, classes, monkeypatch):
    X, y = rows_of(classes)
    machine.fit(X, y)
    plain, looks = type(machine)._scores, []
    monkeypatch.setattr(type(machine), "_scores", lambda self, X: looks.append(1) or plain(self, X))
    said = answers_of(machine, X, np.arange(classes))
    assert len(looks) == 1
    check_same(said, machine, X)
    assert len(looks) > 1  # every answer does come from there


class Doubled(TransformerMixin, BaseEstimator):
    """Learns nothing, and notes of how many rows it was asked."""

    asked = []  # noqa: RUF012

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        self.asked.append(len(X))
        return 2 * X


class Own(Pipeline):
    """Answers in its own way."""

    def predict(self, X):
        return 1 - super().predict(X)


ROWS = make_pipeline(Doubled(), er.LogisticRegression())


@pytest.mark.parametrize(
    "machine",
    [
        ROWS,
        make_pipeline(Doubled(), LogisticRegression()),
        make_pipeline(Doubled(), "passthrough", StandardScaler(), er.SVM()),
        make_pipeline(StandardScaler(), ROWS),
        make_pipeline(ROWS),
        er.selection.Search(ROWS, {"logisticregression__C": [0.1, 1.0]}),
        er.selection.GreedySelection(ROWS, cv=2),
        er.selection.Threshold(ROWS),
        er.selection.Balanced(ROWS, random_state=0),
        er.selection.Balanced(make_pipeline(Doubled(), er.SVM()), random_state=0),
    ],
    ids=lambda machine: "-".join([type(machine).__name__, *(name for name, _ in getattr(machine, "steps", []))]),
)
def test_rows_are_transformed_once(machine):
    X, y = rows_of(2)
    machine.fit(X, y)
    Doubled.asked.clear()
    said = answers_of(machine, X, np.arange(2))
    assert Doubled.asked == [60]
    check_same(said, machine, X)


def test_evaluate_transforms_once():
    X, y = rows_of(2)
    Doubled.asked.clear()
    er.evaluate(ROWS, X, y, cv="holdout", test_size=0.25)
    assert Doubled.asked == [45, 15]


def test_a_pipeline_of_ones_own_answers_itself():
    X, y = rows_of(2)
    machine = Own(ROWS.steps).fit(X, y)
    check_same(answers_of(machine, X, np.arange(2)), machine, X)
