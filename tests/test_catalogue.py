"""The catalogue's table, the tests' marks and the public names agree, and every public name is documented."""

import ast
import inspect
import re
from operator import attrgetter
from pathlib import Path

import empirisk as er
from tests.public import EXPORTS, MODULES

ROOT = Path(__file__).parent.parent
ROWS = {
    cells[1].strip(): re.findall(r"`er\.([\w.]+)`", cells[3])
    for line in (ROOT / "docs" / "catalogue.md").read_text().splitlines()
    if re.match(r"\| [A-Z]\d+ \|", line)
    for cells in [line.split("|")]
}


def marked_rows(source: str) -> set[str]:
    """The ids in every ``pytest.mark.row(...)`` of a test file, found without running it."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    marks = (call for call in calls if ast.unparse(call.func) == "pytest.mark.row")
    return {ast.literal_eval(argument) for mark in marks for argument in mark.args}


def test_marks_are_found():
    source = """
        @pytest.mark.row("L5")
        @pytest.mark.row("L6")
        def test(): pass
        pytestmark = pytest.mark.row("E1")
        cases = [pytest.param(1, marks=pytest.mark.row("S4"))]
    """
    assert marked_rows(inspect.cleandoc(source)) == {"L5", "L6", "E1", "S4"}


def test_every_row_has_a_test_and_every_mark_a_row():
    marked = set().union(*(marked_rows(file.read_text()) for file in (ROOT / "tests").rglob("test_*.py")))
    assert sorted(set(ROWS) - marked) == [], "rows of docs/catalogue.md without a test"
    assert sorted(marked - set(ROWS)) == [], "marks without a row in docs/catalogue.md"


def test_every_name_of_a_row_exists():
    assert [row for row, names in ROWS.items() if not names] == [], "rows that name nothing public"
    for name in (name for names in ROWS.values() for name in names):
        attrgetter(name)(er)


def test_every_public_name_has_an_example():
    silent, bare = [], []
    for name in EXPORTS:
        value = attrgetter(name)(er)
        text = value.__doc__ or ""  # its own: a subclass does not inherit it
        silent += [] if text.strip() else [name]
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        bare += [] if is_error or ">>>" in text else [name]
    assert silent == [], "names without a docstring"
    assert bare == [], "names without an example"


def test_every_public_module_says_what_it_is():
    assert [name for name in MODULES if not (getattr(er, name).__doc__ or "").strip()] == []
