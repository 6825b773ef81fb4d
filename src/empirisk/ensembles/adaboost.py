"""AdaBoost: each weak learner is fitted to the rows that those before it got wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from empirisk import state
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.ensemble import ListOfMembers, vote_margins
from empirisk.contract.inputs import Array, check_weights, class_codes, class_weights, generator, sorted_classes
from empirisk.contract.members import check_table, check_target, seeded, take_input_tags
from empirisk.contract.multiclass import elected, untied
from empirisk.contract.outputs import LogProbabilities
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing
from empirisk.contract.warm import WarmStart
from empirisk.errors import EmpiriskError
from empirisk.explain.permutation import Importances
from empirisk.linalg.compiled import plain_loop
from empirisk.names import Estimator
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.trees.exact.describe import SLACK
from empirisk.trees.nodes import Nodes
from empirisk.trees.table_columns import Columns, read_new, read_training, wrong_categories
from empirisk.trees.tree import TreeClassifier


class AnyLearner:
    """A machine of any kind, fitted anew in every round."""

    def __init__(self, machine: Any, X: Any, y: NDArray, classes: NDArray):
        if not has_fit_parameter(machine, "sample_weight"):
            raise EmpiriskError(
                f"estimator={machine!r} does not take sample_weight in fit, which boosting by weights needs; "
                "use a machine that does, or BaggingClassifier."
            )
        self._machine, self._X, self._y, self._classes = machine, X, y, classes

    def fit(self, weights: Array, seed: int) -> tuple[Any, NDArray[np.int64]]:
        """A machine for these weights, and the class numbers that it gives the rows."""
        member = seeded(self._machine, seed).fit(self._X, self._y, sample_weight=weights)
        return member, class_codes(np.asarray(member.predict(self._X)), self._classes)


class TreeLearner:
    """Trees on columns that are sorted once for all rounds.

    ``fitted`` are the attributes that every tree shares: names, columns, classes.
    """

    def __init__(self, machine: TreeClassifier, X: Array, labels: NDArray[np.int64], fitted: dict[str, Any]):
        self._machine, self._X, self._labels, self._fitted = machine, X, labels[:, None].astype(np.float64), fitted
        self._grower = machine.grower(X, fitted["columns_"].counts, reuse=True)

    def fit(self, weights: Array, seed: int) -> tuple[TreeClassifier, NDArray[np.int64]]:
        """A tree for these weights, and the class numbers that it gives the rows."""
        member = clone(self._machine)
        vars(member).update(self._fitted)
        member.nodes_ = member.grow_on(self._grower, self._labels, weights)
        return member, said_by_nodes(member.nodes_, self._X)


@dataclass
class AdaBoostWork:
    """The rounds so far, with the weights and votes that the next one begins from."""

    learner: Learner
    random: np.random.Generator
    weights: Array
    scores: Array
    rounds: list[tuple] = field(default_factory=list)
    bound: float = 1.0


#: What fits a weak machine to the same rows again and again, with other weights.
Learner = AnyLearner | TreeLearner


def said_by_nodes(nodes: Nodes, X: Array) -> NDArray[np.int64]:
    """The class numbers that a tree gives to checked rows; of equal shares as `elected`, but for rounding."""
    largest = nodes.value >= nodes.value.max(axis=1, keepdims=True) - SLACK
    said = largest[:, 1].astype(np.int64) if largest.shape[1] == 2 else largest.argmax(axis=1)
    return said[nodes.predict_leaf(X)[:, 0]]


def shares_columns(machine: Any) -> bool:
    """Whether a learner is a tree that can be grown on columns sorted once: nothing but weights changes its rows."""
    plain = type(machine) is TreeClassifier and machine.max_features is None
    return plain and machine.class_weight is None and machine.ccp_alpha == 0


@plain_loop
def add_votes(scores, said, labels, alpha, weights):
    """Add alpha to the class that each row was given; returns the weight of the rows whose largest vote is wrong."""
    wrong = 0.0
    for row in range(len(labels)):
        scores[row, said[row]] += alpha
        best = 0
        for k in range(1, scores.shape[1]):  # ties as in `empirisk.contract.multiclass.elected`
            if scores[row, k] > scores[row, best] or (scores.shape[1] == 2 and scores[row, k] == scores[row, best]):
                best = k
        if best != labels[row]:
            wrong += weights[row]
    return wrong


def _wrong_members(its: Mapping[str, Any]) -> str | None:
    """What is wrong in loaded members: trees that read the rows without a check need the columns of the whole."""
    if not its["estimators_"]:
        return "estimators_ is empty"
    if not its["_trees"]:
        return None
    if "columns_" not in its or not all(type(member) is TreeClassifier for member in its["estimators_"]):
        return "estimators_ are not the trees that they should be"
    wrong = (wrong_categories(its["columns_"], member.nodes_.category_counts) for member in its["estimators_"])
    return next((found for found in wrong if found), None)


@dataclass(eq=False, repr=False)
class AdaBoostClassifier(
    LogProbabilities, ListOfMembers, CallbackSupportMixin, Importances, ClassifierMixin, Estimator
):
    """A weighted vote of weak classifiers, each fitted to weights that stress the errors so far.

    With D the weights of the rows (summing to one), s = +1 where the learner h is right and -1 where it is wrong, and
    its error  e = D(s = -1),  round t takes

        z = 1 - 2 e,     alpha = 1/2 ln((1 + z) / (1 - z)),     D <- D exp(-alpha s) / Z

    The training error is at most  Z_1 ... Z_T,  which is  prod sqrt(1 - 4 gamma^2) <= exp(-2 sum gamma^2)  with the
    edges  gamma = 1/2 - e.  A learner that is worse than chance has a negative alpha: its answers are turned round.
    One that makes no error outvotes all others, and boosting stops; so it does at one that is as good as chance.

    K > 2 classes (SAMME): alpha = 1/2 ln((1 - e) / e) + 1/2 ln(K - 1), and boosting stops at a learner with
    e >= 1 - 1/K. The bound is  Z_1 ... Z_T  all the same.

    Parameters
    ----------
    estimator : classifier or None
        The weak learner; its ``fit`` must take ``sample_weight``. None takes a stump: ``TreeClassifier`` with
        ``max_depth=1``, at least a thousandth of the weight in a leaf. For trees the columns are sorted once for all
        rounds.
    n_estimators : int
        Most rounds.
    learning_rate : float
        Factor of each alpha.
    class_weight : None, "balanced" or dict
        Factors of the first weights, by class.
    max_time : float or None
        Seconds after which no further round begins.
    warm_start : bool
        Whether `fit` keeps its work, so that the next one on the same rows, with more rounds, adds those alone. The
        machine is the same as without it.
    random_state : int, RandomState or None
        Decides the learners' own random states.

    Attributes
    ----------
    estimators_ : list
        The learners.
    alphas_ : (T,)
        Their weights in the vote.
    edges_ : (T,)
        gamma = 1/2 - e of each, by the weights of its round.
    training_errors_ : (T,)
        Error of the vote on the training rows after each round.
    bound_ : (T,)
        What that error cannot exceed.
    stopped_ : str
        Why boosting ended: "finished", "perfect_learner", "no_edge", "callback", "interrupted" or "max_time".
    classes_ : array
        The classes, sorted.
    feature_importances_ : (n_features,)
        Mean of the learners' own importances by abs(alpha), where they have them, as trees do.

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> y = (X[:, 0] > 3) & (X[:, 0] < 9)
    >>> boost = er.AdaBoostClassifier(n_estimators=10).fit(X, y)
    >>> bool((boost.training_errors_ <= boost.bound_).all()), boost.score(X, y)
    (True, 1.0)
    """

    _state = state.State(
        _wrong_members,
        estimator=state.maybe(state.part(has="fit", fitted=False)),
        n_features_in_=state.size("columns"),
        columns_=state.optional(state.part(Columns, columns="columns")),
        _trees=state.flag(),
        classes_=state.labels("classes"),
        stopped_=state.text(),
        estimators_=state.several(state.part(has="predict", columns="columns", classes="classes"), "members"),
        alphas_=state.array("f8", "members"),
        edges_=state.array("f8", "members", finite=False),
        training_errors_=state.array("f8", "members", finite=False),
        bound_=state.array("f8", "members", finite=False),
    )

    estimator: Any = None
    n_estimators: int = 100
    _: KW_ONLY
    learning_rate: float = 1.0
    class_weight: dict[Any, float] | str | None = None
    max_time: float | None = None
    warm_start: bool = False
    random_state: Any = None

    # --- fitting ----------------------------------------------------------------------------------------------------

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AdaBoostClassifier:
        """Fit the learners, round by round."""
        check_count("n_estimators", self.n_estimators)
        check_number("learning_rate", self.learning_rate, 0, above=True)
        check_time(self.max_time)
        machine = self._machine()
        self._trees = shares_columns(machine)
        if self._trees:
            table, target = read_training(self, X, y, machine.categorical_features)
        else:
            table, target = check_table(self, X, reset=True), check_target(self, y)
            check_consistent_length(table, target)
        weights = check_weights(sample_weight, len(target))
        self.classes_ = sorted_classes(target, weights)
        labels = class_codes(target, self.classes_)
        factors = class_weights(self.class_weight, self.classes_, labels, weights)
        weights = weights * np.where(labels < 0, 0.0, factors[labels])
        used = np.flatnonzero(weights)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        warm = WarmStart[AdaBoostWork](self, data)
        work = warm.work or AdaBoostWork(
            self._learner(machine, _safe_indexing(table, used), labels[used]),
            generator(self.random_state),
            weights[used].copy(),
            np.zeros((len(used), len(self.classes_))),
        )
        watch = FitCallbacks(self, self.n_estimators, data)
        with interruptible():
            deadline = Deadline(self.max_time)
            self._boost(work, labels[used], weights[used], watch, deadline)
        warm.keep(work, self.stopped_ == Ending.FINISHED)
        watch.close()
        warn_if_unfinished(self, deadline.reason, f"{len(self.estimators_)} of {self.n_estimators} rounds")
        return self

    def _learner(self, machine: Any, X: Any, labels: NDArray[np.int64]) -> Learner:
        if not self._trees:
            return AnyLearner(machine, X, self.classes_[labels], self.classes_)
        shared = ("n_features_in_", "feature_names_in_", "columns_", "classes_")
        return TreeLearner(machine, X, labels, {name: vars(self)[name] for name in shared if name in vars(self)})

    def _boost(
        self, work: AdaBoostWork, labels: NDArray[np.int64], first: Array, watch: FitCallbacks, deadline: Deadline
    ) -> None:
        """The rounds, on rows of positive weight."""
        rounds, weights, total = work.rounds, work.weights, float(first.sum())
        self.stopped_ = Ending.FINISHED
        while len(rounds) < self.n_estimators and self.stopped_ == Ending.FINISHED:
            watch.begin("round")
            member, said = work.learner.fit(weights, int(work.random.integers(2**31)))
            right = said == labels
            error = float(np.sum(weights, where=~right) / weights.sum())
            alpha, self.stopped_ = self._alpha(error, right, [row[1] for row in rounds])
            if rounds and self.stopped_ == Ending.NO_EDGE:
                watch.end()
                break
            wrong = add_votes(work.scores, said, labels, alpha, first)
            weights *= np.where(right, np.exp(-alpha), np.exp(alpha))
            work.bound *= 0.0 if self.stopped_ == Ending.PERFECT_LEARNER else float(weights.sum()) / total
            weights *= total / weights.sum()
            rounds.append((member, alpha, 0.5 - error, wrong / total, work.bound))
            if watch.end(lambda: self._fitted(rounds)) and self.stopped_ == Ending.FINISHED:
                self.stopped_ = Ending.CALLBACK
            if self.stopped_ == Ending.FINISHED and len(rounds) < self.n_estimators and deadline():
                self.stopped_ = deadline.reason
        self.__dict__.update(self._fitted(rounds))

    def _alpha(self, error: float, right: NDArray[np.bool_], before: list[float]) -> tuple[float, str]:
        """The weight of a learner in the vote, and why boosting should end with it, if it should."""
        classes = len(self.classes_)
        outvotes = 1.0 + float(np.abs(before).sum())  # stands for infinity
        if right.all():
            return outvotes, Ending.PERFECT_LEARNER
        if classes == 2 and not right.any():
            return -outvotes, Ending.PERFECT_LEARNER
        if (classes == 2 and abs(error - 0.5) <= SLACK) or (classes > 2 and error >= 1 - 1 / classes - SLACK):
            return 0.0 if classes == 2 else 1.0, Ending.NO_EDGE
        # Rows of next to no weight are an error of zero but for rounding, or all but one.
        odds = max(1 - error, np.finfo(float).eps) / max(error, np.finfo(float).tiny)
        return self.learning_rate * 0.5 * (np.log(odds) + np.log(classes - 1)), Ending.FINISHED

    def _fitted(self, rounds: list[tuple]) -> dict[str, Any]:
        """The attributes of the model after these rounds."""
        members, alphas, edges, errors, bounds = zip(*rounds, strict=True)
        arrays = {"alphas_": alphas, "edges_": edges, "training_errors_": errors, "bound_": bounds}
        return {"estimators_": list(members)} | {name: np.array(values) for name, values in arrays.items()}

    def _machine(self) -> Any:
        # A leaf with less than a thousandth of the weight gives no edge worth having.
        stump = TreeClassifier(max_depth=1, min_weight_fraction_leaf=1e-3)
        return stump if self.estimator is None else self.estimator

    @property
    def estimator_weights_(self) -> Array:
        """``alphas_``, by scikit-learn's name."""
        check_is_fitted(self)
        return self.alphas_

    @property
    def estimator_errors_(self) -> Array:
        """The weighted error of each learner on the weights that it was fitted to: 1/2 less its edge."""
        check_is_fitted(self)
        return 0.5 - self.edges_

    @property
    def feature_importances_(self) -> Array:
        """Mean of the learners' own importances of the columns, by the weights abs(alpha) of the vote."""
        check_is_fitted(self)
        own = np.array([member.feature_importances_ for member in self.estimators_])
        say = np.abs(self.alphas_)
        return say @ own / say.sum() if say.any() else own.mean(axis=0)

    # --- predicting -------------------------------------------------------------------------------------------------

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        """Votes for each class after each round; the same array every time."""
        check_is_fitted(self)
        table = read_new(self, X) if self._trees else check_table(self, X, reset=False)
        rows = np.arange(len(table) if self._trees else table.shape[0])
        scores = np.zeros((len(rows), len(self.classes_)))
        for member, alpha in zip(self.estimators_, self.alphas_, strict=True):
            if self._trees:
                said = said_by_nodes(member.nodes_, table)
            else:
                said = class_codes(np.asarray(member.predict(table)), self.classes_)
            scores[rows, said] += alpha
            yield scores

    def _scores(self, X: Any) -> Array:
        *_, scores = self._staged_scores(X)
        return scores

    def decision_function(self, X: Any) -> Array:
        """f(x) = sum of alpha over the learners that say the second class, minus those that say the first.

        For several classes, the sum of alpha over the learners that say each class.
        """
        return self._decision(self._scores(X))

    def _decision(self, scores: Array) -> Array:
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores.copy()

    def predict_proba(self, X: Any) -> Array:
        """What the exponential loss implies: P(k | x) is proportional to exp(2 * votes for k)."""
        return self._probabilities(self._scores(X))

    def _probabilities(self, scores: Array) -> Array:
        shares = np.exp(2 * (scores - scores.max(axis=1, keepdims=True)))
        return untied(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest vote; of two classes with as much the second."""
        return elected(self._scores(X), self.classes_)

    def staged_predict(self, X: Any) -> Iterator[NDArray]:
        """The prediction after each round."""
        for scores in self._staged_scores(X):
            yield elected(scores, self.classes_)

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """What `decision_function` gives after each round."""
        for scores in self._staged_scores(X):
            yield self._decision(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities after each round."""
        for scores in self._staged_scores(X):
            yield self._probabilities(scores)

    def staged_score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """The accuracy after each round."""
        for said in self.staged_predict(X):
            yield float(accuracy_score(y, said, sample_weight=sample_weight))

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """How clear the vote for the right class is: from -1 to 1, negative where it is lost.

        (votes for y - most votes for another class) / sum of abs(alpha); y f(x) / sum of abs(alpha) for two classes.
        """
        scores = self._scores(X)
        labels = class_codes(column_or_1d(y), self.classes_)
        check_consistent_length(scores, labels)
        if (labels < 0).any():
            raise EmpiriskError("y holds classes that were not in the training data; margins need known classes.")
        return vote_margins(scores, labels) / max(np.abs(self.alphas_).sum(), np.finfo(np.float64).tiny)

    def __sklearn_tags__(self):
        return take_input_tags(super().__sklearn_tags__(), "estimator", self._machine())
