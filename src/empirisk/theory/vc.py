"""Vapnik and Chervonenkis: bounds from how many labellings a class of machines can produce."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.kernels import Linear, Polynomial
from empirisk.protocols import TreeModel, is_grown
from empirisk.theory.bound import Bound, check_above_zero, check_open, check_rate, check_whole, complexity_bound

CLASSES = ("linear", "polynomial", "rectangle", "tree", "boolean_tree", "network")


def vc_bound(dimension: float, n: int, training_error: float = 0.0, delta: float = 0.05) -> Bound:
    """The true error of a machine from a class of VC dimension h, after n rows.

        training error + sqrt( (h (log(2n / h) + 1) + log(4 / delta)) / n )

    Parameters
    ----------
    dimension : float
        The VC dimension h of the class; see `vc_dimension`.
    n : int
        Training rows.
    training_error : float
        Share of training rows that the machine gets wrong.
    delta : float
        The probability with which the bound may fail.

    Returns
    -------
    Bound

    Examples
    --------
    >>> found = er.theory.vc_bound(dimension=3, n=10_000, training_error=0.1)
    >>> round(found.value, 4)
    0.1581
    >>> er.theory.vc_bound(dimension=101, n=200).vacuous
    True
    """
    dimension, n = check_above_zero("dimension", dimension), check_whole("n", n)
    training_error, delta = check_rate("training_error", training_error), check_open("delta", delta)
    size = min(dimension, 2 * n)  # beyond that the class can do anything with 2n rows
    complexity = size * (math.log(2 * n / size) + 1) + math.log(4 / delta)
    return complexity_bound(f"VC dimension {dimension:.4g}", complexity, n, training_error, delta)


def vc_dimension(
    machine: Any,
    features: int | None = None,
    *,
    degree: int | None = None,
    leaves: int | None = None,
    edges: int | None = None,
    constant: bool = True,
) -> Bound:
    """The most rows that a class of machines can label in every way.

    ============ ============================================== =======================
    class        machines                                       VC dimension
    ============ ============================================== =======================
    linear       hyperplanes in d columns                       d + 1, or d through 0
    polynomial   polynomials of degree p in d columns           binomial(d + p, p)
    rectangle    boxes along the axes, positive inside          2 d
    tree         trees of L leaves, one column at each split    at most the largest m with
                                                                2^m <= Catalan(L-1) (d m)^(L-1) 2^L
    boolean_tree trees on d columns of 0 and 1                  2^d; of L leaves at most
                                                                log2(Catalan(L-1) d^(L-1) 2^L)
    network      networks of sign units with |E| weights        at most 2 |E| log2(e |E|)
    ============ ============================================== =======================

    Parameters
    ----------
    machine : str or fitted machine
        One of these classes, or a fitted linear machine, kernel machine or tree. A feature map counts by its
        columns; a kernel without a finite number of features has no finite dimension.
    features : int
        The columns d; known where a fitted machine is given.
    degree : int
        The degree p of "polynomial".
    leaves : int
        The leaves L of "tree"; of "boolean_tree", if they are limited.
    edges : int
        The weights |E| of "network", biases included.
    constant : bool
        Whether the machine has an intercept, and a polynomial its lower powers: the polynomial without them has
        binomial(d + p - 1, p) + 1.

    Returns
    -------
    Bound
        Vacuous where it is infinite.

    Examples
    --------
    >>> er.theory.vc_dimension("linear", 2).value
    3
    >>> er.theory.vc_dimension("polynomial", 2, degree=3).value
    10
    >>> er.theory.vc_dimension(er.SVM().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])).value
    3
    """
    if not isinstance(machine, str):
        return _of_machine(machine)
    if machine not in CLASSES:
        raise EmpiriskError(f"machine={machine!r} is no class known here; use one of {CLASSES}.")
    if machine == "network":
        count = check_whole("edges", edges)
        # Baum and Haussler: 2 |E| log2(e N) with N units, of which there are no more than weights.
        return _dimension(math.floor(2 * count * math.log2(math.e * count)), f"Networks of {count} weights", "at most ")
    d = check_whole("features", features)
    if machine == "rectangle":
        return _dimension(2 * d, "Boxes along the axes")
    if machine == "boolean_tree":
        return _boolean_trees(d, leaves)
    if machine == "linear":
        return _dimension(d + bool(constant), "Hyperplanes")
    if machine == "tree":
        return _dimension(_tree_dimension(check_whole("leaves", leaves), d), f"Trees of {leaves} leaves", "at most ")
    p = check_whole("degree", degree)
    return _dimension(polynomial_dimension(d, p, constant), f"Polynomials of degree {p}")


def _boolean_trees(features: int, leaves: int | None) -> Bound:
    """Trees on columns of 0 and 1, of any size or of so many leaves."""
    if leaves is None or check_whole("leaves", leaves) >= 2**features:
        return _dimension(2**features, "Trees on columns of 0 and 1")  # a leaf for every row there can be
    # Splits have no thresholds to choose: a tree is its shape, a column at each split, and the answers.
    count = math.floor(log_tree_growth(leaves, features, rows=1) / math.log(2))
    return _dimension(min(count, 2**features), f"Trees of {leaves} leaves on columns of 0 and 1", "at most ")


def polynomial_dimension(features: int, degree: int, constant: bool) -> int:
    """The VC dimension of polynomials: with all lower powers, or of one degree and an intercept."""
    return math.comb(features + degree, degree) if constant else math.comb(features + degree - 1, degree) + 1


def log_tree_growth(leaves: int, features: int, rows: int, classes: int = 2) -> float:
    """Logarithm of the most labellings of rows by trees: shapes, splits, answers in the leaves."""
    splits = leaves - 1
    shapes = math.lgamma(2 * splits + 1) - math.lgamma(splits + 1) - math.lgamma(splits + 2)
    return shapes + splits * math.log(features * rows) + leaves * math.log(classes)


def tree_bound(
    tree: Any,
    X: Any = None,
    y: Any = None,
    *,
    n: int | None = None,
    features: int | None = None,
    training_error: float | None = None,
    classes: int = 2,
    delta: float = 0.05,
    theorem: str = "growth",
) -> Bound:
    """The true error of a tree, whose number of leaves L the data may have chosen.

        "growth"        training error + sqrt( (log G + log(4 L (L + 1) / delta)) / n ),
                        G = Catalan(L-1) (2 d n)^(L-1) K^L
        "description"   training error + sqrt( ((N + 1) log2(d + 1 + K) + log2(2 / delta)) / (2 n) ),
                        N = 2 L - 1 nodes, leaves included

    The first is Vapnik's theorem on the growth function: G counts the labellings of 2n rows by trees of L leaves, each
    split at one value of one of d columns, for K classes; L (L + 1) pays for the choice of L. The second is the
    theorem of the texts, for columns of 0 and 1 alone: a tree is written down node by node, each in log2(d + 1 + K)
    bits that name a column, an answer or the end, and few bits mean little overfitting. Every node needs its word: the
    three splits of a tree of four leaves alone would be 12 bits for d = 5, fewer than its 10 000 forms can be told by.

    Parameters
    ----------
    tree : fitted tree, or int
        A classification tree with its training rows in ``X`` and ``y``, or the number of leaves with ``n``,
        ``features`` and ``training_error``.
    X, y : arrays
        The training rows of a fitted tree.
    n, features : int
        Training rows and columns.
    training_error : float
        Share of training rows that the tree gets wrong.
    classes : int
        Number of classes K.
    delta : float
        The probability with which the bound may fail.
    theorem : {"growth", "description"}
        The theorem; "description" holds where every column is 0 or 1.

    Returns
    -------
    Bound

    Examples
    --------
    >>> round(er.theory.tree_bound(4, n=10_000, features=5, training_error=0.1).value, 4)
    0.168
    >>> round(er.theory.tree_bound(4, n=10_000, features=5, training_error=0.1, theorem="description").value, 4)
    0.1383
    >>> round(er.theory.tree_bound(2, n=10_000, features=5, training_error=0.1, theorem="description").value, 4)
    0.1294
    >>> X = np.arange(100.0)[:, None]
    >>> tree = er.TreeClassifier(max_leaf_nodes=2).fit(X, X[:, 0] > 30)
    >>> er.theory.tree_bound(tree, X, X[:, 0] > 30).value < 0.5
    True
    """
    if theorem not in ("growth", "description"):
        raise EmpiriskError(f"theorem={theorem!r} is not known; use 'growth' or 'description'.")
    if _is_tree(tree):
        if X is None or y is None or not hasattr(tree, "classes_"):
            raise EmpiriskError("tree_bound of a machine needs a classification tree and its training rows X and y.")
        training_error, n = 1 - float(tree.score(X, y)), len(y)
        leaves, features, classes = _leaves(tree), tree.n_features_in_, max(2, len(tree.classes_))
        if theorem == "description" and not np.isin(np.asarray(X), (0, 1)).all():
            raise EmpiriskError("theorem='description' is for columns of 0 and 1; use theorem='growth'.")
    else:
        leaves = check_whole("tree", tree)
    n, features, classes = check_whole("n", n), check_whole("features", features), check_whole("classes", classes, 2)
    training_error, delta = check_rate("training_error", training_error), check_open("delta", delta)
    if theorem == "growth":
        growth = log_tree_growth(leaves, features, 2 * n, classes) + math.log(leaves * (leaves + 1))
        return complexity_bound(f"{leaves} leaves", growth + math.log(4 / delta), n, training_error, delta)
    bits = 2 * leaves * math.log2(features + 1 + classes)
    what, complexity = f"{leaves} leaves, written down in {bits:.4g} bits,", (bits + math.log2(2 / delta)) / 2
    return complexity_bound(what, complexity, n, training_error, delta)


def _of_machine(machine: Any) -> Bound:
    """The dimension of the class that a fitted machine comes from."""
    check_is_fitted(machine)
    name = type(machine).__name__
    if _is_tree(machine):
        leaves = _leaves(machine)
        dimension = _tree_dimension(leaves, machine.n_features_in_)
        return _dimension(dimension, f"Trees of {leaves} leaves like this {name}", "at most ")
    if hasattr(getattr(machine, "features_", None), "layer_outputs"):
        raise EmpiriskError("machine has learned its features, which counts; use vc_dimension('network', edges=...).")
    intercept = bool(getattr(machine, "fit_intercept", True))
    if hasattr(machine, "coef_"):
        return _dimension(machine.coef_.shape[-1] + intercept, f"Machines like this {name}")
    if not hasattr(machine, "dual_coef_"):
        raise EmpiriskError(f"machine={machine!r} is neither linear nor a kernel machine nor a tree; give its class.")
    return _dimension(kernel_features(machine) + intercept, f"Machines like this {name}")


def kernel_features(machine: Any) -> float:
    """How many features a kernel machine has beside the constant: finite for inner products and their powers."""
    kernel = machine.features_
    count = FEATURES.get(type(kernel))
    return math.inf if count is None else count(kernel, machine.n_features_in_)


FEATURES: dict[type, Callable[[Any, int], int]] = {
    Linear: lambda kernel, d: d,
    Polynomial: lambda kernel, d: polynomial_dimension(d, kernel.degree, kernel.constant != 0) - 1,
}


def _is_tree(machine: Any) -> bool:
    """Whether it is one tree, not a forest."""
    return is_grown(machine) and machine.nodes_.n_trees == 1


def _leaves(tree: TreeModel) -> int:
    return int(tree.nodes_.is_leaf.sum())


def _tree_dimension(leaves: int, features: int) -> int:
    """The largest number of rows whose labellings the count of trees allows for."""
    rows = 1
    while (rows + 1) * math.log(2) <= log_tree_growth(leaves, features, rows + 1):
        rows += 1
    return rows


def _dimension(value: float, what: str, relation: str = "") -> Bound:
    if math.isinf(value):
        return Bound(value, True, f"{what} can label any number of rows in every way: their VC dimension is infinite.")
    return Bound(value, False, f"{what} can label {relation}{value} rows in every way, and no more.")
