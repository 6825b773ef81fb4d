"""What the page about scikit-learn says: counterparts, names of parameters, and tables that are up to date."""

import pytest

import empirisk as er
from empirisk.names import CLASSES
from tools.scikit_learn import PAGE, counterparts, missing, page


def test_the_tables_of_the_page_are_up_to_date():
    assert PAGE.read_text() == page(), "python -m tools.scikit_learn"


def test_every_parameter_that_is_missing_is_answered_by_a_sentence_about_it():
    """No list of all parameters, and no name that merely looks alike."""
    assert len(counterparts()) >= 45
    vague = [each for each in missing() if each[1].startswith(("its parameters are", "the closest one", "it has none"))]
    assert not vague


def test_class_names_of_scikit_learn_are_answered():
    for name, ours in CLASSES.items():
        with pytest.raises(AttributeError) as caught:
            getattr(er, name)
        assert f"write er.{ours}" in str(caught.value)
