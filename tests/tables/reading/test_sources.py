"""Where tables come from, and how people write numbers, times and dates."""

import gzip
import io
import sys
import zipfile

import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.tables import read, understand

TEXT = b"a,b\n1,x\n2,y\n3,z\n"
FRAME = pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})

OPEN = "http://schemas.openxmlformats.org"
SHEETS, LINKS, OFFICE = (
    f"{OPEN}/spreadsheetml/2006/main",
    f"{OPEN}/package/2006/relationships",
    f"{OPEN}/officeDocument/2006",
)
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def link(what, target):
    return (
        f'<Relationships xmlns="{LINKS}"><Relationship Id="r1" Type="{OFFICE}/relationships/{what}" '
        f'Target="{target}"/></Relationships>'
    )


def cell(place, value):
    if isinstance(value, int):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


ROWS = "".join(
    f'<row r="{number}">{cell(f"A{number}", a)}{cell(f"B{number}", b)}</row>'
    for number, (a, b) in enumerate([("a", "b"), *FRAME.rows()], 1)
)
WORKBOOK = {
    "[Content_Types].xml": (
        f'<Types xmlns="{OPEN}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{KIND}.worksheet+xml"/></Types>'
    ),
    "_rels/.rels": link("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": (
        f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}/relationships"><sheets>'
        '<sheet name="one" sheetId="1" r:id="r1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": link("worksheet", "worksheets/sheet1.xml"),
    "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{ROWS}</sheetData></worksheet>',
}


def archive(path, files):
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path


def test_packed_tables(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT))
    assert read(tmp_path / "t.csv.gz").equals(FRAME)
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1, "b": "x"}\n'))
    assert read(tmp_path / "t.jsonl.gz").equals(FRAME.head(1))
    assert read(archive(tmp_path / "t.zip", {"t.csv": TEXT, "__MACOSX/t.csv": b""})).equals(FRAME)
    two = archive(tmp_path / "two.zip", {"a.csv": TEXT, "in/b.csv": TEXT.splitlines(keepends=True)[0] + b"3,z\n"})
    with pytest.raises(EmpiriskError, match=r"holds 2 files; name one of them, such as '.*two.zip/a.csv'"):
        read(two)
    assert read(two / "a.csv").equals(FRAME)
    assert read(f"{two}/in/b.csv").rows() == [(3, "z")]
    with pytest.raises(EmpiriskError, match=r"holds no 'c.csv'; name one of them, such as '.*two.zip/a.csv'"):
        read(two / "c.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(TEXT)[:-9])
    with pytest.raises(EmpiriskError, match="not properly packed"):
        read(tmp_path / "cut.csv.gz")


def test_a_workbook(tmp_path):
    found = read(archive(tmp_path / "t.xlsx", WORKBOOK))
    assert found.rows() == FRAME.rows()


def test_a_workbook_without_its_reader(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(EmpiriskError, match=r"pip install 'empirisk\[excel\]'"):
        read(archive(tmp_path / "t.xlsx", WORKBOOK))


def test_a_folder_of_parquet(tmp_path):
    (tmp_path / "year=2024").mkdir()
    FRAME.head(2).write_parquet(tmp_path / "year=2024" / "1.parquet")
    FRAME.tail(1).write_parquet(tmp_path / "year=2024" / "2.parquet")
    assert read(tmp_path / "year=2024").equals(FRAME)
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmpiriskError, match="There is no table"):
        read(tmp_path / "empty")


def test_standard_input_and_no_header(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert read("-").equals(FRAME)
    (tmp_path / "bare.csv").write_bytes(b"1,x\n2,y\n3,z\n")
    assert read(tmp_path / "bare.csv", header=False).rows() == FRAME.rows()
    assert read(tmp_path / "bare.csv", header=False).columns == ["column_1", "column_2"]


def test_learning_without_a_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare.csv").write_text("".join(f"{k % 7},{k % 5},{'yes' if k % 7 > 3 else 'no'}\n" for k in range(80)))
    words = ["--no-header", "--quiet", "--machines", "tree", "--target", "column_3"]
    result = CliRunner().invoke(app, ["learn", "bare.csv", *words])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["predict", "bare.model", "bare.csv", "--no-header"])
    assert result.output.splitlines()[1].startswith("no,")


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (["47 kg", "3.5 kg", "1,200 kg"], "unit kg", [47.0, 3.5, 1200.0]),
        (["12km/h", "7km/h", "9km/h"], "unit km/h", [12.0, 7.0, 9.0]),
        (["25.1k", "300", "1.5M"], "short", [25100.0, 300.0, 1.5e6]),
        (["(1,234.50)", "$17", "($3)"], "brackets", [-1234.5, 17.0, -3.0]),
        (["13:45", "7:05", "0:00"], "clock", [49500.0, 25500.0, 0.0]),
        (["1:02:03", "0:00:00.5", "100:00:00"], "clock", [3723.0, 0.5, 360_000.0]),
    ],
)
def test_numbers_as_people_write_them(values, form, expected):
    column = understand({"v": values, "w": [1.0, 2.0, 3.0]})["v"]
    assert (column.kind, column.form) == ("number", form)
    assert column.convert(pl.Series("v", values)).to_list() == expected
    assert column.convert(pl.Series("v", values)).name == "v"
    assert column.convert(pl.Series("v", [None, ""])).to_list() == [None, None]
    with pytest.raises(EmpiriskError, match="which is not a number"):
        column.convert(pl.Series("v", ["some words"]))


@pytest.mark.parametrize(
    "values", [["47 kg", "3 lb", "5 kg"], ["a1", "b2", "c3"], ["12:75", "1:30", "2:10"], ["3 x 4", "5", "6"]]
)
def test_words_stay_words(values):
    assert understand({"v": values})["v"].kind == "category"


def test_day_and_month_are_said():
    rows = 60
    table = {
        "when": [f"{1 + k % 12:02d}/{1 + k % 11:02d}/2024" for k in range(rows)],
        "load": [f"{k % 17} kg" for k in range(rows)],
        "y": [k % 12 + 0.5 for k in range(rows)],
    }
    found = er.learn(table, "y", machines=["ridge"], folds=2)
    assert "Dates of 'when' were read as month/day, as in '01/01/2024'. [ER030]" in found.warnings
    assert "Numbers of 'load' were read in kg. [ER030]" in found.warnings
