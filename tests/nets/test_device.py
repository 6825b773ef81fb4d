"""Where networks compute."""

import jax
import numpy as np
import pytest

import empirisk as er
from empirisk.errors import TooLarge
from empirisk.nets import training


def test_a_device_without_memory_is_a_sentence(monkeypatch):
    """Another program had taken the accelerator's memory: the words of the device came to the user."""

    def exhausted(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory while trying to allocate 8 bytes")

    monkeypatch.setattr(training.NetworkTraining, "_run", exhausted)
    machine = er.LeastSquares(features=er.Network([2], epochs=1, n_init=1))
    with pytest.raises(TooLarge, match=r"memory of the .* is exhausted"):
        machine.fit(np.eye(4), np.arange(4.0))
