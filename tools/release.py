"""Build wheel and sdist, and try them as their users will: ``make release``.

Into ``dist/`` come the two files and a list of all that an installation with every extra holds, with licences
(CycloneDX). Each Python from 3.11 to 3.14 that is there installs the wheel into an empty environment, without extras
and with those of the shell, and runs what stands in `CORE` and `SHELL`; the oldest one builds from the sdist too.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.version import CHANGELOG, ROOT, current

DIST = ROOT / "dist"
#: The versions 3.x of Python that are supported.
MINORS = (11, 12, 13, 14)
#: Bytes that wheel and sdist may have: a picture or a table that slips in is noticed.
LARGEST = {".whl": 2_500_000, ".gz": 4_000_000}
#: Files without which the shell or the studio would not work.
NEEDED = ("py.typed", "__init__.pyi", "report/template.html", "service/form.html", "studio/static/workbench.js")

CORE = """
import numpy as np
import empirisk as er
X = np.random.default_rng(0).normal(size=(200, 4))
y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
machines = [er.LogisticRegression(), er.SVM(features="gaussian"), er.Ridge(), er.ForestClassifier(n_estimators=10)]
for machine in [*machines, er.KMeans(2)]:
    er.save(machine.fit(X, y), "it.model")
    assert np.array_equal(er.load("it.model").predict(X), machine.predict(X)), machine
try:
    er.learn(X, y)
except er.errors.MissingExtra as error:
    print(er.__version__, error)
"""
#: Commands of the shell, one after the other.
SHELL = (
    ("learn", "iris", "--machines", "logistic,tree", "--force"),
    ("show", "iris.model"),
    ("datasets",),
    ("--version",),
)


def run(*command: object, **options: object) -> str:
    """What a command prints; where it fails, all of it is shown and the release ends."""
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def pythons() -> dict[int, str]:
    """The Pythons of this computer by their minor version: this one, those on the path, and those of pyenv."""
    found = {sys.version_info[1]: sys.executable}
    for minor in MINORS:
        kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
        for candidate in (shutil.which(f"python3.{minor}"), *map(str, kept)):
            asked = [candidate or "", "-c", "import sys, venv, ensurepip; print(sys.version_info[1])"]
            if candidate and subprocess.run(asked, capture_output=True, text=True, check=False).stdout == f"{minor}\n":
                found.setdefault(minor, candidate)
    return found


def check_contents(wheel: Path) -> None:
    """Raise where the wheel lacks a file that is needed, or holds one that nobody needs."""
    names = zipfile.ZipFile(wheel).namelist()
    lacking = [name for name in NEEDED if f"empirisk/{name}" not in names]
    odd = [name for name in names if not re.match(r"empirisk(-[\d.]+\.dist-info)?/", name) or "__pycache__" in name]
    licences = [name for name in names if "/licenses/" in name]
    if lacking or odd or not licences:
        raise SystemExit(f"{wheel.name} lacks {lacking}, holds {odd}, has the licences {licences}.")


def check_size(file: Path) -> None:
    """Print the size of a file and its hash; raise where it is too large."""
    size = file.stat().st_size
    print(f"{file.name:<36} {size / 1e6:5.2f} MB  sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}", flush=True)
    if size > LARGEST.get(file.suffix, size):
        raise SystemExit(f"{file.name} has more than {LARGEST[file.suffix]:,} bytes; see what is in it.")


def environment(python: str, folder: Path, *packages: object) -> Path:
    """The Python of a new environment with some packages."""
    run(python, "-m", "venv", folder)
    inside = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return inside


def check_install(minor: int, python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel for a Python, without extras and with those of the shell, and try it."""
    alone = folder / f"alone-{minor}"
    inside = environment(python, alone, wheel)
    said = run(inside, "-W", "error", "-c", CORE, cwd=folder)
    assert said.startswith(current()), said
    assert "pip install 'empirisk[learn]'" in said, said
    command = inside.with_name("empirisk")
    refused = subprocess.run([command, "learn", "iris"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused
    assert "pip install 'empirisk[learn]'" in refused.stderr, refused
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[learn]")
    for words in SHELL:
        run(command, *words, cwd=folder)
    assert (folder / "iris.report.html").stat().st_size > 10_000
    print(f"Python 3.{minor}: core and shell work ({python})", flush=True)


def published(bill: str) -> str:
    """A bill of materials without the places of files on this computer.

    >>> json.loads(published('{"components": [{"externalReferences": [{"url": "file:///a.whl"}, {"url": "https://a"}]}]}'))
    {'components': [{'externalReferences': [{'url': 'https://a'}]}]}
    """
    told = json.loads(bill)
    for component in told["components"]:
        if "externalReferences" in component:
            places = component["externalReferences"]
            component["externalReferences"] = [each for each in places if not each["url"].startswith("file:")]
    return json.dumps(told, indent=2)


def main() -> None:
    """All of it."""
    version = current()
    if f"## [{version}] - " not in CHANGELOG.read_text(encoding="utf-8"):
        print(f"CHANGELOG.md has no section for {version}: a rehearsal. make version VERSION=... makes one.")
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    wheel, sdist = DIST / f"empirisk-{version}-py3-none-any.whl", DIST / f"empirisk-{version}.tar.gz"
    print(run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist).strip())
    for file in (wheel, sdist):
        check_size(file)
    check_contents(wheel)
    there = pythons()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for minor, python in there.items():
            check_install(minor, python, wheel, folder)
        first = min(there)
        built = environment(there[first], folder / "sdist", sdist)
        print(run(built, "-c", "import empirisk as er; er.SVM; print('sdist:', er.__version__)", cwd=folder).strip())
        whole = environment(there[first], folder / "all", f"{wheel}[all]")
        bill = DIST / f"empirisk-{version}.cdx.json"
        run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "-o", bill, whole)
        bill.write_text(published(bill.read_text(encoding="utf-8")), encoding="utf-8")
        check_size(bill)
    missing = [f"3.{minor}" for minor in MINORS if minor not in there]
    print(f"Ready: {DIST}" + (f"; not tried, since it is not here: {', '.join(missing)}" if missing else ""))


if __name__ == "__main__":
    main()
