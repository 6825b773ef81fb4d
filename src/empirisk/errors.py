"""Errors a user can act on: each message says what was wrong, in which argument, and what to do."""

import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import chain, dropwhile
from types import FrameType, MappingProxyType
from typing import Any

from empirisk.messages import coded

__all__ = [
    "EmpiriskError",
    "Interrupted",
    "MissingExtra",
    "MissingValues",
    "NotAKernel",
    "NotLoaded",
    "NotSeparable",
    "NotWritten",
    "OneClass",
    "OutOfRange",
    "Singular",
    "TooFewRows",
    "TooLarge",
    "UnknownParameter",
    "Unsuitable",
]

#: Letters of what others wrote, and words of a list, that a sentence shows: it stays one sentence.
LETTERS, WORDS = 80, 8
#: The packages that may stand between a fit and the line that asked for it.
BETWEEN = ("empirisk", "sklearn", "numpy", "joblib", "contextlib", "threading")
#: The thread for which this one works.
working_for: ContextVar[int | None] = ContextVar("working_for", default=None)
#: The command, as it was typed into a shell; empty in Python.
typed: ContextVar[str] = ContextVar("typed", default="")
#: What options are called on a page, by their names; empty where there is none.
labels: ContextVar[Mapping[str, str]] = ContextVar("labels", default=MappingProxyType({}))


def option(name: str, value: Any = True) -> str:
    """An option as the user writes it where they are: ``--drop age`` in a shell, ``drop=['age']`` in Python.

    >>> option("types", {"zip": "category"}), option("balance")
    ("types={'zip': 'category'}", 'balance=True')
    """
    label = labels.get().get(name)
    if not label and not typed.get():
        return f"{name}={value!r}"
    entries = [f"{key}={item}" for key, item in value.items()] if isinstance(value, dict) else value
    text = ",".join(map(str, entries)) if isinstance(entries, list) else str(entries)
    if label:
        return f"“{label}”" if value is True else f"“{label}: {text}”"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {shlex.quote(text)}"


def listed(words: Any) -> str:
    """The first of some words, and how many more there are.

    >>> listed(range(10))
    '0, 1, 2, 3, 4, 5, 6, 7 and 2 more'
    """
    more = len(words) - WORDS
    return ", ".join(map(str, words[:WORDS])) + (f" and {more} more" if more > 0 else "")


def closest(name: Any, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that looks most like a misspelt one, None if none does; ``cutoff`` is difflib's.

    >>> closest("gausian", ["linear", "gaussian"])
    'gaussian'
    """
    from difflib import get_close_matches  # needed only where something is wrong

    return next(iter(get_close_matches(str(name), list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: Any, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The end of a sentence about a name that is not known: the one that was probably meant, or else what to do.

    >>> did_you_mean("hinje", ["hinge", "logistic"], "choose one of the losses.")
    "did you mean 'hinge'?"
    """
    close = closest(name, known, cutoff)
    return otherwise if close is None else f"did you mean {close!r}?"


def warn_unfinished(text: str, code: str) -> None:
    """A ``ConvergenceWarning`` that points at the line which asked for the fit, however far up it is.

    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_unfinished("it was cut; raise max_time.", "ER002")
    >>> str(caught[0].message)
    'it was cut; raise max_time. [ER002]'
    """
    from sklearn.exceptions import ConvergenceWarning  # errors alone load nothing

    _warn(coded(code, text), ConvergenceWarning)


def warn_deprecated(what: str, instead: str, until: str) -> None:
    """A ``FutureWarning`` about what works ``until`` a day, and then no more; `make version` refuses what is overdue.

    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_deprecated("voting='mean'", "voting='soft'", "2027-12-31")
    >>> str(caught[0].message)
    "voting='mean' is understood in versions until 2027-12-31; write voting='soft'. [ER010]"
    """
    _warn(coded("ER010", f"{what} is understood in versions until {until}; write {instead}."), FutureWarning)


def _warn(text: str, kind: type[Warning]) -> None:
    """A warning that points at the line of the user which led to it."""
    helped = sys._current_frames().get(working_for.get() or 0)
    # What the thread that is helped does meanwhile has not asked for this: its lines count from ours on.
    lines = chain(_frames(sys._getframe()), dropwhile(lambda frame: _package(frame) != "empirisk", _frames(helped)))
    asked = next((frame for frame in lines if _package(frame) not in BETWEEN), sys._getframe())
    module, seen = asked.f_globals.get("__name__"), asked.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, kind, asked.f_code.co_filename, asked.f_lineno, module, seen)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame, the one that called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).split(".")[0]


