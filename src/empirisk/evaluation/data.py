"""The data of an evaluation as one thing, and machines fitted to some of its rows."""

import inspect
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, column_or_1d, has_fit_parameter

from empirisk.contract import members
from empirisk.contract.inputs import Array, check_weights, sorted_classes
from empirisk.errors import EmpiriskError, OneClass, TooFewRows, Unsuitable
from empirisk.evaluation.splits import Split, make_splits
from empirisk.validation import check_array, readable, unmasked


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, targets, and what goes with each row.

    Attributes
    ----------
    X : table of any kind
        The rows.
    y : array
        Their targets.
    weights, groups : array or None
        Their weights, and the group each belongs to.
    classes : array or None
        The classes of y; None for numbers.
    pairwise : bool
        Whether X is a Gram matrix, with a column for each row.
    """

    X: Any
    y: NDArray
    weights: Array | None
    groups: NDArray | None
    classes: NDArray | None
    pairwise: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, rows: NDArray) -> "Data":
        """Some of the rows."""
        weights, groups = (None if values is None else values[rows] for values in (self.weights, self.groups))
        return Data(_safe_indexing(self.X, rows), self.y[rows], weights, groups, self.classes, self.pairwise)

    def repeated(self, rows: NDArray, times: NDArray[np.int64]) -> "Data":
        """Rows, each repeated so many times. Data with weights gets the counts as weights instead of copies of rows.

        Weights may stand for millions of rows, whose copies would not fit into memory.
        """
        if self.weights is None:
            return self.rows(np.repeat(rows, times))
        return replace(self.rows(rows[times > 0]), weights=times[times > 0].astype(np.float64))

    def split(self, train: NDArray, test: NDArray) -> "tuple[Data, Data]":
        """Training part and test part. Both parts of a Gram matrix keep the columns of the training rows only."""
        inside, outside = self.rows(train), self.rows(test)
        return (inside.only(train), outside.only(train)) if self.pairwise else (inside, outside)

    def only(self, columns: Any) -> "Data":
        """Some of the columns."""
        return replace(self, X=_safe_indexing(self.X, columns, axis=1))

    def splits(self, cv: Any, **rules: Any) -> list[Split]:
        """The pairs (train, test) of row numbers, as `make_splits` draws them."""
        return make_splits(cv, self.y, classes=self.classes is not None, groups=self.groups, **rules)

    def score(self, machine: Any, scorer: Any) -> Any:
        """The score of a fitted machine on these rows."""
        extra = {} if self.weights is None else {"sample_weight": self.weights}
        return scorer(machine, self.X, self.y, **extra)


def read_data(
    machine: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
) -> Data:
    """The data for a machine, checked as far as every machine needs."""
    if not (hasattr(machine, "fit") and hasattr(machine, "predict") and hasattr(machine, "get_params")):
        raise EmpiriskError(f"machine={machine!r} must be a classifier or regressor with fit, predict and get_params.")
    if y is None:
        raise EmpiriskError(
            f"{type(machine).__name__} requires y to be passed, but the target y is None; give one for each row."
        )
    targets = check_array(unmasked("y", y), ensure_2d=False, dtype=None, input_name="y")
    if targets.ndim > 1 and not (targets.shape[1] > 1 and get_tags(machine).target_tags.multi_output):
        targets = column_or_1d(targets, warn=True)
    if len(targets) < 2:
        raise TooFewRows(f"y holds {len(targets)} sample only; at least two rows are needed.")
    if _num_samples(X) != len(targets):
        raise EmpiriskError(f"X has {_num_samples(X)} rows but y has {len(targets)}; give one target for each row.")
    weights = None if sample_weight is None else check_weights(sample_weight, len(targets))
    groups = None if groups is None else np.asarray(groups)
    check_consistent_length(groups, targets)
    pairwise = get_tags(machine).input_tags.pairwise
    return Data(_table(readable(X)), targets, weights, groups, _classes(machine, targets), pairwise)


def _table(X: Any) -> Any:
    """The rows in a form that row numbers can index; lists of objects and data frames are left as they are."""
    if issparse(X):
        return X.tocsr()
    rows_of_numbers = isinstance(X, (list, tuple)) and _is_row(X[0])
    foreign = not isinstance(X, (list, tuple, np.ndarray)) and not nw.dependencies.is_into_dataframe(X)
    table: Any = np.asarray(X) if rows_of_numbers or foreign else X
    if getattr(table, "ndim", 0) == 2 and table.shape[1] == 0:
        raise EmpiriskError(f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


def _is_row(item: Any) -> bool:
    """Whether an item of a list is a row of a table; graphs and samples hold lists and tables themselves."""
    if isinstance(item, (list, tuple)):
        return not any(isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) for value in item)
    return item.ndim < 2 if isinstance(item, np.ndarray) else isinstance(item, Real)


def _classes(machine: Any, y: NDArray) -> NDArray | None:
    if not is_classifier(machine):
        if not is_regressor(machine):
            raise EmpiriskError(f"machine={machine!r} is neither a classifier nor a regressor.")
        return None
    if y.ndim > 1:
        raise Unsuitable(
            f"y has {y.shape[1]} columns of labels, and one is judged at a time: give y[:, j], or use "
            "sklearn.model_selection.cross_validate with cv=KFold(5)."
        )
    classes = sorted_classes(y, np.ones(len(y)))
    if len(classes) < 2:
        raise OneClass(f"y holds one class only: {classes[0]!r}; a classifier needs two, check the target column.")
    return classes


def seeded(machine: Any, seed: int) -> Any:
    """An unfitted copy in which every ``random_state`` that is None is set, so that a run can be repeated."""
    return members.seeded(machine, seed, every=False)


def seeds(random_state: Any, count: int) -> list[int]:
    """A seed for each of several fits."""
    return [int(seed) for seed in check_random_state(random_state).randint(2**31, size=count)]


def fit(machine: Any, data: Data) -> Any:
    """Fit a machine to all rows, with weights and groups where there are any and it takes them."""
    name = None if data.weights is None else _weight_argument(machine)
    if data.weights is not None and name is None:
        raise EmpiriskError(f"sample_weight is given, but {type(machine).__name__} takes none in fit; leave it out.")
    extra: dict[str, Any] = {} if name is None else {name: data.weights}
    if data.groups is not None and has_fit_parameter(machine, "groups"):
        extra["groups"] = data.groups
    return machine.fit(data.X, data.y, **extra)


def _weight_argument(machine: Any) -> str | None:
    """The name under which ``fit`` takes weights, through pipelines and machines around machines."""
    if has_fit_parameter(machine, "sample_weight"):
        return "sample_weight"
    if hasattr(machine, "steps"):
        name, last = machine.steps[-1]
        inner = None if isinstance(last, str) else _weight_argument(last)
        return inner and f"{name}__{inner}"
    rest = inspect.signature(machine.fit).parameters.values()
    passes_on = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in rest)
    inner = getattr(machine, "regressor", None) or getattr(machine, "estimator", None)
    return _weight_argument(inner) if passes_on and inner is not None else None
