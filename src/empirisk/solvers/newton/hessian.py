"""A factor of the Hessian that is kept while it is good, and corrected by what the steps taken with it have shown."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.factor import ConjugateGradients, NormalEquations
from empirisk.problem import Problem
from empirisk.solvers.newton.course import Place

Array = NDArray[np.float64]
System = NormalEquations | ConjugateGradients
#: A normal matrix of so many rows is factored in about two seconds.
DIRECT = 4096
#: A factor is kept while each step promises at most this share of what the last one did; an expensive one for longer.
KEEP, KEEP_COSTLY = 0.01, 0.3
#: Steps remembered for corrections.
MEMORY = 10
#: Curvatures above this, in units of the scale, would leave no digits for the others.
STEEPEST = 1e12


class Pair(NamedTuple):
    """A step in (w, b), how the gradient changed along it, and the product of both."""

    step: Array
    change: Array
    product: float


class Hessian:
    """The matrix  R'' + A' diag(s loss'') A  of Newton's method, or one near it.

    Between factorisations, the steps and the changes of the gradient along them correct the factor as in the
    limited-memory BFGS method, so that a factor from elsewhere on the way, or from part of the rows, serves for long.

    Parameters
    ----------
    problem : Problem
        With one output, a smooth loss and a smooth penalty.
    factor : optional
        One to begin with; making one of all rows is then taken to be expensive.
    """

    def __init__(self, problem: Problem, factor: System | None = None):
        self._problem, self.factor = problem, factor
        self._keep = KEEP if factor is None else KEEP_COSTLY
        self._decrement = np.inf
        self._pairs: list[Pair] = []

    def step(self, place: Place) -> tuple[Array, float, float]:
        """Newton's step from a place in w and in b, and its squared decrement."""
        if self.factor is not None:
            w, b, decrement = self._step(place)
            if 0 < decrement <= self._keep * self._decrement:
                self._decrement = decrement
                return w, b, decrement
        self._renew(place)
        w, b, self._decrement = self._step(place)
        return w, b, self._decrement

    def learn(self, step: Array, change: Array) -> None:
        """Take in that the gradient in (w, b) changed by ``change`` along ``step``."""
        product = float(step @ change)
        if product > 0:
            self._pairs = [*self._pairs[1 - MEMORY :], Pair(step, change, product)]

    def _renew(self, place: Place) -> None:
        problem = self._problem
        curvatures = np.minimum(problem.curvatures(place.f), STEEPEST * problem.scale)
        equations = NormalEquations if min(problem.design.shape) <= DIRECT else ConjugateGradients
        stiffness = problem.penalty.curvature(place.w)
        self.factor = equations(problem.design, curvatures, stiffness, problem.intercept)
        self._pairs = []

    def _step(self, place: Place) -> tuple[Array, float, float]:
        """The two loops of limited-memory BFGS around a solution with the factor."""
        assert self.factor is not None
        packed = np.append(place.gradient, place.constant)
        right = -packed
        shares = []
        for pair in reversed(self._pairs):
            shares.append(float(pair.step @ right) / pair.product)
            right -= shares[-1] * pair.change
        w, b = self.factor.step(right[:-1], float(right[-1]))
        solution = np.append(w, b)
        for pair, share in zip(self._pairs, reversed(shares), strict=True):
            solution += (share - float(pair.change @ solution) / pair.product) * pair.step
        return solution[:-1], float(solution[-1]), -float(packed @ solution)
