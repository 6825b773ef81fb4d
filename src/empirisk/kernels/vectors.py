"""Kernels on vectors: linear, polynomial, Gaussian, Laplacian and ANOVA."""

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import issparse
from sklearn.base import clone

from empirisk import state
from empirisk.errors import EmpiriskError, TooLarge
from empirisk.kernels import tiles
from empirisk.kernels.algebra import Product
from empirisk.kernels.base import MOST_POWERS, Kernel, Term, require_positive, require_whole, text
from empirisk.kernels.compiled import DISTANCE, EXPONENTIAL, POLYNOMIAL, Formula
from empirisk.kernels.distances import Exponents, packed, robust_centre
from empirisk.kernels.expression import Expression, composed
from empirisk.kernels.items import Parts, as_matrix, size
from empirisk.linalg.blocks import slices
from empirisk.linalg.threads import parallel_map
from empirisk.linalg.tiled import mirror
from empirisk.parts import is_number
from empirisk.validation import in_memory_of_numpy

MOST_TERMS = 5000  # groups of columns at most: a list of more is of no use
SAMPLE = 1000  # rows: half a million distances give the median to a per cent
NARROWEST, WIDEST = 1e-150, 1e150  # the squares of other widths are no numbers, or have no inverse
FLOORS = {np.float32: 128.0, np.float64: 4096.0}  # norms up to here cost exponents only their last digits


class InnerProduct(Kernel):
    """(<x, z> + constant)^degree, the inner product itself where nothing else is said."""

    sparse = True
    degree: int = 1
    constant: float = 0.0

    def check(self):
        require_whole(self.degree, "degree", 1, MOST_POWERS)
        require_positive(self.constant, "constant", zero=True)

    def between(self, A, B=None, out=None):
        formula = self.formula(A, A if B is None else B)
        return tiles.products(A, B, out, self._finish) if formula is None else formula.block(out, B is None)

    def _finish(self, rows: slice, columns: slice, tile: NDArray) -> None:
        tile += tile.dtype.type(self.constant)
        tiles.integer_power(tile, int(self.degree))

    def formula(self, A, B):
        if issparse(A) or issparse(B):
            return None
        tiles.require_same_columns(A, B)
        return Formula(POLYNOMIAL, A, B, tiles.dtype_of(A), degree=int(self.degree), constant=float(self.constant))

    def expression(self, A):
        if issparse(A):
            return None
        value = Expression("product", rows=A)
        if self.constant:
            value = Expression("polynomial", (value,), (float(self.constant), 1.0))
        return value if self.degree == 1 else Expression("power", (value,), whole=int(self.degree))

    def diagonals(self, A):
        return ((tiles.squared_norms(A) + self.constant) ** int(self.degree)).astype(tiles.dtype_of(A))

    def linear_part(self, A, beta):
        return A.T @ np.asarray(beta, dtype=np.float64) if self.degree == 1 else None


class Linear(InnerProduct):
    """The inner product k(x, z) = <x, z>.

    Examples
    --------
    >>> er.kernels.Linear()([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """


class Polynomial(InnerProduct):
    """k(x, z) = (<x, z> + constant)^degree: all monomials up to the degree.

    Parameters
    ----------
    degree : int
        The power, at least 1.
    constant : float
        At least 0; with 0 only monomials of exactly that degree remain.

    Examples
    --------
    >>> er.kernels.Polynomial(2)([[1.0, 2.0]], [[3.0, 0.0]])
    array([[16.]])
    """

    # Powers are computed as repeated products: a file must not ask for hours of them.
    _state = state.State(degree=state.whole(1, MOST_POWERS), constant=state.number(0))

    def __init__(self, degree: int = 2, constant: float = 1.0):
        self.degree = degree
        self.constant = constant


def _distinct(items: Any) -> NDArray[np.intp]:
    """The rows that differ, in an order of their own: how often and where a row stands must not matter."""
    direction = np.random.default_rng(0).normal(size=items.shape[1])
    keys = np.einsum("ij,j->i", items, direction) if isinstance(items, np.ndarray) else items @ direction
    return np.unique(keys, return_index=True)[1]


def _variance(items: Any) -> float:
    """The variance of all numbers of a table, as if they were one column."""
    if sparse.issparse(items):
        return float(items.multiply(items).mean() - items.mean() ** 2)
    return float(np.var(items, dtype=np.float64))


