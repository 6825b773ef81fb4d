"""What the state of an object may be. A state that comes from a file is checked whole before any method runs on it.

A class says it beside its methods, in a few lines:

    class Means(BaseEstimator):
        _state = State(
            n_features_in_=size("columns"),
            classes_=labels("classes"),
            means_=array("f8", "classes", "columns"),
            nearest_=array("i", "rows", below="classes"),
        )

A word among the sizes stands for one number all over the object: whoever comes first sets it, the others must agree.
The states of base classes are added up. Parameters of the constructor need a rule only where predictions read them;
any other attribute must have one, or the file is refused. An object is unfitted (none of its attributes is there) or
whole (all are, but the `optional` ones).
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, reduce, wraps
from operator import or_
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from scipy import sparse

from empirisk.errors import LETTERS

#: A test of one value: it raises `Mismatch`, and notes sizes in the scope.
Test = Callable[[Any, "Scope"], None]
#: A relation between the values of an object that sizes cannot say: what is wrong, or None.
Relation = Callable[[Mapping[str, Any]], str | None]

Options = ParamSpec("Options")
Method = TypeVar("Method", bound=Callable[..., Any])
_LARGEST = 2**62  # a size beyond it is no size of anything in memory


class Mismatch(ValueError):
    """A value that is not what the rule asks for; the message completes 'coef_ ...'."""


class Scope:
    """The sizes of one object by their words, and the comparisons that wait until all sizes are known."""

    def __init__(self, inner: Callable[[Any], "Scope | None"] = lambda value: None):
        self.sizes: dict[str, int] = {}
        self.fitted = False
        self.inner = inner
        self.attribute = ""
        self._later: list[tuple[str, str, int]] = []

    def bind(self, word: str | int | None, size: int) -> None:
        """Note that ``word`` is ``size``, or raise if it is another size already."""
        if word is None:
            return
        known = word if isinstance(word, int) else self.sizes.setdefault(word, size)
        if known != size:
            raise Mismatch(f"has a size of {size} where {word if isinstance(word, str) else 'it'} is {known}")

    def below(self, word: str, largest: int) -> None:
        """Ask for ``largest < word`` once all sizes are known."""
        self._later.append((self.attribute, word, largest))

    def settle(self) -> None:
        """Make the comparisons that waited."""
        for attribute, word, largest in self._later:
            if word not in self.sizes or largest >= self.sizes[word]:
                raise Mismatch(f"{attribute} points at number {largest} of {self.sizes.get(word, 0)} {word}")


class Rule:
    """A test of a value, and whether the attribute may be absent."""

    def __init__(self, test: Test, absent: bool = False):
        self.test, self.absent = test, absent


def rule(test: Callable[Concatenate[Any, Scope, Options], None]) -> Callable[Options, Rule]:
    """Decorator: a test of a value with some options becomes a function that makes a rule of the options."""

    def make(*options: Options.args, **named: Options.kwargs) -> Rule:
        return Rule(lambda value, scope: test(value, scope, *options, **named))

    return make


class State:
    """The attributes that an object may have, each with its rule.

    Parameters
    ----------
    *relations : functions
        Of the mapping of attributes; each returns what is wrong, or None. They run after all rules have passed.
    forms : tuples of names
        Of the attributes in these groups a fitted object has those of exactly one group.
    filled : words
        Sizes that are not 0 in a fitted object: no answer comes from no neighbours, clusters or members.
    sizes : dict of functions
        Sizes that no attribute has but all together give, by their word: a function of the mapping of attributes.
    **rules : Rule
        By the name of the attribute.

    Examples
    --------
    >>> rules = State(n_features_in_=size("columns"), coef_=array("f", "columns"))
    >>> rules.check({"n_features_in_": 2, "coef_": np.zeros(3)}, parameters=())
    Traceback (most recent call last):
    ...
    empirisk.state.Mismatch: coef_ has a size of 3 where columns is 2
    """

    def __init__(
        self,
        *relations: Relation,
        forms: tuple[tuple[str, ...], ...] = (),
        filled: tuple[str, ...] = (),
        sizes: Mapping[str, Callable[[Mapping[str, Any]], int]] | None = None,
        **rules: Rule,
    ):
        self.relations, self.forms, self.filled = relations, forms, filled
        self.sizes, self.rules = dict(sizes or {}), rules

    def __or__(self, other: "State") -> "State":
        return State(
            *self.relations,
            *other.relations,
            forms=other.forms or self.forms,
            filled=self.filled + other.filled,
            sizes={**self.sizes, **other.sizes},
            **{**self.rules, **other.rules},
        )

    def check(self, values: Mapping[str, Any], parameters: Iterable[str], scope: Scope | None = None) -> Scope:
        """The sizes of a state that holds together, or `Mismatch` with the attribute that does not."""
        scope = Scope() if scope is None else scope
        parameters = set(parameters)
        for name in values:
            if name not in self.rules and name not in parameters and name not in COMMON.rules:
                raise Mismatch(f"{name[:LETTERS]} is no attribute of such an object")
        scope.fitted = self._is_fitted(values, parameters)
        for name, rule in {**COMMON.rules, **self.rules}.items():
            if name in values:
                scope.attribute = name
                try:
                    rule.test(values[name], scope)
                except Mismatch as error:
                    raise Mismatch(f"{name} {error}") from None
        for word, of in self.sizes.items() if scope.fitted else ():
            scope.bind(word, of(values))
        scope.settle()
        for word in self.filled if scope.fitted else ():
            if scope.sizes.get(word) == 0:
                raise Mismatch(f"{word} is 0, which leaves nothing to answer from")
        for relation in self.relations if scope.fitted else ():
            wrong = relation(values)
            if wrong is not None:
                raise Mismatch(wrong)
        return scope

    def _is_fitted(self, values: Mapping[str, Any], parameters: set[str]) -> bool:
        """Whether fitted attributes are there; then all must be, in one of the forms."""
        learned = set(self.rules) - parameters
        if learned.isdisjoint(values) and "n_features_in_" not in values:
            # A class that learns nothing is always ready.
            return all(self.rules[name].absent for name in learned) and not self.forms
        in_forms = {name for form in self.forms for name in form}
        for name in sorted(learned - in_forms):
            if name not in values and not self.rules[name].absent:
                raise Mismatch(f"{name} is missing")
        there = in_forms & set(values)
        if self.forms and there not in [set(form) for form in self.forms]:
            raise Mismatch(f"{' and '.join(sorted(there)) or self.forms[0][0]} are not one whole form of it")
        return True


@cache
def state_of(cls: type) -> State | None:
    """The states of a class and its bases, added up; None where none of them states one."""
    found = [vars(base)["_state"] for base in reversed(cls.__mro__) if isinstance(vars(base).get("_state"), State)]
    return reduce(or_, found) if found else None


# --- rules ------------------------------------------------------------------------------------------------------------


@rule
def anything(value: Any, scope: Scope) -> None:
    """A value that no prediction reads: texts, tables and figures of how a fit went."""


def optional(rule: Rule) -> Rule:
    """An attribute that a fitted object may lack."""
    return Rule(rule.test, absent=True)


def maybe(rule: Rule) -> Rule:
    """What the rule asks for, or None."""
    return Rule(lambda value, scope: None if value is None else rule.test(value, scope), rule.absent)


@rule
def either(value: Any, scope: Scope, *rules: Rule) -> None:
    """What one of the rules asks for."""
    reasons = []
    for rule in rules:
        try:
            return rule.test(value, scope)
        except Mismatch as error:
            reasons.append(str(error))
    raise Mismatch(" and ".join(reasons))


@rule
def flag(value: Any, scope: Scope) -> None:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise Mismatch("is neither True nor False")


@rule
def whole(value: Any, scope: Scope, low: int = 0, high: int = _LARGEST, below: str | None = None) -> None:
    """A whole number in a range, below a size where a word says so."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise Mismatch("is no whole number")
    if not low <= value <= high:
        raise Mismatch(f"is not between {low} and {high}")
    if below is not None:
        scope.below(below, int(value))


