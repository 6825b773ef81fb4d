"""Files of every version so far load and answer as they did."""

import json
import re
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import empirisk as er
from empirisk.files.registry import MOVED, class_of
from tests.files.cases import fitted, public_estimators
from tests.files.golden import FOLDER, OURS, machines, new_rows
from tests.files.tampering import refuses, rewrite

#: Models of tables, by the name of the file: the method, and its answers to the rows that stand beside them.
TABLES = {"table": ("predict_proba", "proba"), "series": ("predict", "predictions")}
FILES = sorted(FOLDER.rglob("*.model"))

# A newer scikit-learn says that the file is older; it must load all the same.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")


def assert_equal(found, expected):
    """Labels equal; numbers equal up to the order of sums, which other processors may change."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:
        assert found.tolist() == expected.tolist()


def test_every_family_has_a_file():
    assert {file.stem for file in OURS.glob("*.model")} >= {*machines(), *TABLES}


def test_every_public_estimator_has_a_file():
    lacking = {f"estimator-{name}" for name in public_estimators()} - {file.stem for file in OURS.glob("*.model")}
    assert not lacking, "python -m tests.files.golden writes the files of new estimators"


def test_every_released_version_has_its_files():
    changelog = Path(er.__file__).parents[2] / "CHANGELOG.md"
    released = set(re.findall(r"^## \[([\d.]+)\]", changelog.read_text(), re.M))
    assert {file.parent.name for file in FILES} >= released | {er.__version__}


RESULTS = ("Comparison", "Difference", "EvaluationResult", "Fold", "LearningCurve", "Score", "ValidationCurve")


@pytest.mark.parametrize(
    ("old", "new"), [*MOVED.items(), *((f"selection.{name}", f"evaluation.{name}") for name in RESULTS)]
)
def test_classes_that_moved_are_found_under_their_old_names(old, new):
    assert class_of(old) is attrgetter(new)(er)


def test_attributes_of_old_files_have_their_new_names(tmp_path):
    path = tmp_path / "a.model"
    er.save(fitted(er.selection.Threshold(er.LogisticRegression())), path)
    expected = er.load(path).predict(new_rows()).tolist()

    def older(tree):
        state = tree["root"]["object"][2]
        state["machine"], state["machine_"] = state.pop("estimator"), state.pop("estimator_")

    rewrite(path, tree=older)
    assert er.load(path).predict(new_rows()).tolist() == expected
    rewrite(path, tree=lambda tree: tree["root"]["object"][2].update(estimator_=None))
    refuses(path, "under two names")


@pytest.mark.parametrize("version", sorted({file.parent for file in FILES}), ids=lambda folder: folder.name)
def test_old_files_answer_as_they_did(version):
    wrong = []
    for file in sorted(file for file in version.glob("*.model") if file.stem not in TABLES):
        machine, X = er.load(file), new_rows()
        for name, expected in json.loads(file.with_suffix(".json").read_text()).items():
            found = getattr(machine, name)(X)
            try:
                assert_equal(found.toarray() if hasattr(found, "toarray") else found, expected)
            except AssertionError as error:
                wrong.append(f"{file.stem}.{name}: {error}")
    assert wrong == []


def test_old_models_of_tables_answer_as_they_did():
    for file in (file for file in FILES if file.stem in TABLES):
        expected, (method, answers) = json.loads(file.with_suffix(".json").read_text()), TABLES[file.stem]
        assert_equal(getattr(er.load(file), method)(expected["rows"]), expected[answers])
