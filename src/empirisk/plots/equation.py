"""The parts of the equation: losses, weights along the path, Gram matrices, importances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from empirisk import losses as parts
from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.evaluation.scored import sorted_classes
from empirisk.formats import percent
from empirisk.losses.base import Loss
from empirisk.plots import style
from empirisk.protocols import is_map

LABELS = {
    "margin": "margin  t = y f(x)",
    "residual": "residual  e = f(x) - y",
    "logarithm": "logarithm of the predicted mean  f(x),  for y = 1",
}
#: The losses that can be drawn against each, and the target that they are drawn for.
SUITED = {
    "margin": lambda loss: "classification" in loss.tasks,
    "residual": lambda loss: loss.residual_form,
    "logarithm": lambda loss: loss.positive,
}
TARGETS = {"margin": 1.0, "residual": 0.0, "logarithm": 1.0}
CLASSICAL = ("zero_one", "perceptron", "hinge", "squared_hinge", "logistic", "exponential")


def losses(
    which: str | Loss | Iterable[str | Loss] = CLASSICAL,
    *,
    against: str = "auto",
    reach: float = 3.0,
    axes: Axes | None = None,
) -> Figure:
    """Draw losses as functions of the margin t = y f(x), of the residual e = f(x) - y, or of f(x) for y = 1.

    Parameters
    ----------
    which : name or Loss, or several
        The losses to compare.
    against : {"auto", "margin", "residual", "logarithm"}
        What to draw them against; "auto" takes the margin if every loss is one for classes, and the logarithm of the
        predicted mean for deviances.
    reach : float
        The curves run from -reach to reach.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.losses(["hinge", er.losses.SoftHinge(temperature=0.5)])
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['hinge', 'SoftHinge(temperature=0.5)']
    """
    asked = [which] if isinstance(which, (str, Loss)) else list(which)
    if not asked:
        raise EmpiriskError("which holds no loss; name at least one, such as 'hinge'.")
    if not 0 < reach < np.inf:
        raise EmpiriskError(f"reach={reach!r} must be a positive number.")
    found = [(name, parts.find(name)) for name in asked]
    against = _axis(found, style.checked_choice("against", against, ("auto", *SUITED)))
    z = np.linspace(-reach, reach, 1201)  # closer than pixels, and zero among them
    axes = style.canvas(axes)
    highest = 0.0
    for number, (name, loss) in enumerate(found):
        values = loss.value(np.full_like(z, TARGETS[against]), z)
        highest = max(highest, float(values[np.isfinite(values)].max()))
        label = name if isinstance(name, str) else style.plain(repr(name), style.ACROSS)
        axes.plot(z, _broken(values), label=label, **style.look(number))
    top = min(highest, reach + 1.0)  # one steep loss does not flatten the others
    axes.set(xlim=(-reach, reach), ylim=(-0.03 * top, 1.05 * top))
    return style.finished(axes, f"Losses of the {against}", LABELS[against], "loss")


def _axis(found: list[tuple[Any, Loss]], against: str) -> str:
    """What all the losses are functions of."""
    for name, loss in found:
        if loss.joint:
            raise EmpiriskError(f"loss={name!r} is a function of several scores; draw a loss of one number instead.")
    suitable = [axis for axis, suits in SUITED.items() if all(suits(loss) for _, loss in found)]
    if suitable and against in ("auto", *suitable):
        return suitable[0] if against == "auto" else against
    if against == "auto":
        raise EmpiriskError("which mixes losses for classes, for numbers and for means; draw them in several figures.")
    strange = next(name for name, loss in found if not SUITED[against](loss))
    raise EmpiriskError(f"loss={strange!r} is not a function of the {against}; leave it out or change against.")


def _broken(values: np.ndarray) -> np.ndarray:
    """The curve with a gap where it jumps."""
    jumps = np.abs(np.diff(values, append=values[-1])) > 0.5  # of a loss of 0 or 1
    return np.where(jumps & (np.ptp(values) <= 1.0), np.nan, values)


def coefficients(
    path: Any,
    coefs: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    output: int = 0,
    most: int = 10,
    chosen: float | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw every weight against C, on a logarithmic scale; the largest at the end are named.

    Parameters
    ----------
    path : Path, or array of k
        What `empirisk.selection.path` returns, or the values of C.
    coefs : array, k x d or k x outputs x d
        The weights at each C, if ``path`` is an array.
    names : list of str, optional
        Names of the d weights.
    output : int
        Which machine's weights to draw, where there is one for each class.
    most : int
        How many weights to name; the others are grey.
    chosen : float, optional
        A value of C to mark.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.eye(3), np.array([3.0, 2.0, 1.0])
    >>> path = er.selection.path(er.Lasso(fit_intercept=False), X, y, Cs=30)
    >>> figure = er.plots.coefficients(path, names=["age", "income", "rooms"])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['age', 'income', 'rooms']
    """
    Cs, weights = _path_of(path, coefs, output)
    columns = weights.shape[1]
    if names is not None and len(names) != columns:
        raise EmpiriskError(f"names holds {len(names)} names for {columns} weights; give one for each.")
    named = [f"x{k}" for k in range(columns)] if names is None else names
    order = np.argsort(-np.abs(weights[-1]), kind="stable")
    axes = style.canvas(axes)
    for column in order[most:]:
        axes.plot(Cs, weights[:, column], color="0.75", lw=0.8, zorder=1)
    for rank, column in enumerate(order[:most]):
        axes.plot(Cs, weights[:, column], zorder=2, label=style.plain(named[column]), **style.look(rank))
    if columns > most:
        axes.plot([], [], color="0.75", lw=0.8, label=f"{columns - most} others")
    axes.axhline(0, color=style.SOFT, lw=0.8, zorder=0)
    if chosen is not None:
        axes.axvline(chosen, color=style.INK, lw=1.0, linestyle=":", label=f"chosen C = {chosen:.3g}")
    axes.set_xscale("log")
    axes.set_xlim(*((Cs[0], Cs[-1]) if len(Cs) > 1 else (Cs[0] / 2, 2 * Cs[0])))
    return style.finished(axes, "Path of the coefficients", "C  (less regularisation to the right)", "weight")


