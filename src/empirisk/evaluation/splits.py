"""Training and test rows of every split: scikit-learn's splitters behind the one argument ``cv``."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import model_selection
from sklearn.utils import check_random_state

from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError, MissingValues
from empirisk.theory.bound import check_open

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]
WAYS = ("loo", "holdout", "random")


def make_splits(
    cv: Any,
    y: NDArray,
    *,
    classes: bool,
    groups: NDArray | None = None,
    repeats: int | None = None,
    test_size: float = 0.25,
    time: bool | ArrayLike = False,
    random_state: Any = 0,
) -> list[Split]:
    """The pairs (train, test) of row numbers.

    ``cv`` is a number of folds, "loo", "holdout" (one random split), "random" (``repeats`` random splits), a splitter
    of scikit-learn or the pairs themselves; folds are stratified for classes, keep groups together and follow time
    where asked.

    >>> [test.tolist() for _, test in make_splits(2, np.array([0, 1, 0, 1]), classes=True)]
    [[1, 2], [0, 3]]
    """
    _check_way(cv, repeats, test_size)
    if time is not False:
        return _in_time(cv, len(y), groups, repeats, test_size, time)
    if not isinstance(cv, (str, Integral)):
        return _given(cv, y, groups)
    random = check_random_state(random_state)
    if classes and cv != "loo" and groups is None:
        _check_class_sizes(cv, y)
    if cv == "loo":
        splitter = model_selection.LeaveOneOut() if groups is None else model_selection.LeaveOneGroupOut()
        return _pairs(splitter, y, groups)
    if isinstance(cv, str):
        count = 1 if cv == "holdout" else 10 if repeats is None else int(repeats)
        rules = {"n_splits": count, "test_size": float(test_size), "random_state": random}
        free = model_selection.StratifiedShuffleSplit(**rules) if classes else model_selection.ShuffleSplit(**rules)
        return _pairs(free if groups is None else model_selection.GroupShuffleSplit(**rules), y, groups)
    name = f"{'Stratified' if classes else ''}{'' if groups is None else 'Group'}KFold"
    rules = [{"shuffle": True, "random_state": random.randint(2**31)} for _ in range(repeats or 1)]
    drawn = [_pairs(getattr(model_selection, name)(int(cv), **rule), y, groups) for rule in rules]
    return [split for splits in drawn for split in splits]


def _pairs(splitter: Any, y: NDArray, groups: NDArray | None) -> list[Split]:
    try:
        return list(splitter.split(np.zeros((len(y), 1)), y, groups))
    except ValueError as error:
        raise EmpiriskError(f"cv={splitter!r} cannot split these {len(y)} rows: {error} Use fewer folds.") from error


def _given(cv: Any, y: NDArray, groups: NDArray | None) -> list[Split]:
    """Splits from a splitter or an iterable of pairs, checked."""
    if hasattr(cv, "split"):
        return _pairs(cv, y, groups)
    if not isinstance(cv, Iterable):
        raise EmpiriskError(f"cv={cv!r} must be a number of folds, one of {WAYS}, a splitter, or pairs of row numbers.")
    pairs = [(_numbers(train, len(y)), _numbers(test, len(y))) for train, test in cv]
    if not pairs or any(len(train) == 0 or len(test) == 0 for train, test in pairs):
        raise EmpiriskError("cv holds no split, or one without training or test rows; give pairs (train, test).")
    return pairs


def _numbers(rows: Any, n: int) -> Rows:
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool and len(rows) == n else rows.astype(np.intp)


def _in_time(
    cv: Any, n: int, groups: NDArray | None, repeats: int | None, test_size: float, time: bool | ArrayLike
) -> list[Split]:
    """Train on what came before, test on what came after."""
    if groups is not None or (repeats or 1) > 1:
        raise EmpiriskError("time= leaves one way to split; drop groups and repeats, or drop time.")
    moments = np.arange(n) if time is True else _moments(time, n)
    order = np.argsort(moments, kind="stable")
    if cv == "holdout":
        cut = n - max(1, round(n * float(test_size)))
        return [_before(order[:cut], order[cut:], moments)]
    if not isinstance(cv, Integral):
        raise EmpiriskError(f"cv={cv!r} does not go with time=; give a number of folds or 'holdout'.")
    pairs = _pairs(model_selection.TimeSeriesSplit(int(cv)), order, None)
    return [_before(order[train], order[test], moments) for train, test in pairs]


def _moments(time: ArrayLike, n: int) -> NDArray:
    """The rank of each row in time; rows of the same moment have the same rank."""
    values = np.asarray(time)
    if len(values) != n:
        raise EmpiriskError(f"time has {len(values)} entries for {n} rows; give one for each row, or True.")
    if np.any(values != values):  # NaN and NaT are not equal to themselves
        raise MissingValues("time holds missing values; leave those rows out, or say when they were.")
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _before(train: Rows, test: Rows, moments: NDArray) -> Split:
    """The split without training rows of the same moment as the first test row, since these are not earlier."""
    earlier = train[moments[train] < moments[test].min()]
    if len(earlier) == 0:
        raise EmpiriskError("time leaves no rows before the first test; use fewer folds, or times that differ more.")
    return earlier, test


def _check_way(cv: Any, repeats: int | None, test_size: float) -> None:
    known = not isinstance(cv, str) or cv in WAYS
    if isinstance(cv, bool) or not known or (isinstance(cv, Integral) and cv < 2):
        raise EmpiriskError(f"cv={cv!r} must be a number of folds of at least 2, one of {WAYS}, or a splitter.")
    check_count("repeats", repeats, optional=True)
    if (repeats or 1) > 1 and (cv in ("loo", "holdout") or not isinstance(cv, (str, Integral))):
        raise EmpiriskError(f"repeats={repeats!r} draws folds anew, but cv={cv!r} draws none; leave repeats out.")
    check_open("test_size", test_size)


def _check_class_sizes(cv: Any, y: NDArray) -> None:
    labels, counts = np.unique(y, return_counts=True)
    needed = int(cv) if isinstance(cv, Integral) else 2
    if counts.min() < needed:
        label = labels[counts.argmin()]
        raise EmpiriskError(
            f"cv={cv!r} needs {needed} rows of every class, but class {str(label)!r} has {counts.min()}; use fewer "
            "folds, join rare classes, or give a splitter such as sklearn.model_selection.KFold."
        )
