"""The page for contributors is true: its map is complete, and its recipes work in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"```python\n# ([\w/]+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))

USE = {
    "losses": """
X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
made = [er.Regressor(loss="pseudo_huber", C=0.5), er.Regressor(loss="pseudo_huber", C=0.5, penalty="l1")]
""",
    "penalties": """
X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
made = [er.Regressor(penalty="box"), er.Classifier(loss="logistic", penalty="box")]
""",
    "kernels": """
X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
made = [er.Ridge(features="cauchy"), er.SVM(features=er.kernels.Cauchy(2.0) + er.kernels.Linear())]
""",
}
CHECK = """
import numpy as np, empirisk as er
from sklearn.base import clone, is_classifier
{use}
for machine in made:
    fitted = clone(machine).fit(X, y > 30 if is_classifier(machine) else y)
    assert fitted.certificate_.converged, fitted.certificate_
    er.save(fitted, {file!r})
    np.testing.assert_array_equal(er.load({file!r}).predict(X), fitted.predict(X))
print("done")
"""


def test_every_room_is_on_the_map():
    table = re.findall(r"^\| (`.*?) \|", PAGE, flags=re.MULTILINE)
    named = {name.rstrip("/") for row in table for name in re.findall(r"`([\w./]+)`", row)}
    rooms = {path.name for path in (ROOT / "src" / "empirisk").iterdir() if not path.name.startswith(("_", "py."))}
    assert rooms == named


def exported(text: str, room: str, home: str, name: str) -> str:
    """The room's ``__init__`` with one more name, as the recipe says."""
    text = text.replace(f"from empirisk.{room}.{home} import ", f"from empirisk.{room}.{home} import {name}, ")
    return text.replace("__all__ = [", f'__all__ = ["{name}", ', 1)


def copied(folder: Path) -> Path:
    """The package in a copy of the repository."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "src" / "empirisk"


def run_in(folder: Path, *command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    surroundings = os.environ | {"PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=surroundings, check=False, cwd=cwd
    )


@pytest.mark.parametrize("room", ["losses", "penalties", "kernels"])
def test_the_recipe_for_a_part_works_in_a_copy(room, tmp_path):
    ((file, code),) = ((file, code) for file, code in RECIPES.items() if file.startswith(room))
    package = copied(tmp_path)
    with open(package / file, "a") as source:
        source.write("\n\n" + code)
    entry = package / room / "__init__.py"
    entry.write_text(exported(entry.read_text(), room, Path(file).stem, re.search(r"class (\w+)", code)[1]))
    check = CHECK.format(use=USE[room], file=str(tmp_path / "part.model"))
    done = run_in(tmp_path, "-c", check)
    assert done.stdout == "done\n", done.stderr


def test_the_recipe_for_a_column_kind_passes_the_tests_of_every_kind(tmp_path):
    package, code = copied(tmp_path), RECIPES["tables/kinds/weekday.py"]
    (package / "tables" / "kinds" / "weekday.py").write_text(code)
    entry = package / "tables" / "kinds" / "__init__.py"
    text = entry.read_text().replace("        Number(),\n", "        Weekday(),\n        Number(),\n")
    imported = "from empirisk.tables.kinds.weekday import Weekday\n"
    entry.write_text(text.replace("\n#: By name;", f"{imported}\n#: By name;"))
    (tmp_path / "tests").mkdir()
    tests = (ROOT / "tests" / "tables" / "test_kinds.py").read_text()
    days = '    "weekday": ["Monday", "tue", "Sunday", ""] * 15,\n'
    (tmp_path / "tests" / "test_kinds.py").write_text(tests.replace("TEXTS = {\n", f"TEXTS = {{\n{days}"))
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "weekday or every_kind", "tests/test_kinds.py")
    done = run_in(tmp_path, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout
