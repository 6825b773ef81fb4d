"""Views: each function draws one thing and returns the Matplotlib figure.

Names are imported when they are first used, so that nothing loads Matplotlib before it draws.
"""

from importlib import import_module

from empirisk import homes_of
from empirisk.places import lead_matplotlib

lead_matplotlib()
#: The file of each view.
_HOMES = homes_of(__file__)

__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"empirisk.plots has no {name!r}; it has {__all__}.", name=name)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
