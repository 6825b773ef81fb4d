"""Tables whose rows are not in memory: how machines recognise them, and predictions block by block."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Protocol, TypeVar

from empirisk.extras import need
from empirisk.linalg.foreign import in_its_kind

Method = TypeVar("Method", bound=Callable[..., Any])


class RowsElsewhere(Protocol):
    """A table whose rows lie in files, or on a cluster."""

    def table(self, y: Any = None, sample_weight: Any = None) -> Any:
        """The rows, targets and weights as a `scale.table.BlockedTable`, where they lie."""
        ...

    def map_blocks(self, function: Callable[[Any], Any], named: bool = False) -> Any:
        """function(block) for every block of rows, as a table of the same kind; ``named``: blocks are frames."""
        ...


def elsewhere(X: Any) -> RowsElsewhere | None:
    """The table that X is, where its rows are not in memory; None for arrays and frames.

    >>> elsewhere([[1.0]]) is None
    True
    """
    if hasattr(X, "map_blocks") and hasattr(X, "table"):
        return X
    # Collections of Dask exist where it was imported only.
    package = type(X).__module__.partition(".")[0]
    if package in ("dask", "dask_expr") and "dask" in sys.modules:
        need("X as a collection of Dask", "scale", "distributed")
        return import_module("empirisk.scale.dask_tables").DaskTable(X)
    return None


def rows_for_trees(machine: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any] | None:
    """X, y and weights to grow trees on; None where they lie elsewhere, and the machine has learned from them there."""
    there = elsewhere(X)
    if there is None:
        return X, y, sample_weight
    return import_module("empirisk.scale.binned").rows_for_trees(machine, there, y, sample_weight)


def blockwise(method: Method) -> Method:
    """Method decorator: ``method(X)`` is computed where the rows of X lie, and answered in the kind of X.

    Of rows that are not in memory it is computed block by block. Rows of JAX, torch or CuPy stay where they are, and
    the answers are an array of the same package.
    """

    at_once = in_its_kind(method)

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        there = elsewhere(X)
        if there is None:
            return at_once(self, X, *args, **kwargs)
        named, name = hasattr(self, "feature_names_in_"), method.__name__
        # By its name: what this method itself refers to may not be such that it can be sent to workers.
        return there.map_blocks(lambda block: getattr(self, name)(block, *args, **kwargs), named)

    return call  # type: ignore[return-value]
