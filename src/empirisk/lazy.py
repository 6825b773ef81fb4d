"""Attributes that are computed, and names that are imported, when they are first asked for, without a lock."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from empirisk import homes_of

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801 - it is used as a decorator
    """An attribute that is computed once, when it is first asked for, and kept in the instance.

    Unlike `functools.cached_property` before Python 3.12 it has no lock, which there is one for all instances of a
    class: threads would wait for each other, and a forked child for ever. Two threads that ask at the same moment may
    both compute the value; both get the one that came first.

    Examples
    --------
    >>> class Circle:
    ...     radius = 1.0
    ...     @lazy
    ...     def area(self):
    ...         print("computed")
    ...         return 3.14 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, circle.area
    computed
    (3.14, 3.14)
    """

    def __init__(self, compute: Callable[[Any], Value]):
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        # The instance's own attribute comes first from now on: this is no data descriptor.
        return vars(instance).setdefault(self._name, self._compute(instance))

    if TYPE_CHECKING:  # the attribute may be set: at run time by the instance's own

        def __set__(self, instance: object, value: Value) -> None: ...


def lazy_names(
    package: str, names: dict[str, str]
) -> tuple[dict[str, str], Callable[[str], Any], Callable[[], list[str]]]:
    """Public names of a package that are imported when first used: their homes, its ``__getattr__`` and ``__dir__``.

    ``names`` are those of each module. A name that is also that of its module must be imported by the package itself:
    Python would give the module under it. ``make stubs`` tells type checkers.
    """
    homes = homes_of(package, names)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"{package} has no {name!r}; it has {sorted(homes)}.", name=name)
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return homes, get, lambda: sorted(homes)
