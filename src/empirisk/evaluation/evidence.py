"""What a fitted machine chose and proved, seen through pipelines and searches."""

from collections.abc import Iterable
from typing import Any

from empirisk.certificate import Certificate


def evidence(machine: Any, seconds: float) -> tuple[dict[str, Any], float, Certificate | None]:
    """What a fitted machine chose, how long it took, and its certificate, also through pipelines and searches."""
    chosen: dict[str, Any] = {}
    certificate = None
    for prefix, part in _parts(machine):
        found = getattr(part, "chosen_", None) or getattr(part, "best_params_", None)
        if found is None and isinstance(getattr(part, "C", None), str):
            found = {"C": part.C_}
        chosen |= {prefix + name: value for name, value in (found or {}).items()}
        certificate = getattr(part, "certificate_", certificate)
    return chosen, seconds, certificate


def _parts(machine: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """A fitted machine and the fitted machines inside it, with the prefix of their parameters."""
    yield prefix, machine
    for name, step in getattr(machine, "steps", []):
        yield from _parts(step, f"{prefix}{name}__")
    for name in ("best_estimator_", "regressor_", "estimator_"):
        if hasattr(machine, name):
            yield from _parts(getattr(machine, name), prefix)
            return


def known_parts(machine: Any) -> list[Any]:
    """The objects among the values that a search tries, to find them again by their text."""
    spaces = [
        value for name, value in machine.get_params().items() if name.rpartition("__")[2] in ("space", "param_grid")
    ]
    maps = [one for space in spaces for one in ([space] if isinstance(space, dict) else space or [])]
    return [value for one in maps for values in one.values() if isinstance(values, (list, tuple)) for value in values]
