"""What machines answer: all of it from one look at the rows."""

import numpy as np
import pytest

import empirisk as er
from empirisk.evaluation.answers import answers_of


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "machine",
    [
        er.SVM(),
        er.LogisticRegression(features=er.kernels.Gaussian()),
        er.BoostingClassifier(n_estimators=5),
        er.AdaBoostClassifier(n_estimators=5),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_scores_are_computed_once(machine, classes, monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), np.arange(60) % classes
    machine.fit(X, y)
    plain, looks = type(machine)._scores, []
    monkeypatch.setattr(type(machine), "_scores", lambda self, X: looks.append(1) or plain(self, X))
    said = answers_of(machine, X, np.arange(classes))
    assert len(looks) == 1
    np.testing.assert_array_equal(said.predictions, machine.predict(X))
    for name, answers in (("predict_proba", said.probabilities), ("decision_function", said.decisions)):
        assert (answers is not None) == hasattr(machine, name)
        if answers is not None:
            np.testing.assert_array_equal(answers, getattr(machine, name)(X))
