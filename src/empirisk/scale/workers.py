"""Fits on the workers of a Dask cluster: folds, settings and contestants go there as tasks, and what they found comes
back. A worker that leaves costs the time of what it was doing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import sklearn
from distributed import Client, Future, LocalCluster

from empirisk.errors import EmpiriskError
from empirisk.linalg.threads import single_threaded_blas
from empirisk.scale.cluster import LOOK_SECONDS, forgive, outcome
from empirisk.scale.dask_tables import current_client
from empirisk.settings import config, settings
from empirisk.stop import check_stop

#: Seconds until a scheduler must have answered.
CONNECT_SECONDS = 10

#: The connections of this process, by the setting that asked for them.
_clients: dict[str, Client] = {}


def client_of(cluster: str) -> Client:
    """The connection to a cluster: "current", "local", or the address of a scheduler."""
    if cluster == "current":
        return current_client()
    known = _clients.get(cluster)
    if known is not None and known.status == "running":
        return known
    try:
        if cluster == "local":
            options: dict[str, Any] = {"n_workers": settings().threads, "dashboard_address": ":0"}
            found = Client(LocalCluster(threads_per_worker=1, **options))
        else:
            found = Client(cluster, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise EmpiriskError(
            f"cluster={cluster!r} gives no scheduler that answers ({error}); start one with the command dask "
            "scheduler, and name its address as tcp://host:8786."
        ) from error
    forgive(found)
    _clients[cluster] = found
    return found


def close(cluster: str) -> None:
    """Leave a cluster, and end one that was started here."""
    found = _clients.pop(cluster, None)
    if found is not None:
        started = found.cluster
        found.close()
        if started is not None:
            started.close()


class WorkerCalls:
    """Calls of one function on the workers of the configured cluster, each with one thread.

    The function goes there once, as the result of a task, and so do the tables that it holds.
    """

    def __init__(self, function: Callable[..., Any]):
        self.client = client_of(settings().cluster)
        self._function = self.client.submit(_Held, function, pure=False)
        self._options = {"memory": settings().memory, "options": sklearn.get_config()}

    def submit(self, *arguments: Any) -> Future:
        """The future of function(*arguments)."""
        return self.client.submit(call, self._function, *arguments, **self._options, pure=False)

    def results(self, futures: Sequence[Future], stop: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, Any]]:
        """The numbers of futures and their results, as they come; where the work is stopped, all are cancelled."""
        done: SimpleQueue[int] = SimpleQueue()
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: done.put(number))
        waiting = len(futures)
        try:
            while waiting:
                check_stop()
                if stop():
                    raise KeyboardInterrupt
                try:
                    number = done.get(timeout=LOOK_SECONDS)
                except Empty:
                    continue
                waiting -= 1
                yield number, outcome(futures[number])
        finally:
            if waiting:
                self.client.cancel(list(futures))


class _Held:
    """A function, as what a task gives: a task must not be mistaken for it."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function


def call(held: _Held, *arguments: Any, memory: int, options: dict[str, Any]) -> Any:
    """The call, on a worker."""
    with config(threads=1, memory=memory, cluster="none"), sklearn.config_context(**options), single_threaded_blas():
        return held.function(*arguments)


def calls_in_order(
    function: Callable[[Any], Any], tasks: Sequence[Any], note: Callable[[Any, Any], None] | None = None
) -> list[Any]:
    """[function(task) for task in tasks] on the workers; ``note(task, result)`` hears of each as it comes."""
    calls, found = WorkerCalls(function), [None] * len(tasks)
    stop = settings().stop or (lambda: False)
    for number, result in calls.results([calls.submit(task) for task in tasks], stop):
        found[number] = result
        if note is not None:
            note(tasks[number], result)
    return found
