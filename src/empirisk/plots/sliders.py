"""A view at several values of a parameter: the pictures are drawn now, and chosen with a slider later."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from matplotlib.figure import Figure

from empirisk.errors import EmpiriskError
from empirisk.formats import shown
from empirisk.plots.style import to_svg

#: Shows the frame of the slider's place; pages and notebooks run it without a server and without a library.
CHOOSE = (
    "const all = this.closest('figure');"
    "all.querySelectorAll('[data-value]').forEach((frame, place) => { frame.hidden = place != this.value;"
    " if (!frame.hidden) this.ariaValueText = all.querySelector('output').value = frame.dataset.value; });"
)
CONTROL = "display:flex;gap:.6em;align-items:center;font:inherit;color:inherit;max-width:32em"
#: Figures are drawn on white, also where the page around them is dark.
FRAME = "<style>figure.empirisk-slider svg {max-width:100%;height:auto;background:white;border-radius:4px}</style>"


class Slider:
    """Figures by the value of one parameter; a notebook or a page shows one of them, and a slider to choose."""

    def __init__(self, name: str, values: list[Any], figures: list[Figure]):
        self.name, self.values, self.figures = name, values, figures

    def __repr__(self) -> str:
        return f"Slider({self.name}={self.values!r})"

    def _repr_html_(self) -> str:
        first = len(self.values) // 2
        labels = [escape(shown(value)) for value in self.values]
        frames = "".join(
            f'<div data-value="{label}"{"" if place == first else " hidden"}>{to_svg(figure)}</div>'
            for place, (label, figure) in enumerate(zip(labels, self.figures, strict=True))
        )
        return (
            f'<figure class="empirisk-slider" style="margin:1em 0">{FRAME}<label style="{CONTROL}">'
            f"<span>{escape(self.name)} = <output>{labels[first]}</output></span>"
            f'<input type="range" min="0" max="{len(labels) - 1}" value="{first}" style="flex:1"'
            f' aria-label="{escape(self.name)}" aria-valuetext="{labels[first]}" oninput="{escape(CHOOSE)}">'
            f"</label>{frames}</figure>"
        )


def slider(draw: Callable[..., Figure], **settings: Iterable[Any]) -> Slider:
    """Draw a view for several values of one parameter, and choose among the pictures with a slider.

    All pictures are drawn at once: what is shown needs no server, no network and no running Python, so that it works
    in saved notebooks and on pages. The slider is moved with the mouse, a finger or the arrow keys.

    Parameters
    ----------
    draw : callable
        Takes the parameter by its name, and returns a figure, as every view does.
    **settings : list
        The one parameter, and its values in the order of the slider; the one in the middle is shown first.

    Returns
    -------
    Slider
        Shown by notebooks; ``figures`` and ``values`` are lists.

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]), [0, 0, 1, 1]
    >>> choice = er.plots.slider(lambda C: er.plots.regions(er.SVM(C=C).fit(X, y), X, y), C=[0.1, 1.0, 10.0])
    >>> choice, len(choice.figures)
    (Slider(C=[0.1, 1.0, 10.0]), 3)
    """
    if len(settings) != 1:
        raise EmpiriskError(f"slider takes one parameter with its values, such as C=[0.1, 1, 10], not {len(settings)}.")
    ((name, given),) = settings.items()
    values = list(given)
    if not values:
        raise EmpiriskError(f"{name}=[] has no values; give at least one, such as {name}=[0.1, 1, 10].")
    figures = [draw(**{name: value}) for value in values]
    wrong = next((figure for figure in figures if not isinstance(figure, Figure)), None)
    if wrong is not None:
        raise EmpiriskError(f"draw must return a Matplotlib figure, not {type(wrong).__name__}; end it with a view.")
    return Slider(name, values, figures)
