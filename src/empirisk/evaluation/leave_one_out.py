"""Leave-one-out without refitting: the closed form for the squared loss with the l2 penalty."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import losses, penalties
from empirisk.evaluation.data import Data
from empirisk.fits.choice import is_given
from empirisk.fits.leave_one_out import decompose
from empirisk.kernels.base import Kernel

Array = NDArray[np.float64]
#: What fitted kernels keep that no value k(x, z) depends on: where columns stand, sizes, and a centre against rounding.
HARMLESS = {"centre_", "columns_", "n_features_in_", "size_", "diagonal_"}


def predictions(machine: Any, data: Data) -> Array | None:
    """What the machine fitted to all rows but one predicts for that one, for every row; None without a formula.

    (f(x_i) - y_i) / (1 - h_ii) is the residual of a row left out, on the rows themselves or behind a kernel. A feature
    map and a kernel that learns would have seen the row, and weights of zero leave rows out of the fit, so they refit.
    """
    if not _applies(machine, data):
        return None
    problems = machine.problems(data.X, data.y, data.weights)
    if machine.features is not None and not is_fixed(problems.machine.features_):
        return None
    parts, factor = decompose(problems[0]), problems[0].penalty.l2
    C = np.array([float(machine.C) / factor])
    columns = [problem.y - parts.residuals(problem.y, C)[:, 0] for problem in problems]
    return columns[0] if data.y.ndim == 1 else np.column_stack(columns)


def _applies(machine: Any, data: Data) -> bool:
    if data.classes is not None or not hasattr(machine, "problems"):
        return False
    if machine.features is not None and machine._kernel() is None:
        return False
    if data.weights is not None and data.weights.min() == 0:
        return False
    given = machine.loss if isinstance(machine.loss, (list, tuple)) else [machine.loss]
    quadratic = all(losses.find(loss).quadratic for loss in given)
    return quadratic and penalties.find(machine.penalty).ridge and is_given(machine.C) and np.isfinite(machine.C)


def is_fixed(kernel: Kernel) -> bool:
    """Whether a fitted kernel, with all kernels inside it, has learned nothing from the rows.

    >>> learning = er.kernels.Gaussian("median") + er.kernels.Linear()
    >>> is_fixed(er.kernels.Gaussian(2.0).fit(np.eye(3))), is_fixed(learning.fit(np.eye(3)))
    (True, False)
    """
    learned = {name: value for name, value in vars(kernel).items() if name.endswith("_") and not name.startswith("_")}
    inner = {name: value if isinstance(value, list) else [value] for name, value in learned.items()}
    return not hasattr(kernel, "learn_with") and all(
        name in HARMLESS or all(isinstance(one, Kernel) and is_fixed(one) for one in values)
        for name, values in inner.items()
    )
