"""Kernels from kernels: sums, products, powers, multiples, exponentials, parts of the columns, normalised forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import state
from empirisk.errors import EmpiriskError, NotAKernel, OutOfRange, Unsuitable
from empirisk.kernels.base import ATOM, MOST_POWERS, POWER, PRODUCT, SUM, Kernel, require_whole, text, within
from empirisk.kernels.expression import composed
from empirisk.kernels.items import Parts, as_floats, is_table
from empirisk.kernels.tiles import integer_power
from empirisk.parts import is_finite, is_number
from empirisk.protocols import learns_with_machine


def kind_of(parts: Sequence[Kernel]) -> str:
    """What the items of several kernels are; columns of a data frame may hold anything, so objects decide."""
    kinds = {part.takes for part in parts}
    return kinds.pop() if len(kinds) == 1 else "objects"


def require_one_kind(kernel: Kernel, parts: Sequence[Kernel]) -> None:
    """Raise if the parts of a kernel take items of different kinds."""
    kinds = {part.takes for part in parts} - {"objects"}
    if len(kinds) > 1:
        raise Unsuitable(
            f"{kernel!r} mixes kernels on {' and '.join(sorted(kinds))}; give each its column with .on(column)."
        )


class Composed(Kernel):
    """A kernel made of others, its children: those parameters that are kernels."""

    children: tuple[str, ...]

    def child(self, name: str) -> Kernel:
        """The child that computes: the fitted copy if there is one."""
        kernel = getattr(self, f"{name}_", None) or getattr(self, name)
        if not isinstance(kernel, Kernel):
            raise EmpiriskError(f"{name}={kernel!r} is not a kernel; give an object of empirisk.kernels.")
        return kernel

    @property
    def parts(self) -> list[Kernel]:
        """All children."""
        # A property must not raise; what is no kernel is found by `check`.
        return [self.child(name) for name in self.children if isinstance(getattr(self, name, None), Kernel)]

    @property
    def takes(self) -> str:
        return kind_of(self.parts)

    @property
    def sparse(self) -> bool:
        return all(part.sparse for part in self.parts)

    @property
    def certain(self) -> bool:
        return all(part.certain for part in self.parts)

    @property
    def reads_rows(self) -> bool:
        return any(part.reads_rows for part in self.parts)

    def check(self):
        for name in self.children:
            self.child(name).check()
            if learns_with_machine(self.child(name)):
                raise Unsuitable(f"{self.child(name)!r} learns its weights only where it is all that features= holds.")
        require_one_kind(self, self.parts)

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        for name in self.children:
            setattr(self, f"{name}_", clone(getattr(self, name)).fit(X))
        return self

    def weigh(self, weights):
        for part in self.parts:
            part.weigh(weights)


@dataclass(eq=False, repr=False)
class Wrapper(Composed):
    """A kernel made of one other."""

    _state = state.State(
        kernel=state.optional(state.part(Kernel)), kernel_=state.optional(state.part(Kernel, columns="columns"))
    )

    children = ("kernel",)
    kernel: Any

    def prepare(self, X):
        self.check()
        return self.child("kernel").prepare(X)

    def between(self, A, B=None, out=None):
        block = self.child("kernel").between(A, B, out)
        self.apply(block)
        return block

    def diagonals(self, A):
        values = self.child("kernel").diagonals(A)
        self.apply(values)
        return values

    def term_diagonals(self, A):
        values = self.child("kernel").term_diagonals(A)
        self.apply(values)
        return values

    def pack(self, A):
        return self.child("kernel").pack(A)

    def apply(self, values: NDArray) -> None:
        """What is done to every value of the child, in place."""
        raise NotImplementedError

    def derivative(self, values: NDArray) -> NDArray | None:
        """The derivative of `apply` by the values of the child; None where these are not all that it depends on."""
        return None

    def radial_slopes(self, A, B):
        child = self.child("kernel")
        steepness = self.derivative(child.between(A, B))
        return super().radial_slopes(A, B) if steepness is None else steepness * child.radial_slopes(A, B)


class Binary(Composed):
    """Two kernels and an operation on their blocks."""

    _state = state.State(
        left=state.part(Kernel),
        right=state.part(Kernel),
        left_=state.optional(state.part(Kernel, columns="columns")),
        right_=state.optional(state.part(Kernel, columns="columns")),
    )

    children = ("left", "right")
    operation: Any
    sign: str
    #: The operation in an `Expression`.
    word: str

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right

    def prepare(self, X):
        self.check()
        if self.takes == "vectors" and not is_table(X):
            X = np.asarray(X)  # once, not once for every part
        return Parts(*(part.prepare(X) for part in self.parts))

    def between(self, A, B=None, out=None):
        left, right = self.parts
        others = (None, None) if B is None else B.groups
        block = left.between(A.groups[0], others[0], out)
        return type(self).operation(block, right.between(A.groups[1], others[1]), out=block)

    def expression(self, A):
        return composed(self.word, self.parts, A)

    def diagonals(self, A):
        left, right = (part.diagonals(group) for part, group in zip(self.parts, A, strict=True))
        return type(self).operation(left, right)

    def term_diagonals(self, A):
        left, right = (part.term_diagonals(group) for part, group in zip(self.parts, A, strict=True))
        return type(self).operation(left, right)

    def pack(self, A):
        return Parts(*(part.pack(group) for part, group in zip(self.parts, A, strict=True)))

    def __repr__(self) -> str:
        return f"{within(self.left, self.binding)} {self.sign} {within(self.right, self.binding + 1)}"


class Sum(Binary):
    """k1(x, z) + k2(x, z): the features of both, side by side. Written ``k1 + k2``.

    Examples
    --------
    >>> er.kernels.Linear() + er.kernels.Gaussian(2.0)
    Linear() + Gaussian(2.0)
    """

    binding = SUM
    operation = np.add
    sign, word = "+", "sum"

    def radial_slopes(self, A, B):
        left, right = (part.radial_slopes(a, b) for part, a, b in zip(self.parts, A, B, strict=True))
        return left + right

    def linear_part(self, A, beta):
        found = [part.linear_part(group, beta) for part, group in zip(self.parts, A, strict=True)]
        found = [w for w in found if w is not None]
        return sum(found[1:], found[0]) if found else None

    def terms(self, A):
        return [term for part, group in zip(self.parts, A, strict=True) for term in part.terms(group)]


class Product(Binary):
    """k1(x, z) k2(x, z): all products of a feature of one with a feature of the other. Written ``k1 * k2``.

    Examples
    --------
    >>> er.kernels.Linear() * er.kernels.Gaussian(2.0)
    Linear() * Gaussian(2.0)
    """

    binding = PRODUCT
    operation = np.multiply
    sign, word = "*", "multiply"

    def radial_slopes(self, A, B):
        members = list(zip(self.parts, A, B, strict=True))
        (left, right), (by_left, by_right) = (
            [getattr(part, name)(a, b) for part, a, b in members] for name in ("between", "radial_slopes")
        )
        return left * by_right + by_left * right

    @property
    def constant_diagonal(self) -> bool:
        return all(part.constant_diagonal for part in self.parts)


@dataclass(eq=False, repr=False)
class Scaled(Wrapper):
    """c k(x, z) for a factor c >= 0. Written ``c * k``.

    Examples
    --------
    >>> 0.5 * er.kernels.Linear()
    0.5 * Linear()
    """

    _state = state.State(factor=state.number(0))

    binding = PRODUCT

    factor: float

    def check(self):
        super().check()
        if not (is_number(self.factor) and is_finite(self.factor)):
            raise EmpiriskError(f"factor={self.factor!r} must be a finite number.")
        if self.factor < 0:
            raise NotAKernel(f"{self.factor!r} times a kernel is not positive semidefinite; factors must be >= 0.")

    def apply(self, values):
        values *= values.dtype.type(self.factor)

    def derivative(self, values):
        return np.full_like(values, self.factor)

    def expression(self, A):
        return composed("scaled", self.parts, [A], numbers=(float(self.factor),))

    def linear_part(self, A, beta):
        w = self.child("kernel").linear_part(A, beta)
        return None if w is None else float(self.factor) * w

    def terms(self, A):
        found = self.child("kernel").terms(A)
        return [term._replace(factor=float(self.factor) * term.factor) for term in found]

    def __repr__(self) -> str:
        return f"{text(self.factor)} * {within(self.kernel, POWER)}"


@dataclass(eq=False, repr=False)
class Power(Wrapper):
    """k(x, z)^p for a whole number p >= 0. Written ``k ** p``.

    Examples
    --------
    >>> (er.kernels.Linear() ** 2)([[1.0, 2.0]])
    array([[25.]])
    """

    _state = state.State(exponent=state.whole(0, MOST_POWERS))

    binding = POWER

    exponent: int

    @property
    def constant_diagonal(self) -> bool:
        return self.exponent == 0 or all(part.constant_diagonal for part in self.parts)

    def check(self):
        super().check()
        if is_number(self.exponent) and (self.exponent < 0 or self.exponent != np.floor(self.exponent)):
            raise NotAKernel(
                f"a kernel to the power {self.exponent!r} need not be positive semidefinite; "
                "the exponent must be a whole number >= 0."
            )
        require_whole(self.exponent, "exponent", 0, MOST_POWERS)

    def apply(self, values):
        integer_power(values, int(self.exponent))

    def derivative(self, values):
        if self.exponent == 0:
            return np.zeros_like(values)
        integer_power(values, int(self.exponent) - 1)
        return values * values.dtype.type(self.exponent)

    def expression(self, A):
        return composed("power", self.parts, [A], whole=int(self.exponent))

    def __repr__(self) -> str:
        return f"{within(self.kernel, ATOM)} ** {text(self.exponent)}"


class Exp(Wrapper):
    """exp(k(x, z)). Written ``kernels.exp(k)``.

    Examples
    --------
    >>> er.kernels.exp(er.kernels.Linear())([[0.0]])
    array([[1.]])
    """

    def apply(self, values):
        with np.errstate(over="ignore"):
            np.exp(values, out=values)
        if not np.isfinite(values).all():
            raise OutOfRange(f"{self!r} overflows on these items; scale the kernel down or normalise it.")

    def derivative(self, values):
        self.apply(values)
        return values

    def expression(self, A):
        return composed("exp", self.parts, [A])

    def term_diagonals(self, A):
        # What cancels in the exponent is a relative error of the value; the exponential of its terms may overflow.
        lost = self.child("kernel").term_diagonals(A) - self.child("kernel").diagonals(A)
        return self.diagonals(A) * np.maximum(lost, 1.0)

    def __repr__(self) -> str:
        return f"exp({self.kernel!r})"


@dataclass(eq=False, repr=False)
class PolynomialOf(Wrapper):
    """sum_m c_m k(x, z)^m with all c_m >= 0. Written ``kernels.polynomial(k, [c_0, c_1, ...])``.

    Examples
    --------
    >>> er.kernels.polynomial(er.kernels.Linear(), [1.0, 0.0, 2.0])([[2.0]])
    array([[33.]])
    """

    _state = state.State(coefficients=state.either(state.several(state.number(0)), state.array("fiu", None, low=0)))

    coefficients: Sequence[float]

    def check(self):
        super().check()
        coefficients = as_floats(self.coefficients, "coefficients")
        if coefficients.ndim != 1 or len(coefficients) == 0 or not np.isfinite(coefficients).all():
            raise EmpiriskError(f"coefficients={self.coefficients!r} must be a list of finite numbers.")
        if coefficients.min() < 0:
            raise NotAKernel(
                f"coefficients={self.coefficients!r}: a polynomial of a kernel is a kernel only if none is negative."
            )

    def apply(self, values):
        total = np.zeros_like(values)
        for coefficient in reversed(list(self.coefficients)):
            total *= values
            total += values.dtype.type(coefficient)
        values[...] = total

    def derivative(self, values):
        slope = np.polynomial.Polynomial(as_floats(self.coefficients, "coefficients")).deriv()
        return slope(values).astype(values.dtype)

    def expression(self, A):
        return composed("polynomial", self.parts, [A], numbers=tuple(map(float, self.coefficients)))

    def __repr__(self) -> str:
        return f"polynomial({self.kernel!r}, {text(self.coefficients)})"


def exp(kernel: Kernel) -> Kernel:
    """The kernel exp(k(x, z)).

    >>> exp(er.kernels.Linear() + er.kernels.Polynomial(3))
    exp(Linear() + Polynomial(3))
    """
    return Exp(kernel)


def polynomial(kernel: Kernel, coefficients: Sequence[float]) -> Kernel:
    """The kernel c_0 + c_1 k(x, z) + c_2 k(x, z)^2 + ..., none of the coefficients negative.

    >>> polynomial(er.kernels.Gaussian(2.0), [0.0, 1.0, 0.5])
    polynomial(Gaussian(2.0), [0.0, 1.0, 0.5])
    """
    made = PolynomialOf(kernel, coefficients)
    made.check()
    return made
