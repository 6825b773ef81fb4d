"""One list of instances for every generic test: what is added here is differentiated, conjugated, cloned and solved.

Beside them stand the formulas that the tests compare with, by the name of the part.
"""

import numpy as np

from empirisk.losses import (
    Absolute,
    CrammerSinger,
    EpsilonInsensitive,
    Exponential,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Perceptron,
    Poisson,
    Power,
    Quantile,
    SoftCrammerSinger,
    SoftHinge,
    Softmax,
    Squared,
    SquaredAbsolute,
    SquaredHinge,
    Tweedie,
    ZeroOne,
)
from empirisk.penalties import L1, L2, ElasticNet, GroupL1, NoPenalty, Positive

MARGIN_LOSSES = [
    ZeroOne(),
    Perceptron(),
    Hinge(),
    SquaredHinge(),
    Logistic(),
    Exponential(),
    SoftHinge(),
    SoftHinge(margin=0.5, temperature=0.3),
    SoftHinge(margin=-1.0, temperature=2.0),
]
RESIDUAL_LOSSES = [
    Squared(),
    Absolute(),
    Power(),
    Power(1.0),
    Power(1.3),
    Power(2.0),
    Power(3.5),
    EpsilonInsensitive(),
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.7),
    SquaredAbsolute(),
    SquaredAbsolute(0.0),
    SquaredAbsolute(2.5),
    Huber(),
    Quantile(0.125),
    Quantile(),
    Quantile(0.85),
    Huber(0.3),
]
DEVIANCES = [Poisson(), Gamma(), Tweedie(), Tweedie(1.2), Tweedie(1.9), Tweedie(1.0), Tweedie(2.0)]
SOFT = [SoftCrammerSinger(), SoftCrammerSinger(0.5, 0.3), SoftCrammerSinger(0.0, 2.0)]
JOINT_LOSSES = [Softmax(), CrammerSinger(), *SOFT]
LOSSES = MARGIN_LOSSES + RESIDUAL_LOSSES + DEVIANCES + JOINT_LOSSES

NORMS = [NoPenalty(), L2(), L1(), ElasticNet(), ElasticNet(0.0), ElasticNet(0.9), ElasticNet(1.0)]
GROUPS = [GroupL1(), GroupL1(2), GroupL1([0, 1, 0, 2, 2, 0])]
POSITIVE = [Positive(), Positive("l1"), Positive("elastic_net")]
PENALTIES = [
    *NORMS,
    *GROUPS,
    *POSITIVE,
]

#: Losses of z, the margin t = y f or the residual e = f - y, in extended precision.
PHI = {
    "zero_one": lambda loss, t: 1.0 * (t <= 0),
    "perceptron": lambda loss, t: np.maximum(0, -t),
    "hinge": lambda loss, t: np.maximum(0, 1 - t),
    "squared_hinge": lambda loss, t: np.maximum(0, 1 - t) ** 2,
    "logistic": lambda loss, t: np.log1p(np.exp(-t)),
    "exponential": lambda loss, t: np.exp(-t),
    "soft_hinge": lambda loss, t: loss.temperature * np.log1p(np.exp((loss.margin - t) / loss.temperature)),
    "squared": lambda loss, e: e**2,
    "absolute": lambda loss, e: np.abs(e),
    "power": lambda loss, e: np.abs(e) ** loss.p,
    "epsilon_insensitive": lambda loss, e: np.maximum(0, np.abs(e) - loss.epsilon),
    "squared_absolute": lambda loss, e: e**2 + loss.weight * np.abs(e),
    "quantile": lambda loss, e: np.where(e < 0, -loss.level * e, (1 - loss.level) * e),
    "huber": lambda loss, e: np.where(np.abs(e) <= loss.delta, e**2, 2 * loss.delta * np.abs(e) - loss.delta**2),
}

SMOOTH_SLOPE = {
    "squared_hinge": lambda loss, t: -2 * np.maximum(0, 1 - t),
    "logistic": lambda loss, t: -1 / (1 + np.exp(t)),
    "exponential": lambda loss, t: -np.exp(-t),
    "soft_hinge": lambda loss, t: -1 / (1 + np.exp((t - loss.margin) / loss.temperature)),
    "squared": lambda loss, e: 2 * e,
    "squared_absolute": lambda loss, e: 2 * e,
    "huber": lambda loss, e: 2 * np.clip(e, -loss.delta, loss.delta),
    "power": lambda loss, e: 0 * e if loss.p == 1 else loss.p * np.sign(e) * np.abs(e) ** (loss.p - 1),
}

#: The same for a general convex solver, CVXPY.
AS_CVXPY = {
    "perceptron": lambda cp, loss, t: cp.pos(-t),
    "hinge": lambda cp, loss, t: cp.pos(1 - t),
    "squared_hinge": lambda cp, loss, t: cp.square(cp.pos(1 - t)),
    "exponential": lambda cp, loss, t: cp.exp(-t),
    "logistic": lambda cp, loss, t: cp.logistic(-t),
    "soft_hinge": lambda cp, loss, t: loss.temperature * cp.logistic((loss.margin - t) / loss.temperature),
    "squared": lambda cp, loss, e: cp.square(e),
    "absolute": lambda cp, loss, e: cp.abs(e),
    "epsilon_insensitive": lambda cp, loss, e: cp.pos(cp.abs(e) - loss.epsilon),
    "squared_absolute": lambda cp, loss, e: cp.square(e) + loss.weight * cp.abs(e),
    "power": lambda cp, loss, e: cp.power(cp.abs(e), loss.p),
    "quantile": lambda cp, loss, e: cp.maximum(-loss.level * e, (1 - loss.level) * e),
    "huber": lambda cp, loss, e: cp.huber(e, loss.delta),
}

#: Separable penalties of one weight.
OF_ONE_WEIGHT = {
    "none": lambda penalty, w: 0.0,
    "l1": lambda penalty, w: abs(w),
    "l2": lambda penalty, w: w**2 / 2,
    "positive": lambda penalty, w: penalty.l1 * w + penalty.l2 * w**2 / 2 if w >= 0 else np.inf,
    "elastic_net": lambda penalty, w: penalty.l1_ratio * abs(w) + (1 - penalty.l1_ratio) / 2 * w**2,
}
