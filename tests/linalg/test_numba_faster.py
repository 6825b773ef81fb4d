"""Faster twins of Numba's internals give Numba's answers."""

import gc
import operator
from _abc import _get_dump
from itertools import product

import pytest
from numba import types
from numba.core import bytecode, errors, interpreter, ir, ssa
from numba.core.base import BaseContext as TargetContext
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction
from numba.core.typing.context import BaseContext
from numba.core.typing.npydecl import NumpyRulesArrayOperator

from empirisk.linalg import numba_faster

NUMBERS = [types.int64, types.uint64, types.int32, types.uint8, types.float64, types.float32, types.boolean]
KINDS = [
    *NUMBERS,
    types.literal(3),
    types.Optional(types.int64),
    types.none,
    types.Array(types.float64, 1, "C"),
    types.Array(types.uint8, 2, "A"),
    types.Optional(types.Array(types.int32, 1, "C")),
    types.UniTuple(types.int64, 2),
]
OPERATORS = [operator.add, operator.sub, operator.truediv, operator.floordiv, operator.lt, operator.and_, operator.eq]
OPERATORS += [operator.iadd, operator.rshift, operator.mod, operator.pow, operator.getitem]


def loop(values, bound):
    """Something with branches, loops, calls and slices."""
    total, last = 0.0, (1, 2)
    for k in range(len(values)):
        if values[k] > bound or k == last[0]:
            total += max(values[k], bound) + min(values[k:].sum(), 2.0)
        else:
            values[k] = -total
    return total, last


def naive(value):
    """The variables in a value, in order: four questions for each."""
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        return naive(value._kws if isinstance(value, ir.Expr) else vars(value))
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [found for part in parts for found in naive(part)]


@pytest.fixture
def blocks():
    identity = bytecode.FunctionIdentity.from_function(loop)
    return interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity)).blocks


@pytest.fixture
def used():
    with numba_faster.twins():
        yield


@pytest.mark.usefixtures("used")
def test_variables_of_instructions_are_found_in_their_order(blocks):
    statements = [one for block in blocks.values() for one in block.body]
    assert len(statements) > 30
    for one in statements:
        assert [id(variable) for variable in one.list_vars()] == [id(variable) for variable in naive(one)]


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("function", OPERATORS)
def test_operators_have_the_types_that_numba_finds(function, monkeypatch):
    def signatures():
        context = cpu_target.typing_context
        context.refresh()
        found = []
        for pair in product(KINDS, KINDS):
            try:
                found.append(str(context.resolve_value_type(function).get_call_type(context, pair, {})))
            except (errors.TypingError, AttributeError, TypeError) as error:  # an array += None: Numba's own mistakes
                found.append(f"{type(error)} {error}".splitlines()[0])
        return found

    ours = signatures()
    monkeypatch.setattr(BaseFunction, "get_call_type", numba_faster._get_call_type)
    monkeypatch.setattr(NumpyRulesArrayOperator, "generic", numba_faster._generic)
    monkeypatch.setattr(BaseContext, "resolve_overload", numba_faster._resolve_overload)
    theirs = signatures()
    assert ours == theirs
    assert len(set(ours)) > 2


@pytest.mark.usefixtures("used")
def test_types_have_the_sizes_that_llvm_says():
    context = cpu_target.target_context
    for kind in KINDS:
        found = context.get_value_type(kind)
        assert [context.get_abi_sizeof(found)] * 2 == [numba_faster._get_abi_sizeof(context, found)] * 2
    assert TargetContext.get_abi_sizeof is numba_faster._abi_size


def test_no_class_is_registered_with_a_type_of_numba():
    """As long as that is so, `isinstance` may leave out the question."""

    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    assert len(below(types.Type)) > 100
    assert not [kind for kind in below(types.Type) if _get_dump(kind)[0]]


@pytest.mark.usefixtures("used")
def test_instructions_pass_through_the_handler_in_order(blocks):
    class Handler:
        def on_assign(self, states, one):
            return "assigned", one

        def on_other(self, states, one):
            return "other", one

    block = next(iter(blocks.values()))
    expected = [("assigned" if isinstance(one, ir.Assign) else "other", one) for one in block.body]
    assert list(ssa._run_ssa_block_pass({}, block, Handler())) == expected


@pytest.mark.parametrize("threshold", [0, 700, 10**6])
def test_garbage_is_collected_as_before_in_the_end(threshold):
    before = gc.get_threshold()
    try:
        gc.set_threshold(threshold, 5, 5)
        with numba_faster.fewer_collections():
            assert gc.get_threshold()[0] == (max(threshold, 100_000) if threshold else 0)
        assert gc.get_threshold() == (threshold, 5, 5)
    finally:
        gc.set_threshold(*before)


def test_numba_has_its_own_again_after_a_loop_was_compiled():
    asked = (type(types.Type), "__instancecheck__"), (BaseFunction, "get_call_type"), (ssa, "_run_ssa_block_pass")
    before = [vars(owner).get(name) for owner, name in asked]
    with numba_faster.twins():
        assert all(vars(owner).get(name) is not known for (owner, name), known in zip(asked, before, strict=True))
    assert [vars(owner).get(name) for owner, name in asked] == before