@rule
def size(value: Any, scope: Scope, word: str) -> None:
    """A whole number that is the size that the word stands for."""
    whole().test(value, scope)
    scope.bind(word, int(value))


@rule
def number(value: Any, scope: Scope, low: float = -math.inf, high: float = math.inf, finite: bool = True) -> None:
    """A number in a range, finite unless it may be anything."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise Mismatch("is no number")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise Mismatch("is too large")
    if finite and not (abs(value) < math.inf):
        raise Mismatch("is not finite")
    if not (low <= value <= high) and (finite or value == value):
        raise Mismatch(f"is not between {low:g} and {high:g}")


@rule
def text(value: Any, scope: Scope, *choices: str) -> None:
    """A text, one of the choices where there are some."""
    if not isinstance(value, str) or (choices and value not in choices):
        raise Mismatch(f"is none of {choices}" if choices else "is no text")


@rule
def array(
    value: Any,
    scope: Scope,
    kinds: str,
    *shape: str | int | None,
    low: float | None = None,
    high: float | None = None,
    below: str | None = None,
    finite: bool = True,
) -> None:
    """A plain array.

    ``kinds`` lists type letters ("f", "iu", "U") or one exact type ("f8", "i4"); ``shape`` has a word, a number or None
    (any size) for each axis; ``below`` names the size that every entry stays below, and above -1.
    """
    exact = None if kinds.isalpha() else np.dtype(kinds)
    if not isinstance(value, np.ndarray) or value.ndim != len(shape):
        raise Mismatch(f"is no array with {len(shape)} axes")
    if value.dtype != exact if exact is not None else value.dtype.kind not in kinds:
        raise Mismatch(f"holds numbers of the type {value.dtype}")
    for word, length in zip(shape, value.shape, strict=True):
        scope.bind(word, length)
    _check_entries(value, scope, low, high, below, finite)


def _check_entries(value: np.ndarray, scope: Scope, low, high, below, finite: bool) -> None:
    if value.dtype.kind in "fc" and finite and not np.all(np.isfinite(value)):
        raise Mismatch("holds numbers that are not finite")
    if value.size == 0 or (low is None and high is None and below is None):
        return
    least, most = np.nanmin(value).item(), np.nanmax(value).item()  # a limit may be beyond their type
    if least < (0 if low is None and below is not None else -math.inf if low is None else low):
        raise Mismatch(f"holds numbers below {low or 0}")
    if high is not None and most > high:
        raise Mismatch(f"holds numbers above {high:g}")
    if below is not None:
        scope.below(below, int(most))


@rule
def matrix(value: Any, scope: Scope, *shape: str | int | None, largest: float = math.inf) -> None:
    """A table of finite floats up to a size, dense or sparse by rows or columns."""
    dense = array("f", *shape, low=-largest, high=largest)
    if not sparse.issparse(value):
        return dense.test(value, scope)
    for word, length in zip(shape, value.shape, strict=True):
        scope.bind(word, length)
    return array("f", None, low=-largest, high=largest).test(value.data, scope)


@rule
def items(value: Any, scope: Scope, word: str, columns: str, largest: float = math.inf) -> None:
    """Samples as users give them: a table of ``columns``, or a list of objects that a kernel compares."""
    if getattr(value, "ndim", 1) == 2:
        return matrix(word, columns, largest=largest).test(value, scope)
    if not isinstance(value, (list, tuple)) and not (isinstance(value, np.ndarray) and value.ndim == 1):
        raise Mismatch("is no list of samples")
    return scope.bind(word, len(value))


@rule
def labels(value: Any, scope: Scope, word: str | None, least: int = 1) -> None:
    """The classes: an array of numbers or texts without an entry twice."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUO":
        raise Mismatch("is no list of classes")
    if len(value) < least:
        raise Mismatch("has no class")
    objects = value.tolist() if value.dtype.kind == "O" else ()
    if any(not isinstance(entry, (str, int, float, bool)) for entry in objects):
        raise Mismatch("holds something that is no class")
    if len(set(objects) if value.dtype.kind == "O" else np.unique(value)) != len(value):
        raise Mismatch("holds a class twice")
    scope.bind(word, len(value))


