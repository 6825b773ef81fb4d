"""What threads that meet inside compiled code need, in LLVM's own instructions: atomic counters, a yield, a prefetch.

It relies on how Numba lays out arrays; `empirisk.trees.binned.no_atomics` is what one thread needs without that.
"""

import ctypes
import sys
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

#: Threads that may share the counters.
MOST_THREADS = sys.maxsize

# The system's call to let another thread run, under a name by which compiled code on disk finds it again.
_SYSTEM: Any = ctypes.WinDLL("kernel32") if sys.platform == "win32" else ctypes.CDLL(None)
_YIELD = _SYSTEM.SwitchToThread if sys.platform == "win32" else _SYSTEM.sched_yield
llvm.add_symbol("empirisk_let_others_run", ctypes.cast(_YIELD, ctypes.c_void_p).value)
let_others_run = types.ExternalFunction("empirisk_let_others_run", types.int32())

_intrinsic: Any = intrinsic  # its types do not know that the first argument is left out


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
