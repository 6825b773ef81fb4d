"""Steps of Numba's compiler that take most of its time for nothing, done without; what is compiled is the same.

Three quarters of what a user waits for at the first fit ever is Numba's Python, not LLVM. Twins that give the same
answers stand for internals of Numba while a loop of ours is compiled, and for nobody else's.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import ir as llvm
from numba.core import errors, ir, ssa, types
from numba.core.base import BaseContext as BaseTargetContext
from numba.core.target_extension import get_local_target
from numba.core.targetconfig import TargetConfig
from numba.core.types.functions import BaseFunction
from numba.core.typing.context import BaseContext
from numba.core.typing.npydecl import NumpyRulesArrayOperator
from numba.core.utils import order_by_target_specificity

#: Objects that are made between two looks for garbage while a loop is compiled, for whose parts nothing is garbage yet.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


# --- what a target is asked for ---------------------------------------------------------------------------------------


def _values(self: TargetConfig) -> dict[str, Any]:
    """`TargetConfig.values`, which Numba asks for thousands of times and builds of 28 properties each time."""
    return _defaults(type(self)) | self._values


@cache
def _defaults(kind: type[TargetConfig]) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


# --- variables of an instruction --------------------------------------------------------------------------------------

NOTHING, VARIABLE, INSTRUCTION, SEQUENCE, MAPPING = range(5)


@cache
def _role(kind: type) -> int:
    """What an instruction keeps in an attribute of this type."""
    of_kinds = {VARIABLE: ir.Var, INSTRUCTION: ir.Inst, SEQUENCE: (list, tuple), MAPPING: dict}
    return next((role for role, kinds in of_kinds.items() if issubclass(kind, kinds)), NOTHING)


def _variables(self: ir.Inst, value: Any) -> list[ir.Var]:
    """`Inst._rec_list_vars`, which asks for the class of every value four times."""
    found: list[ir.Var] = []
    _gather([value], found)
    return found


def _gather(values: Iterable[Any], found: list[ir.Var]) -> None:
    for value in values:
        role = _role(type(value))
        if role == VARIABLE:
            found.append(value)
        elif role == INSTRUCTION:
            found += value.list_vars()
        elif role == SEQUENCE:
            _gather(value, found)
        elif role == MAPPING:
            _gather(value.values(), found)


# --- types ------------------------------------------------------------------------------------------------------------

_generic = NumpyRulesArrayOperator.generic


def _array_operator(self: Any, args: tuple, kws: dict) -> Any:
    """`NumpyRulesArrayOperator.generic`, which looks for a loop of NumPy before it sees that there is no array."""
    plain = (one.type if isinstance(one, types.Optional) else one for one in args)
    return _generic(self, args, kws) if any(isinstance(one, types.ArrayCompatible) for one in plain) else None


_get_call_type = BaseFunction.get_call_type


def _call_type(self: Any, context: Any, args: tuple, kws: dict) -> Any:
    """`BaseFunction.get_call_type`, which writes down why each rule does not fit before it tries the next.

    Where none fits it is asked for the reasons.
    """
    self._depth += 1
    try:
        found = _first_that_fits(self, context, args, kws)
    finally:
        self._depth -= 1
    return _get_call_type(self, context, args, kws) if found is None else found


def _first_that_fits(self: Any, context: Any, args: tuple, kws: dict) -> Any:
    """The signature by the first rule that has one, None if there is none."""
    for kind in _in_order(get_local_target(context), *self.templates):
        template = kind(context)
        for literal in (True, False) if template.prefer_literal else (False, True):
            try:
                given = (args, kws) if literal else (tuple(map(_not_literal, args)), _each(_not_literal, kws))
                signature = template.apply(*given)
            except errors.NumbaError:
                continue
            if signature is not None:
                self._impl_keys[signature.args] = template.get_impl_key(signature)
                return signature
    return None


@cache
def _in_order(target: Any, *templates: Any) -> list[Any]:
    """The rules of a function, those that are meant for the target first."""
    return order_by_target_specificity(target, list(templates))


def _each(function: Callable[[Any], Any], values: dict) -> dict:
    return {name: function(value) for name, value in values.items()}


def _not_literal(kind: Any) -> Any:
    found = types.unliteral(kind)
    if isinstance(found, types.Poison):
        raise errors.TypingError(f"Poison type used in arguments; got {found}")
    return found


_resolve_overload = BaseContext.resolve_overload


def _overload(self: Any, key: Any, cases: list, args: tuple, kws: dict, *rest: Any, **options: Any) -> Any:
    """`BaseContext.resolve_overload`, which rates every case of an operator each time it meets one."""
    if kws or rest or options or not all(isinstance(one, (types.Number, types.Boolean)) for one in args):
        return _resolve_overload(self, key, cases, args, kws, *rest, **options)
    known = _overloads.setdefault((id(self), id(cases), len(cases)), (cases, {}))[1]
    if args not in known:
        known[args] = _resolve_overload(self, key, cases, args, kws)
    return known[args]


#: Cases that fit arguments that are numbers, by context and list of cases, which is kept so that its id is its own.
_overloads: dict[tuple[int, int, int], tuple[list, dict]] = {}


_get_abi_sizeof = BaseTargetContext.get_abi_sizeof


def _abi_size(self: Any, kind: llvm.Type) -> int:
    """`BaseContext.get_abi_sizeof`, for which LLVM reads a program that declares a variable of that type."""
    key = id(self), str(kind)
    if key not in _sizes:
        _sizes[key] = _get_abi_sizeof(self, kind)
    return _sizes[key]


_sizes: dict[tuple[int, str], int] = {}


# --- notes of what happens --------------------------------------------------------------------------------------------


def _ssa_pass(states: dict, block: ir.Block, handler: Any) -> Iterator[Any]:
    """`ssa._run_ssa_block_pass`, without a note for the log for each instruction."""
    for statement in block.body:
        handle = handler.on_assign if isinstance(statement, ir.Assign) else handler.on_other
        yield handle(states, statement)


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Look for garbage more seldom: each look passes over all that was made so far."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS_BETWEEN_COLLECTIONS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def twins() -> Iterator[None]:
    """Let Numba use all of these. It compiles under a lock, so that loops of others never meet them."""
    found: dict[tuple[Any, str], Callable] = {
        # Numba's types are abstract base classes, to which none is registered: Python's own answer is the same.
        (type(types.Type), "__instancecheck__"): type.__instancecheck__,
        (TargetConfig, "values"): _values,
        (ir.Inst, "_rec_list_vars"): _variables,
        (NumpyRulesArrayOperator, "generic"): _array_operator,
        (BaseFunction, "get_call_type"): _call_type,
        (BaseContext, "resolve_overload"): _overload,
        (BaseTargetContext, "get_abi_sizeof"): _abi_size,
        (ssa, "_run_ssa_block_pass"): _ssa_pass,
    }
    before = {(owner, name): vars(owner).get(name) for owner, name in found}
    try:
        for (owner, name), twin in found.items():
            setattr(owner, name, twin)
        yield
    finally:
        for (owner, name), known in before.items():
            if known is None:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, known)
