"""What columns and targets are taken for, and what happens when the next table differs."""

from datetime import date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.tables.understanding.profile import drift, profile

random = np.random.default_rng(0)


def kind(values, name="x"):
    return er.tables.understand(pl.DataFrame({name: values}, strict=False)).columns[0].kind


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.5, 2.5, None], "number"),
        ([1, 2, 3], "number"),
        (["1", "2.5", "NA"], "number"),
        (["1", "2", "-", "4"], "number"),
        (["1,5", "2,25"], "number"),
        (["1,234", "5,678,901"], "number"),
        (["$1,234.50", "$3"], "number"),
        (["20%", "5%"], "number"),
        (["yes", "no", "", "Yes"], "boolean"),
        ([True, None, False], "boolean"),
        (["2020-01-31", "2020-02-01"], "date"),
        (["31.12.2020", "01.02.2021"], "date"),
        (["12/31/2020", "02/01/2021"], "date"),
        (["31/12/2020", "01/02/2021"], "date"),
        (["2020-01-31T10:00:00", "2020-02-01T11:30:00.5"], "date"),
        ([date(2020, 1, 1), None, date(2020, 1, 2)], "date"),
        (["red", "blue", "red"], "category"),
        (["1", "2", "red"], "category"),
        (["a", "a", "a"], "constant"),
        ([None, None], "constant"),
        (["", "NA"], "constant"),
        ([3.0, 3.0], "constant"),
        ([3.0, None], "number"),
        ([{"a": 1}, {"a": 2}], "nested"),
        ([f"user{i}" for i in range(50)], "identifier"),
        (list(range(1, 60)), "identifier"),
        ([f"this is sentence number {i} of many" for i in range(60)], "text"),
        ([float("inf"), 1.0, 2.0], "number"),
    ],
    ids=str,
)
def test_kinds_of_columns(values, expected):
    assert kind(values) == expected


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (["1/5/20", "12/31/99"], datetime(2020, 1, 5)),
        (["31.12.99", "01.02.21"], datetime(1999, 12, 31)),
        (["31-12-1999", "01-02-2021"], datetime(1999, 12, 31)),
        (["12-31-1999", "01-02-2021"], datetime(1999, 12, 31)),
        (["05-01-20", "31-12-99"], datetime(2020, 1, 5)),
        (["05-Jan-20", "31-Dec-99"], datetime(2020, 1, 5)),
        (["Jan 5, 2020", "Dec 31, 1999"], datetime(2020, 1, 5)),
        (["1/5/2020 1:04 PM", "12/31/1999 1:02 AM"], datetime(2020, 1, 5, 13, 4)),
        (["1/5/2020 13:04:05", "12/31/1999 01:02:03"], datetime(2020, 1, 5, 13, 4, 5)),
        (["2020-01-05T13:04", "1999-12-31T01:02"], datetime(2020, 1, 5, 13, 4)),
        (["2020/01/05 13:04:05", "1999/12/31 01:02:03"], datetime(2020, 1, 5, 13, 4, 5)),
        (["2020-01", "1999-12"], datetime(2020, 1, 1)),
        (["2020/1", "1999/12"], datetime(2020, 1, 1)),
        (["01/2020", "12/1999"], datetime(2020, 1, 1)),
    ],
    ids=str,
)
def test_dates_as_people_write_them(values, first):
    column = er.tables.understand({"x": values}).columns[0]
    assert column.kind == "date"
    moments = column.convert(pl.Series("x", values)).to_list()
    assert moments[0] == first
    assert {moment.year for moment in moments} <= {1999, 2020, 2021}


@pytest.mark.parametrize("values", [["2020-01", "1999-13"], ["4711-05", "4712-06"], ["01/4711", "05/4712"]], ids=str)
def test_pairs_of_numbers_that_are_no_months(values):
    assert er.tables.understand({"x": values * 9}).columns[0].kind == "category"