@rule
def names(value: Any, scope: Scope, word: str | None) -> None:
    """Texts, one for each of ``word``, in an array or a list."""
    entries = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, str) for entry in entries):
        raise Mismatch("is no list of texts")
    scope.bind(word, len(entries))


@rule
def several(value: Any, scope: Scope, rule: Rule, word: str | int | None = None) -> None:
    """A list or tuple of things that all pass one rule."""
    if not isinstance(value, (list, tuple)):
        raise Mismatch("is no list")
    scope.bind(word, len(value))
    for entry in value:
        rule.test(entry, scope)


@rule
def mapping(value: Any, scope: Scope, rule: Rule, keys: type = str) -> None:
    """A dict whose values all pass one rule."""
    if not isinstance(value, dict) or not all(isinstance(key, keys) for key in value):
        raise Mismatch("is no table of named values")
    for entry in value.values():
        rule.test(entry, scope)


@rule
def record(value: Any, scope: Scope, /, **rules: Rule) -> None:
    """A dict with these keys and no others."""
    if not isinstance(value, dict) or not value.keys() <= rules.keys():
        raise Mismatch("is no table of the values that it should have")
    for key, rule in rules.items():
        if key not in value and not rule.absent:
            raise Mismatch(f"lacks {key}")
        if key in value:
            rule.test(value[key], scope)


