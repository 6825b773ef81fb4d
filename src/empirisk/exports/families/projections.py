"""Projections as graphs: principal components, and learned metrics."""

from typing import Any

import numpy as np

from empirisk.exports.families.kernels import block, prepared
from empirisk.exports.families.maps import mapped, products
from empirisk.exports.registry import Answers, refused, write_answers
from empirisk.exports.tensor import Symbolic
from empirisk.kernels.items import as_matrix
from empirisk.projections.dictionary import Dictionary
from empirisk.projections.learned_kernel import LearnedKernel
from empirisk.projections.learned_kernel_leaves import JoinedLeaves
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


def _projected(kernel: LearnedKernel, x: Symbolic) -> Symbolic:
    return x @ kernel._projected(as_matrix(np.eye(x.shape[1]), False))  # what it makes of the unit vectors


@prepared.register
def _(kernel: LearnedKernel, x: Symbolic) -> Any:
    return prepared(kernel._base(), _projected(kernel, x))


@block.register
def _(kernel: LearnedKernel, x: Symbolic, items: Any) -> Symbolic:
    return block(kernel._base(), _projected(kernel, x), items)


@block.register
def _(kernel: JoinedLeaves, x: Symbolic, items: Any) -> Symbolic:
    (rows, whole), shares = items, kernel.shares(x)
    found, places = [], []
    for leaf, member in enumerate(kernel.members_):
        here = np.flatnonzero(whole.indices == leaf)
        if len(here):
            found.append(shares[:, [leaf]] * block(member, x, member.prepare(rows[here])))
            places.append(here)
    return np.concatenate(found, axis=1)[:, np.argsort(np.concatenate(places)).tolist()]


@write_answers.register
def _(machine: LearnedMetric, x: Symbolic) -> Answers:
    return {"transform": x @ np.asarray(machine.components_, dtype=np.float64).T}


@write_answers.register
def _(machine: Dictionary, x: Symbolic) -> Answers:
    raise refused(machine, "its codes are the end of an iteration for each row")
