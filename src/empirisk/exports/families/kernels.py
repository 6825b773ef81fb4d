"""Kernels as graphs: the block between the rows of the graph and items that a model has kept."""

from functools import reduce, singledispatch
from typing import Any

import numpy as np
from scipy.sparse import issparse

from empirisk.exports.registry import refused, write_answers
from empirisk.exports.tensor import Symbolic
from empirisk.kernels.algebra import Binary, Exp, PolynomialOf, Power, Scaled
from empirisk.kernels.base import Kernel
from empirisk.kernels.precomputed import Precomputed
from empirisk.kernels.vectors import Anova, Gaussian, InnerProduct, Laplacian
from empirisk.kernels.wrappers import Centred, Normalised, On, Times, inverse_roots
from empirisk.maps.several import SeveralKernels

#: Entries beyond which differences are taken to be this large: their squares are numbers, and every kernel is zero.
FAR = 1e140
#: Squared distances, in units of the width, up to which a product of the rows gives exponents to eleven digits.
NEAR = 4096.0


@singledispatch
def block(kernel: Kernel, x: Symbolic, items: Any) -> Symbolic:
    """k(x, z) for every row x and every kept item z, which `Kernel.prepare` has made ready."""
    raise refused(kernel, "its items are no rows of numbers, or its formula is not known as a graph")


@singledispatch
def diagonal(kernel: Kernel, x: Symbolic) -> Symbolic:
    """k(x, x) of every row, as a column."""
    raise refused(kernel, "k(x, x) is not known as a graph")


@write_answers.register
def _(kernel: Kernel, x: Symbolic) -> dict:
    raise refused(kernel, "a kernel alone gives no answers; export the machine that has learned with it")


def differences(x: Symbolic, items: Any, power: int) -> Symbolic:
    """sum_k |x_k - z_k|^power for every row and item, from the differences: no digits cancel.

    >>> from empirisk.exports.tensor import entry
    >>> differences(entry("x", np.array([[1.0, 2.0]])), np.array([[0.0, 0.0]]), 2).value
    array([[5.]])
    """
    x, items = np.clip(x, -FAR, FAR), _dense(items)
    columns = (np.abs(x[:, [k]] - items[None, :, k]) for k in range(items.shape[1]))
    return reduce(np.add, (gap * gap if power == 2 else gap for gap in columns))


def _dense(items: Any) -> Any:
    return np.asarray(items.toarray() if issparse(items) else items, dtype=np.float64)


# --- kernels of vectors -----------------------------------------------------------------------------------------------


@block.register
def _(kernel: InnerProduct, x: Symbolic, items: Any) -> Symbolic:
    products = x @ _dense(items).T
    products = products + float(kernel.constant) if kernel.constant else products
    return products if kernel.degree == 1 else np.power(products, float(kernel.degree))


@diagonal.register
def _(kernel: InnerProduct, x: Symbolic) -> Symbolic:
    return np.power((x * x).sum(axis=1, keepdims=True) + float(kernel.constant), float(kernel.degree))


@block.register
def _(kernel: Gaussian, x: Symbolic, items: Any) -> Symbolic:
    scale, items = kernel._exponent(), _dense(items)
    centre = kernel._centre(items)
    items = items if centre is None else items - centre
    norms = np.square(items).sum(axis=1)
    x = x if centre is None else x - np.asarray(centre, dtype=np.float64)
    if scale * norms.max(initial=0.0) > NEAR:
        return np.exp(-scale * differences(x, items, 2))
    x = np.clip(x, -FAR, FAR)
    squares = (x * x).sum(axis=1, keepdims=True) + norms - 2.0 * (x @ items.T)
    return np.exp(-scale * np.maximum(squares, 0.0))


@block.register
def _(kernel: Laplacian, x: Symbolic, items: Any) -> Symbolic:
    gaps = differences(x, items, int(kernel.norm))
    return np.exp((gaps if kernel.norm == 1 else np.sqrt(gaps)) * (-1 / kernel._scale()))


@diagonal.register(Gaussian)
@diagonal.register(Laplacian)
def _(kernel: Any, x: Symbolic) -> Symbolic:
    return x[:, [0]] * 0.0 + 1.0


@block.register
def _(kernel: Anova, x: Symbolic, items: Any) -> Symbolic:
    kernels = kernel._columns(x.shape[1])
    parts = [block(one, x[:, [j]], group) for j, (one, group) in enumerate(zip(kernels, items, strict=True))]
    return _elementary(parts, int(kernel.order))


@diagonal.register
def _(kernel: Anova, x: Symbolic) -> Symbolic:
    kernels = kernel._columns(x.shape[1])
    return _elementary([diagonal(one, x[:, [j]]) for j, one in enumerate(kernels)], int(kernel.order))


