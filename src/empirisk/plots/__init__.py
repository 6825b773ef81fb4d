"""Views: each function draws one thing and returns the Matplotlib figure.

Names are imported when they are first used, so that nothing loads Matplotlib before it draws.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empirisk.plots.tree import tree

__all__ = ["tree"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"empirisk.plots has no {name!r}; it has {__all__}.", name=name)
    value = getattr(import_module(f"empirisk.plots.{name}"), name)
    globals()[name] = value  # the view itself, instead of the module of the same name
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
