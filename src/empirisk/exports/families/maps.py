"""Feature maps as graphs, and the slot ``features=`` of machines."""

from functools import reduce
from typing import Any

import numpy as np

from empirisk.contract.features import MapsFeatures
from empirisk.exports.families.kernels import block
from empirisk.exports.registry import Answers, transformed, write_answers
from empirisk.exports.tensor import Symbolic
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import validated
from empirisk.maps.explicit import Monomials, Periodic, PolynomialKernel
from empirisk.maps.recipes import BoxCox, Logarithm
from empirisk.maps.streamed import Nystrom, RandomFourier


def mapped(machine: MapsFeatures, x: Symbolic) -> Symbolic:
    """phi(x): the rows themselves, or behind the fitted map."""
    return x if machine.features is None else transformed(machine.features_, x)


def products(machine: MapsFeatures, x: Symbolic) -> Symbolic:
    """<w, phi(x)> for every row and output."""
    kernel = getattr(machine, "features_", None)
    if not isinstance(kernel, Kernel):
        return mapped(machine, x) @ np.atleast_2d(np.asarray(machine.coef_, dtype=np.float64)).T
    weights = np.atleast_2d(np.asarray(machine.dual_coef_, dtype=np.float64)).T
    if len(weights) == 0:  # w = 0 has no support
        return x[:, [0]] * np.zeros((1, weights.shape[1]))
    with validated():
        support = kernel.prepare(machine.support_vectors_)
    return block(kernel, x, support) @ weights


def monomials(x: Symbolic, powers: Any) -> Symbolic:
    """Products of powers of the columns, a column for each row of ``powers``.

    >>> from empirisk.exports.tensor import entry
    >>> monomials(entry("x", np.array([[2.0, 3.0]])), np.array([[0, 0], [1, 1], [0, 2]])).value
    array([[1., 6., 9.]])
    """
    one, degree = x.shape[1], int(np.max(np.sum(powers, axis=1), initial=1))
    chosen = [np.repeat(np.arange(one), row) for row in np.asarray(powers, dtype=int)]
    places = np.array([[*columns, *[one] * (degree - len(columns))] for columns in chosen], dtype=int)
    padded = np.concatenate([x, x[:, [0]] * 0.0 + 1.0], axis=1)
    return reduce(np.multiply, (padded[:, column.tolist()] for column in places.T))


@write_answers.register
def _(step: Monomials, x: Symbolic) -> Answers:
    return {"transform": monomials(x, step.expansion_.powers_)}


@write_answers.register
def _(step: PolynomialKernel, x: Symbolic) -> Answers:
    return {"transform": monomials(x, step.expansion_.powers_) * step.weights_}


@write_answers.register
def _(step: Periodic, x: Symbolic) -> Answers:
    rates = np.arange(1, step.harmonics + 1) * (2 * np.pi / step.period)
    angles = x[:, :, None] * rates
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=3)
    return {"transform": waves.reshape(len(x), 2 * int(step.harmonics) * x.shape[1])}


@write_answers.register
def _(step: Nystrom, x: Symbolic) -> Answers:
    raw = block(step.kernel_, x, step.basis())
    return {"transform": raw if step.projection_ is None else raw @ np.asarray(step.projection_, dtype=np.float64)}


@write_answers.register
def _(step: RandomFourier, x: Symbolic) -> Answers:
    angles = x @ np.asarray(step.basis(), dtype=np.float64)
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    return {"transform": waves.reshape(len(x), step.width) * np.sqrt(2.0 / step.rank)}


@write_answers.register
def _(step: Logarithm, x: Symbolic) -> Answers:
    return {"transform": np.log1p(x) if step.plus_one else np.log(x)}


@write_answers.register
def _(step: BoxCox, x: Symbolic) -> Answers:
    powers = np.where(step.lambdas_ == 0, 1.0, step.lambdas_)
    plain = np.expm1(powers * np.log(x)) / powers
    return {"transform": (np.where(step.lambdas_ == 0, np.log(x), plain) - step.mean_) / step.scale_}
