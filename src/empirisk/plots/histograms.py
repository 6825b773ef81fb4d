"""What histograms count: edges of bins, and the most frequent values. Matplotlib is not needed for it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 30  # of a histogram: narrow enough for its shape, wide enough for counts


def bins(values: NDArray) -> list[float]:
    """Edges of a histogram that a few far values do not spoil: beyond them, the outer bins have no end."""
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [0.005, 0.995])
    inner = values[(values >= low) & (values <= high)]
    whole = bool((inner == np.round(inner)).all()) and np.ptp(inner) < BINS
    if whole:
        return (np.arange(inner.min(), inner.max() + 2) - 0.5).tolist()
    return np.histogram_bin_edges(inner, BINS).tolist()


def frequent(values: NDArray, most: int = 8) -> list[Any]:
    """The most frequent words."""
    words, counts = np.unique(values[values != None], return_counts=True)  # noqa: E711 - entry by entry
    return words[np.argsort(-counts, kind="stable")[:most]].tolist()