@pytest.mark.parametrize(
    ("values", "numbers", "told"),
    [
        (["1:04 PM", "12:30am"], [13 * 3600 + 240, 1800], "from 0:30 to 13:04"),
        (["1:11:13", "0:46"], [4273, 2760], "from 0:46 to 1:11:13"),
        (["2 days 03:04:05", "0 days 00:00:05"], [183845, 5], "from 0:00:05 to 51:04:05"),
        (["1h 30m", "45m", "2d"], [5400, 2700, 172800], "from 0:45 to 48:00"),
        (["PT1H30M", "PT5S"], [5400, 5], "from 0:00:05 to 1:30"),
        (["90 min", "5 min"], [90, 5], "from 5 to 90"),
        (["1.234,50 €", "-99,00 €"], [1234.5, -99], "from -99 to 1234.5"),
        (["99 €", "1,200 €"], [99, 1200], "from 99 to 1200"),
        (["(1,200.00)", "$3.50"], [-1200, 3.5], "from -1200 to 3.5"),
        (["25.1k", "300", "1.2M"], [25100, 300, 1.2e6], "from 300 to 1,200,000"),
        (["47 kg", "5.5kg"], [47, 5.5], "from 5.5 to 47"),
    ],
    ids=str,
)
def test_numbers_as_people_write_them(values, numbers, told):
    column = er.tables.understand({"x": values}).columns[0]
    assert column.convert(pl.Series("x", values)).to_list() == numbers
    assert str(column) == f"x: number {told}"


@pytest.mark.parametrize("values", [["1.2.3", "4.5.6", "1.2.7"], ["dm", "PT", "h"], ["3-4", "5-6"], ["B12", "C3"]])
def test_words_that_look_like_numbers_or_dates(values):
    assert kind(values) == "category"


def test_types_of_other_programs():
    frame = pl.DataFrame(
        {
            "decimal": pl.Series(["1.5", "2.5", None]).cast(pl.Decimal(10, 2)),
            "enum": pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])),
            "categorical": pl.Series(["a", "b", None], dtype=pl.Categorical),
            "big": pl.Series([1, 2, 2**60], dtype=pl.UInt64),
            "clock": [time(1, 2), time(3, 4), None],
            "span": [timedelta(hours=1), timedelta(hours=2), None],
            "zoned": pl.Series([datetime(2020, 1, 1), datetime(2020, 2, 1), None]).dt.replace_time_zone("UTC"),
            "nothing": pl.Series([None, None, None], dtype=pl.Null),
            "bytes": pl.Series([b"a", b"b", b"c"]),
            "record": [{"a": 1}, {"a": 2}, None],
        }
    )
    schema = er.tables.understand(frame)
    assert {column.name: column.kind for column in schema.columns} == {
        "decimal": "number",
        "enum": "category",
        "categorical": "category",
        "big": "number",
        "clock": "number",
        "span": "number",
        "zoned": "date",
        "nothing": "constant",
        "bytes": "nested",
        "record": "nested",
    }
    assert schema.features(frame)["clock"].to_list() == pytest.approx([3720.0, 11040.0, None])
    assert schema.features(frame)["span"].to_list() == pytest.approx([3600.0, 7200.0, None])
    assert np.isfinite(er.tables.TableEncoder(schema).fit_transform(frame)).all()
    assert er.tables.Schema.from_json(schema.to_json()) == schema


def test_numbers_that_name_rows():
    shuffled = random.permutation(1000)[:60].tolist()
    assert kind(shuffled, "customer_id") == "identifier"
    assert kind(shuffled, "customerId") == "identifier"
    assert kind(shuffled, "paid") == "number"
    assert kind(shuffled, "income") == "number"
    assert kind(list(range(1950, 2010)), "year") == "number"


def converted(values, new):
    schema = er.tables.understand({"x": values})
    return schema.features({"x": new})["x"].to_list()


def test_the_next_table_may_be_written_in_another_way():
    assert converted([1.5, 2.5], ["3", "NA", " 4.5 "]) == [3.0, None, 4.5]
    assert converted(["1,5", "2,5"], ["3,25", "1.000,5"]) == [3.25, 1000.5]
    assert converted(["$1,234", "$2"], ["$3,000.5"]) == [3000.5]
    assert converted(["yes", "no"], [1, 0]) == [1.0, 0.0]
    assert converted([True, False], ["yes", "FALSE"]) == [1.0, 0.0]
    assert converted(["31.12.2020", "01.02.2021"], ["2020-01-05"]) == [datetime(2020, 1, 5)]
    assert converted(["31.12.2020", "01.02.2021"], [date(2020, 1, 5)]) == [datetime(2020, 1, 5)]
    assert converted(["a", "1"], [1, 2]) == ["1", "2"]
    assert converted(["a", "1"], [1.0, None]) == ["1", None]


