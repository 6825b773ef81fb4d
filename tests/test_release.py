"""Versions, deprecations, and the files that build and try a release."""

import ast
import json
import re
import subprocess
import sys
import tomllib
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import yaml

import empirisk as er
from tools import release, version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
X, Y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """The files that a version changes, to be changed."""
    for name in ("PLACE", "CHANGELOG"):
        file = getattr(version, name)
        copy = tmp_path / file.name
        copy.write_text(file.read_text())
        monkeypatch.setattr(version, name, copy)
    return tmp_path


def test_one_command_writes_the_version_and_dates_the_changelog(copies, capsys):
    before = (copies / "CHANGELOG.md").read_text()
    version.main("7.0.1", date(2026, 12, 1))
    assert version.current() == "7.0.1"
    after = (copies / "CHANGELOG.md").read_text()
    assert after.replace("## [7.0.1] - 2026-12-01\n\n", "", 1) == before
    assert after.index("## [Unreleased]\n\n## [7.0.1] - 2026-12-01\n") < after.index("###")
    with pytest.raises(version.Refused, match="nothing under"):
        version.main("7.0.2", date(2026, 12, 1))
    assert version.current() == "7.0.1"


def test_versions_that_are_refused(copies):
    for asked, why in (("7.0", "is no version"), ("v7.0.0", "is no version"), (er.__version__, "is not after")):
        with pytest.raises(version.Refused, match=why):
            version.main(asked, date(2026, 12, 1))
    with pytest.raises(version.Refused, match=r"a day that has passed: src/empirisk/ensembles/bagging.py:\d+"):
        version.main("7.0.0", date(2028, 1, 1))
    assert version.current() == er.__version__


def test_a_deprecation_points_at_the_line_of_the_user():
    with warnings.catch_warnings(record=True, action="always") as caught:
        machine = er.BaggingClassifier(n_estimators=2, voting="mean", random_state=0).fit(X, Y)
    assert [(each.category, each.filename) for each in caught] == [(FutureWarning, __file__)]
    assert (
        str(caught[0].message)
        == "voting='mean' is understood in versions until 2027-12-31; write voting='soft'. [ER010]"
    )
    soft = er.BaggingClassifier(n_estimators=2, voting="soft", random_state=0).fit(X, Y)
    assert np.array_equal(machine.predict_proba(X), soft.predict_proba(X))


def test_what_runs_on_the_forge():
    jobs = {file.stem: yaml.safe_load(file.read_text())["jobs"] for file in WORKFLOWS}
    assert set(jobs) == {"docs", "release", "tests"}
    pythons = [f"3.{minor}" for minor in release.MINORS]
    assert jobs["tests"]["linux"]["strategy"]["matrix"]["python"] == pythons
    elsewhere = jobs["tests"]["elsewhere"]["strategy"]["matrix"]
    assert elsewhere == {"system": ["macos-latest", "windows-latest"], "python": pythons}
    assert jobs["tests"]["without-the-lock"]["continue-on-error"] is True
    text = "".join(file.read_text() for file in WORKFLOWS)
    actions = re.findall(r"uses: (\S+)", text)
    assert len(actions) > 10
    assert [each for each in actions if not re.search(r"@(v\d+|release/v\d+)$", each)] == []
    assert "secrets." not in text


def _imported(file, seen):
    """The packages that a file of tests imports as it is loaded, and those of other files of tests that it imports."""
    seen.add(file)
    for line in ast.parse(file.read_text(encoding="utf-8")).body:
        of = [line.module] if isinstance(line, ast.ImportFrom) else []
        for name in [alias.name for alias in line.names] if isinstance(line, ast.Import) else of:
            place = ROOT / f"{name.replace('.', '/')}.py"
            yield from [] if place in seen else _imported(place, seen) if place.exists() else [name.partition(".")[0]]


def test_tests_without_the_lock_import_what_is_installed_for_them():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    install, run = (step["run"].split() for step in jobs["without-the-lock"]["steps"] if "run" in step)
    core = {re.split("[><=]", each)[0] for each in PROJECT["dependencies"]} | {"sklearn", "empirisk", "tests"}
    there = core | {name.replace("-", "_") for name in install} | sys.stdlib_module_names
    folders = [ROOT / word for word in run if word.startswith("tests/")]
    files = [ROOT / "conftest.py", *(file for folder in folders for file in folder.rglob("*.py"))]
    assert len(files) > 15
    assert {name for file in files for name in _imported(file, set())} - there == set()


def test_a_bill_of_materials_tells_no_place_of_this_computer():
    parts = [{"name": "a", "externalReferences": [{"url": "file:///home/a.whl"}, {"url": "https://a"}]}, {"name": "b"}]
    told = json.loads(release.published(json.dumps({"components": parts})))
    assert told == {"components": [{"name": "a", "externalReferences": [{"url": "https://a"}]}, {"name": "b"}]}


def test_the_pythons_that_are_here():
    here = release.pythons()
    assert sys.version_info[1] in here
    for minor, python in here.items():
        shown = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout
        assert shown.startswith(f"Python 3.{minor}.")


def test_nothing_of_others_is_copied_here():
    files = [file for file in (ROOT / "src").rglob("*") if file.suffix in (".js", ".css", ".woff2", ".wasm")]
    assert files
    foreign = re.compile(rb"licen[sc]e|copyright", re.I)
    odd = [file.name for file in files if ".min." in file.name or foreign.search(file.read_bytes())]
    assert odd == [], "its licence belongs into LICENSES, and into license-files of pyproject.toml"
