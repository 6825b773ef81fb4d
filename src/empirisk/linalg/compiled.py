"""How loops are compiled: once, kept on disk, without Python's lock; x / 0 is infinite, as in NumPy.

Nothing calls them from C, so no wrapper is made for that: it would cost a fifth of the time to compile. Compile time is
what a user waits for at the first fit ever: records cost a third of what wide tuples cost, another type of argument is
another copy of every function that it reaches, and so is a number written out as an argument (those handed on are
NumPy's).
"""

import gc
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.targetconfig import TargetConfig
from numba.extending import intrinsic
from numba.np.linalg import dot_3_mm, ensure_blas

from empirisk.linalg.kept import keep
from empirisk.linalg.threads import Stopped, ctrl_c


def _pressed() -> bool:
    question = ctrl_c.get()
    return question is not None and question()


class _Compiling(event.Listener):
    """While Numba works, no garbage is collected: it makes millions of objects, and looking at them takes long."""

    def __init__(self):
        self._depth, self._enabled = 0, False
        self.in_peace = False  # Ctrl-C came before: the fit knows, and is about to end with what it has

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self.in_peace = _pressed()
            self._enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._enabled:
            gc.enable()


def _hear() -> None:
    """Raise `Stopped` after Ctrl-C; asked between the steps of the compiler, the longest of which takes .9 s."""
    if _pressed() and not _COMPILING.in_peace:
        raise Stopped


class _Hearing(event.Listener):
    """Ctrl-C is heard between two passes over Python's code."""

    def on_start(self, event: event.Event) -> None:
        _hear()

    def on_end(self, event: event.Event) -> None:
        pass


def _values(self: TargetConfig) -> dict[str, Any]:
    """`TargetConfig.values`, which Numba asks for thousands of times and builds of 28 properties each time."""
    return _defaults(type(self)) | self._values


@cache
def _defaults(kind: type[TargetConfig]) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


class _Whole(JITCodeLibrary):
    """Code of a loop with all that it calls; Ctrl-C is heard between two steps of the work on it."""

    def _optimize_functions(self, module: Any) -> None:
        _hear()
        super()._optimize_functions(module)

    def _optimize_final_module(self) -> None:
        _hear()
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        _hear()
        super()._finalize_final_module()


class _Part(_Whole):
    """Code that only other code takes in: what takes it in is optimised and turned into machine code as a whole."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # what Numba takes for a function without a wrapper

    @property
    def codegen(self) -> "_Part":
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Nothing: the environment is for code that handles Python's objects."""


class _Wholes(Compiler):
    """Compiles into a library of its own kind."""

    kind: type[JITCodeLibrary] = _Whole

    def define_pipelines(self) -> list:
        state = self.state
        state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class _Parts(_Wholes):
    """Compiles into a `_Part`."""

    kind = _Part


_COMPILING = _Compiling()
event.register("numba:compile", _COMPILING)
event.register("numba:run_pass", _Hearing())
TargetConfig.values = _values
_njit: Any = njit  # its types do not know all of its options
_ALL = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": _Wholes}
_INNER = _ALL | {"no_cpython_wrapper": True, "pipeline_class": _Parts}


def _kept(**options: Any) -> Any:
    """A decorator: the function is compiled with these options, and its code is kept in files."""
    compiled = _njit(**_ALL, **options)
    return lambda function: keep(compiled(function))


loop = _kept()
#: For functions that only other compiled ones call: no wrapper for Python either, and no file of their own.
inner = _njit(**_INNER)
#: The same two for loops that make no arrays: without counts of references there is a quarter less to compile.
plain_loop = _kept(_nrt=False)
plain = _njit(_nrt=False, **_INNER)


def loop_with(fastmath: set[str]) -> Any:
    """`plain_loop` with sums that may be reordered, or numbers that are known to be finite."""
    return _kept(fastmath=fastmath, _nrt=False)


def inner_with(fastmath: set[str]) -> Any:
    """`plain` with sums that may be reordered, or numbers that are known to be finite."""
    return _njit(fastmath=fastmath, _nrt=False, **_INNER)


@intrinsic
def multiply(typing_context, left, right, out):
    """The product of two matrices into ``out``, by BLAS; `np.dot` hands an array back, which no plain loop can."""

    def code(context, builder, signature, arguments):
        ensure_blas()
        dot_3_mm(context, builder, signature.replace(return_type=out), arguments)
        return context.get_dummy_value()

    return types.none(left, right, out), code


#: What splitmix64 (Steele, Lea and Flood, 2014) adds for every number; its other numbers are in `mixed`.
ODD = np.uint64(0x9E3779B97F4A7C15)


def mixed(bits: Any) -> Any:
    """64 bits, each of which depends on all of the given ones, for a number or an array."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


mix = plain(mixed)


@plain
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64); ``seed`` is an array of one uint64, its state."""
    seed[0] += ODD
    return np.int64(((mix(seed[0]) >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))