@pytest.mark.parametrize(
    ("values", "new", "match"),
    [
        ([1.5, 2.5], [1, "abc"], r"Column 'x' holds 'abc' in row 2, which is not a number"),
        (["yes", "no"], ["perhaps"], r"Column 'x' holds 'perhaps' in row 1, which is not true or false"),
        (["2020-01-01", "2020-01-02"], ["soon"], r"Column 'x' holds 'soon' in row 1, which is not a date"),
        (["a", "b", "a"], [[1], [2, 3]], r"Column 'x' holds lists"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(values, new, match):
    with pytest.raises(EmpiriskError, match=match):
        converted(values, new)


def test_missing_and_extra_columns():
    schema = er.tables.understand({"age": [1.0, 2.0], "town": ["a", "b"]})
    assert schema.features({"other": [1], "town": ["x"], "age": [3]}).columns == ["age", "town"]
    with pytest.raises(EmpiriskError, match=r"lacks the column 'age'; add it"):
        schema.features({"town": ["x"]})
    with pytest.raises(EmpiriskError, match=r"lacks the column 'town'; rename 'towns'"):
        schema.features({"towns": ["x"], "age": [1]})
    with pytest.raises(EmpiriskError, match=r"lacks the columns 'age', 'town'"):
        schema.features({"z": [1]})


# --- targets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["a", "b"] * 10, "classification", ("a", "b")),
        ([True, False] * 10, "classification", (False, True)),
        ([0, 1] * 10, "classification", (0, 1)),
        ([0.5, 1.5] * 10, "classification", ("0.5", "1.5")),
        ([1, 2, 3] * 10, "classification", (1, 2, 3)),
        ([1.0, 2.0, 3.0] * 10, "classification", (1, 2, 3)),
        (list(range(26)) * 6, "classification", tuple(range(26))),
        (list(range(60)) * 6, "regression", ()),
        (list(range(0, 600, 10)) * 6, "regression", ()),
        (list(range(100)), "regression", ()),
        ([0.1 * i for i in range(50)], "regression", ()),
        (["1.5", "2.5", "3.5", "NA"], "regression", ()),
        ([1, 2, 3], "regression", ()),
    ],
    ids=lambda value: str(value)[:30],
)
def test_tasks(values, task, classes):
    target = er.tables.Target.of({"y": values}, "y")
    assert (target.task, target.classes) == (task, classes)
    assert target.reason
    known = target.known({"y": values})
    assert len(target.values(pl.DataFrame({"y": values}).filter(pl.Series(known)))) == known.sum()


def test_a_task_can_be_asked_for():
    assert er.tables.Target.of({"y": [1, 2, 3] * 9}, "y", task="regression").classes == ()
    assert er.tables.Target.of({"y": [0.5, 1.5, 2.5]}, "y", task="classification").classes == ("0.5", "1.5", "2.5")
    with pytest.raises(EmpiriskError, match="holds words"):
        er.tables.Target.of({"y": ["a", "b"]}, "y", task="regression")
    with pytest.raises(EmpiriskError, match="task='ranking' is not known"):
        er.tables.Target.of({"y": [1, 2]}, "y", task="ranking")


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (["a"] * 5, "one value only, 'a'"),
        ([1] * 5, "one value only, '1'"),
        ([None] * 5, "has no values"),
        ([f"some {i}" for i in range(50)], "too many to be classes"),
        ([date(2020, 1, day) for day in range(1, 20)], "holds dates"),
        ([{"a": 1}, {"a": 2}], "nested"),
    ],
    ids=str,
)
def test_targets_that_cannot_be_learned(values, match):
    with pytest.raises(EmpiriskError, match=match):
        er.tables.Target.of(pl.DataFrame({"y": values}, strict=False), "y")


