"""Where an earlier fit ended, as points of new problems: what `warm_start` begins with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Array, Point, Problem


def starts(problems: list[Problem], last: Mapping[str, Any]) -> list[Point | None] | None:
    """The points that the attributes of an earlier fit stand for; None where it has learned something else.

    On other rows they are starts as good as any, unless the best constant is better.

    >>> machine = er.Ridge().fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
    >>> problems = er.Ridge().problems([[0.0], [1.0], [4.0]], [0.0, 1.0, 2.0])
    >>> bool(starts(problems, vars(machine))[0].w == machine.coef_)
    True
    """
    name = "dual_coef_" if problems[0].design.implicit else "coef_"
    sizes = [max(problem.classes, 1) for problem in problems]
    if name not in last or "intercept_" not in last or len(np.atleast_2d(last[name])) != sum(sizes):
        return None
    cuts = np.cumsum(sizes)[:-1]
    weights = np.split(np.atleast_2d(last[name]), cuts)
    constants = np.split(np.atleast_1d(last["intercept_"]), cuts)
    duals = np.split(np.atleast_2d(last["dual_coef_"]), cuts) if "dual_coef_" in last else [None] * len(sizes)
    support = last.get("support_")
    return [_start(*each, support) for each in zip(problems, weights, constants, duals, strict=True)]


def _start(
    problem: Problem, weights: Array, constants: Array, dual: Array | None, support: NDArray | None
) -> Point | None:
    """The point of one problem, where it is better than the best constant."""
    on_rows = None if dual is None or support is None else _on_rows(problem, dual, support)
    w = on_rows if problem.design.implicit else weights.T if weights.shape[1] == problem.design.shape[1] else None
    if w is None:
        return None
    u = -problem.penalty.l2 * on_rows if on_rows is not None and problem.penalty.ridge else None
    b = constants if problem.design.shift is None else constants + problem.design.shift @ w
    if problem.classes:
        point = Point(w.copy(), b.copy(), u)
    else:
        point = Point(w[:, 0].copy(), float(b[0]), None if u is None else u[:, 0])
    return point if problem.primal(point) < problem.origin_value else None


def _on_rows(problem: Problem, dual: Array, support: NDArray) -> Array | None:
    """Coefficients of support vectors on the rows of a problem, one column per output; None for rows there are not."""
    places = problem.places
    count = int(places.max()) + 1
    if support.max(initial=-1) >= count:
        return None
    whole = np.zeros((count, len(dual)))
    whole[support] = dual.T
    return whole[places]
