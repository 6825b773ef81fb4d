"""One round of expectation and maximisation, for all forms of the covariance.

A Gaussian's log-density is linear in the products of entries of z = (x, 1): all pairs where the covariance is full,
squares, entries and the constant where it is diagonal. With those products as columns, the log-densities of a block
of rows are one matrix product, and the weighted sums that give the next means and covariances another.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.clusters.dense_rows import PRODUCTS_OF_THREAD, shares_of
from empirisk.clusters.density import (
    FORMS,
    LOG_TWO_PI,
    inverse_roots,
    least_variances,
    log_densities,
    mean_and_scatter,
    weighted_mean,
)
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.blocks import Array, slices
from empirisk.linalg.compiled import loop_with, multiply
from empirisk.linalg.threads import interruptible_call, parallel_map
from empirisk.stop import check_stop

BATCH_BYTES = 1 << 19  # products of a batch of rows: they stay in the second cache between the two matrix products
LARGEST_BATCH = 256  # rows: more gain nothing from one larger product
PIECE = 1 << 30  # operations between two looks at the clock: a tenth of a second on a slow core
EXPONENTIAL = 100  # operations in the time of one of a share
NEGLIGIBLE = -40.0  # shares below exp(-40) are lost in the rounding of a sum of shares anyway


@loop_with({"reassoc", "contract", "nnan", "nsz"})
def expect(data, terms, span, work, sums):
    """Weigh rows among the components and add up what the next components need.

    ``data`` holds the rows, their mean, their weights, and which entries are multiplied; ``terms`` turns the products
    into log w_k + log p_k; ``sums`` gets their weighted sums, k x pairs. Returns the weighted log-likelihood, added to
    that of the rows before, which comes last in ``span``.
    """
    X, shift, weights, pairs = data
    entries, products, shares, found = work
    start, stop, likelihood = span
    batch, width, count = products.shape[1], X.shape[1], terms.shape[0]
    for first in range(start, stop, batch):
        rows = min(batch, stop - first)
        for r in range(rows):
            for j in range(width):
                entries[j, r] = X[first + r, j] - shift[j]
        for p in range(pairs.shape[1]):
            left, right = pairs[0, p], pairs[1, p]
            for r in range(batch):
                products[p, r] = entries[left, r] * entries[right, r]
        multiply(terms, products, shares)
        for r in range(batch):
            top = shares[0, r]
            for k in range(1, count):
                top = max(top, shares[k, r])
            total = 0.0
            for k in range(count):
                level = shares[k, r] - top
                value = np.exp(level) if level > NEGLIGIBLE else 0.0
                shares[k, r] = value
                total += value
            weight = weights[first + r] if r < rows else 0.0
            likelihood += weight * (top + np.log(total))
            for k in range(count):
                shares[k, r] *= weight / total
        multiply(shares, products.T, found)
        for k in range(count):
            for p in range(pairs.shape[1]):
                sums[k, p] += found[k, p]
    return likelihood


@dataclass(frozen=True)
class Mixture:
    """The components: shares, means, covariances as they are kept, and as matrices."""

    weights: Array
    means: Array
    kept: list[Any]
    whole: Array

    def attributes(self, covariance_type: str) -> dict[str, Any]:
        """The fitted attributes."""
        covariances = self.kept[0] if covariance_type == "tied" else np.array(self.kept)
        return {"weights_": self.weights, "means_": self.means, "covariances_": covariances}


@dataclass(frozen=True)
class ColumnMoments:
    """The weight of rows, and the mean and variance of every column."""

    weight: float
    mean: Array
    variances: Array

    @classmethod
    def of(cls, X: NDArray, weights: Array) -> "ColumnMoments":
        """Those of some rows."""
        return cls(float(weights.sum()), weighted_mean(X, weights / weights.sum()), least_variances(X, weights, 1.0))

    def with_rows(self, X: NDArray, weights: Array) -> "ColumnMoments":
        """Those of the rows so far and some more.

        >>> both = ColumnMoments.of(np.array([[0.0], [2.0]]), np.ones(2)).with_rows(np.array([[7.0]]), np.ones(1))
        >>> both.mean, both.variances.round(6)
        (array([3.]), array([8.666667]))
        """
        more = ColumnMoments.of(X, weights)
        share = more.weight / (self.weight + more.weight)
        apart = more.mean - self.mean
        variances = self.variances + share * (more.variances - self.variances) + share * (1 - share) * apart**2
        return ColumnMoments(self.weight + more.weight, self.mean + share * apart, variances)


class Moments:
    """The rows, and the sums over them that make components.

    Parameters
    ----------
    X, weights : arrays
        Rows and their weights.
    covariance_type : str
        The form of the covariances.
    floor : float
        Least variance, as a share of the columns' own.
    columns : Columns, optional
        Mean and variances of the columns where they are not those of X, which has some of the rows.
    """

    def __init__(
        self, X: NDArray, weights: Array, covariance_type: str, floor: float, columns: "ColumnMoments | None" = None
    ):
        self.X, self.weights = X if lie_on_device(X) else np.ascontiguousarray(X), weights
        self._type, self._form = covariance_type, FORMS[covariance_type]
        self.columns = ColumnMoments.of(X, weights) if columns is None else columns
        self._total = weights.sum()
        # Around the mean, so that squares lose no digits to it.
        self._shift, self._variances = self.columns.mean, self.columns.variances
        self.least = floor * self._variances
        width = X.shape[1]
        if covariance_type in ("full", "tied"):
            pairs = np.triu_indices(width + 1)
        else:
            every = np.arange(width + 1)
            pairs = np.concatenate([every, every[:-1]]), np.concatenate([every, np.full(width, width)])
        self._pairs = np.array(pairs)
        self._shares = shares_of(len(X))
        self._batch = int(np.clip(BATCH_BYTES // (8 * len(pairs[0])), 8, LARGEST_BATCH))

    def _piece(self, components: int) -> int:
        """Rows of a round, or of densities, between two looks at the clock, in whole batches."""
        products = max(4 * self._pairs.shape[1], 2 * self.X.shape[1] ** 2)  # two in a round; one with a matrix
        return max(1, PIECE // (components * (products + EXPONENTIAL) * self._batch)) * self._batch

    def long(self, components: int) -> bool:
        """Whether a round takes so long that it is worth a look at the clock."""
        return len(self.X) > self._piece(components)

    def some_rows(self, components: int) -> NDArray[np.intp]:
        """Rows from one end to the other, as many as there always is time for."""
        return np.linspace(0, len(self.X) - 1, self._piece(components)).astype(np.intp)

    def round(self, mixture: Mixture) -> tuple[float, Mixture]:
        """The mean log-likelihood of a mixture, and the mixture that the round makes of it."""
        likelihood, sums = self._expected(mixture)
        return likelihood, self._of_sums(sums)

    def step(self, mixture: Mixture, share: float) -> tuple[float, Mixture]:
        """As `round`, of sums to which these rows add a ``share`` and the mixture, as it is, the rest."""
        likelihood, sums = self._expected(mixture)
        return likelihood, self._of_sums(share / self._total * sums + (1 - share) * self._sums_of(mixture))

    def _sums_of(self, mixture: Mixture) -> Array:
        """The sums over a row that is drawn from the mixture, on average: what `_of_sums` would make it of."""
        width = self.X.shape[1]
        lines = []
        for weight, mean, whole in zip(mixture.weights, mixture.means - self._shift, mixture.whole, strict=True):
            square = np.ones((width + 1, width + 1))
            square[:width, :width] = whole + np.outer(mean, mean)
            square[:width, width] = mean
            lines.append(weight * square[tuple(self._pairs)])
        return np.array(lines)

    def _expected(self, mixture: Mixture) -> tuple[float, Array]:
        """The mean log-likelihood of a mixture, and the sums of products weighed among its components."""
        terms = self._terms(mixture)
        count, products = terms.shape

        def run(share: tuple[int, int]) -> tuple[float, Array]:
            first, last = share
            work = (
                np.ones((self.X.shape[1] + 1, self._batch)),
                np.empty((products, self._batch)),
                np.empty((count, self._batch)),
                np.empty((count, products)),
            )
            sums = np.zeros((count, products))
            data = self.X, self._shift, self.weights, self._pairs
            likelihood = 0.0
            for piece in slices(last, self._piece(count), first):
                check_stop()
                likelihood = expect(data, terms, (piece.start, piece.stop, likelihood), work, sums)
            return likelihood, sums

        threads = 1 + len(self.X) * terms.size // PRODUCTS_OF_THREAD
        found = parallel_map(run, self._shares, threads)
        sums = np.add.reduce([part for _, part in found])
        return float(sum(part for part, _ in found) / self._total), sums

    def _terms(self, mixture: Mixture) -> Array:
        """The coefficients of the products of entries in log w_k + log p_k, k x pairs."""
        width = self.X.shape[1]
        left, right = self._pairs
        out = np.empty((len(mixture.weights), len(left)))
        inverses, halves = inverse_roots(mixture.whole)
        for k, (mean, inverse, half) in enumerate(zip(mixture.means - self._shift, inverses, halves, strict=True)):
            precision = inverse @ inverse.T
            quadratic = np.empty((width + 1, width + 1))
            quadratic[:width, :width] = -0.5 * precision
            quadratic[:width, width] = quadratic[width, :width] = 0.5 * precision @ mean
            with np.errstate(divide="ignore"):
                weight = np.log(mixture.weights[k])
            quadratic[width, width] = weight - 0.5 * (mean @ precision @ mean + width * LOG_TWO_PI) - half
            out[k] = np.where(left == right, 1.0, 2.0) * quadratic[left, right]
        return out

    def _of_sums(self, sums: Array) -> Mixture:
        """Components from the weighted sums of products."""
        width = self.X.shape[1]
        left, right = self._pairs
        scatters, means, totals = [], [], []
        for line in sums:
            square = np.zeros((width + 1, width + 1))
            square[left, right] = square[right, left] = line
            total = max(square[width, width], np.finfo(float).tiny)
            mean = square[:width, width] / total
            totals.append(total)
            means.append(mean)
            scatters.append(square[:width, :width] / total - np.outer(mean, mean))
        return self._made(np.array(totals), np.array(means) + self._shift, scatters)

    def _made(self, totals: Array, means: Array, scatters: list[Array]) -> Mixture:
        shares = totals / totals.sum()
        if self._type == "tied":
            pooled = self._form.covariance(np.einsum("k,kij->ij", shares, np.array(scatters)), self.least)
            kept = [pooled] * len(means)
        else:
            kept = [self._kept(scatter) for scatter in scatters]
        return self._mixture(shares, means, kept)

    def _kept(self, scatter: Array) -> Any:
        check_stop()
        return self._form.covariance(scatter, self.least)

    def _mixture(self, shares: Array, means: Array, kept: list[Any]) -> Mixture:
        return Mixture(shares, means, kept, np.stack([self._form.whole(one, means.shape[1]) for one in kept]))

    def of_cells(self, labels: NDArray, centres: Array) -> Mixture:
        """Components from the rows around centres; one without rows stays there, as wide as all rows together."""
        everything = cache(lambda: self._scatter(slice(None))[1])

        def cell(k: int) -> tuple[float, Array, Array]:
            inside = labels == k
            total = self.weights[inside].sum()
            mean, scatter = self._scatter(inside) if total > 0 else (centres[k], everything())
            return max(total, 1.0), mean, scatter

        totals, means, scatters = zip(*parallel_map(cell, range(len(centres))), strict=True)
        return self._made(np.array(totals), np.array(means), list(scatters))

    def at_centres(self, centres: Array) -> Mixture:
        """Components of equal shares at the centres, with the columns' variances: for them no row is looked at."""
        kept = self._form.covariance(np.diag(self._variances), self.least)
        return self._mixture(np.full(len(centres), 1 / len(centres)), centres, [kept] * len(centres))

    def _scatter(self, inside: Any) -> tuple[Array, Array]:
        X, weights = self.X[inside], self.weights[inside]
        return interruptible_call(lambda: mean_and_scatter(X, weights), len(X))

    def collapsed(self, mixture: Mixture) -> int | None:
        """A component that has lost its rows: fewer than one, or all variances at the floor; None if all are well."""
        if len(mixture.weights) == 1:
            return None
        at_floor = 2 * np.array(inverse_roots(mixture.whole)[1]) <= np.log(self.least).sum() + 1e-6 * len(self.least)
        lost = (mixture.weights * self._total < 1.0) | (at_floor if self._type != "tied" else False)
        return int(np.flatnonzero(lost)[0]) if lost.any() else None

    def with_component_at_worst(self, mixture: Mixture, lost: int) -> Mixture:
        """The mixture with one component around the least likely row, as wide as the rows are on average."""
        shares = log_densities(self.X, mixture.means, mixture.whole) + np.log(mixture.weights)
        worst = int(shares.max(axis=1).argmin())
        totals, means = mixture.weights.copy(), mixture.means.copy()
        totals[lost], means[lost] = 1 / len(totals), self.X[worst]
        scatters = list(mixture.whole)
        scatters[lost] = self._scatter(slice(None))[1] / len(totals)
        return self._made(totals, means, scatters)
