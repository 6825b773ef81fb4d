"""The public names: those of the package itself, and those that its public modules export."""

import empirisk as er


def exports(module) -> list[str]:
    """What a module declares public, or else the classes and functions that it defines."""
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return getattr(module, "__all__", [name for name in defined if not name.startswith("_")])


MODULES = er._MODULES
EXPORTS = [name for name in er.__all__ if name not in MODULES] + [
    f"{module}.{name}" for module in MODULES for name in exports(getattr(er, module))
]
