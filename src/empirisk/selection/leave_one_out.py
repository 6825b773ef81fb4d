"""Leave-one-out without refitting: the closed form for the squared loss with the l2 penalty."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import losses, penalties
from empirisk.machines.choosing import is_given
from empirisk.machines.loo import decompose
from empirisk.selection.data import Data

Array = NDArray[np.float64]


def predictions(machine: Any, data: Data) -> Array | None:
    """What the machine fitted to all rows but one predicts for that one, for every row; None without a formula.

    (f(x_i) - y_i) / (1 - h_ii) is the residual of a row left out. A feature map would have seen the row, and weights
    of zero leave rows out of the fit, so both refit.
    """
    if not _applies(machine, data):
        return None
    problems, _, _ = clone(machine)._prepare(data.X, data.y, data.weights)
    parts, factor = decompose(problems[0]), problems[0].penalty.l2
    C = np.array([float(machine.C) / factor])
    columns = [problem.y - parts.residuals(problem.y, C)[:, 0] for problem in problems]
    return columns[0] if data.y.ndim == 1 else np.column_stack(columns)


def _applies(machine: Any, data: Data) -> bool:
    if data.classes is not None or not hasattr(machine, "_prepare") or machine.features is not None:
        return False
    if data.weights is not None and data.weights.min() == 0:
        return False
    loss, penalty = losses.find(machine.loss), penalties.find(machine.penalty)
    return loss.quadratic and penalty.l1 == 0 and penalty.l2 > 0 and is_given(machine.C) and np.isfinite(machine.C)
