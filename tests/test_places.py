"""Installed read-only, for a user without a home: every command and machine works, after one warning."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import empirisk
from empirisk import places

#: Run by `make test-all`.
pytestmark = pytest.mark.long

LEARN = ["-m", "empirisk", "learn", "iris", "--target", "species", "--machines", "tree,logistic", "--time", "60s"]
FIT = """
import warnings
with warnings.catch_warnings(record=True, action="always") as caught:
    import empirisk as er
    found = er.SVM(features="gaussian").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.1], [2.9]])
    er.plots.history
print(found.tolist(), [str(one.message) for one in caught])
"""
#: Capabilities with which root may read and write everything: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER.
OF_ROOT = (1, 2, 3)
PR_CAPBSET_DROP = 24


def like_another_user() -> None:
    """Called in a child before it becomes another program: permissions count for it, also where it is root."""
    for capability in OF_ROOT if os.getuid() == 0 else ():
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the package, a home and a place to work; only the last can be written."""
    top = tmp_path_factory.mktemp("installed")
    source = Path(empirisk.__file__).parent
    shutil.copytree(source, top / "site" / "empirisk", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("home", "work", "tmp"):
        (top / name).mkdir()
    for place in (top / "site", *(top / "site").rglob("*"), top / "home"):
        place.chmod(place.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    yield top
    for place in (top / "home", *(place for place in (top / "site", *(top / "site").rglob("*")) if place.is_dir())):
        place.chmod(0o755)


@pytest.fixture
def run(installed):
    def run(*arguments, **environment):
        known = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_", "MPL"))}
        ours = {"HOME": "home", "PYTHONPATH": "site", "TMPDIR": "tmp"}
        known |= {name: str(installed / place) for name, place in ours.items()}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=installed / "work",
            env=known | environment,
            preexec_fn=like_another_user,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_nothing_can_be_written_there(installed, run):
    for place in ("site/empirisk", "home"):
        asked = run("-c", f"open({str(installed / place / 'x')!r}, 'w')")
        assert "PermissionError" in asked.stderr


def test_a_fit_gives_one_warning_and_the_next_process_finds_the_code(installed, run):
    for _ in range(2):
        asked = run("-c", FIT)
        assert asked.returncode == 0, asked.stderr
        assert asked.stdout.startswith("[0, 1] ['Compiled loops are kept in ")
        assert asked.stdout.count("Compiled loops") == 1
        assert asked.stderr == ""
    (folder,) = (installed / "tmp").glob("empirisk-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any(folder.rglob("*.nbc"))


def test_learn_and_predict_at_the_shell(installed, run):
    asked = run(*LEARN)
    assert asked.returncode == 0, asked.stderr
    assert "Matplotlib" not in asked.stderr
    assert asked.stderr.count("Warning: ") <= 1
    asked = run("-m", "empirisk", "predict", "iris.model", "iris", "-o", "out.csv")
    assert asked.returncode == 0, asked.stderr
    assert len((installed / "work" / "out.csv").read_text().splitlines()) == 151


def test_without_any_place_code_is_in_memory(run):
    alone = FIT.replace("    er.plots.history\n", "")  # Matplotlib itself needs some place
    asked = run("-c", f"import tempfile; tempfile.tempdir = '/nowhere'\n{alone}")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("[0, 1] ['Compiled loops are kept in memory alone")
    assert asked.stdout.count("Compiled loops") == 1


def test_a_user_without_a_name_or_a_home(installed, run):
    asked = run("-c", "import pwd; pwd.getpwuid = lambda user: (_ for _ in ()).throw(KeyError(user))\n" + FIT, HOME="~")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("[0, 1] ['Compiled loops are kept in ")
    assert not (installed / "work" / "~").exists()


def test_networks_too(run):
    pytest.importorskip("jax")
    fit = "er.LogisticRegression(features=er.Network([2], epochs=1, random_state=0))"
    asked = run("-c", FIT.replace('er.SVM(features="gaussian")', fit))
    assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize("trick", ["writable", "link", "file"])
def test_a_folder_that_others_may_have_made_is_not_used(trick, tmp_path, monkeypatch):
    folder = tmp_path / f"empirisk-{os.getuid()}"
    if trick == "writable":
        folder.mkdir()
        folder.chmod(0o777)
    elif trick == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    places.private_folder.cache_clear()
    found = places.private_folder()
    places.private_folder.cache_clear()
    assert found is not None
    assert found != folder
    assert stat.S_IMODE(found.stat().st_mode) == 0o700


def test_a_disk_that_is_full_does_not_cost_the_fit(monkeypatch):
    from empirisk.linalg import numba_internals
    from empirisk.linalg.compiled import loop

    def full(*_):
        raise OSError(28, "No space left on device")

    @loop
    def twice(number):
        return 2.0 * number

    monkeypatch.setattr(numba_internals.FunctionCache, "save_overload", full)
    numba_internals._say.cache_clear()
    with pytest.warns(UserWarning, match="in memory alone"):
        assert twice(1.5) == 3.0
    numba_internals._say.cache_clear()
