"""Linear machines in words."""

import numpy as np
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.report.terms import equation, in_words, terms_of

TABLE = pl.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, 50.0] * 10,
        "town": ["Ulm", "Bonn", "Ulm", "Ulm"] * 10,
        "note": ["good day", "bad day", "good night", "bad night, all of it"] * 10,
        "y": [1.0, 2.0, 3.0, 4.0] * 10,
        "kind": ["a", "a", "b", "b"] * 10,
    }
)


def model(machine, target):
    aim = er.tables.Target.of(TABLE, target, None if target == "kind" else "regression")
    schema = er.tables.understand(TABLE, without=["y", "kind"], types={"note": "text"})
    pipeline = make_pipeline(er.tables.TableEncoder(schema), machine).fit(TABLE, aim.values(TABLE))
    return er.tables.TableModel(schema, pipeline, aim)


def test_the_terms_add_up_to_the_prediction():
    found = model(er.Ridge(C=1.0), "y")
    terms = terms_of(found)
    X = found.encode(TABLE)
    X = X.toarray() if hasattr(X, "toarray") else X
    np.testing.assert_allclose(X @ terms.weights[0] + terms.constant[0], found.predict(TABLE))


def test_words_say_what_a_weight_does():
    terms = terms_of(model(er.Ridge(C=1.0), "y"))
    words = {name: in_words(terms, k, "y", None, odds=False) for k, name in enumerate(terms.names)}
    assert words["age"].startswith("11.2 more: ")  # a standard deviation
    assert words["age"].endswith(" more y")
    assert words["town=Bonn"].startswith("where it holds: ")
    assert words["note: good"] in ("speaks for more y", "speaks for less y")


def test_truth_values_count_from_no_to_yes():
    table = TABLE.with_columns(sale=pl.Series(["yes", "no", "no", "no"] * 10))
    table = table.with_columns(y=10 + 3.0 * (table["sale"] == "yes"))
    schema, aim = er.tables.understand(table, without=["y"]), er.tables.Target.of(table, "y", "regression")
    fit = make_pipeline(er.tables.TableEncoder(schema), er.Lasso(C=1e4)).fit(table, aim.values(table))
    terms = terms_of(er.tables.TableModel(schema, fit, aim))
    words = in_words(terms, terms.names.index("sale"), "y", None, odds=False)
    assert words == "where it holds: 3 more y"


def test_odds_are_multiplied():
    terms = terms_of(model(er.LogisticRegression(C=1.0), "kind"))
    k = terms.names.index("age")
    assert in_words(terms, k, "kind", "b", odds=True) == f"11.2 more: odds of b times {np.exp(terms.weights[0, k]):.3g}"
    assert in_words(terms, terms.names.index("note: good"), "kind", "b", odds=True).startswith("speaks ")


def test_a_calibrated_machine_is_seen_through():
    found = model(CalibratedClassifierCV(er.SVM(C=1.0), cv=3, ensemble=False), "kind")
    assert equation(found).startswith("f = ")


@pytest.mark.parametrize("machine", [er.TreeRegressor(), er.Ridge(features="gaussian")])
def test_other_machines_have_no_terms(machine):
    found = model(machine, "y")
    assert terms_of(found) is None
    assert equation(found) == ""
