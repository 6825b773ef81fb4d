"""The convex form of a contrastive loss: hinges of squared distances, which are linear in M = P'P, over M >= 0."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from empirisk.certificate import Certificate, Status
from empirisk.fits.fit import Limits
from empirisk.fits.minimise import FEW, descend
from empirisk.linalg.threads import look

Array = NDArray[np.float64]
#: The first curvature of the rounded hinges, as a share of the margin, and what each further round makes of it where
#: the gap has not been halved.
ROUNDNESS, SHARPER = 0.3, 0.3
#: Steps of one round, and its tolerance beside that of the whole: multipliers of a coarse minimum are coarse.
STEPS, FINER = 500, 1e-3
#: Eigenvalues below this share of the largest are rounding.
RANK = 1e-12
#: The objective without a metric, times this, is what gaps are compared with at least: a fit may be perfect.
FLOOR = 1e-6


@dataclass(frozen=True)
class PairHinges:
    """strength tr(M) + sum_k a_k max(0, |d_k|_M^2 - inner) over like pairs + sum_k a_k max(0, outer - |d_k|_M^2).

    Attributes
    ----------
    differences : array, pairs x d
        d_k = x_i - x_j.
    alike : array of bool
        Which pairs are alike.
    amounts : array
        a_k.
    inner, outer : float
        The margins: like pairs may be as far apart as the one, unlike pairs should be as far apart as the other.
    cost : array of d
        strength, for each of the columns in their own units.
    """

    differences: Array
    alike: NDArray[np.bool_]
    amounts: Array
    inner: float
    outer: float
    cost: Array

    def excess(self, P: Array) -> tuple[Array, Array]:
        """The images of the differences, and by how much each pair is beyond its margin."""
        images = self.differences @ P.T
        squares = np.einsum("ij,ij->i", images, images)
        return images, np.where(self.alike, squares - self.inner, self.outer - squares)

    def primal(self, P: Array) -> float:
        """The objective of M = P'P."""
        return float(self.amounts @ np.maximum(self.excess(P)[1], 0.0)) + float(np.sum(self.cost * P * P))

    @property
    def without_metric(self) -> float:
        """The objective of M = 0."""
        return float(self.amounts[~self.alike].sum()) * self.outer

    def rounded(self, P: Array, multipliers: Array, mu: float) -> tuple[float, Array]:
        """max over 0 <= u <= 1 of  sum_k a_k ( u_k z_k - mu/2 (u_k - multiplier_k)^2 ), and its gradient in P."""
        look()
        images, z = self.excess(P)
        u = np.clip(multipliers + z / mu, 0.0, 1.0)
        value = float(self.amounts @ (u * z - 0.5 * mu * (u - multipliers) ** 2)) + float(np.sum(self.cost * P * P))
        forces = np.where(self.alike, 1.0, -1.0) * self.amounts * u
        return value, 2 * ((images.T * forces) @ self.differences + self.cost * P)

    def dual(self, u: Array) -> float:
        """A lower bound of the objective from multipliers u: those of unlike pairs are scaled until it is one.

        Any 0 <= u <= 1 with  diag(cost) + sum_like a u d d' - sum_unlike a u d d' >= 0  bounds it by
        outer sum_unlike a u - inner sum_like a u.
        """
        weights = self.amounts * u
        like, unlike = self.differences[self.alike], self.differences[~self.alike]
        held = np.diag(self.cost) + (like.T * weights[self.alike]) @ like
        pushed = (unlike.T * weights[~self.alike]) @ unlike
        values, vectors = eigh(held)
        kept = values > RANK * max(values[-1], 0.0)
        inside = vectors[:, kept] / np.sqrt(values[kept])
        outside = vectors[:, ~kept]
        if np.trace(outside.T @ pushed @ outside) > RANK * np.trace(pushed):
            return 0.0  # nothing holds unlike rows in some direction, and zero bounds every sum of hinges
        steepest = float(eigh(inside.T @ pushed @ inside, eigvals_only=True)[-1]) if kept.any() else 0.0
        share = min(1.0, (1 - RANK) / steepest) if steepest > 0 else 1.0
        gained = share * self.outer * float(weights[~self.alike].sum()) - self.inner * float(weights[self.alike].sum())
        return max(gained, 0.0)


@dataclass
class Multipliers:
    """The method of multipliers on the hinges: rounded ones are minimised over P, square so that no minimum is local.

    After each round the multipliers are those of its minimum, so that the roundness need not vanish.
    """

    problem: PairHinges
    P: Array
    tol: float

    def __post_init__(self):
        self.multipliers = np.full(len(self.problem.amounts), 0.5)
        self.mu = ROUNDNESS * self.problem.outer
        self.primal, self.best, self.bound = self.problem.primal(self.P), self.P, 0.0

    @property
    def gap(self) -> float:
        """How far the best metric may be from the optimum."""
        return max(self.primal - self.bound, 0.0)

    def relative(self, primal: float) -> float:
        """How far an objective may be from the optimum, beside itself."""
        return max(primal - self.bound, 0.0) / (max(primal, FLOOR * self.problem.without_metric) or 1.0)

    def round(self, seconds: float | None = None) -> bool:
        """One minimisation and the multipliers that it gives; whether the gap is within ``tol`` now."""
        before, shape = self.gap, self.P.shape
        found = descend(
            lambda P: self.problem.rounded(P, self.multipliers, self.mu),
            self.P,
            "bfgs" if self.P.size <= FEW else "l_bfgs",
            gradient=True,
            limits=Limits(FINER * self.tol, STEPS, seconds),
        )
        self.P = np.reshape(found.x, shape)
        z = self.problem.excess(self.P)[1]
        self.multipliers = np.clip(self.multipliers + z / self.mu, 0.0, 1.0)
        primal = self.problem.primal(self.P)
        if primal < self.primal:
            self.primal, self.best = primal, self.P
        self.bound = max(self.bound, self.problem.dual(self.multipliers))
        if not found.converged:  # too sharp for the digits there are
            self.mu /= SHARPER
        elif self.gap > 0.5 * before:
            self.mu *= SHARPER
        return self.relative(self.primal) <= self.tol

    def certificate(self, P: Array, status: str, rounds: int, seconds: float) -> Certificate:
        """What is proved of a metric: the best one, or what was kept of it."""
        primal = self.problem.primal(P)
        relative = self.relative(primal)
        converged = relative <= self.tol
        return Certificate(
            primal,
            self.bound,
            max(primal - self.bound, 0.0),
            relative,
            converged=converged,
            status=status if converged or status != Status.CONVERGED else Status.STALLED,
            solver="multipliers",
            reason="hinges of squared distances are convex in M = P'P",
            iterations=max(rounds, 1),
            seconds=seconds,
        )


def leading_rows(P: Array, count: int) -> Array:
    """The best metric with so few rows: those of the largest eigenvalues of M = P'P."""
    if count >= len(P):
        return P
    _, sizes, directions = np.linalg.svd(P)
    return sizes[:count, None] * directions[:count]
