"""Arguments of the ensembles, checked: numbers in range, columns to draw, constraints by column."""

from collections.abc import Mapping
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.inputs import Array, class_codes, class_weights, sorted_classes
from empirisk.errors import EmpiriskError
from empirisk.parts import is_finite, is_number


def check_number(name: str, value: Any, low: float, high: float = np.inf, above: bool = False) -> float:
    """A number in [low, high], or in (low, high] if ``above``; else a sentence that names the argument."""
    number: Any = value if is_number(value) else np.nan  # NaN fails below
    if not (number > low if above else number >= low) or not number <= high:
        least = f"above {low:g}" if above else f"at least {low:g}"
        most = "" if np.isinf(high) else f" and at most {high:g}"
        raise EmpiriskError(f"{name}={value!r} must be a number {least}{most}.")
    return float(number) if is_finite(number) else np.inf  # a whole number beyond all floats is as good as that


def check_count(name: str, value: Any, low: int = 1, optional: bool = False) -> int | None:
    """A whole number of at least ``low``, or None where that is allowed."""
    if value is None and optional:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        other = " or None" if optional else ""
        raise EmpiriskError(f"{name}={value!r} must be a whole number of at least {low}{other}.")
    return int(value)


def check_flag(name: str, value: Any) -> None:
    """True or False, and nothing that stands for them."""
    if not isinstance(value, (bool, np.bool_)):
        raise EmpiriskError(f"{name}={value!r} must be True or False.")


def check_splitter(splitter: Any) -> bool:
    """Whether the cuts of trees are drawn at random: "random", or "best"."""
    if splitter not in ("best", "random"):
        raise EmpiriskError(f"splitter={splitter!r} is not known; use 'best' or 'random'.")
    return splitter == "random"


def check_validation(fraction: Any) -> float:
    """The share of rows that ``validation_fraction`` holds out: more than none, and less than all."""
    share = check_number("validation_fraction", fraction, 0, above=True)
    if not share < 1:
        raise EmpiriskError(f"validation_fraction={share:g} must be below 1: some rows must be left to learn from.")
    return share


def count_features(max_features: Any, n_features: int) -> int:
    """How many columns to look at: a whole number, a share of all, "sqrt", "log2", or None for all.

    >>> [count_features(choice, 30) for choice in ("sqrt", "log2", 0.5, 7, None)]
    [5, 4, 15, 7, 30]
    """
    if max_features is None:
        return n_features
    if isinstance(max_features, str) and max_features in ("sqrt", "log2"):
        return max(1, int(getattr(np, max_features)(n_features)))
    number: Any = max_features if is_number(max_features) else np.nan
    if isinstance(max_features, Integral) and number >= 1:
        return min(int(max_features), n_features)
    if not isinstance(max_features, Integral) and 0.0 < number <= 1.0:
        return max(1, int(number * n_features))
    raise EmpiriskError(
        f"max_features={max_features!r} must be 'sqrt', 'log2', None, a number of columns from 1 on, or a share above "
        "0 and at most 1.0."
    )


def sample_part(max_samples: Any, size: int) -> float:
    """The part of ``size`` rows that a sample has: a number of rows, a share of them, or None for all.

    >>> [sample_part(asked, 40) for asked in (10, 0.5, None)]
    [0.25, 0.5, 1.0]
    """
    if max_samples is None:
        return 1.0
    if isinstance(max_samples, Integral) and not isinstance(max_samples, bool):
        if not 1 <= int(max_samples) <= size:
            raise EmpiriskError(f"max_samples={max_samples!r} must be from 1 to {size} rows, or a share such as 0.5.")
        return int(max_samples) / size
    return check_number("max_samples", max_samples, 0, 1, above=True)


def check_monotone(constraints: Any, names: tuple[str, ...], categorical: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Constraints as -1, 0 or +1 for each column, from a list in the order of the columns or a mapping by name."""
    signs = np.zeros(len(names), dtype=np.int8)
    if constraints is None:
        return signs
    if isinstance(constraints, Mapping):
        unknown = [name for name in constraints if name not in names]
        if unknown:
            raise EmpiriskError(f"monotonic_cst names columns that X does not have: {unknown}.")
        given = np.array([constraints.get(name, 0) for name in names])
    else:
        given = np.asarray(constraints)
    if given.shape != (len(names),):
        raise EmpiriskError(
            f"monotonic_cst has shape {given.shape}, but X has {len(names)} columns; give -1, 0 or 1 for each."
        )
    if not np.isin(given, (-1, 0, 1)).all():
        raise EmpiriskError("monotonic_cst must hold -1 (falling), 0 (free) or 1 (rising) only.")
    if (categorical & (given != 0)).any():
        held = [names[k] for k in np.flatnonzero(categorical & (given != 0))]
        raise EmpiriskError(f"monotonic_cst on {held}: categories have no order; drop the constraint.")
    signs[:] = given
    return signs


#: Groups of columns that may be split together: each is a bit of a number, and two are not used.
MOST_GROUPS = 62


def check_interactions(constraints: Any, names: tuple[str, ...]) -> NDArray[np.int64]:
    """For each column a bit for every group that it is in; all bits where nothing is asked.

    >>> check_interactions([["a", "b"], [1, 2]], ("a", "b", "c", "d")).tolist()
    [1, 3, 2, 4]
    """
    width = len(names)
    if constraints is None:
        return np.full(width, -1, dtype=np.int64)
    if isinstance(constraints, str):
        if constraints not in ("no_interactions", "pairwise"):
            raise EmpiriskError(
                f"interaction_cst={constraints!r} must be 'no_interactions', 'pairwise' or a list of groups of columns."
            )
        groups = list(combinations(range(width), min(width, 1 if constraints == "no_interactions" else 2)))
    else:
        groups = [{_column_of(item, names) for item in group} for group in constraints]
    others = set(range(width)).difference(*groups) if groups else set(range(width))
    groups = [*groups, others] if others else groups
    if len(groups) > MOST_GROUPS:
        raise EmpiriskError(
            f"interaction_cst has {len(groups)} groups of columns, and there may be {MOST_GROUPS}; give fewer groups."
        )
    bits = np.zeros(width, dtype=np.int64)
    for number, group in enumerate(groups):
        bits[list(group)] |= np.int64(1) << number
    return bits


def _column_of(item: Any, names: tuple[str, ...]) -> int:
    """The position of a column that a constraint names."""
    if isinstance(item, str) and item in names:
        return names.index(item)
    if isinstance(item, Integral) and not isinstance(item, bool) and 0 <= int(item) < len(names):
        return int(item)
    raise EmpiriskError(
        f"interaction_cst names the column {item!r}, which X does not have; its columns are {list(names)}."
    )


def weigh_classes(
    y: NDArray, weights: Array, class_weight: dict[Any, float] | str | None
) -> tuple[NDArray, NDArray[np.intp], Array]:
    """The sorted classes that have weight, the class number of every row (-1 for a class without weight), its factor.

    >>> weigh_classes(np.array(["b", "a", "c"]), np.array([1.0, 1.0, 0.0]), {"a": 3.0})
    (array(['a', 'b'], dtype='<U1'), array([ 1,  0, -1]), array([1., 3., 0.]))
    """
    classes = sorted_classes(y, weights)
    codes = class_codes(y, classes)
    factors = np.where(codes < 0, 0.0, class_weights(class_weight, classes, codes, weights)[codes])
    return classes, codes, factors


def check_time(max_time: Any) -> None:
    """A positive number of seconds, or None."""
    if max_time is not None:
        check_number("max_time", max_time, 0, above=True)