def test_a_misspelt_target_is_suggested():
    table = {"price": [1, 2], "size": [3, 4]}
    with pytest.raises(EmpiriskError, match=r"target='prise' is not a column of the table; did you mean 'price'\?"):
        er.tables.Target.of(table, "prise")
    with pytest.raises(EmpiriskError, match="the table has 'price', 'size'"):
        er.tables.Target.of(table, "qqqq")
    assert er.tables.Target.of({"Price": [1.0, 2.5, 3.5]}, " price").name == "Price"
    assert er.tables.Target.of({"Größe": [1.0, 2.5, 3.5]}, "grosse").name == "Größe"
    with pytest.raises(EmpiriskError, match="did you mean 'größe'"):
        er.tables.Target.of({"preis": [1], "größe": [2]}, "groesse")


def test_missing_targets_are_counted():
    target = er.tables.Target.of({"y": ["a", "b", None, ""]}, "y")
    assert target.known({"y": ["a", None, ""]}).tolist() == [True, False, False]
    with pytest.raises(EmpiriskError, match="missing in 1 rows"):
        target.values({"y": ["a", None]})


# --- leaks ----------------------------------------------------------------------------------------------------------


def leaks(table, target):
    target = er.tables.Target.of(table, target)
    return er.tables.look_for_leaks(table, er.tables.understand(table, without=[target.name]), target)


def test_columns_that_give_the_target_away():
    y = random.integers(0, 2, 400)
    table = {
        "code": np.where(y == 1, "paid", "open").tolist(),
        "copy": (2.5 * y + 1).tolist(),
        "noisy": (y + random.normal(size=400)).tolist(),
        "noise": random.normal(size=400).tolist(),
        "word": random.choice(["a", "b", "c"], 400).tolist(),
        "y": y.tolist(),
    }
    found = leaks(table, "y")
    assert set(found) == {"code", "copy"}
    assert "'y' is known" in found["code"]


def test_leaks_of_numbers_and_of_several_classes():
    x = random.uniform(size=500)
    assert set(leaks({"x": x.tolist(), "z": random.normal(size=500).tolist(), "y": (3 * x).tolist()}, "y")) == {"x"}
    wild = np.exp(3 * random.normal(size=500))  # a few values hold all of the variance
    assert set(
        leaks({"x": (2 * wild + 5).tolist(), "z": random.normal(size=500).tolist(), "y": wild.tolist()}, "y")
    ) == {"x"}
    assert leaks(er.tables.read("diabetes"), "progress") == {}
    assert leaks(er.tables.read("iris"), "species") == {}
    assert leaks(er.tables.read("breast_cancer"), "diagnosis") == {}
    assert leaks({"x": [1.0, 2.0] * 5, "y": ["a", "b"] * 5}, "y") == {}  # too few rows to tell


def test_columns_that_are_almost_empty_give_nothing_away():
    y = random.normal(size=6000)
    table = {"x": [1.0, 2.0, *[None] * 5998], "w": ["a", "b", *[None] * 5998], "y": y.tolist()}
    assert leaks(table, "y") == {}
    assert leaks({**table, "y": (y > 0).tolist()}, "y") == {}


def test_a_rare_class_is_not_given_away_by_guessing():
    y = np.zeros(1000, dtype=int)
    y[:2] = 1
    assert leaks({"x": random.normal(size=1000).tolist(), "y": y.tolist()}, "y") == {}


@pytest.mark.parametrize("name", ["rows", "count", "value"])
def test_columns_may_have_the_names_of_counts(name):
    words = random.choice(["a", "b", "c"], 200)
    table = pl.DataFrame({name: words, "y": np.where(words == "a", "p", "q")})
    schema = er.tables.understand(table, without=["y"])
    encoded = er.tables.TableEncoder(schema).fit_transform(table)
    np.testing.assert_array_equal(encoded.sum(axis=0), sorted(np.unique(words, return_counts=True)[1])[::-1])
    assert list(er.tables.look_for_leaks(table, schema, er.tables.Target.of(table, "y"))) == [name]
    kept = profile(schema.features(table), schema)
    assert not drift(kept, schema.features(table))
    numbers = pl.DataFrame({name: random.permutation(np.repeat(np.arange(30), 6))})
    assert len(er.tables.Target.of(numbers, name).classes) == 30
