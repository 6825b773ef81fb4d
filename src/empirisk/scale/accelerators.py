"""The device in force, with all that designs, maps and machines ask of it."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import jax

from empirisk.errors import EmpiriskError
from empirisk.linalg.design import Design, make_design
from empirisk.scale import device_clusters, device_design, device_features, device_mixtures, device_nearest
from empirisk.scale.device_dense import DeviceDense
from empirisk.scale.device_rows import HeldRows, lent
from empirisk.scale.devices import Device, default_platform, find


class Accelerator(Device):
    """A device with the work that it takes: each is a function of the device, which may give None where it cannot."""

    dense_design = device_design.dense_design
    gram_design = device_design.gram_design
    kernel_block = device_design.kernel_block
    kernel_sums = device_design.kernel_sums
    streamed_design = device_features.streamed_design
    squares_of_sums = device_features.squares_of_sums
    inverse_root = device_features.inverse_root
    assignment = device_nearest.assignment
    clustered_rows = device_clusters.clustered_rows
    distances = device_clusters.distances
    neighbours = device_nearest.neighbours
    nearest_lists = device_nearest.nearest_lists
    expectation = device_mixtures.expectation


def chosen(wanted: str) -> Accelerator | None:
    """The device of a name; of "auto" the first accelerator, and None where there is none, or JAX does not start."""
    if wanted != "auto":
        return _device(find(wanted))
    with suppress(EmpiriskError):
        return None if default_platform() == "cpu" else _device(jax.devices()[0])
    return None


@make_design.register(HeldRows)
def _design(rows: HeldRows) -> Design:
    return DeviceDense(rows.accelerator, rows.held)


def adopted(X: Any) -> HeldRows:
    """Dense rows that lie on a device, where they are: arrays of other packages come by DLPack."""
    rows = lent(X)
    return HeldRows.checked(_device(next(iter(rows.devices()))), rows)


@cache
def _device(device: Any) -> Accelerator:
    return Accelerator(device)
