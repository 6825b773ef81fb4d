"""From several classes to two: coding matrices, and how their answers are read."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
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


def scheme_for(multiclass: str, loss: Loss) -> str:
    """The scheme that ``multiclass`` and the loss ask for: "joint" or a name in `SCHEMES`."""
    if multiclass == "auto":
        return "joint" if loss.joint or (loss.joint_form and loss.probabilistic) else "one_vs_rest"
    if multiclass not in CHOICES:
        raise EmpiriskError(f"multiclass={multiclass!r} is not known; choose one of {CHOICES}.")
    if multiclass == "joint" and not (loss.joint or loss.joint_form):
        raise EmpiriskError(
            f"multiclass='joint' has no meaning for {loss!r}; use 'one_vs_rest', or the logistic or hinge loss."
        )
    if multiclass != "joint" and loss.joint:
        raise EmpiriskError(f"{loss!r} is a joint loss and needs multiclass='joint' or 'auto', not {multiclass!r}.")
    return multiclass


def read(scheme: str, codes: Array, f: Array, loss: Loss) -> Array:
    """Scores of the K classes from the answers f (n x machines) of a coding matrix; the largest wins.

    Two classes: one score, positive for the second. One-vs-rest, joint and labels: the answers themselves. One-vs-one:
    votes, ties settled by the sum of the answers, squeezed into less than half a vote. Error-correcting: minus the
    total loss of the class's code word.
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
        totals = [loss.value(np.broadcast_to(code, f.shape), f).sum(axis=1) for code in codes.T]
    return np.maximum(-np.column_stack(totals), np.finfo(float).min)


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
