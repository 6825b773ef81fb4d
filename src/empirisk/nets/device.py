"""Where networks compute: the device that `empirisk.config` names, or JAX's own choice."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from empirisk.errors import EmpiriskError
from empirisk.settings import settings


@contextmanager
def on_device() -> Iterator[str]:
    """Within, JAX computes on the device in force; its platform ("cpu", "gpu" or "tpu") is given."""
    wanted = settings().device
    if wanted == "auto":
        yield jax.default_backend()
        return
    platform, _, number = wanted.partition(":")
    try:
        device = jax.devices(platform)[int(number or 0)]
    except (RuntimeError, IndexError, ValueError):
        present = sorted({device.platform for device in jax.devices()})
        raise EmpiriskError(f"device={wanted!r} is not there; JAX sees {present}: use 'auto' or one of them.") from None
    with jax.default_device(device):
        yield device.platform
