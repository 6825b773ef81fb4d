"""What goes into a fit, checked: the size of numbers, weights, classes, C."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from empirisk.errors import EmpiriskError, MissingValues, OneClass, OutOfRange
from empirisk.linalg import blocks
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.threads import parallel_map
from empirisk.names import spelled
from empirisk.validation import assert_all_finite, unmasked

Array = NDArray[np.float64]
#: The largest number in X and in y, the largest weight and C lie between the inverse of this and this: a sum of
#: C * weight * x^2 * y^2 over any number of rows then neither overflows nor vanishes.
LARGEST = 1e50
#: Rows of a block that mostly show all labels in it, and how many labels are compared with rather than sorted.
SHOWN, FEW = 256, 8
#: So many labels are sorted in a fraction of a millisecond.
FEW_ROWS = 4096


def check_size(name: str, values: Any, limit: float = LARGEST, machine: str = "") -> None:
    """Raise where numbers are so large that products of them would overflow, or all so small that they would vanish.

    Numbers that are not finite are refused as scikit-learn does it, by a sentence with the name of the ``machine``.

    >>> check_size("X", np.array([[1.0, 1e49]]))
    """
    numbers = values if lie_on_device(values) else _stored(values)
    # One pass decides nearly always: a sum of squares within bounds has no term beyond them, and no NaN.
    if numbers.size == 0 or 1.0 <= _sum_of_squares(numbers) <= min(limit * limit, np.finfo(float).max):
        return
    if not lie_on_device(values):  # else it is known
        assert_all_finite(values, input_name=name, estimator_name=machine)
    largest = max(float(numbers.max()), -float(numbers.min()))
    if largest > limit:
        raise OutOfRange(
            f"{name} holds numbers as large as {largest:.1e}; beyond {limit:.0e} their products overflow: "
            "divide them by their size first."
        )
    if 0 < largest < 1 / limit:
        raise OutOfRange(
            f"{name} holds no number larger than {largest:.1e}; below {1 / limit:.0e} their products vanish: "
            "divide them by their size first."
        )


def check_finite(name: str, values: Any, machine: str) -> None:
    """Raise, as scikit-learn does, where numbers are not finite."""
    if not np.isfinite(_sum_of_squares(_stored(values))):
        assert_all_finite(values, input_name=name, estimator_name=machine)


def _stored(values: Any) -> NDArray:
    """The numbers of an array or a sparse matrix, so that the last axis is that along which they are stored."""
    numbers = values.data if sparse.issparse(values) else np.asarray(values)
    return numbers.T if numbers.flags.f_contiguous else numbers


def _sum_of_squares(numbers: Any) -> float:
    """In threads; infinite where it overflows, and NaN where there is one."""

    def run(rows: slice) -> float:
        return float(np.vdot(numbers[rows], numbers[rows]))

    if numbers.size == 0:
        return 0.0
    if lie_on_device(numbers):
        return float(numbers.squared_norms().sum())
    with np.errstate(over="ignore", invalid="ignore"):
        return blocks.sum_of_blocks(run, len(numbers), numbers.nbytes // len(numbers))


def as_numbers(y: Any) -> Array:
    """The target of a regression as finite numbers."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmpiriskError(f"y holds what is no number ({error}); give numbers, or take a classifier.") from error
    assert_all_finite(numbers, input_name="y", estimator_name="")
    return numbers


def check_weights(sample_weight, rows: int) -> Array:
    """Sample weights as an array: finite, none negative, not all zero; ones if None."""
    if sample_weight is None:
        return np.ones(rows)
    try:
        if np.asarray(sample_weight).dtype.kind in "cmM":
            raise TypeError("it holds complex numbers, or dates")
        weights = np.array(unmasked("sample_weight", sample_weight), dtype=float)
    except (TypeError, ValueError) as error:
        raise EmpiriskError(f"sample_weight is no array of numbers, one for each row of X: {error}.") from error
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.shape != (rows,):
        raise EmpiriskError(
            f"sample_weight.shape == {weights.shape}, expected {(rows,)}! Give one sample_weight per row of X."
        )
    check_weight_range(float(weights.min()), float(weights.max()))
    return weights


