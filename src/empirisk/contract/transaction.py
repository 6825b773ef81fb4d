"""A fit that fails leaves the machine as it was; one that succeeds has the same bits on any number of threads."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from empirisk.errors import EmpiriskError
from empirisk.linalg.threads import single_threaded_blas

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(fit: Method) -> Method:
    """Method decorator: if ``fit`` raises, every attribute it set is put back; BLAS keeps to one thread."""

    @wraps(fit)
    def guarded(machine, *args, **kwargs):
        before = dict(vars(machine))
        try:
            with single_threaded_blas():
                return fit(machine, *args, **kwargs)
        except BaseException as error:
            # scikit-learn closes its callbacks after us, from attributes of its own.
            running = {name: value for name, value in vars(machine).items() if "callback" in name}
            vars(machine).clear()
            vars(machine).update(before | running)
            if isinstance(error, OverflowError):
                raise EmpiriskError(
                    f"{_too_large(machine)} is, or holds, a whole number that is too large to compute with; "
                    "give smaller ones."
                ) from error
            raise

    return guarded  # type: ignore[return-value]


def _too_large(machine: Any) -> str:
    """The parameters that hold numbers beyond 64 bits; else it was the data."""
    return " or ".join(name for name, value in machine.get_params().items() if _is_large(value)) or "an array of fit"


def _is_large(value: Any) -> bool:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(map(_is_large, held)) or (isinstance(value, int) and abs(value) >= 2**63)
