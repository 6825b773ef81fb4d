"""How loops are compiled."""

from numba.core.compiler import Flags

from empirisk.linalg.compiled import loop, plain


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
