"""Tensors: what a computation is written in so that it becomes a graph.

A `Tensor` holds the answers for a few rows, and how they were made. It takes NumPy's functions and operators, and those
of the array namespace in which losses are written, so that the machines' own formulas run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.exports import operations

#: Entries beyond which differences are taken to be this large: their squares are numbers, and every kernel is zero.
FAR = 1e140
#: What formulas are written on: a `Tensor`, of which NumPy's own types do not know that its functions take it.
Symbolic = Any


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a graph; an input of the graph and a constant have none.

    Attributes
    ----------
    operation : str
        A name of `operations`; "Input" or "Constant".
    inputs : tuple of Tensor
        What it is applied to.
    attributes : dict
        What it is told besides: numbers, texts, lists and arrays.
    """

    operation: str
    inputs: tuple[Tensor, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


class Tensor(np.lib.mixins.NDArrayOperatorsMixin):
    """One output of a node, and its values for the rows that are traced.

    Examples
    --------
    >>> from empirisk.exports.tensor import entry
    >>> x = entry("x", np.array([[1.0, 2.0]]))
    >>> (np.exp(x) @ np.ones((2, 1))).node.operation
    'MatMul'
    """

    def __init__(self, node: Node, value: NDArray[Any], output: int = 0):
        self.node, self.value, self.output = node, value, output

    # --- what arrays have -------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The type of its entries."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape for the traced rows."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Its number of axes."""
        return self.value.ndim

    @property
    def T(self) -> Tensor:
        """The axes in the other order."""
        return apply("Transpose", self, perm=list(range(self.ndim))[::-1])

    def __len__(self) -> int:
        return len(self.value)

    def __array_namespace__(self, api_version: Any = None) -> Any:
        return NAMESPACE

    def astype(self, dtype: Any, copy: bool = True) -> Tensor:
        """The entries as numbers of another type."""
        kind = {"f": "double", "i": "int64", "b": "bool"}[np.dtype(dtype).kind]
        return self if kind == kind_of(self.value) else apply("Cast", self, to=kind)

    def reshape(self, *shape: Any) -> Tensor:
        """Another shape; the first axis, of the rows, stays."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return apply("Reshape", self, shape=[0, *map(int, given[1:])])

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Sums along axes."""
        return _reduced("ReduceSum", self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Means along axes."""
        return _reduced("ReduceMean", self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The largest along axes."""
        return _reduced("ReduceMax", self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The smallest along axes."""
        return _reduced("ReduceMin", self, axis, keepdims)

    def argmax(self, axis: int) -> Tensor:
        """The place of the largest along an axis, of equal ones the first."""
        return apply("ArgMax", self, axis=axis)

    def argmin(self, axis: int) -> Tensor:
        """The place of the smallest along an axis, of equal ones the first."""
        return (-self).argmax(axis)

    def copy(self) -> Tensor:
        """Itself: nothing changes a tensor."""
        return self

    def __getitem__(self, key: Any) -> Tensor:
        """Rows at places, or entries along axes: whole numbers, lists, slices and new axes of length one."""
        if isinstance(key, Tensor):
            return apply("Gather", self, key, axis=0)
        found, axis = self, 0
        parts = list(key) if isinstance(key, tuple) else [key]
        for place in [k for k, part in enumerate(parts) if part is Ellipsis]:
            given = sum(part is not None for part in parts) - 1
            parts[place : place + 1] = [slice(None)] * (self.ndim - given)
        for part in parts:
            if part is None:
                shape = [0] * axis + [1] + list(found.shape[axis:])
                found = apply("Reshape", found, shape=shape)
            elif not (isinstance(part, slice) and part == slice(None)):
                places = np.arange(found.shape[axis])[part]
                found = apply("Gather", found, places.astype(np.int64), axis=axis)
                axis -= places.ndim == 0
            axis += 1
        return found

    # --- NumPy's protocols ------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        known = UFUNCS.get(ufunc.__name__)
        if known is None or method != "__call__" or set(options) - {"dtype"}:
            raise EmpiriskError(f"np.{ufunc.__name__} has no form in an exported graph.")
        return known(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        known = FUNCTIONS.get(function)
        if known is None:
            raise EmpiriskError(f"np.{function.__name__} has no form in an exported graph.")
        return known(*args, **options)

    def __matmul__(self, other: Any) -> Tensor:
        return apply("MatMul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return apply("MatMul", other, self)


def entry(name: str, value: NDArray[Any]) -> Tensor:
    """An input of the graph, with its values for the rows that are traced."""
    return Tensor(Node("Input", (), {"name": name}), value)


def constant(value: Any) -> Symbolic:
    """An array that is part of the graph.

    >>> constant([1, 2]).node.operation
    'Constant'
    """
    array = np.asarray(value)
    types = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_, "U": object, "O": object}
    return Tensor(Node("Constant"), array.astype(types[array.dtype.kind]))


def kind_of(array: NDArray[Any]) -> str:
    """The name of the type of an array in a graph.

    >>> kind_of(np.array(["a"]))
    'string'
    """
    return {"f": "double", "i": "int64", "b": "bool", "U": "string", "O": "string"}[array.dtype.kind]


def apply(operation: str, *inputs: Any, **attributes: Any) -> Any:
    """The tensor, or the tensors, that an operation makes of others; arrays among the inputs are constants."""
    given = [each if isinstance(each, Tensor) else constant(each) for each in inputs]
    given = FOLDED.get(operation, lambda *each: each)(*given)
    if isinstance(given, Tensor):
        return given
    node = Node(operation, tuple(given), attributes)
    with np.errstate(all="ignore"):
        value = operations.find(operation)(*(each.value for each in given), **attributes)
    if isinstance(value, tuple):
        return tuple(Tensor(node, each, output) for output, each in enumerate(value))
    return Tensor(node, np.asarray(value))


def _is_constant(x: Tensor) -> bool:
    return x.node.operation == "Constant"


def _scaled_product(a: Tensor, b: Tensor) -> Any:
    """(x W) c as x (W c), for a number c.

    ONNX Runtime would make one operation of the product and the number, and keep the number in single precision.
    """
    for product, factor in ((a, b), (b, a)):
        if _is_constant(factor) and factor.value.size == 1 and product.node.operation == "MatMul":
            rows, matrix = product.node.inputs
            if _is_constant(matrix):
                return apply("MatMul", rows, matrix.value * factor.value.item())
    return a, b


def _product_of_scaled(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(x c) W as x (W c), for a number c: see `_scaled_product`."""
    if a.node.operation == "Mul" and _is_constant(b):
        for rows, factor in (a.node.inputs, a.node.inputs[::-1]):
            if _is_constant(factor) and factor.value.size == 1:
                return rows, constant(b.value * factor.value.item())
    return a, b


def _divided_product(a: Tensor, b: Tensor) -> Any:
    """(x W) / c as x (W / c): see `_scaled_product`."""
    alone = _is_constant(b) and b.value.size == 1 and a.node.operation == "MatMul"
    return _scaled_product(a, constant(1.0 / b.value)) if alone else (a, b)


#: Operations that are written otherwise: what makes of their inputs others, or the tensor itself.
FOLDED: dict[str, Callable[..., Any]] = {
    "Mul": _scaled_product,
    "Div": _divided_product,
    "MatMul": _product_of_scaled,
}


def numeric(value: Any) -> Symbolic:
    """Numbers as doubles, of truth values and whole numbers too."""
    if isinstance(value, Tensor):
        return value.astype(np.float64)
    return constant(np.asarray(value, dtype=np.float64))


# --- how NumPy's functions are written in operations ------------------------------------------------------------------


def _on_numbers(operation: str) -> Callable[..., Symbolic]:
    return lambda *inputs: apply(operation, *map(numeric, inputs))


def _on_truths(operation: str) -> Callable[..., Symbolic]:
    return lambda *inputs: apply(operation, *inputs)


def _reduced(operation: str, x: Symbolic, axis: Any, keepdims: bool) -> Symbolic:
    axes = [axis] if np.ndim(axis) == 0 else list(axis)
    if None in axes:
        raise EmpiriskError("A sum over all rows has no form in an exported graph.")
    axes = [int(each) % x.ndim for each in axes]
    return apply(operation, numeric(x), axes=axes, keepdims=int(keepdims))


def _equal(a: Any, b: Any) -> Symbolic:
    words = any(kind_of(np.asarray(getattr(each, "value", each))) == "string" for each in (a, b))
    return apply("Equal", a, b) if words else apply("Equal", numeric(a), numeric(b))


def _log1p(x: Any) -> Symbolic:
    """ln(1 + x) = ln(u) x / (u - 1) with u = 1 + x, whose errors cancel; x where u is 1."""
    x, u = numeric(x), 1.0 + numeric(x)
    near = u == 1.0
    safe = np.where(near | np.isinf(u), 2.0, u)
    return np.where(near, x, np.where(np.isinf(u), u, np.log(safe) * x / (safe - 1.0)))


def _expm1(x: Any) -> Symbolic:
    """exp(x) - 1 = (u - 1) x / ln(u) with u = exp(x), whose errors cancel."""
    x, u = numeric(x), np.exp(numeric(x))
    plain = (u == 1.0) | (np.abs(x) > 1.0)
    safe = np.where(plain, 2.0, u)
    return np.where(np.abs(x) > 1.0, u - 1.0, np.where(u == 1.0, x, (safe - 1.0) * x / np.log(safe)))


def expit(x: Any) -> Symbolic:
    """1 / (1 + exp(-x)), with all digits where it is small too: the operation of ONNX Runtime gives 0 there."""
    x = numeric(x)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _nextafter(x: Any, y: Any) -> Symbolic:
    """One or two units in the last place from x towards y."""
    x, y = numeric(x), numeric(y)
    return x + np.sign(y - x) * np.abs(x) * np.finfo(float).eps


def _logaddexp(a: Any, b: Any) -> Symbolic:
    a, b = numeric(a), numeric(b)
    return np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))


def _where(condition: Any, a: Any, b: Any) -> Symbolic:
    kinds = {kind_of(np.asarray(getattr(each, "value", each))) for each in (a, b)}
    same = kinds in ({"int64"}, {"string"})
    return apply("Where", condition, *((a, b) if same else (numeric(a), numeric(b))))


def _concatenate(parts: Sequence[Any], axis: int = 0) -> Symbolic:
    found = [part if isinstance(part, Tensor) else constant(part) for part in parts]
    if len({kind_of(part.value) for part in found}) > 1:
        found = [numeric(part) for part in found]
    return found[0] if len(found) == 1 else apply("Concat", *found, axis=axis)


def _column_stack(parts: Sequence[Any]) -> Symbolic:
    return _concatenate([part[:, None] if part.ndim == 1 else part for part in parts], axis=1)


def _stack(parts: Sequence[Any], axis: int = 0) -> Symbolic:
    place = axis % (parts[0].ndim + 1)
    new = (*[slice(None)] * place, None)
    return _concatenate([part[new] for part in parts], axis=place)


def _sort(x: Symbolic, axis: int = -1) -> Symbolic:
    return apply("TopK", x, k=x.shape[axis], axis=axis % x.ndim, largest=0)[0]


def _take_along_axis(x: Symbolic, places: Symbolic, axis: int) -> Symbolic:
    return apply("GatherElements", x, places, axis=axis)


def _split(x: Symbolic, ends: Sequence[int], axis: int) -> list[Symbolic]:
    bounds = [0, *map(int, ends), x.shape[axis]]
    before = [slice(None)] * axis
    return [x[(*before, slice(low, high))] for low, high in pairwise(bounds)]


def _swapaxes(x: Symbolic, first: int, second: int) -> Symbolic:
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]
    return apply("Transpose", x, perm=order)


