"""Columns of a table as trees see them: numbers, and categories turned into codes; NaN where a value is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_X_y

from empirisk import state
from empirisk.errors import EmpiriskError, OutOfRange
from empirisk.settings import require
from empirisk.validation import check_array, readable, unmasked, validate_data

Array = NDArray[np.float64]

TEXT_TYPES = (nw.Categorical, nw.Enum, nw.String, nw.Object)
RULES: dict[str, Any] = {
    "dtype": np.float64,
    "order": "C",
    "ensure_all_finite": "allow-nan",
    "accept_sparse": ["csr", "csc"],
}
LARGEST_TARGET = 1e150  # the squares of larger ones are no numbers
DATE_TYPES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)


@dataclass(frozen=True, eq=False)
class Columns:
    """What the columns of the training table held.

    Attributes
    ----------
    names : tuple of str
        Column names, ``x0, x1, ...`` where the table had none.
    categories : tuple
        For each column, the sorted array of the categories met in training, or None for a numeric column.
    missing : (n_features,) bool
        Which columns had missing values in training.
    """

    _state = state.State(
        names=state.names("columns"),
        categories=state.several(state.maybe(state.labels(None, least=0)), "columns"),
        missing=state.array("b", "columns"),
    )

    names: tuple[str, ...]
    categories: tuple[NDArray | None, ...]
    missing: NDArray[np.bool_]

    @property
    def counts(self) -> NDArray[np.int32]:
        """Number of categories of each column, 0 where it is numeric."""
        return np.array([0 if found is None else len(found) for found in self.categories], dtype=np.int32)

    def describe(self, column: int, codes: Iterable[int]) -> list[str]:
        """The categories of a column that the codes stand for."""
        found = self.categories[column]
        return [str(found[code]) for code in codes] if found is not None else []


def wrong_categories(columns: Columns, counts: NDArray) -> str | None:
    """What is wrong where trees from a file were grown on other categories than those of the columns beside them."""
    return None if np.array_equal(columns.counts, counts) else "columns_ has other categories than the trees"


def read_training(estimator: Any, X: Any, y: Any, categorical_features: Any, **target) -> tuple[Array, NDArray]:
    """Check a training table, set what scikit-learn's contract asks and ``columns_``; return floats and the target.

    Parameters
    ----------
    estimator : estimator
        Receives ``n_features_in_``, ``feature_names_in_`` and ``columns_``.
    X : data frame or array
        A table; text and category columns of a data frame are categorical.
    y : array
        The target.
    categorical_features : "auto", or indices, names or a mask of columns
        Columns that hold categories; "auto" takes the text and category columns of a data frame.
    **target
        ``multi_output`` and ``y_numeric`` of `sklearn.utils.check_X_y`.
    """
    if y is None:
        raise EmpiriskError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    if hasattr(X, "binned"):  # rows in files, whose numbers are checked already
        note_number_columns(estimator, X.shape[1], X.names)
        return X, y
    X, y = readable(X), unmasked("y", y)
    values = _values(X)
    chosen = categorical_mask(values, categorical_features)
    if chosen.any():
        validate_data(estimator, X, skip_check_array=True)
        X = np.column_stack([_learned(values, column, chosen[column]) for column in range(values.shape[1])])
        codes, y = check_X_y(X, y, estimator=estimator, **RULES, **target)
    else:
        codes, y = validate_data(estimator, X, y, **RULES, **target)
    codes = dense(codes)
    require_squares(y)
    names = getattr(estimator, "feature_names_in_", [f"x{column}" for column in range(codes.shape[1])])
    categories = [_found(values, column) if chosen[column] else None for column in range(codes.shape[1])]
    estimator.columns_ = Columns(tuple(map(str, names)), tuple(categories), np.asarray(np.isnan(codes).any(axis=0)))
    return codes, y


def note_number_columns(estimator: Any, width: int, names: Sequence[str] | None) -> None:
    """Set the attributes for rows that lie elsewhere, which hold numbers alone."""
    estimator.n_features_in_ = width
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    known = [f"x{column}" for column in range(width)] if names is None else names
    estimator.columns_ = Columns(tuple(known), (None,) * width, np.zeros(width, dtype=bool))


def require_squares(y: NDArray) -> None:
    """Raise where squares of the target would overflow."""
    if y.dtype.kind == "f" and y.size and float(np.abs(y).max()) > LARGEST_TARGET:
        raise OutOfRange(f"y holds numbers beyond {LARGEST_TARGET:g}, whose squares overflow; divide y before the fit.")


def read_new(estimator: Any, X: Any) -> Array:
    """Check new rows against the training table; categories that it did not hold become missing."""
    categories = estimator.columns_.categories
    if all(found is None for found in categories):
        return dense(validate_data(estimator, X, reset=False, **RULES))
    X = readable(X)
    validate_data(estimator, X, skip_check_array=True, reset=False)
    values = _values(X)
    parts = [
        _numbers(values, column) if found is None else _codes(values, column, found)
        for column, found in enumerate(categories)
    ]
    return check_array(np.column_stack(parts), estimator=estimator, **RULES)


def dense(X: Any) -> Array:
    """A sparse table as an array, where memory allows it: trees look at every value."""
    if not issparse(X):
        return X
    require(8 * X.shape[0] * X.shape[1], "the sparse table written out in full", "use fewer rows or columns")
    return np.ascontiguousarray(X.toarray(), dtype=np.float64)


def _values(X: Any) -> Any:
    """The table behind one interface: a narwhals frame, or an array (of objects where it holds text)."""
    if nw.dependencies.is_into_dataframe(X):
        return nw.from_native(X, eager_only=True)
    return X if issparse(X) or isinstance(X, np.ndarray) else _plain(X)


def _plain(X: Any) -> NDArray:
    array = np.asarray(X)
    # Numbers beside text: NumPy would turn the numbers into text.
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def categorical_mask(values: Any, wanted: Any) -> NDArray[np.bool_]:
    """Mask of the categorical columns: those that are wanted, by place, name or mask; "auto" takes those of words."""
    if values.ndim != 2 if isinstance(values, np.ndarray) else False:
        return np.zeros(0, dtype=bool)  # the shape is refused by the checks that follow
    width = values.shape[1]
    if isinstance(wanted, str) or wanted is None:
        if wanted not in ("auto", None):
            raise EmpiriskError(
                f"categorical_features={wanted!r} is not known; give 'auto', None, or a list of columns or a mask."
            )
        frame = isinstance(values, nw.DataFrame) and wanted == "auto"
        return np.array([frame and _kind(values, column) for column in range(width)], dtype=bool)
    wanted = np.asarray(wanted)
    if wanted.dtype == bool and wanted.shape == (width,):
        return wanted
    mask = np.zeros(width, dtype=bool)
    names = list(values.columns) if isinstance(values, nw.DataFrame) else []
    mask[[_place(item, names, width) for item in wanted.ravel().tolist()]] = True
    return mask


def _kind(frame: Any, column: int) -> bool:
    """Whether a column of a frame holds categories; dates are refused."""
    name = frame.columns[column]
    if isinstance(frame.schema[name], DATE_TYPES):
        raise EmpiriskError(f"Column {name!r} holds dates; turn it into numbers (year, weekday, ...) first.")
    return isinstance(frame.schema[name], TEXT_TYPES)


def _place(item: Any, names: Sequence[str], width: int) -> int:
    if item in names:
        return names.index(item)
    if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < width:
        return item
    known = f"its columns are {list(names)}" if names else f"give indices from 0 to {width - 1} or a mask"
    raise EmpiriskError(f"categorical_features names {item!r}, which the table does not have; {known}.")


def _items(values: Any, column: int) -> list:
    """The values of one column as Python objects, None where missing."""
    if isinstance(values, nw.DataFrame):
        items = values[:, column].to_list()
    else:
        items = dense(values[:, [column]]).ravel().tolist() if issparse(values) else values[:, column].tolist()
    # NaN is the only value that differs from itself; pandas' NA cannot be compared and has no truth.
    return [None if item is None or type(item).__name__ == "NAType" or item != item else item for item in items]


def _found(values: Any, column: int) -> NDArray:
    """The sorted categories of a column."""
    if _plain_numbers(values):
        return np.unique(values[~np.isnan(values[:, column]), column])
    try:
        found = set(_items(values, column)) - {None}
        return np.array(sorted(found), dtype=object if any(isinstance(item, str) for item in found) else None)
    except TypeError as error:
        raise EmpiriskError(
            f"Column {_name(values, column)!r} mixes kinds of values that cannot be compared; make it all text."
        ) from error


def _learned(values: Any, column: int, categorical: bool) -> Array:
    if not categorical:
        return _numbers(values, column)
    return _codes(values, column, _found(values, column))


def _plain_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f"


def _codes(values: Any, column: int, found: NDArray) -> Array:
    """Codes of a column's values among the categories found in training; NaN for a missing or unseen one."""
    if _plain_numbers(values) and found.dtype.kind == "f" and len(found):
        place = np.minimum(np.searchsorted(found, values[:, column]), len(found) - 1)
        return np.where(found[place] == values[:, column], place, np.nan)
    items = _items(values, column)
    first = next((item for item in items if item is not None), None)
    if first is not None and len(found) and isinstance(first, str) != isinstance(found[0], str):
        expected, got = ("text", "numbers") if isinstance(found[0], str) else ("numbers", "text")
        raise EmpiriskError(f"Column {_name(values, column)!r} held {expected} in fit and holds {got} now; convert it.")
    codes = {category: float(code) for code, category in enumerate(found.tolist())}
    return np.fromiter((codes.get(item, np.nan) for item in items), dtype=np.float64, count=len(items))


def _numbers(values: Any, column: int) -> Array:
    """A numeric column as floats."""
    try:
        if isinstance(values, nw.DataFrame):
            series = values[:, column]
            if isinstance(series.dtype, TEXT_TYPES + DATE_TYPES):
                raise TypeError(f"{series.dtype} is no type of numbers")
            return series.cast(nw.Float64).to_numpy().astype(np.float64)
        part = values[:, [column]].toarray().ravel() if issparse(values) else values[:, column]
        return np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmpiriskError(
            f"Column {_name(values, column)!r} holds values that are not numbers; name it in categorical_features."
        ) from error


def _name(values: Any, column: int) -> str | int:
    return values.columns[column] if isinstance(values, nw.DataFrame) else column
