"""What the two boosting machines share: the fit, raw scores, stages."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import (
    check_count,
    check_monotone,
    check_number,
    check_time,
    count_features,
)
from empirisk.contract.clock import Clock, Watch, warn_if_stopped
from empirisk.contract.importances import Importances
from empirisk.contract.inputs import generator
from empirisk.errors import EmpiriskError
from empirisk.fits.fit import interruptible
from empirisk.losses.base import Loss
from empirisk.trees.bins import Binning, check_bins
from empirisk.trees.boost_fit import Held, boost
from empirisk.trees.boost_loss import Objective
from empirisk.trees.boost_rounds import Plan, Rounds
from empirisk.trees.categories import Columns, read_new
from empirisk.trees.ensemble_predict import PackedTrees, wrong_outputs
from empirisk.trees.resample import equal_rows, split_groups

Array = NDArray[np.float64]

MOST_ROWS = 1 << 28  # rows that whole weights may count


class Boosting(PackedTrees, CallbackSupportMixin, Importances, BaseEstimator, ABC):
    """What the two boosting machines share; see `BoostingClassifier` and `BoostingRegressor`."""

    _state = state.State(
        lambda its: wrong_outputs(its["packed_"], 1, its["n_estimators_"] * len(its["baseline_"])),
        baseline_=state.array("f8", "outputs"),
        history_=state.mapping(state.array("biuf", None, finite=False)),
        stopped_by_=state.text(),
    )

    loss: str | Loss
    learning_rate: float
    n_estimators: int
    max_leaves: int | None
    max_depth: int | None
    min_samples_leaf: float | None
    min_gain: float
    l2: float
    subsample: float
    max_features: int | float | str | None
    max_bins: int
    monotone_constraints: Any
    early_stopping: bool
    validation_fraction: float
    patience: int
    max_time: float | None
    random_state: Any
    columns_: Columns
    baseline_: Array
    n_estimators_: int

    @abstractmethod
    def _objective(self, target: NDArray, weights: Array) -> Objective:
        """The loss on rows with these targets: numbers, or class numbers."""

    # --- fitting ----------------------------------------------------------------------------------------------------

    def _plan(self, n_features: int) -> Plan:
        check_count("n_estimators", self.n_estimators)
        check_count("patience", self.patience)
        check_bins(self.max_bins)
        check_time(self.max_time)
        if self.early_stopping not in (True, False):
            raise EmpiriskError(f"early_stopping={self.early_stopping!r} must be True or False.")
        leaf = self.min_samples_leaf
        return Plan(
            learning_rate=check_number("learning_rate", self.learning_rate, 0, above=True),
            max_leaves=check_count("max_leaves", self.max_leaves, 2, optional=True),
            max_depth=check_count("max_depth", self.max_depth, 1, optional=True),
            min_samples_leaf=None if leaf is None else check_number("min_samples_leaf", leaf, 0),
            min_gain=check_number("min_gain", self.min_gain, 0),
            l2=check_number("l2", self.l2, 0),
            subsample=check_number("subsample", self.subsample, 0, 1, above=True),
            max_features=count_features(self.max_features, n_features),
        )

    def _held(self, member: NDArray[np.intp], target: NDArray, random: np.random.Generator) -> NDArray[np.bool_]:
        """Which rows are held out for early stopping; equal rows stay together, classes keep their shares."""
        if not self.early_stopping:
            return np.zeros(len(member), dtype=bool)
        fraction = check_number("validation_fraction", self.validation_fraction, 0, above=True)
        if not fraction < 1:
            raise EmpiriskError(
                f"validation_fraction={fraction:g} must be below 1: some rows must be left to learn from."
            )
        if member.max() < 1:
            raise EmpiriskError(
                "early_stopping=True needs two different rows, one to train and one to validate on, but X and y hold "
                "one sample only; set early_stopping=False."
            )
        strata = target if target.dtype.kind == "i" else np.zeros(len(target), dtype=np.intp)
        return split_groups(member, strata, fraction, random)

    def _fit(self, X: Array, target: NDArray, weights: Array, times: Array, watch_data: dict[str, Any]) -> None:
        """Boost on rows of positive weight.

        ``times`` are the weights as they were given, without those of the classes: whole numbers count rows.
        ``watch_data`` is what callbacks may ask for.
        """
        plan, random = self._plan(X.shape[1]), generator(self.random_state)
        counts = self.columns_.counts
        monotone = check_monotone(self.monotone_constraints, self.columns_.names, counts > 0)
        draws = self.early_stopping or plan.subsample < 1
        member = equal_rows(X, target)[1] if draws else np.arange(len(X))
        held = self._held(member, target, random)
        train = ~held if held.any() else slice(None)
        with interruptible() as interrupted:
            clock = Clock(self.max_time, interrupted)
            objective = self._objective(target[train], weights[train])
            binning = Binning.of(X[train], weights[train], counts, random, self.max_bins)
            groups = np.unique(member[train], return_inverse=True)[1] if draws else member
            rows, copies = binning.codes(X[train]), _counts(times[train])
            rounds = Rounds(binning, rows, objective, copies, plan, groups, monotone, random, clock)
            jury = None
            if held.any():
                scores = np.repeat(rounds.baseline[:, None], int(held.sum()), axis=1)
                jury = Held(binning.codes(X[held]), self._objective(target[held], weights[held]), scores)
            watch = Watch(self, self.n_estimators, watch_data)
            model = boost(rounds, self.n_estimators, jury, self.patience, clock, watch)
        for name, value in model.fitted().items():
            setattr(self, name, value)
        watch.close()
        warn_if_stopped(self, model.reason, self.n_estimators_, "rounds")

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


def _counts(weights: Array) -> NDArray[np.int32]:
    """For how many equal rows each row stands, where the weights are whole; nothing where each stands for itself."""
    whole = len(weights) < weights.sum() < MOST_ROWS and bool((weights == np.rint(weights)).all())
    return weights.astype(np.int32) if whole else np.zeros(0, dtype=np.int32)
