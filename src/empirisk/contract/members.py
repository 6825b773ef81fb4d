"""Machines inside an ensemble: their tables and targets, checked and cut, and their random states."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d

from empirisk.contract.inputs import as_numbers
from empirisk.errors import EmpiriskError
from empirisk.validation import check_array, unmasked, validate_data


def check_table(estimator: Any, X: Any, reset: bool) -> Any:
    """The table as the members take it: arrays and sparse matrices checked, data frames as they are."""
    if nw.dependencies.is_into_dataframe(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    rules: dict[str, Any] = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}
    checked = validate_data(estimator, X, reset=reset, **rules)
    return checked.tocsr() if issparse(checked) else checked


def check_target(estimator: Any, y: Any, numbers: bool = False, several: bool = False) -> NDArray:
    """The target as one column, of numbers or of labels; or as it is where it may have several."""
    if y is None:
        raise EmpiriskError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    y = unmasked("y", y)
    y = y if several and np.asarray(y).ndim == 2 else column_or_1d(y, warn=True)
    y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
    return as_numbers(y) if numbers else y


def member_tags(name: str, machine: Any) -> Any:
    """What scikit-learn's tags say of a member, where it is a machine at all."""
    if not hasattr(machine, "__sklearn_tags__"):
        raise EmpiriskError(f"{name} holds {machine!r}, which is no machine; give one such as er.TreeClassifier().")
    return get_tags(machine)


def take_input_tags(tags: Any, name: str, machine: Any) -> Any:
    """The tags of an ensemble whose members get the table as it is: it takes what they take."""
    inner = member_tags(name, machine).input_tags
    for each in ("sparse", "allow_nan", "positive_only", "string"):
        setattr(tags.input_tags, each, getattr(inner, each))
    return tags


def seeded(machine: Any, seed: int, *, every: bool = True) -> Any:
    """A fresh copy of a machine whose random states, also those of its parts, are set: all, or those left open."""
    copy = clone(machine)
    states = {name: value for name, value in copy.get_params().items() if name.rpartition("__")[2] == "random_state"}
    return copy.set_params(**{name: seed for name, value in states.items() if every or value is None})
