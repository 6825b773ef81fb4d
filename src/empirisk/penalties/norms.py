"""The penalties of the catalogue."""

from numbers import Real

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.penalties.base import Penalty


class NoPenalty(Penalty):
    """R(w) = 0; also asked for by the name ``"none"``.

    >>> NoPenalty().value(np.array([1.0, -2.0]))
    0.0
    """

    @classmethod
    def name(cls) -> str:
        """none: the word a user writes."""
        return "none"


class L2(Penalty):
    """R(w) = 1/2 |w|^2.

    >>> L2().value(np.array([1.0, -2.0]))
    2.5
    """

    l2 = 1.0


class L1(Penalty):
    """R(w) = |w|_1.

    >>> L1().value(np.array([1.0, -2.0]))
    3.0
    """

    l1 = 1.0


class ElasticNet(Penalty):
    """R(w) = ratio |w|_1 + (1 - ratio)/2 |w|^2.

    Parameters
    ----------
    ratio : float, default 0.5
        Between 0 (the l2 penalty) and 1 (the l1 penalty).

    >>> ElasticNet(ratio=0.5).value(np.array([1.0, -2.0]))
    2.75
    """

    _state = state.State(ratio=state.number(0, 1))

    def __init__(self, ratio: float = 0.5):
        self.ratio = ratio

    @property
    def l1(self) -> float:
        """The ratio."""
        if not (isinstance(self.ratio, Real) and 0 <= self.ratio <= 1):
            raise EmpiriskError(
                f"ratio={self.ratio!r} of ElasticNet must be a number between 0 and 1; 0 is the l2 penalty, 1 the l1."
            )
        return float(self.ratio)

    @property
    def l2(self) -> float:
        """1 - ratio."""
        return 1.0 - self.l1
