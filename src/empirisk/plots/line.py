"""Data with one column, on a line: the places to draw and the points."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots.style import padded

Array = NDArray[np.float64]


def line(X: Any, resolution: int, extent: tuple[float, float] | None = None) -> tuple[Array, Array, Any]:
    """The only column of X, places along it, and these places as rows of the kind that X is."""
    if not (isinstance(resolution, (int, np.integer)) and 2 <= resolution <= 100_000):
        raise EmpiriskError(f"resolution={resolution!r} must be a whole number from 2 to 100000.")
    frame = nw.from_native(X, eager_only=True) if nw.dependencies.is_into_dataframe(X) else None
    values = np.asarray(X if frame is None else frame.to_numpy())
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != 1 or not len(values):
        raise EmpiriskError(f"X has shape {values.shape}; a picture in one dimension needs rows with one column.")
    try:
        points = values[:, 0].astype(np.float64)
    except (TypeError, ValueError):
        raise EmpiriskError("X holds what are not numbers; give a numeric column.") from None
    if not np.isfinite(points).all():
        raise EmpiriskError("X holds missing or infinite values; leave these rows out.")
    low, high = padded(points) if extent is None else extent
    if not low < high:
        raise EmpiriskError(f"extent={extent!r} must be two numbers, the smaller one first.")
    places = np.linspace(low, high, int(resolution))
    if frame is None:
        return points, places, places[:, None]
    series = nw.new_series(frame.columns[0], places, nw.Float64(), backend=frame.implementation)
    return points, places, series.to_frame().to_native()