class EmpiriskError(ValueError):
    """Base of every error raised by Empirisk; a ``ValueError``, so scikit-learn tools treat it as bad input."""

    #: Of the page that explains it (`empirisk.messages`); a plain error says all in its sentence.
    code = ""

    def __str__(self) -> str:
        return coded(self.code, super().__str__())


class TooLarge(EmpiriskError):
    """The computation would need more memory than ``empirisk.config(memory=...)`` allows."""

    code = "ER011"


class NotSeparable(EmpiriskError):
    """A hard-margin machine was asked to separate classes that no hyperplane separates.

    Attributes
    ----------
    rows : ndarray of int
        Rows of the training data whose convex hulls meet: the evidence.
    """

    code = "ER012"

    def __init__(self, message: str, rows: Any = None):
        super().__init__(message)
        self.rows = rows


class NotAKernel(EmpiriskError):
    """A Gram matrix is not symmetric positive semidefinite."""

    code = "ER013"


class NotWritten(EmpiriskError):
    """A file could not be written: a full disk, a read-only folder, or another run that is writing it."""

    code = "ER014"


class Unsuitable(EmpiriskError):
    """Parts that have no meaning together: a loss, penalty, solver or feature map that do not fit."""

    code = "ER015"


class UnknownParameter(EmpiriskError, TypeError):
    """A constructor, or ``set_params``, was given a parameter that the estimator does not have."""

    code = "ER016"


class MissingExtra(EmpiriskError, ImportError):
    """A part of Empirisk needs packages that are not installed; the message names the line that installs them."""

    code = "ER017"


class OutOfRange(EmpiriskError):
    """Numbers so large or so small that their products are beyond what floating-point numbers can hold."""

    code = "ER036"


class MissingValues(EmpiriskError):
    """Data with NaN, infinity or masked entries, for what computes with numbers alone."""

    code = "ER037"


class OneClass(EmpiriskError):
    """A target with one class or one value only: there is nothing to tell apart."""

    code = "ER038"


class Singular(EmpiriskError):
    """A covariance without an inverse, or rows without a variance: columns are constant or depend on each other."""

    code = "ER039"


class TooFewRows(EmpiriskError):
    """Fewer rows, or fewer different ones, than what was asked for needs."""

    code = "ER040"


class NotLoaded(EmpiriskError):
    """A model file that is damaged, newer than this version, or no model file."""

    code = "ER041"


class Interrupted(KeyboardInterrupt):
    """A fit was stopped by Ctrl-C, or by the callable of ``config(stop=...)``; the estimator holds its best point.

    A ``KeyboardInterrupt``, so that searches, loops and scripts end.

    Attributes
    ----------
    kept : object or None
        The estimator that was fitted, or what the function would have returned; None where there is nothing to keep.

    Examples
    --------
    >>> with er.config(stop=lambda: True):
    ...     try:
    ...         er.Ridge().fit([[0.0], [1.0], [5.0]], [0.0, 1.0, 2.0])
    ...     except er.errors.Interrupted as interrupt:
    ...         interrupt.kept.stopped_
    'interrupted'
    """

    def __init__(self, message: str = "", kept: Any = None):
        super().__init__(coded("ER003", message))
        self.kept = kept
