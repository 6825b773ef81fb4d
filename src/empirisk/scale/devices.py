"""The devices that JAX sees: which one is in force, and how work runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import finalize

import jax
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.lazy import lazy
from empirisk.linalg.threads import parallel_map

#: Before the name of a platform: the code of devices, wherever it runs. "jax:cpu" tries it without an accelerator.
FORCED = "jax:"
#: Compiled without trials of the shapes of products, which take an accelerator ten seconds for each new shape: its
#: libraries know good ones.
compiled = partial(jax.jit, compiler_options={"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False})
#: Bytes of an array that one thread fetches at a time.
FETCHED = 1 << 26
#: Rows and columns of a block of a kernel: an accelerator hides the launch of a block, a processor keeps it in cache.
SIDES = {"cpu": (256, 1024)}
#: The same of every other platform, in float32 134 megabytes.
SIDES_OF_ACCELERATORS = (4096, 8192)


class Device:
    """A device of JAX, in the way that everything here uses one: float64 where asked for, and no shortened products.

    Attributes
    ----------
    device : jax.Device
        The device.
    name : str
        Its platform and number, such as "gpu:0".
    height, width : int
        The sides of a block of a kernel; both are powers of two, and the height divides the width.
    """

    def __init__(self, device: Any):
        self.device = device
        self.name = f"{device.platform}:{device.id}"
        self._kept: dict[int, jax.Array] = {}
        self.height, self.width = SIDES.get(device.platform, SIDES_OF_ACCELERATORS)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Within, JAX computes here, in the precision of the arrays: accelerators would shorten factors to 10 bits."""
        with jax.default_device(self.device), jax.enable_x64(True), jax.default_matmul_precision("highest"):
            yield

    def put(self, array: Any, dtype: Any = np.float64) -> jax.Array:
        """The array on the device; one that is there stays."""
        if isinstance(array, jax.Array):
            return jax.device_put(array.astype(dtype), self.device)
        return jax.device_put(np.asarray(array, dtype), self.device)

    def put_once(self, array: NDArray) -> jax.Array:
        """The array on the device, sent there when it is first asked for; it stays as long as the array in memory."""
        kept = self._kept.get(id(array))
        return self.keep(array, self.put(array, array.dtype)) if kept is None else kept

    def keep(self, array: NDArray, held: jax.Array) -> jax.Array:
        """Note that an array in memory is on the device already."""
        self._kept[id(array)] = held
        finalize(array, self._kept.pop, id(array), None)
        return held

    def fetched(self, array: jax.Array) -> NDArray:
        """The array in memory; a large one in pieces by all threads, since fresh memory is what takes long."""
        rows = max(1, FETCHED * len(array) // max(array.nbytes, 1))
        if len(array) <= rows:
            return np.asarray(array)
        out = np.empty(array.shape, array.dtype)

        def fetch(start: int) -> None:
            with self.computing():
                out[start : start + rows] = np.asarray(_piece(array, start, rows))

        parallel_map(fetch, [*range(0, len(array) - rows, rows), len(array) - rows])
        return out

    @lazy
    def memory(self) -> int:
        """The bytes that arrays may take: what the device has, or nothing is known of."""
        known = self.device.memory_stats() or {}
        return int(known.get("bytes_limit", 1 << 33))

    @property
    def remark(self) -> str:
        """What a certificate says of the work that was done here."""
        return f"products on {self.name}"


@partial(compiled, static_argnames="rows")
def _piece(array: jax.Array, start: Any, rows: int) -> jax.Array:
    return lax.dynamic_slice_in_dim(array, start, rows)


def default_platform() -> str:
    """Where JAX computes by itself ("cpu", "gpu" or "tpu"); a sentence where none of its backends starts."""
    try:
        return jax.default_backend()
    except RuntimeError as error:  # a plugin for devices is installed, and there is none
        why = str(error).partition("(you may")[0].strip()
        raise EmpiriskError(
            f"JAX does not start: {why}; set the environment variable JAX_PLATFORMS=cpu to compute on the processor."
        ) from None


def find(wanted: str) -> Any:
    """The device of JAX with a name such as "gpu", "gpu:1" or "jax:cpu"."""
    platform, _, number = wanted.removeprefix(FORCED).partition(":")
    default_platform()
    try:
        return jax.devices(platform)[int(number or 0)]
    except (RuntimeError, IndexError, ValueError):
        present = sorted({device.platform for device in jax.devices()})
        raise EmpiriskError(f"device={wanted!r} is not there; JAX sees {present}: use 'auto' or one of them.") from None


def as_numpy(array: Any) -> NDArray[np.float64]:
    """An array of a device in memory, in float64, that may be written to."""
    return np.array(array, dtype=np.float64)
