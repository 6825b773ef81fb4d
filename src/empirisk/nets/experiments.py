"""Experiments on networks: lottery tickets, the effect of width, double descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

from empirisk.contract.arguments import check_count, check_number
from empirisk.errors import EmpiriskError
from empirisk.machines.regressors import LeastSquares
from empirisk.nets.layers import whole
from empirisk.nets.network import Network
from empirisk.nets.objective import penalised
from empirisk.parts import is_finite, is_number
from empirisk.validation import check_array

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tickets:
    """What is left of a network after rounds of pruning, and how well it does.

    Attributes
    ----------
    kept : array
        The share of the weights that is left, from 1 on downwards.
    scores : array
        The score of the machine, trained with what is left, on the rows held out.
    masks : list of dicts
        Ones where a weight is left, by its name.

    Examples
    --------
    >>> er.nets.Tickets(np.array([1.0, 0.5]), np.array([0.9, 0.95]), []).kept
    array([1. , 0.5])
    """

    kept: Array
    scores: Array
    masks: list[dict[str, NDArray]]


@dataclass(frozen=True)
class WidthCurve:
    """Errors of a machine over the width of its network.

    Attributes
    ----------
    widths : array
        The widths.
    training, test : arrays
        The errors on the rows trained on and on the others: shares of wrong classes, or mean squared errors.

    Examples
    --------
    >>> er.nets.WidthCurve(np.array([1, 10]), np.array([1.0, 0.1]), np.array([1.2, 0.3])).test.argmax()
    np.int64(0)
    """

    widths: NDArray[np.intp]
    training: Array
    test: Array


def lottery_tickets(
    machine: Any,
    X: ArrayLike,
    y: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    *,
    rounds: int = 5,
    share: float = 0.5,
    rewind: bool = True,
) -> Tickets:
    """Train, drop the smallest weights, go back to the first values of those that are left, and train again.

    Parameters
    ----------
    machine : machine with a Network
        What is trained in every round.
    X, y, X_test, y_test : arrays
        Rows to train on and rows to score on.
    rounds : int
        How often to drop.
    share : float
        The share of the remaining weights that is dropped each time.
    rewind : bool
        Whether the weights left start from their first values, the winning ticket; else from newly drawn ones, for
        comparison.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> machine = er.LogisticRegression(C=10.0, features=er.Network([8], epochs=100, random_state=0))
    >>> er.nets.lottery_tickets(machine, X, X[:, 0] > 0, X, X[:, 0] > 0, rounds=2).kept
    array([1.  , 0.5 , 0.25])
    """
    _require_network(machine)
    rounds, share = check_count("rounds", rounds) or 1, check_number("share", share, 0, 1, above=True)
    seed = 0 if machine.features.random_state is None else machine.features.random_state
    first = clone(machine.features).set_params(random_state=seed).fit(X).weights_
    masks = {name: np.ones_like(value) for name, value in first.items() if penalised(name)}
    kept, scores, history = [], [], []
    for number in range(rounds + 1):
        start = {"features__weights": first} if rewind or number == 0 else {"features__random_state": number}
        changed = {"features__random_state": seed, "features__masks": masks, "features__n_init": 1} | start
        trained = clone(machine).set_params(**changed).fit(X, y)
        kept.append(sum(mask.sum() for mask in masks.values()) / sum(mask.size for mask in masks.values()))
        scores.append(trained.score(X_test, y_test))
        history.append(masks)
        masks = _without_smallest(trained.features_.weights_, masks, share)
    return Tickets(np.array(kept, dtype=np.float64), np.array(scores), history)


def _without_smallest(weights: dict[str, NDArray], masks: dict[str, NDArray], share: float) -> dict[str, NDArray]:
    """The masks without that share of the weights left, the smallest of all layers together."""
    sizes = np.concatenate([np.abs(weights[name])[mask > 0] for name, mask in masks.items()])
    count = round(share * len(sizes))
    if count == 0 or count == len(sizes):
        return masks
    limit = np.partition(sizes, count - 1)[count - 1]
    return {name: mask * (np.abs(weights[name]) > limit) for name, mask in masks.items()}


def width_curve(
    machine: Any,
    widths: Sequence[int],
    X: ArrayLike,
    y: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    *,
    repeats: int = 1,
) -> WidthCurve:
    """The errors of a machine with one hidden layer of each width, averaged over seeds.

    Parameters
    ----------
    machine : machine with a Network
        What is trained for every width.
    widths : list of int
        The widths to try.
    X, y, X_test, y_test : arrays
        Rows to train on and rows to test on.
    repeats : int
        Seeds to average over.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> machine = er.Ridge(C=100.0, features=er.Network([1], epochs=300, random_state=0))
    >>> curve = er.nets.width_curve(machine, [1, 8], X, np.abs(X[:, 0]), X, np.abs(X[:, 0]))
    >>> bool(curve.training[1] < curve.training[0])
    True
    """
    _require_network(machine)

    def machine_of(width: int, seed: int) -> Any:
        return clone(machine).set_params(features__widths=[width], features__random_state=seed)

    return _errors_by_width(machine_of, widths, X, y, X_test, y_test, repeats)


def _errors_by_width(
    machine_of: Callable[[int, int], Any], widths: Sequence[int], X: ArrayLike, y: ArrayLike, X_test: ArrayLike,
    y_test: ArrayLike, repeats: int,
) -> WidthCurve:  # fmt: skip
    """The errors of the machines of a width and a seed, averaged over seeds."""
    repeats = check_count("repeats", repeats) or 1
    y, y_test = np.asarray(y), np.asarray(y_test)
    training, test = np.zeros(len(widths)), np.zeros(len(widths))
    for number, width in enumerate(widths):
        for seed in range(repeats):
            chosen = machine_of(int(width), seed).fit(X, y)
            training[number] += _error(chosen, X, y) / repeats
            test[number] += _error(chosen, X_test, y_test) / repeats
    return WidthCurve(np.array(widths, dtype=np.intp), training, test)


def double_descent(
    X: ArrayLike,
    y: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    widths: Sequence[int],
    *,
    activation: str = "sign",
    repeats: int = 5,
) -> WidthCurve:
    """Least squares of smallest norm on random units: the test error rises to where units equal rows, then falls.

    Weights and biases of the units are drawn from the normal distribution, for columns of mean 0 and variance 1. Many
    threshold units average to a rough function, which follows wrong targets near their rows only: beyond the peak the
    error falls to that of the best few units, or below. Smooth units (relu, tanh) of few columns, with targets full
    of noise, fall from a higher peak and stay further above.

    Parameters
    ----------
    X, y, X_test, y_test : arrays
        Rows to train on and rows to test on, with numbers as targets.
    widths : list of int
        Numbers of hidden units, from below to above the number of rows.
    activation : str
        Of the hidden units, which stay as they are drawn.
    repeats : int
        Draws to average over.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X, Z = random.normal(size=(30, 5)), random.normal(size=(200, 5))
    >>> y = X[:, 0] + 0.5 * random.normal(size=30)
    >>> curve = er.nets.double_descent(X, y, Z, Z[:, 0], [5, 30, 300])
    >>> bool(curve.test[0] < curve.test[1] > curve.test[2])
    True
    """
    rows = check_array(X, dtype=np.float64)

    def machine_of(width: int, seed: int) -> LeastSquares:
        return LeastSquares(features=_random_units(rows, whole("widths", width), activation, seed))

    return _errors_by_width(machine_of, widths, rows, y, X_test, y_test, repeats)


def _random_units(X: Array, width: int, activation: str, seed: int) -> Network:
    """A layer of units with normal weights and biases, for columns of mean 0 and variance 1, that stay as drawn."""
    random = np.random.default_rng(seed)
    spread = X.std(axis=0)
    weights = random.normal(size=(X.shape[1], width)) / np.sqrt(X.shape[1])
    weights /= np.where(spread > 0, spread, 1.0)[:, None]
    biases = random.normal(size=width) - X.mean(axis=0) @ weights
    return Network([width], activation, weights={"0.weight": weights, "0.bias": biases}, freeze=True)


def boolean_network(table: ArrayLike, inputs: tuple[float, float] = (0, 1)) -> Network:
    """A network of two layers with sign units whose output is a given boolean function: +1 for true, -1 for false.

    A hidden unit for every true row of the table fires for this row alone; the last unit is the "or" of them.

    Parameters
    ----------
    table : array of 2^k truth values
        The function: entry number x_1 2^(k-1) + ... + x_k is its value at (x_1, ..., x_k), with x_j 0 or 1. Truth
        values are False and True, 0 and 1, or -1 and +1.
    inputs : pair of float, default (0, 1)
        What false and true are written as in the rows of X: (-1, 1) for functions on {-1, +1}^k.

    Examples
    --------
    >>> xor = er.nets.boolean_network([False, True, True, False])
    >>> xor.fit_transform([[0, 0], [0, 1], [1, 0], [1, 1]]).ravel()
    array([-1.,  1.,  1., -1.])
    >>> xor = er.nets.boolean_network([-1, 1, 1, -1], inputs=(-1, 1))
    >>> xor.fit_transform([[-1, -1], [-1, 1], [1, -1], [1, 1]]).ravel()
    array([-1.,  1.,  1., -1.])
    """
    values, low, high = np.asarray(table), *_input_values(inputs)
    columns = int(np.log2(max(values.size, 1)))
    if values.ndim != 1 or values.size != 2**columns or columns < 1:
        raise EmpiriskError(f"table has shape {values.shape}, but must be a list of 2^k truth values, k at least 1.")
    true = np.flatnonzero(_truth(values))
    rows = (true[:, None] >> np.arange(columns)[::-1]) & 1
    if len(true) == 0:  # one unit that never fires
        hidden, offsets = np.zeros((columns, 1)), np.array([-1.0])
    else:
        # Of x in {0, 1}^k, <2a - 1, x> is at most |a|, and that only for x = a; other inputs are low + (high - low) x.
        signs = (2.0 * rows - 1).T
        hidden, offsets = signs / (high - low), 0.5 - rows.sum(axis=1) - signs.sum(axis=0) * low / (high - low)
    count = hidden.shape[1]
    weights = {
        "0.weight": hidden, "0.bias": offsets,
        "1.weight": np.ones((count, 1)), "1.bias": np.array([count - 1.0]),
    }  # fmt: skip
    return Network([count, 1], "sign", weights=weights, freeze=True)


def _input_values(inputs: Any) -> tuple[float, float]:
    """What false and true are written as: two finite numbers that differ."""
    pair = tuple(inputs) if isinstance(inputs, (tuple, list, np.ndarray)) else ()
    if len(pair) != 2 or not all(is_number(value) and is_finite(value) for value in pair) or pair[0] == pair[1]:
        raise EmpiriskError(f"inputs={inputs!r} must be two different numbers, such as (0, 1) or (-1, 1).")
    return float(pair[0]), float(pair[1])


def _truth(values: NDArray) -> NDArray[np.bool_]:
    """Which truth values are true, of 0 and 1 or of -1 and +1."""
    if not any(np.isin(values, pair).all() for pair in ((0, 1), (-1, 1))):
        raise EmpiriskError("table must hold truth values: False and True, 0 and 1, or -1 and +1.")
    return values == 1


def _require_network(machine: Any) -> None:
    if not isinstance(getattr(machine, "features", None), Network):
        raise EmpiriskError(f"machine={machine!r} must have a Network in its slot features.")


def _error(machine: Any, X: ArrayLike, y: NDArray) -> float:
    predicted = machine.predict(X)
    return float(np.mean(predicted != y)) if is_classifier(machine) else float(np.mean((predicted - y) ** 2))
