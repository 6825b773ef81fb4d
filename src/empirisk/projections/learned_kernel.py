"""A kernel that learns its metric with the machine: distances count along the directions in which f changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import kernels, state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.fit import Fit, SolverRun
from empirisk.fits.leave_one_out import left_out_diagonal
from empirisk.fits.passes import merged
from empirisk.kernels.base import Kernel, require_whole, text
from empirisk.kernels.items import as_matrix
from empirisk.linalg.blocks import slices
from empirisk.linalg.hashes import row_hashes
from empirisk.linalg.threads import parallel_map
from empirisk.maps.implicit import GramDesign, in_double
from empirisk.problem import Array, Point, Problem
from empirisk.stop import CUT, closing, requested

#: Kernels by name: their width follows the metric, the median distance of every round.
BY_NAME: dict[str, Callable[[], Kernel]] = {
    "laplacian": lambda: kernels.Laplacian("median", norm=2),
    "gaussian": lambda: kernels.Gaussian("median"),
}
METRICS = ("full", "diagonal")
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
#: The share of the time in which the metric is learned; the rest is for the last fit.
LEARNING_SHARE = 0.6


class LearnedKernel(Kernel):
    """A kernel of the distance |x - z|_M = sqrt((x - z)' M (x - z)) whose metric M is learned with the machine.

    A machine in whose slot ``features`` this stands is fitted with M = 1; the mean outer product of the gradients of
    its function f over the rows,

        M  =  sum_i c_i  grad f(x_i) grad f(x_i)'  /  sum_i c_i,      scaled to  trace M = columns,

    says along which directions f changes. With it as the metric the machine is fitted again, and so on: a recursive
    feature machine. Of all rounds, the first one included, that with the smallest loss on rows that were not
    learned from is kept: leave-one-out for the squared loss with the l2 penalty, where rows are few, else a fifth
    of the rows. Of more than 8 192 rows so many are drawn for the rounds. The last fit is on all rows, and certified.
    Columns should be of similar size to begin with: standardise them. Where all rows are too many for a kernel,
    ``maps.Nystrom(LearnedKernel())`` learns the metric in the same way and is fitted on landmarks.

    Parameters
    ----------
    kernel : {"laplacian", "gaussian"} or Kernel
        A kernel of the Euclidean distance: ``Gaussian``, ``Laplacian(norm=2)``, or sums, products, powers and
        exponentials of them. A name stands for the kernel with ``width="median"``.
    rounds : int
        How many times the metric is learned at most.
    metric : {"full", "diagonal"}
        "full" turns and stretches the rows; "diagonal" has a weight for each column alone.

    Attributes
    ----------
    metric_ : array, columns x columns
        The metric of the round that was kept; the unit matrix before anything is learned.
    history_ : dict of arrays
        "loss": the mean loss of every round on rows that were not learned from.
    n_rounds_ : int
        The round that was kept; 0 is the kernel as it was given.
    kernel_ : Kernel
        The kernel on the rows times the root of the metric.
    stopped_ : str
        Why the rounds ended where they were not let finish, else "".

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models. Science, 2024.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> machine = er.Ridge(C=10.0, features=er.LearnedKernel("gaussian")).fit(X, np.sin(2 * X[:, 0]))
    >>> machine.features_.metric_.diagonal().argmax(), machine.certificate_.converged
    (np.int64(0), True)
    """

    _state = state.State(
        kernel=state.either(state.text(*BY_NAME), state.part(Kernel)),
        metric=state.text(*METRICS),
        kernel_=state.optional(state.part(Kernel, columns="columns")),
        root_=state.optional(state.either(state.array("f8", "columns"), state.array("f8", "columns", "columns"))),
        history_=state.optional(state.mapping(state.array("f8", None))),
        n_rounds_=state.optional(state.whole()),
        stopped_=state.optional(state.text()),
    )

    def __init__(self, kernel: str | Kernel = "laplacian", rounds: int = 5, metric: str = "full"):
        self.kernel = kernel
        self.rounds = rounds
        self.metric = metric

    # --- the kernel -------------------------------------------------------------------------------------------------

    def _base(self) -> Kernel:
        """The kernel that computes: the fitted copy if there is one."""
        if hasattr(self, "kernel_"):
            return self.kernel_
        if isinstance(self.kernel, str) and self.kernel in BY_NAME:
            return BY_NAME[self.kernel]()
        return kernels.find(self.kernel)

    @property
    def takes(self) -> str:
        return self._base().takes

    @property
    def constant_diagonal(self) -> bool:
        return self._base().constant_diagonal

    @property
    def certain(self) -> bool:
        return self._base().certain

    def check(self):
        require_whole(self.rounds, "rounds", 0)
        if self.metric not in METRICS:
            raise EmpiriskError(f"metric={self.metric!r} must be one of {list(METRICS)}.")
        base = self._base()
        base.check()
        if base.takes != "vectors":
            raise Unsuitable(f"kernel={self.kernel!r} compares {base.takes}, and a metric is one of vectors.")

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        X = as_matrix(X, False)
        self.root_ = np.ones(X.shape[1])
        self.kernel_ = clone(self._base()).fit(X)
        self.kernel_.radial_slopes(*[self.kernel_.prepare(X[:1])] * 2)  # it says so if it has no metric
        return self

    def _projected(self, X: NDArray) -> NDArray:
        """The rows times the root of the metric: their Euclidean distances are those of the metric."""
        root = getattr(self, "root_", None)
        if root is None:
            return X
        if X.shape[1] != len(root):
            raise EmpiriskError(f"X has {X.shape[1]} columns, and the metric was learned from {len(root)}.")
        root = root.astype(X.dtype, copy=False)
        return X * root if root.ndim == 1 else X @ root

    def prepare(self, X):
        self.check()
        return self._base().prepare(self._projected(as_matrix(X, False)))

    def between(self, A, B=None, out=None):
        return self._base().between(A, B, out)

    def formula(self, A, B):
        return self._base().formula(A, B)

    def expression(self, A):
        return self._base().expression(A)

    def diagonals(self, A):
        return self._base().diagonals(A)

    def term_diagonals(self, A):
        return self._base().term_diagonals(A)

    def pack(self, A):
        return self._base().pack(A)

    def __repr__(self) -> str:
        changed = [text(self.kernel)] if self.kernel != "laplacian" else []
        changed += [f"{name}={getattr(self, name)!r}" for name, usual in (("rounds", 5), ("metric", "full"))
                    if getattr(self, name) != usual]  # fmt: skip
        return f"LearnedKernel({', '.join(changed)})"

    # --- what it learns -----------------------------------------------------------------------------------------------

    @property
    def metric_(self) -> Array:
        """M."""
        if not hasattr(self, "root_"):
            raise AttributeError("the metric is learned with a machine; fit one with this kernel as features first.")
        return np.diag(self.root_**2) if self.root_.ndim == 1 else self.root_ @ self.root_

    @property
    def cut(self) -> str | None:
        """Why the rounds were not let finish; None where they were."""
        return self.stopped_ if getattr(self, "stopped_", None) in CUT else None

    def learn_with(self, problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
        """Learn the metric with the machine whose problems these are, and fit it on all rows.

        Parameters
        ----------
        problems : list of Problem
            What the machine minimises, on the kernel as it was given.
        run : SolverRun
            How it does so.
        """
        self._learn_metric(problems, run)
        return _fitted_on(_behind(self, problems), run)

    def learn_before(
        self, X: NDArray, problems: list[Problem], run: SolverRun, mapped: Callable[[], list[Problem]]
    ) -> tuple[list[Problem], list[Fit]]:
        """Learn the metric for an explicit map that stands for this kernel, and fit the machine on that.

        Parameters
        ----------
        X : array
            The rows.
        problems : list of Problem
            What the machine minimises on them.
        run : SolverRun
            How it does so.
        mapped : callable
            The problems on the map, once the metric is learned.
        """
        whole = GramDesign(self, self.prepare(in_double(X)), X)
        self._learn_metric(_on_design(whole, problems), run)
        return _fitted_on(mapped(), run)

    def _learn_metric(self, problems: list[Problem], run: SolverRun) -> None:
        if problems[0].penalty.l2 == 0:
            raise Unsuitable(f"features={self!r} has a metric to learn, which needs penalty='l2'.")
        rounds = MetricRounds(self, problems, replace(run, progress=None, deadline=run.deadline.share(LEARNING_SHARE)))
        best = rounds.learn()
        self.root_, self.kernel_ = best.root_, best.kernel_
        self.history_, self.n_rounds_ = {"loss": np.array(rounds.losses)}, rounds.chosen
        self.stopped_ = rounds.stopped

    def with_root(self, root: Array, X: NDArray) -> LearnedKernel:
        """The kernel with another root of the metric, its widths learned from the rows again."""
        moved = clone(self)
        moved.root_ = root
        moved.kernel_ = clone(moved._base()).fit(moved._projected(X))
        return moved


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
        self.problems = _on_fewer_rows(merged(self.given, always=True))
        self.losses: list[float] = []
        self.chosen, self.stopped = 0, ""

    def learn(self) -> LearnedKernel:
        """The kernel of the best round."""
        judge = self._judge()
        best = current = self.kernel
        rows = np.unique(np.concatenate([problem.places for problem in self.problems]))  # those that count
        X = _source(self.problems[0])[rows]
        while judge is not None:
            trained, fits, loss = judge(_behind(current, self.problems))
            self.stopped = next((fit.certificate.status for fit in fits if fit.cut), "")
            if self.stopped and self.losses:
                break
            self.losses.append(loss)
            if loss < self.losses[self.chosen] or len(self.losses) == 1:
                self.chosen, best = len(self.losses) - 1, current
            tried = len(self.losses) - 1
            if self.stopped or tried == self.kernel.rounds or tried - self.chosen == STALL_ROUNDS:
                break
            root = _next_root(current, trained, [fit.point for fit in fits])
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
        trained = _sharing(problems, [kept for kept, _ in parts])
        fits = self.run(trained)
        judged = [p.part(out, kept).with_C(1.0) for p, (kept, out) in zip(problems, parts, strict=True)]
        losses = [each.loss_sum(each.predict(fit.point)) for each, fit in zip(judged, fits, strict=True)]
        return trained, fits, self._mean(losses, judged)

    def _mean(self, losses: list[float], problems: list[Problem]) -> float:
        total = sum(float(np.sum(problem.weights)) for problem in problems)
        return float(np.nan_to_num(sum(losses) / max(total, np.finfo(float).tiny), nan=np.inf))


#: Problems on a kernel: those that were solved, their fits, and the mean loss on rows that were not learned from.
Judge = Callable[[list[Problem]], tuple[list[Problem], list[Fit], float]]


def _source(problem: Problem) -> NDArray:
    """All rows that the machine was given, in float64."""
    return in_double(cast(GramDesign, problem.design).root.source)


def _behind(kernel: LearnedKernel, problems: list[Problem]) -> list[Problem]:
    """The problems with their rows behind a kernel; those of the same rows share a design."""
    old = cast(GramDesign, problems[0].design).root
    return _on_design(GramDesign(kernel, kernel.prepare(in_double(old.source)), old.source), problems)


def _on_design(whole: GramDesign, problems: list[Problem]) -> list[Problem]:
    """The problems on their rows of a design; those that shared one share it again."""
    moved: dict[int, GramDesign] = {}
    for problem in problems:
        design = problem.design
        if id(design) not in moved:
            every = np.array_equal(problem.places, np.arange(whole.shape[0]))
            moved[id(design)] = whole if every else cast(GramDesign, whole.rows(problem.places))
            moved[id(design)].shared_by = design.shared_by
    return [replace(problem, design=moved[id(problem.design)]) for problem in problems]


def _fitted_on(problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
    """The fits on all rows, which end at once where the user asks for an end already."""
    if requested():  # while the metric was learned: the fit itself has not begun
        with closing():
            return problems, replace(run, deadline=run.deadline.share(1.0))(problems)
    return problems, run(problems)


def _sharing(problems: list[Problem], kept: list[NDArray[np.intp]]) -> list[Problem]:
    """The parts of the problems on some of their rows; those that shared a design and weights share them again."""
    found: dict[int, Problem] = {}
    out = []
    for problem, rows in zip(problems, kept, strict=True):
        first = found.setdefault(id(problem.design), problem.part(rows))
        out.append(replace(first, y=problem.y[rows], loss=problem.loss))
    return out


def _on_fewer_rows(problems: list[Problem]) -> list[Problem]:
    """The problems on `METRIC_ROWS` of the different rows, where there are more; of each class its share."""
    ranks, sizes, count = _ranks(problems)
    if count <= METRIC_ROWS:
        return problems
    chosen = ranks < np.maximum(METRIC_ROWS * sizes / count, FEWEST)
    return _sharing(problems, [np.flatnonzero(chosen[problem.places]) for problem in problems])


def _held_out(problems: list[Problem]) -> NDArray[np.bool_]:
    """One of `FOLDS` different rows by the order of their hashes: of classes, of those of each class."""
    return _ranks(problems)[0] % FOLDS == FOLDS - 1


def _ranks(problems: list[Problem]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The place of each row that counts among the different ones, by the order of their hashes; and how many there are.

    Of classes, the place in its own class and the size of that; then the sum over all classes.
    """
    X = _source(problems[0])
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


def _next_root(kernel: LearnedKernel, problems: list[Problem], points: list[Point]) -> Array | None:
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
    source = _source(problem)[problem.places]
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
