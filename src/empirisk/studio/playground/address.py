"""The address under which the playground shows some points and a machine, as its own *Copy link* writes it."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.studio.playground.question import Question

#: Thousandths of the plane's unit, as in ``address.js``.
FACTOR = 1000
#: Where the links of the documentation look for a studio; ``empirisk studio --port 8642`` listens there.
PORT = 8642


@dataclass(frozen=True)
class Link:
    """A link into the playground, shown as one by notebooks and on the site.

    Attributes
    ----------
    address : str
        Where it leads, while ``empirisk studio --port`` with its port runs in the same browser.
    port : int
        The port.
    """

    address: str
    port: int

    def _repr_html_(self) -> str:
        return (
            f'<p><a href="{self.address.replace("&", "&amp;")}">Open these points in the playground</a>, while '
            f"<code>empirisk studio --port {self.port}</code> runs.</p>"
        )

    def __repr__(self) -> str:
        return f"Link(to the playground of empirisk studio --port {self.port})"


def link(X: ArrayLike, y: ArrayLike, *, task: str = "classes", family: str = "equation", **settings: Any) -> Link:
    """A link to the playground with some points and the settings of a machine.

    Parameters
    ----------
    X : array, n x 2 for classes, n for numbers
        The points.
    y : array of n
        Their classes, or the targets.
    task : {"classes", "numbers"}
        What y is.
    family : str
        The machine, such as "equation", "perceptron" or "tree".
    **settings
        Values of its controls, such as ``loss="hinge"``, ``C=10.0``, ``features="kernel"``, ``kernel="Gaussian(0.5)"``.

    Returns
    -------
    Link

    Examples
    --------
    >>> link([[0, 0], [1, 0], [0, 1], [1, 1]], ["a", "a", "b", "b"], C=10.0).address[:60]
    'http://127.0.0.1:8642/playground#task=classes&family=equatio'
    """
    rows, targets = np.asarray(X, dtype=np.float64), np.asarray(y)
    if task == "numbers":
        points = np.column_stack([rows.ravel(), targets.astype(np.float64), np.zeros(len(targets))])
    elif rows.ndim == 2 and rows.shape[1] == 2:
        points = np.column_stack([rows, np.unique(targets, return_inverse=True)[1]])
    else:
        raise EmpiriskError(f"X has shape {rows.shape}; the playground shows two columns.")
    shown = [[float(x), float(up), int(label)] for x, up, label in points]
    Question.from_dict({"task": task, "family": family, "held": 0.0, "settings": settings, "points": shown})
    whole = np.column_stack([np.rint(FACTOR * points[:, :2]), points[:, 2]]).astype("<i2")
    known = {"task": task, "family": family, "held": 0} | {f"_{name}": value for name, value in settings.items()}
    words = urlencode(known | {"points": urlsafe_b64encode(whole.tobytes()).decode().rstrip("=")})
    return Link(f"http://127.0.0.1:{PORT}/playground#{words}", PORT)
