"""Rounds of a kernel that learns its metric: fit, judge, take the gradients of f, and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from empirisk.fits.fit import Fit, SolverRun
from empirisk.fits.leave_one_out import left_out_diagonal
from empirisk.fits.passes import merged
from empirisk.linalg.blocks import slices
from empirisk.linalg.hashes import row_hashes
from empirisk.linalg.threads import parallel_map
from empirisk.maps.implicit import GramDesign, in_double
from empirisk.problem import Array, Point, Problem, on_design

if TYPE_CHECKING:
    from empirisk.projections.learned_kernel import LearnedKernel

#: Rows up to which a ridge problem is judged by leave-one-out: its inverse costs three fits.
LEAVE_ONE_OUT_ROWS = 2000
#: One of so many different rows is held out where leave-one-out has no closed form or costs too much.
FOLDS = 5
#: The inverse of a smaller number is none.
VANISHING = 1e-300
#: Rows below which nothing is held out, and the metric stays Euclidean.
FEWEST = 20
#: Rows from which the metric is learned: of more, so many are drawn, and the last fit alone is on all of them.
METRIC_ROWS = 8192
#: Rows at which gradients are taken: a mean of d x d matrices over more of them hardly changes.
GRADIENT_ROWS = 4096
#: Rows of a block of the gradients.
ROWS = 256
#: Rounds without a smaller loss after which the others are not tried.
STALL_ROUNDS = 2


@dataclass
class MetricRounds:
    """Fit, judge, learn the metric from the gradients, and again.

    Attributes
    ----------
    kernel : LearnedKernel
        Fitted, with the metric to begin with.
    given : list of Problem
        The problems of the machine.
    run : SolverRun
        Solves them in the time for it.
    losses : list of float
        The mean loss of each round on rows that were not learned from.
    chosen : int
        The round with the smallest.
    stopped : str
        Why the rounds were not let finish, else "".
    """

    kernel: LearnedKernel
    given: list[Problem]
    run: SolverRun

    def __post_init__(self):
        # Equal rows as one, in an order by content: a row of weight 2 is the row twice, and is left out whole.
        self.problems = on_fewer_rows(merged(self.given, always=True), METRIC_ROWS)
        self.losses: list[float] = []
        self.chosen, self.stopped = 0, ""

    def learn(self) -> LearnedKernel:
        """The kernel of the best round."""
        judge = self._judge()
        best = current = self.kernel
        rows = np.unique(np.concatenate([problem.places for problem in self.problems]))  # those that count
        X = source_of(self.problems[0])[rows]
        while judge is not None:
            trained, fits, loss = judge(behind(current, self.problems))
            self.stopped = next((fit.certificate.status for fit in fits if fit.cut), "")
            if self.stopped and self.losses:
                break
            self.losses.append(loss)
            if loss < self.losses[self.chosen] or len(self.losses) == 1:
                self.chosen, best = len(self.losses) - 1, current
            tried = len(self.losses) - 1
            if self.stopped or tried == self.kernel.rounds or tried - self.chosen == STALL_ROUNDS:
                break
            root = next_root(current, trained, [fit.point for fit in fits])
            if root is None:  # f is constant
                break
            current = self.kernel.with_root(root, X)
        return best

    def _judge(self) -> Judge | None:
        """How rounds are judged; None where there are too few rows to do so."""
        first = self.problems[0]
        if len(first.y) < FEWEST or not self.kernel.rounds:
            return None
        exact = all(problem.loss.quadratic and problem.penalty.ridge for problem in self.problems)
        if exact and max(len(problem.y) for problem in self.problems) <= LEAVE_ONE_OUT_ROWS:
            return self._by_leaving_one_out
        held_out = _held_out(self.problems)
        return lambda problems: self._by_held_out_rows(problems, held_out)

    def _by_leaving_one_out(self, problems: list[Problem]) -> tuple[list[Problem], list[Fit], float]:
        fits = self.run(problems)
        diagonals: dict[int, Array] = {}
        losses = []
        for problem, fit in zip(problems, fits, strict=True):
            if id(problem.design) not in diagonals:
                diagonals[id(problem.design)] = left_out_diagonal(problem)
            residuals = fit.point.w / diagonals[id(problem.design)]
            losses.append(problem.with_C(1.0).loss_sum(problem.y - residuals))
        return problems, fits, self._mean(losses, problems)

    def _by_held_out_rows(
        self, problems: list[Problem], held_out: NDArray[np.bool_]
    ) -> tuple[list[Problem], list[Fit], float]:
        parts = [(np.flatnonzero(~out), np.flatnonzero(out)) for out in (held_out[p.places] for p in problems)]
        trained = sharing(problems, [kept for kept, _ in parts])
        fits = self.run(trained)
        judged = [p.part(out, kept).with_C(1.0) for p, (kept, out) in zip(problems, parts, strict=True)]
        losses = [each.loss_sum(each.predict(fit.point)) for each, fit in zip(judged, fits, strict=True)]
        return trained, fits, self._mean(losses, judged)

    def _mean(self, losses: list[float], problems: list[Problem]) -> float:
        total = sum(float(np.sum(problem.weights)) for problem in problems)
        return float(np.nan_to_num(sum(losses) / max(total, np.finfo(float).tiny), nan=np.inf))


#: Problems on a kernel: those that were solved, their fits, and the mean loss on rows that were not learned from.
Judge = Callable[[list[Problem]], tuple[list[Problem], list[Fit], float]]


def source_of(problem: Problem) -> NDArray:
    """All rows that the machine was given, in float64."""
    return in_double(cast(GramDesign, problem.design).root.source)


def behind(kernel: LearnedKernel, problems: list[Problem]) -> list[Problem]:
    """The problems with their rows behind a kernel; those of the same rows share a design."""
    old = cast(GramDesign, problems[0].design).root
    return on_design(GramDesign(kernel, kernel.prepare(in_double(old.source)), old.source), problems)


def sharing(problems: list[Problem], kept: list[NDArray[np.intp]]) -> list[Problem]:
    """The parts of the problems on some of their rows; those that shared a design and weights share them again."""
    found: dict[int, Problem] = {}
    out = []
    for problem, rows in zip(problems, kept, strict=True):
        first = found.setdefault(id(problem.design), problem.part(rows))
        out.append(replace(first, y=problem.y[rows], loss=problem.loss))
    return out


def on_fewer_rows(problems: list[Problem], most: int) -> list[Problem]:
    """The problems on so many of the different rows, where there are more; of each class its share."""
    ranks, sizes, count = _ranks(problems)
    if count <= most:
        return problems
    chosen = ranks < np.maximum(most * sizes / count, FEWEST)
    return sharing(problems, [np.flatnonzero(chosen[problem.places]) for problem in problems])


def _held_out(problems: list[Problem]) -> NDArray[np.bool_]:
    """One of `FOLDS` different rows by the order of their hashes: of classes, of those of each class."""
    return _ranks(problems)[0] % FOLDS == FOLDS - 1


def _ranks(problems: list[Problem]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The place of each row that counts among the different ones, by the order of their hashes; and how many there are.

    Of classes, the place in its own class and the size of that; then the sum over all classes.
    """
    X = source_of(problems[0])
    groups = np.zeros(len(X), dtype=np.int64)
    for problem in problems:
        if problem.classes or problem.loss.margin_form:
            known = np.unique(problem.y)
            groups *= len(known) + 1
            groups[problem.places] += 1 + np.searchsorted(known, problem.y)
            groups = np.unique(groups, return_inverse=True)[1].ravel()
    rows, hashes = np.unique(np.concatenate([problem.places for problem in problems])), row_hashes(X)
    ranks, sizes, count = np.zeros(len(X), dtype=np.int64), np.zeros(len(X), dtype=np.int64), 0
    for group in np.unique(groups[rows]):
        inside = rows[groups[rows] == group]
        ranks[inside] = np.unique(hashes[inside], return_inverse=True)[1].ravel()
        sizes[inside] = ranks[inside].max() + 1
        count += int(sizes[inside[0]])
    return ranks, sizes, count


