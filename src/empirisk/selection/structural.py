"""Structural risk minimisation: of nested classes of machines, the one whose bound on the true error is least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from empirisk.errors import EmpiriskError
from empirisk.evaluation.data import fit, read_data, seeded
from empirisk.notebook import html
from empirisk.protocols import is_grown
from empirisk.runs.parallel import parallel_fits
from empirisk.theory.bound import Bound, check_open
from empirisk.theory.margins import margin_bound
from empirisk.theory.vc import tree_bound, vc_bound, vc_dimension

Bounding = Callable[[Any, Any, Any, float], Bound]


@dataclass(frozen=True, eq=False)
class NestedClass:
    """One class of the structure, with the machine that has the least training error in it.

    Attributes
    ----------
    value : object
        The value of the parameter.
    weight : float
        The share of delta that it may use.
    training_error : float
        Share of training rows that its machine gets wrong.
    bound : float
        The bound on the true error, which holds for all classes at once except with probability delta.
    machine : classifier
        The fitted machine.

    Examples
    --------
    >>> X = np.repeat(np.linspace(-1, 1, 500)[:, None], 4, axis=0)
    >>> machine = er.LogisticRegression(features=er.maps.Polynomial())
    >>> found = er.selection.structural_risk(machine, X, X[:, 0] > 0.3, "features__degree", [1, 2])
    >>> [one.weight for one in found.classes]
    [0.5, 0.16666666666666666]
    """

    value: Any
    weight: float
    training_error: float
    bound: float
    machine: Any

    @property
    def penalty(self) -> float:
        """What the bound adds to the training error."""
        return self.bound - self.training_error


@dataclass(frozen=True, eq=False, repr=False)
class StructuralRisk:
    """What `structural_risk` found; printed, it is a table.

    Attributes
    ----------
    classes : list of NestedClass
        All classes, in the order given.
    index : int
        The place of the one chosen.
    parameter : str
        What differs between the classes.
    delta : float
        The probability with which the bounds may fail.
    value, bound, machine
        Those of the class chosen.

    Examples
    --------
    >>> X = np.repeat(np.linspace(-1, 1, 500)[:, None], 4, axis=0)
    >>> found = er.selection.structural_risk(er.TreeClassifier(), X, np.abs(X[:, 0]) > 0.5, "max_leaf_nodes", [2, 3, 8])
    >>> found.value, found.machine.score(X, np.abs(X[:, 0]) > 0.5)
    (3, 1.0)
    """

    classes: list[NestedClass]
    index: int
    parameter: str
    delta: float

    @property
    def value(self) -> Any:
        """The value of the parameter that was chosen."""
        return self.classes[self.index].value

    @property
    def bound(self) -> float:
        """The bound on the true error of the chosen machine."""
        return self.classes[self.index].bound

    @property
    def machine(self) -> Any:
        """The chosen machine, fitted."""
        return self.classes[self.index].machine

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (str(one.value), *(f"{number:.4g}" for number in (one.training_error, one.penalty, one.bound)))
            for one in self.classes
        ]

    def __str__(self) -> str:
        width = max(len(self.parameter), *(len(row[0]) for row in self._rows()))
        lines = [f"{self.parameter:{width}}  training error  penalty    bound"]
        for place, row in enumerate(self._rows()):
            mark = "  <- chosen" if place == self.index else ""
            lines.append(f"{row[0]:{width}}  {row[1]:>14}  {row[2]:>7}  {row[3]:>7}{mark}")
        return "\n".join([*lines, *self._notes()])

    __repr__ = __str__

    def _notes(self) -> list[str]:
        sure = f"The true error is at most {self.bound:.4g}, except with probability {self.delta:g}."
        vacuous = "The bound is vacuous: more rows would make it speak; the order of the classes still holds."
        return [sure if self.bound < 1 else vacuous]

    def _repr_html_(self) -> str:
        head = [self.parameter, "training error", "penalty", "bound"]
        return html(f"Structural risk: {self.parameter}={self.value!r}", head, self._rows(), self._notes())


def structural_risk(
    machine: Any,
    X: Any,
    y: ArrayLike,
    parameter: str,
    values: Sequence[Any],
    *,
    bound: str | Bounding | None = None,
    weights: ArrayLike | None = None,
    delta: float = 0.05,
) -> StructuralRisk:
    """Choose among nested classes H_1, H_2, ... the machine with the least bound on its true error.

        minimise over k   training error of the machine of H_k  +  penalty(H_k, n, delta weight_k)

    The weights, fixed before the data and of sum at most 1, share delta among the classes, so that all bounds hold at
    once and the choice is free: no rows are held out. Bounds are far from tight; where rows are few, `Search` by
    cross-validation chooses better, without the guarantee.

    Parameters
    ----------
    machine : classifier
        An unfitted one; it is cloned.
    X, y : table and labels
        The training rows, independent of each other.
    parameter : str
        What spans the classes, reaching into parts: "features__degree", "max_leaf_nodes", "C".
    values : list
        From the smallest class to the largest.
    bound : {"vc", "tree", "margin"} or callable, optional
        `theory.vc_bound` at the VC dimension of the fitted machine's class, `theory.tree_bound`, `theory.margin_bound`,
        or ``bound(machine, X, y, delta)`` that returns a `Bound`. By default "tree" for one tree, else "vc".
    weights : array, optional
        A positive number for each class, of sum at most 1; 1 / (k (k + 1)) for the k-th by default.
    delta : float
        The probability with which any of the bounds may fail.

    Returns
    -------
    StructuralRisk

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 1))
    >>> machine = er.LogisticRegression(C=1e4, features=er.maps.Polynomial())
    >>> found = er.selection.structural_risk(machine, X, X[:, 0] ** 2 > 0.3, "features__degree", [1, 2, 3, 4])
    >>> found.value, found.bound < 0.2
    (2, True)
    """
    values = list(values)
    if parameter not in machine.get_params():
        raise EmpiriskError(f"parameter={parameter!r} is none of {type(machine).__name__}; see its get_params().")
    shares = _weights(weights, len(values))
    bounding = _bounding(bound)
    check_open("delta", delta)
    data = read_data(machine, X, y)
    if data.classes is None:
        raise EmpiriskError("y holds numbers, but these bounds are about errors of classes; give labels.")

    def work(place: int) -> NestedClass:
        fresh = clone(machine).set_params(**{parameter: clone(values[place], safe=False)})
        fitted = fit(seeded(fresh, 0), data)
        error = float(np.mean(np.asarray(fitted.predict(data.X)) != data.y))
        found = bounding(fitted, data.X, data.y, delta * float(shares[place]))
        return NestedClass(values[place], float(shares[place]), error, found.value, fitted)

    classes = parallel_fits(work, range(len(values)))
    return StructuralRisk(classes, int(np.argmin([one.bound for one in classes])), parameter, delta)


def _weights(weights: ArrayLike | None, count: int) -> np.ndarray:
    if count == 0:
        raise EmpiriskError("values must hold at least one value of the parameter.")
    places = np.arange(1, count + 1)
    shares = 1 / (places * (places + 1)) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (count,) or not (shares > 0).all() or shares.sum() > 1 + 1e-12:
        raise EmpiriskError(f"weights must be {count} positive numbers of sum at most 1, one for each of values.")
    return shares


def _bounding(bound: str | Bounding | None) -> Bounding:
    if bound is None:
        return _by_kind
    if callable(bound):
        return bound
    if bound not in BOUNDS:
        raise EmpiriskError(f"bound={bound!r} is not known; use one of {sorted(BOUNDS)}, or a callable.")
    return BOUNDS[bound]


def _by_kind(machine: Any, X: Any, y: Any, delta: float) -> Bound:
    return BOUNDS["tree" if is_grown(machine) else "vc"](machine, X, y, delta)


def _vc(machine: Any, X: Any, y: Any, delta: float) -> Bound:
    if len(machine.classes_) > 2:
        raise EmpiriskError(f"bound='vc' is for two classes, but y holds {len(machine.classes_)}.")
    wrong = float(np.mean(np.asarray(machine.predict(X)) != y))
    return vc_bound(vc_dimension(machine).value, len(y), wrong, delta)


BOUNDS: dict[str, Bounding] = {
    "vc": _vc,
    "tree": lambda machine, X, y, delta: tree_bound(machine, X, y, delta=delta),
    "margin": margin_bound,
}
