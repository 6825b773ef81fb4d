"""Clusters and densities as graphs."""

import numpy as np

from empirisk.clusters.density import FORMS, LOG_TWO_PI, GaussianDensity, inverse_roots
from empirisk.clusters.kmeans import ROUNDING, KMeans
from empirisk.clusters.mixture import GaussianMixture
from empirisk.exports.families.kernels import diagonal
from empirisk.exports.families.maps import mapped, products
from empirisk.exports.registry import Answers, told_by, write_answers
from empirisk.exports.tensor import Symbolic, log_sum_exp
from empirisk.linalg.namespace import summed_gaps


@write_answers.register
def _(machine: KMeans, x: Symbolic) -> Answers:
    if machine.squares_of_means_ is None:
        squares = summed_gaps(mapped(machine, x), machine.cluster_centers_, 2)
        return {"predict": squares.argmin(axis=1), "transform": np.sqrt(squares)}
    gaps = machine.squares_of_means_ - 2.0 * products(machine, x)
    own = diagonal(machine._fitted_kernel, x)
    squares = gaps + own
    near = squares <= ROUNDING * (own + machine.squares_of_means_)
    return {"predict": gaps.argmin(axis=1), "transform": np.sqrt(np.where(near, 0.0, squares))}


def _log_densities(x: Symbolic, means: np.ndarray, covariances: np.ndarray) -> Symbolic:
    """log p_k(x) of every row under every Gaussian."""
    found = []
    for mean, inverse, half in zip(means, *inverse_roots(covariances), strict=True):
        scaled = (x - mean) @ inverse
        found.append(-0.5 * ((scaled * scaled).sum(axis=1, keepdims=True) + len(mean) * LOG_TWO_PI) - half)
    return np.concatenate(found, axis=1)


@write_answers.register
def _(machine: GaussianMixture, x: Symbolic) -> Answers:
    shares = _log_densities(x, machine.means_, machine.whole_covariances()) + np.log(machine.weights_)
    total = log_sum_exp(shares, 1, keepdims=True)
    p = np.exp(shares - total)
    return {"predict": p.argmax(axis=1), "predict_proba": p, "score_samples": total[:, 0]}


@write_answers.register
def _(machine: GaussianDensity, x: Symbolic) -> Answers:
    covariance = FORMS[machine.covariance_type].whole(machine.covariance_, x.shape[1])
    density = _log_densities(x, machine.mean_[None], covariance[None])[:, 0]
    return told_by(machine, "predict decision_function score_samples", score_samples=density)
