"""Least squares by singular values or eigenvalues: the solution of minimum norm, at every C by one decomposition."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from empirisk.linalg import blocks
from empirisk.linalg.threads import interruptible_call
from empirisk.problem import Array, Point, Problem
from empirisk.settings import require
from empirisk.solvers.base import Watch

Made = TypeVar("Made")
EPSILON = float(np.finfo(float).eps)
#: Rounds of which all but the first are refinement: of half of the digits of what eigenvalues give, and of the rounding
#: of large weights that cancel.
ROUNDS = 3


@dataclass(frozen=True)
class Weighted:
    """M = diag(root) (A - 1 m') and t = root (y - level), so that the losses are C |t - M w|^2.

    ``root`` is the square root of the sample weights, and ``share`` has the weights of the means m and level: zeros
    without an intercept.
    """

    problem: Problem
    root: Array
    share: Array

    @classmethod
    def of(cls, problem: Problem) -> "Weighted":
        """The weighted and centred form of a problem of the squared loss."""
        share = problem.weights / problem.weights.sum() if problem.intercept else np.zeros(len(problem.y))
        return cls(problem, np.sqrt(problem.weights), share)

    @property
    def ridge(self) -> float:
        """The factor of |w|^2 beside |t - M w|^2."""
        return self.problem.penalty.l2 / (2.0 * self.problem.C)

    @property
    def level(self) -> float:
        """The mean of the targets."""
        return float(self.share @ self.problem.y)

    @property
    def target(self) -> Array:
        """The vector t."""
        return self.root * (self.problem.y - self.level)

    def dot(self, w: Array) -> Array:
        """M w."""
        f = self.problem.design.dot(w)
        return (self.root * (f - self.share @ f).T).T

    def tdot(self, r: Array) -> Array:
        """M' r."""
        u = self.root * r
        return self.problem.design.tdot(u - self.share * u.sum())

    def matrix(self) -> Array:
        """M itself."""
        design = self.problem.design
        centre, out = design.tdot(self.share), np.empty(design.shape, order="F")

        def fill(part: slice) -> None:
            out[:, part] = (design.columns(part) - centre[part]) * self.root[:, None]

        blocks.over_rows(fill, design.shape[1], 8 * design.shape[0])
        return out

    def gram(self) -> Array:
        """M' M."""
        design, weights = self.problem.design, self.problem.weights
        centre = design.tdot(self.share)
        return design.gram(weights) - weights.sum() * np.outer(centre, centre)

    def outer(self) -> Array:
        """M M', behind a kernel too."""
        products = self.problem.design.row_products
        centre = self.problem.design.tdot(self.share)
        middle = self.problem.design.dot(centre)
        level = middle - self.share @ middle

        def weighted(middle: Array, root: Array, rows: Array) -> Array:
            inner = rows - level
            inner -= middle[:, None]
            inner *= self.root
            inner *= root[:, None]
            return inner

        return blocks.rowwise(weighted, middle, self.root, products, row_bytes=8 * len(middle))

    def point(self, w: Array, u: Array | None = None) -> Point:
        """w with the intercept that goes with it."""
        return Point(w, self.level - float(self.share @ self.problem.design.dot(w)), u)


def by_singular_values(problem: Problem, watch: Watch, cutoff: float | None) -> tuple[Point, bool]:
    """By the singular values of M, and whether no other point is as good."""
    data = Weighted.of(problem)
    rows, columns = problem.design.shape
    # The matrix and both of its factors, in doubles.
    require(24 * rows * columns, f"The SVD of a {rows} x {columns} matrix", "use penalty='l2' or fewer columns")
    left, values, right = shared(problem, watch, "svd", lambda: singular_parts(data.matrix()))
    rank = int(np.sum(values > values.max(initial=0.0) * _limit(problem, cutoff)))
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    w = np.zeros(columns)
    for _ in range(ROUNDS):
        missing = left.T @ (data.target - data.dot(w))
        w = w + right.T @ ((values * missing - data.ridge * (right @ w)) / (values**2 + data.ridge))
    return data.point(w), rank == columns


def singular_parts(matrix: Array) -> tuple[Array, Array, Array]:
    """The singular value decomposition, by NumPy, which lets other threads run meanwhile."""
    return interruptible_call(lambda: np.linalg.svd(matrix, full_matrices=False), max(matrix.shape))


def by_eigenvalues(problem: Problem, watch: Watch, cutoff: float | None) -> Point:
    """By the eigenvalues of M M' where the rows are fewer or the features a kernel, else of M' M."""
    data, design = Weighted.of(problem), problem.design
    rows, columns = design.shape
    by_rows = design.implicit or rows < columns
    size = rows if by_rows else columns
    # The matrix, its eigenvectors, and room to find them, in doubles.
    require(24 * size**2, f"The eigenvectors of a {size} x {size} matrix", "use solver='auto' or fewer rows or columns")
    values, vectors = shared(problem, watch, "eigen", lambda: eigenpairs(data.outer() if by_rows else data.gram()))
    if data.ridge == 0 or cutoff is not None:
        # Eigenvalues are squares of singular values, of which rounding leaves half of the digits.
        kept = values > max(values[-1:].max(initial=0.0), 0.0) * max(_limit(problem, cutoff) ** 2, size * EPSILON)
        values, vectors = values[kept], vectors[:, kept]
    inverse = 1.0 / (np.maximum(values, 0.0) + data.ridge)
    unknowns = np.zeros(size)  # w, or alpha with w = M' alpha
    for _ in range(ROUNDS):
        w = data.tdot(unknowns) if by_rows else unknowns
        missing = data.target - data.dot(w)
        gradient = (missing if by_rows else data.tdot(missing)) - data.ridge * unknowns
        unknowns = unknowns + vectors @ (inverse * (vectors.T @ gradient))
        u = -problem.penalty.l2 * data.root * unknowns if by_rows and data.ridge else None
        point = data.point(data.tdot(unknowns) if by_rows else unknowns, u)
        if watch(point, objective=problem.primal(point)):
            break
    return point


def eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix, by NumPy, which lets other threads run meanwhile."""
    return interruptible_call(lambda: np.linalg.eigh(matrix), len(matrix))


def _limit(problem: Problem, cutoff: float | None) -> float:
    """The share of the largest singular value from which on others count."""
    return max(problem.design.shape) * EPSILON if cutoff is None else cutoff


def shared(problem: Problem, watch: Watch, name: str, make: Callable[[], Made], *settings: float) -> Made:
    """What is made of the rows and their weights, once for all problems that differ in their targets only.

    ``settings`` are the numbers besides, such as C, on which it depends.
    """
    key = (id(problem.design), id(problem.weights), problem.intercept, *settings)
    if watch.shared.get(name, (None, None))[0] != key:
        watch.shared[name] = key, make()
    return watch.shared[name][1]
