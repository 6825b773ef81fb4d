"""Tables of SQLite databases, also of those whose views have no end."""

import sqlite3
from contextlib import closing

import pytest

import empirisk as er
from empirisk.errors import EmpiriskError, TooLarge
from empirisk.tables import read
from empirisk.tables.reading import database

COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"


@pytest.fixture
def made(tmp_path):
    def made(*commands):
        with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
            for command in commands:
                connection.execute(command)
            connection.commit()
        return tmp_path / "t.db"

    return made


def test_tables_and_views(made):
    path = made("CREATE TABLE t(a, b)", "INSERT INTO t VALUES (1, 'x'), (2, NULL)", "CREATE VIEW v AS SELECT b FROM t")
    assert read(f"{path}::t").to_dict(as_series=False) == {"a": [1, 2], "b": ["x", None]}
    assert read(f"{path}::v").to_dict(as_series=False) == {"b": ["x", None]}
    with pytest.raises(EmpiriskError, match="holds the tables"):
        read(path)


def test_a_view_with_ever_more_rows_ends_where_the_memory_does(made):
    with er.config(memory="1MB"), pytest.raises(TooLarge, match="give a part of it"):
        read(made(f"CREATE VIEW v AS {COUNT}"))


@pytest.mark.parametrize("found", ["x < 0", "x <= 3 OR x < 0"])
def test_a_view_that_looks_for_a_row_without_end_is_left(made, found, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    with pytest.raises(EmpiriskError, match="cannot be read: interrupted"):
        read(made(f"CREATE VIEW v AS {COUNT} WHERE {found}"))


def test_a_cell_of_gigabytes_is_refused(made):
    with pytest.raises(EmpiriskError, match="cannot be read: string or blob too big"):
        read(made("CREATE VIEW v AS SELECT zeroblob(900000000) AS a"))
