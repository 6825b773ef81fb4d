"""A fit that fails leaves the machine as it was; one that succeeds has the same bits on any number of threads."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

from empirisk.errors import EmpiriskError
from empirisk.linalg.threads import single_threaded_blas
from empirisk.settings import CORES, config
from empirisk.state import restored
from empirisk.stop import keeping
from empirisk.validation import OF_WORDS

Method = TypeVar("Method", bound=Callable[..., Any])
#: What is said where pandas.NA is compared or made a number.
OF_PANDAS_NA = ("value of NA is ambiguous", "not 'NAType'")
#: What scikit-learn says of NaN among labels that are objects: of numbers it says whose they are.
OF_MISSING = "Input contains NaN"


def all_or_nothing(fit: Method) -> Method:
    """Method decorator: if ``fit`` raises, every attribute it set is put back; BLAS keeps to one thread.

    An interrupt is raised when the fit has brought its best point into place, which then stays.

    What an earlier fit has learned is forgotten first: with other parameters it may be what this one does not set.
    """
    return _guarded(fit, anew=True)


def continuing(partial_fit: Method) -> Method:
    """Method decorator: as `all_or_nothing`, but what was learned before is there to go on from."""
    return _guarded(partial_fit, anew=False)


def _guarded(fit: Method, anew: bool) -> Method:
    @wraps(fit)
    def guarded(machine, *args, **kwargs):
        try:
            with (
                keeping(type(machine).__name__, machine),
                restored(machine, anew),
                single_threaded_blas(),
                _jobs(machine),
            ):
                return fit(machine, *args, **kwargs)
        except BaseException as error:
            sentence = _sentence(machine, error)
            if sentence:
                raise EmpiriskError(sentence) from error
            raise

    return guarded  # type: ignore[return-value]


def _jobs(machine: Any) -> AbstractContextManager[Any]:
    """The number of threads that ``n_jobs`` of the machine asks for, where it has such a parameter: -1 is all."""
    count = getattr(machine, "n_jobs", None)
    if count is None:
        return nullcontext()
    if not isinstance(count, Integral) or isinstance(count, bool) or int(count) == 0:
        raise EmpiriskError(f"n_jobs={count!r} must be a number of threads, -1 for all, or None for er.config's.")
    return config(threads=int(count) if int(count) > 0 else max(1, CORES + 1 + int(count)))


def _sentence(machine: Any, error: BaseException) -> str:
    """What others say of numbers, words and missing values without a name for them, in words for the user."""
    if isinstance(error, OverflowError):
        return (
            f"{_too_large(machine)} is, or holds, a whole number that is too large to compute with; give smaller ones."
        )
    if isinstance(error, TypeError) and any(words in str(error) for words in OF_PANDAS_NA):
        return "X or y holds pandas.NA, which is neither a number nor a label; fill those places, or drop their rows."
    if isinstance(error, ValueError) and str(error) == OF_MISSING:
        return "y holds NaN where a label is missing; drop rows without a label."
    if isinstance(error, ValueError) and str(error).startswith(OF_WORDS):
        return f"X or y holds what is no number ({error}); encode words as numbers, or take a classifier for labels."
    return ""


def _too_large(machine: Any) -> str:
    """The parameters that hold numbers beyond 64 bits; else it was the data."""
    return " or ".join(name for name, value in machine.get_params().items() if _is_large(value)) or "an array of fit"


def _is_large(value: Any) -> bool:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(map(_is_large, held)) or (isinstance(value, int) and abs(value) >= 2**63)
