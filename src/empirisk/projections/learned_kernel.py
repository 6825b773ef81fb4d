"""A kernel that learns its metric with the machine: distances count along the directions in which f changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import kernels, state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.fit import Fit, SolverRun
from empirisk.kernels.base import Kernel, require_whole, text
from empirisk.kernels.items import as_matrix
from empirisk.linalg.design import Design
from empirisk.maps.implicit import GramDesign, in_double
from empirisk.problem import Array, Problem, on_design
from empirisk.projections.learned_kernel_leaves import JoinedLeaves, LeafFits, exceeds
from empirisk.projections.learned_kernel_rounds import FEWEST, MetricRounds, behind
from empirisk.stop import CUT, closing, requested

#: Kernels by name: their width follows the metric, the median distance of every round.
BY_NAME: dict[str, Callable[[], Kernel]] = {
    "laplacian": lambda: kernels.Laplacian("median", norm=2),
    "gaussian": lambda: kernels.Gaussian("median"),
}
METRICS = ("full", "diagonal")
#: Rows of a leaf at most: of more, a tree of the rows is grown.
LEAF_SIZE = 12_000
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
    Columns should be of similar size to begin with: standardise them.

    Of more different rows than ``leaf_size`` a balanced tree is grown. Each node is split at the median along the
    direction in which a machine on 4 096 of its rows changes most. In each leaf a machine learns a metric of its own,
    and near the splits both sides learn from the same rows and are joined smoothly:

        f(x)  =  b  +  sum_l p_l(x) f_l(x),      sum_l p_l(x) = 1.

    The f_l minimise  sum_l ( R(w_l) + C sum_i c_i p_l(x_i) loss(y_i, f_l(x_i)) ), a problem for each leaf, and the
    certificate adds up their objectives and bounds. By convexity the losses of f are not larger. A leaf has k + 1 for
    its kernel, in the place of an intercept; b is the best constant of the targets of a regression, and 0 of classes.
    Time and memory grow with the number of rows, where one machine would take its cube and its square. ``C="cv"`` is
    chosen before, by one machine on all rows: give a number instead where rows are many.
    ``maps.Nystrom(LearnedKernel())`` learns one metric and is fitted on landmarks: quicker, and less exact.

    Parameters
    ----------
    kernel : {"laplacian", "gaussian"} or Kernel
        A kernel of the Euclidean distance: ``Gaussian``, ``Laplacian(norm=2)``, or sums, products, powers and
        exponentials of them. A name stands for the kernel with ``width="median"``.
    rounds : int
        How many times the metric is learned at most.
    metric : {"full", "diagonal"}
        "full" turns and stretches the rows; "diagonal" has a weight for each column alone.
    leaf_size : int or None
        How many different rows one machine takes at most; None is for any number of them.

    Attributes
    ----------
    metric_ : array, columns x columns
        The metric of the round that was kept; the unit matrix before anything is learned. The mean of those of leaves,
        each of which is in ``kernel_.members_``.
    history_ : dict of arrays
        "loss": the mean loss of every round on rows that were not learned from; "leaf": in which leaf, if any.
    n_rounds_ : int
        The round that was kept; 0 is the kernel as it was given. The latest of those of leaves.
    kernel_ : Kernel
        The kernel on the rows times the root of the metric; or the tree, with the kernels of its leaves.
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

    def __init__(
        self,
        kernel: str | Kernel = "laplacian",
        rounds: int = 5,
        metric: str = "full",
        leaf_size: int | None = LEAF_SIZE,
    ):
        self.kernel = kernel
        self.rounds = rounds
        self.metric = metric
        self.leaf_size = leaf_size

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
        if self.leaf_size is not None:
            require_whole(self.leaf_size, "leaf_size", FEWEST)
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

    def wrong_rows(self, rows):
        return self._base().wrong_rows(rows)

    def __repr__(self) -> str:
        changed = [text(self.kernel)] if self.kernel != "laplacian" else []
        usual = {"rounds": 5, "metric": "full", "leaf_size": LEAF_SIZE}
        changed += [f"{name}={getattr(self, name)!r}" for name in usual if getattr(self, name) != usual[name]]
        return f"LearnedKernel({', '.join(changed)})"

    # --- what it learns -----------------------------------------------------------------------------------------------

    @property
    def metric_(self) -> Array:
        """M."""
        if not hasattr(self, "kernel_"):
            raise AttributeError("the metric is learned with a machine; fit one with this kernel as features first.")
        if not hasattr(self, "root_"):
            return cast(JoinedLeaves, self.kernel_).metric_
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
        self._require_metric(problems)
        if exceeds(problems, self.leaf_size):
            return self._learn_leaves(problems, run)
        self._learn_metric(problems, run)
        return _fitted_on(behind(self, problems), run)

    def _learn_leaves(self, problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
        self.kernel_, problems, fits = LeafFits(self, problems, run).learn()
        del self.root_
        members = self.kernel_.members_
        losses = [member.history_["loss"] for member in members]
        self.history_ = {
            "loss": np.concatenate(losses),
            "leaf": np.repeat(np.arange(len(losses), dtype=np.float64), [len(each) for each in losses]),
        }
        self.n_rounds_ = max(member.n_rounds_ for member in members)
        self.stopped_ = next((member.stopped_ for member in members if member.stopped_), "")
        return problems, fits

    def learn_before(
        self, X: NDArray, problems: list[Problem], run: SolverRun, mapped: Callable[[], Design]
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
            The rows on the map, once the metric is learned.
        """
        whole = GramDesign(self, self.prepare(in_double(X)), X)
        self._require_metric(problems)
        self._learn_metric(on_design(whole, problems), run)
        return _fitted_on(on_design(mapped(), problems), run)

    def _require_metric(self, problems: list[Problem]) -> None:
        if problems[0].penalty.l2 == 0:
            raise Unsuitable(f"features={self!r} has a metric to learn, which needs penalty='l2'.")

    def _learn_metric(self, problems: list[Problem], run: SolverRun) -> None:
        rounds = MetricRounds(self, problems, replace(run, progress=None, deadline=run.deadline.share(LEARNING_SHARE)))
        best = rounds.learn()
        self.root_, self.kernel_ = best.root_, best.kernel_
        self.history_, self.n_rounds_ = {"loss": np.array(rounds.losses)}, rounds.chosen
        self.stopped_ = rounds.stopped

    def end(self, why: str) -> None:
        """Keep the metric as it is, where there are no rows to learn from, or no time."""
        self.history_, self.n_rounds_, self.stopped_ = {"loss": np.zeros(0)}, 0, why

    def with_constant(self) -> LearnedKernel:
        """The kernel k + 1, with a metric to learn and without leaves."""
        return LearnedKernel(kernels.polynomial(clone(self._base()), [1.0, 1.0]), self.rounds, self.metric, None)

    def with_root(self, root: Array, X: NDArray) -> LearnedKernel:
        """The kernel with another root of the metric, its widths learned from the rows again."""
        moved = clone(self)
        moved.root_ = root
        moved.kernel_ = clone(moved._base()).fit(moved._projected(X))
        return moved


def _fitted_on(problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
    """The fits on all rows, which end at once where the user asks for an end already."""
    if requested():  # while the metric was learned: the fit itself has not begun
        with closing():
            return problems, replace(run, deadline=run.deadline.share(1.0))(problems)
    return problems, run(problems)
