"""Projections as graphs: principal components, and learned metrics."""

from typing import Any

import numpy as np

from empirisk.exports.families.kernels import prepared
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


@prepared.register
def _(kernel: LearnedKernel, x: Symbolic) -> Any:
    root = kernel._projected(as_matrix(np.eye(x.shape[1]), False))  # what it makes of the unit vectors
    return prepared(kernel._base(), x @ root)


@write_answers.register
def _(machine: LearnedMetric, x: Symbolic) -> Answers:
    return {"transform": x @ np.asarray(machine.components_, dtype=np.float64).T}


@write_answers.register
def _(machine: Dictionary, x: Symbolic) -> Answers:
    raise refused(machine, "its codes are the end of an iteration for each row")
