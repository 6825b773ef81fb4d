"""Principal components as a Gaussian density (Tipping and Bishop): what was left out is noise of one variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from empirisk.contract.outputs import in_single_precision
from empirisk.errors import OutOfRange, Unsuitable
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.foreign import in_its_kind
from empirisk.linalg.threads import single_threaded_blas
from empirisk.validation import available_if

Array = NDArray[np.float64]
#: The square of a distance from the directions with variance, in units of the largest variance, that is no rounding.
OFF = 1e-8


def _has_density(machine: Any) -> bool:
    """Whether phi is explicit: behind a kernel there is no density of rows."""
    if machine.features is None or hasattr(machine.features, "transform"):
        return True
    raise AttributeError(f"there is no density behind features={machine.features!r}, which is a kernel.")


class ProbabilisticPCA:
    """The density that goes with directions and their variances; of explicit features alone."""

    features: Any
    components_: NDArray[Any]
    mean_: NDArray[Any]
    explained_variance_: Array
    explained_variance_ratio_: Array
    n_components_: int

    @property
    def noise_variance_(self) -> float:
        """The mean variance along the directions that were left out, of probabilistic PCA (Tipping and Bishop)."""
        self._require_explicit("noise_variance_")
        left = min(self._rank_limit(), self.components_.shape[1]) - self.n_components_
        ratio = self.explained_variance_ratio_
        whole = float(self.explained_variance_[0] / ratio[0]) if ratio[:1].any() else 0.0
        return max(whole - float(self.explained_variance_.sum()), 0.0) / left if left > 0 else 0.0

    @single_threaded_blas()
    def get_covariance(self) -> Array:
        """The covariance of probabilistic PCA: V' (L - s I) V + s I with the variances L and ``noise_variance_`` s."""
        noise = self.noise_variance_
        components = self.components_.astype(np.float64)
        inner = np.maximum(self.explained_variance_ - noise, 0.0)
        return (components.T * inner) @ components + noise * np.eye(components.shape[1])

    @single_threaded_blas()
    def get_precision(self) -> Array:
        """The inverse of `get_covariance`; the pseudoinverse where it has none."""
        return np.asarray(np.linalg.pinv(self.get_covariance(), hermitian=True), dtype=np.float64)

    @available_if(_has_density)
    @in_its_kind
    @single_threaded_blas()
    @in_single_precision
    def score_samples(self, X: ArrayLike) -> Array:
        """log p(x) of each row under the Gaussian of probabilistic PCA.

        Where the rows did not vary along all columns it is the density on the directions along which they did, and
        rows off these have none: -inf.
        """
        self._require_explicit("score_samples")
        phi = self._mapped(X)  # type: ignore[attr-defined]
        covariance = self.get_covariance()
        if not np.isfinite(covariance).all():
            raise OutOfRange("the components are too large for a density; fit again.")
        values, vectors = np.linalg.eigh(covariance)
        if not values[-1] > 0:
            raise Unsuitable("the rows do not vary, so they have no density; give rows that differ.")
        some = values > np.finfo(float).eps * len(values) * values[-1]
        distances = self._squares_along(phi, vectors[:, some] / np.sqrt(values[some]))
        found = -0.5 * (distances + some.sum() * np.log(2 * np.pi) + np.log(values[some]).sum())
        return np.where(self._squares_along(phi, vectors[:, ~some]) > OFF * values[-1], -np.inf, found)

    def _squares_along(self, phi: Any, directions: Array) -> Array:
        """The squared lengths of rows less their mean along some directions."""
        if lie_on_device(phi):
            return phi.squares_after(self.mean_, directions)
        rows = np.asarray(phi.toarray() if sparse.issparse(phi) else phi, dtype=np.float64) - self.mean_
        return np.sum((rows @ directions) ** 2, axis=1)

    @available_if(_has_density)
    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def _require_explicit(self, what: str) -> None:
        check_is_fitted(self)
        if hasattr(self, "dual_coef_"):
            raise AttributeError(f"{what} needs explicit features, and {self.features!r} is a kernel.")

    def _rank_limit(self) -> int:
        """How many directions with variance the rows can have."""
        return int(getattr(self, "n_samples_", self.components_.shape[1]))  # files of before 0.2 have none