def _elementary(parts: list[Symbolic], order: int) -> Symbolic:
    """e_1 + ... + e_order of the parts."""
    sums: list[Any] = [0.0] * min(order, len(parts))
    for part in parts:
        for s in range(len(sums) - 1, 0, -1):
            sums[s] = sums[s] + part * sums[s - 1]
        sums[0] = sums[0] + part
    return reduce(np.add, sums)


@block.register
def _(kernel: Precomputed, x: Symbolic, items: Any) -> Symbolic:
    return x[:, items.columns.tolist()]


# --- kernels of kernels -----------------------------------------------------------------------------------------------


@block.register
def _(kernel: Binary, x: Symbolic, items: Any) -> Symbolic:
    parts = zip(kernel.parts, items, strict=True)
    return type(kernel).operation(*(block(part, x, group) for part, group in parts))


@diagonal.register
def _(kernel: Binary, x: Symbolic) -> Symbolic:
    return type(kernel).operation(*(diagonal(part, x) for part in kernel.parts))


@singledispatch
def _changed(kernel: Any, values: Symbolic) -> Symbolic:
    """What a kernel of one other makes of its values."""
    raise refused(kernel, "its formula is not known as a graph")


@_changed.register
def _(kernel: Scaled, values: Symbolic) -> Symbolic:
    return float(kernel.factor) * values


@_changed.register
def _(kernel: Power, values: Symbolic) -> Symbolic:
    return np.power(values, float(kernel.exponent))


@_changed.register
def _(kernel: Exp, values: Symbolic) -> Symbolic:
    return np.exp(values)


@_changed.register
def _(kernel: PolynomialOf, values: Symbolic) -> Symbolic:
    return reduce(lambda total, c: total * values + float(c), reversed(list(kernel.coefficients)), 0.0 * values)


@block.register(Scaled)
@block.register(Power)
@block.register(Exp)
@block.register(PolynomialOf)
def _(kernel: Any, x: Symbolic, items: Any) -> Symbolic:
    return _changed(kernel, block(kernel.child("kernel"), x, items))


@diagonal.register(Scaled)
@diagonal.register(Power)
@diagonal.register(Exp)
@diagonal.register(PolynomialOf)
def _(kernel: Any, x: Symbolic) -> Symbolic:
    return _changed(kernel, diagonal(kernel.child("kernel"), x))


@block.register
def _(kernel: On, x: Symbolic, items: Any) -> Symbolic:
    return block(kernel.child("kernel"), x[:, kernel.columns_.tolist()], items)


@diagonal.register
def _(kernel: On, x: Symbolic) -> Symbolic:
    return diagonal(kernel.child("kernel"), x[:, kernel.columns_.tolist()])


@block.register
def _(kernel: Times, x: Symbolic, items: Any) -> Symbolic:
    inner, factors = items
    return block(kernel.child("kernel"), x, inner) * kernel.function(x)[:, None] * factors


@diagonal.register
def _(kernel: Times, x: Symbolic) -> Symbolic:
    factors = kernel.function(x)[:, None]
    return diagonal(kernel.child("kernel"), x) * factors * factors


@block.register
def _(kernel: Normalised, x: Symbolic, items: Any) -> Symbolic:
    inner, squares = items
    own = diagonal(kernel.child("kernel"), x)
    roots = np.where(own > 0, 1.0 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
    return block(kernel.child("kernel"), x, inner) * roots * inverse_roots(squares)


@diagonal.register
def _(kernel: Normalised, x: Symbolic) -> Symbolic:
    return (diagonal(kernel.child("kernel"), x) > 0).astype(np.float64)


def _less_mean(kernel: Centred, x: Symbolic) -> Symbolic:
    """The mean of k(x, x_i) over the data that the kernel is centred on, less half of the mean of those."""
    products = block(kernel.child("kernel"), x, kernel.items_)
    weights = getattr(kernel, "weights_", np.full(products.shape[1], 1 / products.shape[1]))
    return products @ weights[:, None] - kernel.mean_ / 2


@block.register
def _(kernel: Centred, x: Symbolic, items: Any) -> Symbolic:
    inner, means = items
    return block(kernel.child("kernel"), x, inner) - _less_mean(kernel, x) - means


@diagonal.register
def _(kernel: Centred, x: Symbolic) -> Symbolic:
    return diagonal(kernel.child("kernel"), x) - 2.0 * _less_mean(kernel, x)


@block.register
def _(kernel: SeveralKernels, x: Symbolic, items: Any) -> Symbolic:
    members = zip(kernel.weights, kernel._members(), items, strict=True)
    return reduce(np.add, [float(beta) * block(one, x, group) for beta, one, group in members if beta > 0])


@diagonal.register
def _(kernel: SeveralKernels, x: Symbolic) -> Symbolic:
    members = zip(kernel.weights, kernel._members(), strict=True)
    return reduce(np.add, [float(beta) * diagonal(one, x) for beta, one in members if beta > 0])
