"""Every class that a file may name states what its state may be."""

from operator import attrgetter

import numpy as np
import pytest

import empirisk as er
from empirisk.files import registry
from empirisk.files.decode import rules_for
from empirisk.state import Mismatch, State, array, labels, number, optional, size, text, whole
from tests.files.cases import public_classes


@pytest.mark.parametrize("name", public_classes())
def test_every_public_class_states_its_rules(name):
    assert rules_for(attrgetter(name)(er), name) is not None, (
        f"{name} has no _state: say beside the class what its fitted attributes are (see docs/model-file.md)"
    )


@pytest.mark.parametrize("name", [*registry.RECORDS, *registry.STEP_PLACES])
def test_every_record_and_step_has_rules(name):
    assert rules_for(registry.class_of(name), name) is not None


RULES = State(
    lambda its: None if its["coef_"].any() else "coef_ is zero",
    n_features_in_=size("columns"),
    classes_=labels("classes"),
    coef_=array("f8", "classes", "columns"),
    nearest_=array("i", "rows", below="classes"),
    note_=optional(text()),
    limit=whole(1, 10),
    rate=number(0, 1),
)
GOOD = {
    "n_features_in_": 3,
    "classes_": np.array(["a", "b"]),
    "coef_": np.ones((2, 3)),
    "nearest_": np.array([0, 1, 1]),
    "limit": 3,
    "rate": 0.5,
}


def test_a_sound_state_passes_whole_or_unfitted():
    assert RULES.check(GOOD, ["limit", "rate"]).sizes == {"columns": 3, "classes": 2, "rows": 3}
    scope = RULES.check({"limit": 3, "rate": 0.5}, ["limit", "rate"])
    assert not scope.fitted


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"coef_": np.ones((2, 2))}, "coef_ has a size of 2 where columns is 3"),
        ({"coef_": np.ones((2, 3), np.float32)}, "coef_ holds numbers of the type float32"),
        ({"coef_": np.full((2, 3), np.nan)}, "coef_ holds numbers that are not finite"),
        ({"coef_": np.zeros((2, 3))}, "coef_ is zero"),
        ({"coef_": [[1.0]]}, "coef_ is no array"),
        ({"nearest_": np.array([2])}, "nearest_ points at number 2 of 2 classes"),
        ({"nearest_": np.array([-1])}, "nearest_ holds numbers below 0"),
        ({"nearest_": np.array([2**63], np.uint64)}, "nearest_ holds numbers of the type uint64"),
        ({"classes_": np.array(["a", "a"])}, "classes_ holds a class twice"),
        ({"classes_": np.array([], dtype="<U1")}, "classes_ has no class"),
        ({"n_features_in_": -1}, "n_features_in_ is not between"),
        ({"n_features_in_": True}, "n_features_in_ is no whole number"),
        ({"limit": 10**18}, "limit is not between 1 and 10"),
        ({"rate": float("inf")}, "rate is not finite"),
        ({"more_": 1}, "more_ is no attribute"),
        ({"note_": 1}, "note_ is no text"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(change, match):
    with pytest.raises(Mismatch, match=match):
        RULES.check(GOOD | change, ["limit", "rate"])


def test_a_fitted_object_is_whole():
    for name in ("coef_", "classes_", "n_features_in_", "nearest_"):
        with pytest.raises(Mismatch, match=f"{name} is missing"):
            RULES.check({key: value for key, value in GOOD.items() if key != name}, ["limit", "rate"])


def test_an_object_that_has_seen_rows_is_whole():
    """scikit-learn takes one that knows the number of its columns for fitted."""
    with pytest.raises(Mismatch, match="inner_ is missing"):
        State(inner_=number()).check({"n_features_in_": 3}, [])
    assert State(inner_=optional(number())).check({"n_features_in_": 3}, []).fitted


def test_one_form_only():
    rules = State(forms=(("a_",), ("b_", "c_")), a_=number(), b_=number(), c_=number())
    for good in ({"a_": 1.0}, {"b_": 1.0, "c_": 2.0}, {}):
        rules.check(good, [])
    for bad in ({"a_": 1.0, "b_": 1.0}, {"b_": 1.0}, {"a_": 1.0, "b_": 1.0, "c_": 1.0}):
        with pytest.raises(Mismatch, match="form"):
            rules.check(bad, [])
