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
    for name, step, columns in model.transformers_:
        places = _places(model, columns)
        if not len(places) or (isinstance(step, str) and step == "drop"):
            continue
        part = transformed(step, x[:, places])
        if not isinstance(part, Tensor) or kind_of(part.value) == "string":
            raise refused(model, f"words or truth values leave its step {name!r} as they are; encode them")
        parts.append(part * float(weights[name]) if name in weights else part)
    return {"transform": np.concatenate(parts, axis=1)}


def _places(model: Any, columns: Any) -> list[int]:
    """The positions of columns that are given by name, position, slice or mask; a slice of names has both ends."""
    names: list[Any] = list(getattr(model, "feature_names_in_", ()))
    if isinstance(columns, slice):
        first, last = (names.index(end) if isinstance(end, str) else end for end in (columns.start, columns.stop))
        last = last + 1 if isinstance(columns.stop, str) else last
        return list(range(model.n_features_in_))[slice(first, last, columns.step)]
    listed = [columns] if np.ndim(columns) == 0 else list(columns)
    if listed and all(isinstance(each, (bool, np.bool_)) for each in listed):
        return np.flatnonzero(listed).tolist()
    return [names.index(each) if isinstance(each, str) else int(each) % model.n_features_in_ for each in listed]


def _widths(step: Any, width: int) -> list[int]:
    """How many of so many columns each column that an encoder took has become."""
    count = len(step.categories_)
    if not isinstance(step, OneHotEncoder):
        return [width // count] * count
    dropped = [None] * count if step.drop_idx_ is None else step.drop_idx_
    rare = getattr(step, "infrequent_categories_", None) or [None] * count
    columns = zip(step.categories_, rare, dropped, strict=True)
    return [len(told) - (0 if few is None else len(few) - 1) - (gone is not None) for told, few, gone in columns]


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
    ends = np.cumsum([0, *_widths(step, told.shape[1])])
    told = told[:, ends[place] : ends[place + 1]]
    return np.vstack([told, np.full((int(refuses), told.shape[1]), np.nan)])
