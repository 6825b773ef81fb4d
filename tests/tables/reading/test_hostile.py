"""Every hostile table ends as a frame or as one sentence, within seconds and memory, in Python and at the shell."""

import bz2
import json
import lzma
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError, TooLarge
from empirisk.tables.reading.read import read
from tests.tables.reading import hostile
from tests.tables.reading.test_sources import FRAME, TEXT, WORKBOOK

#: Run by `make test-all`.
pytestmark = pytest.mark.long

#: Tables that are odd and yet tables.
READ = {
    "changed at 0.1.arrow",
    "changed at 0.1.arrows",
    "changed at 0.1.parquet",
    "controls.csv",
    "delimiters.csv",
    "form feeds.csv",
    "keys.jsonl",
    "late zeros.csv",
    "long cell.csv",
    "many keys.jsonl",
    "returns.csv",
    "surrogates.jsonl",
    "tail.csv.bz2",
    "tail.csv.xz",
    "utf-32.csv",
}
GOOD = {
    "t.csv": lambda: TEXT,
    "t.parquet": lambda: hostile.written(FRAME.write_parquet),
    "t.jsonl": lambda: hostile.written(FRAME.write_ndjson),
    "t.arrow": lambda: hostile.written(FRAME.write_ipc),
    "t.xlsx": lambda: hostile.zipped({name: text.encode() for name, text in WORKBOOK.items()}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    (place / "good").mkdir()
    for name, data in hostile.tables().items():
        (place / name).write_bytes(data)
    for name, data in GOOD.items():
        (place / "good" / name).write_bytes(data())
    return place


def test_every_hostile_table_is_one_sentence_within_seconds_and_memory(folder):
    asked = subprocess.run(
        [sys.executable, "-m", "tests.tables.reading.hostile", str(folder)], capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in asked.stdout.splitlines()]
    assert asked.returncode == 0, (lines[-1], asked.stderr[:1000])
    found = {line["table"]: line for line in lines if "table" in line}
    assert found.keys() == {path.name for path in folder.iterdir() if path.is_file()}
    assert len(found) > 100
    for name, line in found.items():
        assert line["said"].startswith("read: " if name in READ else "refused: "), line
        assert "\n" not in line["said"], line
        assert line["seconds"] < hostile.SECONDS, line


@pytest.mark.parametrize("name", ["far.xlsx", "gigabytes.csv.bz2", "half.zip", "deep.json", "cut at 0.5.parquet"])
def test_at_the_shell_too(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    with er.config(memory="300MB"):
        asked = CliRunner().invoke(app, ["learn", name, "--target", "a"])
    assert asked.exit_code == 1
    assert asked.output.startswith("reading") or asked.output.startswith("empirisk: ")
    assert asked.output.splitlines()[-1].startswith("empirisk: The ")
    assert not (folder / "far.model").exists()


def test_what_is_packed_is_measured_by_what_it_unpacks_to(folder):
    with er.config(memory="100MB"):
        for name in ("gigabytes.csv.gz", "gigabytes.csv.xz", "gigabytes.zip", "gigabytes.xlsx", "far.xlsx"):
            with pytest.raises(TooLarge, match=r"more than the 0\.1 GB allowed by"):
                read(folder / name)
        with pytest.raises(TooLarge, match=r"of 1048576 rows and 16384 columns between its first and last cell"):
            read(folder / "far.xlsx")


def test_empty_cells_far_away_are_no_cells(tmp_path):
    styled = '<row r="1048576"><c r="XFD1048576" s="1"/></row></sheetData>'
    sheet = WORKBOOK["xl/worksheets/sheet1.xml"].replace("</sheetData>", styled)
    parts = WORKBOOK | {"xl/worksheets/sheet1.xml": sheet}
    (tmp_path / "t.xlsx").write_bytes(hostile.zipped({name: text.encode() for name, text in parts.items()}))
    assert read(tmp_path / "t.xlsx").equals(FRAME)


def test_more_ways_of_packing(tmp_path):
    for ending, pack in ((".bz2", bz2.compress), (".xz", lzma.compress)):
        (tmp_path / f"t.csv{ending}").write_bytes(pack(TEXT))
        assert read(tmp_path / f"t.csv{ending}").equals(FRAME)
    (tmp_path / "t.csv").write_bytes(TEXT.decode().encode("utf-32"))
    assert read(tmp_path / "t.csv").equals(FRAME)


def test_braces_in_texts_are_no_depth(tmp_path):
    rows = [{"a": number, "b": '"[{[{\\' * 50} for number in range(100)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read(tmp_path / "t.jsonl").rows(named=True) == rows


@pytest.mark.parametrize("name", ["a\0b.csv", "x" * 5000 + ".csv", ""])
def test_names_that_no_file_has(name):
    with pytest.raises(EmpiriskError, match=r"There is no table|cannot be read"):
        read(name)


def test_a_table_that_may_not_be_read(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(TEXT)
    monkeypatch.setattr("pathlib.Path.open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(EmpiriskError, match=r"cannot be read \(Permission denied\)"):
        read(tmp_path / "t.csv")
