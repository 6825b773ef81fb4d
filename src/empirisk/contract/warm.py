"""Ensembles that go on: what a fit with ``warm_start=True`` keeps for the next one, beside the machine."""

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import joblib

from empirisk.contract.arguments import check_flag

Work = TypeVar("Work")

#: Parameters that may change between two fits of which the second goes on.
FREE = ("n_estimators", "max_time", "n_jobs", "warm_start")

_KEPT: WeakKeyDictionary[Any, tuple[str, int, Any]] = WeakKeyDictionary()


class WarmStart(Generic[Work]):
    """The work of the last fit of an ensemble, to which this one adds members.

    The rows and all parameters but the number of members must be those of the last fit, and members may only be added:
    else all members are fitted anew. So `fit` gives the same machine as without ``warm_start``, in less time.

    Parameters
    ----------
    machine : estimator
        With parameters ``warm_start`` and ``n_estimators``.
    data : dict
        ``X``, ``y`` and ``metadata`` as the user gave them.

    Attributes
    ----------
    work : object or None
        What the last fit has kept.
    """

    def __init__(self, machine: Any, data: dict[str, Any]):
        check_flag("warm_start", machine.warm_start)
        self._machine, self.work = machine, None
        fingerprint, count, work = _KEPT.pop(machine, ("", 0, None))
        if machine.warm_start:
            parameters = {name: value for name, value in machine.get_params().items() if name not in FREE}
            self._fingerprint = str(joblib.hash((parameters, data)))
            if fingerprint == self._fingerprint and count <= machine.n_estimators:
                self.work: Work | None = work

    def keep(self, work: Work, whole: bool) -> None:
        """Keep work for the next fit, where it is asked for and came to its end."""
        if self._machine.warm_start and whole:
            _KEPT[self._machine] = self._fingerprint, self._machine.n_estimators, work