def next_root(kernel: LearnedKernel, problems: list[Problem], points: list[Point]) -> Array | None:
    """The root of the mean outer product of the gradients, scaled to the trace of the unit matrix."""
    # Targets in units of their standard deviation: several count alike. Those of the same rows share the slopes.
    outputs: dict[int, tuple[Problem, list[Array]]] = {}
    for problem, point in zip(problems, points, strict=True):
        deviation = _deviation(problem)
        if deviation > 0:  # targets that are all equal teach nothing
            scaled = point.w.reshape(len(point.w), -1) / deviation
            outputs.setdefault(id(problem.design), (problem, []))[1].append(scaled)
    if not outputs:
        return None
    total = np.sum([_outer_products(kernel, first, np.hstack(own)) for first, own in outputs.values()], axis=0)
    root = kernel.root_
    # By the chain rule: f is learned in the coordinates of x times the root.
    total = root[:, None] * total * root if root.ndim == 1 else root @ total @ root
    trace = float(np.trace(total))
    if not VANISHING < trace < np.inf:
        return None
    total *= len(total) / trace
    if kernel.metric == "diagonal":
        return np.sqrt(np.maximum(total.diagonal(), 0.0))
    values, vectors = np.linalg.eigh((total + total.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return (root + root.T) / 2


def _deviation(problem: Problem) -> float:
    """The standard deviation of the targets of a regression, 0 where it is rounding; 1 for margins and classes."""
    if problem.classes or problem.loss.margin_form:
        return 1.0
    share = problem.weights / problem.weights.sum()
    found = float(share @ (problem.y - share @ problem.y) ** 2) ** 0.5
    return found if found > 16 * np.finfo(float).eps * float(np.abs(problem.y).max()) else 0.0


def _outer_products(kernel: LearnedKernel, problem: Problem, coefficients: Array) -> Array:
    """sum_i c_i g_i g_i' / sum_i c_i over the outputs, g the gradients of f in the coordinates of the kernel."""
    source = source_of(problem)[problem.places]
    Z = kernel._projected(source)
    items, weights = kernel.kernel_.prepare(Z), problem.weights / problem.weights.sum()
    rows = np.arange(len(Z))
    if len(Z) > GRADIENT_ROWS:
        rows = np.sort(np.argsort(row_hashes(source), kind="stable")[:GRADIENT_ROWS])

    def part(block: slice) -> Array:
        chosen = rows[block]
        slopes = np.asarray(kernel.kernel_.radial_slopes(items[chosen], items), dtype=np.float64)
        found = np.zeros((Z.shape[1], Z.shape[1]))
        for own in coefficients.T:
            gradients = (slopes @ own)[:, None] * Z[chosen] - slopes @ (own[:, None] * Z)
            found += gradients.T @ (weights[chosen, None] * gradients)
        return found

    return np.sum(parallel_map(part, slices(len(rows), ROWS)), axis=0)
