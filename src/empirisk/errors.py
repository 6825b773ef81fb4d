"""Errors a user can act on: each message says what was wrong, in which argument, and what to do."""

from typing import Any


class EmpiriskError(ValueError):
    """Base of every error raised by Empirisk; a ``ValueError``, so scikit-learn tools treat it as bad input."""


class TooLarge(EmpiriskError):
    """The computation would need more memory than ``empirisk.config(memory=...)`` allows."""


class NotSeparable(EmpiriskError):
    """A hard-margin machine was asked to separate classes that no hyperplane separates.

    Attributes
    ----------
    rows : ndarray of int
        Rows of the training data whose convex hulls meet: the evidence.
    """

    def __init__(self, message: str, rows: Any = None):
        super().__init__(message)
        self.rows = rows


class NotAKernel(EmpiriskError):
    """A Gram matrix is not symmetric positive semidefinite."""


class NotWritten(EmpiriskError):
    """A file could not be written: a full disk, a read-only folder, or another run that is writing it."""


class Unsuitable(EmpiriskError):
    """Parts that have no meaning together: a loss, penalty, solver or feature map that do not fit."""


class MissingExtra(EmpiriskError, ImportError):
    """A part of Empirisk needs packages that are not installed; the message names the line that installs them."""
