"""The device in force, with all that designs, maps and machines ask of it."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from empirisk.errors import EmpiriskError, MissingValues
from empirisk.scale import device_design, device_features, device_mixtures, device_nearest
from empirisk.scale.devices import Device, default_platform, find


class Accelerator(Device):
    """A device with the work that it takes: each is a function of the device, which may give None where it cannot."""

    dense_design = device_design.dense_design
    gram_design = device_design.gram_design
    kernel_sums = device_design.kernel_sums
    streamed_design = device_features.streamed_design
    inverse_root = device_features.inverse_root
    assignment = device_nearest.assignment
    nearest_lists = device_nearest.nearest_lists
    expectation = device_mixtures.expectation


def chosen(wanted: str) -> Accelerator | None:
    """The device of a name; of "auto" the first accelerator, and None where there is none, or JAX does not start."""
    if wanted != "auto":
        return _device(find(wanted))
    with suppress(EmpiriskError):
        return None if default_platform() == "cpu" else _device(jax.devices()[0])
    return None


def adopted(X: Any) -> Any:
    """The design of dense rows that lie on a device, where they are: arrays of other packages come by DLPack."""
    rows = X if isinstance(X, jax.Array) else jax.dlpack.from_dlpack(X)
    device = _device(next(iter(rows.devices())))
    with device.computing():
        if not bool(jnp.isfinite(rows).all()):
            raise MissingValues("X contains NaN or infinity; replace those entries or drop the rows.")
        return device_design.DeviceDense(device, rows)


@cache
def _device(device: Any) -> Accelerator:
    return Accelerator(device)
