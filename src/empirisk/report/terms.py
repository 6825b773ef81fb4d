"""Weights of linear machines by the names of their columns, and sentences about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.formats import number
from empirisk.tables.model import uncalibrated

MOST_TERMS = 8  # terms of an equation that are written out: the largest in absolute value


@dataclass(frozen=True, eq=False)
class Terms:
    """The weights of a linear machine on the numbers that an encoder makes of a table.

    Attributes
    ----------
    names : list of str
        Of the numbers.
    weights : array, outputs x numbers
        For two classes and for numbers, of one output.
    scales : array
        What a number is divided by before it is weighed: 1 for indicators, NaN for words of texts, which are weighed by
        how rare they are.
    truths : array of bool
        Whether a number is that of a column of truth values.
    constant : array of outputs
        The intercepts.
    """

    names: list[str]
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    truths: NDArray[np.bool_]
    constant: NDArray[np.float64]

    def largest(self, output: int, most: int) -> list[int]:
        """The indices of the ``most`` largest weights in absolute value, without zeros."""
        weights = self.weights[output]
        order = np.argsort(-np.abs(weights), kind="stable")[:most]
        return [int(k) for k in order if weights[k] != 0]


def terms_of(model: Any) -> Terms | None:
    """The weights of a table's model, or None where its machine is not linear in the encoded columns."""
    encoder, machine = model.pipeline[0], uncalibrated(model.machine)
    weights, names = getattr(machine, "coef_", None), getattr(encoder, "names_", None)
    if weights is None or names is None or np.ndim(weights) > 2:
        return None
    weights = np.atleast_2d(weights).astype(np.float64)
    if weights.shape[1] != len(names):
        return None
    scales = np.ones(len(names))
    scales[: len(encoder.numbers_.scale)] = encoder.numbers_.scale
    texts = [column.type.wide for column in encoder.schema.used]
    scales[np.array(texts)[encoder.sources_]] = np.nan
    truths = np.array([column.type.truth for column in encoder.schema.used])[encoder.sources_]
    constant = np.ravel(getattr(machine, "intercept_", 0.0)).astype(np.float64)
    return Terms(list(names), weights, scales, truths, np.resize(constant, len(weights)))


def equation(model: Any) -> str:
    """The largest terms of a linear machine with one output; nothing for other machines."""
    terms = terms_of(model)
    if terms is None or len(terms.weights) != 1:
        return ""
    places = terms.largest(0, MOST_TERMS)
    shown = [f"{terms.weights[0, k]:+.4g} [{terms.names[k]}]" for k in places]
    more = int(np.count_nonzero(terms.weights)) - len(shown)
    rest = f" and {more} smaller terms" if more > 0 else ""
    return f"f = {terms.constant[0]:.4g} {' '.join(shown)}{rest}; numbers are centred and scaled"


def in_words(terms: Terms, place: int, target: str, positive: str | None, odds: bool) -> str:
    """What one weight does to the target, or to the second of two classes; ``odds`` where it adds to log odds."""
    weight, scale = float(terms.weights[0, place]), float(terms.scales[place])
    if np.isnan(scale):
        return (
            f"speaks for {'more' if weight > 0 else 'less'} {target}" if positive is None else _side(weight, positive)
        )
    if terms.truths[place]:  # from no to yes
        weight, scale = weight / scale, 1.0
    more = "where it holds" if scale == 1 else f"{number(scale)} more"
    if positive is None:
        return f"{more}: {number(abs(weight))} {'more' if weight > 0 else 'less'} {target}"
    if odds:
        return f"{more}: odds of {positive} times {number(float(np.exp(np.clip(weight, -50, 50))))}"
    return f"{more}: {_side(weight, positive)}"


def _side(weight: float, positive: str) -> str:
    return f"speaks {'for' if weight > 0 else 'against'} {positive}"