@rule
def part(
    value: Any,
    scope: Scope,
    kind: type | tuple[type, ...] = object,
    has: str | None = None,
    fitted: bool = True,
    **sizes: str,
) -> None:
    """A fitted object of a kind (or with a method) whose sizes agree: ``part(columns="columns", width="mapped")``.

    Each keyword names a size of the inner object, its text the size of the outer one. A size that the inner object does
    not state is not compared.
    """
    inner = scope.inner(value)
    if inner is None or not isinstance(value, kind) or (has is not None and not hasattr(value, has)):
        raise Mismatch("is no object of the kind that it should be")
    if fitted and not inner.fitted:
        raise Mismatch("is not fitted")
    for own, ours in sizes.items():
        if own in inner.sizes:
            scope.bind(ours, inner.sizes[own])


#: What any estimator may have.
COMMON = State(
    n_features_in_=optional(size("columns")),
    feature_names_in_=optional(names("columns")),
    _sklearn_version=optional(text()),
    _sklearn_output_config=optional(mapping(text())),
    _metadata_request=optional(anything()),
)


def forget(learner: Any) -> None:
    """Take away what ``learner`` has learned."""
    for name in _learned_names(type(learner)):
        vars(learner).pop(name, None)


@cache
def _learned_names(cls: type) -> tuple[str, ...]:
    """The attributes that a class states to be learned; what a subclass has noted for itself is none, and stays."""
    stated = (state_of(cls) or State()).rules
    return tuple(name for name in (*COMMON.rules, *stated) if name.endswith("_") or (name[0] == "_" and name in stated))


#: Who is being fitted, by identity and thread.
_fitting: set[tuple[int, int]] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fitting.clear)  # the threads that fitted are not there any more


def fitted_elsewhere(learner: Any) -> bool:
    """Whether another thread fits an object just now, which then holds half of what it will."""
    return any(who == id(learner) and thread != get_ident() for who, thread in _fitting.copy())


@contextmanager
def _marked(learner: Any) -> Iterator[None]:
    """Within it other threads know that this one fits ``learner``, also where one ``fit`` calls another."""
    mark = (id(learner), get_ident())
    first = mark not in _fitting
    _fitting.add(mark)
    try:
        yield
    finally:
        if first:
            _fitting.discard(mark)


@contextmanager
def restored(learner: Any, anew: bool = False) -> Iterator[None]:
    """Where what is done within raises, every attribute is put back; ``anew``, it begins with nothing learned."""
    with _marked(learner):
        before = dict(vars(learner))
        if anew:
            forget(learner)
        try:
            yield
        except BaseException:
            # scikit-learn closes its callbacks after us, from attributes of its own.
            running = {name: value for name, value in vars(learner).items() if "callback" in name}
            vars(learner).clear()
            vars(learner).update(before | running)
            raise


def renewing(fit: Method) -> Method:
    """Method decorator: ``fit`` starts from nothing learned, and leaves all as it was where it raises."""

    @wraps(fit)
    def guarded(learner, *args, **kwargs):
        with restored(learner, anew=True):
            return fit(learner, *args, **kwargs)

    return guarded  # type: ignore[return-value]
