"""One table, one reading: however a column of categories arrives, it means the same, or is refused."""

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.service.fields import Fields
from empirisk.tables.understanding.column import Column


def codes(rows=300):
    """Codes of five digits, many with zeros in front, that decide the class."""
    random = np.random.default_rng(0)
    zips = [f"{number:05d}" for number in random.choice([12, 345, 6789, 10115, 80331, 99084], rows)]
    return pl.DataFrame({"zip": zips, "x": random.normal(size=rows), "y": ["yes" if z < "1" else "no" for z in zips]})


@pytest.fixture(scope="module")
def model():
    return er.learn(codes(), "y", machines=["logistic"], types={"zip": "category"}).model


def test_codes_that_lost_their_zeros(model, tmp_path):
    path = tmp_path / "new.csv"
    codes().drop("y").write_csv(path)
    read, plain = er.tables.read(path), pl.read_csv(path)
    assert plain["zip"].dtype == pl.Int64
    expected = model.predict(read)
    assert set(expected) == {"yes", "no"}
    np.testing.assert_array_equal(model.predict(plain), expected)
    np.testing.assert_array_equal(model.predict(plain.with_columns(pl.col("zip").cast(pl.Float64))), expected)


@pytest.mark.parametrize("code", [12, 12.0, "00012"])
def test_numbers_in_a_request(model, code):
    rows, problems = Fields(model.schema).check([{"zip": code, "x": 0.0}])
    assert problems == []
    assert rows["zip"].to_list() == ["00012"]
    assert model.predict(rows).tolist() == ["yes"]


def test_a_number_of_any_size_in_a_request(model):
    _, problems = Fields(model.schema).check([{"zip": 10**60, "x": 0.0}])
    assert "no number of a usual size" in problems[0]["problem"]


def learned_from(words):
    return er.tables.understand({"code": words}, types={"code": "category"})["code"]


def test_codes_that_were_numbers_and_arrive_as_words():
    column = learned_from([12, 345, 12, 7])
    assert column.convert(pl.Series(["00012", "345", " 7.0"])).to_list() == ["12", "345", "7"]


def test_halves_and_wholes_are_read_row_by_row():
    column = learned_from(["1.0", "2.5", "other"] * 5)
    assert column.convert(pl.Series([1.0, 2.5])).to_list() == column.convert(pl.Series(["1.0", "2.5"])).to_list()
    assert column.convert(pl.Series([1.0])).to_list() == column.convert(pl.Series(["1.0"])).to_list()
    assert column.convert(pl.Series(["other"])).to_list() == ["other"]


def test_numbers_that_do_not_tell_words_apart_are_refused():
    column = learned_from(["7", "007", "12"] * 5)
    assert column.convert(pl.Series(["7", "007"])).to_list() == ["7", "007"]
    with pytest.raises(EmpiriskError, match="Column 'code' holds numbers"):
        column.convert(pl.Series([7, 12]))
    _, problems = Fields(er.tables.Schema((column,))).check([{"code": 7}])
    assert "read it as text" in problems[0]["problem"]


def test_words_stay_words():
    assert Column("town", "category").convert(pl.Series(["Ulm", "3", None, "?"])).to_list() == ["Ulm", "3", None, None]
    assert learned_from(["Ulm", "Bonn"]).form == ""
