"""Cells that are no number in a column of numbers, and values that stand for missing ones."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError, typed
from empirisk.league.request import Request
from empirisk.league.rows.split import plan
from empirisk.service.fields import Fields
from empirisk.settings import holding
from empirisk.tables.understanding.stand_ins import stand_ins

random = np.random.default_rng(0)
NUMBERS = [f"{value:.2f}" for value in random.normal(size=300)]
DAYS = [str(date(2020, 1, 1) + timedelta(days=k)) for k in range(300)]


def column(values, name="x", **options):
    return er.tables.understand({name: values}, **options)[name]


def test_a_few_words_among_numbers_are_missing_counted_and_named():
    found = column(NUMBERS + ["ERR"] * 5 + ["---"] * 2)
    assert (found.kind, found.dropped, found.missing, found.dropped_examples) == ("number", 7, 7, ("ERR", "---"))
    assert list(found.remarks()) == ["Column 'x': 7 cells such as 'ERR' and '---', no number, taken as missing."]
    assert "7 cells such as 'ERR'" in str(found)


def test_a_few_words_among_dates_are_missing():
    found = column([*DAYS, "unclear", "unclear"], "when")
    assert (found.kind, found.dropped) == ("date", 2)
    assert found.low is not None


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([str(k) for k in range(280)] + [f"C{k}" for k in range(20)], "article"),  # codes with letters
        ([str(536000 + k % 90) for k in range(280)] + ["cancelled"] * 20, "invoice_no"),  # the name says so
        ([*"123456" * 40, *"ABCDEFGH" * 3], "grade"),  # more words than numbers
        (NUMBERS + ["ERR"] * 100, "x"),  # too many
        (["1", "2", "red"], "x"),
    ],
)
def test_what_is_no_junk(values, name):
    assert column(values, name).kind != "number"


def test_what_was_junk_once_is_junk_again():
    table = {"x": NUMBERS + ["ERR"] * 5}
    schema = er.tables.understand(table)
    assert schema.features({"x": ["1.5", "ERR", "FAIL"]})["x"].to_list() == [1.5, None, None]
    assert er.tables.Schema.from_json(schema.to_json()) == schema
    frame, problems = Fields(schema).check([{"x": "1.5"}, {"x": "ERR"}])
    assert (frame["x"].to_list(), problems) == ([1.5, None], [])
    clean = er.tables.understand({"x": NUMBERS})
    with pytest.raises(EmpiriskError, match="'ERR' in row 1, which is not a number"):
        clean.features({"x": ["ERR"]})


def test_a_type_that_was_asked_for_drops_the_rest():
    words = ["1.5", "2", "a", "b", "c", "n.b. 7"]
    found = column(words, types={"x": "number"})
    assert (found.kind, found.dropped, found.high) == ("number", 4, 2.0)
    found = column(["1,5", "2,25", "x"], types={"x": "number"})
    assert found.form == "comma"
    assert column([*DAYS, "x"], types={"x": "date"}).dropped == 1


@pytest.mark.parametrize("numbers", [[3, 4, -999], [3.5, 4.0, -999.0], ["3", "4", "-999.0"], ["3", "4,5", "-999,0"]])
def test_values_that_the_user_calls_missing(numbers):
    found = column(numbers * 10, missing=[-999, "ERR"])
    assert (found.kind, found.missing, found.low) == ("number", 10, 3.0 if numbers[0] != 3.5 else 3.5)
    schema = er.tables.understand({"x": numbers * 10}, missing=["-999"])
    again = schema.features({"x": numbers})["x"].to_list()
    assert again[2] is None
    assert Fields(schema).check([{"x": -999}])[0]["x"].to_list() == [None]


def test_days_that_the_user_calls_missing():
    found = column(["01.02.2020", "03.02.2020", "01.01.1900"] * 9, missing=["1900-01-01"])
    assert (found.kind, found.missing, found.written(found.low)) == ("date", 9, "2020-02-01")


def test_a_target_may_hold_junk_and_missing_values():
    frame = {"x": [k % 9 for k in range(307)], "y": NUMBERS + ["ERR"] * 5 + ["-999"] * 2}
    found = plan(Request(frame, "y", missing=[-999]))
    assert (found.target.task, len(found.y)) == ("regression", 300)
    told = " ".join(found.warnings)
    assert "Column 'y': 5 cells such as 'ERR', no number" in told
    assert "7 rows without a value of 'y'" in told
    assert found.target.known({"y": ["1.0", "-999", "ERR"]}).tolist() == [True, False, False]
    words = plan(Request({"x": [k % 9 for k in range(40)], "y": ["a", "b", "a", "?!"] * 10}, "y", missing=["?!"]))
    assert words.target.classes == ("a", "b")


@pytest.mark.parametrize(
    ("values", "stand_in"),
    [
        (np.append(random.uniform(0, 40, 200), [-999.0] * 3), "-999"),
        (np.append(random.uniform(0, 90, 200), [999.0] * 3), "999"),
        ([*(date(1980, 1, 1) + timedelta(days=k) for k in range(300)), *[date(1900, 1, 1)] * 4], "1900-01-01"),
        (np.append(random.uniform(0, 2000, 200), [999.0] * 3), ""),  # among the others
        (np.append(random.uniform(0, 40, 200), [-999.0]), ""),  # once
        (np.append(random.uniform(0, 40, 200), [-500.0] * 3), ""),  # a number like any other
    ],
)
def test_values_that_may_stand_for_missing_ones_are_asked_about(values, stand_in):
    table = pl.DataFrame({"x": values})
    schema = er.tables.understand(table)
    with holding(typed, "empirisk learn"):
        asked = " ".join(stand_ins(schema.features(table), schema))
    assert (f"--missing {stand_in}" in asked) if stand_in else not asked
