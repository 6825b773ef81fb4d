"""One list of instances for every generic test: what is added here is differentiated, conjugated, cloned and solved."""

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
from empirisk.penalties import L1, L2, ElasticNet, GroupL1, NoPenalty

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
PENALTIES = NORMS + GROUPS
