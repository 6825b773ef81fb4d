"""Random search in a class of hypotheses: draw many, keep the one with the least empirical risk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from empirisk import losses
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.features import FLOATS
from empirisk.contract.inputs import Array, as_numbers, check_weights, encode_classes, generator
from empirisk.contract.multiclass import winners
from empirisk.contract.tasks import TaskByLoss, predicts_classes
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.losses.base import Loss
from empirisk.machines.parametric import Parametric
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.theory.pac import finite_class_bound
from empirisk.validation import available_if, validate_data

Hypothesis = Callable[[Any], Any]
#: How scikit-learn says it, too.
BINARY = "Only binary classification is supported. The type of the target is multiclass, and"


@dataclass(eq=False, repr=False)
class HypothesisSearch(TaskByLoss):
    """Draw hypotheses at random, and keep the one with the least empirical risk, mean loss(y_i, h(x_i)).

    The simplest learner there is: no gradient, and any loss, the number of errors included. Since the hypotheses are
    drawn before the data are looked at, the bound of a finite class holds for the best of them.

    Parameters
    ----------
    draw : callable or Parametric
        draw(columns, random) gives a hypothesis: a function of X with one number for each row, of which the class is
        the second where it is >= 0; with more than two classes, a number for each class. A `Parametric` whose ``start``
        is a function draws the parameters of its own function.
    loss : str or Loss
        "zero_one" counts errors; or another loss of `empirisk.losses`.
    n_draws : int
        Hypotheses to draw; fewer, if one has no risk at all.
    delta : float
        The probability with which the bound may fail.
    max_time : float or None
        Limit of seconds.
    random_state : int, RandomState or None
        Seed of the hypotheses.

    Attributes
    ----------
    hypothesis_ : callable
        The best one.
    risk_ : float
        Its empirical risk.
    bound_ : Bound or None
        A bound on its true error by `theory.finite_class_bound`, with as many hypotheses as were to be drawn; None for
        other losses than "zero_one", and with sample weights.
    history_ : dict of arrays
        "risk" of each hypothesis, and "objective", the least so far.
    n_iter_, stopped_ : int, str
        Hypotheses drawn, and why the search ended.
    classes_ : array
        The classes.

    Examples
    --------
    >>> def circle(columns, random):
    ...     centre, radius = random.uniform(size=columns), random.uniform()
    ...     return lambda X: radius**2 - ((X - centre) ** 2).sum(axis=1)
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = np.abs(X - 0.5).max(axis=1) < 0.3
    >>> search = er.selection.HypothesisSearch(circle, n_draws=300, random_state=0).fit(X, y)
    >>> search.risk_ < 0.15 < search.bound_.value < 0.35
    True
    """

    draw: Any
    loss: str | Loss = "zero_one"
    _: KW_ONLY
    n_draws: int = 1000
    delta: float = 0.05
    max_time: float | None = None
    random_state: Any = None

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> HypothesisSearch:
        """Draw hypotheses and compare their risks.

        Parameters
        ----------
        X : array, n x d
            The rows.
        y : array of n
            Classes, or numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        loss = losses.find(self.loss)
        check_count("n_draws", self.n_draws)
        check_number("delta", self.delta, 0.0, 1.0, above=True)
        check_time(self.max_time)
        numeric = self._task() == "regression"
        rows, labels = validate_data(self, X, y, dtype=FLOATS, y_numeric=numeric)
        weights = check_weights(sample_weight, len(rows))
        target = as_numbers(labels) if numeric else self._encoded(loss, labels, weights)
        risks = self._search(rows, loss, target, weights)
        self.history_ = {"risk": risks, "objective": np.minimum.accumulate(risks)}
        self.n_iter_ = len(risks)
        counted = not numeric and not loss.convex and sample_weight is None
        self.bound_ = finite_class_bound(self.n_draws, len(rows), self.delta, self.risk_) if counted else None
        return self

    def _encoded(self, loss: Loss, y: NDArray, weights: Array) -> Array:
        """Labels as -1 and +1, or as numbers of several classes."""
        self.classes_, codes = encode_classes(y, weights, type(self).__name__)
        if len(self.classes_) > 2 and loss.convex and not loss.joint:
            raise Unsuitable(
                f"{BINARY} loss={self.loss!r} tells two apart; use 'zero_one', or a joint loss such as 'softmax'."
            )
        several = len(self.classes_) > 2 or loss.joint
        return np.where(codes < 0, 0, codes).astype(np.float64) if several else np.where(codes == 1, 1.0, -1.0)

    def _search(self, X: Array, loss: Loss, y: Array, weights: Array) -> Array:
        """The risk of each hypothesis, until one has none; the best is kept, of equal ones the first.

        Risks that differ by the rounding of a sum are equal: else the order of the rows would choose between them.
        """
        draw, random = _sampler(self.draw), generator(self.random_state)
        risks: list[float] = []
        total = float(weights.sum())
        clearly = 1 - 2 * len(X) * np.finfo(float).eps
        self.stopped_ = Ending.FINISHED
        with interruptible():
            deadline = Deadline(self.max_time)
            for _ in range(int(self.n_draws)):
                hypothesis = draw(X.shape[1], random)
                risk = float(weights @ self._losses(loss, y, self._numbers(hypothesis, X))) / total
                risk = risk if risk == risk else np.inf
                if not risks or risk < clearly * self.risk_:
                    self.hypothesis_, self.risk_ = hypothesis, risk
                risks.append(risk)
                if risk == 0:
                    self.stopped_ = Ending.CONVERGED
                    break
                if deadline():
                    self.stopped_ = deadline.reason
                    break
        return np.array(risks)

    def _losses(self, loss: Loss, y: Array, f: Array) -> Array:
        """The loss of each row; errors are counted as `predict` makes them."""
        if loss.convex:
            return loss.value(y, f)
        wrong = f.argmax(axis=1) != y if f.ndim == 2 else (f >= 0) != (y > 0)
        return wrong.astype(np.float64)

    def _numbers(self, hypothesis: Hypothesis, X: Array) -> Array:
        """h(X), checked."""
        classes = len(getattr(self, "classes_", ()))
        several = classes > 2 or (classes and losses.find(self.loss).joint)
        wanted = (len(X), classes) if several else (len(X),)
        try:
            found = np.asarray(hypothesis(X), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise EmpiriskError(f"a hypothesis that draw gave cannot be asked for numbers: {error}.") from error
        if several and found.shape == (len(X),):
            raise Unsuitable(f"{BINARY} a hypothesis has one number for each row; give it one for each class.")
        if found.shape != wanted:
            raise EmpiriskError(f"a hypothesis returned an array of shape {found.shape}, where {wanted} is needed.")
        return found

    def _scores(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        rows: Any = validate_data(self, X, dtype=FLOATS, reset=False)
        return self._numbers(self.hypothesis_, rows)

    @available_if(predicts_classes)
    def decision_function(self, X: ArrayLike) -> Array:
        """What the best hypothesis says: positive for ``classes_[1]``, or a number for each class."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class, or the number, of each row by the best hypothesis."""
        if self._task() == "regression":
            return self._scores(X)
        return winners(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        for task in filter(None, (tags.classifier_tags, tags.regressor_tags)):
            task.poor_score = True  # what was drawn may be far from any truth
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False  # with hypotheses that have a number for each class alone
        return tags


def _with_parameters(function: Callable[..., Any], theta: Array, X: Any) -> Any:
    """f(X, theta), as a function of the module so that a search can be pickled."""
    return function(X, theta)


def _sampler(draw: Any) -> Callable[[int, np.random.Generator], Hypothesis]:
    """draw(columns, random), also of a `Parametric`."""
    if isinstance(draw, Parametric):
        if not callable(draw.start):
            raise EmpiriskError("draw is a Parametric whose start is fixed; give start(columns, random), which draws.")
        function, start = draw.function, draw.start

        def hypothesis(columns: int, random: np.random.Generator) -> Hypothesis:
            theta = np.atleast_1d(np.asarray(start(columns, random), dtype=np.float64))
            return partial(_with_parameters, function, theta)

        return hypothesis
    if not callable(draw):
        raise EmpiriskError(f"draw={draw!r} cannot be called; give draw(columns, random), or a Parametric.")
    given: Any = draw
    return given
