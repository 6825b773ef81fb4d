"""What goes into a fit, checked: the size of numbers, weights, classes, C."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from empirisk.errors import EmpiriskError

Array = NDArray[np.float64]
#: The largest number in X and in y, the largest weight and C lie between the inverse of this and this: a sum of
#: C * weight * x^2 * y^2 over any number of rows then neither overflows nor vanishes.
LARGEST = 1e50


def check_size(name: str, values: Any, limit: float = LARGEST) -> None:
    """Raise where numbers are so large that products of them would overflow, or all so small that they would vanish.

    >>> check_size("X", np.array([[1.0, 1e49]]))
    """
    numbers = np.ravel(values.data if sparse.issparse(values) else values, order="K")
    with np.errstate(over="ignore"):
        # One product decides nearly always: a sum of squares within bounds has no term beyond them.
        if len(numbers) == 0 or 1.0 <= np.vdot(numbers, numbers) <= limit * limit:
            return
    largest = max(float(numbers.max()), -float(numbers.min()))
    if largest > limit:
        raise EmpiriskError(
            f"{name} holds numbers as large as {largest:.1e}; beyond {limit:.0e} their products overflow: "
            "divide them by their size first."
        )
    if 0 < largest < 1 / limit:
        raise EmpiriskError(
            f"{name} holds no number larger than {largest:.1e}; below {1 / limit:.0e} their products vanish: "
            "divide them by their size first."
        )


def check_weights(sample_weight, rows: int) -> Array:
    """Sample weights as an array: finite, none negative, not all zero; ones if None."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.array(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.shape != (rows,):
        raise EmpiriskError(
            f"sample_weight.shape == {weights.shape}, expected {(rows,)}! Give one sample_weight per row of X."
        )
    if not np.all(np.isfinite(weights)):
        raise EmpiriskError("sample_weight contains NaN or infinity; replace those entries or drop the rows.")
    if weights.min() < 0:
        raise EmpiriskError("sample_weight contains negative values; weights must be zero or positive.")
    if weights.max() == 0:
        raise EmpiriskError("sample_weight is zero for every row; at least one weight must be positive.")
    if not 1 / LARGEST <= weights.max() <= LARGEST:
        raise EmpiriskError(
            f"sample_weight has {weights.max():.1e} as its largest value, where {1 / LARGEST:.0e} to {LARGEST:.0e} is "
            "allowed; multiply all weights by one number, and divide C by it."
        )
    return weights


def sorted_classes(y: NDArray, weights: Array, continuous: bool = False) -> NDArray:
    """The classes, or with ``continuous`` the numbers, that have weight, sorted."""
    try:
        if not continuous:
            check_classification_targets(y)
        return np.unique(y[weights > 0])
    except TypeError as error:  # labels that cannot be compared: None, or words beside numbers
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise EmpiriskError(
            f"y mixes labels of the types {', '.join(kinds)}, which have no order; give all of them one type, and drop "
            "rows without a label."
        ) from error


def encode_classes(y: NDArray, weights: Array, machine: str) -> tuple[NDArray, NDArray]:
    """The sorted classes with positive weight, and the class number of every row (-1 for none)."""
    classes = sorted_classes(y, weights)
    if len(classes) < 2:
        raise EmpiriskError(
            f"{machine} needs at least two classes in y, but it holds one class only: {classes[0]!r}; "
            "check the target column."
        )
    codes = np.searchsorted(classes, y)
    codes = np.minimum(codes, len(classes) - 1)
    return classes, np.where(classes[codes] == y, codes, -1)


def class_weights(class_weight, classes: NDArray, codes: NDArray, weights: Array) -> Array:
    """The factor of each class: ones, "balanced" (total weight / (K * weight of the class)), or a dictionary."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise EmpiriskError(f"class_weight={class_weight!r} is not known; use 'balanced', a dictionary or None.")
        totals = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(classes))
        return totals.sum() / (len(classes) * totals)
    if not isinstance(class_weight, dict):
        raise EmpiriskError(f"class_weight={class_weight!r} must be 'balanced', a dictionary or None.")
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        raise EmpiriskError(f"class_weight names classes that are not in y: {unknown}; y holds {list(classes)}.")
    factors = np.array([class_weight.get(label, 1.0) for label in classes], dtype=float)
    if not np.all(np.isfinite(factors)) or factors.min() < 0:
        raise EmpiriskError("class_weight must hold finite numbers, zero or positive.")
    return factors


def check_C(C: Any, hard: bool = False) -> float:
    """C as a positive number; infinity only where a hard margin has a meaning."""
    if not isinstance(C, Real) or isinstance(C, (bool, np.bool_)):
        raise EmpiriskError(f"C={C!r} must be a positive number, 'loo' or 'cv'.")
    value = float(C)
    if not value > 0:
        raise EmpiriskError(f"C={C!r} must be positive; it multiplies the sum of losses.")
    if not 1 / LARGEST <= value <= LARGEST and not np.isinf(value):
        raise EmpiriskError(f"C={C!r} must lie between {1 / LARGEST:.0e} and {LARGEST:.0e}; change the scale of y.")
    if np.isinf(value) and not hard:
        raise EmpiriskError(f"C={C!r} must be finite here; only the hinge losses have a hard margin.")
    return value


def generator(random_state) -> np.random.Generator:
    """A NumPy generator from whatever scikit-learn accepts as ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
