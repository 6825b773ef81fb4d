"""Gaussian mixtures by expectation and maximisation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.clusters.density import (
    FORMS,
    check_floor,
    check_rows,
    draw,
    find_form,
    log_densities,
    lower_quantile,
    table_of_numbers,
    wrong_covariance,
)
from empirisk.clusters.device_moments import moments_of
from empirisk.clusters.expectation import ColumnMoments, Mixture, Moments
from empirisk.clusters.lloyd import TooFew, draw_rows, fill_empty
from empirisk.clusters.rows import keys, nearest, rows_of
from empirisk.contract.arguments import check_count, check_flag, check_number, check_time
from empirisk.contract.elsewhere import blockwise, elsewhere
from empirisk.contract.inputs import Array, generator
from empirisk.contract.outputs import in_single_precision
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing, continuing
from empirisk.errors import EmpiriskError
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.blocks import over_rows, stable_order
from empirisk.linalg.design import Design, design_of
from empirisk.messages import coded
from empirisk.names import SPELLINGS, Estimator, spelled
from empirisk.stop import Deadline, Ending, Stopped, interruptible, requested, stopping

INITS = ("k-means", "random")
TYPES = ("full", "tied", "diagonal", "spherical")
START_ROUNDS = 20  # of k-means: a start need not be its fixed point
#: How fast earlier rows are forgotten, between 1 (all count alike, also those that a bad first guess has weighed) and
#: 1/2 (where steps no longer settle).
FORGETTING = 0.7
REPAIR_ROUNDS = 10  # rounds that a component put elsewhere gets to prove itself


def _wrong_covariances(its: Mapping[str, Any]) -> str | None:
    """What is wrong with the covariances of a loaded mixture."""
    name, kept = its["covariance_type"], its["covariances_"]
    if name != "tied" and len(kept) != len(its["means_"]):
        return "covariances_ are not one for each component"
    each = [kept] if name == "tied" else list(kept)
    wrong = (wrong_covariance(name, one, its["means_"].shape[1]) for one in each)
    return next((reason for reason in wrong if reason is not None), None)


@dataclass(eq=False, repr=False)
class GaussianMixture(CallbackSupportMixin, DensityMixin, Estimator):
    """A mixture of Gaussians, fitted by expectation and maximisation:

        p(x) = sum_k w_k (2 pi)^(-d/2) |S_k|^(-1/2) exp(-1/2 (x - m_k)' S_k^-1 (x - m_k)).

    A round weighs every row among the components by their share in its density, computed in logarithms, and then takes
    the weighted means and covariances. The log-likelihood never falls. Variances are kept above a floor, so that no
    component shrinks to a point; one that loses its rows is put where rows are fitted worst, if that helps.

    Parameters
    ----------
    n_components : int
        The number of Gaussians.
    covariance_type : {"full", "tied", "diagonal", "spherical"}
        A covariance for each component; one for all; variances of the columns; one variance for each component.
    init : {"k-means", "random"} or array
        Where to start: clusters of k-means; cells around random rows; cells around given means (k x d).
    n_init : int
        Restarts, of which the most likely is kept.
    tol : float
        A round that raises the mean log-likelihood by less ends the fit.
    max_iter : int
        Most rounds of a restart.
    reg_covar : float
        Least variance in any direction, as a share of the columns' own variances. It also holds where rows have none in
        some direction, since they are fewer than the columns, say.
    quantile : float
        The share of the training rows that `anomalies` marks, in [0, 1).
    max_time : float or None
        Seconds after which the best so far is kept: the mixture before the unfinished round. Where there is no time
        for one look at all rows, some of them give ``lower_bound_`` and ``offset_``.
    random_state : int, RandomState or None
        Decides the starts.
    warm_start : bool
        Whether `fit` starts at the mixture of the last one, where it has as many components of the same form.

    Attributes
    ----------
    weights_ : array of k
        The share of each component.
    means_ : array, k x d
        Their means.
    covariances_ : array
        k x d x d if full, d x d if tied, k x d if diagonal, k if spherical.
    lower_bound_ : float
        The mean log-likelihood of the training rows.
    offset_ : float
        The quantile of their log-densities.
    converged_, n_iter_, stopped_
        How it ended.
    seen_ : dict
        ``weight`` of all rows, and ``mean`` and ``variances`` of their columns; `partial_fit` adds to them.
    history_ : dict
        ``log_likelihood``, the mean over the rows, in each round; that of the start where no round has ended.

    Examples
    --------
    >>> mixture = er.GaussianMixture(2, random_state=0).fit([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    >>> np.sort(mixture.means_.ravel()).round(3), mixture.weights_.round(3)
    (array([ 1., 10.]), array([0.5, 0.5]))
    """

    _state = state.State(
        _wrong_covariances,
        filled=("components",),
        covariance_type=state.text(*TYPES, *SPELLINGS["covariance_type"]),
        weights_=state.array("f8", "components", low=0),
        means_=state.array("f8", "components", "columns"),
        covariances_=state.either(
            state.array("f8", "components", "columns", "columns"),
            state.array("f8", "columns", "columns"),
            state.array("f8", "components", "columns"),
            state.array("f8", "components"),
        ),
        lower_bound_=state.number(),
        offset_=state.number(),
        converged_=state.flag(),
        n_iter_=state.whole(),
        history_=state.mapping(state.anything()),
        stopped_=state.text(),
        seen_=state.optional(
            state.record(
                weight=state.number(low=0),
                mean=state.array("f8", "columns"),
                variances=state.array("f8", "columns", low=0),
            )
        ),
    )

    weights_: Array = field(init=False)
    means_: Array = field(init=False)
    covariances_: Any = field(init=False)

    n_components: int = 1
    covariance_type: str = "full"
    _: KW_ONLY
    init: str | ArrayLike = "k-means"
    n_init: int = 1
    tol: float = 1e-5
    max_iter: int = 300
    reg_covar: float = 1e-6
    quantile: float = 0.05
    max_time: float | None = None
    random_state: Any = None
    warm_start: bool = False

    @with_callbacks
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> GaussianMixture:
        """Fit the components to the rows of X; y is not used.

        Parameters
        ----------
        X : array
            The rows.
        y : ignored
            There for pipelines.
        sample_weight : array of n, optional
            Weights of the rows; weight 2 counts as the row twice.
        """
        self._check()
        return self._fit(X, y, sample_weight, self._last() if self.warm_start else None)

    @all_or_nothing
    def _fit(self, X, y, sample_weight, last: Mixture | None) -> GaussianMixture:
        """Fit from the ``last`` mixture, if it is given and of as many columns."""
        there, data = elsewhere(X), {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        if there is not None:
            watch = FitCallbacks(self, self.max_iter, data)
            import_module("empirisk.scale.clusters").fit_mixture(self, there, sample_weight, last, watch)
            watch.close()
            warn_if_unfinished(self, self.stopped_, f"{self.n_iter_} rounds")
            return self
        deadline = Deadline(self.max_time)
        rows, weights = check_rows(self, X, sample_weight)
        if len(rows) < self.n_components:
            raise TooFew(self.n_components, len(rows), "n_components")
        design = design_of(rows if lie_on_device(rows) else np.ascontiguousarray(rows))
        order = stable_order(keys(design))
        form = self.covariance_type, self.reg_covar
        moments = moments_of(rows[order], weights[order], *form, self.n_components)
        if last is not None and last.means.shape[1] != rows.shape[1]:
            last = None
        restarts = self.n_init if isinstance(self.init, str) and self.n_components > 1 and last is None else 1
        watch = FitCallbacks(self, restarts * self.max_iter, data)
        best: _Run | None = None
        long = moments.long(self.n_components)
        with interruptible(), stopping(lambda: long and deadline() and deadline.reason != Ending.CALLBACK):
            for random in generator(self.random_state).spawn(restarts):
                if best is not None and deadline():
                    break
                run = _Run(self, moments, last or self._start(moments, random, deadline))
                with suppress(Stopped):  # what the round began with is there
                    run.rounds_until(deadline, watch)
                if best is None or run.likelihood > best.likelihood + 1e-10 * abs(best.likelihood):
                    best = run
            assert best is not None
            self._keep(best, moments, deadline)
        watch.close()
        warn_if_unfinished(self, self.stopped_, f"{self.n_iter_} rounds")
        return self

    @continuing
    def partial_fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> GaussianMixture:
        """Learn from some rows, seen once and not kept, by a step of stepwise expectation and maximisation.

        The sums that make the components are averages over all rows so far, in which later rows count more: those of a
        call get the share (their weight / the weight so far)^0.7. The first call is a fit of its rows. ``offset_`` is
        the quantile of the rows of the last call; ``lower_bound_`` and ``history_["log_likelihood"]`` have the mean
        log-likelihood of each later call's rows before they were learned from; ``n_iter_`` counts the calls.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(600, 1)) + np.tile([[-5.0], [5.0]], (300, 1))
        >>> mixture = er.GaussianMixture(2, random_state=0)
        >>> for rows in np.split(X, 6):
        ...     mixture = mixture.partial_fit(rows)
        >>> np.sort(mixture.means_.ravel()).round()
        array([-5.,  5.])
        """
        self._check()
        last = self._last()
        if last is None or "seen_" not in vars(self):
            self._fit(X, y, sample_weight, last)
            self._keep_call(np.empty(0))
            return self
        rows, weights = check_rows(self, X, sample_weight, again=True)
        columns = ColumnMoments(**self.seen_).with_rows(rows, weights)
        moments = Moments(rows, weights, self.covariance_type, self.reg_covar, columns)
        deadline = Deadline(self.max_time)
        try:
            with interruptible(), stopping(deadline):
                share = float(weights.sum() / columns.weight) ** FORGETTING
                self.lower_bound_, mixture = moments.step(last, share)
                self.__dict__.update(mixture.attributes(self.covariance_type))
                self.offset_ = lower_quantile(self._log_density(rows), weights, self.quantile)
        except Stopped:
            if deadline.reason != Ending.MAX_TIME:
                raise
            raise EmpiriskError(
                coded(
                    "ER002",
                    f"max_time={self.max_time!r} s were over before the step was made; give fewer rows, or raise it.",
                )
            ) from None
        self.seen_ = dict(vars(columns))
        self._keep_call(self.history_["log_likelihood"] if self.stopped_ == Ending.PARTIAL_FIT else np.empty(0))
        return self

    def _keep_call(self, calls: Array) -> None:
        """Set the history of the calls of `partial_fit`."""
        self.history_ = {"log_likelihood": np.append(calls, self.lower_bound_)}
        self.n_iter_, self.converged_, self.stopped_ = len(calls) + 1, False, Ending.PARTIAL_FIT

    def _last(self) -> Mixture | None:
        """The mixture of the last fit; None where there is none of this number of components and this form."""
        if "means_" not in vars(self) or len(self.means_) != self.n_components or _wrong_covariances(vars(self)):
            return None
        kept = [self.covariances_] * len(self.means_) if self.covariance_type == "tied" else list(self.covariances_)
        return Mixture(self.weights_, self.means_, kept, np.array(self.whole_covariances()))

    def _check(self) -> None:
        check_count("n_components", self.n_components)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, 0)
        check_floor(self.reg_covar, above=True)
        check_number("quantile", self.quantile, 0, np.nextafter(1, 0))
        check_time(self.max_time)
        check_flag("warm_start", self.warm_start)
        find_form(self.covariance_type, TYPES)
        if isinstance(self.init, str) and spelled("init", self.init) not in INITS:
            raise EmpiriskError(f"init={self.init!r} is not known; choose one of {list(INITS)}, or give means.")

    def _start(self, moments: Moments, random: np.random.Generator, deadline: Deadline) -> Mixture:
        """Components from the cells around the first means."""
        count = self.n_components
        design = design_of(moments.X)
        if not isinstance(self.init, str):
            centres = np.asarray(self.init, dtype=np.float64)
            if centres.shape != (count, design.shape[1]) or not np.isfinite(centres).all():
                raise EmpiriskError(f"init must hold {count} finite means of {design.shape[1]} columns each.")
        else:
            try:
                centres = self._start_centres(design, moments.weights, random, deadline)
            except TooFew as error:
                raise TooFew(count, error.distinct, "n_components") from None
        try:
            return moments.of_cells(nearest(design, centres)[0], centres)
        except Stopped:
            return moments.at_centres(centres)

    def _start_centres(self, design: Design, weights: Array, random: np.random.Generator, deadline: Deadline) -> Array:
        """Rows drawn at random, or the means of a few rounds of k-means from there."""
        with stopping(requested):  # there is nothing to keep yet
            rows = rows_of(design, weights, np.arange(design.shape[0])).begin()
            rows.start_at_rows(
                draw_rows(rows, self.n_components, random, spelled("init", self.init) == "k-means", deadline)
            )
        with suppress(Stopped):
            for _ in range(START_ROUNDS if spelled("init", self.init) == "k-means" else 0):
                if deadline():
                    break
                rows.assign()
                rows.move()
                fill_empty(rows)
        return rows.centres

    def _keep(self, run: _Run, moments: Moments, deadline: Deadline) -> None:
        """The attributes of a run; where there is no time to look at all rows, some of them stand for the rest."""
        self.__dict__.update(run.mixture.attributes(self.covariance_type))
        rows, ended = slice(None), run.converged
        try:
            densities = self._log_density(moments.X)
        except Stopped:
            rows, ended = moments.some_rows(self.n_components), False
            with stopping(lambda: False):
                densities = self._log_density(moments.X[rows])
        weights = moments.weights[rows]
        self.offset_ = lower_quantile(densities, weights, self.quantile)
        self.lower_bound_ = run.likelihood if run.rounds else float(np.average(densities, weights=weights))
        self.n_iter_, self.converged_, self.seen_ = run.rounds, run.converged, dict(vars(moments.columns))
        self.history_ = {"log_likelihood": np.array(run.history or [self.lower_bound_])}
        self.stopped_ = Ending.CONVERGED if ended else deadline.reason or Ending.MAX_ITER

    # --- answers ------------------------------------------------------------------------------------------------------

    def whole_covariances(self) -> Array:
        """The covariances as matrices, k x d x d, whatever their form."""
        check_is_fitted(self)
        form, width = FORMS[self.covariance_type], self.means_.shape[1]
        if self.covariance_type == "tied":
            return np.broadcast_to(self.covariances_, (len(self.means_), width, width))
        return np.stack([form.whole(kept, width) for kept in self.covariances_])

    @property
    def precisions_(self) -> Any:
        """The inverses of ``covariances_``, in the same form."""
        check_is_fitted(self)
        if spelled("covariance_type", self.covariance_type) in ("full", "tied"):
            return np.linalg.inv(self.covariances_)
        return 1.0 / self.covariances_

    @property
    def precisions_cholesky_(self) -> Any:
        """Factors U with ``precisions_`` = U U', upper triangles; roots where variances are all there is."""
        check_is_fitted(self)
        if spelled("covariance_type", self.covariance_type) in ("full", "tied"):
            roots = np.linalg.inv(np.linalg.cholesky(self.covariances_))
            return np.swapaxes(roots, -1, -2)
        return 1.0 / np.sqrt(self.covariances_)

    def _shares(self, X: NDArray) -> Array:
        """log w_k + log p_k(x), n x k."""
        return log_densities(X, self.means_, self.whole_covariances()) + np.log(self.weights_)

    def _log_density(self, X: NDArray) -> Array:
        shares, out = self._shares(X), np.empty(len(X))
        over_rows(lambda rows: np.copyto(out[rows], logsumexp(shares[rows], axis=1)), len(X), 8 * shares.shape[1])
        return out

    def _rows(self, X: Any) -> NDArray:
        check_is_fitted(self)
        return table_of_numbers(self, X, reset=False)

    @blockwise
    @in_single_precision
    def predict_proba(self, X: ArrayLike) -> Array:
        """The share of each component in the density of each row."""
        shares = self._shares(self._rows(X))
        return np.exp(shares - logsumexp(shares, axis=1, keepdims=True))

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The component with the largest share."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> NDArray[Any]:
        """The component of each row, after a fit to them."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    @blockwise
    @in_single_precision
    def score_samples(self, X: ArrayLike) -> Array:
        """log p(x) of each row: low values are anomalies."""
        return self._log_density(self._rows(X))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def anomalies(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Whether a row is less likely than the quantile of the training rows."""
        return self.score_samples(X) < self.offset_

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, NDArray]:
        """Rows drawn from the mixture, and the component of each."""
        check_is_fitted(self)
        random = generator(random_state)
        labels = np.sort(random.choice(len(self.weights_), check_count("n_samples", n_samples), p=self.weights_))
        counts = np.bincount(labels, minlength=len(self.weights_))
        parts = zip(self.means_, self.whole_covariances(), counts, strict=True)
        return np.concatenate([draw(mean, whole, int(count), random) for mean, whole, count in parts]), labels

    def _parameters(self) -> int:
        """How many numbers are free: means, covariances, and shares that add up to one."""
        count, width = self.means_.shape
        covariances = FORMS[self.covariance_type].parameters(width) * (1 if self.covariance_type == "tied" else count)
        return count * width + covariances + count - 1

    def bic(self, X: ArrayLike) -> float:
        """The Bayesian information criterion, -2 log-likelihood + parameters * log n: smaller is better."""
        scores = self.score_samples(X)
        return float(-2 * scores.sum() + self._parameters() * np.log(len(scores)))

    def aic(self, X: ArrayLike) -> float:
        """The Akaike information criterion, -2 log-likelihood + 2 * parameters: smaller is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._parameters())


class _Run:
    """One restart of expectation-maximisation."""

    def __init__(self, machine: GaussianMixture, moments: Moments, start: Mixture):
        self._machine, self._moments, self.mixture = machine, moments, start
        self.history: list[float] = []
        self.rounds, self.converged = 0, False
        self.likelihood = -np.inf

    def rounds_until(self, deadline: Deadline, watch: FitCallbacks) -> None:
        """Rounds until the likelihood settles; a component without rows is tried elsewhere, once each."""
        tries, following = self._machine.n_components, self.mixture
        while self.rounds < self._machine.max_iter:
            following = self._round(following)
            self.history.append(self.likelihood)
            self.rounds += 1
            settled = len(self.history) > 1 and self.likelihood - self.history[-2] <= self._machine.tol
            lost = self._moments.collapsed(following) if tries else None
            if lost is not None:
                tries -= 1
                following = self._moved(following, lost)
            self.converged = settled and lost is None
            if watch.told("round", lambda: self.mixture.attributes(self._machine.covariance_type)):
                deadline.reason = Ending.CALLBACK
            if self.converged or deadline.reason == Ending.CALLBACK or deadline():
                return
        self._round(following)

    def _round(self, mixture: Mixture) -> Mixture:
        """A round from a mixture, which is the one to keep as soon as its likelihood is known."""
        likelihood, following = self._moments.round(mixture)
        self.mixture, self.likelihood = mixture, likelihood
        return following

    def _moved(self, mixture: Mixture, lost: int) -> Mixture:
        """The mixture with a lost component put where rows are fitted worst, if a few rounds prove it better."""
        moved = self._moments.with_component_at_worst(mixture, lost)
        for _ in range(REPAIR_ROUNDS):
            moved = self._moments.round(moved)[1]
        better = self._moments.round(moved)[0] > self._moments.round(mixture)[0]
        return moved if better else mixture
