"""Compiling ahead."""

import os
import subprocess
import sys

import pytest

import empirisk as er
from empirisk.warming import COMMON, main

#: Prints the loops that a first fit compiles.
COUNT = """
import numpy as np
from numba.core import event
import empirisk as er
heard = event.RecordingListener()
with event.install_listener("numba:compile", heard):
    er.Lasso().fit(np.random.default_rng(0).normal(size=(500, 10)), np.arange(500) % 2)
print(len(heard.buffer))
"""


def test_a_first_fit_compiles_nothing_after_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    heard = []
    er.warm(["lasso"], tell=heard.append)
    assert heard == ["lasso"]
    assert list(tmp_path.rglob("*.nbi"))
    after = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True).stdout
    assert after == "0\n"


def test_it_says_where_loops_are_kept(tmp_path):
    code = "import empirisk as er; print(er.warm([]))"
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=place).stdout
    assert shown == f"{tmp_path}\n"


def test_every_machine_is_fitted(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["", *COMMON])
    main()
    assert capsys.readouterr().out.splitlines() == list(COMMON)


def test_a_name_that_is_not_known():
    with pytest.raises(er.errors.EmpiriskError, match="machines: did you mean 'lasso'"):
        er.warm(["laso"])


def test_a_machine_that_does_not_fit_is_an_error(monkeypatch, capfd):
    monkeypatch.setitem(COMMON, "none", lambda: None)  # the process knows of none
    with pytest.raises(er.errors.EmpiriskError, match="not finished"):
        er.warm(["none"])
    assert "KeyError: 'none'" in capfd.readouterr().err
