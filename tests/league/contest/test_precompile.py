"""Processes that compile what a contest is going to need."""

import numpy as np
import pytest
from numba import njit

import empirisk as er
from empirisk.league import Listener
from empirisk.league.candidates.everyone import Size
from empirisk.league.contest.precompile import PrecompileProcesses

#: Run by `make test-all`.
pytestmark = pytest.mark.long

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
SIZE = Size.of(X, Y, 2, 0)


def test_what_machines_need_is_in_the_cache_when_the_process_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with er.config(threads=2), PrecompileProcesses() as processes:
        processes.compile([("neighbours", "numbers")], {"numbers": (SIZE, X, Y)})
        (process,) = processes.running
        assert process.wait(timeout=120) == 0
    kept = [file.name for file in tmp_path.rglob("*.nbc")]
    assert any(name.startswith("nearest.search") for name in kept), kept


def test_a_process_ends_with_the_contest_and_leaves_no_file_half_way(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with er.config(threads=2), PrecompileProcesses() as processes:
        processes.compile([("forest", "numbers"), ("network", "numbers")], {"numbers": (SIZE, X, Y)})
    (process,) = processes.running
    assert process.wait(timeout=120) == 0
    assert not [file for file in tmp_path.rglob("*") if ".tmp." in file.name]
    assert not list(tmp_path.rglob("*.nbc"))  # it had not come that far


def test_one_thread_compiles_nothing_ahead():
    with er.config(threads=1), PrecompileProcesses() as processes:
        processes.compile([("neighbours", "numbers")], {"numbers": (SIZE, X, Y)})
    assert processes.running == []


class Compiler(Listener):
    """Compiles a function while the first machine plays."""

    def __init__(self, ends="fold 1 of 5"):
        self.ends = ends

    def doing(self, what):
        if what.startswith("Always the most frequent class") and what.endswith(self.ends):
            njit(lambda x: x + 1)(1)


@pytest.fixture
def asked(monkeypatch):
    """What is asked to be compiled ahead, and is not."""
    found = []
    monkeypatch.setattr(PrecompileProcesses, "compile", lambda self, names, parts: found.append((names, parts)))
    return found


def test_the_first_loop_that_is_compiled_in_a_contest_starts_it_for_those_who_come_later(asked):
    er.learn("iris", machines=["logistic", "centroid"], listener=Compiler())
    names, parts = asked[0]  # a cold machine asks again: nothing runs here
    assert names == [("logistic", "numbers"), ("centroid", "numbers")]  # the last is needed last
    assert [(size.classes, len(X)) for size, X, _ in parts.values()] == [(3, 96)]


def test_where_time_is_short_the_first_ones_are_left_to_the_contest(asked):
    er.learn("iris", machines=["logistic", "centroid"], listener=Compiler(), time=60)
    assert [name for name, _ in asked[0][0]] == ["centroid", "logistic"]


def test_on_a_new_computer_processes_start_before_the_table_is_read(monkeypatch):
    monkeypatch.setattr("empirisk.league.run.nothing_compiled", lambda: True)
    started = []
    monkeypatch.setattr(PrecompileProcesses, "start", lambda self: started.append("start"))
    monkeypatch.setattr("empirisk.league.run.plan", lambda request: started.append("plan") or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        er.learn("iris")
    assert started == ["start", "plan"]


def test_a_process_that_gets_no_work_ends():
    with er.config(threads=2), PrecompileProcesses() as processes:
        processes.start()
    (process,) = processes.running
    assert process.wait(timeout=120) == 0


def test_trees_are_compiled_for_codes_where_they_get_codes(asked):
    towns = np.array(["Ulm", "Bonn", "Trier"])[np.arange(60) % 3]
    table = {"x": X[:, 0], "town": towns, "y": np.where(Y, "yes", "no")}
    er.learn(table, "y", machines=["logistic", "boosting"], listener=Compiler())
    names, parts = asked[0]
    assert dict(names) == {"logistic": "numbers", "boosting": "codes"}
    assert parts["codes"][0].codes == [1]
    assert (parts["numbers"][1].shape[1], parts["codes"][1].shape[1]) == (4, 2)
