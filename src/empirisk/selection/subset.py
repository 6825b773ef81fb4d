"""The best subset of columns for least squares (l0), by branch and bound, with the proof that no other is better."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from empirisk import state
from empirisk.certificate import Certificate
from empirisk.contract.arguments import check_count, check_time
from empirisk.contract.inputs import Array, as_numbers, check_size, check_weights
from empirisk.contract.progress import warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.linalg.compiled import plain, plain_loop
from empirisk.names import Estimator
from empirisk.selection.column_choice import ColumnSelector
from empirisk.settings import require
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.validation import validate_data

SLICE = 20_000  # nodes between two looks at the deadline: about a hundredth of a second
DEPENDENT = 1e-6  # singular values below this share of the largest are those of dependent columns
CONSTANT = 1e-13  # columns whose deviations are below this share of their values are constant
SMALLEST = 1e-6  # of the sum of squares of a constant: relative gaps are measured by no less, as for every certificate
ROUNDING = 1e-13  # of sum_i c_i y_i^2 around the mean, by which sums of squares may be off


@plain
def descend(numbers, places, level, t, left):
    """Make the level of child t, which drops the t-th free column and may drop ``left`` of those after it."""
    inverse, weights, rises, squares = numbers
    order, columns, counts, alive = places
    pivot, deeper, size = order[level, t], level + 1, counts[level, 0] - t - 1
    squares[deeper] = squares[level] + rises[level, pivot]
    for j in range(alive.shape[1]):
        alive[deeper, j] = alive[level, j]
    alive[deeper, columns[level, pivot]] = False
    for a in range(size):
        old = order[level, t + 1 + a]
        ratio = inverse[level, old, pivot] / inverse[level, pivot, pivot]
        columns[deeper, a] = columns[level, old]
        for b in range(size):
            other = order[level, t + 1 + b]
            inverse[deeper, a, b] = inverse[level, old, other] - ratio * inverse[level, pivot, other]
        rise = 0.0
        for o in range(weights.shape[2]):
            weights[deeper, a, o] = weights[level, old, o] - ratio * weights[level, pivot, o]
            rise += weights[deeper, a, o] ** 2
        rises[deeper, a] = rise / inverse[deeper, a, a] if inverse[deeper, a, a] > 0 else 0.0
        place = a  # insertion into the falling order
        while place > 0 and rises[deeper, order[deeper, place - 1]] < rises[deeper, a]:
            order[deeper, place] = order[deeper, place - 1]
            place -= 1
        order[deeper, place] = a
    counts[deeper, 0], counts[deeper, 1] = size, size - left


@plain_loop
def explore(numbers, places, where, best, chosen, limits):
    """Visit nodes of the search tree, depth first, from where it was left; returns how many.

    A node has dropped some columns, keeps some for good, and may drop those that are free. ``numbers`` holds, for each
    level, the inverse Gram matrix among the free columns, their coefficients, what dropping each raises the sum of
    squares by,  rise_i = sum_o w_io^2 / inverse_ii,  and that sum; to drop more columns raises it at least as much.
    ``places`` holds the free columns by falling rise, which columns they are, their number and the next child, and all
    columns that are not dropped. Child t drops the t-th free column, keeps those before it for good, and frees those
    after it: where rises are large, bounds are good, and the many free columns do not matter. ``where`` holds the level
    and the number of drops in all; ``limits`` the share of the best and the rounding below it at which nodes are left
    alone, and the most nodes to visit.
    """
    rises, squares = numbers[2], numbers[3]
    order, columns, counts, alive = places
    visited = 0
    while where[0] >= 0 and visited < limits[2]:
        level = where[0]
        left, t = where[1] - level, counts[level, 1]
        if t < 0 or squares[level] + rises[level, order[level, t]] >= best[0] * limits[0] - limits[1]:
            where[0] -= 1  # the children that are left have larger bounds
            continue
        counts[level, 1] = t - 1
        visited += 1
        if left > 1:
            descend(numbers, places, level, t, left - 1)
            where[0] = level + 1
            continue
        pivot = order[level, t]
        best[0] = squares[level] + rises[level, pivot]
        for j in range(len(chosen)):
            chosen[j] = alive[level, j]
        chosen[columns[level, pivot]] = False
    return visited


def least_squares(columns: Array, targets: Array) -> Array:
    """The coefficients of least norm for columns of unit length, dependent up to `DEPENDENT` as in the bounds.

    Along nearly dependent columns coefficients as large as 1e12 would cancel, and the sum of squares be rounding.
    """
    return np.asarray(np.linalg.lstsq(columns, targets, rcond=DEPENDENT)[0], dtype=np.float64)


class Triangle:
    """A least squares problem as the triangle R of X = QR, which keeps more digits than X'X.

    Parameters
    ----------
    columns : array, n x d
        The columns, of unit length.
    targets : array, n x outputs
        What they are to explain.
    """

    def __init__(self, columns: Array, targets: Array):
        count = columns.shape[1]
        whole = np.asarray(np.linalg.qr(np.column_stack([columns, targets]), mode="r"))
        self.columns, self.targets = whole[:, :count], whole[:, count:]
        self.gram, self.products = self.columns.T @ self.columns, self.columns.T @ self.targets
        self.total = float(np.sum(self.targets**2))

    def squares(self, chosen: list[int]) -> float:
        """The least sum of squares with some columns."""
        part = self.columns[:, chosen]
        return float(np.sum((self.targets - part @ least_squares(part, self.targets)) ** 2))

    def with_one_more(self, columns: list[int]) -> Array:
        """The least sum of squares with some columns and each other one; infinite for those that depend on them."""
        block, cross = self.gram[np.ix_(columns, columns)], self.gram[columns]
        solved = np.linalg.lstsq(block, np.column_stack([self.products[columns], cross]), rcond=DEPENDENT**2)[0]
        fitted, explained = solved[:, : self.products.shape[1]], solved[:, self.products.shape[1] :]
        left = np.diag(self.gram) - np.einsum("kj,kj->j", cross, explained)
        gained = ((self.products - cross.T @ fitted) ** 2).sum(axis=1)
        squares = self.total - float(np.sum(fitted * self.products[columns]))
        apart = left > DEPENDENT**2
        return np.where(apart, squares - gained / np.where(apart, left, 1.0), np.inf)


class BranchAndBound:
    """The search tree of branch and bound: the levels of the path to the node at hand, and the best subset so far.

    Parameters
    ----------
    problem : Triangle
        The problem.
    size : int
        Columns of a subset, fewer than there are.
    tol : float
        Share of the best sum of squares by which another subset may still be better at the end.
    stop : callable
        Whether the time is over.
    """

    def __init__(self, problem: Triangle, size: int, tol: float, stop: Callable[[], bool]):
        count, outputs = problem.products.shape
        drops = count - size
        require(8 * drops * count * (count + outputs), f"A search among {count} columns", "select by l1 first")
        left, sizes, right = np.linalg.svd(problem.columns, full_matrices=True)
        sizes = np.append(sizes, np.zeros(count - len(sizes)))
        self.dependent = bool(sizes[-1] <= DEPENDENT * sizes[0])
        ridge = (DEPENDENT * sizes[0]) ** 2 if self.dependent else 0.0
        seen = left.T @ problem.targets
        seen = np.vstack([seen, np.zeros((max(count - len(seen), 0), outputs))])
        inverse = (right.T / (sizes**2 + ridge)) @ right
        fitted = right.T @ ((sizes / (sizes**2 + ridge))[:, None] * seen[:count])
        rises = (fitted**2).sum(axis=1) / np.diag(inverse)
        accuracy = max(ROUNDING, np.finfo(float).eps * sizes[0] / np.sqrt(sizes[-1] ** 2 + ridge))
        self._share, self._floor = 1 - tol, accuracy * problem.total
        self._inverse = np.zeros((drops, count, count))
        self._weights = np.zeros((drops, count, outputs))
        self._order, self._columns = np.zeros((2, drops, count), dtype=np.int64)
        self._rises, self._squares = np.zeros((drops, count)), np.zeros(drops)
        self._counts, self._alive = np.zeros((drops, 2), dtype=np.int64), np.zeros((drops, count), dtype=np.bool_)
        self._inverse[0], self._weights[0], self._rises[0] = inverse, fitted, rises
        self._order[0], self._columns[0] = np.argsort(-rises, kind="stable"), np.arange(count)
        self._counts[0], self._alive[0] = (count, size), True
        unseen = ridge / (sizes**2 + ridge) if ridge else np.zeros(count)
        self._squares[0] = np.sum(unseen[:, None] * seen[:count] ** 2) + np.sum(seen[count:] ** 2)
        self._where = np.array([0, drops], dtype=np.int64)
        start = swapped(problem, size, stop)
        self.chosen = np.isin(np.arange(count), start)
        self._best = np.array([problem.squares(start)])
        self.nodes = 0

    @property
    def finished(self) -> bool:
        """Whether nothing is left that could be better."""
        return self._where[0] < 0

    def search(self, nodes: int) -> None:
        """Go on for some nodes."""
        numbers = self._inverse, self._weights, self._rises, self._squares
        places = self._order, self._columns, self._counts, self._alive
        limits = self._share, self._floor, float(nodes)
        self.nodes += explore(numbers, places, self._where, self._best, self.chosen, limits)

    @property
    def bound(self) -> float:
        """What no subset is below: the best so far, or the next child of a level of the path."""
        least = self._best[0] * self._share - self._floor
        for level in range(self._where[0] + 1):
            t = self._counts[level, 1]
            if t >= 0:
                least = min(least, self._squares[level] + self._rises[level, self._order[level, t]])
        return max(float(least), 0.0)


def swapped(problem: Triangle, size: int, stop: Callable[[], bool]) -> list[int]:
    """A good subset to begin with: columns added greedily, then exchanged one by one as long as that helps.

    Where nothing is left to explain, the first columns fill it up.
    """
    chosen, least, floor = [], problem.total, ROUNDING * problem.total
    for _ in range(size):
        options = problem.with_one_more(chosen)
        options[chosen] = np.inf
        new = int(np.argmax(options <= options.min() + floor))  # the first of those that differ by rounding
        if least <= floor or options[new] == np.inf:
            new = next(j for j in range(len(options)) if j not in chosen)
        chosen, least = [*chosen, new], min(least, float(options[new]))
    place = since = 0
    while since < size and least > floor and not stop():
        others = [*chosen[:place], *chosen[place + 1 :]]
        options = problem.with_one_more(others)
        options[chosen] = np.inf
        new = int(np.argmax(options <= options.min() + floor))
        since += 1
        if options[new] < least - floor:
            chosen, least, since = [*others[:place], new, *others[place:]], float(options[new]), 0
        place = (place + 1) % size
    return chosen


@dataclass(eq=False, repr=False)
class BestSubset(ColumnSelector, Estimator):
    """The k columns with the least sum of squares of all subsets of k columns (l0), with the proof.

        minimise  sum_i c_i (y_i - <w, x_i> - b)^2    over w with at most k entries that are not zero

    Branch and bound: columns are dropped one by one from all of them, and a subset is at best as good as a larger one
    that holds it. That proves the best of a billion subsets in a few thousand nodes where columns differ in use; among
    thirty to forty columns it ends in seconds, as a rule. A search that is stopped keeps the best subset so far, and
    its certificate says how much better another could be.

    Parameters
    ----------
    n_features_to_select : int or None
        The number k of columns; None for half of them, as in scikit-learn's selectors.
    fit_intercept : bool
        Whether b is fitted; else it is 0.
    tol : float
        The search ends when no subset is better by more than this share.
    max_iter : int
        Most nodes.
    max_time : float or None
        Seconds after which the best so far is kept.

    Attributes
    ----------
    support_ : array of bool
        The columns selected; fewer than k where the others are constant.
    coef_, intercept_ : arrays
        The least squares fit with them; zero for columns that are not selected.
    certificate_ : Certificate
        ``primal`` is the sum of squares, ``dual`` what that of no subset is below, ``iterations`` the nodes.
    n_iter_ : int
        The nodes.
    stopped_ : str
        Why it ended: "converged", "max_iter", "max_time" or "interrupted".

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * X[:, 11] + 0.1 * np.random.default_rng(1).normal(size=100)
    >>> found = er.selection.BestSubset(3).fit(X, y)
    >>> np.flatnonzero(found.support_), found.certificate_.converged
    (array([ 3,  7, 11]), True)
    >>> found.transform(X).shape
    (100, 3)
    """

    _state = state.State(
        n_features_in_=state.size("columns"),
        support_=state.array("b", "columns"),
        coef_=state.either(state.array("f8", "columns"), state.array("f8", None, "columns")),
        intercept_=state.anything(),
        certificate_=state.part(Certificate),
        n_iter_=state.whole(),
        stopped_=state.text(),
        sizes={"width": lambda its: int(its["support_"].sum())},
    )

    coef_: Array = field(init=False)
    support_: NDArray[np.bool_] = field(init=False)
    certificate_: Certificate = field(init=False)

    n_features_to_select: int | None = None
    _: KW_ONLY
    fit_intercept: bool = True
    tol: float = 1e-9
    max_iter: int = 10_000_000
    max_time: float | None = None

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BestSubset:
        """Find the best subset, and prove it.

        Parameters
        ----------
        X : array, n x d
            The rows.
        y : array of n, or n x outputs
            The numbers to predict; of several outputs the sum of squares is that of all.
        sample_weight : array of n, optional
            Weights of the rows; weight 2 equals the row twice.
        """
        check_count("max_iter", self.max_iter)
        check_time(self.max_time)
        if not 0 <= self.tol < 1:
            raise EmpiriskError(f"tol={self.tol!r} must be a share from 0 to below 1.")
        table, target = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        check_size("X", table)
        check_size("y", as_numbers(target))
        weights = check_weights(sample_weight, len(table))
        size = self._count(table.shape[1])
        deadline = Deadline(self.max_time)
        with interruptible():
            self._search(table, np.asarray(target, dtype=np.float64), weights, size, deadline)
        warn_if_unfinished(self, self.stopped_, f"{self.n_iter_} nodes")
        return self

    def _search(self, table: Array, target: Array, weights: Array, size: int, deadline: Deadline) -> None:
        roots = np.sqrt(weights)[:, None]
        means = [np.average(part, axis=0, weights=weights) * self.fit_intercept for part in (table, target)]
        left, right = roots * (table - means[0]), (roots * (target - means[1]).reshape(len(target), -1))
        lengths, sizes = (np.sqrt((part**2).sum(axis=0)) for part in (left, roots * table))
        useful = np.flatnonzero(lengths > CONSTANT * sizes)
        self.support_ = np.zeros(table.shape[1], dtype=bool)
        self.n_iter_, self.stopped_, reason, bound = (
            0,
            Ending.CONVERGED,
            "every column that is not constant is taken",
            np.inf,
        )
        if len(useful) <= size:
            self.support_[useful if len(useful) else [0]] = True
        else:
            tree = BranchAndBound(Triangle(left[:, useful] / lengths[useful], right), size, self.tol, deadline)
            while not tree.finished and tree.nodes < self.max_iter and not deadline():
                tree.search(min(SLICE, self.max_iter - tree.nodes))
            self.support_[useful[tree.chosen]] = True
            self.n_iter_, bound = tree.nodes, tree.bound
            self.stopped_ = Ending.CONVERGED if tree.finished else deadline.reason or Ending.MAX_ITER
            reason = "a subset is at best as good as a larger one that holds it"
            reason += f"; columns are dependent, and bounds hold up to a ridge of {DEPENDENT**2:g}" * tree.dependent
        kept = np.flatnonzero(self.support_)
        sizes = np.maximum(lengths[kept], np.finfo(float).tiny)
        fitted = least_squares(left[:, kept] / sizes, right) / sizes[:, None]
        coefs = np.zeros((right.shape[1], table.shape[1]))
        coefs[:, kept] = fitted.T
        self.coef_ = coefs if target.ndim == 2 else coefs[0]
        self.intercept_ = means[1] - self.coef_ @ (means[0] if self.fit_intercept else np.zeros(table.shape[1]))
        primal, total = (float(np.sum(part**2)) for part in (right - left[:, kept] @ fitted, right))
        self._certify(primal, min(bound, primal), total, reason, deadline)

    def _certify(self, primal: float, dual: float, total: float, reason: str, deadline: Deadline) -> None:
        gap = primal - dual
        self.certificate_ = Certificate(
            primal=primal,
            dual=dual,
            gap=gap,
            relative_gap=gap / max(primal, SMALLEST * total, np.finfo(float).tiny),
            converged=self.stopped_ == Ending.CONVERGED,
            status=self.stopped_,
            solver="branch_and_bound",
            reason=reason,
            iterations=self.n_iter_,
            seconds=time.perf_counter() - deadline.start,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
