"""The hard margin, C = infinity: an exact penalty where the classes are separable, evidence where they are not."""

from dataclasses import replace

import numpy as np

from empirisk import losses, penalties
from empirisk.errors import EmpiriskError, NotSeparable
from empirisk.machines.fitting import Fit, Limits, run
from empirisk.problem import Problem

SCALES = (1e2, 1e4, 1e6, 1e8, 1e10)
SEPARATED = 1e-6


def hard_problems(problems: list[Problem], limits: Limits) -> list[Problem]:
    """The problems as they are where C is finite; else with a C so large that every margin is kept.

    Once C exceeds the largest multiplier of the hard problem, the soft problem has the same solution and its dual
    is a bound for both.
    """
    return [_exact_penalty(problem, limits) if np.isinf(problem.C) else problem for problem in problems]


def _exact_penalty(problem: Problem, limits: Limits) -> Problem:
    problem = replace(problem, loss=losses.find(problem.loss.hard_form or problem.loss))
    for scale in SCALES:
        soft = problem.with_C(scale / problem.weights.min())
        if _violation(soft, run([soft], "auto", limits)[0]) <= SEPARATED:
            return soft
        _refuse_if_not_separable(problem, limits)
    raise EmpiriskError("C=inf: the margin is too thin to compute; scale the columns, or use a finite C.")


def _violation(problem: Problem, fit: Fit) -> float:
    """The largest missing margin."""
    return float(problem.loss.value(problem.y, problem.predict(fit.point)).max())


def _refuse_if_not_separable(problem: Problem, limits: Limits) -> None:
    """Raise if even the hyperplane of least total hinge loss, found by a linear programme, leaves some.

    A positive dual value proves it: the multipliers are weights under which the convex hulls of the classes meet.
    """
    free = replace(problem, penalty=penalties.NoPenalty(), C=1.0)
    fit = run([free], "auto", replace(limits, max_iter=None))[0]
    bound = fit.certificate.dual
    if bound <= SEPARATED or fit.point.u is None:
        return
    evidence = np.flatnonzero(np.abs(fit.point.u) > 1e-6 * problem.weights)
    rows = evidence if problem.rows is None else problem.rows[evidence]
    shown = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
    raise NotSeparable(
        f"C=inf asks for a hard margin, but no hyperplane separates the classes: the hinge losses of any hyperplane "
        f"sum to at least {bound:.3g}, and the convex hulls of the classes meet among rows {shown}; use a finite C.",
        rows,
    )
