"""How loops are compiled faster than Numba's documented options allow, and where their code is kept.

All of this relies on internals of Numba; `empirisk.linalg.numba_public` does the same without them.
"""

import hashlib
import os
import pickle
import warnings
from contextlib import suppress
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import typed_passes, untyped_passes
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    ZipCacheLocator,
)
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from empirisk.linalg import numba_faster
from empirisk.linalg.compile_interrupts import raise_after_ctrl_c
from empirisk.messages import coded
from empirisk.places import home_is_known, private_folder

# --- compiling --------------------------------------------------------------------------------------------------------


class _Whole(JITCodeLibrary):
    """Code of a loop with all that it calls; Ctrl-C is asked for between two steps of the work on it."""

    def _optimize_functions(self, module: Any) -> None:
        raise_after_ctrl_c()
        super()._optimize_functions(module)

    def _optimize_final_module(self) -> None:
        raise_after_ctrl_c()
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        raise_after_ctrl_c()
        super()._finalize_final_module()


class _Part(_Whole):
    """Code that only other code includes: what includes it is optimised and turned into machine code as a whole."""

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


#: Steps for what our loops do without: closures, `with`, exceptions with values, literals asked for, and reports.
_NOT_NEEDED = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.AnnotateTypes,
    typed_passes.NoPythonSupportedFeatureValidation,
    typed_passes.DumpParforDiagnostics,
)


class _WholeCompiler(Compiler):
    """Compiles into a library of its own kind."""

    kind: type[JITCodeLibrary] = _Whole

    def define_pipelines(self) -> list:
        state = self.state
        state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [step for step in pipeline.passes if step[0] not in _NOT_NEEDED]
        return pipelines

    def _compile_core(self) -> Any:
        with numba_faster.twins(), numba_faster.fewer_collections():
            return super()._compile_core()


class _PartCompiler(_WholeCompiler):
    """Compiles into a `_Part`."""

    kind = _Part


_njit: Any = njit  # its types do not know all of its options
_ALL = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def outer_function(arrays: bool, fastmath: set[str] | bool = False) -> Any:
    """A decorator for a loop that Python calls; its code is kept in files.

    Nothing calls it from C, so no wrapper is made for that: it would cost a fifth of the time to compile. One that
    makes no ``arrays`` needs no counts of references, and a quarter less is compiled.
    """
    compiled = _njit(**_ALL, _nrt=arrays, fastmath=fastmath, pipeline_class=_WholeCompiler)
    return lambda function: _keep(compiled(function))


def inner_function(arrays: bool, fastmath: set[str] | bool = False) -> Any:
    """A decorator for a function that only compiled ones call: no wrapper for Python either, and no file of its own."""
    return _njit(**_ALL, _nrt=arrays, fastmath=fastmath, no_cpython_wrapper=True, pipeline_class=_PartCompiler)


@intrinsic
def multiply(typing_context, left, right, out):
    """The product of two matrices into ``out``, by BLAS; `np.dot` hands an array back, for which there is no code."""

    def code(context, builder, signature, arguments):
        from numba.np.linalg import dot_3_mm, ensure_blas  # slow to import, and seldom compiled

        ensure_blas()
        dot_3_mm(context, builder, signature.replace(return_type=out), arguments)
        return context.get_dummy_value()

    return types.none(left, right, out), code


def preload() -> None:
    """Load what Numba needs for its first loop, so that this is not taken for the time of a fit."""
    cpu_target.typing_context.refresh()  # type: ignore[attr-defined]
    cpu_target.target_context.refresh()  # type: ignore[attr-defined]


# --- files ------------------------------------------------------------------------------------------------------------


class _TemporaryLocator(UserWideCacheLocator):
    """A folder of this user under the temporary one, for where nothing else can be written."""

    def __init__(self, py_func: Any, py_file: str):
        super().__init__(py_func, py_file)
        folder = private_folder()
        if folder is None:
            raise OSError
        self._cache_path = os.path.join(folder, "numba", self.get_suitable_cache_subpath(py_file))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        try:
            found = super().from_function(py_func, py_file)
        except OSError:
            return None
        if found is not None:
            _say(f"in {private_folder()}")
        return found


class _Files(CompileResultCacheImpl):
    """The files of a loop, in the first place that can be written."""

    # Without a home Numba would make a folder of the name "~" wherever it is.
    _locator_classes = [  # noqa: RUF012
        UserProvidedCacheLocator,
        InTreeCacheLocator,
        *([UserWideCacheLocator] if home_is_known() else []),
        ZipCacheLocator,
        _TemporaryLocator,
    ]


class _Cache(FunctionCache):
    """The cache of a loop; where nothing more can be written, a full disk say, the loop is in memory all the same."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature, None if it must be compiled.

        An index of an older version of Empirisk may name classes that this one does not have. Numba reads the names
        before it sees that the index is out of date, and would raise; such an index is emptied.
        """
        self._look_below()
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self._look_below()
        try:
            super().save_overload(sig, data)
        except OSError:
            _say("in memory alone")

    def _look_below(self) -> None:
        """Make the index out of date where a function that the loop calls is another one.

        Numba asks for the file of the loop alone: after an update that changes a function of another file, it would go
        on with the code of the old one. What is called is known once all modules are loaded, so not from the beginning.
        """
        if not hasattr(self, "_below"):
            self._below = code_below(self._py_func)
            self._cache_file._source_stamp = self._cache_file._source_stamp, self._below


def code_below(function: Any) -> str:
    """A hash of the code of a function, of all that it calls and of the numbers that it uses, as far as they compile.

    >>> def scale(x): return 2 * x
    >>> def total(x): return scale(x).sum()
    >>> before = code_below(total)
    >>> def scale(x): return 3 * x
    >>> code_below(total) == before
    False
    """
    digest, waiting, seen = hashlib.sha256(), [function], set()
    while waiting:
        found = waiting.pop()
        found = getattr(found, "py_func", getattr(found, "_defn", found))  # of a loop, or of an intrinsic
        if id(found) in seen:
            continue
        seen.add(id(found))
        cells = [cell.cell_contents for cell in found.__closure__ or ()]
        codes = [found.__code__]
        for code in codes:  # which grows by those inside
            codes += [const for const in code.co_consts if isinstance(const, CodeType)]
            values = [found.__globals__.get(name) for name in code.co_names]
            digest.update(code.co_code + repr((code.co_names, code.co_varnames)).encode())
            for value in (*code.co_consts, *values, *cells):
                if isinstance(value, FunctionType) or hasattr(value, "py_func") or hasattr(value, "_defn"):
                    waiting.append(value)
                else:
                    digest.update(_written(value).encode())
    return digest.hexdigest()


def _written(value: Any) -> str:
    """A value that is compiled into code, the same in every process; nothing for modules, classes and others."""
    if isinstance(value, (frozenset, tuple)):
        parts = [_written(part) for part in value]
        return repr(sorted(parts) if isinstance(value, frozenset) else parts)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes()!r}"
    return repr(value) if isinstance(value, (bool, int, float, complex, str, bytes, np.generic, np.dtype)) else ""


def _keep(dispatcher: Any) -> Any:
    """A compiled function whose code later processes find; this one has it in any case."""
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    except RuntimeError:  # no place can be written
        _say("in memory alone")
    return dispatcher


@cache
def _say(where: str) -> None:
    """Warn once."""
    sentence = (
        f"Compiled loops are kept {where}, since neither the folder of Empirisk nor that of its user can be written, "
        "and may be compiled again by the next process; set NUMBA_CACHE_DIR to a folder that lasts."
    )
    warnings.warn(coded("ER018", sentence), stacklevel=2)
