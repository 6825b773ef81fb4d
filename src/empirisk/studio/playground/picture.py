"""What the page draws of a machine: its scores on a grid, its points, its curve; few numbers, and ready to be drawn."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import losses
from empirisk.plots.planes import has_margin, leads, scoring
from empirisk.studio.playground.fitting import PlaygroundFit, errors, is_convex
from empirisk.studio.playground.points import REACH, Array
from empirisk.studio.playground.question import Question

#: Places of the grid across; the page interpolates between them.
SIDE = 64
LINE = 200  # places of a curve of numbers: two pixels apart
#: Scores beyond are drawn alike; margins end at 1.
LARGEST_SCORE = 4.0
#: Places of a loss curve, and how far it reaches.
LOSS_PLACES, LOSS_REACH = 97, 3.0
#: Dual variables below this share of the largest are zero, but for rounding.
NEGLIGIBLE = 1e-6


def _grid() -> Array:
    across = np.linspace(-REACH, REACH, SIDE)
    return np.column_stack([np.tile(across, SIDE), np.repeat(across, SIDE)])


GRID = _grid()
ACROSS = np.linspace(-REACH, REACH, LINE)


def packed(scores: Array) -> dict[str, Any]:
    """Scores on the grid, one row for each class or one in all, as 16-bit whole numbers in base64."""
    reach = float(min(LARGEST_SCORE, np.abs(scores).max())) or 1.0
    whole = np.round(np.clip(np.nan_to_num(scores) / reach, -1, 1) * 32767).astype("<i2")
    return {"side": SIDE, "reach": reach, "scores": [base64.b64encode(row.tobytes()).decode() for row in whole]}


def signed(machine: Any, scores: Any) -> Array:
    """Scores on the grid: one row where there are two classes, else the lead of each class over the best other."""
    by_class = leads(np.asarray(scores, dtype=np.float64))
    return by_class[1:] if len(by_class) == 2 else by_class


def picture(question: Question, machine: Any, duals: Array | None = None) -> dict[str, Any]:
    """What is drawn of a machine, fitted or in the middle of its fit."""
    return PICTURES[question.task](question, machine) | _sizes(question, duals)


def _classes(question: Question, machine: Any) -> dict[str, Any]:
    ask = scoring(machine)
    assert ask is not None  # every classifier of the page has a score
    margins = len(machine.classes_) == 2 and has_margin(machine)
    return {
        "grid": packed(signed(machine, ask(GRID))),
        "classes": machine.classes_.tolist(),
        "margins": margins,
        "said": _said(question, machine, 2),
    }


def _numbers(question: Question, machine: Any) -> dict[str, Any]:
    loss = losses.find(machine.loss) if getattr(machine, "loss", None) is not None else None
    return {
        "curve": np.round(machine.predict(ACROSS[:, None]), 4),
        "tube": getattr(loss, "epsilon", None),
        "said": np.round(_said(question, machine, 1), 4),
    }


def _said(question: Question, machine: Any, columns: int) -> NDArray:
    """What it says of every point, held out or not."""
    return machine.predict(np.array(question.points)[:, :columns])


def _clusters(question: Question, machine: Any) -> dict[str, Any]:
    X, _ = question.data()
    if hasattr(machine, "means_"):
        return mixture(machine, X)
    if hasattr(machine, "cluster_centers_"):
        return nearest(machine.cluster_centers_, machine.labels_)
    return {"labels": machine.labels_}


def nearest(centres: Array, labels: NDArray) -> dict[str, Any]:
    """Centres, and the region that is nearest to each."""
    squares = ((GRID[:, None] - centres) ** 2).sum(axis=2)
    found = {"centres": np.round(centres, 4), "labels": labels}
    regions = {"grid": packed(leads(-squares)), "classes": list(range(len(centres)))}
    return found | (regions if len(centres) > 1 else {})


def mixture(machine: Any, X: Array) -> dict[str, Any]:
    """Means, covariances as ellipses of one standard deviation, and which component a place belongs to."""
    count = len(machine.weights_)
    found = {
        "centres": np.round(machine.means_, 4),
        "ellipses": [_ellipse(covariance) for covariance in machine.whole_covariances()],
        "labels": machine.predict(X),
    }
    regions = {"grid": packed(leads(machine.predict_proba(GRID))), "classes": list(range(count))}
    return found | (regions if count > 1 else {})


def _ellipse(covariance: Array) -> list[float]:
    """The half axes of an ellipse, and its turn in radians."""
    values, vectors = np.linalg.eigh(covariance)
    first, second = np.sqrt(np.maximum(values[::-1], 0.0))
    return [float(first), float(second), float(np.arctan2(vectors[1, 1], vectors[0, 1]))]


PICTURES = {"classes": _classes, "numbers": _numbers, "clusters": _clusters}


def _sizes(question: Question, duals: Array | None) -> dict[str, Any]:
    """The dual variable of every point, zero for those held out."""
    if duals is None:
        return {}
    sizes = np.zeros(len(question.points))
    sizes[~question.is_held] = np.where(duals > NEGLIGIBLE * duals.max(initial=0.0), duals, 0.0)
    return {"duals": [float(f"{size:.4g}") for size in sizes]}


def answer(question: Question, fitted: PlaygroundFit) -> dict[str, Any]:
    """All that the page shows of a fit."""
    machine = fitted.machine
    certificate = getattr(machine, "certificate_", None)
    return picture(question, machine, fitted.duals) | {
        "code": question.expression,
        "seconds": fitted.seconds,
        "held": np.flatnonzero(question.is_held),
        "errors": errors(question, machine),
        "certificate": None if certificate is None else certificate_told(certificate),
        "loss": loss_curve(question, machine),
        "facts": facts(question, fitted),
    }


def certificate_told(certificate: Any) -> dict[str, Any]:
    """The certificate as JSON has it."""
    names = ("primal", "dual", "gap", "relative_gap", "converged", "status", "solver", "reason", "iterations")
    return {name: getattr(certificate, name) for name in names}


def loss_curve(question: Question, machine: Any) -> dict[str, Any] | None:
    """The loss over the margin or the residual, and where the points are that were learned from."""
    X, y = question.data()
    if not is_convex(machine) or (question.task == "classes" and len(machine.classes_) != 2):
        return None
    loss, z = losses.find(machine.loss), np.linspace(-LOSS_REACH, LOSS_REACH, LOSS_PLACES)
    if question.task == "classes":
        at = np.where(y == machine.classes_[1], 1.0, -1.0) * machine.decision_function(X)
        label, values = "margin y f(x)", loss.value(np.ones_like(z), z)
    else:
        at, label = machine.predict(X) - y, "residual f(x) - y"
        values = loss.value(np.zeros_like(z), z)
    return {"label": label, "x": z, "y": np.round(values, 4), "at": np.round(at, 4)}


def facts(question: Question, fitted: PlaygroundFit) -> list[list[str]]:
    """What else is known of the machine: a name and a value each."""
    machine, found = fitted.machine, []
    if fitted.duals is not None:
        share = np.count_nonzero(fitted.duals > NEGLIGIBLE * fitted.duals.max(initial=0.0))
        found.append(["support vectors", f"{share} of {len(fitted.duals)}"])
    counted = {"n_iter_": "iterations", "n_estimators_": "trees", "n_leaves_": "leaves"}
    for name, words in counted.items():
        if isinstance(getattr(machine, name, None), (int, np.integer)):
            found.append([words, str(getattr(machine, name))])
    measured = {"inertia_": "squared distances", "log_likelihood_": "log-likelihood"}
    for name, words in measured.items():
        if isinstance(getattr(machine, name, None), float):
            found.append([words, f"{getattr(machine, name):.4g}"])
    return found
