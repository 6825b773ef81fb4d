"""The equation as an object: minimise R(w) + C sum_i c_i loss(y_i, <w, a_i> + b), and its dual."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from empirisk.lazy import lazy
from empirisk.linalg import blocks
from empirisk.linalg.design import Array, Design
from empirisk.losses.base import Loss
from empirisk.penalties.base import Penalty

#: A perfect fit has the objective zero: gaps are then compared with this share of that of the best constant.
FLOOR = 1e-6
#: With a tolerance of 1e-6, ten units of the rounding of all targets are no gap.
ROUNDED = 1e7
#: The square of a smaller number is none.
VANISHING = 1e-150
#: Operations of a factorisation that takes less than a millisecond.
CHEAP = 1_000_000
#: A few units in the last place.
STORED = 16 * np.finfo(float).eps
#: What keeps a quotient finite.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Point:
    """Weights w (d, or d x K for joint losses), intercept b, and a dual point u (n, or n x K) if a solver has one."""

    w: Array
    b: Array | float = 0.0
    u: Array | None = None


@dataclass(frozen=True)
class Problem:
    """One convex problem with everything a solver needs to know.

    The primal is  P(w, b) = R(w) + sum_i s_i loss(y_i, f_i)  with f = A w + b and s = C * weights. Its dual is

        D(u) = -R*(-A'u) - sum_i s_i loss*(y_i, u_i / s_i),   sum_i u_i = 0 with an intercept,

    and u_i = s_i loss'(y_i, f_i) at the optimum.

    Parameters
    ----------
    loss, penalty : Loss, Penalty
        The parts of the equation.
    C : float
        The scale of the loss sum.
    design : Design
        The matrix A of mapped samples.
    y : array
        Targets: labels -1/+1, numbers, or class codes 0..K-1 for joint losses.
    weights : array
        Sample weights, positive.
    intercept : bool
        Whether b is free; otherwise it is 0.
    classes : int
        Number of classes K of a joint loss, else 0.
    tilt : float
        A cost of the intercept, tilt * b, that P has as well; the balance is then sum_i u_i = -tilt.
    rows : array, optional
        Where the samples stand in the user's data, if not all take part.
    remark : str
        What was done to the problem on its way to a solver; the certificate repeats it.
    """

    loss: Loss
    penalty: Penalty
    C: float
    design: Design
    y: Array
    weights: Array
    intercept: bool = True
    classes: int = 0
    tilt: float = 0.0
    rows: NDArray[np.intp] | None = None
    remark: str = ""

    @lazy
    def scale(self) -> Array:
        """s = C * weights."""
        return self.C * self.weights

    @lazy
    def norm(self) -> Penalty:
        """The penalty in the coordinates of the design's w."""
        return self.design.norm_of(self.penalty)

    @property
    def width(self) -> tuple[int, ...]:
        """Shape of w."""
        columns = self.design.shape[1]
        return (columns, self.classes) if self.classes else (columns,)

    @property
    def places(self) -> NDArray[np.intp]:
        """Where the samples stand in the user's data."""
        return np.arange(len(self.y)) if self.rows is None else self.rows

    def with_C(self, C: float) -> "Problem":
        """The same problem at another C."""
        return replace(self, C=C)

    def part(self, chosen: NDArray | slice, trained: NDArray | None = None) -> "Problem":
        """The problem of some of the samples; with ``trained``, to be predicted with weights found on those samples."""
        design = self.design.rows(chosen) if trained is None else self.design.seen_from(chosen, trained)
        return replace(self, design=design, y=self.y[chosen], weights=self.weights[chosen], rows=self.places[chosen])

    def origin(self) -> Point:
        """w = 0 and the best intercept for it."""
        return Point(np.zeros(self.width), copy(self._best_constant))

    @lazy
    def _best_constant(self) -> float | Array:
        if not self.intercept:
            return np.zeros(self.classes) if self.classes else 0.0
        if not self.classes:
            return self.loss.best_constant(self.y, self.weights)
        # A class without rows is a class all the same: a row of no weight names it.
        named = np.append(self.y, np.arange(self.classes)), np.append(self.weights, np.zeros(self.classes))
        return self.loss.best_constant(*named)

    @lazy
    def origin_value(self) -> float:
        """The objective of the best constant prediction."""
        return self.loss_sum(self.constant_predictions)

    @property
    def constant_predictions(self) -> Array:
        """The predictions of the best constant."""
        return np.broadcast_to(np.asarray(self.origin().b, dtype=float), (len(self.y), *self.width[1:]))

    @property
    def _zero_predictions(self) -> Array:
        return np.broadcast_to(0.0, (len(self.y), *self.width[1:]))

    @lazy
    def least_squares(self) -> Array:
        """The sizes that least squares would give to w and, in one more row, to b: large where columns nearly depend.

        The rows count as they are weighed, or as if all had the same size: a huge one hides what the others ask for.
        Zeros where they would not be cheap.
        """
        rows, columns = self.design.shape
        if self.design.implicit or rows * columns**2 > CHEAP:
            return np.zeros((columns + 1, *self.width[1:]))
        matrix = self.design.dot(np.eye(columns))
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        matrix = np.hstack([matrix, np.full((rows, 1), float(self.intercept))])
        targets = np.eye(self.classes)[self.y.astype(int)] if self.classes else self.y
        found = []
        for roots in np.sqrt(self.weights / self.weights.max()), 1 / np.where(largest > VANISHING, largest, 1.0):
            scaled = roots[:, None] * matrix
            sizes = np.abs(scaled).max(axis=0)
            sizes[sizes == 0] = 1.0
            weights = np.linalg.lstsq(scaled / sizes, (targets.T * roots).T, rcond=None)[0]
            found.append(np.abs((weights.T / sizes).T))
        return np.maximum(*found)

    @lazy
    def _floor(self) -> float:
        """1e-6 of the objective of the best constant; of that of zero where the best constant fits but for rounding.

        Where targets lie far from zero, that is less than their rounding costs a loss with a corner at the target: no
        gap is then compared with less than 1e7 times that.
        """
        constant = self.intercept and np.ptp(self.y) <= STORED * np.abs(self.y).max()
        floor = FLOOR * max(self.origin_value, self.loss_sum(self._zero_predictions) if constant else 0.0)
        if self.loss.residual_form and self.loss.corners:
            units = np.finfo(float).eps * np.abs(self.y)
            below, above = (np.abs(self.loss.derivative(self.y, self.y + end * units)) for end in (-1, 1))
            floor = max(floor, ROUNDED * float(self.scale @ (np.maximum(below, above) * units)))
        return floor if math.isfinite(floor) else 0.0

    def magnitude(self, primal: float, dual: float = 0.0) -> float:
        """What gaps are compared with: the objective, but no less than a share of what is reached without w."""
        return max(abs(primal), abs(dual) if math.isfinite(dual) else 0.0, self._floor, TINY)

    def constants(self, point: Point) -> Array | float:
        """The intercept for rows that are not shifted, which is what a machine stores."""
        return point.b if self.design.shift is None else point.b - self.design.shift @ point.w

    def as_stored(self, point: Point) -> Point:
        """The point that the stored w and intercept stand for: far from the origin the intercept is rounded more.

        The same point where that is no more than the rounding of predictions as large as the targets.
        """
        if self.design.shift is None:
            return point
        exact = self.constants(point) + self.design.shift.astype(np.longdouble) @ point.w.astype(np.longdouble)
        b = exact.astype(float)
        rounding = np.abs(b - point.b).max() / STORED
        if rounding <= np.abs(b).max() or rounding <= (1.0 if self.classes else np.abs(self.y).max()):
            return point
        return replace(point, b=b if self.classes else float(b))

    def predict(self, point: Point) -> Array:
        """f = A w + b."""
        return self.design.predict(point.w, point.b)

    def loss_sum(self, f: Array) -> float:
        """sum_i s_i loss(y_i, f_i)."""

        def run(rows: slice) -> float:
            return float(self.scale[rows] @ self.loss.value(self.y[rows], f[rows]))

        return blocks.sum_of_rows(run, len(f), self._entry_bytes)

    def curvatures(self, f: Array) -> Array:
        """s_i loss''(y_i, f_i), for a loss of one output."""
        return self._scaled(self.loss.curvature, f)

    def _scaled(self, function: Callable[[Array, Array], Array], f: Array) -> Array:
        """s_i function(y_i, f_i)."""
        arrays = (self._per_sample(self.scale), self.y, f)
        return blocks.rowwise(lambda s, y, f: s * function(y, f), *arrays, row_bytes=self._entry_bytes)

    @property
    def _entry_bytes(self) -> int:
        return blocks.ENTRY_BYTES * max(self.classes, 1)

    def primal(self, point: Point, f: Array | None = None) -> float:
        """P at the point; ``f`` saves the product if it is known."""
        return self.penalty_sum(point) + self.loss_sum(self.predict(point) if f is None else f)

    def penalty_sum(self, point: Point) -> float:
        """R(w), and the cost of the intercept if there is one."""
        return self.norm.value(point.w) + (self.tilt * float(point.b) if self.tilt else 0.0)

    def through(self, w: Array, b: float) -> tuple[Array, Array, Array, float]:
        """f = A w + b, the slopes u at f, A'u and the sum of losses, for a loss of one output: data is read once."""
        compiled = self.loss.compiled_pass
        found = None if compiled is None else self.design.one_pass(compiled, w, b, self.y, self.scale)
        if found is not None:
            return found
        f, u, correlations = self.design.through(
            w, b, lambda rows, f: self.scale[rows] * self.loss.derivative(self.y[rows], f)
        )
        return f, u, correlations, self.loss_sum(f)

    def slopes(self, f: Array) -> Array:
        """u_i = s_i loss'(y_i, f_i): the dual point that f suggests."""
        return self._scaled(self.loss.derivative, f)

    def bounds(self) -> Array:
        """The smallest and the largest u of every row."""
        bounds = np.empty((2, len(self.y)))

        def run(rows: slice) -> None:
            np.multiply(self.scale[rows], self.loss.domain(self.y[rows]), out=bounds[:, rows])

        blocks.over_rows(run, len(self.y), blocks.ENTRY_BYTES)
        return bounds

    def conjugate_sum(self, u: Array) -> float:
        """sum_i s_i loss*(y_i, u_i / s_i)."""

        def run(rows: slice) -> float:
            scale = self.scale[rows]
            return float(scale @ self.loss.conjugate(self.y[rows], u[rows] / self._per_sample(scale)))

        return blocks.sum_of_rows(run, len(u), self._entry_bytes)

    @lazy
    def conjugates_at_zero(self) -> float:
        """sum_i s_i loss*(y_i, 0): minus the smallest losses there can be."""
        return self.conjugate_sum(self._zero_predictions)

    def dual(self, u: Array, correlations: Array | None = None) -> float:
        """D at a feasible u; ``correlations`` = A'u saves the product if it is known."""
        v = self.design.tdot(u) if correlations is None else correlations
        return -self.norm.conjugate(-v) - self.conjugate_sum(u)

    def _per_sample(self, values: Array) -> Array:
        return values[:, None] if self.classes else values

    @lazy
    def critical_C(self) -> float:
        """The largest C at which w = 0 is optimal for a smooth loss (0 without l1); with corners, about it."""
        slopes = self._per_sample(self.weights) * self.loss.derivative(self.y, np.array(self.constant_predictions))
        return self.penalty.critical_C(self.design.tdot(slopes))
