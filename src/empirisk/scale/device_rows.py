"""Dense rows that lie on a device: an array of JAX, or of torch or CuPy by DLPack, that stays where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError, MissingValues
from empirisk.scale.devices import as_numpy, compiled

if TYPE_CHECKING:
    from empirisk.scale.accelerators import Accelerator


class HeldRows:
    """Rows on a device that machines take where they take an array.

    Some of them, sums over them and products with them are made there. NumPy gets a copy where it asks for one.

    Parameters
    ----------
    accelerator : Accelerator
        Where they are.
    held : jax.Array
        The rows, in float32 or float64.
    """

    def __init__(self, accelerator: Accelerator, held: jax.Array):
        self.accelerator, self.held = accelerator, held
        self.shape, self.ndim, self.dtype = held.shape, held.ndim, np.dtype(held.dtype)
        self.size = held.size

    @classmethod
    def checked(cls, accelerator: Accelerator, rows: jax.Array) -> HeldRows:
        """Rows that are finite numbers, as they are; whole numbers and short ones become doubles."""
        if jnp.issubdtype(rows.dtype, jnp.complexfloating):
            raise EmpiriskError("X holds complex numbers; give real ones.")
        with accelerator.computing():
            held = rows if rows.dtype in (jnp.float32, jnp.float64) else rows.astype(jnp.float64)
            if not bool(jnp.isfinite(held).all()):
                raise MissingValues("X contains NaN or infinity; replace those entries or drop the rows.")
        return cls(accelerator, held)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return np.asarray(self.held, dtype)

    def __deepcopy__(self, memory: dict) -> HeldRows:
        return self  # arrays of JAX do not change

    def __reduce__(self) -> tuple:
        return np.asarray, (np.asarray(self),)

    def __getitem__(self, chosen: Any) -> HeldRows:
        with self.accelerator.computing():
            return HeldRows(self.accelerator, self.held[chosen])

    def __matmul__(self, other: Any) -> NDArray[np.float64]:
        with self.accelerator.computing():
            return as_numpy(_product(self.held, self.accelerator.put(other)))

    @property
    def T(self) -> HeldRows:
        """The columns as rows."""
        with self.accelerator.computing():
            return HeldRows(self.accelerator, self.held.T)

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return cast(Any, self.held).__dlpack_device__()

    def followed_by(self, *others: HeldRows) -> HeldRows:
        """These rows, and others after them."""
        with self.accelerator.computing():
            return HeldRows(self.accelerator, jnp.concatenate([self.held, *(other.held for other in others)]))

    def astype(self, dtype: Any, copy: bool = True) -> HeldRows:
        """The rows in another precision."""
        with self.accelerator.computing():
            return HeldRows(self.accelerator, self.held.astype(dtype))

    def padded(self, room: int, dtype: Any) -> jax.Array:
        """The rows in a precision, with rows of zeros after them."""
        with self.accelerator.computing():
            held = self.held.astype(dtype)
            return jnp.pad(held, ((0, room - len(held)), *[(0, 0)] * (held.ndim - 1)))

    def less(self, shift: NDArray) -> jax.Array:
        """The rows less a row, in float64; they stay on the device."""
        with self.accelerator.computing():
            return self.held.astype(jnp.float64) - self.accelerator.put(shift)

    def min(self, axis: int | None = None) -> NDArray[np.float64]:
        """The smallest numbers."""
        with self.accelerator.computing():
            return as_numpy(self.held.min(axis=axis))

    def max(self, axis: int | None = None) -> NDArray[np.float64]:
        """The largest numbers."""
        with self.accelerator.computing():
            return as_numpy(self.held.max(axis=axis))

    def var(self, **options: Any) -> float:
        """The variance of all numbers, in float64."""
        with self.accelerator.computing():
            return float(jnp.var(self.held.astype(jnp.float64)))

    def squares_after(self, shift: NDArray, matrix: NDArray) -> NDArray[np.float64]:
        """|(x - shift) M|^2 of every row."""
        with self.accelerator.computing():
            there = self.accelerator.put(shift), self.accelerator.put(matrix)
            return as_numpy(_squares_after(self.held, *there))

    def squared_norms(self) -> NDArray[np.float64]:
        """The sum of squares of every row."""
        with self.accelerator.computing():
            return as_numpy(_squared_norms(self.held))


@compiled
def _product(held: jax.Array, other: jax.Array) -> jax.Array:
    """Row by row for a vector, so that equal rows have equal products."""
    rows = held.astype(other.dtype)
    return (rows * other).sum(axis=1) if other.ndim == 1 else rows @ other


@compiled
def _squares_after(held: jax.Array, shift: jax.Array, matrix: jax.Array) -> jax.Array:
    return (((held.astype(jnp.float64) - shift) @ matrix) ** 2).sum(axis=1)


@compiled
def _squared_norms(held: jax.Array) -> jax.Array:
    return (held.astype(jnp.float64) ** 2).sum(axis=1)


def lent(X: Any) -> jax.Array:
    """An array of JAX, torch or CuPy as one of JAX, without a copy."""
    if isinstance(X, jax.Array):
        return X
    with jax.enable_x64(True):
        return jax.dlpack.from_dlpack(X.detach() if hasattr(X, "detach") else X)
