"""What a computation may use: memory and threads."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from empirisk.errors import EmpiriskError, TooLarge

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Settings:
    """The budget: bytes for any one large array, and the number of threads."""

    memory: int
    threads: int


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _half_of_memory() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 4 * 10**9
    # A container is killed at its own limit, however large the machine is.
    limits = [file.read_text().strip() for file in CONTAINER_LIMITS if file.is_file()]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit())]) // 2


_settings = Settings(memory=_half_of_memory(), threads=_cores())


def settings() -> Settings:
    """The budget in force."""
    return _settings


def parse_bytes(memory: int | str) -> int:
    """Bytes from a number or from text such as "2GB".

    >>> parse_bytes("1.5GB")
    1500000000
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?B)\s*", memory, flags=re.IGNORECASE)
        if match is None:
            raise EmpiriskError(f"memory={memory!r} is not a size; write it like '2GB' or as a number of bytes.")
        size = int(float(match[1]) * UNITS[match[2].upper()])
    else:
        size = int(memory)
    if size <= 0:
        raise EmpiriskError(f"memory={memory!r} must be positive; write it like '2GB' or as a number of bytes.")
    return size


def config(memory: int | str | None = None, threads: int | None = None) -> "_Restore":
    """Set the budget, for good or inside a ``with`` block.

    >>> with config(memory="2GB", threads=1):
    ...     settings().memory
    2000000000
    """
    global _settings
    if threads is not None and threads < 1:
        raise EmpiriskError(f"threads={threads!r} must be at least 1.")
    before = _settings
    _settings = replace(
        before,
        memory=before.memory if memory is None else parse_bytes(memory),
        threads=before.threads if threads is None else int(threads),
    )
    return _Restore(before)


class _Restore:
    """Puts the earlier budget back at the end of a ``with`` block."""

    def __init__(self, before: Settings):
        self._before = before

    def __repr__(self) -> str:
        return repr(_settings)  # what a user sees after er.config(memory="2GB")

    def __enter__(self) -> Settings:
        return _settings

    def __exit__(self, *_) -> None:
        global _settings
        _settings = self._before


def require(size: int, what: str, alternative: str) -> None:
    """Raise `TooLarge` if ``size`` bytes exceed the budget."""
    if size > _settings.memory:
        raise TooLarge(
            f"{what} needs {_text(size)}, more than the {_text(_settings.memory)} allowed by "
            f"empirisk.config(memory=...); {alternative}."
        )


def _text(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"
