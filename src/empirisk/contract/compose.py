"""Named machines as compositions of the equation: some parameters fixed, others with new defaults."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def composed(fixed: dict[str, Any], **defaults: Any) -> Callable[[Class], Class]:
    """Class decorator: ``fixed`` parameters become class attributes, ``defaults`` change or add parameters.

    The signature that scikit-learn and the user see holds just the parameters that are left, C first.
    """

    def decorate(cls: Class) -> Class:
        key, place = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        inherited = inspect.signature(cls.__init__).parameters
        free = {name: one.replace(kind=key) for name, one in inherited.items() if name not in fixed}
        free |= {name: inspect.Parameter(name, key, default=default) for name, default in defaults.items()}
        first = [free.pop(name).replace(kind=place) for name in ("self", "C") if name in free]
        signature = inspect.Signature([*first, *free.values()])

        def store(self, *args, **kwargs):
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{cls.__name__}: {error}; it takes {list(signature.parameters)[1:]}") from None
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        store.__name__, store.__signature__ = "__init__", signature
        cls.__init__ = store
        for name, value in fixed.items():
            if not isinstance(inspect.getattr_static(cls, name, None), property):  # which computes it
                setattr(cls, name, value)
        return cls

    return decorate
