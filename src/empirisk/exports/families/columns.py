"""Steps of scikit-learn that take a data frame apart, choose columns, and turn words into numbers, as graphs."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from empirisk.exports.registry import Answers, refused, transformed, write_answers
from empirisk.exports.tensor import Symbolic, Tensor, constant, kind_of
from empirisk.exports.words import lookup

#: A word and a number that no column has, to ask an encoder what it says of those that it has not met.
NEVER_MET = ("\0never met", 1.2345678901234567e301)


@write_answers.register
def _(model: ColumnTransformer, x: Any) -> Answers:
    weights, parts = model.transformer_weights or {}, []
    for name, step, _ in model.transformers_:
        places = model._transformer_to_input_indices.get(name, [])
        if not len(places) or (isinstance(step, str) and step == "drop"):
            continue
        part = transformed(step, x[:, list(places)])
        if not isinstance(part, Tensor) or kind_of(part.value) == "string":
            raise refused(model, f"words or truth values leave its step {name!r} as they are; encode them")
        parts.append(part * float(weights[name]) if name in weights else part)
    return {"transform": np.concatenate(parts, axis=1)}


@write_answers.register
def _(step: SelectorMixin, x: Any) -> Answers:
    return {"transform": x[:, np.flatnonzero(step.get_support()).tolist()]}


@write_answers.register(OneHotEncoder)
@write_answers.register(OrdinalEncoder)
@write_answers.register(TargetEncoder)
def _(step: Any, x: Any) -> Answers:
    """Each column by a table with a row for each category, and one for others: what the encoder itself says of them."""
    parts = []
    for place in range(len(step.categories_)):
        column, told = x[:, [place]], _table(step, place)
        parts.append(constant(told)[_code(step, column, step.categories_[place])[:, 0].astype(int)])
    return {"transform": np.concatenate(parts, axis=1)}


def _code(step: Any, column: Symbolic, categories: NDArray[Any]) -> Symbolic:
    """The place of each value among the categories, and their number for others."""
    told, words = categories.tolist(), kind_of(column.value) == "string"
    missing = [place for place, each in enumerate(told) if each is None or each != each]
    if words and len(missing) + told.count("") > 1:
        raise refused(step, "it has the empty text and a missing value as categories, which are one in a file")
    other = float(len(told))
    if words:
        return lookup(column, {"" if k in missing else str(each): float(k) for k, each in enumerate(told)}, other)
    found = lookup(column, {float(each): float(k) for k, each in enumerate(told) if k not in missing}, other)
    return np.where(np.isnan(column), float(missing[0]), found) if missing else found


def _table(step: Any, place: int) -> NDArray[np.float64]:
    """What an encoder makes of each category of a column, and of a value that is none: NaN where it refuses those."""
    rows = np.empty((len(step.categories_[place]) + 1, len(step.categories_)), dtype=object)
    rows[:] = [found[0] for found in step.categories_]
    rows[:-1, place] = step.categories_[place]
    rows[-1, place] = NEVER_MET[np.asarray(step.categories_[place]).dtype.kind in "iuf"]
    refuses = getattr(step, "handle_unknown", "") == "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows without names, and of categories that were not met
        told = step.transform(rows[: len(rows) - refuses])
    told = np.asarray(told.toarray() if hasattr(told, "toarray") else told, dtype=np.float64)
    if isinstance(step, OneHotEncoder):
        ends = np.cumsum([0, *step._n_features_outs])
    else:
        ends = np.arange(len(step.categories_) + 1) * (told.shape[1] // len(step.categories_))
    told = told[:, ends[place] : ends[place + 1]]
    return np.vstack([told, np.full((int(refuses), told.shape[1]), np.nan)])
