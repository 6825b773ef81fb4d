"""Whether work is sent to a device: the one place where the setting ``device`` is read, without loading JAX."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from empirisk.extras import need
from empirisk.settings import settings

if TYPE_CHECKING:
    from empirisk.scale.accelerators import Accelerator

#: The room of devices stands above all that asks for one, and imports JAX: it is found by its name when it is needed.
DEVICES = "empirisk.scale.accelerators"
#: What JAX needs to see an accelerator; where none of these is installed, "auto" does not load JAX to find that out.
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "jax_rocm7_plugin", "libtpu")
#: Whose arrays may lie on a device, and the number that DLPack has for the processor's memory.
PACKAGES, IN_MEMORY = ("jax", "jaxlib", "torch", "cupy"), 1
#: Entries of a kernel, or products, for which "auto" takes a device: a second of a processor.
WORTH_SENDING = 1e9


def accelerator(work: float, *rows: Any) -> Accelerator | None:
    """The device on which some of the rows lie, or that takes so much work under the settings in force.

    None for the processor.

    >>> accelerator(1e3) is None  # "auto" keeps what is small
    True
    """
    for each in rows:
        if lie_on_device(each):
            return each.accelerator
    wanted = settings().device
    if wanted.partition(":")[0] == "cpu" or (wanted == "auto" and (work < WORTH_SENDING or not _may_see_one())):
        return None
    return _devices(f"device={wanted!r}").chosen(wanted)


def rows_on_device(X: Any) -> Any:
    """Dense rows that lie on a device already, as an array of JAX, torch or CuPy; None for all others.

    >>> rows_on_device(np.eye(2)) is None
    True
    """
    if lie_on_device(X):
        return X
    if type(X).__module__.partition(".")[0] not in PACKAGES or getattr(X, "ndim", 0) != 2:
        return None
    in_memory = X.__dlpack_device__()[0] == IN_MEMORY
    if in_memory and not settings().device.startswith("jax:"):
        return None
    return _devices("X on a device").adopted(X)


def lie_on_device(rows: Any) -> bool:
    """Whether rows are some that `rows_on_device` has given, or prepared items of such.

    >>> lie_on_device(np.eye(2))
    False
    """
    return getattr(rows, "accelerator", None) is not None


def _devices(what: str) -> Any:
    need(what, "nets", "jax")
    return import_module(DEVICES)


def _may_see_one() -> bool:
    return "jax" in sys.modules or any(find_spec(name) is not None for name in PLUGINS)
