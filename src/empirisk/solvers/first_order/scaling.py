"""The design as first-order methods see it: columns centred and measured, the intercept one more unknown."""

import numpy as np

from empirisk.linalg.design import Array, Design
from empirisk.problem import Point, Problem


class Scaling:
    """f = (A - 1 m') w + c, with m the weighted column means and c = b + m'w, and a size for every unknown.

    The unknowns are packed as x = (w, c). With a free intercept the centring changes nothing but the intercept, and
    takes away what makes columns alike. The size of a column is sum_i s_i (A_ij - m_j)^2, the curvature of
    sum_i s_i f_i^2 / 2: steps divided by the sizes do not depend on the units of the columns, and a separable penalty
    can be proximated with them.

    Attributes
    ----------
    sizes : array of d + 1, or (d + 1) x 1
        The size of every unknown; 1 for columns that are constant.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        columns, scale = problem.design.shape[1], problem.scale
        total = float(scale.sum())
        squares = problem.design.squared_columns(scale)
        self._means = problem.design.tdot(scale) / total if problem.intercept else np.zeros(columns)
        sizes = squares - total * self._means**2
        # What is left of a constant column is rounding.
        sizes = np.where(sizes > 1e-13 * squares, sizes, 1.0)
        blocks = problem.penalty.blocks(columns)
        if blocks is not None:
            # A prox that is not separable takes one step for all weights of a block: the largest size is safe.
            largest = np.zeros(blocks.max(initial=0) + 1)
            np.maximum.at(largest, blocks, sizes)
            sizes = largest[blocks]
        sizes = np.append(sizes, total)
        self.sizes: Array = sizes[:, None] if problem.classes else sizes

    def pack(self, point: Point) -> Array:
        """x of a point."""
        return self._joined(point.w, point.b + self._means @ point.w)

    @staticmethod
    def _joined(w: Array, c: Array | float) -> Array:
        return np.concatenate([w, np.reshape(c, (1, *w.shape[1:]))])

    def point(self, x: Array, u: Array | None = None) -> Point:
        """The point that x stands for."""
        w, b = x[:-1], x[-1] - self._means @ x[:-1]
        return Point(w, b if w.ndim == 2 else float(b), u)

    def predict(self, x: Array) -> Array:
        """f."""
        return self.problem.design.dot(x[:-1]) + (x[-1] - self._means @ x[:-1])

    def correlate(self, u: Array) -> Array:
        """The gradient of <u, f> in x."""
        sums = u.sum(axis=0)
        w = self.problem.design.tdot(u) - np.multiply.outer(self._means, sums)
        return self._joined(w, sums if self.problem.intercept else 0.0 * sums)

    def prox(self, x: Array, step: Array) -> Array:
        """The prox of the penalty on w, with one step size per unknown."""
        return np.concatenate([self.problem.penalty.prox(x[:-1], step[:-1]), x[-1:]])

    def square(self, x: Array) -> float:
        """The squared norm of x in the sizes."""
        return float((self.sizes * x * x).sum())

    def unsettled(self, x: Array, gradient: Array) -> float:
        """About how much the objective may still fall: the distance to stationarity, times x."""
        distances = self.problem.penalty.distance(x[:-1], -gradient[:-1])
        return float(np.vdot(distances, np.abs(x[:-1])) + np.abs(gradient[-1] * x[-1]).sum())


def typical_step(problem: Problem) -> float:
    """Polyak's step at the best constant: the mean loss over the mean squared slope, 1 where there is no loss."""

    def sums(weights: Array, y: Array, f: Array) -> Array:
        squares = problem.loss.derivative(y, f) ** 2
        squares = squares.sum(axis=1) if problem.classes else squares
        return np.array([weights @ problem.loss.value(y, f), weights @ squares])

    loss, slope = problem.rowspace.sum(sums, problem.weights, problem.y, problem.constant_predictions)
    return float(loss / slope) if loss > 0 and slope > 0 else 1.0


def largest_eigenvalue(design: Design, scale: Array, intercept: bool) -> float:
    """Of [A, 1]' diag(scale) [A, 1], by the power method."""
    w, b, largest = np.random.default_rng(0).standard_normal(design.shape[1]), 1.0, 0.0
    # The power method is far enough long before, unless the largest eigenvalues are equal, and then it has their size.
    for _ in range(200):
        norm = float(np.sqrt(w @ w + b * b))
        if norm == 0:
            break
        u = scale * (design.dot(w / norm) + (b / norm if intercept else 0.0))
        w, b = design.tdot(u), float(u.sum()) if intercept else 0.0
        before, largest = largest, float(np.sqrt(w @ w + b * b))
        # Callers allow for a few per cent.
        if largest - before <= 1e-4 * largest:
            break
    return largest
