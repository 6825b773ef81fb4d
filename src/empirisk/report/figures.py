"""The pictures of the report, drawn while there is time; what draws is imported with the first."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg import threads
from empirisk.report.blocks import Figure

BINS = 30  # of a histogram: narrow enough for its shape, wide enough for counts


def picture(title: str, caption: str, draw: Callable[[Any, Any], Any]) -> Figure:
    """A picture of the usual size; ``draw`` is given `views` and the axes to draw into."""

    def drawn(views: Any) -> str:
        axes = views.canvas()
        draw(views, axes)
        return views.finished(axes)

    return guarded(title, caption, drawn)


def guarded(title: str, caption: str, drawn: Callable[[Any], str], *, wide: bool = False) -> Figure:
    """A picture that is not drawn once the time is over; one that cannot be drawn is named instead, for no result is
    lost for the sake of a picture.
    """
    try:
        threads.look()
        from empirisk.report import views  # Matplotlib takes a while to import

        with views.style.any_script():
            return Figure(drawn(views), title, caption, wide)
    except threads.Stopped:
        return Figure("", title, "The time given left no room for this picture.")
    except Exception as problem:  # noqa: BLE001
        return Figure("", title, f"This picture could not be drawn ({type(problem).__name__}: {problem}).")


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


def spark(counts: NDArray) -> str:
    """A histogram the size of a word."""
    top = max(float(np.max(counts)), 1.0)
    bars = "".join(f"M{k} 20v-{20 * value / top:.1f}h.9V20z" for k, value in enumerate(counts))
    look = 'class="spark" preserveAspectRatio="none" aria-hidden="true"'
    return f'<svg {look} viewBox="0 0 {len(counts)} 20"><path d="{bars}"/></svg>'
