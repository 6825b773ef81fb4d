"""Where networks compute: the device that `empirisk.config` names, or JAX's own choice."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from empirisk.scale.devices import default_platform, find
from empirisk.settings import settings


@contextmanager
def on_device() -> Iterator[str]:
    """Within, JAX computes on the device in force; its platform ("cpu", "gpu" or "tpu") is given."""
    wanted = settings().device
    if wanted == "auto":
        yield default_platform()
        return
    device = find(wanted)
    with jax.default_device(device):
        yield device.platform
