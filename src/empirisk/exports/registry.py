"""The table from classes to functions that write graphs; `families` holds the functions, a file for each family."""

from __future__ import annotations

from copy import copy
from functools import singledispatch
from importlib import import_module
from typing import Any

import numpy as np

from empirisk.errors import Unsuitable
from empirisk.exports.tensor import Symbolic, constant

#: The files of `families` that know the classes of a package; they are imported when a model has such a class.
FAMILIES = {
    "empirisk.machines": "linear neighbours",
    "empirisk.trees": "trees additive",
    "empirisk.ensembles": "ensembles",
    "empirisk.clusters": "clusters",
    "empirisk.projections": "projections",
    "empirisk.maps": "maps kernels",
    "empirisk.kernels": "kernels",
    "empirisk.nets": "networks",
    "empirisk.selection": "selection",
    "empirisk.tables": "tables",
    "sklearn": "scikit_learn columns",
}

#: The methods whose answers are written.
METHODS = ("predict", "predict_proba", "transform", "decision_function")
#: Tensors by the name of the method whose answers they are: "predict", "predict_proba", "transform" ...
Answers = dict[str, Any]


def load_family(kind: type) -> None:
    """Import what knows a class, or the first that it inherits from whose package is known."""
    for each in kind.__mro__:
        known = [names for package, names in FAMILIES.items() if f"{each.__module__}.".startswith(f"{package}.")]
        if known:
            for name in known[0].split():
                import_module(f"empirisk.exports.families.{name}")
            return


def refused(part: Any, why: str = "") -> Unsuitable:
    """The error for what has no graph."""
    return Unsuitable(f"{type(part).__name__} cannot be exported{why and ': '}{why}.")


@singledispatch
def write_answers(model: Any, x: Any) -> Answers:
    """The answers of a model as tensors. Each family registers functions for its classes."""
    raise refused(model, "export knows no graph for it")


def answers(model: Any, x: Any) -> Answers:
    """The answers of a fitted model to the rows x, by the names of its methods.

    >>> from empirisk.exports.tensor import entry
    >>> machine = er.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> list(answers(machine, entry("X", np.array([[3.0]]))))
    ['predict']
    """
    for part in (model, getattr(model, "features_", None), getattr(model, "kernel_", None)):
        load_family(type(part))
    return write_answers(model, x)


def transformed(step: Any, x: Any) -> Symbolic:
    """The rows behind a feature map or another transformer."""
    return answers(step, x)["transform"]


@singledispatch
def described(model: Any) -> tuple[str, bool]:
    """What a model is, for people; and whether it says classes."""
    classes = any(hasattr(model, name) for name in ("classes_", "predict_proba", "decision_function"))
    return f"{type(model).__name__}.", classes


@singledispatch
def asked(model: Any, table: Any) -> Answers:
    """What the methods of a model itself say."""
    return {name: getattr(model, name)(table) for name in METHODS if hasattr(model, name)}


def told_by(model: Any, methods: str, **inner: Any) -> Answers:
    """What the methods of a model say where some of its inner ones have the given answers.

    The model's own formulas run on tensors, so that they are written once. Methods that it does not have are left out.
    """
    stand_in = copy(model)
    for name, value in inner.items():
        stand_in.__dict__[name] = lambda *_, _value=value, **__: _value
    if hasattr(model, "classes_"):
        several = isinstance(model.classes_, list)
        labels = [constant(names) for names in model.classes_] if several else constant(model.classes_)
        stand_in.__dict__["classes_"] = labels
    found = {}
    for name in methods.split():
        if hasattr(stand_in, name):
            found[name] = getattr(stand_in, name)(None)
    return found


def number_of(labels: Symbolic, classes: Any) -> Symbolic:
    """One column of ones and zeros for each class: which of them the labels name."""
    return np.stack([(labels == constant([label])) for label in classes], axis=1).astype(np.float64)
