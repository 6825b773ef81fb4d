"""A training on disk: written whole or not at all, read back to the same bits."""

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class Checkpoint:
    """The state of one training in a file; a file of another training is not taken for it.

    Parameters
    ----------
    path : str or Path
        The file.
    identity : str
        What the training is of: data, parameters and seed. A file that says otherwise is passed over.
    """

    def __init__(self, path: str | Path, identity: str):
        self._path, self._identity = Path(path), identity

    def write(self, step: int, carry: Any, best: Any, history: dict[str, list]) -> None:
        """Keep the training; what was kept before stays until the new file is complete."""
        arrays = {f"carry/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(carry))}
        about: dict[str, Any] = {"identity": self._identity, "step": step, "best": None}
        if best is not None:
            loss, when, weights, state = best
            about["best"] = [loss, when]
            arrays |= {f"weights/{name}": value for name, value in weights.items()}
            arrays |= {f"state/{name}": value for name, value in state.items()}
        arrays |= {f"history/{name}": np.asarray(values) for name, values in history.items()}
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        beside = self._path.with_name(self._path.name + ".part")
        with beside.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(beside, self._path)

    def read(self, carry: Any) -> tuple[int, Any, Any, dict[str, list]] | None:
        """Step, carry (shaped like the one given), best and history; None without a file of this training."""
        if not self._path.is_file():
            return None
        with np.load(self._path, allow_pickle=False) as file:
            arrays = dict(file)
        about = json.loads(arrays.pop("about").tobytes())
        if about["identity"] != self._identity:
            return None
        leaves, shape = jax.tree.flatten(carry)
        carry = jax.tree.unflatten(shape, [jnp.asarray(arrays[f"carry/{i}"]) for i in range(len(leaves))])
        best = None
        if about["best"] is not None:
            best = (*about["best"], *(_under(arrays, part) for part in ("weights", "state")))
        history = {name: list(values) for name, values in _under(arrays, "history").items()}
        return about["step"], carry, best, history

    def remove(self) -> None:
        """The training is complete: nothing to go on with."""
        self._path.unlink(missing_ok=True)


def _under(arrays: dict[str, Any], folder: str) -> dict[str, Any]:
    return {name[len(folder) + 1 :]: value for name, value in arrays.items() if name.startswith(folder + "/")}