def _clip(x: Any, low: Any = None, high: Any = None) -> Symbolic:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def softmax(x: Symbolic, axis: int) -> Symbolic:
    """exp(x) over its sum along an axis, without overflow."""
    shares = np.exp(x - x.max(axis=axis, keepdims=True))
    return shares / shares.sum(axis=axis, keepdims=True)


def log_sum_exp(x: Symbolic, axis: int, keepdims: bool = False) -> Symbolic:
    """ln of the sum of exp(x) along an axis, without overflow."""
    top = x.max(axis=axis, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdims else total.sum(axis=axis)


def error_function(x: Any) -> Symbolic:
    """erf(x), which ONNX has for single precision alone: Cody's rational functions on the halves of three intervals."""
    x = numeric(x)
    size = np.minimum(np.abs(x), 6.0)  # where it is 1 to the last digit
    square, inverse = size * size, 1.0 / np.maximum(size * size, 0.25)
    near = size * _ratio(square, *ERF_NEAR)
    middle = 1.0 - np.exp(-square) * _ratio(size, *ERF_MIDDLE)
    tail = (1 / np.sqrt(np.pi) - inverse * _ratio(inverse, *ERF_FAR)) / np.maximum(size, 0.5)
    far = 1.0 - np.exp(-square) * tail
    return np.sign(x) * np.where(size <= 0.46875, near, np.where(size <= 4.0, middle, far))


#: Numerators and denominators of W. J. Cody, Rational Chebyshev approximations for the error function (1969), highest
#: power first: up to 0.46875 in x^2, up to 4 in x, beyond in 1 / x^2.
ERF_NEAR = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
ERF_MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
        2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip
ERF_FAR = (
    (
        1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
        1.60837851487422766e-2, 6.58749161529837803e-4,
    ),
    (
        1.0, 2.56852019228982242e0, 1.87295284992346047e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)  # fmt: skip


def _ratio(x: Symbolic, above: Sequence[float], below: Sequence[float]) -> Symbolic:
    """A quotient of two polynomials."""
    found = []
    for coefficients in (above, below):
        total: Any = coefficients[0]
        for each in coefficients[1:]:
            total = total * x + each
        found.append(total)
    return found[0] / found[1]


#: By their names: SciPy has two objects of each of its own, one of which is behind the other.
UFUNCS: dict[str, Callable[..., Any]] = {
    **{
        ufunc: _on_numbers(operation)
        for ufunc, operation in {
            "add": "Add",
            "subtract": "Sub",
            "multiply": "Mul",
            "divide": "Div",
            "negative": "Neg",
            "power": "Pow",
            "absolute": "Abs",
            "exp": "Exp",
            "log": "Log",
            "sqrt": "Sqrt",
            "sin": "Sin",
            "cos": "Cos",
            "tanh": "Tanh",
            "floor": "Floor",
            "sign": "Sign",
            "maximum": "Max",
            "minimum": "Min",
            "greater": "Greater",
            "greater_equal": "GreaterOrEqual",
            "less": "Less",
            "less_equal": "LessOrEqual",
            "isnan": "IsNaN",
            "isinf": "IsInf",
        }.items()
    },
    **{
        ufunc: _on_truths(operation)
        for ufunc, operation in {
            "bitwise_and": "And",
            "logical_and": "And",
            "bitwise_or": "Or",
            "logical_or": "Or",
            "invert": "Not",
            "logical_not": "Not",
        }.items()
    },
    "matmul": lambda a, b: apply("MatMul", a, b),
    "equal": _equal,
    "not_equal": lambda a, b: apply("Not", _equal(a, b)),
    "square": lambda x: x * x,
    "log1p": _log1p,
    "expm1": _expm1,
    "nextafter": _nextafter,
    "logaddexp": _logaddexp,
    "erf": error_function,
    "expit": expit,
}
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.concatenate: _concatenate,
    np.hstack: _column_stack,
    np.column_stack: _column_stack,
    np.stack: _stack,
    np.sort: _sort,
    np.clip: _clip,
    np.split: _split,
    np.swapaxes: _swapaxes,
    np.take_along_axis: _take_along_axis,
    np.sum: lambda x, axis=None, keepdims=False: x.sum(axis, keepdims),
    np.mean: lambda x, axis=None, keepdims=False: x.mean(axis, keepdims),
    np.max: lambda x, axis=None, keepdims=False: x.max(axis, keepdims),
    np.min: lambda x, axis=None, keepdims=False: x.min(axis, keepdims),
    np.argmax: lambda x, axis: x.argmax(axis),
    np.ascontiguousarray: lambda x, dtype=None: x,
    np.broadcast_to: lambda x, shape: x,
    np.atleast_2d: lambda x: x,
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
}


class Special:
    """The special functions of tensors."""

    expit = staticmethod(expit)
    softmax = staticmethod(softmax)

    @staticmethod
    def log_softmax(x: Symbolic, axis: int) -> Symbolic:
        """ln of the softmax."""
        return x - log_sum_exp(x, axis, keepdims=True)


class Namespace:
    """The functions for tensors that formulas ask for: NumPy's, which come back to `UFUNCS` and `FUNCTIONS`."""

    special = Special

    @staticmethod
    def summed_gaps(a: Symbolic, b: Any, power: int) -> Symbolic:
        """sum_k |a_ik - b_jk|^power by columns: all differences at once would take the memory of many blocks."""
        a, columns = np.clip(a, -FAR, FAR), range(b.shape[-1])
        gaps = (np.abs(a[..., [k]] - np.swapaxes(b[..., [k]], -1, -2)) for k in columns)
        return reduce(np.add, (gap * gap if power == 2 else gap for gap in gaps))

    @staticmethod
    def put_along_axis(x: Symbolic, places: Any, values: Any, axis: int, inplace: bool = False) -> Symbolic:
        """A tensor with other values at one place of each row."""
        return np.where(np.arange(x.shape[axis]) == places, values, x)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


NAMESPACE = Namespace()