def check_weight_range(low: float, high: float) -> None:
    """Raise unless weights from ``low`` to ``high`` are finite, none negative, not all zero, and of a usable size."""
    if not np.isfinite(low + high):
        raise MissingValues("sample_weight contains NaN or infinity; replace those entries or drop the rows.")
    if low < 0:
        raise EmpiriskError("sample_weight contains negative values; weights must be zero or positive.")
    if high == 0:
        raise EmpiriskError("sample_weight is zero for every row; at least one weight must be positive.")
    if not 1 / LARGEST <= high <= LARGEST:
        raise EmpiriskError(
            f"sample_weight has {high:.1e} as its largest value, where {1 / LARGEST:.0e} to {LARGEST:.0e} is allowed; "
            "multiply all weights by one number, and divide C by it."
        )


def sorted_classes(y: NDArray, weights: Array, continuous: bool = False) -> NDArray:
    """The classes, or with ``continuous`` the numbers, that have weight, sorted."""
    try:
        labels = _distinct(y)
        if not continuous:
            # As many of them as rows, up to twice each: scikit-learn wonders about classes that mostly have one row.
            check_classification_targets(np.resize(labels, min(len(y), 2 * len(labels))))
        if labels.dtype.kind in "mM" and np.isnat(labels).any():
            raise MissingValues("y holds NaT where a label is missing; drop rows without a label.")
        return labels if weights.min() > 0 else np.unique(y[weights > 0])
    except TypeError as error:  # labels that cannot be compared: None, or words beside numbers
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise EmpiriskError(
            f"y mixes labels of the types {', '.join(kinds)}, which have no order; give all of them one type, and drop "
            "rows without a label."
        ) from error


def _distinct(y: NDArray) -> NDArray:
    """np.unique(y): nearly always the first rows of a block show all the labels in it, and nothing needs sorting."""

    def run(rows: slice) -> NDArray[Any]:
        block = y[rows]
        shown = np.unique(block[:SHOWN])
        others = block[np.isin(block, shown, invert=True)] if len(shown) <= FEW else block
        return shown if len(others) == 0 else np.union1d(shown, others)

    if y.dtype.kind not in "biuf" or len(y) <= FEW_ROWS:
        return np.unique(y)
    return np.unique(np.concatenate(parallel_map(run, blocks.blocks(len(y), blocks.ENTRY_BYTES))))


def class_codes(y: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """The number of every row's class among the sorted classes, -1 for one that is not among them."""

    def codes(y: NDArray) -> NDArray[Any]:
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        return np.where(classes[places] == y, places, -1)

    return blocks.rowwise(codes, y, dtype=np.intp)


def encode_classes(y: NDArray, weights: Array, machine: str) -> tuple[NDArray, NDArray]:
    """The sorted classes with positive weight, and the class number of every row (-1 for none)."""
    classes = sorted_classes(y, weights)
    require_two(classes, machine)
    return classes, class_codes(y, classes)


def require_two(classes: NDArray, machine: str) -> None:
    """Raise where a machine that tells classes apart has one only."""
    if len(classes) < 2:
        raise OneClass(
            f"{machine} needs at least two classes in y, but it holds one class only: {classes[0]!r}; "
            "check the target column."
        )


def class_weights(class_weight, classes: NDArray, codes: NDArray, weights: Array) -> Array:
    """The factor of each class: ones, "balanced" (total weight / (K * weight of the class)), or a dictionary."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if spelled("class_weight", class_weight) != "balanced":
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
    if not factors.any():
        raise EmpiriskError("class_weight is zero for every class with rows of positive weight; raise one of them.")
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
    # randint draws below the largest 32-bit number on every platform.
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
