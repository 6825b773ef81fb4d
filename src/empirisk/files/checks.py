"""The state of every loaded object against the rules that its class states, before any of its methods can run."""

import dataclasses
from collections.abc import Callable
from typing import Any

from empirisk.files.archive import damaged
from empirisk.files.registry import RENAMED
from empirisk.files.steps import STEPS
from empirisk.state import Mismatch, Scope, State, state_of

#: What a relation can stumble over in a state that makes no sense.
_STUMBLES = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)


def rules_for(cls: type, name: str) -> State | None:
    """The rules of a class that files call ``name``; None for one that states none, which no file may hold."""
    if name.startswith("sklearn."):
        return STEPS.get(name.removeprefix("sklearn."))
    # A record that no prediction reads need not say more than what fields it has.
    return state_of(cls) or (State() if dataclasses.is_dataclass(cls) else None)


def check_state(cls: type, name: str, values: dict[str, Any], inner: Callable[[Any], Scope | None]) -> Scope:
    """The sizes of an object whose state is sound; ``inner`` gives those of the objects inside it."""
    rules = rules_for(cls, name)
    if rules is None:
        raise damaged(f"a {cls.__name__} in it is of a kind that no file holds")
    try:
        return rules.check(values, parameters_of(cls, values), Scope(inner))
    except Mismatch as error:
        raise damaged(f"in its {cls.__name__}, {error}") from None
    except _STUMBLES as error:
        raise damaged(f"a {cls.__name__} in it does not hold together") from error


def parameters_of(cls: type, values: dict[str, Any]) -> list[str]:
    """What the constructor of a class takes: an object has these before it has learned anything."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    if hasattr(cls, "_get_param_names"):
        return cls._get_param_names()
    return [name for name in values if not name.endswith("_")]  # a splitter


def renamed(cls: type, name: str, tree: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object in a file under the names that they have now."""
    rules = rules_for(cls, name)
    known = set(parameters_of(cls, {})) | set(rules.rules if rules is not None else ())
    new = {old: now for old, now in RENAMED.items() if old in tree and old not in known and now in known}
    if any(now in tree for now in new.values()):
        raise damaged(f"a {cls.__name__} in it has an attribute under two names")
    return {new.get(key, key): item for key, item in tree.items()}
