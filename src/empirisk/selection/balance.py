"""Rare classes: rows drawn or weighted so that classes count alike, and probabilities put right again."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.inputs import Array, generator
from empirisk.contract.meta import Around, Whole, inner_has
from empirisk.contract.progress import reported
from empirisk.contract.resample import Groups
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.evaluation.data import Data, fit, read_data, seeded
from empirisk.settings import require
from empirisk.validation import available_if

WAYS = ("weights", "subsample", "upsample")
#: Rows that may be drawn with jitter for any table, and for each row of a long one: what heavy rows stand for is long.
MOST_DRAWN, MOST_COPIES = 100_000, 10


def _keeps_decisions(around: Any) -> bool:
    """Without probabilities to correct, the machine's own decisions stand."""
    machine = getattr(around, "estimator_", around.estimator)
    return hasattr(machine, "decision_function") and not hasattr(machine, "predict_proba")


@dataclass(eq=False, repr=False)
class Balanced(Whole, ClassifierMixin, Around):
    """A classifier that learns from classes of equal weight, and answers for classes as they are.

    The rows are changed inside ``fit`` alone, so that no copy of a training row is ever a test row. The probabilities
    p' of the machine belong to the changed shares pi' of the classes; with the true shares pi they become

        p_k  proportional to  p'_k pi_k / pi'_k

    and the prediction is the most probable class. For predictions that weigh the classes alike, put `Threshold` around
    it, or set ``correct=False``.

    Parameters
    ----------
    estimator : classifier
        Of Empirisk or any that keeps scikit-learn's contract.
    how : {"upsample", "subsample", "weights"}
        Repeat rows of the smaller classes; drop rows of the larger ones; or weigh rows, changing none.
    jitter : float
        Noise on repeated rows, as a share of the standard deviation of each column within the class; zeros of a sparse
        table stay zero.
    correct : bool
        Whether probabilities are corrected for the changed shares.
    random_state : int, RandomState or None
        Draws rows and noise.

    Attributes
    ----------
    classes_ : array
        The classes.
    prior_, trained_prior_ : arrays
        Their shares in the data, and in what the machine learned from.
    estimator_ : classifier
        The machine, fitted.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 1))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=400) > 2.0
    >>> machine = er.selection.Balanced(er.LogisticRegression(), how="upsample", jitter=0.05, random_state=0).fit(X, y)
    >>> bool(abs(machine.predict_proba(X)[:, 1].mean() - y.mean()) < 0.03)
    True
    """

    _state = state.State(
        correct=state.flag(),
        prior_=state.array("f8", "classes", low=0),
        trained_prior_=state.array("f8", "classes", low=0),
    )

    estimator: Any
    _: KW_ONLY
    how: str = "upsample"
    jitter: float = 0.0
    correct: bool = True
    random_state: Any = None

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Balanced:
        """Balance the rows, and fit the machine to them."""
        if self.how not in WAYS:
            raise EmpiriskError(f"how={self.how!r} is not known; use one of {WAYS}.")
        if not self.jitter >= 0 or (self.jitter > 0 and self.how != "upsample"):
            raise EmpiriskError(f"jitter={self.jitter!r} must be 0, or positive with how='upsample'.")
        data = read_data(self.estimator, X, y, sample_weight)
        if data.classes is None:
            raise EmpiriskError(f"Balanced needs a classifier, but {self.estimator!r} predicts numbers.")
        if data.weights is not None and data.weights.min() == 0:
            data = data.rows(np.flatnonzero(data.weights > 0))
            data = read_data(self.estimator, data.X, data.y, data.weights)
        classes = np.unique(data.y)
        before = _masses(data, classes)
        weights = np.ones(len(data)) if data.weights is None else data.weights
        if self.how == "weights":
            factors = before.sum() / (len(classes) * before)
            even = replace(data, weights=weights * factors[np.searchsorted(classes, data.y)])
        else:
            even = self._drawn(data, weights, classes)
        self.prior_, self.trained_prior_ = (mass / mass.sum() for mass in (before, _masses(even, classes)))
        self.estimator_ = fit(seeded(self.estimator, 0), even)
        return self

    def _drawn(self, data: Data, weights: Array, classes: NDArray) -> Data:
        """Fewer rows of the frequent classes, or more of the rare ones."""
        random, table = generator(self.random_state), _as_table(data.X)
        members = [_Class(table, np.flatnonzero(data.y == label), weights) for label in classes]
        sizes = [one.groups.size for one in members]
        rows = np.concatenate([one.first for one in members])
        if self.how == "subsample":
            return data.repeated(rows, np.concatenate([one.thinned(min(sizes), random) for one in members]))
        times = [one.repeated(max(sizes), random) for one in members]
        if self.jitter == 0:
            return _joined(data, data.repeated(rows, np.concatenate(times)))
        count = sum(int(each.sum()) for each in times)
        require(8 * count * table.shape[1], f"the {count} rows drawn with jitter", "give jitter=0, or smaller weights")
        most = max(MOST_DRAWN, MOST_COPIES * len(data))
        if count > most:
            raise EmpiriskError(
                f"sample_weight stands for {count} rows to be drawn with jitter, and more than {most} take too long; "
                "divide the weights, or give jitter=0."
            )
        drawn = [np.repeat(one.first, each) for one, each in zip(members, times, strict=True)]
        shaken = _shaken(table, members, drawn, self.jitter, random)
        more = replace(data.rows(np.concatenate(drawn)), X=shaken, weights=None)
        return _joined(data if issparse(data.X) else replace(data, X=np.asarray(data.X, dtype=np.float64)), more)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class; what the machine says where it knows no probabilities."""
        check_is_fitted(self)
        if not hasattr(self.estimator_, "predict_proba"):
            return self.estimator_.predict(X)
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities for classes as frequent as in the data."""
        check_is_fitted(self)
        p = self.estimator_.predict_proba(X)
        if not self.correct:
            return p
        p = p * (self.prior_ / self.trained_prior_)
        return p / p.sum(axis=1, keepdims=True)

    @available_if(_keeps_decisions)
    def decision_function(self, X: Any) -> Array:
        """The machine's own decision function."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)


class _Class:
    """The rows of one class as groups of equal rows, so that weight 2 is drawn as the row twice."""

    def __init__(self, table: Any, rows: NDArray[np.intp], weights: Array):
        self.groups = Groups.of(_safe_indexing(table, rows), np.zeros(len(rows)), weights[rows])
        self.first = rows[self.groups.first]

    def thinned(self, count: int, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group is among so many rows, spread evenly in an order that is random but of the content."""
        reached = np.ceil(np.cumsum(self.groups.share) * count - random.random())  # steps at (k + random) / count
        reached[-1] = count
        return np.diff(np.clip(reached, 0, count).astype(np.int64), prepend=0)

    def repeated(self, size: int, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group is among the rows that are missing to a size, drawn with replacement."""
        return random.multinomial(size - self.groups.size, self.groups.share)


def _joined(data: Data, more: Data) -> Data:
    """The rows of both, with weights where either has some."""
    known = data.weights is not None or more.weights is not None
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in (data, more)]
    y, together = np.concatenate([data.y, more.y]), np.concatenate(weights) if known else None
    return replace(data, X=_stacked(data.X, more.X), y=y, weights=together)


def _masses(data: Data, classes: NDArray) -> Array:
    codes = np.searchsorted(classes, data.y)
    return np.bincount(codes, data.weights, minlength=len(classes)).astype(float)


def _as_table(X: Any) -> Any:
    """The rows as something with columns, for telling equal rows."""
    if hasattr(X, "shape") and len(X.shape) == 2:
        return X
    return np.asarray(X, dtype=None if hasattr(X, "shape") else object).reshape(len(X), -1)


def _shaken(table: Any, members: list[_Class], drawn: list[NDArray], jitter: float, random: Any) -> Any:
    """The drawn rows of the classes with noise on every column; in a sparse table on what is not zero."""
    sparse, parts = issparse(table), []
    numbers: Any = table.astype(np.float64) if sparse else np.asarray(table, dtype=np.float64)
    if sparse:  # whatever is stored, and in which order
        numbers.eliminate_zeros()
        numbers.sort_indices()
    with np.errstate(invalid="ignore", over="ignore"):  # of NaN and infinity, which the machine will refuse
        for one, chosen in zip(members, drawn, strict=True):
            rows, share = numbers[one.first], one.groups.share
            squares = rows.multiply(rows) if sparse else rows * rows
            spread = np.sqrt(np.maximum(share @ squares - (share @ rows) ** 2, 0.0))
            own = numbers[chosen]
            if sparse:
                own.data = own.data + jitter * spread[own.indices] * random.normal(size=len(own.data))
            else:
                own = own + jitter * spread * random.normal(size=own.shape)
            parts.append(own)
    return vstack(parts, format="csr") if sparse else np.concatenate(parts)


def _stacked(first: Any, second: Any) -> Any:
    """Two tables, one below the other."""
    if issparse(first):
        return vstack([first, second], format="csr")
    if nw.dependencies.is_into_dataframe(first):
        frames = [nw.from_native(part, eager_only=True) for part in (first, second)]
        return nw.concat(frames).to_native()
    return [*first, *second] if isinstance(first, (list, tuple)) else np.concatenate([first, second])
