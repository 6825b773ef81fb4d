"""Probabilities from machines that give margins alone: calibrated on rows that the machine had not seen."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV

#: Folds of a calibration inside the training rows.
FOLDS = 3


def calibrated(machine: Any, y: NDArray, folds: Sequence[tuple[NDArray, NDArray]] | None = None) -> Any:
    """The machine with probabilities: itself if it has them, else with Platt's curves over its margins.

    The curves are fitted to margins of rows that the machine had not learned from; the machine itself then learns from
    all rows. Where a class has too few rows for that, the machine stays as it is.

    Parameters
    ----------
    machine : classifier
        Not fitted.
    y : array
        The classes of the rows that it will be fitted on.
    folds : list of (train, validation), optional
        Folds that every row is judged in once; three are drawn otherwise.

    Examples
    --------
    >>> type(calibrated(er.SVM(), np.array(["a", "b"] * 10))).__name__
    'CalibratedClassifierCV'
    >>> type(calibrated(er.LogisticRegression(), np.array(["a", "b"] * 10))).__name__
    'LogisticRegression'
    """
    if hasattr(machine, "predict_proba") or not hasattr(machine, "decision_function"):
        return machine
    smallest = int(np.unique(y, return_counts=True)[1].min())
    if smallest < 2:
        return machine
    if folds is None or not np.array_equal(np.sort(np.concatenate([judges for _, judges in folds])), np.arange(len(y))):
        return CalibratedClassifierCV(machine, cv=min(FOLDS, smallest), ensemble=False)
    return CalibratedClassifierCV(machine, cv=list(folds), ensemble=False)
