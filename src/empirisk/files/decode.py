"""The object that a tree stands for, built without running anything the file says."""

import dataclasses
import inspect
import keyword
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.extras import need
from empirisk.files import arrays
from empirisk.files.account import COLUMN, ENTRY, GENERATOR, LIST, TABLE, TAGGED, VALUE, Account, Cost, Damaged
from empirisk.files.encode import BIT_GENERATORS, DEPTH, FRAME_TYPES, NUMPY_TYPES, PLAIN_TYPES, SPARSE
from empirisk.files.rebuild import FITS, check_rebuilt, is_public, rebuilt
from empirisk.files.registry import ENDINGS, GONE, OLD_ENDINGS, OLD_RARE, ONLY, RENAMED, STEP_PLACES, class_of
from empirisk.files.steps import STEPS
from empirisk.state import Mismatch, Scope, State, state_of

#: What a relation can stumble over in a state that makes no sense.
_STUMBLES = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)


@cache
def rules_for(cls: type, name: str) -> State | None:
    """The rules of a class that files call ``name``; None for one that states none, which no file may hold."""
    if name.startswith("sklearn."):
        return STEPS[STEP_PLACES[name]]
    # A record that no prediction reads need not say more than what fields it has.
    return state_of(cls) or (State() if dataclasses.is_dataclass(cls) else None)


def check_state(cls: type, name: str, values: dict[str, Any], inner: Callable[[Any], Scope | None]) -> Scope:
    """The sizes of an object whose state is sound; ``inner`` gives those of the objects inside it."""
    rules = rules_for(cls, name)
    if rules is None:
        raise Damaged(f"a {cls.__name__} in it is of a kind that no file holds")
    try:
        return rules.check(values, parameters_of(cls, values), Scope(inner))
    except Mismatch as error:
        raise Damaged(f"in its {cls.__name__}, {error}") from None
    except _STUMBLES as error:
        raise Damaged(f"a {cls.__name__} in it does not hold together") from error


def parameters_of(cls: type, values: dict[str, Any]) -> list[str]:
    """What the constructor of a class takes: an object has these before it has learned anything."""
    if hasattr(cls, "_get_param_names"):
        return list(_defaults(cls))
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    return [name for name in values if not name.endswith("_")]  # a splitter


@cache
def _defaults(cls: type[BaseEstimator]) -> dict[str, Any]:
    """The defaults of an estimator's parameters; to look at its signature takes longer than to read most files."""
    parameters = inspect.signature(cls).parameters
    return {name: parameters[name].default for name in cls._get_param_names()}


