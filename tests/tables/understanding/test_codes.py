"""Whole numbers that are codes, and what the user says of a column."""

import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.league.request import Request
from empirisk.league.rows.split import plan


def written(tmp_path, text):
    path = tmp_path / "codes.csv"
    path.write_text(text)
    return er.tables.read(path)


def test_a_leading_zero_makes_a_code(tmp_path):
    rows = "".join(f"{k % 7:05d},{k % 3 + 1},0.{k},01.02.20{10 + k % 9},08:{k % 20:02d}\n" for k in range(40))
    frame = written(tmp_path, f"zip,plain,share,day,clock\n{rows}")
    assert frame["zip"][1] == "00001"
    assert frame["plain"].dtype == pl.Int64
    assert frame["share"].dtype == pl.Float64
    schema = er.tables.understand(frame)
    assert [column.kind for column in schema.columns] == ["category", "number", "number", "date", "number"]


def test_a_leading_zero_far_down_is_seen(tmp_path):
    frame = written(tmp_path, "zip,x\n" + "12345,1\n" * 12_000 + "01234,1\n")
    assert frame["zip"][-1] == "01234"


@pytest.mark.parametrize("name", ["zip", "store_id", "postal code", "productCode", "TYPE"])
def test_whole_numbers_of_such_a_name_are_codes(name):
    assert er.tables.understand({name: [101, 205, 300] * 20}).columns[0].kind == "category"


@pytest.mark.parametrize("name", ["paid", "barcodes_read", "prototype", "age", "middle"])
def test_other_whole_numbers_are_numbers(name):
    assert er.tables.understand({name: [101, 205, 300] * 20}).columns[0].kind == "number"


def test_a_target_is_no_code():
    target = er.tables.Target.of({"class": [1, 2, 3] * 20}, "class")
    assert target.classes == (1, 2, 3)


def test_the_user_knows_better():
    frame = {"zip": [1, 2, 3, 4] * 10, "price": ["1,5", "2,5", "-", "3"] * 10, "day": ["31.12.2020"] * 39 + [""]}
    schema = er.tables.understand(frame, types={"Zip": "number", "price": "number", "day": "category"})
    assert [column.kind for column in schema.columns] == ["number", "number", "category"]
    assert schema["price"].high == 3.0


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"day": "number"}, "'31.12.2020' in row 1, which is not a number; choose another kind"),
        ({"day": "colour"}, "choose one of number, boolean"),
        ({"dya": "date"}, "did you mean 'day'"),
    ],
)
def test_what_a_column_cannot_be(types, words):
    with pytest.raises(EmpiriskError, match=words):
        er.tables.understand({"day": ["31.12.2020"] * 9}, types=types)


def test_codes_and_quantities_are_told_and_can_be_set():
    frame = pl.DataFrame(
        {"grade": [1, 2, 3, 4] * 20, "x": [k * 0.5 for k in range(80)], "visits": [0, 1, 2, 5, 9] * 16}
    )
    found = plan(Request(frame, "visits"))
    told = " ".join(found.warnings)
    assert "types={'grade': 'category'}" in told
    assert "types={'visits': 'number'}" in told
    other = plan(Request(frame, "visits", types={"grade": "category", "visits": "number"}))
    assert other.target.task == "regression"
    assert other.schema["grade"].kind == "category"
    assert not any("types" in warning for warning in other.warnings)
    with pytest.raises(EmpiriskError, match="choose number or category"):
        plan(Request(frame, "visits", types={"visits": "date"}))


def test_numbers_with_a_stray_word_are_told():
    words = [str(k / 3) for k in range(74)] + ["oops"] * 26  # too many to be junk
    frame = pl.DataFrame({"x": words, "z": range(100, 200), "y": ["a", "b"] * 50})
    told = next(warning for warning in plan(Request(frame, "y")).warnings if "'oops' (row 75)" in warning)
    assert "types={'x': 'number'} takes those as missing" in told


def test_moments_of_several_zones():
    rows = [f"2024-03-{1 + k:02d}T10:00:00+0{k % 3}:00" for k in range(25)]
    [column] = er.tables.understand({"when": rows}).columns
    assert column.kind == "date"
    assert str(column.convert(pl.Series(rows))[1]) == "2024-03-02 09:00:00"


def test_broken_numbers_as_classes_are_words():
    found = er.learn({"x": [0.1, 0.9] * 40, "y": [0.5, 1.5] * 40}, "y", machines=["centroid"])
    assert found.model.classes == ["0.5", "1.5"]
    assert found.test.scores[0].value == 1.0


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_a_target_that_cannot_be_squared_is_refused(scale):
    frame = {"x": range(20), "y": [scale * (k + 0.5) for k in range(20)]}
    with pytest.raises(EmpiriskError, match="use another unit"):
        plan(Request(pl.DataFrame(frame, strict=False), "y"))
