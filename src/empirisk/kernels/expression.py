"""A kernel between two groups of items as an expression of their rows: data, which any array namespace evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from empirisk.linalg.namespace import namespace


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
    return OPERATIONS[left.operation](values, left, right)


def _squared_distance(values: list, left: Expression, right: Expression) -> Any:
    """|a_i - b_j|^2 by one product, around the middle of b: distances do not depend on the origin, rounding does."""
    xp = namespace(right.rows)
    middle = right.rows.mean(axis=0)
    a, b = left.rows - middle, right.rows - middle
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return xp.maximum(squares, 0)


def _distance(values: list, left: Expression, right: Expression) -> Any:
    """The distance in the norm 1 or 2 from differences, whose small values are exact."""
    xp = namespace(right.rows)
    differences = left.rows[:, None, :] - right.rows[None, :, :]
    if left.whole == 1:
        return xp.abs(differences).sum(axis=-1)
    return xp.sqrt((differences * differences).sum(axis=-1))


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
    "product": lambda values, left, right: left.rows @ right.rows.T,
    "squared_distance": _squared_distance,
    "distance": _distance,
    "scaled": lambda values, left, right: values[0] * left.numbers[0],
    "cos": lambda values, left, right: namespace(values[0]).cos(values[0]),
    "exp": lambda values, left, right: namespace(values[0]).exp(values[0]),
    "power": lambda values, left, right: values[0] ** left.whole,
    "polynomial": _polynomial,
    "sum": lambda values, left, right: reduce(lambda a, b: a + b, values),
    "multiply": lambda values, left, right: reduce(lambda a, b: a * b, values),
    "elementary": _elementary,
    "times_rows": lambda values, left, right: values[0] * (left.rows[:, None] * right.rows),
    "less_rows": lambda values, left, right: values[0] - (left.rows[:, None] + right.rows),
}
