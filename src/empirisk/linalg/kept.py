"""Where compiled loops are kept: beside their source, in the user's cache, in a temporary folder, or in memory."""

import os
import warnings
from functools import cache
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    ZipCacheLocator,
)

from empirisk.places import home_is_known, private_folder


class _TemporaryLocator(UserWideCacheLocator):
    """A folder of this user under the temporary one, for where nothing else can be written."""

    def __init__(self, py_func: Any, py_file: str):
        super().__init__(py_func, py_file)
        folder = private_folder()
        if folder is None:
            raise OSError
        self._cache_path = os.path.join(folder, "numba", self.get_suitable_cache_subpath(py_file))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        try:
            found = super().from_function(py_func, py_file)
        except OSError:
            return None
        if found is not None:
            _say(f"in {private_folder()}")
        return found


class _Files(CompileResultCacheImpl):
    """The files of a loop, in the first place that can be written."""

    # Without a home Numba would make a folder of the name "~" wherever it is.
    _locator_classes = [  # noqa: RUF012
        UserProvidedCacheLocator,
        InTreeCacheLocator,
        *([UserWideCacheLocator] if home_is_known() else []),
        ZipCacheLocator,
        _TemporaryLocator,
    ]


class _Cache(FunctionCache):
    """The cache of a loop; where nothing more can be written, a full disk say, the loop is in memory all the same."""

    _impl_class = _Files

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            _say("in memory alone")


def keep(dispatcher: Any) -> Any:
    """A compiled function whose code later processes find; this one has it in any case."""
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    except RuntimeError:  # no place can be written
        _say("in memory alone")
    return dispatcher


@cache
def _say(where: str) -> None:
    """Warn once."""
    warnings.warn(
        f"Compiled loops are kept {where}, since neither the folder of Empirisk nor that of its user can be written, "
        "and may be compiled again by the next process; set NUMBA_CACHE_DIR to a folder that lasts.",
        stacklevel=2,
    )
