"""Learning the weights of several kernels: an outer problem in beta around the fits of a machine."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import clone

from empirisk.certificate import Status
from empirisk.dual import feasible
from empirisk.errors import Unsuitable
from empirisk.fits import fit as fitting
from empirisk.fits.fit import Fit, Limits, Progress
from empirisk.maps.implicit import GramDesign
from empirisk.maps.several import SeveralKernels
from empirisk.problem import Problem
from empirisk.settings import settings
from empirisk.solvers.base import Solver

Array = NDArray[np.float64]
ROUNDS, RESTARTS = 50, 3
SHARPER, SHARPEST = 1e-5, 1e-12


def run(
    problems: list[Problem],
    solver: str | Solver,
    limits: Limits,
    progress: Callable[[int], Progress] | None = None,
) -> tuple[list[Problem], list[Fit]]:
    """As `fitting.run`, with the weights of `SeveralKernels` learned on the way; the problems come with the fits."""
    kernel: Any = getattr(problems[0].design, "kernel", None)
    if not getattr(kernel, "learns_weights", False):
        return problems, fitting.run(problems, solver, limits, progress)
    limits.check()
    if problems[0].penalty.l2 == 0:
        raise Unsuitable(
            f"features={kernel!r} has weights to learn, which needs penalty='l2'; give a sum of the kernels."
        )
    search = Search(kernel, problems, solver, limits, progress)
    best = search.run()
    kernel.beta_ = best.beta
    return best.problems, search.certified(best)


def require_nothing_to_weigh(machine: Any) -> None:
    """Raise for a machine that minimises nothing by which weights of kernels could be learned."""
    kernel = machine._kernel()
    if kernel is not None and kernel.learns_weights:
        name = type(machine).__name__
        raise Unsuitable(
            f"features={kernel!r} has weights to learn, and {name} learns none; give a sum of the kernels."
        )


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
    problems: list[Problem]
    fits: list[Fit]
    primal: float
    energies: Array
    rest: float


class Enough(Exception):
    """The gap is closed, or time is up."""


class Search:
    """Minimises J(beta), the objective of the machine at the weights beta, which is convex, by quadratic programming.

    The gradient of J is minus the energies. Each kernel alone is tried first, so that the result is never worse.
    """

    def __init__(self, kernel: SeveralKernels, problems: list[Problem], solver: Any, limits: Limits, progress: Any):
        self.kernel, self.problems, self.solver, self.limits = kernel, problems, solver, limits
        self._progress = progress
        self._begin = time.perf_counter()
        # The energies are off by the root of the gap of a fit.
        self._sharp = replace(limits, tol=max(SHARPER * limits.tol, min(limits.tol, SHARPEST)))
        self._parts = {id(problem.design): Members(cast(GramDesign, problem.design)) for problem in problems}
        self.trials: list[Trial] = []
        self.lower = -np.inf
        self.scale = sum(problem.magnitude(0.0) for problem in problems)

    def run(self) -> Trial:
        """The best trial."""
        count = len(self.kernel.weights)
        try:
            for number in range(count):
                self.trial(np.eye(count)[number], self.limits)
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

    def trial(self, beta: Array, limits: Limits) -> Trial:
        """Fit every problem at the weights; stops the search when the gap is closed."""
        limits = limits.since(self._begin)
        problems = [replace(p, design=self._parts[id(p.design)].weighted(self.kernel, beta)) for p in self.problems]
        starts = [fit.point for fit in self.trials[-1].fits] if self.trials else None
        fits = fitting.run(problems, self.solver, limits, self._progress, starts)
        energies, rest = np.zeros(len(beta)), 0.0
        for original, problem, fit in zip(self.problems, problems, fits, strict=True):
            u = problem.slopes(problem.predict(fit.point)) if fit.point.u is None else fit.point.u
            u, _ = feasible(problem, u)
            energies += self._parts[id(original.design)].energies(u) / (2 * problem.penalty.l2)
            rest -= problem.conjugate_sum(u)
        trial = Trial(beta, problems, fits, sum(fit.certificate.primal for fit in fits), energies, rest)
        self.trials.append(trial)
        self.lower = max(self.lower, rest - self.kernel.largest(energies))
        ended = {fit.certificate.status for fit in fits} & {Status.TIME, Status.INTERRUPTED, Status.EARLY}
        if self.gap() <= self.limits.tol * self._magnitude() or ended:
            raise Enough
        return trial

    def gap(self) -> float:
        """The gap of the joint problem."""
        return max(self._best().primal - self.lower, 0.0)

    def _magnitude(self) -> float:
        return max(abs(self._best().primal), self.scale)

    def certified(self, best: Trial) -> list[Fit]:
        """The fits of the best trial with the gap of the joint problem on their certificates."""
        gap = self.gap() + sum(4 * np.finfo(float).eps * abs(fit.certificate.primal) for fit in best.fits)
        relative = gap / self._magnitude()
        converged = bool(relative <= self.limits.tol)
        out = []
        for fit in best.fits:
            status = fit.certificate.status if fit.certificate.status != Status.CONVERGED else Status.STALLED
            share = gap / len(best.fits)
            certificate = replace(
                fit.certificate,
                dual=float(fit.certificate.primal - share),
                gap=float(share),
                relative_gap=float(relative),
                converged=converged,
                status=Status.CONVERGED if converged else status,
                reason=f"{fit.certificate.reason}; weights of the kernels by {len(self.trials)} fits",
                seconds=(time.perf_counter() - self._begin) / len(best.fits),
            )
            out.append(replace(fit, certificate=certificate))
        return out


class Members:
    """The kernels of a design one by one, their Gram matrices kept where they fit."""

    def __init__(self, design: GramDesign):
        self._design = design
        several = cast(SeveralKernels, design.kernel)
        self.designs = [GramDesign(kernel, items) for kernel, items in zip(several.kernels_, design.items, strict=True)]
        self._kept = 8 * len(self.designs) * design.shape[0] ** 2 <= settings().memory // 2

    def weighted(self, kernel: SeveralKernels, beta: Array) -> GramDesign:
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
