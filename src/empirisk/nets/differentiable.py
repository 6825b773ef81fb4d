"""Losses and penalties as functions that JAX differentiates: their own lines, with the slopes that they state."""

from collections.abc import Callable
from typing import Any

import jax

from empirisk.errors import Unsuitable
from empirisk.losses.base import Loss
from empirisk.parts import Part


def traceable(part: Part, argument: str, method: str) -> Callable[..., Any]:
    """A method of a part on JAX's arrays; a part that is written for NumPy alone is refused with a sentence."""

    def run(*arrays: Any) -> Any:
        try:
            return getattr(part, method)(*arrays)
        except jax.errors.TracerArrayConversionError:
            raise Unsuitable(
                f"{argument}={part!r} is written for NumPy's arrays alone, and a network is trained by JAX; write its "
                f"{method} with the functions of empirisk.linalg.namespace.namespace(array) in place of np."
            ) from None

    return run


def differentiable(loss: Loss) -> Callable[[Any, Any], Any]:
    """loss(y, f), whose slope in f is the derivative that the loss states, at corners too."""
    stated, slope = (traceable(loss, "loss", method) for method in ("value", "derivative"))

    @jax.custom_jvp
    def value(y: Any, f: Any) -> Any:
        return stated(y, f).astype(f.dtype)

    @value.defjvp
    def change(at: tuple[Any, Any], moves: tuple[Any, Any]) -> tuple[Any, Any]:
        y, f = at
        changes = slope(y, f).astype(f.dtype) * moves[1]
        return value(y, f), changes.sum(axis=1) if loss.joint else changes

    return value
