"""Where networks compute: the device that `empirisk.config` names, or JAX's own choice."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import jax

from empirisk.errors import TooLarge
from empirisk.scale.devices import default_platform, find
from empirisk.settings import settings


@contextmanager
def on_device() -> Iterator[str]:
    """Within, JAX computes on the device in force; its platform ("cpu", "gpu" or "tpu") is given.

    Memory that the device has not is a sentence: others may compute there too.
    """
    device = None if settings().device == "auto" else find(settings().device)
    platform = default_platform() if device is None else device.platform
    try:
        with nullcontext() if device is None else jax.default_device(device):
            yield platform
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        elsewhere = "" if platform == "cpu" else ", or compute on the processor with er.config(device='cpu')"
        raise TooLarge(
            f"The memory of the {platform} is exhausted, by this network or by other programs; give it fewer or "
            f"narrower layers{elsewhere}."
        ) from None
