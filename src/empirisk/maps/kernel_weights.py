"""Learning the weights of several kernels: an outer problem in beta around the fits of a machine."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import clone

from empirisk.maps.implicit import GramDesign
from empirisk.settings import settings

if TYPE_CHECKING:
    from empirisk.fits.fit import Fit, Run
    from empirisk.maps.several import SeveralKernels
    from empirisk.problem import Problem

Array = NDArray[np.float64]
#: Rounds of quadratic programming, and how often they start again from the best weights.
ROUNDS, RESTARTS = 50, 3
#: The tolerance of the inner fits beside that of the joint problem, and the smallest one worth asking for.
SHARPER, SHARPEST = 1e-5, 1e-12


@dataclass
class Trial:
    """The fits at some weights, and what they say about others.

    Attributes
    ----------
    beta : array
        The weights.
    primal : float
        The objective reached.
    energies : array
        sum over problems of u'K_m u / (2 l2) for each kernel, u the dual points.
    rest : float
        The dual value without the energies: at any beta, rest - <energies, beta> is a lower bound.
    """

    beta: Array
    problems: "list[Problem]"
    fits: "list[Fit]"
    primal: float
    energies: Array
    rest: float


class Enough(Exception):
    """The gap is closed, or time is up."""


class WeightSearch:
    """Minimises J(beta), the objective of the machine at the weights beta, which is convex, by quadratic programming.

    The gradient of J is minus the energies. Each kernel alone is tried first, so that the result is never worse.
    """

    def __init__(self, kernel: "SeveralKernels", problems: "list[Problem]", run: "Run"):
        self.kernel, self.problems, self.run = kernel, problems, run
        # The energies are off by the root of the gap of a fit.
        tol = run.limits.tol
        self._sharp = max(SHARPER * tol, min(tol, SHARPEST))
        self._parts = {id(problem.design): Members(cast(GramDesign, problem.design)) for problem in problems}
        self.trials: list[Trial] = []
        self.lower = -np.inf
        self.scale = sum(problem.magnitude(0.0) for problem in problems)

    def find(self) -> Trial:
        """The best trial there is time for."""
        count = len(self.kernel.weights)
        try:
            for number in range(count):
                self.trial(np.eye(count)[number], self.run.limits.tol)
            # From the middle, drawn towards the better kernels.
            values = np.array([trial.primal for trial in self.trials])
            start = self.kernel.allowed(1.0 / np.maximum(values, 1e-3 * values.max(initial=0.0) + 1e-300))
            self._descend(start)
        except Enough:
            pass
        return self._best()

    def _descend(self, start: Array) -> None:
        size = max(abs(self._best().primal), np.finfo(float).tiny)
        seen: dict[bytes, Trial] = {}

        def at(beta: Array) -> Trial:
            allowed = self.kernel.allowed(beta)
            key = allowed.tobytes()
            if key not in seen:
                seen[key] = self.trial(allowed, self._sharp)
            return seen[key]

        power = self.kernel.norm
        sphere = {
            "type": "eq",
            "fun": lambda beta: np.sum(beta**power) - 1,
            "jac": lambda beta: power * beta ** (power - 1),
        }
        for _ in range(RESTARTS):
            # The gap falls with the first power of the distance to the optimum, J with the second: J says little.
            minimize(
                lambda beta: at(beta).primal / size,
                start,
                jac=lambda beta: -at(beta).energies / size,
                method="SLSQP",
                bounds=[(0.0, 1.0)] * len(start),
                constraints=sphere,
                options={"maxiter": ROUNDS, "ftol": 1e-16},
            )
            start = self._best().beta

    def _best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.primal)

    def trial(self, beta: Array, tol: float) -> Trial:
        """Fit every problem at the weights; stops the search when the gap is closed."""
        problems = [replace(p, design=self._parts[id(p.design)].weighted(self.kernel, beta)) for p in self.problems]
        starts = [fit.point for fit in self.trials[-1].fits] if self.trials else None
        fits = self.run(problems, starts, tol)
        energies, rest = np.zeros(len(beta)), 0.0
        for original, problem, fit in zip(self.problems, problems, fits, strict=True):
            u = self.run.dual_point(problem, fit)
            energies += self._parts[id(original.design)].energies(u) / (2 * problem.penalty.l2)
            rest -= problem.conjugate_sum(u)
        trial = Trial(beta, problems, fits, sum(fit.certificate.primal for fit in fits), energies, rest)
        self.trials.append(trial)
        self.lower = max(self.lower, rest - self.kernel.largest(energies))
        if self.gap() <= self.run.limits.tol * self._magnitude() or any(fit.cut for fit in fits):
            raise Enough
        return trial

    def gap(self) -> float:
        """The gap of the joint problem."""
        return max(self._best().primal - self.lower, 0.0)

    def _magnitude(self) -> float:
        return max(abs(self._best().primal), self.scale)

    def certified(self, best: Trial) -> "list[Fit]":
        """The fits of the best trial with the gap of the joint problem on their certificates."""
        gap = self.gap() + sum(4 * np.finfo(float).eps * abs(fit.certificate.primal) for fit in best.fits)
        share, seconds = (value / len(best.fits) for value in (gap, time.perf_counter() - self.run.begin))
        reason = f"weights of the kernels by {len(self.trials)} fits"
        relative, tol = gap / self._magnitude(), self.run.limits.tol
        return [
            replace(fit, certificate=fit.certificate.regraded(share, relative, tol, reason, seconds))
            for fit in best.fits
        ]


class Members:
    """The kernels of a design one by one, their Gram matrices kept where they fit."""

    def __init__(self, design: GramDesign):
        self._design = design
        several: Any = design.kernel
        self.designs = [GramDesign(kernel, items) for kernel, items in zip(several.kernels_, design.items, strict=True)]
        self._kept = 8 * len(self.designs) * design.shape[0] ** 2 <= settings().memory // 2

    def weighted(self, kernel: "SeveralKernels", beta: Array) -> GramDesign:
        """The design of the weighted sum."""
        fixed = clone(kernel)
        fixed.kernels_, fixed.beta_ = kernel.kernels_, beta
        design = GramDesign(fixed, self._design.items, self._design.source)
        design.root = self._design.root
        if self._kept:
            design.matrix = np.zeros(self._design.shape)
            for m in np.flatnonzero(beta):
                design.matrix += beta[m] * self.designs[m].matrix
        return design

    def energies(self, u: Array) -> Array:
        """u'K_m u for each kernel; summed over the columns of u."""
        if self._kept:
            return np.array([float(np.vdot(u, design.matrix @ u)) for design in self.designs])
        return np.array([float(np.sum(design.squared_norms(u))) for design in self.designs])