def _path_of(path: Any, coefs: ArrayLike | None, output: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of C, increasing, and the weights of one output."""
    if coefs is None:
        if not (hasattr(path, "Cs") and hasattr(path, "coefs")):
            raise EmpiriskError("path must be what er.selection.path returns, or values of C with coefs beside them.")
        path, coefs = path.Cs, path.coefs
    Cs, weights = np.asarray(path, dtype=np.float64), np.asarray(coefs, dtype=np.float64)
    if weights.ndim == 3:
        if not 0 <= output < weights.shape[1]:
            raise EmpiriskError(f"output={output!r} is outside the {weights.shape[1]} machines of the path.")
        weights = weights[:, output]
    if Cs.ndim != 1 or weights.ndim != 2 or len(Cs) != len(weights) or not len(Cs):
        raise EmpiriskError(f"coefs of shape {weights.shape} must have a row for each of the {Cs.size} values of C.")
    if not (Cs > 0).all():
        raise EmpiriskError("path holds values of C that are not positive; a logarithmic scale cannot show them.")
    order = np.argsort(Cs, kind="stable")
    return Cs[order], weights[order]


#: Blocks smaller than this share of the picture go without a name, lest names overlap.
LEAST = 0.035


def gram(kernel: Any, X: Any = None, y: ArrayLike | None = None, *, axes: Axes | None = None) -> Figure:
    """Draw the similarities k(x_i, x_j): classes that a kernel can tell apart appear as blocks.

    Parameters
    ----------
    kernel : array n x n, or callable
        The Gram matrix, or a kernel to call as ``kernel(X)``.
    X : rows, optional
        The data, where ``kernel`` is callable.
    y : array of n, optional
        Classes; rows are ordered by them.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.array([[0.0], [2.0], [0.1], [2.1]]), ["low", "high", "low", "high"]
    >>> figure = er.plots.gram(lambda X: np.exp(-((X - X.T) ** 2)), X, y)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['high', 'low']
    """
    K = _matrix(kernel, X)
    axes = style.canvas(axes, (5.6, 4.6))  # inches: nearly square, with room for the scale
    if y is not None:
        labels = np.asarray(y)
        if labels.shape != (len(K),):
            raise EmpiriskError(f"y has shape {labels.shape}; the Gram matrix has {len(K)} rows, so give {len(K)}.")
        sorted_classes("y", labels)
        order = np.argsort(labels, kind="stable")
        K = K[np.ix_(order, order)]
    low, high = float(K.min()), float(K.max())
    # A scale with a middle where similarities have a sign, else one from dark to bright.
    signed = low < -1e-9 * max(abs(high), 1e-300)  # beyond rounding
    limit = max(abs(low), abs(high))
    span = {"cmap": "PuOr", "vmin": -limit, "vmax": limit} if signed else {"cmap": "cividis", "vmin": low, "vmax": high}
    picture = axes.imshow(K, interpolation="nearest", aspect="equal", **span)
    style.scale(axes, picture, "k(x, x')")
    style.dress(axes, f"Gram matrix of {len(K)} rows", "row", "row", grid=False)
    if y is not None:
        _blocks(axes, labels[order])
    return style.root(axes)


def _matrix(kernel: Any, X: Any) -> NDArray[np.float64]:
    if callable(kernel):
        if X is None:
            raise EmpiriskError("X is missing; a kernel needs the rows to compare.")
        kernel = kernel(X)
    K = np.asarray(kernel.toarray() if issparse(kernel) else kernel, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K):
        raise EmpiriskError(f"kernel gives a matrix of shape {K.shape}; a Gram matrix is square, one row per sample.")
    if not np.isfinite(K).all():
        raise EmpiriskError("kernel gives a matrix with values that are not finite; check the kernel and the data.")
    return K


def _blocks(axes: Axes, labels: NDArray) -> None:
    """Lines between the classes, and the name of each beside its block."""
    names, starts, counts = np.unique(labels, return_index=True, return_counts=True)
    for start in starts[1:]:
        axes.axhline(start - 0.5, color="white", lw=1.2)
        axes.axvline(start - 0.5, color="white", lw=1.2)
    large = counts >= LEAST * len(labels)
    axes.set_yticks((starts + (counts - 1) / 2)[large], [style.plain(name, style.BESIDE) for name in names[large]])
    axes.set_xticks([])
    axes.set_xlabel("rows in the same order", fontsize=style.LABEL)
    axes.set_ylabel("class", fontsize=style.LABEL)
    axes.tick_params(length=0)


def importance(
    values: Any,
    deviations: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    most: int = 20,
    axes: Axes | None = None,
) -> Figure:
    """Draw how much a machine relies on each column; whiskers are one standard deviation.

    Parameters
    ----------
    values : table, Bunch, array of d, or the result of `learn`
        What ``machine.importances(X, y)`` or scikit-learn's ``permutation_importance`` returns, or the numbers.
    deviations : array of d, optional
        Their spread, if ``values`` is an array.
    names : list of str, optional
        Names of the d columns, if ``values`` does not hold them.
    most : int
        How many to draw.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.importance([0.1, 0.4], [0.02, 0.05], names=["age", "income"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['income', 'age']
    """
    means, spread, named = _importances_of(values, deviations, names)
    check_count("most", most)
    order = np.argsort(-means, kind="stable")[:most]
    axes = style.canvas(axes, (style.SIZE[0], 1.3 + 0.27 * len(order)))  # inches: title and axis, and a line for each
    axes.barh(
        np.arange(len(order)),
        means[order],
        xerr=None if spread is None else spread[order],
        height=0.68,
        color=[style.PALETTE[0] if means[k] > 0 else style.PALETTE[8] for k in order],
        error_kw={"ecolor": style.INK, "elinewidth": 1.0, "capsize": 2.5},
    )
    axes.axvline(0, color=style.SOFT, lw=0.8)
    axes.set_yticks(np.arange(len(order)), [style.plain(named[k], style.UP) for k in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    left_out = f", {len(order)} of {len(means)} columns" if len(order) < len(means) else ""
    shuffled = hasattr(values, "importances_mean") or hasattr(values, "columns")
    across = "fall of the score when the column is shuffled" if shuffled else "importance"
    style.dress(axes, f"Importance{left_out}", across, "")
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    return style.root(axes)


def metric(machine: Any, *, most: int = 20, axes: Axes | None = None) -> Figure:
    """Draw along which columns a machine with `LearnedKernel` measures distances: their shares of the metric.

    Parameters
    ----------
    machine : machine or LearnedKernel
        Fitted with ``features=er.LearnedKernel(...)``, or `maps.Nystrom` of one; or what it has learned, its
        ``features_``.
    most : int
        How many columns to draw.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> machine = er.Ridge(C=10.0, features=er.LearnedKernel("gaussian")).fit(X, np.sin(2 * X[:, 2]))
    >>> er.plots.metric(machine).axes[0].get_yticklabels()[0].get_text()
    'x2'
    """
    features = getattr(machine, "features_", machine)
    kernel: Any = getattr(features, "kernel_", features) if is_map(features) else features
    if not hasattr(kernel, "metric_"):
        raise EmpiriskError(f"{machine!r} has learned no metric; fit a machine with features=er.LearnedKernel().")
    known = kernel.metric_
    axes = style.canvas(axes, (style.SIZE[0], 1.3 + 0.27 * min(most, len(known))))
    figure = importance(
        known.diagonal() / np.trace(known), names=getattr(machine, "feature_names_in_", None), most=most, axes=axes
    )
    leading = np.linalg.eigvalsh(known)[-1] / np.trace(known)
    axes.set_title("")
    style.dress(axes, f"The leading direction is {percent(leading, 0)} of the metric", "share of the metric", "")
    axes.grid(False, axis="y")
    return figure


def _importances_of(
    given: Any, deviations: ArrayLike | None, names: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray | None, Sequence[str]]:
    """Means, spread and names from any of the forms."""
    values = given
    if hasattr(values, "leaderboard"):  # the result of `learn`
        values = values.importances
    if hasattr(values, "predict"):
        raise EmpiriskError(
            "values is a machine; give what importances(X, y) of trees or permutation_importance returns."
        )
    if hasattr(values, "importances_mean"):
        values, deviations = values.importances_mean, values.importances_std
    elif hasattr(values, "columns"):
        missing = {"feature", "importance"} - set(values.columns)
        if missing:
            raise EmpiriskError(f"values has no column {sorted(missing)[0]!r}; give what importances(X, y) returns.")
        names = [str(name) for name in values["feature"]] if names is None else names
        deviations = values["deviation"] if "deviation" in values.columns else None
        values = values["importance"]
    elif isinstance(values, list) and values and isinstance(values[0], tuple):
        names, values, deviations = zip(*values, strict=True)
    means = np.asarray(values, dtype=np.float64)
    if means.ndim != 1 or not len(means) or not np.isfinite(means).all():
        raise EmpiriskError(f"values of shape {means.shape} must be a finite number for each column.")
    spread = None if deviations is None else np.asarray(deviations, dtype=np.float64)
    named = [f"x{k}" for k in range(len(means))] if names is None else names
    if len(named) != len(means) or (spread is not None and spread.shape != means.shape):
        raise EmpiriskError(f"names and deviations must have {len(means)} entries, one for each of values.")
    return means, spread, named
