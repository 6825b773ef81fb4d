"""A loss on the training rows, as boosting asks for it: gradient, curvature, best constants."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.outputs import as_columns
from empirisk.errors import Unsuitable
from empirisk.linalg.namespace import special
from empirisk.losses.base import Array, Loss

#: From an output, the rows of a leaf and the scores: the constant that, added to the scores, makes the loss least.
Renewal = Callable[[int, NDArray[np.int32], Array], float]

LEAST_PRIOR = 1e-10  # a class without weight starts with this probability, so that its logarithm is finite


class Separable:
    """A loss of one number, once for each output: targets ``y`` of shape (n_outputs, n_rows), labels being -1 and +1.

    Gradient and curvature are those of the loss. Where the loss has corners, or a curvature without bound (a power of
    the residual) or down to zero (straight ends, as of the Huber loss), the curvature says little about the way to the
    minimum: it is replaced by the weight, and the leaves get the best constants of the loss itself (`renewal`).
    Deviances keep their curvature, which tells how much a row has to say, but a Newton step may lead much too far up.
    """

    def __init__(self, loss: Loss, y: Array, weights: Array):
        self.loss, self.targets, self.weights = loss, y, weights
        self.n_outputs, self.logistic = len(y), False
        self._residual = "regression" in loss.tasks
        bounded = bool(np.isfinite(loss.curvature_bound))
        straight = bool(np.isfinite(loss.domain(y[0])).all())
        renews = bool(loss.corners) or (self._residual and (straight or not bounded))
        self.renewal: Renewal | None = self._renew if renews else None
        self._curved = not renews or (loss.smooth and not straight and not loss.steep)
        #: The curvature of a typical row of weight 1.
        self.whole = float(loss.curvature_bound) if bounded and not renews else 1.0

    def start(self) -> Array:
        """The best constant of each output."""
        return np.array([self.loss.best_constant(y, self.weights) for y in self.targets])

    def derivatives(self, rows: slice, scores: Array, gradient: Array, curvature: Array) -> None:
        """Write gradient and curvature of a block of rows; all arrays are (n_outputs, block)."""
        weights = self.weights[rows]
        for k in range(self.n_outputs):
            y = self.targets[k, rows]
            gradient[k] = weights * self.loss.derivative(y, scores[k])
            curvature[k] = weights * self.loss.curvature(y, scores[k]) if self._curved else weights

    def value(self, rows: NDArray | slice, scores: Array) -> float:
        """Weighted mean loss of some rows, summed over the outputs."""
        weights = self.weights[rows]
        each = np.sum([self.loss.value(self.targets[k, rows], scores[k]) for k in range(self.n_outputs)], axis=0)
        return float(weights @ each / weights.sum())

    def _renew(self, output: int, rows: NDArray[np.int32], scores: Array) -> float:
        """The constant that, added to the scores of these rows, makes their loss least."""
        return self.loss.best_shift(self.targets[output, rows], scores[rows], self.weights[rows])


class Canonical:
    """Cross-entropy of class numbers: the gradient is  p - onehot(y),  the curvature  p (1 - p).

    Two classes need one output f with  p = 1 / (1 + e^-f)  (the logistic loss); K > 2 classes have K outputs and the
    softmax. There the curvature is multiplied by K / (K - 1), which makes up for the outputs moving together.
    """

    renewal: Renewal | None = None

    def __init__(self, codes: NDArray, n_classes: int, weights: Array):
        self.weights = weights
        self.n_outputs = 1 if n_classes <= 2 else n_classes
        #: Whether gradient and curvature are those of the logistic loss, which compiled code knows.
        self.logistic = self.n_outputs == 1
        self.targets = np.empty((self.n_outputs, len(codes)))
        for k in range(self.n_outputs):
            self.targets[k] = codes == (1 if n_classes == 2 else k)
        self._factor = n_classes / (n_classes - 1) if n_classes > 2 else 1.0
        self.whole = 0.25 * self._factor

    def start(self) -> Array:
        """Log-odds of the second class, or the logarithm of the share of each class."""
        share = np.maximum(self.targets @ self.weights / self.weights.sum(), LEAST_PRIOR)
        return np.log(share) if self.n_outputs > 1 else np.log(share) - np.log(np.maximum(1 - share, LEAST_PRIOR))

    def derivatives(self, rows: slice, scores: Array, gradient: Array, curvature: Array) -> None:
        """Write gradient and curvature of a block of rows; all arrays are (n_outputs, block)."""
        weights = self.weights[rows]
        p = curvature  # computed in place: this runs once a round on every row
        if self.n_outputs == 1:
            np.negative(scores, out=p)
            with np.errstate(over="ignore"):
                np.exp(p, out=p)
            p += 1.0
            np.divide(1.0, p, out=p)
        else:
            np.subtract(scores, scores.max(axis=0), out=p)
            np.exp(p, out=p)
            p /= p.sum(axis=0)
        np.subtract(p, self.targets[:, rows], out=gradient)
        gradient *= weights
        p -= p * p
        p *= self._factor * weights

    def value(self, rows: NDArray | slice, scores: Array) -> float:
        """Weighted mean loss of some rows."""
        weights, hot = self.weights[rows], self.targets[:, rows]
        if self.n_outputs == 1:
            each = np.logaddexp(0.0, np.where(hot[0] > 0, -scores[0], scores[0]))
        else:
            each = np.logaddexp.reduce(scores, axis=0) - (scores * hot).sum(axis=0)
        return float(weights @ each / weights.sum())


class Joint:
    """A smooth joint loss of class numbers, one output for each class: the diagonal of its curvature.

    As for `Canonical` it is multiplied by K / (K - 1). Where a score is far behind the others the curvature vanishes,
    while the slope does not: it counts as no less than the slope over twice the loss of equal scores, so that no leaf
    moves by more than that in a Newton step.
    """

    renewal: Renewal | None = None
    logistic = False

    def __init__(self, loss: Loss, codes: NDArray, n_classes: int, weights: Array):
        self.loss, self.codes, self.weights, self.n_outputs = loss, codes, weights, n_classes
        self.targets = codes[None, :]  # the same for every output
        self._reach = 2 * float(loss.value(np.zeros(1), np.zeros((1, n_classes)))[0])
        self._factor = n_classes / (n_classes - 1) / loss.softness
        self.whole = 0.25 * self._factor

    def start(self) -> Array:
        """The best constants."""
        return np.asarray(self.loss.best_constant(self.codes, self.weights))

    def derivatives(self, rows: slice, scores: Array, gradient: Array, curvature: Array) -> None:
        """Write gradient and curvature of a block of rows; all arrays are (n_outputs, block)."""
        gradient[:] = self.loss.derivative(self.codes[rows], np.ascontiguousarray(scores.T)).T
        sizes = np.abs(gradient)  # p, and 1 - p of the own class
        curvature[:] = np.maximum(self._factor * sizes * (1 - sizes), sizes / self._reach)
        gradient *= self.weights[rows]
        curvature *= self.weights[rows]

    def value(self, rows: NDArray | slice, scores: Array) -> float:
        """Weighted mean loss of some rows."""
        weights = self.weights[rows]
        return float(weights @ self.loss.value(self.codes[rows], scores.T) / weights.sum())


class SummedObjectives:
    """The sum of the losses of several labels, with the outputs of each after those of the one before."""

    logistic = False

    def __init__(self, parts: "list[Objective]"):
        self.parts, self.weights = parts, parts[0].weights
        ends = np.cumsum([part.n_outputs for part in parts]).tolist()
        self._places = [slice(end - part.n_outputs, end) for part, end in zip(parts, ends, strict=True)]
        self.n_outputs = ends[-1]
        self.targets = np.concatenate(
            [np.broadcast_to(part.targets, (part.n_outputs, len(self.weights))) for part in parts]
        )
        self.whole = max(part.whole for part in parts)
        self.renewal: Renewal | None = self._renew if any(part.renewal for part in parts) else None

    def start(self) -> Array:
        """The best constants of every label."""
        return np.concatenate([part.start() for part in self.parts])

    def derivatives(self, rows: slice, scores: Array, gradient: Array, curvature: Array) -> None:
        """Write gradient and curvature of a block of rows; all arrays are (n_outputs, block)."""
        for part, place in zip(self.parts, self._places, strict=True):
            part.derivatives(rows, scores[place], gradient[place], curvature[place])

    def value(self, rows: NDArray | slice, scores: Array) -> float:
        """Weighted mean loss of some rows, summed over the labels."""
        return sum(part.value(rows, scores[place]) for part, place in zip(self.parts, self._places, strict=True))

    def _renew(self, output: int, rows: NDArray[np.int32], scores: Array) -> float:
        """The constant that, added to the scores of these rows, makes their loss least."""
        number = next(k for k, place in enumerate(self._places) if output < place.stop)
        renewal = self.parts[number].renewal
        return 0.0 if renewal is None else renewal(output - self._places[number].start, rows, scores)


Objective = Separable | Canonical | Joint | SummedObjectives


def classes_objective(loss: Loss, codes: NDArray, n_classes: int, weights: Array) -> Objective:
    """The objective of a classification: cross-entropy, or one-vs-rest with any other loss of the margin."""
    _refuse(loss, "classification")
    if n_classes == 1 or _is_canonical(loss):
        return Canonical(codes, n_classes, weights)  # of one class alone every loss thinks the same
    if loss.joint and not loss.smooth:
        raise Unsuitable(
            f"loss={loss!r} has no curvature that boosting could use; use 'soft_crammer_singer', 'softmax' or "
            "'squared_hinge'."
        )
    if loss.joint and n_classes > 2:
        return Joint(loss, codes, n_classes, weights)
    loss = _for_two(loss)
    hot = codes == 1 if n_classes == 2 else codes == np.arange(n_classes)[:, None]
    return Separable(loss, np.where(np.atleast_2d(hot), 1.0, -1.0), weights)


def outputs_of(n_classes: int) -> int:
    """How many outputs a label has: one for two classes."""
    return n_classes if n_classes > 2 else 1


def labels_objective(loss: Loss, codes: NDArray, counts: list[int], weights: Array) -> Objective:
    """The objective of several labels, from their class numbers (n_rows, n_labels) and their numbers of classes."""
    columns = zip(codes.T, counts, strict=True)
    return SummedObjectives([classes_objective(loss, column, count, weights) for column, count in columns])


def numbers_objective(loss: Loss, y: Array, weights: Array) -> Objective:
    """The objective of a regression, of one output or of one for each column of y."""
    _refuse(loss, "regression")
    loss.check_targets(y)
    return Separable(loss, np.ascontiguousarray(as_columns(y).T), weights)


def _for_two(loss: Loss) -> Loss:
    """The loss of one output that a joint one is for two classes; others are it themselves."""
    return loss.two_class_form or loss


def probabilities(loss: Loss, scores: Array, n_classes: int) -> Array:
    """Class probabilities of scores (n_rows, n_outputs), where the loss implies them."""
    if n_classes == 1:
        return np.ones((len(scores), 1))
    canonical = _is_canonical(loss)
    if scores.shape[1] == 1:
        link = special(scores).expit if canonical else _for_two(loss).link
        return np.column_stack([link(-scores[:, 0]), link(scores[:, 0])])
    if canonical:
        return special(scores).softmax(scores, axis=1)
    p = loss.link(scores)  # of a joint loss they sum to 1
    return p / p.sum(axis=1, keepdims=True)


def _is_canonical(loss: Loss) -> bool:
    """Whether the loss is the cross-entropy, for two classes or for more."""
    return "softmax" in (loss.name(), loss.joint_form)


def _refuse(loss: Loss, task: str) -> None:
    if task not in loss.tasks:
        raise Unsuitable(f"loss={loss!r} is not a loss for {task}; see empirisk.losses for those that are.")
    if not loss.convex:
        raise Unsuitable(f"loss={loss!r} has no slope to descend; use 'logistic' or 'exponential'.")
    nothing = task == "classification" and not loss.joint and float(loss.value(np.ones(1), np.zeros(1))[0]) == 0.0
    if nothing:
        raise Unsuitable(f"loss={loss!r} is already least at f = 0, so boosting would stop there; use 'hinge'.")
