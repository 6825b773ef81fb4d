"""Other people's scales of regularisation, to and from ours:  R(w) + C * sum_i c_i loss(y_i, f(x_i)).

`C` multiplies the *sum* of losses, and no loss hides a factor 1/2 or 1/n. scikit-learn's ``LogisticRegression``,
``LinearSVC``, ``LinearSVR``, ``SVC`` and ``SVR`` use the same C, so they need no conversion. Where a scale averages
over the samples, ``n`` is their number, or the sum of ``sample_weight`` where weights are given.
"""

import math

from empirisk.errors import EmpiriskError


def _positive(value: float, argument: str) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise EmpiriskError(
            f"{argument}={value!r} must be a positive finite number; penalty='none' fits without a penalty."
        )
    return float(value)


def _count(n: float) -> float:
    if not (n > 0 and math.isfinite(n)):
        raise EmpiriskError(f"n={n!r} must be positive: the number of samples, or the sum of their weights.")
    return float(n)


def _ratio(ratio: float, argument: str) -> float:
    if not 0 <= ratio <= 1:
        raise EmpiriskError(f"{argument}={ratio!r} must lie between 0 (l2 alone) and 1 (l1 alone).")
    return float(ratio)


def from_lambda(strength: float, n: float) -> float:
    """C = 1 / (strength n), from  strength/2 |w|^2 + 1/n sum loss  or  strength |w|_1 + 1/n sum loss.

    >>> from_lambda(0.1, n=50)
    0.2
    """
    return 1 / (_positive(strength, "strength") * _count(n))


def to_lambda(C: float, n: float) -> float:
    """lambda = 1 / (C n), for  lambda/2 |w|^2 + 1/n sum loss  or  lambda |w|_1 + 1/n sum loss.

    >>> to_lambda(0.2, n=50)
    0.1
    """
    return 1 / (_positive(C, "C") * _count(n))


def from_lambda_without_half(strength: float, n: float) -> float:
    """C = 1 / (2 strength n), from  strength |w|^2 + 1/n sum loss.

    >>> from_lambda_without_half(0.1, n=50)
    0.1
    """
    return 1 / (2 * _positive(strength, "strength") * _count(n))


def to_lambda_without_half(C: float, n: float) -> float:
    """lambda = 1 / (2 C n), for  lambda |w|^2 + 1/n sum loss.

    >>> to_lambda_without_half(0.1, n=50)
    0.1
    """
    return 1 / (2 * _count(n) * _positive(C, "C"))


def from_ridge(alpha: float) -> float:
    """C = 1 / (2 alpha), from scikit-learn's ``Ridge(alpha)``:  alpha |w|^2 + sum r^2.

    >>> from_ridge(2.0)
    0.25
    """
    return 1 / (2 * _positive(alpha, "alpha"))


def to_ridge(C: float) -> float:
    """alpha = 1 / (2 C), for scikit-learn's ``Ridge(alpha)``:  alpha |w|^2 + sum r^2.

    >>> to_ridge(0.25)
    2.0
    """
    return 1 / (2 * _positive(C, "C"))


def from_lasso(alpha: float, n: float) -> float:
    """C = 1 / (2 n alpha), from scikit-learn's ``Lasso(alpha)``:  alpha |w|_1 + 1/(2n) sum r^2.

    ``SGDRegressor(loss="squared_error", alpha=...)`` halves its squares too, so this is also its scale.

    >>> from_lasso(0.1, n=50)
    0.1
    """
    return 1 / (2 * _count(n) * _positive(alpha, "alpha"))


def to_lasso(C: float, n: float) -> float:
    """alpha = 1 / (2 n C), for scikit-learn's ``Lasso(alpha)``:  alpha |w|_1 + 1/(2n) sum r^2.

    >>> to_lasso(0.1, n=50)
    0.1
    """
    return 1 / (2 * _count(n) * _positive(C, "C"))


def from_elastic_net(alpha: float, l1_ratio: float, n: float) -> tuple[float, float]:
    """C = 1 / (2 n alpha) and l1_ratio, from scikit-learn's ``ElasticNet(alpha, l1_ratio)``.

    Its objective is  alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2) + 1/(2n) sum r^2.

    >>> from_elastic_net(0.1, l1_ratio=0.7, n=50)
    (0.1, 0.7)
    """
    return from_lasso(alpha, n), _ratio(l1_ratio, "l1_ratio")


def to_elastic_net(C: float, l1_ratio: float, n: float) -> tuple[float, float]:
    """alpha = 1 / (2 n C) and l1_ratio, for scikit-learn's ``ElasticNet(alpha, l1_ratio)``.

    >>> to_elastic_net(0.1, l1_ratio=0.7, n=50)
    (0.1, 0.7)
    """
    return to_lasso(C, n), _ratio(l1_ratio, "l1_ratio")


def from_glm(alpha: float, n: float) -> float:
    """C = 1 / (2 n alpha), from scikit-learn's ``PoissonRegressor(alpha)``:  alpha/2 |w|^2 + 1/(2n) sum deviance.

    ``GammaRegressor(alpha)`` and ``TweedieRegressor(power, alpha, link="log")`` have the same scale.

    >>> from_glm(0.1, n=50)
    0.1
    """
    return 1 / (2 * _count(n) * _positive(alpha, "alpha"))


def to_glm(C: float, n: float) -> float:
    """alpha = 1 / (2 n C), for scikit-learn's ``PoissonRegressor(alpha)``:  alpha/2 |w|^2 + 1/(2n) sum deviance.

    >>> to_glm(0.1, n=50)
    0.1
    """
    return 1 / (2 * _count(n) * _positive(C, "C"))


def from_sgd(alpha: float, n: float) -> float:
    """C = 1 / (n alpha), from scikit-learn's ``SGDClassifier(alpha)``:  alpha R(w) + 1/n sum loss.

    R(w) is 1/2 |w|^2, |w|_1 or their mixture, as here. For the squared error of ``SGDRegressor`` use `from_lasso`.

    >>> from_sgd(0.1, n=50)
    0.2
    """
    return 1 / (_positive(alpha, "alpha") * _count(n))


def to_sgd(C: float, n: float) -> float:
    """alpha = 1 / (n C), for scikit-learn's ``SGDClassifier(alpha)``:  alpha R(w) + 1/n sum loss.

    >>> to_sgd(0.2, n=50)
    0.1
    """
    return 1 / (_positive(C, "C") * _count(n))


def from_nu(nu: float, n: float) -> float:
    """C = 1 / (nu n), from the one-class SVM  1/2 |w|^2 - rho + 1/(nu n) sum max(0, rho - f(x)), nu in (0, 1].

    ``nu`` bounds the share of samples left outside.

    >>> from_nu(0.1, n=50)
    0.2
    """
    if not 0 < nu <= 1:
        raise EmpiriskError(f"nu={nu!r} must lie in (0, 1]: the share of samples that may be left outside.")
    return 1 / (nu * _count(n))


def to_nu(C: float, n: float) -> float:
    """nu = 1 / (C n), for the one-class SVM; C must be at least 1/n, where nu reaches 1.

    >>> to_nu(0.2, n=50)
    0.1
    """
    nu = 1 / (_positive(C, "C") * _count(n))
    if nu > 1 + 1e-12:  # the slack is for the rounding of C = 1/n itself
        raise EmpiriskError(f"C={C!r} of a one-class SVM must be at least 1/n = {1 / n:.3g}.")
    return min(nu, 1.0)
