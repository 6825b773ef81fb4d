"""Parts: the objects that fill the slots of a machine, and the names that stand for them."""

import math
import re
from collections.abc import Callable, Mapping
from inspect import signature
from numbers import Real
from typing import Any, TypeGuard

from empirisk import state
from empirisk.errors import EmpiriskError, did_you_mean
from empirisk.names import Estimator, spelled


class Part(Estimator):
    """A loss, penalty, map or solver: parameters in, mathematics out, no fitted state.

    Parts have ``get_params`` and ``set_params``, so ``clone`` copies them and a grid search reaches into them.
    """

    _state = state.State()

    @classmethod
    def name(cls) -> str:
        """The snake_case name by which the part can be asked for."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def _number(self, name: str, what: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A parameter as a finite number in a range; else a sentence that says what it must be."""
        value = getattr(self, name)
        # Asked in inner loops: of a float the first answer is enough, and it takes a third of the time.
        number: Any = value if isinstance(value, (float, Real)) else math.nan
        if not (low <= number <= high and is_finite(number)):
            raise EmpiriskError(f"{name}={value!r} of {type(self).__name__} must be {what}.")
        return float(value)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a real number and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_finite(number: Any) -> bool:
    """Whether a real number is a finite float; a whole number may be larger than all floats."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def by_name(kind: type[Part], room: dict[str, Any]) -> dict[str, Any]:
    """The table from snake_case names to the part classes of a room that can be made without arguments."""
    found = [part for part in room.values() if isinstance(part, type) and issubclass(part, kind) and part is not kind]
    ready = [part for part in found if all(one.default is not one.empty for one in signature(part).parameters.values())]
    return {part.name(): part for part in ready}


def resolve(value: Any, table: Mapping[str, Callable[[], Part]], argument: str, kind: type[Part]) -> Any:
    """Return the part that ``value`` is or names, or raise a sentence that names the choices."""
    if isinstance(value, str):
        name = value if value in table else spelled(argument, value)
        if name in table:
            return table[name]()
        hint = did_you_mean(value, table, f"choose one of {sorted(table)}.")
        raise EmpiriskError(f"{argument}={value!r} is not known; {hint}")
    if isinstance(value, kind):
        return value
    raise EmpiriskError(
        f"{argument}={value!r} is neither a name nor an object of that kind; choose one of {sorted(table)}."
    )
