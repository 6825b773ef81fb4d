"""scikit-learn's validation of tables and targets: masked entries are missing, and no two columns have one name."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import metaestimators, validation

from empirisk.errors import EmpiriskError, MissingValues

Method = TypeVar("Method", bound=Callable[..., Any])
#: What NumPy says of a word among numbers.
OF_WORDS = "could not convert string to float"
#: What scikit-learn says of NaN in a table.
OF_MISSING = "Input X contains NaN"


def validate_data(estimator: Any, X: Any = "no_validation", y: Any = "no_validation", **rules: Any) -> Any:
    """`sklearn.utils.validation.validate_data` of a `readable` table and an `unmasked` target."""
    X, y = readable(X), unmasked("y", y)
    try:
        return validation.validate_data(estimator, X, y, **rules)
    except ValueError as problem:
        # Whether y holds them is asked where there are words alone: NumPy warns of complex numbers that are made real.
        in_y = str(problem).startswith(OF_WORDS) and rules.get("y_numeric") and _holds_words(y)
        _name_words(problem, "y" if in_y else "X")
        _name_missing(problem, type(estimator).__name__)
        raise


def count_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Raise unless X has as many columns as the rows of the fit, or with ``reset`` note how many it has."""
    validation.validate_data(estimator, X, reset=reset, skip_check_array=True)


def _name_missing(problem: ValueError, machine: str) -> None:
    """Raise a sentence about missing values that names what takes them here, and what fills them in."""
    if machine and str(problem).startswith(OF_MISSING):
        raise MissingValues(
            f"Input X contains NaN, and {machine} takes no missing values; trees do (er.BoostingClassifier, "
            "er.ForestRegressor and so on), er.learn fills them in by itself, and sklearn.impute.SimpleImputer does so "
            "in a pipeline before this machine."
        ) from problem


def assert_all_finite(values: Any, input_name: str, estimator_name: str) -> None:
    """`sklearn.utils.assert_all_finite`, with a sentence about missing values that names our own remedies."""
    try:
        validation.assert_all_finite(values, input_name=input_name, estimator_name=estimator_name)
    except ValueError as problem:
        _name_missing(problem, estimator_name)
        raise


def _name_words(problem: ValueError, name: str) -> None:
    """Raise a sentence about words where numbers must stand: what NumPy says of them names no argument."""
    if str(problem).startswith(OF_WORDS):
        remedy = "give numbers, or take a classifier" if name == "y" else "encode words as numbers"
        raise EmpiriskError(f"{name} holds what is no number ({problem}); {remedy}.") from problem


def _holds_words(values: Any) -> bool:
    try:
        np.asarray(values, dtype=np.complex128)  # complex numbers are refused elsewhere, but are no words
    except (TypeError, ValueError):
        return True
    return False


def check_array(array: Any, **rules: Any) -> Any:
    """`sklearn.utils.check_array` of a `readable` table."""
    name = rules.get("input_name") or "X"
    try:
        return validation.check_array(readable(array, name), **rules)
    except ValueError as problem:
        _name_words(problem, name)
        raise


def readable(X: Any, name: str = "X") -> Any:
    """The table, NaN where it is masked: NumPy would take the numbers behind a mask, and scikit-learn does.

    Lazy frames are collected, and arrays of others copied to NumPy's memory. Numbers in half precision become doubles:
    transformers of others would compute in half precision. A data frame in which two columns have one name is refused.

    >>> readable(np.ma.array([[1, 2]], mask=[[True, False]]))
    array([[nan,  2.]])
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # a lazy frame of Polars
        X = X.collect()
    X = in_memory_of_numpy(X)
    if np.ma.is_masked(X):
        X = X.astype(np.result_type(X.dtype, np.float16)).filled(np.nan)
    if getattr(X, "dtype", None) == np.float16:
        return np.asarray(X, dtype=np.float64)
    columns: Any = getattr(X, "columns", None)
    if not getattr(columns, "is_unique", True):  # of pandas: others do not make such frames
        twins = columns[columns.duplicated()].unique().tolist()
        raise EmpiriskError(f"{name} has several columns of the name {twins[0]!r}; give each column a name of its own.")
    return X


def in_memory_of_numpy(values: Any) -> Any:
    """Arrays of JAX, Torch and others as NumPy's, also where scikit-learn dispatches by their own functions.

    >>> in_memory_of_numpy([1.0, 2.0])
    [1.0, 2.0]
    """
    if isinstance(values, (np.ndarray, np.generic)) or not hasattr(values, "__dlpack__"):
        return values
    if hasattr(values, "detach"):  # of torch
        return np.asarray(values.detach().cpu())
    return values.get() if hasattr(values, "get") else np.asarray(values)  # CuPy's come by ``get`` alone


def unmasked(name: str, values: Any) -> Any:
    """A target, or weights, of which no entry may be masked.

    >>> unmasked("y", [1, 2])
    [1, 2]
    """
    values = in_memory_of_numpy(values)
    if np.ma.is_masked(values):
        raise MissingValues(f"{name} is masked in some rows; drop these rows, or fill in what is missing.")
    return values


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """`sklearn.utils.metaestimators.available_if`: a method that some objects have; type checkers see that it is one.

    >>> class Half:
    ...     @available_if(lambda self: False)
    ...     def there(self) -> None: ...
    >>> hasattr(Half(), "there")
    False
    """
    return metaestimators.available_if(check)
