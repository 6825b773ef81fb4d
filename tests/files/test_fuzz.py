"""Random damage never does more than raise our error: not to the bytes, and not to a tree whose digests still fit."""

import contextlib
import json
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.files.cases import answers, assert_same, fitted, rows
from tests.files.tampering import rewrite

ROUNDS = 300


@pytest.fixture(scope="module")
def machines():
    forest = er.ForestClassifier(n_estimators=2, max_depth=2, random_state=0)
    return [fitted(make_pipeline(StandardScaler(), er.SVM())), fitted(forest)]


@pytest.mark.parametrize("number", [0, 1])
def test_flipped_bytes_are_refused_or_change_nothing(tmp_path, machines, number):
    path, X = tmp_path / "a.model", rows(20)
    er.save(machines[number], path)
    whole, expected, random = path.read_bytes(), answers(machines[number], X), np.random.default_rng(number)
    refused = 0
    for _ in range(ROUNDS):
        changed = bytearray(whole)
        for place in random.integers(len(whole), size=random.integers(1, 4)):
            changed[place] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        try:
            assert_same(answers(er.load(path), X), expected)  # a flipped bit in a date stamp, say
        except EmpiriskError:
            refused += 1
    assert refused > ROUNDS // 2


def mutate(node, random):
    """Replace one random place of a JSON tree by another value or by another place's value."""
    places = []

    def walk(inner):
        items = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        for key, child in items:
            places.append((inner, key))
            walk(child)

    walk(node)
    inner, key = places[random.integers(len(places))]
    other, place = places[random.integers(len(places))]
    odd = [None, -1, 0, 10**20, 1.5, "", "os", [], {}, {"same": 0}, {"float": "nan"}, True]
    choice = int(random.integers(len(odd) + 3))
    inner[key] = odd[choice] if choice < len(odd) else json.loads(json.dumps(other[place]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("number", [0, 1])
def test_changed_trees_load_or_are_refused(tmp_path, machines, number):
    path, random = tmp_path / "a.model", np.random.default_rng(number)
    er.save(machines[number], path)
    whole = path.read_bytes()
    refused = 0
    for _ in range(ROUNDS):
        path.write_bytes(whole)
        rewrite(path, tree=lambda tree: mutate(tree, random))
        try:
            loaded = er.load(path)
        except EmpiriskError:
            refused += 1
            continue
        # What loads may be nonsense, but asking it must be safe: an ordinary exception at worst.
        with contextlib.suppress(Exception):
            loaded.predict(rows(5))
    assert refused > ROUNDS // 10


def test_the_warning_of_another_version_of_scikit_learn_comes_through(tmp_path):
    path = tmp_path / "a.model"
    er.save(fitted(StandardScaler()), path)
    with zipfile.ZipFile(path) as archive:
        text = archive.read("tree.json").decode()
    assert "_sklearn_version" in text

    def age(tree):
        tree["root"]["object"][2]["_sklearn_version"] = "1.0"

    rewrite(path, tree=age)
    with pytest.warns(InconsistentVersionWarning):
        er.load(path)
