"""Gradient boosting: a sum of small trees, each a Newton step on the loss of the sum so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from empirisk import losses, state
from empirisk.contract.arguments import (
    check_count,
    check_flag,
    check_interactions,
    check_monotone,
    check_number,
    check_splitter,
    check_time,
    check_validation,
    count_features,
    weigh_classes,
)
from empirisk.contract.elsewhere import rows_for_trees
from empirisk.contract.inputs import Array, as_numbers, check_weights, class_codes, generator
from empirisk.contract.outputs import CLASSES, as_columns, classes_of_columns, label_columns, like, squared_errors
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.regression import PredictsNumbers
from empirisk.contract.resample import hold_out
from empirisk.contract.transaction import all_or_nothing
from empirisk.contract.warm import WarmStart
from empirisk.errors import EmpiriskError, TooFewRows, Unsuitable
from empirisk.explain.permutation import Importances
from empirisk.linalg.hashes import equal_rows
from empirisk.losses.base import Loss
from empirisk.names import Estimator
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.trees.binned.bins import MAX_BINS, Binning, check_bins
from empirisk.trees.binned.together import TeamGrower
from empirisk.trees.boosted import Boosted, BoostingWork, HeldOutRows, boost
from empirisk.trees.by_loss import ClassesByLoss, counts_of_classes, has_one_label, has_probabilities
from empirisk.trees.objectives import (
    Objective,
    numbers_objective,
    outputs_of,
)
from empirisk.trees.predict import PackedTrees, wrong_outputs
from empirisk.trees.rounds import BoostingPlan, Rounds
from empirisk.trees.table_columns import Columns, read_new, read_training
from empirisk.trees.target_statistics import with_statistics
from empirisk.validation import available_if

MOST_ROWS = 1 << 28  # rows that whole weights may count
MOST_IN_SETS = 16  # categories of a column of which trees choose sets; beyond, mean targets tell less of chance
STOPPED_SHARE = 0.4  # of max_time for the fit that finds when to stop, where one on all rows follows


@dataclass(frozen=True)
class Fitted:
    """Rows that a fit looks at: ``target`` holds numbers or class numbers.

    ``times`` are the weights as they were given, without those of the classes: whole numbers count rows.
    """

    X: Array
    target: NDArray
    weights: Array
    times: Array

    def some(self, chosen: NDArray) -> Fitted:
        """Some of them, by a mask or by places."""
        return Fitted(self.X[chosen], self.target[chosen], self.weights[chosen], self.times[chosen])

    def heavy(self) -> Fitted:
        """Those of positive weight."""
        return self if (self.weights > 0).all() else self.some(self.weights > 0)

    def joined(self, others: Fitted) -> Fitted:
        """These rows and others."""
        pairs = ((getattr(self, name), getattr(others, name)) for name in ("X", "target", "weights", "times"))
        return Fitted(*(np.concatenate(pair) for pair in pairs))


@dataclass(eq=False, repr=False)
class BoostingParameters:
    """The parameters that the two boosting machines share."""

    loss: str | Loss = "logistic"
    _: KW_ONLY
    learning_rate: float = 0.1
    n_estimators: int = 100
    splitter: str = "best"
    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: float | None = None
    min_impurity_decrease: float = 0.0
    l2_regularization: float = 0.01
    subsample: float = 1.0
    max_features: int | float | str | None = None
    max_bins: int = MAX_BINS
    categorical_features: Any = "auto"
    target_encoding: bool | str = "auto"
    monotonic_cst: Any = None
    interaction_cst: Any = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    refit: bool = False
    leaves: str = "constant"
    max_time: float | None = None
    warm_start: bool = False
    random_state: Any = None


class Boosting(BoostingParameters, PackedTrees, CallbackSupportMixin, Importances, Estimator, ABC):
    """What the two boosting machines share; see `BoostingClassifier` and `BoostingRegressor`."""

    _state = state.State(
        lambda its: wrong_outputs(its["packed_"], 1, its["n_estimators_"] * len(its["baseline_"])),
        baseline_=state.array("f8", "outputs"),
        history_=state.mapping(state.array("f", None, finite=False)),
        stopped_=state.text(),
        # Files of before 0.2 have none.
        feature_importances_=state.optional(state.array("f8", "columns")),
    )

    #: Whether tables in files that are larger than memory are taken as X, and rows that are not even bins in memory.
    learns_in_blocks = learns_in_passes = True

    columns_: Columns
    baseline_: Array
    feature_importances_: Array
    n_estimators_: int

    @abstractmethod
    def _objective(self, target: NDArray, weights: Array) -> Objective:
        """The loss on rows with these targets: numbers, or class numbers."""

    # --- fitting ----------------------------------------------------------------------------------------------------

    def bytes_of_row(self, width: int) -> int:
        """What a row in files takes in memory: its bins twice, gradient, curvature, score, target, weight, buffers."""
        return 2 * width + 64

    def bytes_beside_bins(self, width: int) -> int:
        """The same where the bins are in a file: those of the columns of a round are copied where these are few."""
        drawn = count_features(self.max_features, width)
        return self.bytes_of_row(0) + (drawn if drawn < width else 0)

    def learns_from_bins(self, rows: int, width: int) -> bool:
        """Whether the bins of rows in files are enough."""
        if TeamGrower.shares(rows, width) <= 1:
            return False
        if self.leaves != "constant":
            raise Unsuitable(
                f"leaves={self.leaves!r} looks at the values of rows, which must be in memory; set leaves='constant', "
                "or raise er.config(memory=...)."
            )
        if self.early_stopping or self.subsample < 1:
            raise Unsuitable(
                f"early_stopping and subsample of {type(self).__name__} draw rows, which must be in memory; set "
                "early_stopping=False and subsample=1, or raise er.config(memory=...)."
            )
        return True

    def _plan(self, n_features: int) -> BoostingPlan:
        check_count("n_estimators", self.n_estimators)
        check_count("n_iter_no_change", self.n_iter_no_change)
        check_bins(self.max_bins)
        check_time(self.max_time)
        check_flag("early_stopping", self.early_stopping)
        check_flag("refit", self.refit)
        if self.refit and not self.early_stopping:
            raise EmpiriskError(
                "refit=True learns all rows once early stopping has said how long; set early_stopping=True."
            )
        leaf = self.min_samples_leaf
        return BoostingPlan(
            learning_rate=check_number("learning_rate", self.learning_rate, 0, above=True),
            max_leaf_nodes=check_count("max_leaf_nodes", self.max_leaf_nodes, 2, optional=True),
            max_depth=check_count("max_depth", self.max_depth, 1, optional=True),
            min_samples_leaf=None if leaf is None else check_number("min_samples_leaf", leaf, 0),
            min_impurity_decrease=check_number("min_impurity_decrease", self.min_impurity_decrease, 0),
            l2=check_number("l2_regularization", self.l2_regularization, 0),
            subsample=check_number("subsample", self.subsample, 0, 1, above=True),
            max_features=count_features(self.max_features, n_features),
            monotone=check_monotone(self.monotonic_cst, self.columns_.names, self.columns_.counts > 0),
            groups=check_interactions(self.interaction_cst, self.columns_.names),
            numeric=self.columns_.counts == 0,
            random_cuts=check_splitter(self.splitter),
        )

    def _held(self, member: NDArray[np.intp], target: NDArray, random: np.random.Generator) -> NDArray[np.bool_]:
        """Which rows are held out for early stopping; equal rows stay together, classes keep their shares."""
        fraction = check_validation(self.validation_fraction)
        if member.max() < 1:
            raise TooFewRows(
                "early_stopping=True needs two different rows, one to train and one to validate on, but X and y hold "
                "one sample only; set early_stopping=False."
            )
        return hold_out(member, target, fraction, random)

    @abstractmethod
    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray]:
        """The predictions after each round."""

    @abstractmethod
    def _errors(self, said: NDArray, target: NDArray) -> NDArray:
        """The error of every row, or of every row and output."""

    @abstractmethod
    def _target(self, y: Any) -> NDArray:
        """Targets of rows beside those of training: numbers, or class numbers."""

    def _judges(self, X_val: Any, y_val: Any, sample_weight_val: Any, factors: Array) -> Fitted | None:
        """The rows to stop by, where they were given; ``factors`` are those of the classes, if there are any."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise EmpiriskError("X_val and y_val belong together: give both, or none of them.")
        if not self.early_stopping:
            raise EmpiriskError("X_val and y_val are rows to stop by; set early_stopping=True, or leave them out.")
        rows, target = read_new(self, X_val), self._target(y_val)
        check_consistent_length(rows, target)
        weights = check_weights(sample_weight_val, len(rows))
        return Fitted(rows, target, weights * factors[target] if len(factors) else weights, weights).heavy()

    def _beside(self, target: NDArray, weights: Array, outputs: int) -> Objective:
        """The loss on rows beside those of training, which must have as many outputs."""
        objective = self._objective(target, weights)
        if objective.n_outputs != outputs:
            raise EmpiriskError(f"y has {objective.n_outputs} outputs, where the fit had {outputs}.")
        return objective

    def _fit(self, train: Fitted, judges: Fitted | None, watch_data: dict[str, Any]) -> None:
        """Boost on rows of positive weight; ``watch_data`` is what callbacks may ask for."""
        plan, warm = self._plan(train.X.shape[1]), WarmStart[BoostingWork](self, watch_data)
        with interruptible():
            deadline = Deadline(self.max_time)
            work = warm.work or self._begin(train, judges, plan, self.early_stopping)

            def on_all_rows() -> BoostingWork:
                return self._begin(train if judges is None else train.joined(judges), None, plan, False)

            warm.keep(work, self._boost(work, deadline, watch_data, on_all_rows if self.refit else None))

    def _begin(self, rows: Fitted, judges: Fitted | None, plan: BoostingPlan, stops: bool) -> BoostingWork:
        """The rounds before the first, and where it ``stops`` early the rows held out: those given, or some of all."""
        random = generator(self.random_state)
        draws, small = stops or plan.subsample < 1 or self.leaves == "auto", TeamGrower.shares(*rows.X.shape) <= 1
        member = equal_rows(rows.X, rows.target)[1] if draws or small else np.arange(len(rows.X))
        if small:  # where weights differ by many orders of magnitude, the rounding of sums decides: not by their order
            order = np.lexsort((rows.weights, member))
            rows, member = rows.some(order), member[order]
        if stops and judges is None:
            held = self._held(member, rows.target, random)
            judges, rows, member = rows.some(held), rows.some(~held), member[~held]
        objective = self._objective(rows.target, rows.weights)
        plan = replace(plan, leaves=self._leaves(objective, plan))
        X, counts, statistics = rows.X, self.columns_.counts, None
        encoded = self._encoded(counts)
        if len(encoded):
            member = member if draws or small else equal_rows(X, rows.target)[1]
            X, statistics = with_statistics(X, objective, member, counts, encoded)
            counts, plan = statistics.grown_counts, plan.of_columns(statistics.sources)
        binning = Binning.of(X, rows.weights, counts, self.max_bins)
        groups = np.unique(member, return_inverse=True)[1] if draws else member
        rounds = Rounds(X, binning, objective, _counts(rows.times), plan, groups, random)
        if judges is None:
            return BoostingWork(rounds, statistics=statistics)
        scores = np.repeat(rounds.baseline[:, None], len(judges.X), axis=1)
        held_out = HeldOutRows(judges.X, self._beside(judges.target, judges.weights, objective.n_outputs), scores)
        learned, kept_out = float(rows.weights.sum()), float(judges.weights.sum())
        return BoostingWork(rounds, held_out, learned / (learned + kept_out), statistics)

    def _leaves(self, objective: Objective, plan: BoostingPlan) -> str:
        """What leaves hold: constants alone where "auto" has no choice."""
        kinds = ("constant", "linear", "auto")
        if self.leaves not in kinds:
            raise EmpiriskError(f"leaves={self.leaves!r} is not known; use 'constant', 'linear' or 'auto'.")
        if self.leaves == "constant" or (objective.renewal is None and not plan.monotone.any()):
            return self.leaves
        if self.leaves == "auto":
            return "constant"
        if plan.monotone.any():
            raise Unsuitable("leaves='linear' keeps no monotonic_cst; use leaves='constant', or leave it out.")
        raise Unsuitable(
            f"leaves='linear' takes Newton steps, and leaves of loss={self.loss!r} are its best constants; use "
            "leaves='constant', or another loss."
        )

    def _encoded(self, counts: NDArray[np.int32]) -> NDArray[np.intp]:
        """The columns of categories that trees look at by their mean targets."""
        if self.target_encoding == "auto":
            return np.flatnonzero(counts > MOST_IN_SETS)
        check_flag("target_encoding", self.target_encoding)
        return np.flatnonzero(counts) if self.target_encoding else np.zeros(0, dtype=np.intp)

    def _boost(
        self,
        work: BoostingWork,
        deadline: Deadline,
        watch_data: dict[str, Any],
        on_all_rows: Callable[[], BoostingWork] | None = None,
    ) -> bool:
        """Add rounds, and keep what they have found; whether all were added."""
        watch = FitCallbacks(self, None if on_all_rows else self.n_estimators, watch_data)
        first = deadline if on_all_rows is None or self.max_time is None else Deadline(STOPPED_SHARE * self.max_time)
        work.rounds.stop = first
        model = boost(work, self.n_estimators, self.n_iter_no_change, first, watch)
        complete = model.reason == Ending.FINISHED and len(model.rounds) == self.n_estimators
        if on_all_rows is not None and model.reason not in (Ending.INTERRUPTED, Ending.CALLBACK):
            model = self._replay(model, work.share, on_all_rows(), deadline, watch)
        self.__dict__.update(model.fitted())
        watch.close()
        warn_if_unfinished(self, model.reason, f"{self.n_estimators_} of {self.n_estimators} rounds")
        return complete

    def _replay(
        self, stopped: Boosted, share: float, work: BoostingWork, deadline: Deadline, watch: FitCallbacks
    ) -> Boosted:
        """Boost on all rows for as many rounds as they are worth, where a share of them was worth those of ``stopped``.

        More rows bear more rounds, in proportion. Cut by the time before it has the rounds of the machine that was
        stopped, that one stays.
        """
        work.rounds.stop = deadline
        wanted = min(self.n_estimators, round(len(stopped.rounds) / share))
        model = boost(work, wanted, self.n_iter_no_change, deadline, watch)
        if len(model.rounds) < len(stopped.rounds):
            stopped.reason = model.reason
            return stopped
        model.history["validation_loss"] = stopped.history["validation_loss"]
        model.reason = stopped.reason if model.reason == Ending.FINISHED else model.reason
        return model

    @property
    def n_iter_(self) -> int:
        """``n_estimators_``, by the name that scikit-learn has for rounds."""
        check_is_fitted(self)
        return self.n_estimators_

    # --- predicting -------------------------------------------------------------------------------------------------

    def _scores(self, X: ArrayLike) -> Array:
        """baseline + sum of trees, (n_rows, n_outputs)."""
        check_is_fitted(self)
        X = read_new(self, X)
        return self._ensemble(len(self.baseline_)).add(X, np.tile(self.baseline_, (len(X), 1)))

    def _staged_scores(self, X: ArrayLike) -> Iterator[Array]:
        check_is_fitted(self)
        X = read_new(self, X)
        outputs = len(self.baseline_)
        ensemble = self._ensemble(outputs)
        scores = np.tile(self.baseline_, (len(X), 1))
        for round_ in range(self.n_estimators_):
            ensemble.add(X, scores, round_ * outputs, (round_ + 1) * outputs)
            yield scores.copy()

    def staged_errors(self, X: ArrayLike, y: ArrayLike) -> Array:
        """The error after each round: share of wrong classes, or mean squared error; of several outputs the mean."""
        target = self._target(y)
        return np.array([float(np.mean(self._errors(said, target))) for said in self.staged_predict(X)])

    def staged_losses(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """The mean loss of rows after each round, of several outputs the sum over them.

        Parameters
        ----------
        X, y, sample_weight
            Rows, their targets and their weights.
        """
        scores, target = self._staged_scores(X), self._target(y)
        objective = self._beside(target, check_weights(sample_weight, len(target)), len(self.baseline_))
        return np.array([objective.value(slice(None), np.ascontiguousarray(each.T)) for each in scores])


def _counts(weights: Array) -> NDArray[np.int32]:
    """For how many equal rows each row stands, where the weights are whole; nothing where each stands for itself."""
    whole = len(weights) < weights.sum() < MOST_ROWS and bool((weights == np.rint(weights)).all())
    return weights.astype(np.int32) if whole else np.zeros(0, dtype=np.int32)


@dataclass(eq=False, repr=False)
class BoostingClassifier(ClassesByLoss, Boosting):
    """Gradient boosting for classes:  f(x) = baseline + sum of trees.

    Each round grows, on histograms of gradient and curvature, the tree that lowers

        sum_i c_i (g_i f(x_i) + 1/2 h_i f(x_i)^2) + l2_regularization/2 sum of squared leaf values

    and adds ``learning_rate`` times it to f. Two classes: one f, with any loss of the margin. More classes: a tree for
    each class in every round, with the softmax for the logistic loss and one-vs-rest for the others. What a column is
    worth, `importances` says on rows held out.

    Where y has several columns of labels, every round grows the trees of each; early stopping looks at the sum of their
    losses. ``classes_`` and all answers about classes are then lists with one entry for each column.

    Parameters
    ----------
    loss : str or Loss
        "logistic" (with more classes: softmax), "exponential", "soft_hinge", "soft_crammer_singer", "squared_hinge",
        "squared", "hinge", or an object of `empirisk.losses`. Leaves of a loss with corners (the hinge) get its best
        constants.
    learning_rate : float
        Share of each step that is taken.
    n_estimators : int
        Number of rounds.
    splitter : {"best", "random"}
        Whether a node tries all cuts of a column, or one that is drawn at random (extremely randomised trees).
    max_leaf_nodes, max_depth : int or None
        Limits of each tree; trees grow by their best split first.
    min_samples_leaf : float or None
        Least number of rows in a leaf; None is 20, or a twentieth of the rows if that is less. A row of weight 2 counts
        twice. Histograms do not count rows: those of a child are taken to be in proportion to its curvature, which is
        exact for the squared loss.
    min_impurity_decrease : float
        Least decrease of the mean loss by a split.
    l2_regularization : float
        Penalty on leaf values.
    subsample : float
        Share of the rows that each round looks at, drawn at random; equal rows are drawn together.
    max_features : int, float, "sqrt", "log2" or None
        Columns that each tree looks at, drawn at random.
    max_bins : int
        Intervals into which a numeric column is cut, at most 255.
    categorical_features : "auto", list of columns or mask
        Columns that hold categories; "auto" takes the text and category columns of a data frame. Categories that were
        not there in training count as missing.
    target_encoding : bool or "auto"
        Whether trees look at the mean targets of categories rather than choose sets of them: a row sees the means on
        other rows alone, so that a category tells nothing where there is nothing to tell. "auto" does so in columns of
        more than 16 categories. Otherwise the rarest beyond 255 count as missing.
    monotonic_cst : list of -1, 0, 1, or dict by column name
        Columns with which f may only fall (-1) or rise (+1).
    interaction_cst : {"pairwise", "no_interactions"} or list of groups of columns
        Columns, by position or name, that may be split below each other in a tree: f is a sum of functions of one group
        each. Columns in no group are one more group. "no_interactions" makes each column a group of its own,
        "pairwise" each pair; None lets all columns meet. There may be 62 groups.
    class_weight : dict, "balanced" or None
        Factors on the weights of the classes.
    early_stopping : bool
        Whether to hold out a part of the rows, stop when their loss has not fallen for ``n_iter_no_change`` rounds, and
        keep the best number of rounds.
    validation_fraction : float
        The share held out; equal rows stay together, and classes keep their shares.
    n_iter_no_change : int
        Rounds to wait.
    refit : bool
        Whether to learn all rows again once those held out have said when to stop: for as many rounds more as there are
        rows more, at most ``n_estimators``.
    leaves : {"constant", "linear", "auto"}
        What leaves hold: a number, or a linear function of the columns of numbers on their path, by a ridge regression
        on gradient and curvature whose slopes end where the rows of the leaf end; rows that lack one of these columns
        get the constant. "auto" takes in each leaf what lowers the loss of its rows that the slopes were not fitted to,
        in five parts. Machines with slopes have no `nodes_`, and are not exported. Under ``monotonic_cst``, and for
        losses whose leaves are best constants, "linear" is refused and "auto" takes constants.
    max_time : float or None
        Seconds after which the fit ends with the trees that it has.
    warm_start : bool
        Whether `fit` keeps its work, so that the next one on the same rows, with more rounds, adds those alone. The
        machine is the same as without it.
    random_state : int, RandomState or None
        Seed of the draws. The same seed gives the same bits with any number of threads.

    Attributes
    ----------
    classes_ : array
        The classes.
    packed_ : dict of arrays
        The trees, round after round, about 15 bytes a node; `nodes_` unpacks them.
    baseline_ : array
        The constant that f starts from.
    n_estimators_ : int
        Rounds kept.
    feature_importances_ : (n_features,)
        Share of each column in the gain of all splits on the training rows; `importances` on rows held out does not
        favour columns with many values.
    history_ : dict of arrays
        After each round: mean ``loss`` of the training rows (of up to 4 096 of them), ``seconds``, and with early
        stopping ``validation_loss``, which is that before a ``refit``.
    stopped_ : str
        What ended the fit: "finished", "early_stopping", "callback", "max_time" or "interrupted".

    Examples
    --------
    >>> X, y = np.arange(100.0)[:, None], np.repeat(["low", "high"], 50)
    >>> machine = er.BoostingClassifier(n_estimators=20).fit(X, y)
    >>> machine.predict([[3.0], [70.0]])
    array(['low', 'high'], dtype='<U4')
    """

    _state = state.State(
        lambda its: (
            None
            if len(its["baseline_"]) == sum(map(outputs_of, counts_of_classes(its["classes_"])))
            else "baseline_ has not one number for each class"
        ),
        classes_=CLASSES,
    )

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> BoostingClassifier:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n, or n x labels
            Labels of any type.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows to stop by, in place of a part of X, where ``early_stopping=True``. In a pipeline they pass the steps
            before with ``Pipeline(..., transform_input=["X_val"])``.
        """
        found = rows_for_trees(self, X, y, sample_weight)
        if found is None:  # they were learned from where they are
            return self
        X, y, sample_weight = found
        y, several = label_columns(y)
        rows, labels = read_training(self, X, y, self.categorical_features, multi_output=several)
        weights = check_weights(sample_weight, len(labels))
        if several:
            self.classes_, factors = classes_of_columns(labels, weights, self.class_weight), np.ones(len(labels))
            codes = np.column_stack([class_codes(*pair) for pair in zip(labels.T, self.classes_, strict=True)])
        else:
            self.classes_, codes, factors = weigh_classes(labels, weights, self.class_weight)
        first = [] if several else [factors[np.argmax(codes == k)] for k in range(len(self.classes_))]
        judges = self._judges(X_val, y_val, sample_weight_val, np.array(first))
        metadata = {"sample_weight": sample_weight, "X_val": X_val, "y_val": y_val}
        metadata["sample_weight_val"] = sample_weight_val
        train = Fitted(rows, codes, weights * factors, weights).heavy()
        self._fit(train, judges, {"X": X, "y": y, "metadata": metadata})
        return self

    def _target(self, y: Any) -> NDArray:
        y, several = label_columns(y)
        labels = list(np.asarray(y).T) if several else [column_or_1d(y)]
        classes = self.classes_ if isinstance(self.classes_, list) else [self.classes_]
        if len(labels) != len(classes):
            raise EmpiriskError(f"y has {len(labels)} columns of labels, where the fit had {len(classes)}.")
        codes = np.column_stack([class_codes(*pair) for pair in zip(labels, classes, strict=True)])
        if (codes < 0).any():
            raise EmpiriskError("y holds classes that were not in the training data; give rows of known classes.")
        return codes if several else codes[:, 0]

    def _errors(self, said: NDArray, target: NDArray) -> NDArray:
        return self._target(said) != target

    @available_if(has_one_label)
    def staged_decision_function(self, X: ArrayLike) -> Iterator[Array]:
        """What `decision_function` gives after each round."""
        for scores in self._staged_scores(X):
            yield scores[:, 0] if len(self.classes_) == 2 else scores

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray]:
        """The classes after each round."""
        for scores in self._staged_scores(X):
            yield self._winners(scores)

    @available_if(has_probabilities)
    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Any]:
        """The probabilities after each round."""
        for scores in self._staged_scores(X):
            yield self._probabilities(scores)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = self.class_weight is None
        return tags


@dataclass(eq=False, repr=False)
class BoostingRegressor(PredictsNumbers, MultiOutputMixin, Boosting):
    """Gradient boosting for numbers:  f(x) = baseline + sum of trees.

    Each round grows, on histograms of gradient g and curvature h of the loss, the tree that lowers

        sum_i c_i (g_i f(x_i) + 1/2 h_i f(x_i)^2) + l2_regularization/2 sum of squared leaf values

    and adds ``learning_rate`` times it to f. Where y has several columns, every round grows a tree for each; early
    stopping looks at the sum of their losses.

    Parameters
    ----------
    loss : str or Loss
        "squared", "absolute", "quantile", "huber", "poisson", "gamma", "tweedie", "power", "epsilon_insensitive",
        "squared_absolute", or an object of `empirisk.losses`. Leaves of a loss with corners, straight ends or a
        curvature without bound get its best constants: the weighted median of the residuals for the absolute loss. Of
        the deviances ("poisson", "gamma", "tweedie") f is the logarithm of the mean, and `predict` gives the mean.
    learning_rate, n_estimators, splitter, max_leaf_nodes, max_depth, min_samples_leaf, min_impurity_decrease, \
l2_regularization, subsample, max_features, \
max_bins, categorical_features, target_encoding, monotonic_cst, interaction_cst, early_stopping, validation_fraction, \
n_iter_no_change, refit, leaves, max_time, warm_start, random_state
        As for `BoostingClassifier`.

    Attributes
    ----------
    packed_, baseline_, n_estimators_, feature_importances_, history_, stopped_
        As for `BoostingClassifier`.

    Examples
    --------
    >>> X = np.arange(200.0)[:, None]
    >>> machine = er.BoostingRegressor(n_estimators=200).fit(X, np.sqrt(X[:, 0]))
    >>> machine.predict([[100.0]]).round(0)
    array([10.])
    """

    _state = state.State(
        lambda its: None if its.get("_several") or len(its["baseline_"]) == 1 else "baseline_ has several numbers",
        _several=state.optional(state.flag()),  # files of version 0.2 have none
    )

    _several = False

    loss: str | Loss = "squared"

    @with_callbacks
    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> BoostingRegressor:
        """Learn from rows and their numbers.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n, or n x outputs
            Numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows to stop by, in place of a part of X, where ``early_stopping=True``. In a pipeline they pass the steps
            before with ``Pipeline(..., transform_input=["X_val"])``.
        """
        found = rows_for_trees(self, X, y, sample_weight)
        if found is None:  # they were learned from where they are
            return self
        X, y, sample_weight = found
        rows, numbers = read_training(self, X, y, self.categorical_features, multi_output=True, y_numeric=True)
        numbers, self._several = as_numbers(numbers), numbers.ndim == 2
        weights = check_weights(sample_weight, len(numbers))
        judges = self._judges(X_val, y_val, sample_weight_val, np.zeros(0))
        metadata = {"sample_weight": sample_weight, "X_val": X_val, "y_val": y_val}
        metadata["sample_weight_val"] = sample_weight_val
        self._fit(Fitted(rows, numbers, weights, weights).heavy(), judges, {"X": X, "y": y, "metadata": metadata})
        return self

    def _target(self, y: Any) -> NDArray:
        return as_numbers(y)

    def _errors(self, said: NDArray, target: NDArray) -> NDArray:
        return squared_errors(as_columns(said), target)

    def _objective(self, target: Array, weights: Array) -> Objective:
        return numbers_objective(losses.find(self.loss), target, weights)

    def raw_predict(self, X: ArrayLike) -> Array:
        """f(x) of each row, and of each output where y had several columns: the prediction, or the logarithm of it."""
        return like(self._scores(X), self._several)

    def staged_predict(self, X: ArrayLike) -> Iterator[Array]:
        """The predictions after each round."""
        for scores in self._staged_scores(X):
            yield self._respond(like(scores, self._several))
