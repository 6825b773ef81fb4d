"""Machines that are not linear in their parameters: any function f(X, theta) with a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import losses, penalties
from empirisk.certificate import Certificate
from empirisk.contract.arguments import check_count
from empirisk.contract.features import FLOATS
from empirisk.contract.inputs import as_numbers, check_C, check_size, check_weights, class_weights, encode_classes
from empirisk.contract.inputs import generator as generator_of
from empirisk.contract.multiclass import SCHEMES, class_probabilities, read, winners
from empirisk.contract.progress import FitCallbacks
from empirisk.contract.tasks import TaskByLoss, predicts_classes
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.fit import Fit, Limits, summarise
from empirisk.fits.minimise import Minimum, checked_method, descend, warn_unless_minimal
from empirisk.linalg.threads import single_threaded_blas
from empirisk.losses.base import Loss
from empirisk.penalties.base import Penalty
from empirisk.problem import Array, Point
from empirisk.solvers.functions.predictions import Predictions
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.validation import available_if, validate_data

TASKS = ("auto", "classification", "regression")


@dataclass(frozen=True)
class ParametricRisk:
    """R(theta) + sum_i s_i loss(y_i, f(x_i, theta)), and its gradient."""

    loss: Loss
    penalty: Penalty
    y: Array
    scale: Array
    predictions: Any = None

    def value(self, theta: Array) -> float:
        """The objective."""
        f = self.predictions.at(theta.ravel())
        return self.penalty.value(theta.ravel()) + float(self.scale @ self.loss.value(self.y, f))

    def gradient(self, theta: Array) -> Array:
        """By the chain rule: J' times the slopes of the losses."""
        slopes = (self.scale * self.loss.derivative(self.y, self.predictions.at(theta.ravel())).T).T
        pulled = self.predictions.pull(theta.ravel(), slopes)
        return (self.penalty.gradient(theta.ravel()) + pulled).reshape(theta.shape)


def _has_probabilities(machine: Parametric) -> bool:
    if not (predicts_classes(machine) and losses.find(machine.loss).probabilistic):
        raise AttributeError(f"loss={machine.loss!r} implies no probabilities; use loss='logistic' or 'softmax'.")
    return True


