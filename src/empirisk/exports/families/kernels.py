"""Kernels as graphs: their expressions, of the rows of the graph and of items that a model has kept."""

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.sparse import issparse

from empirisk.exports.registry import refused, write_answers
from empirisk.exports.tensor import Symbolic
from empirisk.kernels.algebra import Binary, Wrapper
from empirisk.kernels.base import Kernel
from empirisk.kernels.expression import Expression, evaluate, evaluate_diagonal
from empirisk.kernels.items import Parts
from empirisk.kernels.precomputed import Precomputed
from empirisk.kernels.vectors import Anova
from empirisk.kernels.wrappers import Centred, Normalised, On, Times
from empirisk.maps.several import SeveralKernels

#: Squared distances, in units of the width, up to which a product of the rows gives exponents to eleven digits.
NEAR = 4096.0


@write_answers.register
def _(kernel: Kernel, x: Symbolic) -> dict:
    raise refused(kernel, "a kernel alone gives no answers; export the machine that has learned with it")


@singledispatch
def block(kernel: Kernel, x: Symbolic, items: Any) -> Symbolic:
    """k(x, z) for every row x and every kept item z, which `Kernel.prepare` has made ready."""
    return _between(kernel, prepared(kernel, x), items)


@block.register
def _(kernel: Precomputed, x: Symbolic, items: Any) -> Symbolic:
    return x[:, items.columns.tolist()]


def diagonal(kernel: Kernel, x: Symbolic) -> Symbolic:
    """k(x, x) of every row, as a column."""
    return _diagonals(kernel, prepared(kernel, x))[:, None]


def _between(kernel: Kernel, rows: Any, items: Any) -> Symbolic:
    left, right = kernel.expression(rows), kernel.expression(dense(items))
    assert left is not None  # `prepared` has asked
    assert right is not None
    return evaluate(left, right.changed(_by_gaps_if_far))


def _diagonals(kernel: Kernel, rows: Any) -> Symbolic:
    found = kernel.expression(rows)
    assert found is not None  # `prepared` has asked
    return evaluate_diagonal(found)


def dense(items: Any) -> Any:
    """Prepared items in double precision, none of them sparse."""
    if isinstance(items, Parts):
        return Parts(*map(dense, items))
    return np.asarray(items.toarray() if issparse(items) else items, dtype=np.float64)


def _by_gaps_if_far(known: Expression) -> Expression:
    """A multiple of squared distances from differences, where a product of the rows would lose digits of it."""
    if known.operation != "scaled" or known.parts[0].operation != "squared_distance":
        return known
    (distance,) = known.parts
    squares = np.square(distance.rows - distance.rows.mean(axis=0)).sum(axis=1)
    far = -known.numbers[0] * squares.max(initial=0.0) > NEAR
    return replace(known, parts=(replace(distance, operation="squared_gaps"),)) if far else known


# --- the rows of a graph as items of kernels --------------------------------------------------------------------------


@singledispatch
def prepared(kernel: Kernel, x: Symbolic) -> Any:
    """What `Kernel.prepare` makes of rows that are numbers: the rows, where it does not say otherwise."""
    if type(kernel).prepare is not Kernel.prepare or kernel.expression(x) is None:
        raise refused(kernel, "its items are no rows of numbers, or its formula is not known as a graph")
    return x


@prepared.register
def _(kernel: Anova, x: Symbolic) -> Parts:
    return Parts(*(prepared(one, x[:, [j]]) for j, one in enumerate(kernel._columns(x.shape[1]))))


@prepared.register
def _(kernel: Binary, x: Symbolic) -> Parts:
    return Parts(*(prepared(part, x) for part in kernel.parts))


@prepared.register
def _(kernel: SeveralKernels, x: Symbolic) -> Parts:
    return Parts(*(prepared(member, x) for member in kernel._members()))


@prepared.register
def _(kernel: Wrapper, x: Symbolic) -> Any:
    return prepared(kernel.child("kernel"), x)


@prepared.register
def _(kernel: On, x: Symbolic) -> Any:
    return prepared(kernel.child("kernel"), x[:, kernel.columns_.tolist()])


@prepared.register
def _(kernel: Times, x: Symbolic) -> Parts:
    return Parts(prepared(kernel.child("kernel"), x), kernel.function(x))


@prepared.register
def _(kernel: Normalised, x: Symbolic) -> Parts:
    items = prepared(kernel.child("kernel"), x)
    return Parts(items, _diagonals(kernel.child("kernel"), items))


@prepared.register
def _(kernel: Centred, x: Symbolic) -> Parts:
    items = prepared(kernel.child("kernel"), x)
    products = _between(kernel.child("kernel"), items, kernel.items_)
    weights = getattr(kernel, "weights_", np.full(products.shape[1], 1 / products.shape[1]))
    return Parts(items, (products @ weights[:, None])[:, 0] - kernel.mean_ / 2)
