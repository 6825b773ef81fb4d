"""Penalties: what large weights cost."""

from empirisk.parts import by_name, resolve
from empirisk.penalties.base import Penalty
from empirisk.penalties.groups import GroupL1
from empirisk.penalties.norms import L1, L2, ElasticNet, NoPenalty, Positive

__all__ = [
    "L1",
    "L2",
    "ElasticNet",
    "GroupL1",
    "NoPenalty",
    "Penalty",
    "Positive",
    "find",
]

NAMES = by_name(Penalty, globals())


def find(penalty: str | Penalty | None) -> Penalty:
    """The penalty that an object is or a name stands for; None is no penalty.

    >>> find("l1")
    L1()
    """
    return resolve("none" if penalty is None else penalty, NAMES, "penalty", Penalty)
