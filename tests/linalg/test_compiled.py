"""How loops are compiled."""

import importlib
import os
import sys

import numpy as np
import pytest
from numba.core.compiler import Flags

from empirisk.linalg import numba_internals, numba_public
from empirisk.linalg.compiled import loop, plain
from empirisk.stop import Stopped, listening_to


def test_options_are_read_as_numba_reads_them():
    flags = Flags()
    flags.nrt, flags.inline = True, "never"
    assert flags.values() == {name: getattr(flags, name) for name in flags.options}
    assert flags == Flags(flags)
    assert flags != Flags()


def test_parts_live_in_the_loops_that_take_them_in():
    @plain
    def twice(number):
        return 2.0 * number

    @loop
    def four_times(number):
        return twice(twice(number))

    assert four_times(1.5) == 6.0
    (part,) = twice.overloads.values()
    (whole,) = four_times.overloads.values()
    assert part.library.get_pointer_to_function(part.fndesc.llvm_func_name) == 0
    assert whole.library.get_pointer_to_function(whole.fndesc.llvm_func_name) != 0


LOOP_OF_A_RECORD = """
from typing import NamedTuple
from empirisk.linalg.compiled import loop

class {name}(NamedTuple):
    number: float

@loop
def twice(record):
    return 2.0 * record.number
"""


def test_code_kept_for_a_class_that_has_another_name_now_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("Before", "After"):
        file = tmp_path / "a_loop_of_a_record.py"
        file.write_text(LOOP_OF_A_RECORD.format(name=name))
        os.utime(file, ns=(0, len(name)))
        sys.modules.pop(file.stem, None)
        importlib.invalidate_caches()
        module = importlib.import_module(file.stem)
        assert module.twice(getattr(module, name)(1.5)) == 3.0
    module.twice._cache._cache_file.load("no signature")  # the index can be read again


FUNCTION_OF_ANOTHER_FILE = """
from empirisk.linalg.compiled import plain
FACTOR = {factor}

@plain
def scaled(number):
    return {sign} FACTOR * number
"""
LOOP_OVER_IT = """
from empirisk.linalg.compiled import loop
import the_other_file

@loop
def of_another_file(number):
    return scaled(number)

scaled = the_other_file.scaled  # known after the loop, as in files that name it below
"""


def test_code_kept_for_a_loop_that_calls_what_has_changed_is_compiled_again(tmp_path, monkeypatch):
    """An update may leave the file of the loop as it is: forests went on with the cuts of an older file."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_loop_over_it.py").write_text(LOOP_OVER_IT)
    for factor, sign, kept in ((2.0, "+", False), (2.0, "+", True), (3.0, "+", False), (3.0, "-", False)):
        source = FUNCTION_OF_ANOTHER_FILE.format(factor=factor, sign=sign)
        (tmp_path / "the_other_file.py").write_text(source)
        for name in ("the_other_file", "a_loop_over_it"):
            sys.modules.pop(name, None)
        for cached in tmp_path.rglob("*.pyc"):
            cached.unlink()
        importlib.invalidate_caches()
        module = importlib.import_module("a_loop_over_it")
        assert module.of_another_file(1.5) == float(sign + "1") * factor * 1.5
        assert bool(module.of_another_file.stats.cache_hits) == kept


@pytest.mark.parametrize("step", ["_optimize_functions", "_optimize_final_module", "_finalize_final_module"])
def test_ctrl_c_is_heard_between_the_steps_of_the_compiler(step, monkeypatch):
    """Pressed as a step begins, as seen from the question that the step asks first."""

    def asked_by_the_step() -> bool:
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_name != "raise_after_ctrl_c":
            frame = frame.f_back
        return frame is not None and frame.f_back is not None and frame.f_back.f_code.co_name == step

    done = []
    monkeypatch.setattr(numba_internals.JITCodeLibrary, step, lambda *_: done.append(step))

    @loop
    def thrice(number):
        return 3.0 * number

    with listening_to(asked_by_the_step), pytest.raises(Stopped):
        thrice(1.5)
    assert not done


def compiled_by(module):
    """A loop that calls another one and BLAS, compiled by the decorators of a module."""

    @module.inner_function(arrays=False)
    def root(number):
        return number**0.5 / 3.0

    product = module.multiply

    @module.outer_function(arrays=True)
    def work(left, right):
        out = np.empty((left.shape[0], right.shape[1]))
        product(left, right, out)
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = root(abs(out[i, j])) / (i * j)
        return out

    return work


def test_loops_have_the_same_bits_with_the_documented_options_of_numba_alone():
    random = np.random.default_rng(0)
    left, right = random.normal(size=(5, 40)), random.normal(size=(40, 7))
    quick, plain = (compiled_by(module)(left, right) for module in (numba_internals, numba_public))
    assert np.isinf(quick[0, 0])  # as NumPy divides by zero, not as Python does
    assert quick.tobytes() == plain.tobytes()


def test_a_loop_that_no_folder_can_keep_is_compiled_all_the_same():
    names = {}
    exec("def thrice(number): return 3 * number", names)  # without a file there is no folder beside it
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba_public._njit(cache=True)(names["thrice"])
    assert numba_public.outer_function(arrays=False)(names["thrice"])(2) == 6


def test_preloading_is_repeatable():
    for module in (numba_internals, numba_public):
        module.preload()