def renamed(cls: type, name: str, tree: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object in a file under the names that they have now."""
    rules = rules_for(cls, name)
    known = set(parameters_of(cls, {})) | set(rules.rules if rules is not None else ())
    new = {old: now for old, now in RENAMED.items() if old in tree and old not in known and now in known}
    if any(now in tree for now in new.values()):
        raise Damaged(f"a {cls.__name__} in it has an attribute under two names")
    return {new.get(key, key): item for key, item in tree.items()}


WIDEST = 1024  # letters that an array of texts may leave room for, whatever is in it
LONGEST_TEXT = 100_000  # letters of a type of texts: rows are turned into it
TWISTER = 624  # words in the state of the Mersenne twister; reading beyond them would read other memory
SAME_HASH = 100  # keys of a table that may have one hash: more of them are made so, and each is compared with all
#: Whole numbers beyond 64 bits that a file may hold: those that Python cannot tell apart by their hash are among them.
MOST_LARGE = 10_000


class Built(NamedTuple):
    """An object that was built, what it cost, and how many objects inside each other it is."""

    made: Any
    cost: Cost
    height: int


class Decoder:
    """Turns a tree back into objects; arrays come from the source, and the account limits the memory of all."""

    def __init__(self, source: arrays.Source, account: Account):
        self._source, self._account = source, account
        self._objects: dict[int, Built] = {}
        self._scopes: dict[int, Scope] = {}  # of objects built, by identity
        self._depth = self._height = self._large = 0

    def value(self, tree: Any) -> Any:
        """The value of a tree."""
        if tree is None or type(tree) in (bool, float, str):
            return tree
        if type(tree) is int:
            return tree if abs(tree) >> 64 == 0 else self._large_number(tree)
        self._depth += 1
        if self._depth > 4 * DEPTH:
            raise Damaged("its tree is too deep")
        self._account.take(LIST + ENTRY * len(tree) if isinstance(tree, list) else TAGGED)
        self._account.add_work(VALUE * (1 + len(tree)))
        found = [self.value(item) for item in tree] if isinstance(tree, list) else self._tagged(tree)
        self._depth -= 1
        return found

    def _large_number(self, tree: int) -> int:
        self._large += 1
        if self._large > MOST_LARGE:
            raise Damaged("it holds too many whole numbers beyond 64 bits")
        return tree

    def _tagged(self, tree: dict[str, Any]) -> Any:
        if len(tree) != 1:
            raise Damaged("its tree holds something of no known kind")
        ((kind, content),) = tree.items()
        if kind not in _KINDS:
            raise Damaged(f"its tree holds something of the unknown kind {kind[:LETTERS]!r}")
        return _KINDS[kind](self, content)

    def _read_float(self, content: str) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]

    def _read_tuple(self, content: list) -> tuple:
        return tuple(self.value(_typed(content, list)))

    def _read_set(self, content: list) -> set:
        return set(_spread(self.value(_typed(content, list))))

    def _read_frozenset(self, content: list) -> frozenset:
        return frozenset(_spread(self.value(_typed(content, list))))

    def _read_dict(self, content: list) -> dict:
        pairs = self.value(_typed(content, list))
        return dict(zip(_spread(key for key, _ in pairs), (item for _, item in pairs), strict=True))

    def _read_slice(self, content: list) -> slice:
        start, stop, step = content
        return slice(self.value(start), self.value(stop), self.value(step))

    def _read_type(self, content: str) -> type:
        return (PLAIN_TYPES | NUMPY_TYPES)[content]

    def _read_dtype(self, content: str) -> np.dtype:
        if content != "|O" and content not in arrays.TYPES and not re.fullmatch(r"<U\d{1,9}", content):
            raise Damaged("its tree names an unknown type")
        found = np.dtype(content)
        if found.itemsize > 4 * LONGEST_TEXT:  # NumPy's letters have four bytes
            raise Damaged("its tree names a type of texts that are too long")
        return found

    def _read_scalar(self, content: list) -> Any:
        kind, item = content
        if kind not in arrays.TYPES:
            raise Damaged("its tree holds a number of an unknown type")
        return np.dtype(kind).type(self.value(item))

    def _read_text(self, content: str) -> np.str_:
        return np.str_(_typed(content, str))

    def _read_objects(self, content: list) -> NDArray:
        shape, items = content
        if arrays.entries(shape) != len(_typed(items, list)):
            raise Damaged("an array in it is not of the size that it announces")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.value(item)
        _spread(filter(_is_key, array))  # whoever looks for the categories in it makes a table of them
        return arrays.frozen(array.reshape(shape))

    def _read_texts(self, content: list) -> NDArray:
        shape, width, items = content
        if arrays.entries(shape) != len(_typed(items, list)) or not all(type(item) is str for item in items):
            raise Damaged("an array of texts in it is not of the size that it announces")
        longest = max(map(len, items), default=0)
        # NumPy gives every text the width of the widest that was ever there; far beyond it is a trick to take memory.
        if type(width) is not int or not longest <= width <= WIDEST + 16 * longest:
            raise Damaged("an array of texts in it announces an impossible width")
        self._account.take(4 * width * len(items))
        self._account.add_work(4 * width * len(items))
        return arrays.frozen(np.array(items, dtype=f"<U{width}").reshape(shape))

    def _read_array(self, content: list) -> NDArray:
        number, kind, shape, fortran = content
        self._account.add_work(arrays.check_description(kind, shape, fortran))
        found = self._source.get(_typed(number, int), kind, shape, fortran)
        if found.dtype.str != kind or list(found.shape) != shape:
            raise Damaged("an array in it is of two types")
        return found

    def _read_sparse(self, content: list) -> Any:
        kind, shape, *parts = content
        data, indices, indptr = (self.value(part) for part in parts)
        arrays.entries(shape)
        _check_sparse(data, indices, indptr, *(shape if kind.startswith("csr") else shape[::-1]))
        matrix = SPARSE[kind]((data, indices, indptr), shape=tuple(shape))
        if matrix.has_canonical_format:
            return matrix
        self._account.take(2 * sum(part.nbytes for part in (data, indices, indptr)))
        sorted_ = matrix.copy()  # SciPy would do so in place, when it is first asked
        sorted_.sum_duplicates()
        parts = tuple(map(arrays.frozen, (sorted_.data, sorted_.indices, sorted_.indptr)))
        return SPARSE[kind](parts, shape=tuple(shape))

    def _read_frame(self, content: list) -> Any:
        need("A model with a table in it", "learn", "polars")
        import polars as pl  # files without tables need it not

        self._account.take(COLUMN * (1 + len(content)))
        self._account.add_work(TABLE + COLUMN * len(content))
        if any(kind not in FRAME_TYPES for _, kind, _ in _typed(content, list)):
            raise Damaged("a table in it has a column of a type that no file holds")
        try:
            columns = [
                pl.Series(_typed(name, str), self.value(_typed(items, list)), dtype=getattr(pl, kind))
                for name, kind, items in content
            ]
            return pl.DataFrame(columns)
        except pl.exceptions.PolarsError as error:
            raise Damaged("a table in it does not hold together") from error

    def _read_random_state(self, content: Any) -> np.random.RandomState:
        self._account.take(GENERATOR // 4)
        self._account.add_work(GENERATOR)
        random = np.random.RandomState(0)
        random.set_state(_sound_state(self.value(content)))
        return random

    def _read_generator(self, content: Any) -> np.random.Generator:
        self._account.take(GENERATOR // 4)
        self._account.add_work(GENERATOR)
        state = _sound_state(self.value(content))
        bits: Any = BIT_GENERATORS[state["bit_generator"]](0)
        bits.state = state
        return np.random.Generator(bits)

    def _read_same(self, content: int) -> Any:
        built = self._objects[content]
        self._account.repeat(built.cost)
        self._height = max(self._height, built.height)
        return built.made

    def _read_object(self, content: list) -> Any:
        name, number, tree = content
        before, beside, self._height = self._account.begin(), self._height, 0
        cls = class_of(name)
        state = {_attribute(cls, key): self.value(item) for key, item in renamed(cls, name, tree).items()}
        for gone in GONE.get(name, ()):
            state.pop(gone, None)
        for key in ENDINGS:
            if isinstance(state.get(key), str):
                state[key] = OLD_ENDINGS.get(state[key], state[key])
        if _typed(number, int) in self._objects:
            raise Damaged("two objects in it have one number")
        for (owner, key), allowed in ONLY.items():
            if owner == name and state.get(key) != allowed:
                raise Damaged(f"its {name} would use other files")
        _add_defaults(cls, state)
        private = _take_private(state) if name.startswith("sklearn.") else {}
        scope = check_state(cls, name, state, lambda value: self._scopes.get(id(value)))
        again = name in FITS and scope.fitted
        made = self._rebuilt(cls, name, state, private, scope) if again else _build(cls, state)
        height = self._height + 1
        if height > DEPTH:
            raise Damaged("its objects hold each other too deep")
        self._height = max(beside, height)
        self._objects[number] = Built(made, self._account.since(before), height)
        self._scopes[id(made)] = scope
        return made

    def _rebuilt(self, cls: type, name: str, state: dict[str, Any], private: dict[str, Any], scope: Scope) -> Any:
        try:
            return rebuilt(cls, name, state, private, scope, self._account)
        except EmpiriskError:
            raise
        except _STUMBLES as error:
            raise Damaged(f"a {cls.__name__} in it does not hold together") from error

    def check_rebuilt(self, saved: Sequence[Any]) -> None:
        """Raise unless the steps of scikit-learn are those that were written, by their numbers."""
        for number, step in enumerate(saved):
            if type(step).__module__.startswith("sklearn.") and isinstance(step, BaseEstimator):
                check_rebuilt(step, self._objects[number].made)


def _add_defaults(cls: type, state: dict[str, Any]) -> None:
    """Give parameters that are newer than the file their defaults."""
    if issubclass(cls, BaseEstimator):
        for name, default in _defaults(cls).items():
            if default is not inspect.Parameter.empty:
                state.setdefault(name, default)
    elif dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            if field.default is not dataclasses.MISSING:
                state.setdefault(field.name, field.default)
            elif field.default_factory is not dataclasses.MISSING:
                state.setdefault(field.name, field.default_factory())
    for name in parameters_of(cls, state):
        if name not in state:
            raise Damaged(f"a {cls.__name__} in it lacks {name!r}")


def _take_private(state: dict[str, Any]) -> dict[str, Any]:
    """Take away the private attributes of a step of scikit-learn, all of which older files have."""
    private = {key: state.pop(key) for key in list(state) if not is_public(key)}
    if OLD_RARE in private:
        pairs = zip(state["categories_"], private[OLD_RARE], strict=True)
        state["infrequent_categories_"] = [None if rare is None else found[rare] for found, rare in pairs]
    return private


def _build(cls: type, state: dict[str, Any]) -> Any:
    """An object with this state, made without its constructor."""
    made = object.__new__(cls)
    if isinstance(made, BaseEstimator):
        made.__setstate__(state)
    else:
        vars(made).update(state)
    return made


def _attribute(cls: type, name: str) -> str:
    """An attribute that a state may set: no methods, nothing that Python itself looks at."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise Damaged(f"a {cls.__name__} in it has an attribute {name[:LETTERS]!r}")
    replaces = isinstance(getattr(cls, name, None), property) and name != "infrequent_categories_"
    if callable(getattr(cls, name, None)) or replaces:
        raise Damaged(f"a {cls.__name__} in it replaces {name!r}")
    return name


def _check_sparse(data: NDArray, indices: NDArray, indptr: NDArray, major: int, minor: int) -> None:
    """SciPy's own check looks at nothing where the last pointer is 0; compiled code would follow the others."""
    if any(part.ndim != 1 for part in (data, indices, indptr)) or any(
        part.dtype.kind != "i" for part in (indices, indptr)
    ):
        raise Damaged("a sparse matrix in it has parts of another kind")
    rising = len(indptr) == major + 1 and indptr[0] == 0 and bool(np.all(indptr[:-1] <= indptr[1:]))
    if not rising or indptr[-1] != len(indices) or len(data) != len(indices):
        raise Damaged("a sparse matrix in it has pointers that do not rise to its end")
    if len(indices) and (indices.min() < 0 or indices.max() >= minor):
        raise Damaged("a sparse matrix in it points outside itself")


def _sound_state(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a random generator; a position outside its words is an error."""
    inner = state["state"]
    sound = "pos" not in inner or (0 <= inner["pos"] <= TWISTER and np.shape(inner["key"]) == (TWISTER,))
    if not sound or not 0 <= state.get("buffer_pos", 0) <= 4:
        raise Damaged("a random generator in it has an impossible state")
    return state


def _spread(keys: Iterable[Any]) -> list[Any]:
    """Keys of a table or a set, unless so many that differ share one hash that inserting them takes quadratic time."""
    found = list(keys)
    hashes = np.fromiter(map(hash, found), np.int64, len(found))
    order, counts = np.argsort(hashes), np.unique(hashes, return_counts=True)[1]
    for last, count in zip(np.cumsum(counts), counts, strict=True):
        different: list[Any] = []
        for place in order[last - count : last] if count > SAME_HASH else ():
            if found[place] not in different:
                different.append(found[place])
            if len(different) > SAME_HASH:
                raise Damaged("its tree holds a table whose keys have one hash")
    return found


def _is_key(value: Any) -> bool:
    """Whether a table could have a value as its key; the hash of a text is none that a file could foresee."""
    try:
        hash(value)
    except TypeError:
        return False
    return type(value) is not str


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise Damaged(f"its tree holds {str(value)[:LETTERS]!r} where it should hold {kind.__name__}")
    return value


def decode(tree: Any, source: arrays.Source, account: Account, saved: Sequence[Any] = ()) -> Any:
    """The object of a tree; any tree that does not fit is one `EmpiriskError`, as is one that is not what is saved."""
    if not isinstance(tree, dict) or set(tree) != {"root"}:
        raise Damaged("its tree has no root")
    try:
        decoder = Decoder(source, account)
        found = decoder.value(tree["root"])
        decoder.check_rebuilt(saved)
    except EmpiriskError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged("its tree does not hold together") from error
    unused = source.unused()
    if unused is not None:
        raise Damaged(f"nothing uses its member {unused!r}")
    return found


#: What a tree may hold, each read by the method with its name.
_KINDS: dict[str, Callable[[Decoder, Any], Any]] = {
    name.removeprefix("_read_"): method for name, method in vars(Decoder).items() if name.startswith("_read_")
}
