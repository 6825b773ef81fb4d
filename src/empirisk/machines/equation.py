"""The equation as estimators: a classifier and a regressor of any loss, feature map and penalty."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin
from sklearn.callback import with_callbacks

from empirisk import losses, state
from empirisk.contract.arguments import check_flag
from empirisk.contract.elsewhere import blockwise, elsewhere
from empirisk.contract.features import SUPPORT, Features
from empirisk.contract.inputs import (
    as_numbers,
    check_C,
    check_size,
    check_weights,
    class_codes,
    class_weights,
    encode_classes,
    generator,
)
from empirisk.contract.multiclass import (
    LABELS,
    SCHEMES,
    class_probabilities,
    codes_for,
    name_of,
    read,
    scheme_for,
    winners,
)
from empirisk.contract.outputs import in_single_precision, label_columns
from empirisk.contract.regression import PredictsNumbers
from empirisk.contract.transaction import all_or_nothing, continuing
from empirisk.errors import EmpiriskError, OneClass, Unsuitable, listed
from empirisk.fits.constraint import Constraint
from empirisk.fits.fit import Fit, unproven
from empirisk.linalg import blocks
from empirisk.linalg.threads import single_threaded_blas
from empirisk.losses.base import Loss
from empirisk.machines.base import Machine
from empirisk.machines.online import MEMORY, OnlineSteps, Stream, can_go_on, seen, take_steps, wrong_memory
from empirisk.penalties.base import Penalty
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import takes_steps
from empirisk.scale.fitting import problems_of
from empirisk.solvers.base import Watch
from empirisk.stop import REMEDIES, Deadline, Ending, interruptible, warn_of
from empirisk.validation import available_if


def _has_probabilities(machine: Classifier) -> bool:
    """Whether the loss and the multiclass scheme imply class probabilities."""
    loss = losses.find(machine.loss)
    if not loss.probabilistic:
        raise AttributeError(
            f"{loss!r} implies no probabilities; use the logistic loss or scikit-learn's CalibratedClassifierCV."
        )
    if (scheme := name_of(machine.multiclass)) in ("one_vs_one", "error_correcting"):
        raise AttributeError(f"multiclass={scheme!r} gives votes, not probabilities; use 'joint'.")
    return True


def _codes_fit(its: Mapping[str, Any]) -> str | None:
    """What is wrong in the coding matrix of a loaded classifier: how many machines each scheme has."""
    outputs, classes = its["codes_"].shape
    wanted = {"binary": 1, "one_vs_one": classes * (classes - 1) // 2}
    wanted |= dict.fromkeys(("one_vs_rest", "joint", LABELS), classes)
    if outputs != wanted.get(its["scheme_"], outputs) or classes < 2 or (its["scheme_"] == "binary" and classes != 2):
        return "codes_ has not the rows that scheme_ asks for"
    return None


@dataclass(eq=False, repr=False)
class Equation(Machine):
    """The parameters and the fit that classifiers and regressors share."""

    loss: Any
    features: Features = None
    penalty: str | Penalty = "l2"
    C: float | str | Constraint = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    solver: Any = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    random_state: Any = None
    rule: str = "best"
    Cs: int | ArrayLike = 20
    cv: Any = 5
    warm_start: bool = False

    #: Whether tables in files that are larger than memory are taken as X.
    learns_in_blocks = True

    _state = state.State(
        wrong_memory,
        seen_=state.optional(state.array("f8", "problems", 2, low=0)),
        n_support_=state.optional(state.array("i4", None, low=0)),
        stream_=state.optional(MEMORY),
    )

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows with their targets.

        Parameters
        ----------
        X : array or sparse matrix, n x d; or a table that is not in memory
            The rows; `empirisk.scan` reads files, and collections of Dask stay where they are.
        y : array of n, or n x targets
            For a classifier classes of any type, or 0 and 1, a column for each of several labels; else numbers. None
            where the files have a column of targets.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        check_flag("warm_start", self.warm_start)
        return self._fit(X, y, sample_weight, dict(vars(self)) if self.warm_start else None)

    @all_or_nothing
    def _fit(self, X, y, sample_weight, last: dict[str, Any] | None) -> Self:
        """Fit, from where the ``last`` fit has ended if its attributes are given."""
        deadline = Deadline(self._limits().max_time)
        there = elsewhere(X)
        if there is None:
            problems, y = self._prepare(X, y, sample_weight)
        else:
            (problems, y), last = problems_of(self, there, y, sample_weight), None
        if last is not None and not np.array_equal(last.get("classes_", ()), getattr(self, "classes_", ())):
            last = None
        continue_from = getattr(getattr(self, "features_", None), "continue_from", None)
        if last is not None and continue_from is not None:
            continue_from(last.get("features_"))
        self._solve(X, problems, y, deadline, last)
        if "support_" in vars(self):
            self.n_support_ = self._count_support(y)
        return self

    def _count_support(self, y: NDArray) -> NDArray[np.int32]:
        """The number of support vectors, of each class where there are classes."""
        return np.array([len(self.support_)], np.int32)

    def _keep(self, problems: list[Problem], fits: list[Fit], C: float) -> None:
        super()._keep(problems, fits, C)
        self.seen_ = seen(problems)

    def _go_on(self, X, y, sample_weight, classes: ArrayLike | None = None) -> Self:
        """One call of `partial_fit`: a pass over the rows, from where the machine stands."""
        deadline, kept = Deadline(self._limits().max_time), getattr(self, "stream_", None) or {}
        again = "coef_" in vars(self) and (self.features is None) == ("features_" not in vars(self))
        if not again:
            state.forget(self)
        stream = Stream(classes, again, kept.get("shift") if again else None)
        problems, _ = self._prepare(X, y, sample_weight, stream)
        if again and "seen_" not in vars(self):  # a file of an earlier version does not tell
            self.seen_ = np.zeros((len(problems), 2))
        if again and len(problems) != len(self.seen_):
            raise EmpiriskError(
                f"{type(self).__name__} has learned {len(self.seen_)} functions, and this call asks for "
                f"{len(problems)}; use fit to begin anew."
            )
        with interruptible():
            watch = Watch(deadline=deadline, start=deadline.start)
            features = getattr(self, "features_", None)
            if takes_steps(features):
                steps = features.step_with(X, problems, watch)
            else:
                steps = take_steps(self, problems, stream, watch)
        self._keep_steps(steps, again, watch)
        return self

    def _keep_steps(self, steps: OnlineSteps, again: bool, watch: Watch) -> None:
        """Set the fitted attributes after a call of `partial_fit`."""
        before = self.history_.get("loss", []) if again else []
        self.history_ = {"loss": np.append(before, steps.loss)}
        self.C_, self.n_iter_, self.solver_ = check_C(self.C, hard=True), len(self.history_["loss"]), steps.solver
        self.stopped_ = watch.status or Ending.PARTIAL_FIT
        seconds = time.perf_counter() - watch.start
        self.certificate_ = unproven(self.stopped_, steps.solver, self.n_iter_, seconds)
        warn_of(
            watch.status,
            f"partial_fit of {type(self).__name__} was stopped ({watch.status}) before it had seen all rows",
            REMEDIES | {Ending.MAX_TIME: "raise max_time, or give it fewer rows at a time"},
        )
        self.seen_ = seen(steps.problems) + (self.seen_ if again else 0.0)
        for name in (*SUPPORT, "n_support_", "choice_", "stream_"):
            self.__dict__.pop(name, None)
        if steps.memory is not None:
            self.stream_ = steps.memory
        self.__dict__.update(self._coefficients(steps.problems, steps.points, supported=False))


@dataclass(eq=False, repr=False)
class Classifier(ClassifierMixin, Equation):
    """The equation for classes:  minimise  R(w) + C sum_i c_i loss(y_i, <w, phi(x_i)> + b).

    A y of several columns of 0 and 1 holds labels of which a row may have any number: one function is learned for each,
    on shared features. `predict` then gives such columns, and `predict_proba` the probability of every label.

    Parameters
    ----------
    loss : str or Loss
        A classification loss: "hinge", "squared_hinge", "logistic", "soft_hinge", "exponential", "squared",
        "perceptron", "softmax", "crammer_singer", "soft_crammer_singer", or an object of `empirisk.losses`.
        "perceptron" is least at w = 0, where a fit ends with a warning: `Perceptron` is the machine that learns with
        it.
    features : None, transformer, Kernel, str or callable
        The feature map phi; fitted inside. None is the identity; a kernel, its name, a function k(x, z) or
        "precomputed" (X is then a Gram matrix) makes this a kernel machine.
    penalty : str or Penalty
        "l2", "l1", "elastic_net", "none", or an object of `empirisk.penalties`.
    C : float, "loo", "cv" or Constraint
        The scale of the sum of losses. ``inf`` is the hard margin (hinge losses, all classes together too), and no
        penalty for losses that have none. "cv" chooses it by
        cross-validation along a warm-started path, "loo" by exact leave-one-out (squared loss). `Constraint` (radius)
        is the constraint form: the sum of losses is minimised subject to R(w) <= radius.
    multiclass : {"auto", "one_vs_rest", "one_vs_one", "error_correcting", "joint"} or matrix
        How more than two classes are handled; "auto" is joint for probabilistic losses, else one-vs-rest. A matrix of
        -1, 0 and +1 is an output code of your own: a row for each machine, a column for each class in the order of
        ``classes_``, and 0 where a class takes no part; the class whose column fits the answers best wins.
    class_weight : None, "balanced" or dict
        Factors on the weights of the classes. With 0 the rows of a class count as absent, but it stays in ``classes_``.
    fit_intercept : bool
        Whether b is free (it is never penalised) or 0.
    solver : str or Solver
        "auto" or a name or object of `empirisk.solvers`.
    tol : float
        Relative duality gap at which the fit is converged.
    max_iter : int or None
        Iteration limit; None is the solver's own.
    max_time : float or None
        Time limit in seconds, kept to a second; where it ends a fit, or a choice of C, which has half of it, the
        answer depends on the speed of the computer.
    random_state : int, RandomState or None
        Seed of random codes and folds.
    rule : {"best", "1se"}
        With a chosen C: the best score, or the smallest C within one standard error of it.
    Cs : int or array
        With a chosen C: the values to try, or how many.
    cv : int or splitter
        With C="cv": the folds.
    warm_start : bool
        Whether `fit` begins where the last one has ended. The answer is the same minimum, found in fewer iterations
        where the rows and parameters have changed little.

    Attributes
    ----------
    classes_, coef_, intercept_ : arrays
        The classes, and w and b (one row per machine).
    dual_coef_, support_, support_vectors_ : arrays
        w = sum_j dual_coef_[j] phi(support_vectors_[j]), and where these stood in the data: behind a kernel instead of
        ``coef_``, and beside it for losses such as the hinge without features and with an l2 penalty. Of many equal
        rows behind a kernel the first stands for all.
    n_support_ : array
        The support vectors of each class.
    certificate_ : Certificate
        Primal, dual, gap, status, solver and why it was chosen; where all weights are zero by the choice of C or of the
        loss, its ``reason`` says so.
    history_ : dict of arrays
        Objective, gap and seconds over the iterations.
    n_iter_, solver_, stopped_ : int, str, str
        Iterations and name of the solver, and why it ended.
    C_ : float
        The C used.
    seen_ : array, functions x 2
        The rows that each function was learned from, and their weight; `partial_fit` adds to them.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> machine = er.Classifier(loss="exponential", penalty="l1", C=0.3).fit(X, y)
    >>> machine.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> machine.certificate_.converged
    True
    """

    _state = state.State(
        _codes_fit,
        classes_=state.labels("classes"),
        scheme_=state.text("joint", LABELS, *SCHEMES),
        codes_=state.array("f8", "outputs", "classes", low=-1, high=1),
        coef_=state.array("f", "outputs", "mapped"),
        dual_coef_=state.array("f", "outputs", "support"),
        intercept_=state.array("f", "outputs"),
    )

    task = "classification"

    loss: str | Loss = "hinge"
    _: KW_ONLY
    multiclass: str | ArrayLike = "auto"
    class_weight: dict[Any, float] | str | None = None

    @available_if(can_go_on)
    @continuing
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from some rows, seen once and not kept, from where the machine stands.

        Steps of stochastic gradients, or those of ``solver="passive_aggressive"`` or of the perceptron, approach the
        minimum over all rows so far; rows that are given again count again. Nothing is proved: `certificate_` has no
        dual value, its status is "partial fit", and ``history_["loss"]`` has the mean loss of each call's rows before
        they were learned from. A feature map learns from the rows of the first call.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; a call may lack some of the classes.
        classes : array, optional
            All classes that may come: needed in the first call, and then no longer. Columns of labels need none.

        Examples
        --------
        >>> machine = er.LogisticRegression().partial_fit([[0.0], [2.0]], ["no", "yes"], classes=["no", "yes"])
        >>> machine.partial_fit([[3.0]], ["yes"]).predict([[0.0], [3.0]])
        array(['no', 'yes'], dtype='<U3')
        >>> machine.certificate_.status
        'partial_fit'
        """
        return self._go_on(X, y, sample_weight, classes)

    def _prepare(self, X, y, sample_weight=None, stream: Stream | None = None) -> tuple[list[Problem], NDArray]:
        loss = self._suitable_loss(self.loss)
        again = stream is not None and stream.again
        y, several = label_columns(y)
        if again and several != (self.scheme_ == LABELS):
            raise EmpiriskError("y has columns of labels in some calls of partial_fit and classes in others; use one.")
        design, y = self._fit_map(X, y, sample_weight, late=self._late(), again=again, multi_output=several)
        weights = check_weights(sample_weight, len(y))
        if stream is not None and self.fit_intercept:
            design = stream.placed(design, weights)
        if several:
            return self._problems(loss, design, self._label_targets(loss, y, weights, stream), weights), y
        if stream is None:
            self.classes_, codes = encode_classes(y, weights, type(self).__name__)
        else:
            codes = self._known_codes(y, weights, stream)
        if self.class_weight is not None:
            weights = weights * class_weights(self.class_weight, self.classes_, codes, weights)[codes]
        loss, targets = self._code(loss, codes, len(self.classes_), again)
        classes = len(self.classes_) if loss.joint else 0
        return self._problems(loss, design, targets, weights, classes), y

    def _count_support(self, y: NDArray) -> NDArray[np.int32]:
        if self.scheme_ == LABELS:
            return super()._count_support(y)
        codes = class_codes(y[self.support_], self.classes_)
        return np.bincount(codes, minlength=len(self.classes_)).astype(np.int32)

    def _known_codes(self, y: NDArray, weights: Array, stream: Stream) -> NDArray:
        """The class numbers of the rows of a call of `partial_fit`; the first call is told all classes."""
        if isinstance(self.class_weight, str):
            raise Unsuitable(
                f"class_weight={self.class_weight!r} counts all rows, and partial_fit sees some; use a dictionary."
            )
        if not stream.again and stream.classes is None:
            raise EmpiriskError("classes must be passed on the first call to partial_fit: all that may come in y.")
        if stream.classes is not None:
            classes = np.unique(np.asarray(stream.classes))
            if len(classes) < 2:
                raise EmpiriskError(f"classes={stream.classes!r} must hold at least two classes.")
            if stream.again and not np.array_equal(classes, self.classes_):
                raise EmpiriskError(
                    f"classes={listed(classes)} is not the same as on the last call to partial_fit, "
                    f"{listed(self.classes_)}; leave it out, or use fit to begin anew."
                )
            self.classes_ = classes
        codes = class_codes(y, self.classes_)
        unknown = np.unique(y[(codes < 0) & (weights > 0)])
        if len(unknown):
            raise EmpiriskError(
                f"y holds {listed(unknown)}, not among the classes {listed(self.classes_)} of the first call; name all "
                "classes there."
            )
        return codes

    def _label_targets(self, loss: Loss, labels: NDArray, weights: Array, stream: Stream | None) -> list[Array]:
        """-1 or +1 for every row, of each label."""
        if loss.joint or name_of(self.multiclass) not in ("auto", "one_vs_rest"):
            raise Unsuitable(
                f"y has {labels.shape[1]} columns, which are labels learned one by one, but {loss!r} with multiclass="
                f"{self.multiclass!r} tells classes of one column apart; use loss='logistic', multiclass='auto'."
            )
        if self.class_weight is not None:
            raise Unsuitable("class_weight has no meaning for y of several columns; use sample_weight.")
        if not np.isin(labels, (0, 1)).all():
            raise EmpiriskError(
                "y of several columns must hold 0 and 1 only: whether a row has the label of the column."
            )
        for number, column in enumerate(labels.T if stream is None else ()):
            if len(np.unique(column[weights > 0])) < 2:
                raise OneClass(f"y is the same for all rows in column {number}; leave this label out.")
        self.scheme_, self.classes_ = LABELS, np.arange(labels.shape[1])
        self.codes_ = 2.0 * np.eye(labels.shape[1]) - 1.0
        return list(np.ascontiguousarray(2.0 * labels.T - 1.0))

    def _code(self, loss: Loss, codes: NDArray, classes: int, again: bool = False) -> tuple[Loss, list[Array]]:
        """The loss and the targets of each problem: class numbers for a joint loss, else -1, +1, or NaN for none.

        ``again``, the scheme and its codes stay as they are.
        """
        if not again:
            self.scheme_ = scheme_for(self.multiclass, loss)
            if classes == 2 and not loss.joint:
                self.scheme_ = "binary"
        if self.scheme_ == "joint":
            self.codes_ = np.eye(classes)
            return losses.find(loss.joint_form or loss), [codes.astype(float)]
        if not again:
            self.codes_ = codes_for(self.multiclass, self.scheme_, self.classes_, generator(self.random_state))
        signs = np.where(self.codes_ == 0, np.nan, self.codes_)
        return loss, [blocks.rowwise(row.__getitem__, codes) for row in signs]

    @blockwise
    @single_threaded_blas()
    @in_single_precision
    def decision_function(self, X: ArrayLike) -> Array:
        """f(x): for two classes one number, positive for ``classes_[1]``; else a score per class or label."""
        f = self._scores(X)
        return read(self.scheme_, self.codes_, f, losses.find(self.loss))

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row, or 0 and 1 for each label; f = 0 is the positive class."""
        f = self.decision_function(X)
        return (f >= 0).astype(int) if self.scheme_ == LABELS else winners(f, self.classes_)

    @available_if(_has_probabilities)
    @blockwise
    @in_single_precision
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, where the loss implies them.

        Two classes: the p for which f minimises the expected loss. Softmax: its own. One-vs-rest: normalised. Several
        labels: the probability of each.
        """
        loss, f = losses.find(self.loss), self._scores(X)
        if self.scheme_ == LABELS:
            return loss.link(f)
        return class_probabilities(losses.find(loss.joint_form or loss) if self.scheme_ == "joint" else loss, f)

    @available_if(_has_probabilities)
    @blockwise
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        loss = losses.NAMES.get(self.loss) if isinstance(self.loss, str) else self.loss
        one_by_one = name_of(self.multiclass) in ("auto", "one_vs_rest") and not getattr(loss, "joint", False)
        # Whoever reads the tag asks for probabilities too.
        asked = one_by_one and getattr(loss, "probabilistic", False)
        tags.classifier_tags.multi_label = bool(asked) and self.class_weight is None
        return tags


