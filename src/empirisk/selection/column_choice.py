"""Which columns to use: greedily by cross-validated error, or by l1 with a check of how stable the choice is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import _safe_indexing, assert_all_finite, get_tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import Array, check_weights, generator
from empirisk.contract.members import check_table
from empirisk.contract.meta import Delegating
from empirisk.contract.resample import Groups
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.evaluation.data import Data, fit, read_data, seeded
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.evaluation.splits import Split
from empirisk.machines.classifiers import LogisticRegression
from empirisk.machines.regressors import Lasso
from empirisk.messages import coded
from empirisk.names import Estimator
from empirisk.runs.parallel import parallel_fits
from empirisk.validation import validate_data

MOST_DRAWS = 100  # for each half that holds a row of every class
ROUNDING = 1e-12  # of the first error: columns that change less change nothing


@dataclass(frozen=True)
class Step:
    """One step of a greedy choice.

    Attributes
    ----------
    column : int
        The column that was added or dropped; -1 at the start.
    columns : tuple of int
        The columns after it.
    error : float
        Their cross-validated error.
    kept : bool
        Whether the step was taken; the last one of a path may be the rise at which it stopped.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> found = er.selection.GreedySelection(er.Ridge()).fit(X, X[:, 2])
    >>> found.path_[0].columns
    (2,)
    """

    column: int
    columns: tuple[int, ...]
    error: float
    kept: bool


class ColumnSelector(SelectorMixin):
    """Some of the columns: those of ``support_``."""

    support_: NDArray[np.bool_]
    n_features_to_select: int | None

    @property
    def chosen_(self) -> dict[str, Any]:
        """The columns chosen, by name where they have names."""
        columns = np.flatnonzero(self.support_)
        names = getattr(self, "feature_names_in_", None)
        return {"columns": (columns if names is None else names[columns]).tolist()}

    def _count(self, columns: int) -> int:
        """How many columns ``n_features_to_select`` asks for: None is half of them."""
        asked = check_count("n_features_to_select", self.n_features_to_select, optional=True)
        if asked is not None and asked > columns:
            raise EmpiriskError(f"n_features_to_select={asked} exceeds the {columns} columns of X.")
        return max(1, columns // 2) if asked is None else asked

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_


@dataclass(eq=False, repr=False)
class GreedySelection(ColumnSelector, Delegating):
    """Columns added or dropped one by one, each time the one that leaves the least cross-validated error.

    The choice ends when the error rises. The machine is then fitted to the chosen columns: use it as a machine, or as a
    transformer that keeps these columns. Its errors are optimistic, since the best of many was picked: `evaluate` it.

    Parameters
    ----------
    estimator : classifier or regressor
        Of Empirisk or any that keeps scikit-learn's contract.
    direction : {"forward", "backward"}
        Start from no column, or from all of them.
    most, least : int
        The largest and the smallest number of columns.
    cv : int, "loo", "holdout", "random", splitter or pairs
        As for `evaluate`.
    scoring : name or scorer
        As for `evaluate`; the share of errors for classes and the squared error for numbers by default. A score that is
        better when larger counts as an error with a minus sign.
    random_state : int, RandomState or None
        Draws the folds.

    Attributes
    ----------
    support_ : array of bool
        The columns chosen.
    path_ : list of Step
        The steps with their errors, the rise at the end included.
    estimator_ : machine
        The machine, fitted to the chosen columns.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> found = er.selection.GreedySelection(er.LeastSquares()).fit(X, X[:, 1] - 2 * X[:, 4])
    >>> np.flatnonzero(found.support_)[:2], bool(found.path_[0].error > found.path_[1].error)
    (array([1, 4]), True)
    """

    _state = state.State(
        lambda its: None if int(its["support_"].sum()) >= 1 else "support_ has no column",
        n_features_in_=state.size("columns"),
        path_=state.several(state.part(Step)),
        support_=state.array("b", "columns"),
        sizes={"inner": lambda its: int(its["support_"].sum())},
    )

    estimator: Any
    _: KW_ONLY
    direction: str = "forward"
    most: int | None = None
    least: int = 1
    cv: Any = 5
    scoring: Any = None
    random_state: Any = 0

    @all_or_nothing
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> GreedySelection:
        """Choose columns, and fit the machine to them."""
        if self.direction not in ("forward", "backward"):
            raise EmpiriskError(f"direction={self.direction!r} is not known; use 'forward' or 'backward'.")
        data = read_data(self.estimator, self._checked(X, reset=True), y, sample_weight, groups)
        most = self.n_features_in_ if self.most is None else self.most
        if not self.least >= 1 or (self.most is not None and self.least > self.most):
            raise EmpiriskError(f"least={self.least!r} and most={self.most!r} must satisfy 1 <= least <= most.")
        scoring = self.scoring or ("mse" if data.classes is None else "error_rate")
        metric = find_metrics(scoring, data.classes, self.estimator)[0]
        splits = data.splits(self.cv, random_state=self.random_state)
        self.path_ = self._walk(partial(_errors, seeded(self.estimator, 0), data, metric, splits), most)
        chosen = [step for step in self.path_ if step.kept][-1].columns
        self.support_ = np.isin(np.arange(self.n_features_in_), chosen)
        self.estimator_ = fit(seeded(self.estimator, 0), data.only(np.flatnonzero(self.support_)))
        return self

    def _walk(self, errors_of: Callable[[list[tuple[int, ...]]], Array], most: int) -> list[Step]:
        """Columns are added to none, or dropped from all, until the error would rise."""
        every, forward = range(self.n_features_in_), self.direction == "forward"
        columns = () if forward else tuple(every)
        error = np.inf if forward else errors_of([columns])[0]
        path = [] if forward else [Step(-1, columns, float(error), True)]
        while len(columns) < min(most, len(every)) if forward else len(columns) > self.least:
            moved = [one for one in every if (one in columns) != forward]
            options = [(*columns, one) if forward else tuple(k for k in columns if k != one) for one in moved]
            errors = errors_of(options)
            best = int(np.argmin(errors))
            # An equal error is good enough to drop a column, not to add one; rounding is neither gain nor loss.
            slack = ROUNDING * abs(path[0].error) if path else 0.0
            better = errors[best] < error - slack if forward else errors[best] <= error + slack
            kept = bool(better) or (len(columns) < self.least if forward else len(columns) > most)
            path.append(Step(moved[best], options[best], float(errors[best]), kept))
            if not kept:
                break
            columns, error = options[best], errors[best]
        return path

    def _table(self, X: Any) -> Any:
        return _safe_indexing(self._checked(X, reset=False), np.flatnonzero(self.support_), axis=1)

    def _checked(self, X: Any, reset: bool) -> Any:
        """The whole table; columns left out are checked too, so that bad rows do not pass by chance."""
        table = check_table(self, X, reset=reset)
        if hasattr(table, "dtype") and table.dtype.kind == "f" and not get_tags(self.estimator).input_tags.allow_nan:
            assert_all_finite(table, input_name="X")
        return table


def _errors(machine: Any, data: Data, metric: Metric, splits: list[Split], options: list[tuple[int, ...]]) -> Array:
    """The cross-validated error of a machine on each set of columns."""

    def work(task: tuple) -> float:
        columns, (train, test) = task
        part = data.only(np.sort(columns))
        return -float(part.rows(test).score(fit(clone(machine), part.rows(train)), metric.scorer))

    return np.array(parallel_fits(work, list(product(options, splits)))).reshape(len(options), -1).mean(axis=1)


class L1Selection(ColumnSelector, MetaEstimatorMixin, Estimator):
    """Columns that a machine with the l1 penalty keeps, again and again, on random halves of the rows.

    C is chosen once on all rows where the machine is asked to; a column is selected where its weight is not zero in at
    least a share ``threshold`` of the fits, or where no column reaches it, the most frequent one. With q columns in a
    fit on average, of d, the expected number of columns selected wrongly is at most  q^2 / ((2 threshold - 1) d)  under
    the assumptions of Meinshausen and Bühlmann.

    Parameters
    ----------
    estimator : machine or None
        One with ``coef_``, some of it zero. None takes `Lasso` for numbers and `LogisticRegression` with the l1 penalty
        for classes, with C by cross-validation.
    n_samples : int
        Number of random halves; 0 selects from the fit to all rows alone.
    threshold : float
        Share of the fits, above one half.
    random_state : int, RandomState or None
        Draws the halves.

    Attributes
    ----------
    support_ : array of bool
        The columns selected.
    frequencies_ : array
        The share of the fits that kept each column.
    expected_errors_ : float
        The bound on columns selected wrongly; NaN without halves.
    estimator_ : machine
        The fit to all rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> found = er.selection.L1Selection(random_state=0).fit(X, 3 * X[:, 1] - 2 * X[:, 4])
    >>> bool(found.support_[[1, 4]].all())
    True
    """

    _state = state.State(
        n_features_in_=state.size("columns"),
        estimator_=state.part(has="predict", columns="columns"),
        frequencies_=state.array("f8", "columns", low=0, high=1),
        support_=state.array("b", "columns"),
        expected_errors_=state.number(finite=False),
        sizes={"width": lambda its: int(its["support_"].sum())},
    )

    def __init__(self, estimator: Any = None, *, n_samples: int = 50, threshold: float = 0.6, random_state: Any = None):
        self.estimator = estimator
        self.n_samples = n_samples
        self.threshold = threshold
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> L1Selection:
        """Fit to all rows and to random halves of them, and count."""
        check_count("n_samples", self.n_samples, 0)
        if not 0.5 < self.threshold <= 1:
            raise EmpiriskError(f"threshold={self.threshold!r} must lie above 0.5, and be 1 at most.")
        table = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=np.float64)
        machine = self._machine(y)
        data = read_data(machine, table, y, sample_weight)
        self.estimator_ = fit(seeded(machine, 0), data)
        again = clone(self.estimator_)
        if isinstance(getattr(machine, "C", None), str):
            again.set_params(C=self.estimator_.C_)
        halves = _halves(data, self.n_samples, generator(self.random_state))
        kept = parallel_fits(lambda half: _nonzero(fit(clone(again), half)), halves)
        self.frequencies_ = np.mean(kept, axis=0) if kept else _nonzero(self.estimator_).astype(float)
        floor = min(self.threshold, self.frequencies_.max())
        self.support_ = self.frequencies_ >= floor if floor > 0 else self.frequencies_.cumsum() == 0
        size = float(np.sum(kept)) / len(kept) if kept else np.nan
        self.expected_errors_ = size**2 / ((2 * self.threshold - 1) * len(self.support_))
        return self

    def _machine(self, y: ArrayLike) -> Any:
        if self.estimator is not None:
            return self.estimator
        if y is not None and type_of_target(y) in ("binary", "multiclass"):
            return LogisticRegression(penalty="l1", C="cv")
        return Lasso(C="cv")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def _nonzero(machine: Any) -> NDArray[np.bool_]:
    if not hasattr(machine, "coef_"):
        raise EmpiriskError(
            f"machine={machine!r} has no coef_ to select by; give a linear machine with the l1 penalty."
        )
    return np.any(np.atleast_2d(machine.coef_) != 0, axis=0)


def _halves(data: Data, count: int, random: np.random.Generator) -> list[Data]:
    """Random halves of the rows; weight 2 is the row twice, whatever the order of the rows."""
    weights = check_weights(data.weights, len(data))
    groups = Groups.of(data.X, data.y, weights)
    some = groups.share > 0  # rows without weight must not use up random numbers: they could as well be absent
    first, share = groups.first[some], groups.share[some]
    copies = None if groups.counts is None else groups.counts[some]
    classes = 0 if data.classes is None else len(data.classes)
    size = max(2, classes, groups.size // 2)
    halves: list[Data] = []
    for _ in range(MOST_DRAWS * count):
        if len(halves) == count:
            break
        if copies is None:
            drawn = random.multinomial(size, share)
        else:
            drawn = random.multivariate_hypergeometric(copies, min(size, int(copies.sum())))
        if data.classes is None or len(np.unique(data.y[first[drawn > 0]])) == classes:
            halves.append(data.repeated(first, drawn))
    if len(halves) < count:
        raise EmpiriskError(
            coded(
                "ER026",
                "y has a class so rare, or of so little weight, that random halves of the rows do not hold it; drop "
                "its rows, or give n_samples=0 to select from the fit to all rows.",
            )
        )
    return halves
