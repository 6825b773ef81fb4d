"""The page for contributors is true: its map is complete, and its recipes work in a copy of the repository."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
WORDS = ("no", "one", "two", "three", "four", "five", "six")
#: Tests that take longer than a recipe is worth in `make test`.
LONG = ("tests/plots/", "tests/report/")


class Recipe(NamedTuple):
    """How many files it says to touch, what goes into which of them, and its calls of pytest."""

    says: str
    blocks: list[tuple[str, str, str]]
    checks: list[str]


RECIPES = {
    title: Recipe(
        re.findall(r"\b(\w+) files?\b", text)[0].lower(),
        re.findall(r"```(python|diff)\n# ([\w/.]+)\n(.*?)```", text, flags=re.DOTALL),
        re.findall(r"`pytest ([^`]+)`", text),
    )
    for title, text in re.findall(r"^## Add an? (.*?)\n(.*?)(?=^## )", PAGE, flags=re.DOTALL | re.MULTILINE)
    if "```" in text
}


def test_every_room_is_on_the_map():
    table = re.findall(r"^\| (`.*?) \|", PAGE, flags=re.MULTILINE)
    named = {name.rstrip("/") for row in table for name in re.findall(r"`([\w./]+)`", row)}
    rooms = {path.name for path in (ROOT / "src" / "empirisk").iterdir() if not path.name.startswith(("_", "py."))}
    assert rooms == named


def changed(text: str, change: str) -> str:
    """The text with lines after those named, or in the place of those with a minus; dots are the rest of a line."""
    lines, place, rest = text.split("\n"), -1, ""
    for line in change.splitlines():
        sign, what, dots = line[0], line[1:].removesuffix("..."), line.endswith("...")
        if sign == "+":
            place += 1
            lines.insert(place, what + rest * dots)
            continue
        place = next(k for k, one in enumerate(lines) if (one.startswith(what) if dots else one == what))
        rest = lines[place].removeprefix(what)
        if sign == "-":
            del lines[place]
            place -= 1
    return "\n".join(lines)


def carry_out(recipe: Recipe, folder: Path) -> set[str]:
    """Do what a recipe says; the files that are not as they were."""
    before = {}
    for form, file, block in recipe.blocks:
        place = folder / file
        text = place.read_text() if place.exists() else ""
        before.setdefault(file, text)
        new = changed(text, block) if form == "diff" else f"{text}\n\n{block}" if text else block
        place.write_text(new)
    return {file for file, text in before.items() if (folder / file).read_text() != text}


def linked(source: str, target: str) -> None:
    """Compiled loops are large and never written to, only replaced: another name for the same file will do."""
    try:
        (os.link if source.endswith((".nbi", ".nbc")) else shutil.copy2)(source, target)
    except OSError:  # a folder for tests on another disk
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the repository with all recipes, and the loops that are compiled already.

    Files that another process is writing at the moment are left out: they vanish under their first name.
    """
    folder, others = tmp_path_factory.mktemp("copy"), shutil.ignore_patterns("*.tmp.*", "*.pyc.*")
    for name in ("src", "tests", "docs", "examples", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=others, copy_function=linked)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder / name)
    wrong = {}
    for title, recipe in RECIPES.items():
        files = carry_out(recipe, folder)
        if recipe.says != WORDS[len(files)]:
            wrong[title] = (recipe.says, sorted(files))
    assert wrong == {}, "recipes that name another number of files than they touch"
    for module in ("tools.stubs", "tests.files.golden"):
        done = run_in(folder, "-m", module)
        assert done.returncode == 0, done.stderr
    return folder


def run_in(folder: Path, *command: str) -> subprocess.CompletedProcess:
    surroundings = os.environ | {"PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=surroundings, check=False, cwd=folder
    )


def check_in(folder: Path, checks: list[list[str]]) -> None:
    """Calls of pytest, made as one: nothing fails, and every word chooses a test."""
    paths = list(dict.fromkeys(path for *some, _, _ in checks for path in some))
    words = " or ".join(f"({chosen})" for *_, chosen in checks)
    options = ["-p", "no:cacheprovider", "-m", "long or not long", "--junitxml=found.xml"]
    done = run_in(folder, "-m", "pytest", *options, *paths, "-k", words)
    cases = list(ET.parse(folder / "found.xml").iter("testcase"))
    names = " ".join(f"{case.get('classname')} {case.get('name')}" for case in cases)
    wanted = [word for *_, chosen in checks for word in chosen.split(" or ")]
    assert [word for word in wanted if word not in names] == [], "words that are in no name of a test"
    assert done.returncode == 0, done.stdout


CHECKS = [shlex.split(check) for recipe in RECIPES.values() for check in recipe.checks]


def test_what_is_added_by_a_recipe():
    assert set(RECIPES) == {
        "loss",
        "penalty",
        "kernel",
        "map",
        "machine",
        "solver",
        "candidate of the contest",
        "view",
        "section of the report",
        "column kind",
    }
    assert all(recipe.checks for recipe in RECIPES.values())


def test_recipes_pass_the_tests_of_their_rooms(copy):
    check_in(copy, [check for check in CHECKS if not check[0].startswith(LONG)])


@pytest.mark.long
def test_recipes_pass_the_longer_tests_of_their_rooms(copy):
    check_in(copy, [check for check in CHECKS if check[0].startswith(LONG)])
