"""A fit that fails leaves the machine as it was; one that succeeds has the same bits on any number of threads."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from empirisk.linalg.threads import single_threaded_blas

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(fit: Method) -> Method:
    """Method decorator: if ``fit`` raises, every attribute it set is put back; BLAS keeps to one thread."""

    @wraps(fit)
    def guarded(machine, *args, **kwargs):
        before = dict(vars(machine))
        try:
            with single_threaded_blas():  # as a decorator it would be one caller more, where warnings point at the user
                return fit(machine, *args, **kwargs)
        except BaseException:
            # scikit-learn closes its callbacks after us, from attributes of its own.
            running = {name: value for name, value in vars(machine).items() if "callback" in name}
            vars(machine).clear()
            vars(machine).update(before | running)
            raise

    return guarded  # type: ignore[return-value]
