"""The equation that a fitted machine claims to have minimised, written out in extended precision.

Nothing here uses the code under test: targets, weights and objectives are taken from the definitions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import empirisk as er
from empirisk import losses, penalties
from empirisk.kernels.base import Kernel
from empirisk.validation import readable
from tests import naive
from tests.fuzz import data

Long = np.longdouble
Point = tuple[np.ndarray, np.ndarray]
#: The C of weights that a radius does not bound: a larger one makes no difference.
LARGEST = 1e30
#: Rounding of a value that is summed from parts of this size.
DIGITS = 1e-9


@dataclass
class Piece:
    """One problem: R(w) + C sum_i c_i loss(y_i, <w, phi_i> + b), and the point that the machine found.

    Behind a kernel ``phi`` is the Gram matrix and w the coefficients, so that |w|^2 is w' phi w.
    """

    loss: Any
    penalty: Any
    C: float
    phi: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    intercept: bool
    classes: int
    gram: bool
    found: Point

    def value(self, point: Point) -> float:
        """The objective at a point, in extended precision."""
        with np.errstate(all="ignore"):
            total = self._size(point) + Long(self.C) * self._loss_sum(point)
        return float(total) if np.isfinite(total) else np.inf

    def size(self, point: Point) -> float:
        """R(w) at a point, in extended precision."""
        with np.errstate(all="ignore"):
            return float(self._size(point))

    def loss_sum(self, point: Point) -> float:
        """sum_i c_i loss(y_i, f(x_i)) at a point, in extended precision."""
        with np.errstate(all="ignore"):
            total = self._loss_sum(point)
        return float(total) if np.isfinite(total) else np.inf

    def _size(self, point: Point) -> Any:
        w = np.asarray(point[0], dtype=Long)
        if self.gram:
            return 0.5 * self.penalty.l2 * np.sum(w * (self.phi.astype(Long) @ w))
        if hasattr(self.penalty, "groups"):
            return self._groups(w)
        if self.penalty.name() == "positive" and np.min(w, initial=0.0) < 0:
            return np.inf
        return self.penalty.l1 * np.abs(w).sum() + 0.5 * self.penalty.l2 * np.sum(w * w)

    def _loss_sum(self, point: Point) -> Any:
        w, b = (np.asarray(part, dtype=Long) for part in point)
        return np.sum(self.weights.astype(Long) * self._losses(self.phi.astype(Long) @ w + b))

    def _groups(self, w: np.ndarray) -> Any:
        """sum_g sqrt(size_g) |w_g|: neighbouring columns, or those of one label, over all classes together."""
        labels = np.asarray(self.penalty.groups)
        labels = np.arange(len(w)) // int(labels) if labels.ndim == 0 else labels
        each = [w[labels == label] for label in np.unique(labels)]
        return sum(np.sqrt(Long(part.size)) * np.sqrt(np.sum(part * part)) for part in each)

    def _losses(self, f: np.ndarray) -> np.ndarray:
        if not self.classes:
            if self.loss.name() in ("logistic", "soft_hinge"):  # without the overflow of exp
                z = (self.loss.margin - self.y * f) / self.loss.temperature
                return self.loss.temperature * np.logaddexp(Long(0), z)
            return self._deviances(f) if self.loss.positive else naive.on_targets(self.loss, self.y, f)
        ahead = f - np.take_along_axis(f, self.y.astype(int)[:, None], axis=1)  # of the own class, by the others
        if self.loss.name() == "softmax":
            top = ahead.max(axis=1)
            return np.log(np.exp(ahead - top[:, None]).sum(axis=1)) + top
        others = np.arange(self.classes) != self.y[:, None]
        if self.loss.name() == "soft_crammer_singer":
            ahead = (ahead + self.loss.margin * others) / self.loss.temperature
            return self.loss.temperature * np.logaddexp.reduce(ahead, axis=1)
        return (ahead + others).max(axis=1)

    def _deviances(self, f: np.ndarray) -> np.ndarray:
        """2 y^a ((exp(a e) - 1) / a + (exp(-c e) - 1) / c) of e = f - log y: in the mean, large y would cancel."""
        a, c = Long(2 - self.loss.power), Long(self.loss.power - 1)
        y = np.where(self.y > 0, self.y, 1).astype(Long)
        e = f - np.log(y)
        up, down = (np.expm1(a * e) / a if a else e), (np.expm1(-c * e) / c if c else -e)
        return 2 * np.where(self.y > 0, y**a * (up + down), np.exp(a * f) / a if a else np.inf)

    def magnitude(self, value: float) -> float:
        """What gaps are measured by: the value, or a millionth of what the best constant costs."""
        constant = self.value(self.constant())
        return max(abs(value), 1e-6 * constant if np.isfinite(constant) else 0.0, 1e-300)

    def constant(self) -> Point:
        """w = 0 and the best b."""
        w = np.zeros((self.phi.shape[1], self.classes) if self.classes else self.phi.shape[1])
        b = self.loss.best_constant(self.y, self.weights) if self.intercept else np.zeros(self.classes or ())
        return w, np.asarray(b)


def pieces(machine: Any, X: Any, y: Any, sample_weight: Any) -> list[Piece] | None:
    """The problems of a fitted machine of the equation; None where its objective is another."""
    if not isinstance(machine, (er.Classifier, er.Regressor)) or isinstance(machine, er.Perceptron):
        return None
    features = getattr(machine, "features_", None)
    if isinstance(features, er.maps.SeveralKernels):
        return None
    gram = isinstance(features, Kernel)
    if gram and features.takes != "vectors":
        return None
    y = np.asarray(y)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    loss, penalty, scale = losses.find(machine.loss), penalties.find(machine.penalty), machine.C_
    loss = losses.find(loss.joint_form or loss) if getattr(machine, "scheme_", "") == "joint" else loss
    constrained = isinstance(machine.C, er.Constraint)
    if not (isinstance(machine.C, str) or constrained) and np.isinf(machine.C) and loss.hard_form is None:
        penalty = penalties.NoPenalty()
    if constrained:
        scale = min(scale, LARGEST)
    elif np.isinf(scale):  # of a hard margin the smallest R and no losses, whatever rows weigh
        loss, scale, weights = losses.find(loss.hard_form), 1.0, (weights > 0).astype(float)
    if gram:
        # Fits take the values of a kernel in double precision, whatever the rows come in.
        rows = X.astype(float) if sparse.issparse(X) else np.asarray(X, dtype=float)
        phi, w = np.asarray(features(rows)), _dual(machine, len(weights))
    else:
        phi = data.plain(X if features is None else features.transform(readable(X))).astype(float)
        w = np.atleast_2d(machine.coef_)
    b = np.atleast_1d(machine.intercept_)
    if isinstance(machine, er.Classifier):
        codes = np.searchsorted(machine.classes_, y).clip(max=len(machine.classes_) - 1)
        weights = np.where(machine.classes_[codes] == y, weights, 0.0)
        if machine.class_weight == "balanced":
            totals = np.bincount(codes, weights, len(machine.classes_))
            weights = weights * (totals.sum() / (len(totals) * totals))[codes]
        if machine.scheme_ == "joint":
            targets, w, b = [codes.astype(float)], [w.T], [b]
        else:
            targets = [row[codes] for row in machine.codes_]
    else:
        targets = list(np.asarray(y, dtype=float).reshape(len(weights), -1).T)
    out = []
    for target, w_k, b_k in zip(targets, w, b, strict=True):
        kept = (weights > 0) & ((target != 0) | (machine.task == "regression") | bool(loss.joint))
        rows = phi[np.ix_(kept, kept)] if gram else phi[kept]
        found = (w_k[kept] if gram else w_k, b_k)
        classes = len(machine.classes_) if loss.joint else 0
        out.append(
            Piece(
                loss,
                penalty,
                scale,
                rows,
                target[kept],
                weights[kept],
                machine.fit_intercept,
                classes,
                gram,
                found,
            )
        )
    return out


def _dual(machine: Any, rows: int) -> np.ndarray:
    """The coefficients of each problem on all rows."""
    dual = np.atleast_2d(machine.dual_coef_)
    out = np.zeros((len(dual), rows))
    out[:, machine.support_] = dual
    return out
