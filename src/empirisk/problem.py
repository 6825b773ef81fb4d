"""The equation as an object: minimise R(w) + C sum_i c_i loss(y_i, <w, a_i> + b), and its dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from empirisk.lazy import lazy
from empirisk.linalg.design import Array, Design
from empirisk.linalg.namespace import epsilon, namespace
from empirisk.linalg.rowspace import RowSpace, RowVector
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
    """Weights w (d, or d x K for joint losses), intercept b, and a dual point u (n, or n x K) if a solver has one.

    Examples
    --------
    >>> (problem,) = er.Ridge(C=1.0).problems([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> zero = er.Point(np.zeros(1), b=1.0)
    >>> problem.primal(zero)
    2.0
    """

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
        Where the samples stand in the user's data, if not all take part; of rows that are not in memory a mask.
    remark : str
        What was done to the problem on its way to a solver; the certificate repeats it.

    Examples
    --------
    >>> (problem,) = er.SVM(C=2.0).problems([[0.0], [1.0], [3.0]], ["no", "no", "yes"])
    >>> problem.loss, problem.penalty, problem.C, problem.y
    (Hinge(), L2(), 2.0, array([-1., -1.,  1.]))
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

    @property
    def rowspace(self) -> RowSpace:
        """Where y, the weights, predictions and dual variables lie, and who sums over them."""
        return self.design.rowspace

    @lazy
    def scale(self) -> RowVector:
        """s = C * weights."""
        return self.rowspace.map(lambda weights: self.C * weights, self.weights)

    @lazy
    def norm(self) -> Penalty:
        """The penalty in the coordinates of the design's w."""
        return self.design.penalty_in_coordinates(self.penalty)

    @property
    def width(self) -> tuple[int, ...]:
        """Shape of w."""
        columns = self.design.shape[1]
        return (columns, self.classes) if self.classes else (columns,)

    @property
    def places(self) -> NDArray[np.intp]:
        """Where the samples stand in the user's data."""
        return np.arange(self.design.shape[0]) if self.rows is None else self.rows

    def with_C(self, C: float) -> Problem:
        """The same problem at another C."""
        return replace(self, C=C)

    def part(self, chosen: NDArray | slice, trained: NDArray | None = None) -> Problem:
        """The problem of some of the samples; with ``trained``, to be predicted with weights found on those samples."""
        design = self.design.rows(chosen) if trained is None else self.design.cross_design(chosen, trained)
        y, weights = (self.rowspace.take(vector, chosen) for vector in (self.y, self.weights))
        places = self.places[chosen] if self.design.in_memory else None
        return replace(self, design=design, y=y, weights=weights, rows=places)

    def origin(self) -> Point:
        """w = 0 and the best intercept for it."""
        return Point(np.zeros(self.width), copy(self._best_constant))

    @lazy
    def _best_constant(self) -> float | Array:
        if not self.intercept:
            return np.zeros(self.classes) if self.classes else 0.0
        if not self.classes:
            return self.rowspace.best_constant(self.loss, self.y, self.weights)
        # One row for each class, those without rows too, with all its weight.
        return self.loss.best_constant(np.arange(self.classes), self.class_weights)

    @lazy
    def class_weights(self) -> Array:
        """The weight of each class of a joint loss."""
        return self.rowspace.class_weights(self.y, self.weights, self.classes)

    @lazy
    def origin_value(self) -> float:
        """The objective of the best constant prediction."""
        return self.loss_sum(self.constant_predictions)

    @property
    def constant_predictions(self) -> RowVector:
        """The predictions of the best constant."""
        return self.rowspace.constant(self.origin().b)

    @property
    def _zero_predictions(self) -> RowVector:
        return self.rowspace.constant(np.zeros(self.width[1:]))

    @lazy
    def least_squares(self) -> Array:
        """The sizes that least squares would give to w and, in one more row, to b: large where columns nearly depend.

        The rows count as they are weighed, or as if all had the same size: a huge one hides what the others ask for.
        Zeros where they would not be cheap.
        """
        rows, columns = self.design.shape
        if self.design.implicit or self.design.on_device or rows * columns**2 > CHEAP:
            return np.zeros((columns + 1, *self.width[1:]))
        gathered = self.rowspace.gathered
        matrix, y, row_weights = (gathered(each) for each in (self.design.dot(np.eye(columns)), self.y, self.weights))
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        targets = np.eye(self.classes)[y.astype(int)] if self.classes else y
        found = []
        for roots in np.sqrt(row_weights / row_weights.max()), 1 / np.where(largest > VANISHING, largest, 1.0):
            shares = (roots / roots.max()) ** 2
            means, centred = np.zeros(columns), matrix
            if self.intercept:  # twice: of rows far from the origin the first mean is rounded
                for _ in range(2):
                    step = np.average(centred, axis=0, weights=shares)
                    means, centred = means + step, centred - step
            scaled = roots[:, None] * centred
            sizes = np.abs(scaled).max(axis=0)
            constant = sizes <= 8 * np.finfo(np.float64).eps * np.abs(roots[:, None] * matrix).max(axis=0)
            scaled[:, constant], sizes[constant] = 0.0, 1.0
            middle = self.intercept * np.average(targets, axis=0, weights=shares)
            weights = np.linalg.lstsq(scaled / sizes, ((targets - middle).T * roots).T, rcond=None)[0]
            weights = (weights.T / sizes).T
            found.append(np.abs(np.concatenate([weights, (middle - means @ weights)[None]])))
        return np.maximum(*found)

    @lazy
    def _floor(self) -> float:
        """1e-6 of the objective of the best constant; of that of zero where the best constant fits but for rounding.

        Where targets lie far from zero, that is less than their rounding costs a loss with a corner at the target: no
        gap is then compared with less than 1e7 times that.
        """
        low, high = self.rowspace.extremes(self.y)
        constant = self.intercept and high - low <= STORED * max(-low, high)
        floor = FLOOR * max(self.origin_value, self.loss_sum(self._zero_predictions) if constant else 0.0)
        if self.loss.residual_form and self.loss.corners:
            costs = self.rowspace.map(self._cost_of_rounding, self.y)
            floor = max(floor, ROUNDED * self.rowspace.dot(self.scale, costs))
        return floor if math.isfinite(floor) else 0.0

    def _cost_of_rounding(self, y: Array) -> Array:
        """What the loss rises by where a prediction is off by the rounding of the target."""
        xp = namespace(y)
        units = epsilon(y) * xp.abs(y)
        below, above = (xp.abs(self.loss.derivative(y, y + end * units)) for end in (-1, 1))
        return xp.maximum(below, above) * units

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
        if rounding <= np.abs(b).max() or rounding <= (1.0 if self.classes else self._largest_target):
            return point
        return replace(point, b=b if self.classes else float(b))

    @lazy
    def _largest_target(self) -> float:
        low, high = self.rowspace.extremes(self.y)
        return max(-low, high)

    def predict(self, point: Point) -> RowVector:
        """f = A w + b."""
        return self.design.predict(point.w, point.b)

    def loss_sum(self, f: RowVector) -> float:
        """sum_i s_i loss(y_i, f_i)."""

        def losses(s: Array, y: Array, f: Array) -> float:
            return s @ self.loss.value(y, f)

        return float(self.rowspace.sum(losses, self.scale, self.y, f, width=self._entries))

    def curvatures(self, f: RowVector) -> RowVector:
        """s_i loss''(y_i, f_i), for a loss of one output."""
        return self._scaled(self.loss.curvature, f)

    def _scaled(self, function: Callable[[Array, Array], Array], f: RowVector) -> RowVector:
        """s_i function(y_i, f_i)."""

        def scaled(s: Array, y: Array, f: Array) -> Array:
            return self.per_output(s) * function(y, f)

        return self.rowspace.map(scaled, self.scale, self.y, f, width=self._entries)

    @property
    def _entries(self) -> int:
        """The numbers that a row of predictions has."""
        return max(self.classes, 1)

    def primal(self, point: Point, f: RowVector | None = None) -> float:
        """P at the point; ``f`` saves the product if it is known."""
        return self.penalty_sum(point) + self.loss_sum(self.predict(point) if f is None else f)

    def penalty_sum(self, point: Point) -> float:
        """R(w), and the cost of the intercept if there is one."""
        return self.norm.value(point.w) + (self.tilt * float(point.b) if self.tilt else 0.0)

    def predict_and_correlate(self, w: Array, b: float) -> tuple[RowVector, RowVector, Array, float]:
        """f = A w + b, the slopes u at f, A'u and the sum of losses, for a loss of one output: data is read once."""
        compiled = self.loss.compiled_pass
        found = None if compiled is None else self.design.fused_pass(compiled, w, b, self.y, self.scale)
        if found is not None:
            return found

        def slopes(s: Array, y: Array, f: Array) -> Array:
            return s * self.loss.derivative(y, f)

        f, u, correlations = self.design.predict_and_correlate(w, b, slopes, self.scale, self.y)
        return f, u, correlations, self.loss_sum(f)

    def slopes(self, f: RowVector) -> RowVector:
        """u_i = s_i loss'(y_i, f_i): the dual point that f suggests."""
        return self._scaled(self.loss.derivative, f)

    def bounds(self) -> tuple[RowVector, RowVector]:
        """The smallest and the largest u of every row."""

        def ends(s: Array, y: Array) -> tuple[Array, Array]:
            low, high = self.loss.domain(y)
            return s * low, s * high

        low, high = self.rowspace.maps(ends, self.scale, self.y, outputs=2)
        return low, high

    def conjugate_sum(self, u: RowVector) -> float:
        """sum_i s_i loss*(y_i, u_i / s_i)."""

        def conjugates(s: Array, y: Array, u: Array) -> float:
            return s @ self.loss.conjugate(y, u / self.per_output(s))

        return float(self.rowspace.sum(conjugates, self.scale, self.y, u, width=self._entries))

    @lazy
    def conjugates_at_zero(self) -> float:
        """sum_i s_i loss*(y_i, 0): minus the smallest losses there can be."""
        return self.conjugate_sum(self._zero_predictions)

    def dual(self, u: RowVector, correlations: Array | None = None) -> float:
        """D at a feasible u; ``correlations`` = A'u saves the product if it is known."""
        v = self.design.tdot(u) if correlations is None else correlations
        return -self.norm.conjugate(-v) - self.conjugate_sum(u)

    def per_output(self, values: Array) -> Array:
        """A number of every row, in the shape that multiplies predictions."""
        return values[:, None] if self.classes else values

    @lazy
    def critical_C(self) -> float:
        """The largest C at which w = 0 is optimal for a smooth loss (0 without l1); with corners, about it."""

        def slopes(weights: Array, y: Array, f: Array) -> Array:
            return self.per_output(weights) * self.loss.derivative(y, f)

        at_best = self.rowspace.map(slopes, self.weights, self.y, self.constant_predictions, width=self._entries)
        if self.intercept and not self.loss.smooth:
            # Of the slopes at a corner those that sum to zero: they do not depend on where columns have their zero.
            mean = self.rowspace.total(at_best) / self.rowspace.total(self.weights)
            at_best = self.rowspace.map(
                lambda c, u: u - self.per_output(c) * mean, self.weights, at_best, width=self._entries
            )
        correlations = self.design.tdot(at_best)
        # What rounding leaves of a constant column would make a path of huge C.
        if not (self.penalty.smooth or self.design.implicit):
            terms = np.multiply.outer(self.design.stored_lengths, self.rowspace.column_norms(at_best))
            correlations = np.where(np.abs(correlations) > STORED * terms.reshape(correlations.shape), correlations, 0)
        return self.penalty.critical_C(correlations)


def on_design(whole: Design, problems: list[Problem]) -> list[Problem]:
    """The problems on their rows of another design; those that shared one share it again."""
    moved: dict[int, Design] = {}
    for problem in problems:
        if id(problem.design) not in moved:
            every = problem.rows is None or np.array_equal(problem.rows, np.arange(whole.shape[0]))
            part = whole if every else whole.rows(problem.rows)
            part = part.centred() if problem.intercept and part.shift is None else part
            part.shared_by = problem.design.shared_by
            moved[id(problem.design)] = part
    return [replace(problem, design=moved[id(problem.design)]) for problem in problems]
