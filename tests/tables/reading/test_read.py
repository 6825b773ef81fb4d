"""Tables come in as they are written: delimiters, encodings, formats; what cannot be read is one sentence."""

import json
from datetime import datetime

import pandas as pd
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.tables.reading import datasets, sniff
from tests.tables.tickets import PLACE, text

TABLE = pl.DataFrame({"name": ["Köln", "Ulm", "a, b"], "size": [1.5, None, 3.0], "count": [1, 2, 3]})


def refuses(source, match):
    with pytest.raises(EmpiriskError, match=match) as caught:
        er.tables.read(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_in_every_usual_form(tmp_path, delimiter, encoding, end):
    path = tmp_path / "t.csv"
    written = TABLE.write_csv(separator=delimiter, line_terminator=end)
    path.write_bytes(written.encode(encoding))
    assert er.tables.read(path).equals(TABLE)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "jsonl", "tsv", "json"])
def test_other_formats(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write = {
        "parquet": TABLE.write_parquet,
        "arrow": TABLE.write_ipc,
        "feather": TABLE.write_ipc,
        "jsonl": TABLE.write_ndjson,
        "json": TABLE.write_json,
        "tsv": lambda path: TABLE.write_csv(path, separator="\t"),
    }
    write[ending](path)
    assert er.tables.read(path).equals(TABLE)
    assert er.tables.read(str(path)).equals(TABLE)


def test_arrow_streams(tmp_path):
    TABLE.write_ipc_stream(tmp_path / "t.arrows")
    assert er.tables.read(tmp_path / "t.arrows").equals(TABLE)


def test_frames_of_other_libraries():
    assert er.tables.read(pd.DataFrame({"a": [1, 2]}, index=[5, 6])).to_dict(as_series=False) == {"a": [1, 2]}
    assert er.tables.read(TABLE.lazy()).equals(TABLE)
    assert er.tables.read(TABLE.to_arrow()).equals(TABLE)
    assert er.tables.read({"a": [1, "x", None]})["a"].to_list() == ["1", "x", None]
    refuses(42, "The table is a int")
    refuses({"a": [1, 2], "b": [1]}, "one length|equal length")
    refuses(pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns")
    refuses(pd.DataFrame([[1, 2]], columns=[0, "0"]), "two columns")


def test_columns_of_pandas():
    frame = pd.DataFrame(
        {
            "whole": [1, 2],
            "nullable": pd.array([1, None], dtype="Int64"),
            "gap": [1.5, float("nan")],
            "mixed": [1, "z"],
            "words": pd.Categorical(["x", None]),
            "text": ["a", None],
            "when": pd.to_datetime(["2020-01-01", None]),
            "zone": pd.to_datetime(["2020-01-01", None]).tz_localize("Europe/Berlin"),
            "truth": [True, False],
            "maybe": pd.array([True, None], dtype="boolean"),
            5: [0.5, 1.5],
        }
    )
    read = er.tables.read(frame)
    assert read.schema["whole"] == pl.Int64
    assert read.rows()[0] == (1, 1.0, 1.5, "1", "x", "a", datetime(2020, 1, 1), datetime(2020, 1, 1), True, True, 0.5)
    assert read.rows()[1] == (2, None, None, "z", None, None, None, None, False, None, 1.5)
    assert er.tables.understand(frame).of_kind("date") == ["when", "zone"]


def test_missing_markers_and_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,c\n1,NA,"x\ny, z"\n?,2.5,\nnull,,"say ""no"""\n')
    assert er.tables.read(path).to_dict(as_series=False) == {
        "a": [1, None, None],
        "b": [None, 2.5, None],
        "c": ["x\ny, z", None, 'say "no"'],
    }


def test_a_type_that_changes_late_is_read_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 20_000 + "x,2.5\n")
    read = er.tables.read(path)
    assert read["a"][-1] == "x"
    assert read["b"][-1] == 2.5


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "has no rows"),
        (b"a,b,a\n1,2,3\n", "two columns named 'a'"),
        (b"a,b\n1,2\n1,2,3\n", "Line 3 .* has 3 fields where the header has 2"),
        (b"a,b,c\n1,2,3\n1,2\n", "Line 3 .* has 2 fields where the header has 3"),
        (b'a,b,c\n"1\n1",2,3\n1,2', "has 2 fields where the header has 3"),
        (b"PK\x03\x04\x00\x00", "not properly packed .*pack it again"),
        (b"\x1f\x8b\x08\x00", "is not properly packed"),
        (b"\xff\xfea", "not proper UTF-16"),
    ],
)
def test_broken_text_is_one_sentence(tmp_path, content, match):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    refuses(path, match)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_broken_formats_are_one_sentence(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.write_bytes({"parquet": b"PAR1broken", "arrow": b"ARROW1broken", "jsonl": b'{"a": 1}\n{"a": '}[ending])
    refuses(path, "cannot be read")
    path.write_bytes(b"plain")
    refuses(path, "not the|cannot be read")


def test_blank_lines_and_unnamed_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",b\r\n1,2\r\n\r\n3,4\r\n\r\n")
    read = er.tables.read(path)
    assert read.columns == ["column_1", "b"]
    assert read["b"].drop_nulls().to_list() == [2, 4]


def test_no_such_table_suggests(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses("iriss", "did you mean 'iris'")
    (tmp_path / "sales.csv").write_text("a\n1\n")
    refuses("sale.csv", "did you mean 'sales.csv'")
    refuses("zzzzzz", "`empirisk datasets`")


def test_fields_are_counted_the_same_with_quotes():
    for data in (b"a;b\n1;2\n3;4", b'a;b\n"1;1";2\n"x\ny";4\n'):
        sniff.check_rows(data, ";", 2, "t")
        sniff.check_rows(data, ";", 2, "t")
        with pytest.raises(EmpiriskError):
            sniff.check_rows(data, ";", 3, "t")


def test_quoted_tables_larger_than_a_block(monkeypatch):
    monkeypatch.setattr(sniff, "BLOCK", 7)
    sniff.check_rows(b'a,b\n"1,\n1",2\n3,4\n"5",6', ",", 2, "t")
    with pytest.raises(EmpiriskError, match="Line 3"):
        sniff.check_rows(b'a,b\n"1,\n1",2\n3,4,5\n', ",", 2, "t")


@pytest.mark.parametrize("name", datasets.NAMES)
def test_bundled_tables_have_their_target(name):
    table, about = er.tables.read(name), datasets.about(name)
    target = er.tables.Target.of(table, about.target)
    assert target.task == ("regression" if name == "diabetes" else "classification")
    assert len(er.tables.understand(table, without=[about.target]).used) >= 4


def test_the_made_up_table_is_the_one_its_recipe_gives():
    assert PLACE.read_text(encoding="utf-8") == text()


def test_schemas_are_json():
    schema = er.tables.understand(datasets.table("tickets"))
    assert er.tables.Schema.from_json(schema.to_json()) == schema
    assert json.loads(schema.to_json())[0]["name"] == "ticket_id"
