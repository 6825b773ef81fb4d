"""The next version: ``make version VERSION=0.2.0`` writes it where it stands, and dates its section of the CHANGELOG.

Refused while something deprecated is overdue: it is taken out first. Without a version it prints the one of the source.
"""

import ast
import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "src" / "empirisk" / "__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
HEAD = "## [Unreleased]\n"


class Refused(SystemExit):
    """Why there is no such version, as what the process says at its end."""


def numbers(version: str) -> tuple[int, ...]:
    """The parts of a version, to be compared.

    >>> numbers("0.10.0") > numbers("0.9.1")
    True
    """
    found = VERSION.fullmatch(version)
    if found is None:
        raise Refused(f"VERSION={version!r} is no version; write three numbers, such as 0.2.0.")
    return tuple(map(int, found.groups()))


def current() -> str:
    """The version of the source."""
    found = re.search(r'^__version__ = "(.+)"$', PLACE.read_text(encoding="utf-8"), re.M)
    assert found is not None
    return found[1]


def dated(changelog: str, version: str, today: date) -> str:
    """The changelog in which what is not released yet is the section of a version.

    >>> print(dated("# Changes\\n\\n## [Unreleased]\\n\\n- New.\\n", "0.2.0", date(2026, 12, 1)))
    # Changes
    <BLANKLINE>
    ## [Unreleased]
    <BLANKLINE>
    ## [0.2.0] - 2026-12-01
    <BLANKLINE>
    - New.
    <BLANKLINE>
    """
    before, head, after = changelog.partition(HEAD)
    if not head or not after.split("\n## [")[0].strip():
        raise Refused("CHANGELOG.md has nothing under [Unreleased]; write down what has changed.")
    return f"{before}{head}\n## [{version}] - {today}\n{after}"


def overdue(today: date) -> list[str]:
    """The lines at which something deprecated should be gone by now."""
    found = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn_deprecated":
                until = node.args[2]
                assert isinstance(until, ast.Constant)
                if date.fromisoformat(str(until.value)) < today:
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    return found


def main(version: str, today: date) -> None:
    """Write the version."""
    if numbers(version) <= numbers(current()):
        raise Refused(f"VERSION={version!r} is not after {current()}; choose a later one.")
    late = overdue(today)
    if late:
        raise Refused(f"Deprecated until a day that has passed: {', '.join(late)}; take it out first.")
    text = dated(CHANGELOG.read_text(encoding="utf-8"), version, today)
    source = PLACE.read_text(encoding="utf-8").replace(f'__version__ = "{current()}"', f'__version__ = "{version}"')
    CHANGELOG.write_text(text, encoding="utf-8")
    PLACE.write_text(source, encoding="utf-8")
    print(f"The version is {version} now. Next: make golden, make release, commit, and tag it v{version}.")


if __name__ == "__main__":
    print(current()) if len(sys.argv) == 1 else main(sys.argv[1], date.today())
