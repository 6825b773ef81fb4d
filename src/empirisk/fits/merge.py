"""Rows that stand in the data many times: behind a kernel they become one row with all their weight."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Problem

MANY = 1000
#: Rows are merged where no more than this share of them differ.
SHARE = 0.5


def merged(problems: list[Problem]) -> list[Problem]:
    """The problems with equal rows of equal targets made one, where they are many.

    A row of weight 2 is the row twice, so the objective is the same. A solver that works on the most violating rows
    would work on copies of a few.
    """
    out, found = list(problems), {}
    for problem in problems:
        key = id(problem.design)
        if key not in found:
            group = [other for other in problems if other.design is problem.design]
            found[key] = _groups(problem, np.column_stack([other.y for other in group]))
            if found[key] is not None:
                found[key] = (*found[key], problem.design.rows(found[key][0]))
    for number, problem in enumerate(problems):
        groups = found[id(problem.design)]
        if groups is not None:
            first, inverse, design = groups
            weights = np.bincount(inverse, problem.weights)
            rows = first if problem.rows is None else problem.rows[first]
            remark = f"{len(problem.y)} rows as {len(first)} different ones"
            out[number] = replace(problem, design=design, y=problem.y[first], weights=weights, rows=rows, remark=remark)
    return out


def _groups(problem: Problem, targets: NDArray) -> tuple[NDArray, NDArray] | None:
    """The first of each set of equal rows, and the set of every row; None where there is little to gain."""
    design: Any = problem.design
    if not design.implicit or len(problem.y) < MANY or problem.penalty.l2 == 0:
        return None
    source = design.root.source
    if design.kernel.takes != "vectors" or not isinstance(source, np.ndarray):
        return None
    X = source if problem.rows is None else source[problem.rows]
    # Equal rows have equal products with any vector; this costs next to nothing where none are.
    if len(np.unique(X @ np.random.default_rng(0).normal(size=X.shape[1]))) > SHARE * len(X):
        return None
    whole = np.ascontiguousarray(np.column_stack([X, targets]), dtype=np.float64)
    _, first, inverse = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    return None if len(first) > SHARE * len(X) else (first, inverse.ravel())