@dataclass(eq=False, repr=False)
class Stationary(Kernel):
    """A kernel of a distance over a width, which is a number, or the name of a rule that learns it from the data."""

    _state = state.State(
        width=state.either(state.number(NARROWEST, WIDEST), state.text("median", "scale", "auto")),
        width_=state.optional(state.number(NARROWEST, WIDEST)),
        centre_=state.optional(state.maybe(state.array("f", "columns"))),
    )

    constant_diagonal = True
    #: The rules that learn a width, by their names.
    rules: ClassVar[tuple[str, ...]] = ("median",)
    width: float | str = 1.0

    def check(self):
        fits = is_number(self.width) and NARROWEST <= self.width <= WIDEST
        if not fits and not (isinstance(self.width, str) and self.width in self.rules):
            known = " or ".join(map(repr, self.rules))
            told = f"must be a positive number or {known}, and not beyond {NARROWEST:g} or {WIDEST:g}"
            raise EmpiriskError(f"width={self.width!r} {told}.")

    def distances(self, A: Any) -> NDArray:
        """The distances among prepared items."""
        raise NotImplementedError

    def learn(self, items):
        self.centre_ = None if issparse(items) else robust_centre(items)  # sparse rows stay as they are
        if isinstance(self.width, str):
            self.width_ = self._learned_width(items)

    def _learned_width(self, items: Any) -> float:
        """The width by the rule that is asked for."""
        return self._median_distance(items)

    def _median_distance(self, items: Any) -> float:
        items = items[_distinct(items)]
        rows = size(items)
        if rows > SAMPLE:
            items = items[np.sort(np.random.default_rng(0).choice(rows, SAMPLE, replace=False))]
        items = in_memory_of_numpy(items)
        distances = self.distances(items)[np.triu_indices(size(items), 1)]
        if not np.any(distances > 0):
            return 1.0  # all items are equal, and so is every width
        # More than half of the pairs are equal where items repeat; the others give the scale.
        return float(np.median(distances) or np.median(distances[distances > 0]))

    def diagonals(self, A):
        return np.ones(size(A), tiles.dtype_of(A))

    def _scale(self) -> float:
        if not isinstance(self.width, str):
            return float(self.width)
        if not hasattr(self, "width_"):
            raise EmpiriskError(
                f"width={self.width!r} is learned from data; call fit(X) on the kernel first, or give a number."
            )
        return self.width_

    def _centre(self, A: Any) -> NDArray | None:
        centre = getattr(self, "centre_", None)
        return centre if centre is not None and len(centre) == A.shape[1] else None


class Gaussian(Stationary):
    """k(x, z) = exp(-|x - z|^2 / (2 width^2)).

    Parameters
    ----------
    width : float, "median", "scale" or "auto"
        The distance over which similarity falls to exp(-1/2); "median" takes the median distance among the data;
        "scale" and "auto" are the rules of scikit-learn's ``gamma``, 1 / (d Var(X)) and 1 / d with d columns. What
        is learned does not depend on how often a row stands in the data.

    Attributes
    ----------
    width_ : float
        The learned width, after `fit` with a rule.

    Examples
    --------
    >>> er.kernels.Gaussian(1.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    >>> er.kernels.Gaussian.from_gamma(0.5)
    Gaussian(1.0)
    """

    sparse = True
    rules = ("median", "scale", "auto")

    def _learned_width(self, items):
        if self.width == "median":
            return self._median_distance(items)
        variance = 1.0 if self.width == "auto" else _variance(items[_distinct(items)])
        return float(np.sqrt(0.5 * items.shape[1] * (variance or 1.0)))

    @classmethod
    def from_gamma(cls, gamma: float) -> "Gaussian":
        """The kernel exp(-gamma |x - z|^2)."""
        require_positive(gamma, "gamma")
        return cls(float(1 / np.sqrt(2 * gamma)))

    def __repr__(self) -> str:
        return f"Gaussian({text(self.width)})"

    def between(self, A, B=None, out=None):
        exponents = Exponents(A, B, self._exponent(), self._centre(A))
        if exponents.thin:
            return exponents.fill_thin(out, lambda tile: np.exp(tile, out=tile))
        return self._formula(exponents).block(out, B is None)

    def formula(self, A, B):
        if issparse(A) and issparse(B):
            return None  # how full some of the rows are says nothing of the others
        return self._formula(Exponents(A, B, self._exponent(), self._centre(A)))

    def _formula(self, exponents: Exponents) -> Formula:
        floor, largest = FLOORS[exponents.dtype], exponents.largest
        if largest <= floor:
            return exponents.formula(EXPONENTIAL)
        # An exponent is off by the rounding of the norms of its pair. Where these are large, it is recomputed unless
        # the kernel is so small that the error does not show.
        share = 8 * float(np.finfo(exponents.dtype).eps)  # the few roundings of a norm, twice
        return exponents.formula(EXPONENTIAL, floor=floor, bound=float(np.log(floor / largest)), share=share)

    def expression(self, A):
        return None if issparse(A) else Expression("squared_distance", rows=A).scaled(-self._exponent()).exp()

    def pack(self, A):
        return A if tiles.thin(A) else packed(A, self._exponent(), self._centre(A))

    def _exponent(self) -> float:
        return 0.5 / self._scale() ** 2

    def radial_slopes(self, A, B):
        return self.between(A, B) / -(self._scale() ** 2)

    def distances(self, A):
        exponents = Exponents(A, None, 1.0, self._centre(A))
        if exponents.thin:
            return exponents.fill_thin(None, lambda tile: np.sqrt(-tile, out=tile))
        return _distances(exponents, 1.0, False).block(None, True)


