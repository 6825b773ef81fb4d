"""The objective of a fit, and its distance from the lower bound, over the iterations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots import style

Array = NDArray[np.float64]
LABELS = {"iterations": "iteration", "seconds": "seconds"}
#: What falls during a fit, by the names that machines give it.
FALLING = ("objective", "loss", "validation_loss")


def history(
    fit: Any, *, against: str = "iterations", log: bool | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Draw what a fit did: the objective, and below it how far it was from the bound that the certificate proves.

    Parameters
    ----------
    fit : fitted machine, or dict of arrays
        A machine with ``history_`` (Empirisk), ``loss_curve_`` or ``train_score_`` (scikit-learn), or such a history:
        "objective" or "loss", and "gap" if it is as long.
    against : {"iterations", "seconds"}
        What the curves run over.
    log : bool or None
        Whether the objective has a logarithmic scale; None: where it falls to less than a hundredth.
    axes : matplotlib Axes or two of them, optional
        Where to draw; a single one shows the objective only. None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> machine = er.LogisticRegression(solver="gradient_descent").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> figure = er.plots.history(machine)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['objective', 'objective - bound']
    """
    style.checked_choice("against", against, LABELS)
    kept = _history_of(fit)
    curves = {name: np.asarray(kept[name], dtype=np.float64) for name in FALLING if name in kept}
    problems = np.asarray(kept.get("problem", np.zeros(len(next(iter(curves.values())))))).astype(int)
    places = _places(kept, against, problems)
    gaps = _gaps(fit, kept, curves, problems)
    single = isinstance(axes, Axes) or (axes is None and gaps is None)
    drawn = style.panels(axes, 1 if single else 2, (6.4, 3.6 if single else 5.2), rows=True)
    for number, (name, values) in enumerate(curves.items()):
        for problem in np.unique(problems):
            rows = problems == problem
            label = name.replace("_", " ") if len(curves) > 1 else _problem(fit, int(problem), problems)
            _curve(drawn[0], places[rows], values[rows], number + int(problem), label)
    values = np.concatenate(list(curves.values()))
    if log is None:
        log = bool(values.min() > 0 and values.max() > 100 * values.min())
    drawn[0].set_yscale("log" if log else "linear")
    title = f"{type(fit).__name__}: {next(iter(curves))} over the fit" if not isinstance(fit, Mapping) else "The fit"
    style.dress(drawn[0], title, LABELS[against], "objective" if "objective" in curves else "loss")
    if not single and gaps is not None:
        for problem in np.unique(problems):
            rows = problems == problem
            _curve(drawn[1], places[rows], gaps[rows], int(problem), _problem(fit, int(problem), problems))
        drawn[1].set_yscale("log")
        style.dress(drawn[1], "", LABELS[against], "objective - bound")
        drawn[0].set_xlabel("")
    for one in drawn:
        if against == "iterations":
            style.whole_numbers(one)
    if len(curves) > 1 or problems.max() > 0:
        style.legend(drawn[0])
    return style.root(drawn[0])


def _problem(fit: Any, problem: int, problems: NDArray) -> str:
    """The name of one of several problems: that of its class, where there is one for each."""
    classes = getattr(fit, "classes_", ())
    if getattr(fit, "scheme_", None) == "one_vs_rest" and len(classes) == problems.max() + 1:
        return f"{style.plain(classes[problem])} or not"
    return f"problem {problem}"


def _history_of(fit: Any) -> Mapping[str, Any]:
    """The history in a fit, with at least one quantity that falls."""
    kept = fit if isinstance(fit, Mapping) else getattr(fit, "history_", None)
    for name in ("loss_curve_", "train_score_"):
        if kept is None and hasattr(fit, name):
            kept = {"loss": getattr(fit, name)}
    if kept is None:
        raise EmpiriskError(f"The {type(fit).__name__} keeps no history; fit it first, or give a dict of arrays.")
    known = [name for name in FALLING if name in kept]
    if not known or not len(kept[known[0]]):
        raise EmpiriskError(f"The history holds {sorted(kept)}; it needs one of {list(FALLING)} with some values.")
    if len({len(kept[name]) for name in known}) > 1:
        raise EmpiriskError(f"The entries {known} of the history must be as long as each other.")
    return kept


def _places(kept: Mapping[str, Any], against: str, problems: NDArray) -> Array:
    """Where each value stands: iterations count from 1 for each problem."""
    if against == "seconds":
        if "seconds" not in kept or len(kept["seconds"]) != len(problems):
            raise EmpiriskError("The history holds no seconds for each iteration; use against='iterations'.")
        return np.asarray(kept["seconds"], dtype=np.float64)
    numbers = np.empty(len(problems))
    for problem in np.unique(problems):
        rows = problems == problem
        numbers[rows] = np.arange(1, rows.sum() + 1)
    return numbers


def _gaps(fit: Any, kept: Mapping[str, Any], curves: dict[str, Array], problems: NDArray) -> Array | None:
    """How far the objective can be from its minimum at each iteration, as far as is proved."""
    certificate = getattr(fit, "certificate_", None)
    objective = curves.get("objective")
    if objective is None:
        return None
    if certificate is not None and problems.max() == 0 and np.isfinite(certificate.dual):
        # No better than the certificate's own gap, which counts rounding.
        return np.maximum(objective - certificate.dual, max(certificate.gap, np.finfo(float).tiny))
    gaps = np.asarray(kept.get("gap", ()), dtype=np.float64)
    return np.maximum(gaps, np.finfo(float).tiny) if len(gaps) == len(objective) and (gaps > 0).any() else None


def _curve(axes: Axes, across: Array, values: Array, number: int, label: str) -> None:
    dots = "o" if len(values) <= 40 else None
    axes.plot(
        across,
        values,
        color=style.colour(number),
        linestyle=style.dashes(number),
        marker=dots,
        markersize=3.5,
        lw=1.6,
        label=label,
    )
