"""How loops are compiled."""

import sys

import pytest
from numba.core.compiler import Flags

from empirisk.fits.fit import listening_to
from empirisk.linalg import compiled
from empirisk.linalg.compiled import loop, plain
from empirisk.linalg.threads import Stopped


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


@pytest.mark.parametrize("step", ["_optimize_functions", "_optimize_final_module", "_finalize_final_module"])
def test_ctrl_c_is_heard_between_the_steps_of_the_compiler(step, monkeypatch):
    """Pressed as a step begins, as seen from the question that the step asks first."""

    def asked_by_the_step() -> bool:
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_name != "_hear":
            frame = frame.f_back
        return frame is not None and frame.f_back is not None and frame.f_back.f_code.co_name == step

    done = []
    monkeypatch.setattr(compiled.JITCodeLibrary, step, lambda *_: done.append(step))

    @loop
    def thrice(number):
        return 3.0 * number

    with listening_to(asked_by_the_step), pytest.raises(Stopped):
        thrice(1.5)
    assert not done
