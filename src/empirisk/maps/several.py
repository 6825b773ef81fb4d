"""Several kernels at once, with weights that are learned with the machine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone

from empirisk import kernels as families
from empirisk import state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.kernels.algebra import Scaled, Sum, kind_of, require_one_kind
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import Parts
from empirisk.maps.implicit import Array, GramDesign
from empirisk.settings import settings

if TYPE_CHECKING:
    from empirisk.fits.fit import Fit, SolverRun
    from empirisk.problem import Problem

#: Rounds of quadratic programming, and how often they start again from the best weights.
ROUNDS, RESTARTS = 50, 3
#: Fits after which the search ends: inner fits that miss their tolerance could make it cycle.
TRIALS = 200
#: If the gap of the inner fits is this share of the joint gap, better weights cannot be recognised.
BLURRED = 0.5
#: The tolerance of the inner fits beside that of the joint problem, and the smallest one worth asking for.
SHARPER, SHARPEST = 1e-5, 1e-12


@dataclass
class WeightTrial:
    """The fits at some weights, and what they say about others.

    Attributes
    ----------
    beta : array
        The weights.
    primal : float
        The objective reached.
    energies : array
        sum over problems of u'K_m u / (2 l2) for each kernel, u the dual points.
    """

    beta: Array
    problems: list[Problem]
    fits: list[Fit]
    primal: float
    energies: Array


class Enough(Exception):
    """The gap is closed, or time is up."""


class WeightSearch:
    """Minimises J(beta), the objective of the machine at the weights beta, which is convex, by quadratic programming.

    The gradient of J is minus the energies. Each kernel alone is tried first, so that the result is never worse.
    """

    def __init__(self, kernel: SeveralKernels, problems: list[Problem], run: SolverRun):
        # The problems of all weights are similar: solvers that failed on one are skipped on the others.
        self.kernel, self.problems, self.run = kernel, problems, replace(run, resisted=[])
        # The energies are off by the root of the gap of a fit.
        tol = run.limits.tol
        self._sharp = max(SHARPER * tol, min(tol, SHARPEST))
        self._parts = {id(problem.design): MemberKernels(cast(GramDesign, problem.design)) for problem in problems}
        self.trials: list[WeightTrial] = []
        self.lower = -np.inf
        self.scale = sum(problem.magnitude(0.0) for problem in problems)

    def find(self) -> WeightTrial:
        """The best trial there is time for."""
        count = len(self.kernel.weights)
        try:
            for number in range(count):
                self.trial(np.eye(count)[number], self.run.limits.tol)
            # From the middle, drawn towards the better kernels.
            values = np.array([trial.primal for trial in self.trials])
            # A kernel that alone does all, with a value of zero, begins a thousand times ahead and not infinitely.
            start = self.kernel.allowed(1.0 / np.maximum(values, 1e-3 * values.max(initial=0.0) + 1e-300))
            self._descend(start)
        except Enough:
            pass
        return self._best()

    def _descend(self, start: Array) -> None:
        size = max(abs(self._best().primal), np.finfo(float).tiny)
        seen: dict[bytes, WeightTrial] = {}

        def at(beta: Array) -> WeightTrial:
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

    def _best(self) -> WeightTrial:
        return min(self.trials, key=lambda trial: trial.primal)

    def trial(self, beta: Array, tol: float) -> WeightTrial:
        """Fit every problem at the weights; stops the search when the gap is closed."""
        problems = [replace(p, design=self._parts[id(p.design)].weighted(self.kernel, beta)) for p in self.problems]
        starts = [fit.point for fit in self.trials[-1].fits] if self.trials else None
        fits = self.run(problems, starts, tol)
        # At any beta, rest - <energies, beta> is a lower bound.
        energies, rest = np.zeros(len(beta)), 0.0
        for original, problem, fit in zip(self.problems, problems, fits, strict=True):
            u = self.run.dual_point(problem, fit)
            energies += self._parts[id(original.design)].energies(u) / (2 * problem.penalty.l2)
            rest -= problem.conjugate_sum(u)
        trial = WeightTrial(beta, problems, fits, sum(fit.certificate.primal for fit in fits), energies)
        self.trials.append(trial)
        self.lower = max(self.lower, rest - self.kernel.largest(energies))
        closed = self.gap() <= self.run.limits.tol * self._magnitude()
        blurred = len(self.trials) > len(beta) and sum(fit.certificate.gap for fit in fits) >= BLURRED * self.gap()
        if closed or blurred or len(self.trials) >= TRIALS or any(fit.cut for fit in fits):
            raise Enough
        return trial

    def gap(self) -> float:
        """The gap of the joint problem."""
        return max(self._best().primal - self.lower, 0.0)

    def _magnitude(self) -> float:
        return max(abs(self._best().primal), self.scale)

    def certified(self, best: WeightTrial) -> list[Fit]:
        """The fits of the best trial with the gap of the joint problem on their certificates."""
        # What the gaps of the fits are beyond primal - dual is rounding: of kernels, predictions and targets.
        certificates = [fit.certificate for fit in best.fits]
        rounding = sum(known.gap - abs(known.primal - known.dual) for known in certificates)
        gap = self.gap() + np.nan_to_num(rounding, nan=np.inf)
        share, seconds = (value / len(best.fits) for value in (gap, time.perf_counter() - self.run.deadline.start))
        reason = f"weights of the kernels by {len(self.trials)} fits"
        relative, tol = gap / self._magnitude(), self.run.limits.tol
        return [
            replace(fit, certificate=fit.certificate.regraded(share, relative, tol, reason, seconds))
            for fit in best.fits
        ]


class MemberKernels:
    """The kernels of a design one by one, their Gram matrices kept where they fit."""

    def __init__(self, design: GramDesign):
        self._design = design
        several: Any = design.kernel
        self.designs = [GramDesign(kernel, items) for kernel, items in zip(several.kernels_, design.items, strict=True)]
        self._kept = 8 * len(self.designs) * design.shape[0] ** 2 <= settings().memory // 2

    def weighted(self, kernel: SeveralKernels, beta: Array) -> GramDesign:
        """The design of the weighted sum."""
        fixed = clone(kernel)
        fixed.kernels_, fixed.beta_ = kernel.kernels_, beta
        design = GramDesign(fixed, self._design.items, self._design.source)
        design.whole = self._design.root
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


NEGLIGIBLE = 1e-12  # of the largest weight: rounding of a weight that is zero


class SeveralKernels(Kernel):
    """The kernel k(x, z) = sum_m beta_m k_m(x, z) with weights beta >= 0 that the machine learns.

    With |beta|_1 = 1 (``norm=1``, which selects kernels) or |beta|_2 = 1 (``norm=2``, which combines them) a machine
    in whose slot ``features`` this stands solves the joint problem

        min over beta, w, b:   l2/2 sum_m |w_m|^2 / beta_m  +  C sum_i c_i loss(y_i, sum_m <w_m, phi_m(x_i)> + b),

    which is convex. Its dual, on whose gap the certificate reports, is with s = C c

        max over u:   -1/(2 l2) | (u'K_1 u, ..., u'K_M u) |  -  sum_i s_i loss*(y_i, u_i / s_i),   sum_i u_i = 0,

    where |.| is the largest entry for norm 1 and the 2-norm for norm 2. Several outputs share the weights. Kernels of
    very different size should be scaled first, for instance with ``kernel.normalised()``. A C that the machine chooses,
    "loo" or "cv", is chosen at equal weights.

    Parameters
    ----------
    kernels : list of kernels
        The kernels k_m, or their names.
    norm : 1 or 2
        Which norm of the weights is one.

    Attributes
    ----------
    beta_ : array
        The learned weights.
    kernels_ : list of Kernel
        The fitted kernels.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> several = er.maps.SeveralKernels([er.kernels.Gaussian().on([0]), er.kernels.Gaussian().on([1])])
    >>> er.Ridge(features=several).fit(X, np.sin(X[:, 0])).features_.beta_.round(2)
    array([1., 0.])
    """

    _state = state.State(
        filled=("kernels",),
        norm=state.whole(1, 2),
        kernels_=state.optional(state.several(state.part(Kernel, columns="columns"), "kernels")),
        beta_=state.optional(state.array("f8", "kernels", low=0)),
    )

    def __init__(self, kernels: Sequence[Any] = ("linear", "gaussian"), norm: int = 1):
        self.kernels = kernels
        self.norm = norm

    def _members(self) -> list[Kernel]:
        """The kernels that compute: the fitted copies if there are any."""
        return getattr(self, "kernels_", None) or [families.find(kernel) for kernel in self.kernels]

    @property
    def takes(self) -> str:
        self.check()
        return kind_of(self._members())

    @property
    def sparse(self) -> bool:
        return all(kernel.sparse for kernel in self._members())

    @property
    def weights(self) -> Array:
        """The weights: learned, or all equal."""
        count = len(self._members())
        return getattr(self, "beta_", np.full(count, count ** (-1.0 / self.norm)))

    def check(self):
        if isinstance(self.kernels, str) or not hasattr(self.kernels, "__len__") or len(self.kernels) == 0:
            raise EmpiriskError(f"kernels={self.kernels!r} must be a list of kernels, not empty.")
        if self.norm not in (1, 2):
            raise EmpiriskError(f"norm={self.norm!r} must be 1, which selects kernels, or 2, which combines them.")
        for kernel in self._members():
            kernel.check()
        require_one_kind(self, self._members())

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        self.kernels_ = [clone(families.find(kernel)).fit(X) for kernel in self.kernels]
        return self

    def weigh(self, weights):
        for kernel in self.kernels_:
            kernel.weigh(weights)

    def prepare(self, X):
        self.check()
        return Parts(*(kernel.prepare(X) for kernel in self._members()))

    def _sum(self, A: Parts, all_of_them: bool = False) -> tuple[Kernel, Any]:
        """The weighted sum of the kernels, without those of no weight, as a kernel, and its items."""
        members = zip(self.weights, self._members(), A, strict=True)
        used = [(Scaled(kernel, float(beta)), group) for beta, kernel, group in members if beta > 0 or all_of_them]
        return reduce(Sum, (kernel for kernel, _ in used)), reduce(Parts, (group for _, group in used))

    def between(self, A, B=None, out=None):
        kernel, items = self._sum(A)
        return kernel.between(items, None if B is None else self._sum(B)[1], out)

    def diagonals(self, A):
        kernel, items = self._sum(A)
        return kernel.diagonals(items)

    def term_diagonals(self, A):
        kernel, items = self._sum(A)
        return kernel.term_diagonals(items)

    def expression(self, A):
        kernel, items = self._sum(A)
        return kernel.expression(items)

    def summands(self, A):
        return list(zip(self._members(), A, strict=True))

    def linear_part(self, A, beta):
        kernel, items = self._sum(A, all_of_them=True)
        return kernel.linear_part(items, beta)

    def terms(self, A):
        kernel, items = self._sum(A, all_of_them=True)
        return kernel.terms(items)

    def learn_with(self, problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
        """Learn the weights together with the machine whose problems these are."""
        if problems[0].penalty.l2 == 0:
            raise Unsuitable(
                f"features={self!r} has weights to learn, which needs penalty='l2'; give a sum of the kernels."
            )
        search = WeightSearch(self, problems, run)
        best = search.find()
        self.beta_ = best.beta
        return best.problems, search.certified(best)

    def largest(self, energies: Array) -> float:
        """max over the allowed beta of <energies, beta>, for energies >= 0: the dual norm."""
        return float(energies.max()) if self.norm == 1 else math.hypot(*energies)

    def allowed(self, beta: Array) -> Array:
        """Weights >= 0 scaled to norm one, the negligible ones set to zero."""
        beta = np.maximum(beta, 0.0)
        beta = beta / beta.max()  # squares of huge weights overflow
        beta = np.where(beta <= NEGLIGIBLE, 0.0, beta)
        return beta / np.linalg.norm(beta, self.norm)
