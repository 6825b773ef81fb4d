"""What rooms ask of objects that they do not make."""

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk import protocols

SOURCE = Path(er.__file__).parent
SEVERAL = er.maps.SeveralKernels([er.kernels.Linear(), er.kernels.Gaussian()])
X, y = np.arange(12.0).reshape(6, 2), np.array([0.0, 1.0, 0.0, 2.0, 1.0, 3.0])


def private_questions(file):
    """Private attributes of anything but self, cls, and classes that the file itself has."""
    tree = ast.parse(file.read_text())
    own = {"self", "cls"} | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if private and not (isinstance(node.value, ast.Name) and node.value.id in own) and node.attr != "_replace":
            yield f"{file.name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("room", ["fits", "explain"])
def test_a_room_asks_nothing_private_of_machines(room):
    assert [found for file in sorted((SOURCE / room).glob("*.py")) for found in private_questions(file)] == []


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (None, (False, False, False, False)),
        ("gaussian", (False, False, False, False)),
        (er.kernels.Gaussian(), (False, False, False, False)),
        (StandardScaler(), (True, False, False, False)),
        (make_pipeline(StandardScaler(), SelectKBest()), (True, False, False, False)),
        (make_pipeline(StandardScaler(), er.Ridge()), (False, False, False, False)),
        (GridSearchCV(er.Ridge(), {"C": [1.0]}), (False, False, False, False)),
        (er.maps.Nystrom(), (True, True, False, False)),
        (SEVERAL, (False, False, True, False)),
        (er.Network([2]), (True, False, True, True)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_features_are_known_by_their_methods(features, expected):
    asked = (protocols.is_map, protocols.is_blockwise, protocols.learns_with_machine, protocols.takes_steps)
    assert tuple(question(features) for question in asked) == expected
    assert protocols.is_learning_map(features) == (expected[0] and expected[2])


def test_machines_are_known_by_what_they_have():
    tree, vote = er.TreeRegressor(), er.VoteRegressor([er.Ridge(), er.TreeRegressor()], weights=[1, 3])
    assert not protocols.is_grown(tree)
    assert protocols.is_grown(tree.fit(X, y))
    assert not protocols.has_problems(tree)
    assert protocols.has_problems(er.Ridge())
    assert not protocols.has_weighted_members(er.Ridge())
    assert protocols.has_weighted_members(vote.fit(X, y))
    total = sum(weight * member.predict(X) for weight, member in vote.weighted_members())
    np.testing.assert_allclose(total, vote.predict(X), rtol=1e-14)
