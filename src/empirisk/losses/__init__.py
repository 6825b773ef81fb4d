"""Losses: how bad a prediction is. Each states its value, derivatives, conjugate, prox and link."""

from empirisk.losses.base import Loss, Ramp
from empirisk.losses.deviance import Gamma, Poisson, Tweedie
from empirisk.losses.margin import Exponential, Hinge, Logistic, Perceptron, SoftHinge, SquaredHinge, ZeroOne
from empirisk.losses.multiclass import CrammerSinger, SoftCrammerSinger, Softmax
from empirisk.losses.regression import Absolute, EpsilonInsensitive, Huber, Power, Quantile, Squared, SquaredAbsolute
from empirisk.parts import by_name, resolve

__all__ = [
    "Absolute",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Exponential",
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Perceptron",
    "Poisson",
    "Power",
    "Quantile",
    "Ramp",
    "SoftCrammerSinger",
    "SoftHinge",
    "Softmax",
    "Squared",
    "SquaredAbsolute",
    "SquaredHinge",
    "Tweedie",
    "ZeroOne",
    "find",
]

NAMES = by_name(Loss, globals())


def find(loss: str | Loss) -> Loss:
    """The loss that an object is or a name stands for.

    >>> find("hinge")
    Hinge()
    """
    return resolve(loss, NAMES, "loss", Loss)
