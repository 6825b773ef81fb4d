"""Where a result comes from: the table, the command, the seed, the moment and the versions."""

import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import empirisk as er
from empirisk.errors import typed
from empirisk.league.request import Request

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
    def of(cls, call: str, request: Request) -> "Origin":
        """The origin of a call of that name with these options."""
        data, options = request.data, {name: value for name, value in request.given().items() if name not in SILENT}
        named = isinstance(data, (str, Path))
        words = [
            repr(str(data)) if named else "table",
            *(f"{name}={_shown(value)!r}" for name, value in options.items()),
        ]
        versions = {"empirisk": er.__version__, "Python": platform.python_version()}
        return cls(
            Path(data).name if named else FRAME,
            typed.get() or f"er.{call}({', '.join(words)})",
            request.seed,
            datetime.now(UTC),
            versions | {name: version(name) for name in PACKAGES},
        )

    def to_dict(self) -> dict[str, Any]:
        """The origin as JSON has it."""
        return asdict(self) | {"moment": self.moment.isoformat()}


def _shown(value: Any) -> Any:
    """A value as it was typed, or that it is a frame."""
    return FRAME if hasattr(value, "columns") else value
