"""A place for a model file, and a machine to save."""

import pytest

import empirisk as er
from tests.files.cases import fitted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


@pytest.fixture
def machine():
    return fitted(er.TreeClassifier(max_depth=2))
