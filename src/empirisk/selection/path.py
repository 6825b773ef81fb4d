"""The path: a machine's solution at every C, each started where the one before ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from empirisk.certificate import Certificate
from empirisk.errors import EmpiriskError
from empirisk.fits.choice import Array, along, grid, natural_range
from empirisk.fits.fit import SolverRun
from empirisk.machines.base import Machine, Problems
from empirisk.protocols import has_problems

REACH = 1e3  # with l1, the grid ends at so many times the C at which the first weight leaves zero


@dataclass(frozen=True)
class Path:
    """Solutions along C.

    Attributes
    ----------
    Cs : array of k
        The values of C, increasing.
    coefs : array, k x ... x d
        ``coef_`` at each C.
    intercepts : array, k x ...
        ``intercept_`` at each C.
    objectives : array of k
        R(w) + C sum of losses at each C.
    certificates : list of Certificate
        The evidence at each C.

    Examples
    --------
    >>> found = er.selection.path(er.Ridge(), [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], Cs=[0.1, 10.0])
    >>> len(found), found.coefs.shape
    (2, (2, 1))
    """

    Cs: Array
    coefs: Array
    intercepts: Array
    objectives: Array
    certificates: list[Certificate]

    def __len__(self) -> int:
        return len(self.Cs)


def path(
    machine: Any,
    X: ArrayLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 100,
    sample_weight: ArrayLike | None = None,
) -> Path:
    """Solve  R(w) + C sum_i c_i loss(y_i, f(x_i))  for every C of a grid.

    Parameters
    ----------
    machine : Classifier or Regressor
        An unfitted machine; its own C is not used, and it is left as it is.
    X, y, sample_weight
        Rows and targets, as ``machine.fit`` takes them.
    Cs : int or array
        The values of C, or how many: with an l1 penalty from where the first weight wakes up to a thousand times
        that, else over eight decades.

    Returns
    -------
    Path

    Examples
    --------
    >>> X, y = np.eye(3), np.array([3.0, 2.0, 1.0])
    >>> found = er.selection.path(er.Lasso(fit_intercept=False), X, y, Cs=[0.2, 0.3, 1.0])
    >>> (found.coefs != 0).sum(axis=1)
    array([1, 2, 3])
    >>> all(certificate.converged for certificate in found.certificates)
    True
    """
    if not has_problems(machine):
        raise EmpiriskError(f"machine={machine!r} has no path over C; give an empirisk Classifier or Regressor.")
    problems = clone(machine).set_params(C=1.0).problems(X, y, sample_weight)
    values = grid(Cs, *natural_range(problems, REACH))
    machines = list(machines_along(problems, values))
    return Path(
        values,
        np.stack([one.coef_ for one in machines]),
        np.stack([one.intercept_ for one in machines]),
        np.array([one.certificate_.primal for one in machines]),
        [one.certificate_ for one in machines],
    )


def machines_along(problems: Problems, Cs: Array | list[float]) -> Iterator[Machine]:
    """The fitted machine at each C in turn, each started where the one before ended.

    >>> problems = er.Ridge(fit_intercept=False).problems(np.eye(2), [2.0, 4.0])
    >>> [machine.coef_.round(3).tolist() for machine in machines_along(problems, [0.5])]
    [[1.0, 2.0]]
    """
    machine = problems.machine
    run = SolverRun(machine.solver, machine._limits())
    for C, fits in zip(Cs, along(problems, Cs, run, each=True), strict=True):
        yield problems.fitted(fits, float(C))
