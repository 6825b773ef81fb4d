"""Leaves of a learned kernel: a balanced tree of the rows, a machine with a metric of its own in each leaf, joined."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from empirisk import state
from empirisk.certificate import Certificate, combine
from empirisk.errors import EmpiriskError
from empirisk.fits.fit import Fit, SolverRun
from empirisk.fits.passes import merged
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import Parts, as_matrix
from empirisk.kernels.tiles import result
from empirisk.linalg.blocks import slices
from empirisk.linalg.hashes import row_hashes
from empirisk.maps.implicit import GramDesign, in_double
from empirisk.problem import Array, Point, Problem, on_design
from empirisk.projections.learned_kernel_rounds import next_root, on_fewer_rows, source_of
from empirisk.stop import Deadline

if TYPE_CHECKING:
    from empirisk.projections.learned_kernel import LearnedKernel

#: The rows of a node, and their shares in it; its direction, and where its sides begin and end to be joined.
Node = tuple[NDArray[np.intp], Array]
Split = tuple[Array, float, float]

#: The share of the rows of a node that both of its sides learn from: so many on either side of the split are joined.
OVERLAP = 0.1
#: Rows from which the direction of a split is learned: one fit of them takes about a second.
SPLIT_ROWS = 4096
#: The share of the time in which the tree is grown.
SPLIT_SHARE = 0.2
#: A side with less than this share of the rows of a node makes no split, and another direction is looked at.
LEAST_SIDE = 0.25
#: Rows whose shares of all leaves are made at a time.
ROWS = 8192
#: The least width in which sides are joined, as a share of the spread of the rows.
NARROW = 1e-9
#: Rows that a leaf has to a smaller share teach it nothing.
NEGLIGIBLE = 1e-6


class JoinedLeaves(Kernel):
    """The kernel sum_l p_l(x) p_l(z) k_l(x, z) of the leaves l of a tree, where p_l(x) says how far x is in leaf l.

    At a node with direction v a row goes left where <v, x> is below ``starts_``, right where it is above ``ends_``,
    and in between to both sides, to shares that add up to one and change smoothly. The share p_l(x) of a leaf is the
    product of those on the way to it. A row with one more column than the tree knows is whole in the leaf whose number
    that is: the rows that a leaf has learned from. So f(x) = sum_l p_l(x) f_l(x), with f_l the function of leaf l.

    Attributes
    ----------
    directions_ : array, nodes x columns
        The direction of each node, level by level from the root.
    starts_, ends_ : arrays
        Where the sides of each node begin and end to be joined.
    members_ : list of LearnedKernel
        The kernel of each leaf.
    """

    _state = state.State(
        lambda its: _wrong_tree(**its),
        directions_=state.array("f8", "nodes", "columns"),
        starts_=state.array("f8", "nodes"),
        ends_=state.array("f8", "nodes"),
        members_=state.several(state.part(Kernel, has="with_root", columns="columns"), "leaves"),
    )

    directions_: Array
    starts_: Array
    ends_: Array
    members_: list[LearnedKernel]

    def shares(self, X: Any) -> Any:
        """p_l(x) of every row and leaf; they add up to one."""
        found, node = 0.0 * X[:, [0]] + 1.0, 0
        while node < len(self.directions_):
            width = found.shape[1]
            found = _divided(found, X, *self._level(slice(node, node + width)))
            node += width
        return found

    def _level(self, nodes: slice) -> tuple[Array, Array, Array]:
        return self.directions_[nodes], self.starts_[nodes], self.ends_[nodes]

    def prepare(self, X):
        X = as_matrix(X, False)
        columns = self.directions_.shape[1]
        if X.shape[1] == columns + 1:
            return Parts(X[:, :-1], self._whole(X[:, -1]))
        if X.shape[1] != columns:
            raise EmpiriskError(f"X has {X.shape[1]} columns, and the tree was learned from {columns}.")
        parts = [sparse.csr_array(self.shares(X[rows])) for rows in slices(len(X), ROWS)]
        return Parts(X, sparse.vstack(parts, "csr") if parts else sparse.csr_array((0, self.leaves)))

    def _whole(self, numbers: NDArray) -> sparse.csr_array:
        """Rows that are in one leaf each."""
        if not self._are_leaves(numbers):
            raise EmpiriskError(f"the last column of X must be the numbers of leaves, 0 to {self.leaves - 1}.")
        ends = np.arange(len(numbers) + 1)
        return sparse.csr_array((np.ones(len(numbers)), numbers.astype(np.int64), ends), (len(numbers), self.leaves))

    def _are_leaves(self, numbers: NDArray) -> bool:
        return bool(np.isin(numbers, np.arange(self.leaves)).all())

    def wrong_rows(self, rows):
        known = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == self.directions_.shape[1] + 1
        return None if known and self._are_leaves(rows[:, -1]) else "the rows kept are in no leaves of the tree"

    @property
    def leaves(self) -> int:
        """How many there are."""
        return len(self.members_)

    @property
    def metric_(self) -> Array:
        """The mean of the metrics of the leaves, which have about as many rows each."""
        return np.mean([member.metric_ for member in self.members_], axis=0)

    def between(self, A, B=None, out=None):
        X, shares = A
        Z, others = A if B is None else B
        block = result(len(X), len(Z), X.dtype, out)
        block[...] = 0.0
        shares, others = (each.tocsc() for each in (shares, others))
        for leaf in np.flatnonzero((np.diff(shares.indptr) > 0) & (np.diff(others.indptr) > 0)):
            (rows, left), (columns, right) = (_column(each, leaf) for each in (shares, others))
            member = self.members_[leaf]
            items = member.prepare(X[rows])
            part = member.between(items, None if B is None else member.prepare(Z[columns]))
            block[np.ix_(rows, columns)] += np.outer(left, right).astype(block.dtype, copy=False) * part
        return block

    def diagonals(self, A):
        return self._diagonal(A, "diagonals")

    def term_diagonals(self, A):
        return self._diagonal(A, "term_diagonals")

    def _diagonal(self, A, method: str) -> NDArray:
        X, shares = A
        total, shares = np.zeros(len(X), X.dtype), shares.tocsc()
        for leaf, member in enumerate(self.members_):
            rows, share = _column(shares, leaf)
            total[rows] += (share**2).astype(X.dtype) * getattr(member, method)(member.prepare(X[rows]))
        return total


def _wrong_tree(directions_: NDArray, starts_: NDArray, ends_: NDArray, members_: list) -> str | None:
    """What a loaded tree has got wrong: it has two sides at each node, and all leaves are as deep."""
    leaves = len(members_)
    whole = leaves > 1 and leaves & (leaves - 1) == 0 and len(directions_) == leaves - 1
    if not whole:
        return "the leaves do not go with the nodes"
    return None if np.all(starts_ < ends_) else "ends_ is not above starts_"


def _column(shares: sparse.csc_array, leaf: Any) -> tuple[NDArray, Array]:
    """The rows in a leaf, and their shares."""
    inside = slice(shares.indptr[leaf], shares.indptr[leaf + 1])
    return shares.indices[inside], shares.data[inside]


def _divided(shares: Any, X: Any, directions: Array, starts: Array, ends: Array) -> Any:
    """The shares of the sides of all nodes of a level, from those of the nodes."""
    places = X.astype(np.float64, copy=False) @ directions.T
    joined = np.clip((places - starts) / (ends - starts), 0.0, 1.0)
    right = joined * joined * (3.0 - 2.0 * joined)
    return np.stack([shares * (1.0 - right), shares * right], axis=2).reshape(len(X), 2 * len(directions))


def _sides(X: NDArray, node: Node, split: Split) -> list[Node]:
    """The rows of both sides of a node that are in them to more than a negligible share."""
    inside, share = node
    both = _divided(share[:, None], X[inside], *(np.array([each]) for each in split))
    return [(inside[side > NEGLIGIBLE], side[side > NEGLIGIBLE]) for side in both.T]


@dataclass
class LeafFits:
    """The problems of a machine in the leaves of a tree: it is grown, a machine is fitted in each, and all are joined.

    A leaf may lack a class, and then no finite intercept would be the best. So its machine has none: the constant is a
    feature like the others, k + 1 is its kernel, and targets are taken from their best constant first, which stays the
    intercept of the whole. Rows that several leaves share count in each as far as they are in it. By convexity the
    loss of the joined f is then at most the sum of those of the leaves.

    Attributes
    ----------
    given : LearnedKernel
        Fitted on all rows, with the metric to begin with.
    problems : list of Problem
        What the machine minimises on it.
    run : SolverRun
        Solves problems within the limits of the machine.
    """

    given: LearnedKernel
    problems: list[Problem]
    run: SolverRun

    def __post_init__(self):
        # Equal rows as one: a row of weight 2 is the row twice.
        self.problems = merged(self.problems, always=True)
        self.X = source_of(self.problems[0])
        self.used = np.unique(np.concatenate([problem.places for problem in self.problems]))
        self.kernel = self.given.with_constant() if self.problems[0].intercept else clone(self.given)
        self.levels = [_level(problem) for problem in self.problems]
        self.run = replace(self.run, progress=None)

    def learn(self) -> tuple[JoinedLeaves, list[Problem], list[Fit]]:
        """The joined kernel, the problems on it and their fits."""
        tree, nodes = self._grown()
        rest, leaves = Deadline(self.run.deadline.left()), []
        for number, (inside, share) in enumerate(nodes):
            left = rest.left()
            own = Deadline(None if left is None else left / (len(nodes) - number))
            leaf = self._leaf(self.used[inside], share)
            ended = rest.reason if rest() and number else ""
            leaves.append(leaf.fitted(replace(self.run, deadline=own), ended))
        tree.members_ = [leaf.kernel for leaf in leaves]
        return tree, *self._joined(tree, leaves)

    # --- the tree -----------------------------------------------------------------------------------------------------

    def _grown(self) -> tuple[JoinedLeaves, list[Node]]:
        """The tree, as deep as the leaves ask for, without their kernels; and the rows of the leaves."""
        X, splits = self.X[self.used], []
        different = np.zeros(len(X), dtype=bool)  # the sides are balanced by rows that differ
        different[np.unique(row_hashes(X), return_index=True)[1]] = True
        nodes = [(np.arange(len(X)), np.ones(len(X)))]
        for _ in range(depth(int(np.count_nonzero(different)), self.given.leaf_size)):
            level = [self._split(inside, different) for inside, _ in nodes]
            nodes = [side for node, split in zip(nodes, level, strict=True) for side in _sides(X, node, split)]
            splits += level
        tree = JoinedLeaves()
        tree.directions_, tree.starts_, tree.ends_ = map(np.array, zip(*splits, strict=True))
        return tree, nodes

    def _split(self, inside: NDArray, different: NDArray[np.bool_]) -> Split:
        """The direction at which a node is split, and where its sides begin and end to be joined."""
        X = self.X[self.used[inside[different[inside]]]]
        for direction in self._directions(self.used[inside]) if len(X) else ():
            places = X @ direction
            start, end = np.quantile(places, [(1 - OVERLAP) / 2, (1 + OVERLAP) / 2])
            end = max(end, start + NARROW * np.ptp(places))
            if min(np.mean(places < end), np.mean(places > start)) >= LEAST_SIDE:
                return direction, float(start), float(end)
        return np.zeros(self.X.shape[1]), 0.0, 1.0  # rows that are all equal stay together, on the left

    def _directions(self, rows: NDArray) -> Array:
        """Directions along which a machine on some of the rows changes, the steepest first."""
        leaf, deadline = self._leaf(rows, np.ones(len(rows))), self.run.deadline.share(SPLIT_SHARE)
        asked, root = [problem for problem in leaf.problems if len(problem.y)], None
        if asked and not deadline():
            sample = on_fewer_rows(asked, min(SPLIT_ROWS, self.given.leaf_size))
            fits = replace(self.run, deadline=deadline)(sample)
            root = next_root(leaf.kernel, sample, [fit.point for fit in fits])
        if root is None:  # f is constant, or there is no time: along which the rows are spread
            centred = self.X[rows] - self.X[rows].mean(axis=0)
            root = centred.T @ centred
        return np.linalg.eigh(np.diag(root) if root.ndim == 1 else root)[1].T[::-1]

    # --- the leaves ---------------------------------------------------------------------------------------------------

    def _leaf(self, rows: NDArray, share: Array) -> Leaf:
        """The problems on some of the rows, behind a kernel that has yet to learn its metric."""
        where = np.full(len(self.X), -1)
        where[rows] = np.arange(len(rows))
        parts, shared = [], {}
        for problem, level in zip(self.problems, self.levels, strict=True):
            if id(problem.design) not in shared:
                inside = np.flatnonzero(where[problem.places] >= 0)
                local = where[problem.places][inside]
                shared[id(problem.design)] = inside, local, problem.weights[inside] * share[local]
            inside, local, weights = shared[id(problem.design)]
            y = problem.y[inside] - level if problem.loss.residual_form else problem.y[inside]
            parts.append(replace(problem, y=y, weights=weights, rows=local, intercept=False))
        X = self.X[rows]
        kernel = clone(self.kernel).fit(X if len(X) else self.X[:1])
        return Leaf(rows, kernel, on_design(GramDesign(kernel, kernel.prepare(X), X), parts))

    def _joined(self, tree: JoinedLeaves, leaves: list[FittedLeaf]) -> tuple[list[Problem], list[Fit]]:
        """The problems on the rows of all leaves, and the fits of the leaves as one."""
        starts = np.cumsum([0, *(len(leaf.rows) for leaf in leaves)])
        origins = np.concatenate([leaf.rows for leaf in leaves])
        rows = cast(GramDesign, self.problems[0].design).root.source[origins]  # in the precision of the user
        numbers = np.repeat(np.arange(len(leaves)), np.diff(starts)).astype(rows.dtype)
        source = np.column_stack([rows, numbers])
        whole = GramDesign(tree, tree.prepare(in_double(source)), source)
        whole.origins = origins
        problems, fits = [], []
        for k, (problem, level) in enumerate(zip(self.problems, self.levels, strict=True)):
            places, y, weights = map(np.concatenate, zip(*(leaf.parts[k] for leaf in leaves), strict=True))
            rows = places + np.repeat(starts[:-1], [len(leaf.parts[k][0]) for leaf in leaves])
            y = y + level if problem.loss.residual_form else y
            problems.append(replace(problem, design=whole.rows(rows), y=y, weights=weights, rows=rows))
            fits.append(_one_fit([leaf.fits[k] for leaf in leaves], level))
        return problems, fits


class FittedLeaf(NamedTuple):
    """The rows of a leaf, its kernel, and of each problem the places among them, the targets, the weights, the fit.

    No problem is kept: its design may hold a matrix.
    """

    rows: NDArray[np.intp]
    kernel: LearnedKernel
    parts: list[tuple[NDArray, NDArray, NDArray]]
    fits: list[Fit]


@dataclass
class Leaf:
    """Rows that learn together: where they stand among all, their kernel, and the problems on them."""

    rows: NDArray[np.intp]
    kernel: LearnedKernel
    problems: list[Problem]

    def fitted(self, run: SolverRun, ended: str) -> FittedLeaf:
        """The leaf with its metric learned, and a machine for each problem; with none where the work has ``ended``."""
        asked = [problem for problem in self.problems if len(problem.y)]
        if asked and not ended:
            found = iter(self.kernel.learn_with(asked, run)[1])
            fits = [next(found) if len(problem.y) else _unbegun(problem, "") for problem in self.problems]
        else:
            self.kernel.end(ended)
            fits = [_unbegun(problem, ended) for problem in self.problems]
        parts = [(problem.places, problem.y, problem.weights) for problem in self.problems]
        return FittedLeaf(self.rows, self.kernel, parts, fits)


def _level(problem: Problem) -> Array | float:
    """The intercept of the whole: the best constant, where targets can be taken from it."""
    if problem.loss.residual_form:
        return problem.origin().b
    return np.zeros(problem.classes) if problem.classes else 0.0


def _unbegun(problem: Problem, ended: str) -> Fit:
    """The fit of no rows, or of rows for which there was no time."""
    value = math.inf if len(problem.y) else 0.0
    nothing = Certificate(value, -value, value, value, status=ended, solver="none", reason="no time was left")
    return Fit(problem.origin(), nothing, {})


def _one_fit(fits: list[Fit], level: Array | float) -> Fit:
    """The fits of all leaves as that of the joined problem: their objectives and bounds add up."""
    together = combine([fit.certificate for fit in fits if len(fit.point.w)])
    names = {name for fit in fits for name in fit.history}
    history = {name: [value for fit in fits for value in fit.history.get(name, [])] for name in sorted(names)}
    duals = [fit.point.u for fit in fits if len(fit.point.w)]
    known = [u for u in duals if u is not None]
    u = np.concatenate(known) if len(known) == len(duals) else None
    point = Point(np.concatenate([fit.point.w for fit in fits]), level, u)
    return Fit(point, replace(together, reason=f"{len(fits)} leaves; {together.reason}"), history)


def exceeds(problems: list[Problem], most: int | None) -> bool:
    """Whether the problems have more different rows than a leaf may have."""
    if most is None:
        return False
    used = np.unique(np.concatenate([problem.places for problem in problems]))
    return len(used) > most and len(np.unique(row_hashes(source_of(problems[0])[used]))) > most


def depth(rows: int, most: int) -> int:
    """Levels of nodes until at most so many rows are in a leaf.

    >>> depth(1000, 1000), depth(1000, 999), depth(36_000, 10_000)
    (0, 1, 3)
    """
    levels = 0
    while rows > most:
        rows, levels = round(rows * (1 + OVERLAP) / 2), levels + 1
    return levels
