"""Fits of a contest on the workers of a cluster: the one that is played now, and those that are likely to come next."""

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.league.contest.schedule import Play
from empirisk.league.contest.store import settings_key
from empirisk.league.rows.encodings import encoding_of
from empirisk.scale.workers import WorkerCalls

#: Fits that are sent out ahead, for each worker.
AHEAD = 2


class FitsAhead:
    """Fits machines on the workers of the configured cluster.

    Plays come one after the other, each by the results of those before. So that more than one worker has something to
    do, fits that are likely to be asked for are sent out before; those that nobody asks for are cancelled at the end.

    Parameters
    ----------
    coming : callable
        Plays that may be asked for next, the most likely first.
    stop : callable
        Whether the user asks for an end.
    """

    def __init__(self, coming: Callable[[], Iterable[Play]], stop: Callable[[], bool]):
        self._coming, self._stop, self._calls = coming, stop, WorkerCalls(fit_there)
        self._fits: dict[tuple, Any] = {}
        self._tables: dict[tuple, Any] = {}

    def fitted(self, play: Play, machine: Any) -> tuple[Any, float]:
        """The machine, fitted to the training rows of the play, and the seconds that it took."""
        key = self._key(play)
        # A machine with a limit of time is another one than that which was sent out ahead.
        future = self._fits.pop(key, None) if not play.limited else None
        future = self._submit(play, machine) if future is None else future
        if not play.limited:
            self._send_ahead()
        [(_, found)] = self._calls.results([future], self._stop)
        return found

    def close(self) -> None:
        """Cancel what nobody waits for, and free the tables."""
        self._calls.client.cancel([*self._fits.values(), *self._tables.values()])
        self._fits, self._tables = {}, {}

    def _send_ahead(self) -> None:
        most = AHEAD * len(self._calls.client.scheduler_info(n_workers=-1)["workers"])
        for other in self._coming():
            if len(self._fits) >= most:
                return
            key = self._key(other)
            if key not in self._fits:
                self._fits[key] = self._submit(other, clone(other.setting))

    def _submit(self, play: Play, machine: Any) -> Any:
        encoding = encoding_of(play.setting)
        place = id(play.folds), play.fold, encoding
        if place not in self._tables:
            X, y, _, _ = play.folds.fold(play.fold, encoding)
            self._tables[place] = self._calls.client.submit(_Rows, X, y, pure=False)
        return self._calls.submit(machine, self._tables[place])

    def _key(self, play: Play) -> tuple:
        return settings_key(play.result.name, play.setting), play.fold, id(play.folds)


class _Rows:
    """The training rows of a fold, as what a task gives."""

    def __init__(self, X: Any, y: NDArray):
        self.X, self.y = X, y


def fit_there(machine: Any, rows: _Rows) -> tuple[Any, float]:
    """Fit a machine on a worker, and say how long it took."""
    begin = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):  # what did not converge is said by its certificate
        machine.fit(rows.X, rows.y)
    return machine, time.perf_counter() - begin
