"""A figure as SVG that can stand inside a page."""

import re
from hashlib import sha256
from io import StringIO
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from empirisk.plots.style import any_script

# Letters as text, which the reader's own fonts draw in every script, which can be searched and copied, and is a tenth
# of the size of outlines; names by content, not at random.
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "empirisk", "svg.image_inline": True}
NOTHING = {"Date": None, "Creator": None, "Format": None, "Type": None}


def to_svg(figure: Figure) -> str:
    """The figure as an ``<svg>`` element: self-contained, and the same text for the same figure.

    Its ids begin with a digest of its content, so that several figures can stand in one page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What any view returns.

    Returns
    -------
    str

    Examples
    --------
    >>> svg = er.plots.to_svg(er.plots.losses(["hinge", "logistic"]))
    >>> svg[:4], svg.strip()[-6:]
    ('<svg', '</svg>')
    >>> svg == er.plots.to_svg(er.plots.losses(["hinge", "logistic"]))
    True
    """
    page = StringIO()
    with rc_context(SETTINGS), any_script():
        figure.savefig(page, format="svg", metadata=NOTHING)
    text = page.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    mark = "s" + sha256(text.encode()).hexdigest()[:10]
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mark}-", text)
