"""Stopping inside an iteration that may take long."""

import time

from empirisk.certificate import Status
from empirisk.solvers.base import Watch


def must_stop(watch: Watch) -> bool:
    """Whether the user or the clock says stop; the status then says which."""
    if watch.interrupted():
        watch.status = Status.INTERRUPTED
    elif time.perf_counter() >= watch.deadline:
        watch.status = Status.TIME
    return bool(watch.status)
