"""Projections as graphs: principal components, and learned metrics."""

from typing import Any

import numpy as np

from empirisk.exports.families.kernels import block, diagonal
from empirisk.exports.families.maps import mapped, products
from empirisk.exports.registry import Answers, refused, write_answers
from empirisk.exports.tensor import Symbolic
from empirisk.kernels.items import as_matrix
from empirisk.projections.dictionary import Dictionary
from empirisk.projections.learned_kernel import LearnedKernel
from empirisk.projections.metric import LearnedMetric
from empirisk.projections.pca import PCA


@write_answers.register
def _(machine: PCA, x: Symbolic) -> Answers:
    if machine._implicit:
        scores = products(machine, x) - machine.mean_products_
    else:
        centred = mapped(machine, x) - np.asarray(machine.mean_, dtype=np.float64)
        scores = centred @ np.asarray(machine.components_, dtype=np.float64).T
    return {"transform": scores / machine._deviations() if machine.whiten else scores}


@block.register
def _(kernel: LearnedKernel, x: Symbolic, items: Any) -> Symbolic:
    return block(kernel._base(), x @ _root(kernel, x), items)


@diagonal.register
def _(kernel: LearnedKernel, x: Symbolic) -> Symbolic:
    return diagonal(kernel._base(), x @ _root(kernel, x))


def _root(kernel: LearnedKernel, x: Symbolic) -> np.ndarray:
    """The root of the metric: what the kernel makes of the unit vectors."""
    return kernel._projected(as_matrix(np.eye(x.shape[1]), False))


@write_answers.register
def _(machine: LearnedMetric, x: Symbolic) -> Answers:
    return {"transform": x @ np.asarray(machine.components_, dtype=np.float64).T}


@write_answers.register
def _(machine: Dictionary, x: Symbolic) -> Answers:
    raise refused(machine, "its codes are the end of an iteration for each row")
