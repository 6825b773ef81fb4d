"""Fits as films: the way of a solver, the rounds of boosting, the steps of a clustering."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, HTMLWriter, PillowWriter
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from empirisk.clusters.kmeans import KMeans
from empirisk.clusters.mixture import GaussianMixture
from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.fits.minimise import Minimum
from empirisk.machines.oneclass import OneClassSVM
from empirisk.plots import style
from empirisk.plots.scenes import (
    Scene,
    descent_scene,
    dual_scene,
    means_scene,
    minimum_scene,
    mixture_scene,
    one_class_scene,
    regions_scene,
)
from empirisk.protocols import has_problems, is_map

#: What shows each kind.
SCENES: dict[str, Callable[..., Scene]] = {
    "descent": descent_scene,
    "dual": dual_scene,
    "regions": regions_scene,
    "k-means": means_scene,
    "mixture": mixture_scene,
    "one-class": one_class_scene,
    "path": minimum_scene,
}
#: What has no target, and the kind that shows it.
WITHOUT_TARGET = {KMeans: "k-means", GaussianMixture: "mixture", OneClassSVM: "one-class", Minimum: "path"}
SUFFIXES = (".gif", ".html", ".htm")
DPI = 90  # of a frame: sharp on a screen, and files of a few hundred kilobytes
#: Signs for the buttons below a film, in place of an icon font from elsewhere.
BUTTONS = {
    "Decrease speed": "-",
    "First frame": "|◂",
    "Previous frame": "◂",
    "Play backwards": "◄",
    "Pause": "‖",
    "Play": "►",
    "Next frame": "▸",
    "Last frame": "▸|",
    "Increase speed": "+",
}


class Film(FuncAnimation):
    """An animation that plays in notebooks, and that may be thrown away unseen without a warning."""

    def __init__(self, scene: Scene, fps: int):
        self.fps = fps
        # The widest texts are those of the last frame: its layout holds for all.
        scene.draw(scene.frames - 1)
        scene.figure.canvas.draw()
        scene.figure.set_layout_engine("none")
        super().__init__(
            scene.figure, self._show, frames=scene.frames, interval=1000 / fps, repeat=True, cache_frame_data=False
        )
        self._scene = scene

    def _show(self, frame: int) -> list[Any]:
        self._scene.draw(int(frame))
        return []

    def __del__(self):
        """Nothing to complain about."""

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """The film with its buttons, as HTML that needs nothing from elsewhere."""
        with TemporaryDirectory() as folder:
            page = Path(folder) / "film.html"
            # By default Matplotlib drops the frames beyond 20 MB.
            writer = HTMLWriter(fps=self.fps, embed_frames=True, default_mode="loop", embed_limit=1e6)
            self.save(page, writer=writer, dpi=DPI)
            text = page.read_text(encoding="utf-8")
        text = re.sub(r"<link[^>]*>", "", text)
        return re.sub(
            r'(<button title="([^"]*)"[^>]*>)\s*<i class="fa[^>]*></i>',
            lambda button: button[1] + BUTTONS.get(button[2], button[2]),
            text,
        )


def animate(
    machine: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    kind: str = "auto",
    file: str | PathLike[str] | None = None,
    columns: Sequence[int | str] = (0, 1),
    held: Mapping[Any, Any] | None = None,
    frames: int = 60,
    fps: int = 8,
) -> Any:
    """Show a fit as it happens; it is replayed on the data, and the machine stays as it is.

    Parameters
    ----------
    machine : machine
        Fitted or not. What can be replayed: ensembles with ``staged_predict``, Empirisk machines of two classes or one
        target, classifiers with ``max_iter``, `KMeans`, `GaussianMixture`, `OneClassSVM`. Or the result of `minimise`.
    X, y : table and target
        What the machine is fitted to; clusters and mixtures have no target, and results of `minimise` neither.
    kind : {"auto", "descent", "dual", "regions", "k-means", "mixture", "one-class", "path"}
        "descent": two weights on their way over the contours of the objective. "dual": the regions, margins and dual
        variables of two classes, with primal and dual objective; with one column, the decision function and the dual
        coefficients as stems. "regions": the decision regions after each round or iteration, with the error. "k-means":
        its two half-steps. "mixture": the components after each round. "one-class": the boundary. "path": that of
        `minimise`. "auto": what suits the machine: "regions" for ensembles and several classes, "dual" for dual ascent
        and kernels, else "descent".
    file : path, optional
        Where to write it: a name that ends in ``.gif`` or ``.html``, which then is self-contained.
    columns : two int or str
        The columns to draw; for "descent" the weights.
    held : dict, optional
        Values of the other columns; see `empirisk.plots.regions`.
    frames : int
        Most frames; of a longer fit more of the early states are shown.
    fps : int
        Frames in a second.

    Returns
    -------
    matplotlib.animation.FuncAnimation or pathlib.Path
        The path if there is a file, else the animation, which plays in notebooks.

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]), [0, 0, 1, 1]
    >>> film = er.plots.animate(er.LogisticRegression(solver="gradient_descent"), X, y, frames=5)
    >>> type(film).__name__
    'Film'
    """
    style.checked_choice("kind", kind, ("auto", *SCENES))
    check_count("frames", frames)
    if not (isinstance(fps, (int, np.integer)) and 1 <= fps <= 50):
        raise EmpiriskError(f"fps={fps!r} must be a whole number of frames in a second, from 1 to 50.")
    path = None if file is None else Path(file)
    if path is not None and path.suffix.lower() not in SUFFIXES:
        raise EmpiriskError(f"file={str(file)!r} must end in .gif or .html.")
    name, suited = type(machine).__name__, WITHOUT_TARGET.get(type(machine))
    chosen = (suited or _kind(machine, y)) if kind == "auto" else kind
    if chosen in WITHOUT_TARGET.values() and chosen != suited:
        raise EmpiriskError(f"kind={kind!r} does not show a {name}; use kind='auto'.")
    if chosen not in WITHOUT_TARGET.values() and y is None:
        raise EmpiriskError(f"y=None: a {name} learns from a target; give it.")
    if chosen != "path" and X is None:
        raise EmpiriskError(f"X=None: the fit of a {name} is replayed on its rows; give them.")
    film = Film(SCENES[chosen](machine, X, y, columns, held, int(frames)), fps)
    if path is None:
        return film
    if path.suffix.lower() == ".gif":
        film.save(path, writer=PillowWriter(fps), dpi=DPI)
    else:
        page = f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{name}</title>\n'
        path.write_text(f"{page}{film.to_html()}</html>\n", encoding="utf-8")
    return path


def _kind(machine: Any, y: Any) -> str:
    """What suits a machine and its target."""
    several = is_classifier(machine) and len(set(np.asarray(y).ravel().tolist())) > 2
    if hasattr(type(machine), "staged_predict") or not has_problems(machine) or several:
        return "regions"
    solver = machine.solver
    name = solver if isinstance(solver, str) else solver.name()
    in_dual = name in ("dual_ascent", "decomposition") or not (machine.features is None or is_map(machine.features))
    return "dual" if in_dual and hasattr(machine, "decision_function") else "descent"
