"""Weights from elsewhere: safetensors files, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.extras import need

LAYOUTS = ("empirisk", "torch")


def read_weights(
    path: str | Path, names: Mapping[str, str] | None = None, layout: str = "empirisk"
) -> dict[str, NDArray]:
    """Weights from a safetensors file, to be given to ``Network(weights=...)``.

    Parameters
    ----------
    path : str or Path
        The file.
    names : dict, optional
        From names in the file to names here: ``{"features.0.weight": "0.weight"}``; the others are left out. None takes
        all as they are.
    layout : {"empirisk", "torch"}
        How arrays are laid out in the file: as here (inputs x outputs; height x width x in x out), or as in PyTorch
        (outputs x inputs; out x in x height x width).

    Examples
    --------
    >>> import tempfile, safetensors.numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     safetensors.numpy.save_file({"fc.weight": np.zeros((3, 5), "f4")}, folder + "/foreign.safetensors")
    ...     found = er.nets.read_weights(folder + "/foreign.safetensors", {"fc.weight": "0.weight"}, "torch")
    >>> found["0.weight"].shape
    (5, 3)
    """
    need("A file of weights", "nets", "safetensors")
    from safetensors.numpy import load_file

    if layout not in LAYOUTS:
        raise EmpiriskError(f"layout={layout!r} is not known; choose one of {list(LAYOUTS)}.")
    try:
        held = load_file(str(path))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the file
        raise EmpiriskError(f"path={str(path)!r} is no safetensors file that can be read: {error}.") from None
    chosen = {name: name for name in held} if names is None else dict(names)
    missing = sorted(set(chosen) - set(held))
    if missing:
        raise EmpiriskError(f"names has {missing}, but the file holds {sorted(held)}.")
    axes = {2: (1, 0), 4: (2, 3, 1, 0)} if layout == "torch" else {}
    arrays = {ours: held[theirs] for theirs, ours in chosen.items()}
    return {name: np.ascontiguousarray(a.transpose(axes.get(a.ndim, range(a.ndim)))) for name, a in arrays.items()}
