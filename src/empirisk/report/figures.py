"""Figures of the report, drawn while there is time; Matplotlib is imported with the first one."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import stop
from empirisk.report.page_blocks import NO_TIME, Figure


def picture(title: str, caption: str, draw: Callable[[Any, Any], Any]) -> Figure:
    """A picture of the usual size; ``draw`` is given `empirisk.plots.report` and the axes to draw into."""

    def drawn(views: Any) -> str:
        axes = views.canvas()
        draw(views, axes)
        return views.finished(axes)

    return guarded(title, caption, drawn)


def guarded(title: str, caption: str, drawn: Callable[[Any], str], *, wide: bool = False) -> Figure:
    """The figure that ``drawn`` makes, or a sentence instead where the time is over or drawing raised an error.

    An error in one figure must not lose the report of a whole run.
    """
    try:
        stop.check_stop()
        from empirisk.plots import report as views  # Matplotlib takes a while to import

        with views.style.any_script():
            return Figure(drawn(views), title, caption, wide)
    except stop.Stopped:
        return Figure("", title, NO_TIME)
    except Exception as problem:  # noqa: BLE001
        return Figure("", title, f"This picture could not be drawn ({type(problem).__name__}: {problem}).")


def spark(counts: NDArray) -> str:
    """A histogram of one line's height, as an SVG element (a sparkline)."""
    top = max(float(np.max(counts)), 1.0)
    bars = "".join(f"M{k} 20v-{20 * value / top:.1f}h.9V20z" for k, value in enumerate(counts))
    look = 'class="spark" preserveAspectRatio="none" aria-hidden="true"'
    return f'<svg {look} viewBox="0 0 {len(counts)} 20"><path d="{bars}"/></svg>'
