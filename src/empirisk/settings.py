"""What a computation may use, memory, threads and the device, and how it is stopped."""

import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from empirisk.errors import EmpiriskError, TooLarge

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?B)\s*", re.IGNORECASE)
CONTAINER_SHARES = (Path("/sys/fs/cgroup/cpu.max"),)
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Settings:
    """The budget: bytes for any one large array, number of threads, device, cluster; and how fits are stopped."""

    memory: int
    threads: int
    device: str = "auto"
    cluster: str = "none"
    interrupt: str = "raise"
    stop: Callable[[], bool] | None = None


def _cores() -> int:
    """Those that this process may use, by its affinity and by the share of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for file in CONTAINER_SHARES:
        quota, _, period = file.read_text().partition(" ") if file.is_file() else ("", "", "")
        if quota.isdigit():
            cores = min(cores, -(-int(quota) // int(period)))
    return max(1, cores)


def _told(cores: int) -> int:
    """What process pools tell their workers so: how many of the cores are theirs."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(told))) if told.isdigit() else cores


def _half_of_memory() -> int:
    # Where the system does not tell its memory, four gigabytes are assumed: every machine of today has them.
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 4 * 10**9
    # A container is killed at its own limit, however large the machine is.
    limits = [file.read_text().strip() for file in CONTAINER_LIMITS if file.is_file()]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit())]) // 2


CORES = _cores()
#: What holds where nothing was set: in every thread that the user starts.
_default = Settings(memory=_half_of_memory(), threads=_told(CORES))
#: What holds in this thread or task, and in the pools that work for it.
_here: ContextVar[Settings | None] = ContextVar("empirisk settings", default=None)


def settings() -> Settings:
    """The budget in force here: in this thread or task, and in the pools that work for it."""
    return _here.get() or _default


def parse_bytes(memory: float | str, name: str = "memory") -> int:
    """Bytes from a number or from text such as "2GB"; ``name`` is the argument, for the error.

    >>> parse_bytes("1.5GB")
    1500000000
    """
    match = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
    if match is not None:
        size = float(match[1]) * UNITS[match[2].upper()]
    else:
        size: Any = memory if isinstance(memory, Real) and not isinstance(memory, bool) else math.nan
    if not 1 <= size < math.inf:  # nor is NaN
        raise EmpiriskError(f"{name}={memory!r} is not a size; write it like '2GB' or as a number of bytes.")
    return int(size)


def config(
    memory: float | str | None = None,
    threads: int | None = None,
    device: str | None = None,
    interrupt: str | None = None,
    stop: Callable[[], bool] | None = None,
    cluster: str | None = None,
) -> "_Restore":
    """Set the budget and how fits are stopped, for good or inside a ``with`` block.

    What a thread sets holds for its own fits. What the main thread sets for good holds also in threads that have set
    nothing.

    Parameters
    ----------
    memory : float or str, optional
        Bytes for any one large array: a number, or text such as "2GB".
    threads : int, optional
        The number of threads.
    device : str, optional
        Where kernels, dense data and networks compute: "cpu"; "gpu" or "gpu:1", an accelerator that JAX sees; or
        "auto", an accelerator where JAX sees one and the work is large. "jax:cpu" runs the code of accelerators on the
        processor, to try it where there is none.
    interrupt : {"raise", "keep"}, optional
        What an interrupted fit does when the estimator holds the best point so far: "raise" KeyboardInterrupt, so that
        searches, loops and scripts end; or "keep", return the estimator with a warning.
    stop : callable, optional
        Fits ask ``stop()`` several times a second, from any of their threads; where it is true, they are interrupted as
        by Ctrl-C. ``lambda: False`` takes it away.
    cluster : str, optional
        Whose workers the folds of `evaluate`, the settings of `Search` and the contestants of `learn` go to: the
        address of a Dask scheduler as "tcp://host:8786", "current" for that of the `dask.distributed.Client` in use,
        "local" for worker processes that are started here, or "none". Dask collections are learned from where they
        are, whatever this says.

    Examples
    --------
    >>> with er.config(memory="2GB", threads=1) as budget:
    ...     budget.memory
    2000000000
    >>> import warnings
    >>> with er.config(stop=lambda: True, interrupt="keep"), warnings.catch_warnings(action="ignore"):
    ...     er.SVM().fit([[0.0], [1.0]], [0, 1]).stopped_
    'interrupted'
    """
    whole = isinstance(threads, Integral) and not isinstance(threads, bool)
    if threads is not None and not (whole and threads >= 1):
        raise EmpiriskError(f"threads={threads!r} must be a whole number of at least 1.")
    if device is not None and not isinstance(device, str):
        raise EmpiriskError(f"device={device!r} must be a name such as 'cpu', 'gpu', 'gpu:1', 'jax:cpu' or 'auto'.")
    if cluster not in (None, "none", "local", "current") and not (isinstance(cluster, str) and "://" in cluster):
        raise EmpiriskError(
            f"cluster={cluster!r} must be 'local', 'current', 'none' or an address like tcp://host:8786."
        )
    if interrupt not in (None, "raise", "keep"):
        raise EmpiriskError(f"interrupt={interrupt!r} must be 'raise' or 'keep'.")
    if stop is not None and not callable(stop):
        raise EmpiriskError(f"stop={stop!r} must be a function without arguments that says whether to stop.")
    given = {
        "memory": None if memory is None else parse_bytes(memory),
        "threads": None if threads is None else int(threads),
        "device": device,
        "cluster": cluster,
        "interrupt": interrupt,
        "stop": stop,
    }
    return _Restore(replace(settings(), **{name: value for name, value in given.items() if value is not None}))


@contextmanager
def holding(variable: ContextVar[Any], value: Any) -> Iterator[Any]:
    """The variable has the value in here, and then the one that it had before.

    A Ctrl-C that is raised as soon as the value is set does not leave it behind, which the token of `set` would: the
    call has not returned by then.
    """
    before = variable.get()
    try:
        variable.set(value)
        yield value
    finally:
        variable.set(before)


def keep_to_threads(count: int) -> None:
    """Set the number of threads in this context alone, which is that of a share of the pool's work."""
    _here.set(replace(settings(), threads=count))


class _Restore:
    """Sets the budget, and puts the earlier one back at the end of a ``with`` block."""

    def __init__(self, budget: Settings):
        self._before = (_here.get(), _default)
        self._set(budget, budget)

    @staticmethod
    def _set(here: Settings | None, default: Settings) -> None:
        global _default
        _here.set(here)
        # Other threads start with empty contexts, and so does each cell of a notebook.
        if current_thread() is main_thread():
            _default = default

    def __repr__(self) -> str:
        return repr(settings())  # what a user sees after er.config(memory="2GB")

    def __enter__(self) -> Settings:
        self._set(settings(), self._before[1])  # other threads do not see what a block sets
        return settings()

    def __exit__(self, *_) -> None:
        self._set(*self._before)


def require(size: int, what: str, alternative: str) -> None:
    """Raise `TooLarge` if ``size`` bytes exceed the budget."""
    allowed = settings().memory
    if size > allowed:
        raise TooLarge(
            f"{what} needs {_text(size)}, more than the {_text(allowed)} allowed by "
            f"empirisk.config(memory=...); {alternative}."
        )


def _text(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"
