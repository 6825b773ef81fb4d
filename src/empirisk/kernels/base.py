"""The kernel: its formula for a block of items, and the operators that build kernels from kernels."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk import state
from empirisk.errors import EmpiriskError, NotAKernel, Unsuitable
from empirisk.kernels.items import as_matrix
from empirisk.linalg.threads import single_threaded_blas
from empirisk.parts import Part, is_finite, is_number
from empirisk.validation import in_memory_of_numpy

if TYPE_CHECKING:
    from empirisk.kernels.compiled import Formula
    from empirisk.kernels.expression import Expression

MOST_POWERS = 10_000  # of a polynomial: more take their time, and nearly all numbers to zero or beyond all numbers
WRITTEN = 1000  # larger arrays are abbreviated in expressions
SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly the expression of a kernel binds


class Term(NamedTuple):
    """One of the kernels that are added in another.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    items : prepared items
        What it is computed from.
    columns : tuple of int or None
        The columns that it sees; None for all, or for items that have none.
    factor : float
        What it is multiplied by.
    """

    kernel: Kernel
    items: Any
    columns: tuple[int, ...] | None = None
    factor: float = 1.0


class Kernel(Part):
    """A similarity k(x, z) = <phi(x), phi(z)>, which a machine takes in its slot ``features``.

    A kernel states its formula once, for a block: `between` on items that `prepare` has made ready.
    Kernels are combined with ``+``, ``*``, ``**`` and multiples >= 0, and with `on`, `times` and `normalised`.

    Attributes
    ----------
    takes : str
        What an item is: "vectors", "strings", "graphs", "nodes", "samples" or "objects".
    sparse : bool
        Whether a sparse table is accepted.
    constant_diagonal : bool
        Whether k(x, x) = 1 for every x.
    certain : bool
        Whether the formula alone makes it positive semidefinite; where not, machines test it on their data.
    reads_rows : bool
        Whether items are prepared by what can be done in memory alone, such as a function of the user's.

    Examples
    --------
    >>> kernel = er.kernels.Gaussian(2.0).on([0, 1]) * er.kernels.Linear().on([2]) + 0.1 * er.kernels.Polynomial(3)
    >>> kernel
    Gaussian(2.0).on([0, 1]) * Linear().on([2]) + 0.1 * Polynomial(3)
    >>> kernel([[0.0, 0.0, 1.0], [0.0, 2.0, 1.0]]).round(3)
    array([[ 1.8  ,  1.407],
           [ 1.407, 22.6  ]])
    """

    takes: str = "vectors"
    sparse: bool = False
    constant_diagonal: bool = False
    certain: bool = True
    reads_rows: bool = False
    binding = ATOM

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "between" in vars(cls) and "formula" not in vars(cls):
            cls.formula = Kernel.formula  # what is inherited is the formula of another block
        if "between" in vars(cls) and "expression" not in vars(cls):
            cls.expression = Kernel.expression

    # --- what a kernel states ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise a sentence if a parameter makes no sense."""

    def learn(self, items: Any) -> None:
        """Learn the parameters that depend on data from prepared items."""

    def prepare(self, X: Any) -> Any:
        """Validated items in the form that `between` computes from, which can be indexed by rows."""
        self.check()
        return as_matrix(X, self.sparse)

    def between(self, A: Any, B: Any = None, out: NDArray | None = None) -> NDArray:
        """The block k(a_i, b_j) of prepared items; exactly symmetric where B is None. ``out`` is overwritten."""
        raise NotImplementedError

    def formula(self, A: Any, B: Any) -> Formula | None:
        """The kernel between prepared items as a formula of their products, which compiled loops evaluate; or None."""
        return None

    def expression(self, A: Any) -> Expression | None:
        """One side of the kernel as an expression of prepared items, which devices evaluate; or None."""
        return None

    def diagonals(self, A: Any) -> NDArray:
        """k(a_i, a_i) of prepared items."""
        raise NotImplementedError

    def term_diagonals(self, A: Any) -> NDArray:
        """The size of the terms that k(a_i, a_i) sums: a difference rounds like what it is taken of."""
        return self.diagonals(A)

    def weigh(self, weights: NDArray[np.float64]) -> None:
        """Take the weights of the items that the kernel was fitted on, where it has learned a mean of them.

        Most kernels learn nothing that depends on how often an item stands there.
        """

    def pack(self, A: Any) -> Any:
        """The same items in a form that saves work where they take part in many blocks; it may hold copies."""
        return A

    def summands(self, A: Any) -> list[tuple[Kernel, Any]]:
        """The kernels that are added with weights unknown as yet, each with its items."""
        return [(self, A)]

    def linear_part(self, A: Any, beta: NDArray) -> NDArray | None:
        """w = sum_i beta_i x_i of the linear kernels that are summed in this one; None if there are none."""
        return None

    def terms(self, A: Any) -> list[Term]:
        """The kernels that are summed in this one, each with its part of the items; itself, if it is no sum."""
        return [Term(self, A)]

    def wrong_rows(self, rows: Any) -> str | None:
        """Why rows that a machine has kept, as a file has them, are none of this kernel's; None where they may be."""
        return None

    def radial_slopes(self, A: Any, B: Any) -> NDArray:
        """The block t(a_i, b_j) with  gradient in a of k(a, b) = t(a, b) (a - b), of kernels of the distance |a - b|.

        Where a kernel has no gradient, as the Laplacian at a = b, it is zero.
        """
        raise Unsuitable(
            f"{self!r} is no function of the Euclidean distance alone, so it has no metric to learn; use Gaussian, "
            "Laplacian(norm=2), or sums, products and powers of them."
        )

    # --- what follows from it -----------------------------------------------------------------------------------------

    @state.renewing
    def fit(self, X: Any, y: Any = None) -> Kernel:
        """Learn the parameters that depend on data, such as ``width="median"``; most kernels have none."""
        self.learn(self.prepare(X))
        return self

    @single_threaded_blas()
    def block(self, X: Any, Z: Any = None) -> NDArray:
        """The block k(x_i, z_j); Z is X if None."""
        A = self.prepare(in_memory_of_numpy(X))
        return self.between(A) if Z is None else self.between(A, self.prepare(in_memory_of_numpy(Z)))

    @single_threaded_blas()
    def diagonal(self, X: Any) -> NDArray:
        """k(x_i, x_i) for every item."""
        return self.diagonals(self.prepare(in_memory_of_numpy(X)))

    def __call__(self, X: Any, Z: Any = None) -> NDArray:
        return self.block(X, Z)

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters; what was learned under the old ones is forgotten."""
        learned = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        for name in learned if params else ():
            delattr(self, name)
        return super().set_params(**params)

    # --- the algebra --------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return _algebra().Sum(self, other)
        return self if is_number(other) and other == 0 else NotImplemented  # sum([k1, k2]) starts at 0

    __radd__ = __add__

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return _algebra().Product(self, other)
        if not is_number(other):
            return NotImplemented
        scaled = _algebra().Scaled(self, other)
        scaled.check()
        return scaled

    __rmul__ = __mul__

    def __pow__(self, exponent: Any) -> Kernel:
        power = _algebra().Power(self, exponent)
        power.check()
        return power

    def __sub__(self, other: Any) -> Kernel:
        raise NotAKernel("a difference of kernels need not be positive semidefinite; use sums, products and multiples.")

    __rsub__ = __sub__

    def __neg__(self) -> Kernel:
        raise NotAKernel("minus a kernel is not positive semidefinite; multiply kernels by factors >= 0 only.")

    def on(self, columns: Any) -> Kernel:
        """This kernel on some columns: positions, a slice, a mask, or names of columns of a data frame."""
        return _wrappers().On(self, columns)

    def times(self, function: Any) -> Kernel:
        """f(x) k(x, z) f(z), where ``function`` takes all items X and gives one number for each."""
        return _wrappers().Times(self, function)

    def normalised(self) -> Kernel:
        """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine between phi(x) and phi(z)."""
        return _wrappers().Normalised(self)

    # --- text and equality --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_changed(self))})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(self.get_params(deep=False), other.get_params(deep=False))  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(type(self))  # parameters may change, so they are no part of it

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _algebra():
    from empirisk.kernels import algebra  # it builds on this module

    return algebra


def _wrappers():
    from empirisk.kernels import wrappers  # they build on this module

    return wrappers


def _changed(kernel: Kernel) -> list[str]:
    """The arguments that differ from their defaults, by position as far as possible."""
    texts, gap = [], False
    for name, parameter in inspect.signature(type(kernel)).parameters.items():
        value = getattr(kernel, name)
        if parameter.default is not inspect.Parameter.empty and _same(value, parameter.default):
            gap = True
            continue
        by_name = gap or parameter.kind is inspect.Parameter.KEYWORD_ONLY
        texts.append(f"{name}={text(value)}" if by_name else text(value))
    return texts


def within(kernel: Any, binding: int) -> str:
    """The expression of a kernel, in brackets if it binds less tightly than its place asks for."""
    return f"({kernel!r})" if getattr(kernel, "binding", ATOM) < binding else repr(kernel)


def text(value: Any) -> str:
    """A value as one would write it in code."""
    if isinstance(value, np.ndarray) and value.size <= WRITTEN:
        return repr(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    return getattr(value, "__name__", None) or repr(value)


def _same(a: Any, b: Any) -> bool:
    a, b = (value.item() if isinstance(value, np.generic) else value for value in (a, b))
    if sparse.issparse(a) and sparse.issparse(b):
        return a.shape == b.shape and (a != b).nnz == 0
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple, np.ndarray)) and isinstance(b, (list, tuple, np.ndarray)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return a is b or ((type(a) is type(b) or (is_number(a) and is_number(b))) and bool(np.all(a == b)))


def require_whole(value: Any, name: str, least: int, most: float = np.inf) -> None:
    """Raise unless the value is a whole number of at least ``least`` and at most ``most``."""
    if not (is_number(value) and value >= least and is_finite(value) and value == np.floor(value)):
        raise EmpiriskError(f"{name}={value!r} must be a whole number of at least {least}.")
    if value > most:
        raise EmpiriskError(f"{name}={value!r} must be at most {most}.")


def require_positive(value: Any, name: str, zero: bool = False) -> None:
    """Raise unless the value is a finite positive number, or zero where that is allowed."""
    if not (is_number(value) and is_finite(value) and (value > 0 or (zero and value == 0))):
        raise EmpiriskError(f"{name}={value!r} must be a {'number >= 0' if zero else 'positive number'}.")
