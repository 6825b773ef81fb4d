"""What must hold in loaded steps that place numbers in sparse matrices: an index outside would write other memory."""

from collections.abc import Callable
from typing import Any

import numpy as np

from empirisk.files.archive import damaged
from empirisk.files.checks import check_nodes


def check_object(name: str, made: Any) -> None:
    """Raise unless an object that was just built stays inside its arrays; ``name`` is that of the registry."""
    if name in _CHECKS:
        _CHECKS[name](made)


def _check_vocabulary(vectorizer: Any) -> None:
    """The words of a vectorizer are numbered from 0 on, none left out."""
    words = vars(vectorizer).get("vocabulary_", {})
    places: list[Any] = list(words.values()) if isinstance(words, dict) else [None]
    if not all(isinstance(place, (int, np.integer)) for place in places) or sorted(places) != list(range(len(places))):
        raise damaged("the words in it are not numbered in a row")


def _check_one_hot(encoder: Any) -> None:
    """The widths of an encoder's blocks are those of its categories, and what it drops or merges is among them."""
    if "_n_features_outs" not in vars(encoder):
        return
    counts = [len(categories) for categories in encoder.categories_]
    dropped = encoder._drop_idx_after_grouping
    if encoder._infrequent_enabled:
        merged = encoder._default_to_infrequent_mappings
        if len(merged) != len(counts) or not all(map(_merges, merged, counts)):
            raise damaged("the categories in it are merged into others that it does not have")
    drops = [None] * len(counts) if dropped is None else list(dropped)
    whole = all(
        drop is None or (type(drop) is int and 0 <= drop < count) for drop, count in zip(drops, counts, strict=True)
    )
    if not whole or list(encoder._n_features_outs) != encoder._compute_n_features_outs():
        raise damaged("the categories in it do not fit their widths")
    groups = [_groups(encoder, place, count) for place, count in enumerate(counts)]
    widths = [group - (drop is not None) for group, drop in zip(groups, drops, strict=True)]
    if list(encoder._n_features_outs) != widths:
        raise damaged("the categories in it do not fit their widths")


def _groups(encoder: Any, place: int, count: int) -> int:
    """The categories of a column after the rare ones are merged."""
    merged = encoder._default_to_infrequent_mappings[place] if encoder._infrequent_enabled else None
    return count if merged is None else int(np.max(merged)) + 1


def _merges(mapping: Any, count: int) -> bool:
    if mapping is None:
        return True
    return mapping.shape == (count,) and mapping.dtype.kind == "i" and bool(np.all((mapping >= 0) & (mapping < count)))


def _check_words(words: Any) -> None:
    """Each column of words has its levels and two answers of yes or no."""
    flags = (words.others, words.missing)
    if any(flag.dtype != np.bool_ or flag.shape != (len(words.levels),) for flag in flags):
        raise damaged("the words in it do not fit their columns")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "Nodes": check_nodes,
    "sklearn.CountVectorizer": _check_vocabulary,
    "sklearn.OneHotEncoder": _check_one_hot,
    "sklearn.TfidfVectorizer": _check_vocabulary,
    "tables.Words": _check_words,
}
