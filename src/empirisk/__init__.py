"""Empirisk: classical machine learning on one equation.

    minimise   R(w)  +  C * sum_i  c_i * loss( y_i , <w, phi(x_i)> + b )

Choose a loss, a feature map phi, a penalty R and a scale C; every convex fit ends with a certificate.
Names are imported when they are first used, so ``import empirisk`` itself costs nothing.
"""

from importlib import import_module

__version__ = "0.1.0"


def homes_of(package: str) -> dict[str, str]:
    """Where each public name of a package lives: what the stub beside its ``__init__`` says to type checkers.

    >>> homes_of(er.plots.__file__)["roc"]
    'empirisk.plots.scores'
    """
    with open(f"{package}i", encoding="utf-8") as stub:
        return {line.split()[-1]: line.split()[1] for line in stub if line.startswith("from ")}


_SEEN = homes_of(__file__)
#: The modules that a user reaches as ``er.kernels``.
_MODULES = tuple(name for name, home in _SEEN.items() if home == "empirisk")
#: Where every other public name lives.
_HOMES = {name: home for name, home in _SEEN.items() if home != "empirisk"}

__all__ = list(_SEEN)


def __getattr__(name: str):
    if name in _MODULES:
        return import_module(f"empirisk.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # the next access does not come here
        return value
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "dir(empirisk) lists the names it has."
    raise AttributeError(f"empirisk has no {name!r}; {hint}", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