def _targets_fit(its: Mapping[str, Any]) -> str | None:
    """What is wrong in a loaded regressor: one target has no axis, several have one."""
    weights = its["coef_"] if "coef_" in its else its["dual_coef_"]
    axes = np.ndim(its["intercept_"]), weights.ndim
    return None if axes == ((0, 1) if its["_single"] else (1, 2)) else "intercept_ has not the targets of the weights"


@dataclass(eq=False, repr=False)
class Regressor(PredictsNumbers, MultiOutputMixin, Equation):
    """The equation for numbers:  minimise  R(w) + C sum_i c_i loss(y_i, <w, phi(x_i)> + b).

    Several targets are fitted column by column, on shared features.

    Parameters
    ----------
    loss : str, Loss, or list of them
        A regression loss: "squared", "absolute", "quantile", "huber", "poisson", "gamma", "tweedie",
        "epsilon_insensitive", "power", "squared_absolute", or an object of `empirisk.losses`; a list holds one for each
        of several targets. Of the deviances ("poisson", "gamma", "tweedie") f is the logarithm of the mean, and
        `predict` gives the mean.
    features, penalty, C, fit_intercept, solver, tol, max_iter, max_time, random_state, rule, Cs, cv, warm_start
        As for `Classifier`.

    Attributes
    ----------
    coef_, intercept_ : arrays
        w and b; one row per target where y has two dimensions.
    certificate_, history_, n_iter_, solver_, C_, seen_
        As for `Classifier`.

    Examples
    --------
    >>> machine = er.Regressor(loss="absolute", penalty="none").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> machine.predict([[3.0]]).round(6)
    array([3.])
    """

    _state = state.State(
        _targets_fit,
        _single=state.flag(),
        coef_=state.either(state.array("f", "mapped"), state.array("f", "outputs", "mapped")),
        dual_coef_=state.either(state.array("f", "support"), state.array("f", "outputs", "support")),
        intercept_=state.either(state.number(), state.array("f", "outputs")),
    )

    task = "regression"

    loss: str | Loss | Sequence[str | Loss] = "squared"

    @available_if(can_go_on)
    @continuing
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from some rows, seen once and not kept, from where the machine stands; see `Classifier.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(1000, 2))
        >>> machine = er.Ridge(C=10.0)
        >>> for rows in np.split(X, 10):
        ...     machine = machine.partial_fit(rows, rows @ [1.0, -2.0])
        >>> machine.coef_.round(1)
        array([ 1., -2.])
        """
        return self._go_on(X, y, sample_weight)

    def _prepare(self, X, y, sample_weight=None, stream: Stream | None = None) -> tuple[list[Problem], NDArray]:
        several = isinstance(self.loss, (list, tuple)) and len(self.loss) > 0
        given = [self._suitable_loss(loss) for loss in (self.loss if several else [self.loss])]
        again = stream is not None and stream.again
        design, y = self._fit_map(
            X, y, sample_weight, late=self._late(), again=again, multi_output=True, y_numeric=True
        )
        weights = check_weights(sample_weight, len(y))
        if stream is not None and self.fit_intercept:
            design = stream.placed(design, weights)
        self._single = y.ndim == 1
        targets = list(np.ascontiguousarray(as_numbers(y).reshape(len(y), -1).T))
        for target in targets:
            check_size("y", target)
        if len(given) not in (1, len(targets)):
            raise EmpiriskError(f"loss holds {len(given)} losses, but y has {len(targets)} columns; give one for each.")
        problems = self._problems(given[0], design, targets, weights)
        if len(given) > 1:
            problems = [replace(problem, loss=loss) for problem, loss in zip(problems, given, strict=True)]
        for problem in problems:
            problem.loss.check_targets(problem.y)
        return problems, y

    def _coefficients(self, problems: list[Problem], points: list[Point], supported: bool = True) -> dict[str, Any]:
        """As for every machine, without the axis of the targets where y has one dimension."""
        found = super()._coefficients(problems, points, supported)
        if self._single:
            found["intercept_"] = float(found["intercept_"][0])
            for name in found.keys() & {"coef_", "dual_coef_"}:
                found[name] = found[name][0]
        return found

    @blockwise
    @single_threaded_blas()
    @in_single_precision
    def raw_predict(self, X: ArrayLike) -> Array:
        """f(x) of each row: the prediction itself, or the logarithm of it for deviances such as "poisson"."""
        f = self._scores(X)
        return f[:, 0] if np.ndim(self.intercept_) == 0 else f
