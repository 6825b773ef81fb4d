"""scikit-learn's validation of tables and targets: masked entries are missing, and no two columns have one name."""

from typing import Any

import numpy as np
from sklearn.utils import validation

from empirisk.errors import EmpiriskError


def validate_data(estimator: Any, X: Any = "no_validation", y: Any = "no_validation", **rules: Any) -> Any:
    """`sklearn.utils.validation.validate_data` of a `readable` table and an `unmasked` target."""
    return validation.validate_data(estimator, readable(X), unmasked("y", y), **rules)


def check_array(array: Any, **rules: Any) -> Any:
    """`sklearn.utils.check_array` of a `readable` table."""
    return validation.check_array(readable(array, rules.get("input_name") or "X"), **rules)


def readable(X: Any, name: str = "X") -> Any:
    """The table, NaN where it is masked: NumPy would take the numbers behind a mask, and scikit-learn does.

    Numbers in half precision become doubles: transformers of others would compute in half precision. A data frame
    in which two columns have one name is refused.

    >>> readable(np.ma.array([[1, 2]], mask=[[True, False]]))
    array([[nan,  2.]])
    """
    if np.ma.is_masked(X):
        X = X.astype(np.result_type(X.dtype, np.float16)).filled(np.nan)
    if getattr(X, "dtype", None) == np.float16:
        return np.asarray(X, dtype=np.float64)
    columns: Any = getattr(X, "columns", None)
    if not getattr(columns, "is_unique", True):  # of pandas: others do not make such frames
        twins = columns[columns.duplicated()].unique().tolist()
        raise EmpiriskError(f"{name} has several columns of the name {twins[0]!r}; give each column a name of its own.")
    return X


def unmasked(name: str, values: Any) -> Any:
    """A target, or weights, of which no entry may be masked.

    >>> unmasked("y", [1, 2])
    [1, 2]
    """
    if np.ma.is_masked(values):
        raise EmpiriskError(f"{name} is masked in some rows; drop these rows, or fill in what is missing.")
    return values
