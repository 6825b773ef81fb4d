"""Arrays of JAX, torch and CuPy: how machines take them, and answers of the same kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from empirisk.linalg.accelerator import PACKAGES, rows_on_device
from empirisk.validation import in_memory_of_numpy

Method = TypeVar("Method", bound=Callable[..., Any])


def is_foreign(X: Any) -> bool:
    """Whether X is an array of JAX, torch or CuPy.

    >>> is_foreign(np.eye(2))
    False
    """
    return type(X).__module__.partition(".")[0] in PACKAGES


def in_kind_of(X: Any, answers: Any) -> Any:
    """Answers as arrays of the package of X, where X lies; words, of which it has no arrays, as they are.

    >>> in_kind_of(np.eye(1), np.array(["yes"]))
    array(['yes'], dtype='<U3')
    """
    if isinstance(answers, (list, tuple)):
        return type(answers)(in_kind_of(X, each) for each in answers)
    if getattr(answers, "dtype", np.dtype(object)).kind not in "biuf":
        return answers
    package = type(X).__module__.partition(".")[0]
    if package == "cupy":
        with X.device:
            return import_module("cupy").asarray(answers)
    return import_module("torch" if package == "torch" else "jax.numpy").asarray(answers, device=X.device)


def received(X: Any) -> Any:
    """Rows as a machine takes them: those on a device where they are, arrays of other packages as NumPy's."""
    held = rows_on_device(X)
    return in_memory_of_numpy(X) if held is None else held


def in_its_kind(method: Method) -> Method:
    """Method decorator: of rows of JAX, torch or CuPy ``method(X)`` is answered by arrays of the same package.

    The rows stay where they are, if the method can be computed there.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        if not is_foreign(X):
            return method(self, *args, **kwargs)
        others = {name: value for name, value in kwargs.items() if name != "X"}
        return in_kind_of(X, method(self, received(X), *args[1:], **others))

    return call  # type: ignore[return-value]