@dataclass(eq=False, repr=False)
class Laplacian(Stationary):
    """k(x, z) = exp(-|x - z| / width), with the 1-norm or the 2-norm.

    Parameters
    ----------
    width : float or "median"
        The distance over which similarity falls to exp(-1); "median" takes the median distance among the data.
    norm : 1 or 2
        Which distance: the sum of absolute differences, or the Euclidean one.

    Attributes
    ----------
    width_ : float
        The learned width, after `fit` with ``width="median"``.

    Examples
    --------
    >>> er.kernels.Laplacian(2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    _state = state.State(norm=state.whole(1, 2))

    norm: int = 1

    def check(self):
        super().check()
        if self.norm not in (1, 2):
            raise EmpiriskError(f"norm={self.norm!r} must be 1 or 2.")

    def between(self, A, B=None, out=None):
        factor = -1 / self._scale()
        if self.norm == 1:
            return _manhattan(A, B, out, factor, True)
        return _distances(Exponents(A, B, 1.0, self._centre(A)), factor, True).block(out, B is None)

    def formula(self, A, B):
        if self.norm == 1:
            return None
        return _distances(Exponents(A, B, 1.0, self._centre(A)), -1 / self._scale(), True)

    def radial_slopes(self, A, B):
        if self.norm == 1:
            return super().radial_slopes(A, B)
        # t = -k / (width |a - b|), and the distance is -width log k.
        block, scale = self.between(A, B), self._scale()
        inside = (block > 0) & (block < 1)
        logarithms = np.log(block, out=np.full_like(block, np.inf), where=inside)
        return block / (logarithms * block.dtype.type(scale**2))

    def expression(self, A):
        return Expression("distance", whole=int(self.norm), rows=A).scaled(-1 / self._scale()).exp()

    def distances(self, A):
        if self.norm == 1:
            return _manhattan(A, None, None, 1.0, False)
        return _distances(Exponents(A, None, 1.0, None), 1.0, False).block(None, True)


def _distances(exponents: Exponents, factor: float, exponential: bool) -> Formula:
    """factor |a_i - b_j|, or its exponential."""
    # Squares this near to zero, relative to the norms, have lost most digits and are computed again directly.
    share = 1e-2 if exponents.dtype == np.float32 else 1e-5
    return exponents.formula(DISTANCE, factor=factor, exponential=exponential, floor=0.0, share=share)


def _manhattan(A: NDArray, B: NDArray | None, out: NDArray | None, factor: float, exponential: bool) -> NDArray:
    """factor sum_k |a_ik - b_jk|, or its exponential."""
    others = A if B is None else B
    tiles.require_same_columns(A, others)
    out = tiles.result(len(A), len(others), tiles.dtype_of(A), out)
    left, right = np.ascontiguousarray(A), np.ascontiguousarray(others.T)

    def run(rows: slice) -> None:
        first = rows.start if B is None else 0
        tiles.differences(left[rows], right, first, out[rows])
        part = out[rows, first:]
        part *= part.dtype.type(factor)
        if exponential:
            np.exp(part, out=part)

    parallel_map(run, slices(len(A), tiles.ROWS))
    if B is None:
        mirror(out)
    return out


class Anova(Kernel):
    """Sum over all groups of up to ``order`` columns of the product of k on each column of the group.

    k(x, z) = sum_{s <= order} e_s(k(x_1, z_1), ..., k(x_d, z_d)), where e_s is the sum of all products of s factors,
    by the recursion e_s(1..j) = e_s(1..j-1) + k(x_j, z_j) e_{s-1}(1..j-1).

    Parameters
    ----------
    kernel : Kernel or None
        The kernel on a single column; `Gaussian` if None.
    order : int
        The largest number of columns that interact; 1 is the sum over columns.

    Attributes
    ----------
    kernels_ : list of Kernel
        The kernel of each column, after `fit`: each learns its own width.

    Examples
    --------
    >>> er.kernels.Anova(er.kernels.Linear(), order=2)([[1.0, 2.0, 3.0]], [[1.0, 1.0, 1.0]])
    array([[17.]])
    """

    _state = state.State(
        kernel=state.maybe(state.part(Kernel)),
        order=state.whole(1),
        kernels_=state.optional(state.several(state.part(Kernel), "columns")),
    )

    def __init__(self, kernel: Kernel | None = None, order: int = 1):
        self.kernel = kernel
        self.order = order

    def check(self):
        require_whole(self.order, "order", 1)
        self._base().check()

    def _base(self) -> Kernel:
        return Gaussian() if self.kernel is None else self.kernel

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        X = as_matrix(X, False)
        self.kernels_ = [clone(self._base()).fit(X[:, [j]]) for j in range(X.shape[1])]
        return self

    def weigh(self, weights):
        for kernel in self.kernels_:
            kernel.weigh(weights)

    def _columns(self, count: int) -> list[Kernel]:
        kernels = getattr(self, "kernels_", None) or [self._base()] * count
        if len(kernels) != count:
            raise EmpiriskError(f"X has {count} columns, but the kernel was fitted on {len(kernels)}.")
        return kernels

    def prepare(self, X):
        self.check()
        X = as_matrix(X, False)
        kernels = self._columns(X.shape[1])
        return Parts(*(kernel.prepare(X[:, [j]]) for j, kernel in enumerate(kernels)))

    def between(self, A, B=None, out=None):
        kernels = self._columns(len(A.groups))
        if B is not None and len(B.groups) != len(A.groups):
            raise EmpiriskError(f"X has {len(A.groups)} columns and Z has {len(B.groups)}.")
        others = [None] * len(kernels) if B is None else B
        parts = (kernel.between(a, b) for kernel, a, b in zip(kernels, A, others, strict=True))
        return _elementary(parts, min(int(self.order), len(kernels)), out)

    def expression(self, A):
        kernels = self._columns(len(A.groups))
        return composed("elementary", kernels, A, whole=min(int(self.order), len(kernels)))

    def diagonals(self, A):
        parts = (kernel.diagonals(a) for kernel, a in zip(self._columns(len(A.groups)), A, strict=True))
        return _elementary(parts, min(int(self.order), len(A.groups)), None)

    def terms(self, A):
        kernels, groups = self._columns(len(A.groups)), A.groups
        sizes = range(1, min(int(self.order), len(kernels)) + 1)
        count = sum(comb(len(kernels), size) for size in sizes)
        if count > MOST_TERMS:
            raise TooLarge(f"{self!r} is a sum over {count} groups of columns; lower its order to see them one by one.")
        found = [group for size in sizes for group in combinations(range(len(kernels)), size)]
        return [
            Term(reduce(Product, (kernels[j] for j in group)), reduce(Parts, (groups[j] for j in group)), group)
            for group in found
        ]


def _elementary(parts: Any, order: int, out: NDArray | None) -> NDArray:
    """e_1 + ... + e_order of the parts, elementwise."""
    sums: list[NDArray] = []
    for part in parts:
        sums = sums or [np.zeros_like(part) for _ in range(order)]
        for s in range(order - 1, 0, -1):
            sums[s] += part * sums[s - 1]
        sums[0] += part
    total = sums[0] if out is None else out
    total[...] = sums[0]
    for other in sums[1:]:
        total += other
    return total
