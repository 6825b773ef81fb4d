"""What threads need to work on one tree together inside compiled code: shared counters, and a way to wait.

Work comes in phases of chunks. A thread claims the next chunk of its share, or of another's when its own is done: phase
after phase it meets the same part of the data, which its near memory still holds. The one that finishes the last chunk
opens the next phase. Nobody waits for a thread that has not claimed anything: more threads than processors, or threads
that come late, cost nothing but their own time.
"""

import ctypes
import sys
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.extending import intrinsic

from empirisk.linalg.compiled import plain

# The system's call to let another thread run, under a name by which compiled code on disk finds it again.
_SYSTEM: Any = ctypes.WinDLL("kernel32") if sys.platform == "win32" else ctypes.CDLL(None)
_YIELD = _SYSTEM.SwitchToThread if sys.platform == "win32" else _SYSTEM.sched_yield
llvm.add_symbol("empirisk_let_others_run", ctypes.cast(_YIELD, ctypes.c_void_p).value)
let_others_run = types.ExternalFunction("empirisk_let_others_run", types.int32())

_intrinsic: Any = intrinsic  # its types do not know that the first argument is left out

APART = 8  # distance of numbers that different threads write, a processor's cache line
#: Places of the shared counters: chunks of this phase, those not done yet, whether the work has ended; then, for each
#: thread, the chunks left in its share, and a number of its own.
CHUNKS, UNDONE, ENDED, SHARES = range(0, 4 * APART, APART)
OWN = SHARES + 1
LINE = 64  # bytes that memory delivers at once
SPINS = 256  # looks at the counters before another thread is let run


def _place(context, builder, signature, args):
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@_intrinsic
def atomic_add(typingctx, array, index, amount):
    """Add to a place of an int64 array in one step; what was there before."""

    def build(context, builder, signature, args):
        return builder.atomic_rmw("add", _place(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), build


@_intrinsic
def atomic_swap(typingctx, array, index, value):
    """Write to a place of an int64 array in one step; what was there before."""

    def build(context, builder, signature, args):
        return builder.atomic_rmw("xchg", _place(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), build


@_intrinsic
def atomic_load(typingctx, array, index):
    """What stands in a place of an int64 array now."""

    def build(context, builder, signature, args):
        return builder.load_atomic(_place(context, builder, signature, args), "seq_cst", 8)

    return types.int64(array, types.int64), build


@_intrinsic
def fetch(typingctx, table, row, column):
    """Ask memory for a place in a C-ordered table of bytes, without waiting for it."""

    def build(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        start = builder.add(builder.mul(args[1], builder.extract_value(array.strides, 0)), args[2])
        kinds = [array.data.type, ir.IntType(32), ir.IntType(32), ir.IntType(32)]
        call = ir.FunctionType(ir.VoidType(), kinds)
        function = builder.module.declare_intrinsic("llvm.prefetch", [array.data.type], call)
        read, keep, data = (ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))
        builder.call(function, [builder.gep(array.data, [start]), read, keep, data])
        return context.get_dummy_value()

    return types.none(table, types.int64, types.int64), build


@plain
def claim(counters, thread, threads):
    """A chunk that is now this thread's, waiting for one if there is none; -1 at the end of the work."""
    looks = 0
    while atomic_load(counters, ENDED) == 0:
        for step in range(threads):
            share = (thread + step) % threads
            # A claim that comes too late finds zero or less; the next phase overwrites what it leaves.
            if atomic_load(counters, SHARES + share * APART) > 0:
                left = atomic_add(counters, SHARES + share * APART, -1)
                if left > 0:
                    return (share + 1) * counters[CHUNKS] // threads - left
        looks += 1
        if looks % SPINS == 0:
            let_others_run()
    return np.int64(-1)


@plain
def is_last(counters):
    """Note that a claimed chunk is done; whether it was the last of its phase."""
    return atomic_add(counters, UNDONE, -1) == 1


@plain
def open_phase(counters, chunks, threads):
    """Offer so many chunks: for the thread that finished the last chunk before."""
    counters[CHUNKS] = chunks
    atomic_swap(counters, UNDONE, chunks)
    for share in range(threads):
        size = (share + 1) * chunks // threads - share * chunks // threads
        atomic_swap(counters, SHARES + share * APART, size)
