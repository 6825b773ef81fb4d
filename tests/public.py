"""The public names: those of the package itself, and those that its public modules export."""

import empirisk as er
from empirisk.errors import MissingExtra


def exports(module) -> list[str]:
    """What a module declares public, or else the classes and functions that it defines."""
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return getattr(module, "__all__", [name for name in defined if not name.startswith("_")])


def exports_of(module: str) -> list[str]:
    """What a public module exports; nothing where the libraries that it needs are not installed."""
    try:
        return [f"{module}.{name}" for name in exports(getattr(er, module))]
    except (MissingExtra, ModuleNotFoundError):
        return []


MODULES = er._MODULES
EXPORTS = [name for name in er.__all__ if name not in MODULES]
EXPORTS += [name for module in MODULES for name in exports_of(module)]