@dataclass(eq=False, repr=False)
class Parametric(CallbackSupportMixin, TaskByLoss):
    """A function of one's own with parameters theta, fitted by descent from one or several starts:

        minimise  R(theta)  +  C sum_i c_i loss(y_i, f(x_i, theta)).

    f need not be linear in theta: an ellipse, a rectangle, a sum of exponentials. The problem then is not convex: the
    certificate has no lower bound, and tells how small the gradient became.

    Parameters
    ----------
    function : callable
        f(X, theta): one number for every row of X; for a joint loss, one for each class. The class of a row is the
        second where f >= 0. Where it is written with ``jax.numpy``, JAX differentiates it.
    start : array or callable
        The first theta; or start(columns, random), which draws one for so many columns of X from a NumPy generator.
    loss : str or Loss
        A loss of `empirisk.losses`; with more than two classes a joint loss has one theta for all, and the others have
        one for each class against the rest.
    penalty : str or Penalty
        R, without corners: "none" or "l2".
    C : float
        The scale of the sum of losses.
    task : {"auto", "classification", "regression"}
        "auto" is classification for the losses that know no other task, such as "logistic", and regression else.
    jacobian : callable, "differences" or None
        d f / d theta as a function of X and theta, n x [classes x] the shape of theta; None takes JAX or differences.
    n_init : int
        Starts; the best minimum counts. Further ones are drawn by ``start``, or around it.
    method : str
        As in `minimise`.
    class_weight : None, "balanced" or dict
        Factors on the weights of the classes.
    tol, max_iter, max_time : float, int or None, float or None
        As in `minimise`; the time is that of all starts.
    random_state : int, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    params_ : array
        theta; with one function for each class, one row for each.
    objectives_ : array
        What each start came to; infinite for one that time did not reach.
    classes_ : array
        The classes.
    certificate_, history_, n_iter_, solver_, stopped_
        Of the best start: the objective reached, its course, and why it ended.

    Examples
    --------
    >>> def ellipse(X, theta):
    ...     return 1 - theta[0] * (X[:, 0] - theta[2]) ** 2 - theta[1] * (X[:, 1] - theta[3]) ** 2
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(200, 2))
    >>> y = X[:, 0] ** 2 + 4 * X[:, 1] ** 2 < 1
    >>> machine = er.Parametric(ellipse, [1.0, 1.0, 0.5, 0.5], loss="logistic", penalty="l2").fit(X, y)
    >>> machine.score(X, y) > 0.95
    True
    >>> def decay(X, theta):
    ...     return theta[0] * np.exp(-theta[1] * X[:, 0])
    >>> x = np.linspace(0, 5, 50)
    >>> er.Parametric(decay, [1.0, 1.0]).fit(x[:, None], 3 * np.exp(-0.5 * x)).params_.round(3)
    array([3. , 0.5])
    """

    function: Callable[..., Any]
    start: Any = None
    loss: str | Loss = "squared"
    penalty: str | Penalty = "none"
    C: float = 1.0
    _: KW_ONLY
    task: str = "auto"
    jacobian: Any = None
    n_init: int = 1
    method: str = "auto"
    class_weight: dict[Any, float] | str | None = None
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    random_state: Any = None

    def _task(self) -> str:
        return super()._task() if self.task == "auto" else self.task

    # --- fit --------------------------------------------------------------------------------------------------------

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Parametric:
        """Go down from every start, and keep the lowest minimum.

        Parameters
        ----------
        X : array, n x d
            The rows.
        y : array of n
            Classes, or numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        loss, penalty, C = self._parts()
        numeric = self._task() == "regression"
        rows, labels = validate_data(self, X, y, dtype=FLOATS, y_numeric=numeric)
        check_size("X", rows)
        weights = check_weights(sample_weight, len(rows))
        targets, weights = ([as_numbers(labels)], weights) if numeric else self._code(loss, labels, weights)
        kept = weights > 0
        rows, scale = rows[kept].astype(np.float64), C * weights[kept]
        random = generator_of(self.random_state)
        with interruptible():
            deadline = Deadline(self.max_time)
            watch = FitCallbacks(self, None, {"X": X, "y": y})

            def told(theta: Array, _: float) -> bool:
                watch.begin("iteration")
                return watch.end(lambda: {"params_": theta})

            risks = [ParametricRisk(loss, penalty, target[kept], scale) for target in targets]
            found = [self._minimise(risk, rows, random, deadline, told) for risk in risks]
        self._keep(found)
        watch.close()
        any(warn_unless_minimal(minimum, type(self).__name__) for minimum, _ in found)  # of many classes one will do
        return self

    def _parts(self) -> tuple[Loss, Penalty, float]:
        """The parts as objects that suit each other."""
        if self.task not in TASKS:
            raise EmpiriskError(f"task={self.task!r} is not known; choose one of {list(TASKS)}.")
        loss, penalty = losses.find(self.loss), penalties.find(self.penalty)
        if self._task() not in loss.tasks:
            raise Unsuitable(f"loss={self.loss!r} is not a {self._task()} loss; see task= and loss=.")
        if not loss.convex:
            raise Unsuitable(
                f"loss={self.loss!r} has no slopes to go down; use 'logistic', or selection.HypothesisSearch."
            )
        if not penalty.smooth:
            raise Unsuitable(f"penalty={self.penalty!r} has corners, at which descent stalls; use 'l2' or 'none'.")
        check_count("n_init", self.n_init)
        return loss, penalty, check_C(self.C)

    def _code(self, loss: Loss, y: NDArray, weights: Array) -> tuple[list[Array], Array]:
        """The targets of each function that is learned, and the weights with those of the classes."""
        self.classes_, codes = encode_classes(y, weights, type(self).__name__)
        weights = np.where(codes >= 0, weights, 0.0)
        weights = weights * class_weights(self.class_weight, self.classes_, codes, weights)[codes]
        count = len(self.classes_)
        self.scheme_ = "joint" if loss.joint else "binary" if count == 2 else "one_vs_rest"
        if loss.joint:
            self.codes_ = np.eye(count)
            return [codes.astype(np.float64)], weights
        self.codes_ = SCHEMES[self.scheme_](count, np.random.default_rng(0))
        return [row[codes] for row in self.codes_], weights

    @property
    def _outputs(self) -> int:
        """Numbers that f gives for each row, 0 for one without an axis."""
        return len(self.classes_) if getattr(self, "scheme_", "") == "joint" else 0

    def _minimise(
        self,
        risk: ParametricRisk,
        X: Array,
        random: np.random.Generator,
        deadline: Deadline,
        told: Callable[..., bool],
    ) -> tuple[Minimum, Array]:
        """The lowest minimum of the starts, and what each came to."""
        best: Minimum | None = None
        values = np.full(int(self.n_init), np.inf)
        for number in range(int(self.n_init)):
            if best is not None and deadline():
                break
            start = self._start_at(number, X.shape[1], random)
            here = replace(risk, predictions=Predictions(self.function, X, start, self._outputs, self.jacobian))
            limits = Limits(self.tol, self.max_iter, deadline.left())
            method = checked_method(self.method, start.size)
            found = descend(here.value, start, method, gradient=here.gradient, limits=limits, callback=told)
            values[number] = found.value
            if best is None or found.value < best.value:
                best = found
        assert best is not None
        return best, values

    def _start_at(self, number: int, columns: int, random: np.random.Generator) -> Array:
        """The parameters that a start begins with."""
        if self.start is None:
            raise EmpiriskError("start=None: give the first parameters, or start(columns, random), which draws them.")
        drawn = self.start(columns, random) if callable(self.start) else self.start
        try:
            theta = np.atleast_1d(np.array(drawn, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise EmpiriskError(f"start is no array of numbers: {error}.") from error
        if number == 0 or callable(self.start):
            return theta
        return theta + np.maximum(np.abs(theta), 1.0) * random.normal(size=theta.shape)

    def _keep(self, found: list[tuple[Minimum, Array]]) -> None:
        """Set the fitted attributes."""
        minima = [minimum for minimum, _ in found]
        theta = [np.atleast_1d(minimum.x) for minimum in minima]
        self.params_ = np.array(theta) if getattr(self, "scheme_", "") == "one_vs_rest" else theta[0]
        values = [starts for _, starts in found]
        self.objectives_ = values[0] if len(values) == 1 else np.array(values)
        self.certificate_, self.history_ = summarise([_fit_of(minimum) for minimum in minima])
        self.n_iter_, self.solver_ = self.certificate_.iterations, self.certificate_.solver
        self.stopped_ = self.certificate_.status

    # --- predict ----------------------------------------------------------------------------------------------------

    @single_threaded_blas()
    def _scores(self, X: ArrayLike) -> Array:
        """f(x, theta), n x outputs."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, dtype=FLOATS, reset=False)
        rows = rows.astype(np.float64)
        several = getattr(self, "scheme_", "") == "one_vs_rest"
        found = [
            Predictions(self.function, rows, theta, self._outputs, "differences").at(theta.ravel())
            for theta in (self.params_ if several else [self.params_])
        ]
        return found[0] if self._outputs else np.column_stack(found)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class, or the number f(x, theta), of each row."""
        if self._task() == "regression":
            return self._scores(X)[:, 0]
        return winners(self.decision_function(X), self.classes_)

    @available_if(predicts_classes)
    def decision_function(self, X: ArrayLike) -> Array:
        """f(x, theta): for two classes one number, positive for ``classes_[1]``; else one for each class."""
        scores = self._scores(X)
        return read(self.scheme_, self.codes_, scores, losses.find(self.loss))

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, where the loss implies them."""
        return class_probabilities(losses.find(self.loss), self._scores(X))


def _fit_of(found: Minimum) -> Fit:
    """What is known of a point of a problem that is not convex: its value, and how flat it is there."""
    steepest = float(np.abs(found.gradient).max())
    certificate = Certificate(
        found.value,
        -np.inf,
        np.inf,
        np.inf,
        converged=found.stopped == Ending.CONVERGED,
        status=found.stopped,
        solver=found.method,
        reason=f"not convex, so no lower bound; the gradient is at most {steepest:.1e}",
        iterations=max(found.iterations, 1),
        seconds=found.seconds,
    )
    history = {name: found.history[name].tolist() for name in ("objective", "seconds")}
    return Fit(Point(np.ravel(found.x)), certificate, history)
