"""A fitted object as a JSON tree and a list of arrays.

Numbers, texts, lists, true, false and nothing are themselves; everything else is a JSON object with one key that says
what it is, such as ``{"tuple": [...]}`` or ``{"array": [3, "<f8", [10], false]}``. What has no such form is refused
with the path to it.
"""

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.files import arrays
from empirisk.files.rebuild import is_kept
from empirisk.files.registry import ONLY, name_of
from empirisk.linalg.accelerator import lie_on_device
from empirisk.state import fitted_elsewhere

DEPTH = 100  # objects within objects
BIT_GENERATORS = {cls.__name__: cls for cls in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64)}
PLAIN_TYPES = {"float": float, "int": int, "bool": bool, "str": str, "object": object}
_NUMBERS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
NUMPY_TYPES = {f"numpy.{name}": getattr(np, name) for name in (*_NUMBERS, "bool_", "object_", "str_")}
TYPE_NAMES = {cls: name for name, cls in (PLAIN_TYPES | NUMPY_TYPES).items()}
#: Types of columns by the names that Polars has for them.
FRAME_TYPES = ("Float64", "Float32", "Int64", "Int32", "Int16", "Int8", "UInt64", "UInt32", "UInt16", "UInt8")
FRAME_TYPES += ("Boolean", "String")
SPARSE = {cls.__name__: cls for cls in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array)}


