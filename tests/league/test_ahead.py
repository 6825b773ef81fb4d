"""Processes that compile what a contest is going to need."""

import numpy as np
from numba import njit

import empirisk as er
from empirisk.league.ahead import Ahead
from empirisk.league.contestants import Size
from empirisk.league.learn import Listener

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
SIZE = Size.of(X, Y, 2, 0)


def test_what_machines_need_is_in_the_cache_when_the_process_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with er.config(threads=2), Ahead() as ahead:
        ahead.compile(["neighbours"], SIZE, X, Y)
        (process,) = ahead.running
        assert process.wait(timeout=120) == 0
    kept = [file.name for file in tmp_path.rglob("*.nbc")]
    assert any(name.startswith("search.search") for name in kept), kept


def test_a_process_ends_with_the_contest_and_leaves_no_file_half_way(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with er.config(threads=2), Ahead() as ahead:
        ahead.compile(["forest", "network"], SIZE, X, Y)
    (process,) = ahead.running
    assert process.wait(timeout=120) == 0
    assert not [file for file in tmp_path.rglob("*") if ".tmp." in file.name]
    assert not list(tmp_path.rglob("*.nbc"))  # it had not come that far


def test_one_thread_compiles_nothing_ahead():
    with er.config(threads=1), Ahead() as ahead:
        ahead.compile(["neighbours"], SIZE, X, Y)
    assert ahead.running == []


def test_the_first_loop_that_is_compiled_in_a_contest_starts_it_for_those_who_come_later(monkeypatch):
    asked = []
    monkeypatch.setattr(Ahead, "compile", lambda self, names, size, X, y: asked.append((names, size.classes, len(X))))

    class Compiler(Listener):
        """Compiles a function while the first machine plays."""

        def doing(self, what):
            if what == "Always the most frequent class, fold 1 of 5":
                njit(lambda x: x + 1)(1)

    er.learn("iris", machines=["logistic", "centroid"], listener=Compiler())
    assert asked[0] == (["centroid", "logistic"], 3, 96)  # a cold machine asks again: nothing runs here
