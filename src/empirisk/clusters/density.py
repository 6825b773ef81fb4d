"""One Gaussian by maximum likelihood: how likely each row is, and which rows are unlike the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin, OutlierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count, check_number
from empirisk.contract.inputs import Array, check_size, check_weights, generator
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Singular, TooFewRows
from empirisk.linalg.accelerator import lie_on_device, rows_on_device
from empirisk.linalg.blocks import over_rows, sum_of_blocks
from empirisk.linalg.design import design_of
from empirisk.linalg.lapack import invert_triangle
from empirisk.linalg.threads import interruptible_call, single_threaded_blas
from empirisk.names import SPELLINGS, Estimator, spelled
from empirisk.stop import check_stop
from empirisk.validation import count_columns, validate_data

FLOATS = (np.float64, np.float32)
LOG_TWO_PI = float(np.log(2 * np.pi))  # in the logarithm of every Gaussian density
SINGULAR = 1e-14  # variances below this share of the columns' own are rounding


class GaussianDensity(CallbackSupportMixin, DensityMixin, OutlierMixin, Estimator):
    """The Gaussian under which the rows are most likely, and a threshold below which a row is an anomaly.

        p(x) = (2 pi)^(-d/2) |S|^(-1/2) exp(-1/2 (x - m)' S^-1 (x - m)),

    with m the mean and S the covariance, both divided by the total weight; a diagonal S keeps the variances, and a
    spherical one their mean.

    Parameters
    ----------
    covariance_type : {"full", "diagonal", "spherical"}
        The form of S.
    quantile : float
        The share of the training rows to be called anomalies, in [0, 1).
    reg_covar : float
        Least variance in any direction, as a share of the columns' own variances; 0 for none: then a full covariance
        needs more rows than columns.

    Attributes
    ----------
    mean_ : array of d
        The mean.
    covariance_ : array
        d x d if full, d variances if diagonal, one number if spherical.
    offset_ : float
        The quantile of the training rows' log-densities.

    Examples
    --------
    >>> density = er.GaussianDensity(quantile=0.2).fit([[0.0], [1.0], [2.0], [3.0], [20.0]])
    >>> density.mean_, density.covariance_
    (array([5.2]), array([[55.76]]))
    >>> density.predict([[2.0], [30.0]])
    array([ 1, -1])
    """

    _state = state.State(
        lambda its: wrong_covariance(its["covariance_type"], its["covariance_"], len(its["mean_"])),
        covariance_type=state.text("full", "diagonal", "spherical", *SPELLINGS["covariance_type"]),
        mean_=state.array("f8", "columns"),
        covariance_=state.either(
            state.array("f8", "columns", "columns"), state.array("f8", "columns"), state.number(low=0)
        ),
        offset_=state.number(),
    )

    def __init__(self, covariance_type: str = "full", *, quantile: float = 0.05, reg_covar: float = 1e-6):
        self.covariance_type = covariance_type
        self.quantile = quantile
        self.reg_covar = reg_covar

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> GaussianDensity:
        """Mean, covariance and threshold of the rows of X; y is not used.

        Parameters
        ----------
        X : array
            The rows.
        y : ignored
            There for pipelines.
        sample_weight : array of n, optional
            Weights of the rows; weight 2 counts as the row twice.
        """
        form = find_form(self.covariance_type, ("full", "diagonal", "spherical"))
        check_number("quantile", self.quantile, 0, np.nextafter(1, 0))
        check_floor(self.reg_covar)
        X, weights = check_rows(self, X, sample_weight)
        self.mean_, scatter = mean_and_scatter(X, weights)
        self.covariance_ = form.covariance(scatter, least_variances(X, weights, self.reg_covar))
        self.offset_ = lower_quantile(self._log_density(X), weights, self.quantile)
        return self

    def _log_density(self, X: NDArray) -> Array:
        covariance = FORMS[self.covariance_type].whole(self.covariance_, X.shape[1])
        return log_densities(X, self.mean_[None], covariance[None])[:, 0]

    def score_samples(self, X: ArrayLike) -> Array:
        """log p(x) of each row: low values are anomalies."""
        check_is_fitted(self)
        return self._log_density(validate_data(self, X, dtype=FLOATS, reset=False))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def decision_function(self, X: ArrayLike) -> Array:
        """log p(x) minus the threshold: negative for anomalies."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """+1 for rows at least as likely as the threshold, -1 for anomalies."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Rows drawn from the Gaussian."""
        check_is_fitted(self)
        covariance = FORMS[self.covariance_type].whole(self.covariance_, len(self.mean_))
        return draw(self.mean_, covariance, int(check_count("n_samples", n_samples) or 0), generator(random_state))


# --- forms of the covariance ------------------------------------------------------------------------------------------


class Form:
    """A form of the covariance: what is kept of a scatter matrix, and the matrix that this stands for.

    Variances are never below ``least``, those of the columns times the floor. Among covariances that obey this, the
    one that is kept is the most likely.
    """

    def covariance(self, scatter: Array, least: Array) -> Any:
        """What is kept."""
        raise NotImplementedError

    def whole(self, kept: Any, width: int) -> Array:
        """The matrix, d x d."""
        raise NotImplementedError

    def parameters(self, width: int) -> int:
        """How many numbers are free."""
        raise NotImplementedError


class Full(Form):
    """All of the matrix."""

    def covariance(self, scatter, least):
        if not (least > 0).all():
            # Judged as correlations, so that the units of the columns do not matter.
            root = np.sqrt(scatter.diagonal())
            scaled = scatter / np.outer(root, root)
            if not interruptible_call(lambda: np.linalg.eigvalsh(scaled), len(root))[0] >= SINGULAR * len(root):
                raise Singular(
                    f"The full covariance of {len(root)} columns is singular: there are too few distinct rows, or "
                    "columns that depend on each other; use covariance_type='diagonal', or a reg_covar above 0, such "
                    "as reg_covar=1e-6."
                )
            return scatter
        root = np.sqrt(least)
        scaled = scatter / np.outer(root, root)
        values, vectors = interruptible_call(lambda: np.linalg.eigh(scaled), len(root))
        # Below the second bound eigenvalues are rounding, and the matrix would have no Cholesky factor.
        lowest = max(1.0, SINGULAR * len(root) * values[-1])
        if values[0] >= lowest:
            return scatter
        return (vectors * np.maximum(values, lowest)) @ vectors.T * np.outer(root, root)

    def whole(self, kept, width):
        return kept

    def parameters(self, width):
        return width * (width + 1) // 2


class Diagonal(Form):
    """The variances of the columns."""

    def covariance(self, scatter, least):
        return np.maximum(scatter.diagonal(), least)

    def whole(self, kept, width):
        return np.diag(kept)

    def parameters(self, width):
        return width


class Spherical(Form):
    """One variance: the mean of the columns'."""

    def covariance(self, scatter, least):
        return float(max(scatter.diagonal().mean(), least.mean()))

    def whole(self, kept, width):
        return kept * np.eye(width)

    def parameters(self, width):
        return 1


FORMS: dict[str, Form] = {"full": Full(), "tied": Full(), "diagonal": Diagonal(), "spherical": Spherical()}
FORMS |= {other: FORMS[ours] for other, ours in SPELLINGS["covariance_type"].items()}


def wrong_covariance(name: str, kept: Any, width: int) -> str | None:
    """What is wrong with a covariance of that form; None if nothing is."""
    shape = {"full": (width, width), "tied": (width, width), "diagonal": (width,), "spherical": ()}[
        spelled("covariance_type", name)
    ]
    if np.shape(kept) != shape:
        return f"covariance has not the shape of the form {name}"
    try:
        np.linalg.cholesky(FORMS[name].whole(kept, width))
    except np.linalg.LinAlgError:
        return "covariance is not positive definite"
    return None


def check_floor(reg_covar: Any, *, above: bool = False) -> None:
    """Raise for a least share of the variances that is negative, or so small that it is lost in rounding."""
    check_number("reg_covar", reg_covar, 0, above=above)
    if 0 < reg_covar < SINGULAR:
        raise EmpiriskError(
            f"reg_covar={reg_covar!r} is below {SINGULAR:g}, where variances are rounding; give at least that"
            f"{'' if above else ', or 0 for none'}."
        )


def find_form(name: Any, allowed: tuple[str, ...]) -> Form:
    """The form of that name."""
    if spelled("covariance_type", name) not in allowed:
        raise EmpiriskError(f"covariance_type={name!r} is not known; choose one of {list(allowed)}.")
    return FORMS[name]


# --- rows and densities -----------------------------------------------------------------------------------------------


#: Columns that vary by less are constant to a density: the squares of their differences are zero.
VANISHING = 1e-150


def check_rows(estimator: Any, X: Any, sample_weight: Any, again: bool = False) -> tuple[NDArray, Array]:
    """The rows that count, and their weights; refused where a density has no meaning, unless there is one already."""
    X = table_of_numbers(estimator, X, reset=not again)
    check_size("X", X)
    weights = check_weights(sample_weight, len(X))
    X, weights = X[np.flatnonzero(weights)], weights[weights > 0]
    if again:
        return X, weights
    if len(X) < 2:
        raise TooFewRows(f"A density needs more than one sample of positive weight, but X has n_samples={len(X)}.")
    constant = np.flatnonzero(np.subtract(X.max(axis=0), X.min(axis=0), dtype=np.float64) < VANISHING)
    if len(constant):
        raise Singular(
            f"Column {constant[0]} of X is constant, so that the density along it is not finite; drop "
            f"{'it' if len(constant) == 1 else f'the columns {constant.tolist()}'}."
        )
    return X, weights


def table_of_numbers(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows of floats, with as many columns as those of the fit; those on a device stay there."""
    held = rows_on_device(X)
    if held is None:
        return validate_data(estimator, X, dtype=FLOATS, reset=reset)
    count_columns(estimator, held, reset=reset)
    return held


def mean_and_scatter(X: Any, weights: Array) -> tuple[Array, Array]:
    """The weighted mean of the rows, and their covariance by maximum likelihood."""
    share = weights / weights.sum()
    mean = weighted_mean(X, share)
    if lie_on_device(X):
        return mean, design_of(X).shifted(mean).gram(share)

    def run(rows: slice) -> Array:
        centred = (X[rows] - mean).astype(np.float64, copy=False)
        return centred.T @ (share[rows, None] * centred)

    return mean, sum_of_blocks(run, len(X), 8 * X.shape[1])


def least_variances(X: Any, weights: Array, reg_covar: float) -> Array:
    """The floor in the units of every column: its variance times ``reg_covar``."""
    share = weights / weights.sum()
    mean = weighted_mean(X, share)
    if lie_on_device(X):
        return reg_covar * design_of(X).shifted(mean).squared_columns(share)

    def run(rows: slice) -> Array:
        return share[rows] @ (X[rows] - mean).astype(np.float64, copy=False) ** 2

    return reg_covar * sum_of_blocks(run, len(X), 8 * X.shape[1])


def weighted_mean(X: Any, share: Array) -> Array:
    """The mean of the rows, of which each has a share."""
    if lie_on_device(X):
        return design_of(X).tdot(share)
    return sum_of_blocks(lambda rows: share[rows] @ X[rows], len(X), 8 * X.shape[1])


def inverse_roots(covariances: Array) -> tuple[list[Array], list[float]]:
    """Matrices R with S^-1 = R R' for every S, and log|S| / 2; the units of the columns do not matter to either."""
    inverses, halves = [], []
    for covariance in covariances:
        check_stop()
        factor = np.linalg.cholesky(covariance)
        halves.append(float(np.log(factor.diagonal()).sum()))
        invert_triangle(factor)
        inverses.append(factor.T)
    return inverses, halves


@single_threaded_blas()
def log_densities(X: Any, means: Array, covariances: Array) -> Array:
    """log p_k(x) of every row under every Gaussian, n x k, from the differences to the means."""
    inverses, halves = inverse_roots(covariances)
    out = np.empty((len(X), len(means)))
    if lie_on_device(X):
        for k, (mean, inverse, half) in enumerate(zip(means, inverses, halves, strict=True)):
            check_stop()
            out[:, k] = -0.5 * (X.squares_after(mean, inverse) + len(mean) * LOG_TWO_PI) - half
        return out

    def run(rows: slice) -> None:
        for k, (mean, inverse, half) in enumerate(zip(means, inverses, halves, strict=True)):
            check_stop()
            scaled = (X[rows] - mean) @ inverse
            out[rows, k] = -0.5 * (np.einsum("ij,ij->i", scaled, scaled) + len(mean) * LOG_TWO_PI) - half

    over_rows(run, len(X), 8 * X.shape[1])
    return out


def lower_quantile(values: Array, weights: Array, share: float) -> float:
    """The smallest value with at least that share of the weight at or below it."""
    if (weights == weights[0]).all():  # without sorting
        count = len(values)
        place = int(np.searchsorted(np.arange(1, count + 1) / count, share))
        return float(np.partition(values, place)[place])
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


@single_threaded_blas()
def draw(mean: Array, covariance: Array, count: int, random: np.random.Generator) -> Array:
    """Rows of a Gaussian."""
    return mean + random.normal(size=(count, len(mean))) @ np.linalg.cholesky(covariance).T