class ModelEncoder:
    """Turns objects into the tree and keeps the arrays beside it; an object met twice is written once."""

    def __init__(self, durations: bool = True) -> None:
        self.arrays: list[np.ndarray] = []
        self._durations = durations
        self._array_numbers: dict[int, int] = {}
        self._numbers: dict[int, int | None] = {}  # of objects by identity; None while their state is being written
        self.written: list[Any] = []  # kept alive, so that no identity is given twice
        self._copies: list[tuple[Any, Any]] = []  # of what can be changed, and what was in it

    def value(self, value: Any, where: str) -> Any:
        """The tree of any value; ``where`` is the path to it, for the error."""
        if where.count(".") + where.count("[") > DEPTH:
            raise EmpiriskError(
                f"{where[:LETTERS]}... holds objects inside objects without end, which no file can hold."
            )
        if value is None or type(value) in (bool, int, str):
            return value
        form = _FORMS.get(type(value))
        if form is not None:
            return form(self, value, where)
        if nw.dependencies.is_polars_dataframe(value):
            return self._frame(value, where)
        if lie_on_device(value):
            return self._array(np.asarray(value), where)
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, type) and value in TYPE_NAMES:
            return {"type": TYPE_NAMES[value]}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        return self._object(value, where)

    def _float(self, value: float, where: str) -> Any:
        return value if math.isfinite(value) else {"float": str(value)}

    def changed(self) -> bool:
        """Whether another thread has changed an object, a list or a table since it was written into the tree."""
        return any(map(fitted_elsewhere, self.written)) or not all(_is_same(*pair) for pair in self._copies)

    def _copy(self, value: Any) -> Any:
        copy = value.copy()
        self._copies.append((value, copy))
        return copy

    def _list(self, value: list, where: str) -> Any:
        return self._items(self._copy(value), where)

    def _items(self, value: Iterable, where: str) -> Any:
        return [self.value(item, f"{where}[{i}]") for i, item in enumerate(value)]

    def _tuple(self, value: tuple, where: str) -> Any:
        return {"tuple": self._items(value, where)}

    def _set(self, value: Any, where: str) -> Any:
        # Sorted: the same model gives the same bytes.
        items = sorted(value.copy(), key=lambda item: (type(item).__name__, repr(item)))
        return {type(value).__name__: self._items(items, where)}

    def _dict(self, value: dict, where: str) -> Any:
        copy = self._copy(value)
        pairs = ((self.value(key, where), self.value(item, f"{where}[{key!r}]")) for key, item in copy.items())
        return {"dict": [list(pair) for pair in pairs]}

    def _slice(self, value: slice, where: str) -> Any:
        return {"slice": [self.value(part, where) for part in (value.start, value.stop, value.step)]}

    def _scalar(self, value: np.generic, where: str) -> Any:
        if value.dtype.kind in "biuf":
            return {"scalar": [value.dtype.newbyteorder("<").str, self.value(value.item(), where)]}
        if value.dtype.kind == "U":
            return {"text": str(value)}
        raise _refused(value, where)

    def _array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.kind == "O":
            return {"objects": [list(value.shape), self._items(value.ravel().tolist(), where)]}
        if value.dtype.kind == "U":
            return {"texts": [list(value.shape), value.dtype.itemsize // 4, value.ravel().tolist()]}
        described = arrays.describe(value, where)
        if id(value) not in self._array_numbers:
            self._array_numbers[id(value)] = len(self.arrays)
            self.arrays.append(value)
        return {"array": [self._array_numbers[id(value)], *described]}

    def _sparse(self, value: Any, where: str) -> Any:
        parts = [self._array(part, where) for part in (value.data, value.indices, value.indptr)]
        return {"sparse": [type(value).__name__, list(value.shape), *parts]}

    def _frame(self, value: Any, where: str) -> Any:
        odd = [name for name, kind in value.schema.items() if str(kind) not in FRAME_TYPES]
        if odd:
            raise EmpiriskError(f"{where} has a column {odd[0]!r} of a type that a model file cannot hold.")
        return {"frame": [[column.name, str(column.dtype), self._items(column.to_list(), where)] for column in value]}

    def _random_state(self, value: np.random.RandomState, where: str) -> Any:
        return {"random_state": self.value(dict(value.get_state(legacy=False)), where)}

    def _generator(self, value: np.random.Generator, where: str) -> Any:
        state = value.bit_generator.state
        if state["bit_generator"] not in BIT_GENERATORS:
            raise _refused(value, where)
        return {"generator": self.value(dict(state), where)}

    def _object(self, value: Any, where: str) -> Any:
        """An object of a class in the registry, by its name and its state."""
        known = self._numbers.get(id(value), -1)
        if known is None:
            raise EmpiriskError(f"{where} refers back to an object that contains it, which no file can hold.")
        if known >= 0:
            return {"same": known}
        name = name_of(type(value))
        if name is None:
            raise _refused(value, where)
        if fitted_elsewhere(value):
            raise EmpiriskError(f"{where} is being fitted by another thread; save it when its fit has returned.")
        self._numbers[id(value)] = None
        self._copy(vars(value))
        kept = state_of(value, name, where)
        kept = kept if self._durations else _timeless(kept, name)
        state = {key: self.value(item, f"{where}.{key}") for key, item in kept.items()}
        number = self._numbers[id(value)] = len(self.written)
        self.written.append(value)
        return {"object": [name, number, state]}


def state_of(value: Any, name: str, where: str) -> dict[str, Any]:
    """What to keep of an object: the fields of a record, else what it would pickle, without progress callbacks."""
    if isinstance(value, BaseEstimator):  # its fields, if it has some, are its parameters alone
        state = value.__getstate__()
    elif dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        state = vars(value)
    kept = {key: item for key, item in (state or {}).items() if "callback" not in key}
    if name.startswith("sklearn."):
        kept = {key: item for key, item in kept.items() if is_kept(key, item)}
        if hasattr(value, "infrequent_categories_"):  # a property
            kept["infrequent_categories_"] = value.infrequent_categories_
    for (owner, key), allowed in ONLY.items():
        if owner == name and allowed is None:
            kept[key] = None
        elif owner == name and kept.get(key) != allowed:
            raise EmpiriskError(f"{where}.{key} must be {allowed!r} in a model file, since it would use other files.")
    return kept


def _is_same(value: Any, copy: Any) -> bool:
    """Whether a list or a table still holds what its copy does."""
    if isinstance(value, list):
        return len(value) == len(copy) and all(map(operator.is_, value, copy))
    return list(value) == list(copy) and all(map(operator.is_, list(value.values()), copy.values()))


def _timeless(kept: dict[str, Any], name: str) -> dict[str, Any]:
    """A state without what the clock said: the seconds of a certificate and of a history."""
    if name == "Certificate":
        return kept | {"seconds": math.nan}
    if isinstance(kept.get("history_"), dict):
        return kept | {"history_": {key: item for key, item in kept["history_"].items() if key != "seconds"}}
    return kept


def _refused(value: Any, where: str) -> EmpiriskError:
    if callable(value) and not isinstance(value, BaseEstimator):
        kind = "class" if isinstance(value, type) else "function"
        return EmpiriskError(
            f"{where} is the {kind} {getattr(value, '__qualname__', repr(value))}, which a model file cannot hold, "
            "since loading must not run code; use a part of Empirisk or a named option in its place."
        )
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return EmpiriskError(
        f"{where} is a {kind}, which a model file cannot hold; use machines, parts and steps that Empirisk knows."
    )


_FORMS: dict[type, Callable[[ModelEncoder, Any, str], Any]] = {
    float: ModelEncoder._float,
    list: ModelEncoder._list,
    tuple: ModelEncoder._tuple,
    set: ModelEncoder._set,
    frozenset: ModelEncoder._set,
    dict: ModelEncoder._dict,
    slice: ModelEncoder._slice,
    np.ndarray: ModelEncoder._array,
    np.random.RandomState: ModelEncoder._random_state,
    np.random.Generator: ModelEncoder._generator,
    **dict.fromkeys(SPARSE.values(), ModelEncoder._sparse),
}
