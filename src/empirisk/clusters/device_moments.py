"""The rounds of mixtures with the sums over the rows made on a device, in float64 as on the processor."""

from typing import Any

from empirisk.clusters.dense_rows import Array
from empirisk.clusters.expectation import Mixture, Moments
from empirisk.linalg.accelerator import accelerator, lie_on_device


class DeviceMoments(Moments):
    """The rows, of which a device makes the sums; all else is made in memory.

    Parameters
    ----------
    moments : Moments
        The rows in memory.
    there : Expectation
        The same on the device.
    """

    def __init__(self, moments: Moments, there: Any):
        vars(self).update(vars(moments))
        self._there = there

    def _expected(self, mixture: Mixture) -> tuple[float, Array]:
        likelihood, sums = self._there.sums(self._terms(mixture))
        return likelihood / float(self._total), sums


def moments_of(X: Any, weights: Array, covariance_type: str, floor: float, components: int) -> Moments:
    """The rows of a fit: on the device in force, if there is one."""
    moments = Moments(X, weights, covariance_type, floor)
    device = accelerator(float(len(X) * components * moments._pairs.shape[1]), X)
    if device is None:
        return moments
    around = X.less(moments._shift) if lie_on_device(X) else moments.X - moments._shift
    return DeviceMoments(moments, device.expectation(around, weights, moments._pairs))
