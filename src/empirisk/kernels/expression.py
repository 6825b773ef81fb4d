"""A kernel between two groups of items as an expression of their rows: data, which any array namespace evaluates.

NumPy, JAX on a device, and the tensors that become an exported graph run the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from empirisk.linalg.namespace import namespace, summed_gaps

#: The power of the largest number up to which entries of rows go into squares and their sums.
FAR = 0.45


@dataclass(frozen=True)
class Expression:
    """One side of k(a_i, b_j): an operation on the values of other expressions and on rows of the items.

    Both sides of a kernel have the same operations and numbers, and differ in their rows alone.

    Attributes
    ----------
    operation : str
        A name of `OPERATIONS`.
    parts : tuple of Expression
        Whose values the operation takes.
    numbers : tuple of float
        The numbers in its formula.
    whole : int
        The whole number in its formula, such as a power.
    rows : array or None
        A row, or a number, for every item.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> gaussian = er.kernels.Gaussian(1.0)
    >>> evaluate(gaussian.expression(X), gaussian.expression(X)).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    operation: str
    parts: tuple[Expression, ...] = ()
    numbers: tuple[float, ...] = ()
    whole: int = 1
    rows: Any = None

    def __len__(self) -> int:
        return len(self.parts[0] if self.rows is None else self.rows)

    @property
    def dtype(self) -> Any:
        """The precision of the rows."""
        return self.parts[0].dtype if self.rows is None else self.rows.dtype

    def with_rows(self, change: Callable[[Any], Any]) -> Expression:
        """The same expression with all of its rows changed."""
        rows = None if self.rows is None else change(self.rows)
        return replace(self, parts=tuple(part.with_rows(change) for part in self.parts), rows=rows)

    def changed(self, change: Callable[[Expression], Expression]) -> Expression:
        """The same expression with each of its operations changed, those of its parts first."""
        return change(replace(self, parts=tuple(part.changed(change) for part in self.parts)))

    def scaled(self, factor: float) -> Expression:
        """factor t."""
        return Expression("scaled", (self,), (factor,))

    def exp(self) -> Expression:
        """exp(t)."""
        return Expression("exp", (self,))


def composed(
    operation: str,
    kernels: Iterable[Any],
    groups: Iterable[Any],
    *,
    numbers: tuple = (),
    whole: int = 1,
    rows: Any = None,
) -> Expression | None:
    """An operation on the values of kernels, each with its group of prepared items; None where one has none."""
    found = [kernel.expression(items) for kernel, items in zip(kernels, groups, strict=True)]
    known = tuple(part for part in found if part is not None)
    return Expression(operation, known, numbers, whole, rows) if len(known) == len(found) else None


def evaluate(left: Expression, right: Expression) -> Any:
    """The block k(a_i, b_j), by the functions of the namespace of the rows, in their precision."""
    values = [evaluate(*pair) for pair in zip(left.parts, right.parts, strict=True)]
    return OPERATIONS[right.operation](values, left, right)


def evaluate_diagonal(expression: Expression) -> Any:
    """k(a_i, a_i), as blocks of one item each: formulas take any axes before those of items and columns.

    >>> evaluate_diagonal(er.kernels.Polynomial(2).expression(np.array([[0.0], [2.0]])))
    array([ 1., 25.])
    """
    alone = expression.with_rows(lambda rows: rows[:, None])
    return evaluate(alone, alone)[:, 0, 0]


def _product(values: list, left: Expression, right: Expression) -> Any:
    """<a_i, b_j>."""
    return left.rows @ _turned(right.rows)


def _turned(rows: Any) -> Any:
    return rows.T if rows.ndim == 2 else namespace(rows).swapaxes(rows, -1, -2)


def _squared_distance(values: list, left: Expression, right: Expression) -> Any:
    """|a_i - b_j|^2 by one product, around the middle of b: distances do not depend on the origin, rounding does.

    Entries are cut where their squares are no numbers: every kernel of such a distance is what it is far out.
    """
    far = float(np.finfo(right.rows.dtype).max) ** FAR
    xp = namespace(right.rows)
    middle = right.rows.mean(axis=-2, keepdims=True)
    a, b = xp.clip(left.rows - middle, -far, far), xp.clip(right.rows - middle, -far, far)
    squares = (a * a).sum(axis=-1)[..., :, None] + (b * b).sum(axis=-1)[..., None, :] - 2 * (a @ _turned(b))
    return xp.maximum(squares, 0)


def _distance(values: list, left: Expression, right: Expression) -> Any:
    """The distance in the norm 1 or 2 from differences, whose small values are exact."""
    total = summed_gaps(left.rows, right.rows, left.whole)
    return total if left.whole == 1 else namespace(total).sqrt(total)


def _elementary(values: list, left: Expression, right: Expression) -> Any:
    """e_1 + ... + e_order of the values, where e_s is the sum of all products of s of them."""
    sums = [0 * values[0]] * left.whole
    for value in values:
        sums = [old + value * below for old, below in zip(sums, [1, *sums[:-1]], strict=True)]
    return sum(sums[1:], sums[0])


def _polynomial(values: list, left: Expression, right: Expression) -> Any:
    """sum_m c_m t^m."""
    total = 0 * values[0]
    for coefficient in reversed(left.numbers):
        total = total * values[0] + coefficient
    return total


#: What an operation computes of the values t of its parts and of the rows of both sides.
OPERATIONS: dict[str, Callable[[list, Expression, Expression], Any]] = {
    "product": _product,
    "squared_distance": _squared_distance,
    "squared_gaps": lambda values, left, right: summed_gaps(left.rows, right.rows, 2),
    "distance": _distance,
    "scaled": lambda values, left, right: values[0] * left.numbers[0],
    "cos": lambda values, left, right: namespace(values[0]).cos(values[0]),
    "exp": lambda values, left, right: namespace(values[0]).exp(values[0]),
    "power": lambda values, left, right: values[0] ** left.whole,
    "polynomial": _polynomial,
    "sum": lambda values, left, right: reduce(lambda a, b: a + b, values),
    "multiply": lambda values, left, right: reduce(lambda a, b: a * b, values),
    "elementary": _elementary,
    "times_rows": lambda values, left, right: values[0] * (left.rows[..., :, None] * right.rows[..., None, :]),
    "less_rows": lambda values, left, right: values[0] - (left.rows[..., :, None] + right.rows[..., None, :]),
}
