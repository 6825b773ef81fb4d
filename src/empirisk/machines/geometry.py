"""The geometry of a linear machine: hyperplane, distances, margin, support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.validation import check_array

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Hyperplane:
    """The set {x : <w, x> + b = 0} and what can be measured from it.

    Parameters
    ----------
    w : array of d
        The normal vector, not zero.
    b : float
        The constant.

    Examples
    --------
    >>> plane = er.Hyperplane(np.array([3.0, 4.0]), -5.0)
    >>> plane.distance([[3.0, 4.0], [0.0, 0.0]])
    array([ 4., -1.])
    >>> plane.margin
    0.2
    >>> machine = er.SVM(C=np.inf).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> plane = er.Hyperplane.of(machine)
    >>> round(plane.margin, 6), plane.support([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1], machine.classes_)
    (1.0, array([1, 2]))
    """

    w: Array
    b: float = 0.0

    def __post_init__(self) -> None:
        w = np.asarray(self.w, dtype=float)
        if w.ndim != 1 or not np.all(np.isfinite(w)) or not np.any(w):
            raise EmpiriskError("w of a Hyperplane must be a finite vector that is not zero.")
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "b", float(self.b))

    @classmethod
    def of(cls, machine: Any, index: int = 0) -> Hyperplane:
        """The hyperplane of a fitted linear machine; ``index`` picks one of several."""
        check_is_fitted(machine)
        if not hasattr(machine, "coef_"):
            raise Unsuitable(
                f"Hyperplane.of needs a machine with weights on columns, coef_, which {type(machine).__name__} has not "
                "here: behind a kernel the hyperplane lies among the kernel's features; use features=None or a map."
            )
        weights, constants = np.atleast_2d(machine.coef_), np.atleast_1d(machine.intercept_)
        if not 0 <= index < len(weights):
            raise EmpiriskError(f"index={index!r} is outside the {len(weights)} hyperplanes of the machine.")
        return cls(weights[index], constants[index])

    def decision(self, X: ArrayLike) -> Array:
        """f(x) = <w, x> + b."""
        return np.asarray(check_array(X, accept_sparse=True) @ self.w) + self.b

    def distance(self, X: ArrayLike) -> Array:
        """The signed distance (<w, x> + b) / |w|."""
        return self.decision(X) / np.linalg.norm(self.w)

    def project(self, X: ArrayLike) -> Array:
        """The nearest point on the hyperplane to each row."""
        points = np.asarray(check_array(X), dtype=np.float64)
        return points - np.outer(self.decision(points), self.w) / (self.w @ self.w)

    @property
    def margin(self) -> float:
        """1 / |w|: the distance from the hyperplane to where f = 1."""
        return float(1.0 / np.linalg.norm(self.w))

    @property
    def supporting(self) -> tuple[Hyperplane, Hyperplane]:
        """The two supporting hyperplanes f(x) = -1 and f(x) = +1."""
        return Hyperplane(self.w, self.b + 1.0), Hyperplane(self.w, self.b - 1.0)

    def margins(self, X: ArrayLike, y: ArrayLike, classes: Sequence = (-1, 1)) -> Array:
        """t = y f(x) with y = +1 for ``classes[1]`` and -1 for ``classes[0]``."""
        negative, positive = classes
        labels = np.asarray(y)
        if not np.all((labels == negative) | (labels == positive)):
            raise EmpiriskError(f"y holds labels other than classes={tuple(classes)}; give the two classes in order.")
        return np.where(labels == positive, 1.0, -1.0) * self.decision(X)

    def support(self, X: ArrayLike, y: ArrayLike, classes: Sequence = (-1, 1), tol: float = 1e-6) -> NDArray[np.intp]:
        """Indices of the support vectors: rows on or inside the margin, y f(x) <= 1 + tol."""
        return np.flatnonzero(self.margins(X, y, classes) <= 1.0 + tol)
