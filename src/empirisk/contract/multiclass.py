"""From several classes to two: coding matrices, and how their answers are read."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError, listed
from empirisk.losses.base import Array, Loss

#: The scheme of a classifier whose rows have any number of several labels, each learned by itself.
LABELS = "labels"


def binary(classes: int, random: np.random.Generator) -> Array:
    """Two classes: one machine, positive for the second."""
    return np.array([[-1.0, 1.0]])


def one_vs_rest(classes: int, random: np.random.Generator) -> Array:
    """Each class against all others: K machines."""
    return 2.0 * np.eye(classes) - 1.0


def one_vs_one(classes: int, random: np.random.Generator) -> Array:
    """Each pair of classes: K (K - 1) / 2 machines; the class with the larger number is positive."""
    first, second = np.triu_indices(classes, 1)
    return np.eye(classes)[second] - np.eye(classes)[first]


def error_correcting(classes: int, random: np.random.Generator) -> Array:
    """A dense code: every split for up to five classes, else the best of random codes of length 10 log2 K."""
    if classes <= 5:
        numbers = np.arange(1, 2 ** (classes - 1))
        bits = (numbers[:, None] >> np.arange(classes)) & 1
        return 2.0 * bits - 1.0
    length = int(np.ceil(10 * np.log2(classes)))
    # The best of fifty is about as far apart as the best of thousands, and drawn in a moment.
    candidates = [_random_code(length, classes, random) for _ in range(50)]
    return max(candidates, key=_separation)


def _random_code(length: int, classes: int, random: np.random.Generator) -> Array:
    codes = random.choice([-1.0, 1.0], size=(length, classes))
    # A row that puts all classes on one side says nothing: flip one class in it.
    flat = np.abs(codes.sum(axis=1)) == classes
    codes[flat, random.integers(classes, size=flat.sum())] *= -1
    return codes


def _separation(codes: Array) -> float:
    """The smallest number of places in which two classes differ."""
    products = codes.T @ codes
    return float((len(codes) - products[np.triu_indices(codes.shape[1], 1)].max()) / 2)


SCHEMES: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "binary": binary,
    "one_vs_rest": one_vs_rest,
    "one_vs_one": one_vs_one,
    "error_correcting": error_correcting,
}


CHOICES = ("auto", "joint", "one_vs_rest", "one_vs_one", "error_correcting")


def name_of(multiclass: Any) -> str:
    """The name of the scheme that is asked for: of a code matrix that of output codes.

    >>> name_of("joint"), name_of([[1, -1, 0], [0, 1, -1]])
    ('joint', 'error_correcting')
    """
    return multiclass if isinstance(multiclass, str) else "error_correcting"


def codes_for(multiclass: Any, scheme: str, classes: NDArray, random: np.random.Generator) -> Array:
    """The coding matrix: the one that was given, where there are more than two classes, or that of the scheme."""
    given = None if isinstance(multiclass, str) else code_matrix(multiclass, classes)
    return SCHEMES[scheme](len(classes), random) if given is None or scheme == "binary" else given


def code_matrix(given: Any, classes: NDArray) -> Array:
    """A code matrix of the user's own as an array: -1, 0 or +1, a row for each machine and a column for each class.

    >>> code_matrix([[1, 1, -1], [1, -1, 0]], np.array(["a", "b", "c"]))
    array([[ 1.,  1., -1.],
           [ 1., -1.,  0.]])
    """
    unknown = EmpiriskError(f"multiclass={given!r} is not known; choose one of {CHOICES}, or give a matrix of codes.")
    try:
        codes = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise unknown from None
    if codes.ndim == 0:
        raise unknown
    if codes.ndim != 2 or codes.shape[1] != len(classes):
        turned = codes.ndim == 2 and codes.shape[0] == len(classes)
        raise EmpiriskError(
            f"multiclass is a matrix of shape {codes.shape}, but y has {len(classes)} classes, {listed(classes)}; "
            f"{'transpose it' if turned else 'give a row for each machine and a column for each class'}."
        )
    if not np.isin(codes, (-1, 0, 1)).all():
        raise EmpiriskError("multiclass as a matrix must hold -1, 0 (the class takes no part) and +1 only.")
    one_sided = np.flatnonzero((codes.max(axis=1, initial=-1) < 1) | (codes.min(axis=1, initial=1) > -1))
    if len(one_sided):
        raise EmpiriskError(f"Row {one_sided[0]} of multiclass has not both -1 and +1: no machine can learn from it.")
    idle = np.flatnonzero(~codes.any(axis=0))
    if len(codes) and len(idle):
        raise EmpiriskError(f"multiclass has zeros only for the class {classes[idle[0]]}; give it -1 or +1 in a row.")
    _, first, same = np.unique(codes, axis=1, return_index=True, return_inverse=True)
    twins = np.flatnonzero(first[same.ravel()] != np.arange(len(classes)))
    if len(twins):
        pair = classes[first[same.ravel()][twins[0]]], classes[twins[0]]
        raise EmpiriskError(
            f"multiclass has equal columns for the classes {pair[0]} and {pair[1]}, which no code can then tell apart; "
            "add a row in which they differ."
        )
    return codes


def scheme_for(multiclass: Any, loss: Loss) -> str:
    """The scheme that ``multiclass`` and the loss ask for: "joint" or a name in `SCHEMES`."""
    given, multiclass = multiclass, name_of(multiclass)
    if multiclass == "auto":
        return "joint" if loss.joint or (loss.joint_form and loss.probabilistic) else "one_vs_rest"
    if multiclass not in CHOICES:
        raise EmpiriskError(f"multiclass={multiclass!r} is not known; choose one of {CHOICES}.")
    if multiclass == "joint" and not (loss.joint or loss.joint_form):
        raise EmpiriskError(
            f"multiclass='joint' has no meaning for {loss!r}; use 'one_vs_rest', or the logistic or hinge loss."
        )
    if multiclass != "joint" and loss.joint:
        raise EmpiriskError(f"{loss!r} is a joint loss and needs multiclass='joint' or 'auto', not {given!r}.")
    return multiclass


def read(scheme: str, codes: Array, f: Array, loss: Loss) -> Array:
    """Scores of the K classes from the answers f (n x machines) of a coding matrix; the largest wins.

    Two classes: one score, positive for the second. One-vs-rest, joint and labels: the answers themselves. One-vs-one:
    votes, ties settled by the sum of the answers, squeezed into less than half a vote. Output codes: minus the total
    loss of the class's code word; where that is 0, an answer costs what an undecided one would.
    """
    if scheme == "binary":
        return f[:, 0]
    if scheme in ("one_vs_rest", "joint", LABELS):
        return f[:, 1] - f[:, 0] if scheme == "joint" and f.shape[1] == 2 else f
    if scheme == "one_vs_one":
        votes = np.where(f >= 0, 1.0, -1.0) @ codes
        counts = 0.5 * (votes + np.abs(codes).sum(axis=0))
        sums = f @ codes
        return counts + sums / (3 * (np.abs(sums) + 1))
    with np.errstate(over="ignore"):  # of an exponential loss; the largest number is as bad
        # An answer to another class's question is taken to be 0, to which both signs have the same loss.
        words = ((np.where(code == 0, 1.0, code), np.where(code == 0, 0.0, f)) for code in codes.T)
        totals = [loss.value(signs, answers).sum(axis=1) for signs, answers in words]
    return np.maximum(-np.column_stack(totals), np.finfo(float).min)


def class_probabilities(loss: Loss, f: Array) -> Array:
    """Probabilities of the classes from the answers of a joint loss, of one function for two, or of one for each.

    >>> from empirisk.losses import Logistic
    >>> class_probabilities(Logistic(), np.array([[0.0]]))
    array([[0.5, 0.5]])
    """
    if f.shape[1] == 1:
        return np.column_stack([loss.link(-f[:, 0]), loss.link(f[:, 0])])
    p = loss.link(f)
    return p if loss.joint else p / p.sum(axis=1, keepdims=True)


def winners(scores: Array, classes: NDArray) -> NDArray:
    """The class of each row: the largest score, or for two classes the second where the one score is not negative."""
    chosen = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return classes[chosen]


def elected(shares: Array, classes: NDArray) -> NDArray:
    """The class with the largest share: of two classes the second where they are equal, else the first of equals."""
    return winners(shares[:, 1] - shares[:, 0] if len(classes) == 2 else shares, classes)


def untied(shares: Array) -> Array:
    """Probabilities whose largest one is that of the class `elected`: of two equal ones the second is next above."""
    if shares.shape[1] != 2:
        return shares
    equal = shares[:, 0] == shares[:, 1]
    return np.where(equal[:, None], [np.nextafter(0.5, 0.0), np.nextafter(0.5, 1.0)], shares)
