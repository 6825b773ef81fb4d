"""Files of every version so far load and answer as they did."""

import json

import numpy as np
import pytest

import empirisk as er
from tests.files.golden import FOLDER, machines, new_rows

FILES = sorted(FOLDER.glob("*.model"))

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
    assert {file.stem for file in FILES} >= {*machines(), "table"}


@pytest.mark.parametrize("file", [file for file in FILES if file.stem != "table"], ids=lambda file: file.stem)
def test_old_files_answer_as_they_did(file):
    machine = er.load(file)
    X = new_rows()
    for name, expected in json.loads(file.with_suffix(".json").read_text()).items():
        found = getattr(machine, name)(X)
        assert_equal(found.toarray() if hasattr(found, "toarray") else found, expected)


def test_an_old_model_of_a_table_answers_as_it_did():
    model = er.load(FOLDER / "table.model")
    expected = json.loads((FOLDER / "table.json").read_text())
    assert_equal(model.predict_proba(expected["rows"]), expected["proba"])
