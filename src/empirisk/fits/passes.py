"""Passes from problems to problems: equal rows become one behind a kernel, C = inf becomes a hard margin."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from empirisk import losses, penalties
from empirisk.dual import feasible
from empirisk.errors import NotSeparable, OutOfRange, listed
from empirisk.fits.fit import Fit, SolverRun
from empirisk.linalg.hashes import equal_keys
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem

SCALES = (1e2, 1e4, 1e6, 1e8, 1e10)  # the C tried for infinity, in turn; beyond the last a double has no digits left
SEPARATED = 1e-6  # a largest loss below this is none: the margin is kept but for the tolerance of a fit
# A margin this small beside the length of the samples is rounding.
THIN = 1e-7


def hard_margins(problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Point | None] | None]:
    """The problems as they are where C is finite; else with a C so large that every margin is kept, and the solution.

    Once C exceeds the largest multiplier of the hard problem, the soft problem has the same solution and its dual
    is a bound for both. A margin is kept or not, whatever the row weighs: rows of equal weight have that solution too,
    and solvers lose no digits to weights of all sizes.
    """
    if not any(np.isinf(problem.C) for problem in problems):
        return problems, None
    pairs = [_exact_penalty(problem, run) for problem in problems]
    return [problem for problem, _ in pairs], [point for _, point in pairs]


def _exact_penalty(problem: Problem, run: SolverRun) -> tuple[Problem, Point]:
    loss, even = losses.find(problem.loss.hard_form or problem.loss), np.ones_like(problem.weights)
    problem = replace(problem, loss=loss, weights=even)
    # Whether margins are kept is no question of luck: looser fits leave losses that a sharper one would not.
    limits = replace(run.limits, tol=min(run.limits.tol, SEPARATED))
    freely = replace(run, solver="auto", progress=None, limits=limits)
    for scale in SCALES:
        soft = problem.with_C(scale)
        fit = freely([soft])[0]
        if _violation(soft, fit) <= SEPARATED or fit.cut:
            return replace(soft, remark=f"C=inf, kept by an exact penalty of C={soft.C:.3g}"), fit.point
        if problem.design.implicit:
            _refuse_if_margin_is_thin(soft, fit)
        else:
            _refuse_if_not_separable(problem, freely)
    raise OutOfRange("C=inf: the margin is too thin to compute; scale the columns, or use a finite C.")


def _violation(problem: Problem, fit: Fit) -> float:
    """The largest missing margin."""
    return float(problem.loss.value(problem.y, problem.predict(fit.point)).max())


def _refuse_if_not_separable(problem: Problem, run: SolverRun) -> None:
    """Raise if even the hyperplane of least total hinge loss, found by a linear programme, leaves some.

    A positive dual value proves it: the multipliers are weights under which the convex hulls of the classes meet.
    """
    free = replace(problem, penalty=penalties.NoPenalty(), C=1.0)
    fit = replace(run, limits=replace(run.limits, max_iter=None))([free])[0]
    bound = fit.certificate.dual
    if bound <= SEPARATED or fit.point.u is None:
        return
    raise _not_separable(problem, fit.point.u, f"sum to at least {bound:.3g} everywhere")


def _refuse_if_margin_is_thin(soft: Problem, fit: Fit) -> None:
    """Raise if a kernel separates the classes by no more than rounding.

    The dual point u of the soft problem bounds the losses of every hyperplane by L - |w| |A'u| / C, where L is what
    the conjugates of u sum to, over C: without any loss, the margin 1 / |w| is at most |A'u| / (C L).
    """
    if fit.point.u is None:
        return
    u, correlations = feasible(soft, fit.point.u)
    least = -soft.conjugate_sum(u)
    length = float(soft.design.squared_rows().mean()) ** 0.5
    square = max(float(np.sum(soft.design.squared_norms(correlations))), 0.0)
    margin = square**0.5 / least if least > 0 else np.inf
    if margin <= THIN * length:
        # What other rows add vanishes as C grows.
        shares = u / soft.per_output(soft.scale)
        shares = np.where(np.abs(shares) > 1e-3, shares, 0.0)
        raise _not_separable(soft, shares, f"vanish nowhere with a margin above {margin:.1g}")


def _not_separable(problem: Problem, shares: NDArray, losses_of_all: str) -> NotSeparable:
    """The error, with the rows on which the evidence rests."""
    # Smaller shares are what a solver leaves of zero.
    evidence = np.flatnonzero(np.abs(shares.reshape(len(shares), -1)).max(axis=1) > 1e-6)
    rows = problem.places[evidence]
    which, why, after, remedy = "hyperplane", "the convex hulls of the classes meet among", "", "use a finite C"
    if problem.classes:
        which, why = "score of each class", "no scores put the own class ahead in all of"
    elif not problem.intercept:
        which, why = "hyperplane through the origin", "no direction has a positive product with all of"
        after = " times their labels"
        remedy = "use fit_intercept=True, which allows other hyperplanes, or a finite C"
    return NotSeparable(
        f"C=inf asks for a hard margin, but no {which} separates the classes: the hinge losses {losses_of_all}, "
        f"and {why} rows {listed(rows)}{after}; {remedy}.",
        rows,
    )


MANY = 1000  # fewer rows are solved before equal ones could be found
#: Rows are merged where no more than this share of them differ.
SHARE = 0.5


def merged(problems: list[Problem], always: bool = False) -> list[Problem]:
    """The problems with equal rows of equal targets made one, where they are many, or ``always``.

    A row of weight 2 is the row twice, so the objective is the same. A solver that works on the most violating rows
    would work on copies of a few.
    """
    out, found, keys = list(problems), {}, cache(_row_keys)
    for number, problem in enumerate(problems):
        key = id(problem.design)
        if key not in found:
            targets = [other.y for other in problems if other.design is problem.design]
            groups = _groups(problem, targets, always, keys)
            found[key] = groups and (*groups, problem.design.rows(groups[0]), np.bincount(groups[1], problem.weights))
        if found[key] is not None:
            first, _, design, weights = found[key]
            rows = problem.places[first]
            remark = f"{len(problem.y)} rows as {len(first)} different ones"
            out[number] = replace(problem, design=design, y=problem.y[first], weights=weights, rows=rows, remark=remark)
    return out


def _row_keys(root: GramDesign) -> NDArray:
    """Products of all rows with one vector: those of equal rows are equal."""
    return root.source @ np.random.default_rng(0).normal(size=root.source.shape[1])


def _groups(
    problem: Problem, targets: list[NDArray], always: bool, keys: Callable[[GramDesign], NDArray]
) -> tuple[NDArray, NDArray] | None:
    """The first of each set of equal rows, and the set of every row; None where there is little to gain."""
    design, fewest, share = problem.design, *((0, 1.0) if always else (MANY, SHARE))
    if not isinstance(design, GramDesign) or len(problem.y) < fewest or problem.penalty.l2 == 0:
        return None
    source = design.root.source
    if design.kernel.takes != "vectors" or not isinstance(source, np.ndarray):
        return None
    rows = slice(None) if problem.rows is None else problem.rows
    # This costs next to nothing where no rows are equal.
    if len(np.unique(keys(design.root)[rows])) > share * len(problem.y):
        return None
    X = source[rows]
    whole = np.ascontiguousarray(np.column_stack([X, *targets]), dtype=np.float64)
    first, inverse = equal_keys(whole)
    return None if len(first) > share * len(X) else (first, inverse)
