"""The group lasso: whole groups of columns are taken or left."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError
from empirisk.linalg.namespace import as_number, group_sums, namespace, root
from empirisk.penalties.base import Array, Penalty
from empirisk.penalties.norms import L1

#: Just inside of a boundary: the norm of a product with it must not round to the outside.
INSIDE = 1 - 1e-14


class GroupL1(Penalty):
    """R(w) = sum_g sqrt(size_g) |w_g|: the weights of a group are zero together, or none of them is.

    Of a joint loss, a group holds the weights of its columns for all classes. ``size_g`` counts the weights, so that
    large groups are not preferred. Groups of one column are the l1 penalty.

    Parameters
    ----------
    groups : int or array of labels, default 1
        The label of each column's group, one for every column of the features; or the number of neighbouring columns
        that form a group each.

    Examples
    --------
    >>> X, y = np.eye(4), np.array([3.0, 3.0, 0.1, 0.2])
    >>> penalty = er.penalties.GroupL1(["a", "a", "b", "b"])
    >>> er.Regressor("squared", penalty=penalty, fit_intercept=False).fit(X, y).coef_.round(3)
    array([2.5, 2.5, 0. , 0. ])
    """

    def __init__(self, groups: int | ArrayLike = 1):
        self.groups = groups

    def blocks(self, count: int) -> NDArray[np.intp]:
        """The number of each column's group."""
        labels = np.asarray(self.groups)
        if labels.ndim == 0:
            if not (isinstance(self.groups, Integral) and labels >= 1):
                raise EmpiriskError(f"groups={self.groups!r} of GroupL1 must be labels, or a number of columns >= 1.")
            return np.arange(count) // int(labels)
        if labels.shape != (count,):
            raise EmpiriskError(
                f"groups of GroupL1 has shape {labels.shape}, and the features have {count} columns; give one label "
                "for each column, or the number of neighbouring columns in a group."
            )
        return np.unique(labels, return_inverse=True)[1]

    def group_limits(self, width: tuple[int, ...]) -> Array:
        """The square roots of the sizes of the groups."""
        return np.sqrt(np.bincount(self.blocks(width[0])) * float(np.prod(width[1:])))

    def part(self, chosen: NDArray[np.intp], count: int) -> GroupL1:
        """The penalty of some of so many columns: all those of some groups."""
        return GroupL1(self.blocks(count)[chosen])

    def simplest(self, width: tuple[int, ...]) -> Penalty:
        """The l1 penalty where every group is a single weight: that has faster solvers."""
        single = len(width) == 1 and np.bincount(self.blocks(*width)).max(initial=1) == 1
        return L1() if single else self

    def _lengths(self, w: Array) -> Lengths:
        blocks = self.blocks(len(w))
        rows, sizes = w.reshape(len(w), -1), np.bincount(blocks)
        norms = root(group_sums(blocks, (rows * rows).sum(axis=1), len(sizes)))
        return Lengths(blocks, norms, np.sqrt(sizes * rows.shape[1]))

    def value(self, w: Array) -> float:
        """R(w)."""
        lengths = self._lengths(w)
        return as_number(lengths.norms @ lengths.limits)

    def prox(self, w: Array, step: Array | float) -> Array:
        """Every group shortened by step sqrt(size_g), to zero where it is no longer than that."""
        xp, lengths = namespace(w), self._lengths(w)
        steps = np.zeros(len(lengths.norms))
        steps[lengths.blocks] = np.broadcast_to(step, w.shape).reshape(len(w), -1)[:, 0] if np.ndim(step) else step
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = xp.where(lengths.norms > 0, xp.maximum(1 - steps * lengths.limits / lengths.norms, 0.0), 0.0)
        return lengths.spread(kept, w) * w + 0.0  # no negative zeros

    def conjugate(self, v: Array) -> float:
        """0 where |v_g| <= sqrt(size_g) in every group, else infinite."""
        lengths = self._lengths(v)
        return 0.0 if np.all(lengths.norms <= lengths.limits) else np.inf

    def feasible_share(self, v: Array) -> float:
        """The largest factor s <= 1 with s |v_g| <= sqrt(size_g) in every group."""
        lengths = self._lengths(v)
        if np.all(lengths.norms <= lengths.limits):
            return 1.0
        return float((lengths.limits / np.maximum(lengths.norms, np.finfo(float).tiny)).min()) * INSIDE

    def distance(self, w: Array, v: Array) -> Array:
        """How far each v_j is from the nearest subgradient of R at w."""
        here, there = self._lengths(w), self._lengths(v)
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(here.norms > 0, here.limits / here.norms, 0.0)
            excess = np.where(there.norms > 0, np.maximum(1 - there.limits / there.norms, 0.0), 0.0)
        at_zero = here.spread(here.norms == 0, w)
        return np.where(at_zero, np.abs(here.spread(excess, w) * v), np.abs(v - here.spread(pull, w) * w))

    def critical_C(self, v: Array) -> float:
        """The largest C at which w = 0 is optimal: that of the first group to wake up."""
        lengths = self._lengths(v)
        awake = lengths.norms > 0
        return float((lengths.limits[awake] / lengths.norms[awake]).min(initial=np.inf))


class Lengths(NamedTuple):
    """The group of every column, and the norm and the square root of the size of every group."""

    blocks: NDArray[np.intp]
    norms: Array
    limits: Array

    def spread(self, values: NDArray, like: Array) -> NDArray:
        """A number of every group, for each of its weights."""
        return values[self.blocks].reshape(-1, *[1] * (like.ndim - 1))
