"""Where a result comes from: the table, the command, the seed, the moment and the versions."""

import inspect
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import empirisk as er

#: Packages whose version may change a result.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
FRAME = "a frame"
#: Arguments that are named otherwise, or say nothing of the result.
SILENT = frozenset({"data", "listener"})


@dataclass(frozen=True)
class Origin:
    """What it takes to make a result again.

    Attributes
    ----------
    source : str
        The file or the bundled table; "a frame" for rows that came from Python.
    command : str
        The command, or the call, that gives the result.
    seed : int
        Of all that is drawn at random.
    moment : datetime
        When it began, in UTC.
    versions : dict
        Of Empirisk, Python and the packages below.
    """

    source: str
    command: str
    seed: int
    moment: datetime
    versions: dict[str, str]

    @classmethod
    def of(cls, function: Callable, given: Mapping[str, Any], *flags: str) -> "Origin":
        """The origin of a call with these arguments; ``flags`` are those of the command that it stands for."""
        data = given["data"]
        changed = {
            name: _shown(given[name])
            for name, one in inspect.signature(function).parameters.items()
            if name not in SILENT and given[name] is not one.default and _shown(given[name]) != one.default
        }
        named = isinstance(data, (str, Path))
        versions = {"empirisk": er.__version__, "Python": platform.python_version()}
        return cls(
            Path(data).name if named else FRAME,
            command(str(data), changed, flags) if named else call(function.__name__, changed),
            given["seed"],
            datetime.now(UTC),
            versions | {name: version(name) for name in PACKAGES},
        )


def command(data: str, changed: Mapping[str, Any], flags: Sequence[str] = ()) -> str:
    """The shell command for arguments that are not as they are by default.

    >>> command("a b.csv", {"target": "y", "time": 59.8, "balance": True, "machines": ["tree", "svm"]})
    "empirisk learn 'a b.csv' --target y --time 60s --balance --machines tree,svm"
    """
    words = ["empirisk", "learn", data, *flags]
    for name, value in changed.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, _word(name, value)]
    return shlex.join(words)


def _word(name: str, value: Any) -> str:
    """An argument as it is written behind an option."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={held}" for key, held in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    # What the shell has used before the call is given back.
    return f"{value:.0f}s" if name == "time" and value >= 1 else str(value)


def call(name: str, changed: Mapping[str, Any]) -> str:
    """The call in Python.

    >>> call("learn", {"target": "y", "seed": 1})
    "er.learn(table, target='y', seed=1)"
    """
    return f"er.{name}({', '.join(['table', *(f'{k}={v!r}' for k, v in changed.items())])})"


def _shown(value: Any) -> Any:
    """A value as it was typed, or that it is a frame."""
    return FRAME if hasattr(value, "columns") else value
