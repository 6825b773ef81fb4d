"""Texts in operations: their letters, their words, and weighted counts of both.

The words of a text are those that `sklearn.feature_extraction.text.TfidfVectorizer` finds: runs of two letters or more,
small and without accents. What becomes of a letter does not depend on others, but for one, so that a table of letters
says it exactly.
"""

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from empirisk.errors import Unsuitable
from empirisk.exports.tensor import Symbolic, apply, constant
from empirisk.tables.encoding.letters import BITS, LONGEST, SPACES, STRANGE

#: Times that neighbours are joined in pairs: pieces of up to 2^24 letters become one text.
ROUNDS = 24
#: A letter of words that is in no known one.
OTHER = "\ufffd"
EMPTY, SPACE = constant([""]), constant([" "])
#: The letter whose small form depends on those around it; and its small forms, inside of a word and at the end.
SIGMA, INSIDE, LAST = "Σ", "\u03c3", "\u03c2"
#: Categories of Unicode: halves of letters, those for private use and those that there are not; letters without case.
NO_LETTERS, NO_CASE = ("Cs", "Co", "Cn"), "Lo"


def empty(x: Symbolic) -> Symbolic:
    """An empty text for each of the texts."""
    return np.where(x == x, EMPTY, EMPTY)


def joined_pair(a: Symbolic, b: Symbolic) -> Symbolic:
    """Each text followed by another."""
    return apply("StringConcat", a, b)


def letters(x: Symbolic) -> Symbolic:
    """The letters of one column of texts, rows x letters, "" after the end.

    >>> from empirisk.exports.tensor import entry
    >>> letters(entry("x", np.array([["ab"], ["c"]], dtype=object))).value.tolist()
    [['a', 'b'], ['c', '']]
    """
    return _of_rows(apply("Tokenizer", x))


def _of_rows(parts: Symbolic) -> Symbolic:
    """Parts of one column of texts without the axis of the column. A Gather of ONNX Runtime would lose all but one."""
    return apply("Reshape", parts, shape=[0, -1])


def whole(pieces: Symbolic, none: Symbolic) -> Symbolic:
    """The pieces of each row as one text: neighbours are joined until one is left. ``none`` is a column of ""."""
    pieces = np.concatenate([pieces, none], axis=1)
    for _ in range(ROUNDS):
        even = np.concatenate([pieces, none], axis=1)
        left, right = (apply("Slice", even, [start], [end], [1], [2]) for start, end in ((0, -1), (1, sys.maxsize)))
        pieces = joined_pair(left, right)
    return pieces


def separated(x: Symbolic) -> Symbolic:
    """The words between blanks, rows x words, "" after the last."""
    return _of_rows(apply("StringSplit", x, delimiter=None, maxsplit=-1)[0])


def counts(x: Symbolic, groups: Sequence[Sequence[str]]) -> Symbolic:
    """How often each group of neighbours is in a row of words or letters."""
    order = sorted(range(len(groups)), key=lambda place: len(groups[place]))
    longest = len(groups[order[-1]])
    starts = np.cumsum([0, *(size * sum(len(group) == size for group in groups) for size in range(1, longest))])
    told = {
        "mode": "TF",
        "min_gram_length": len(groups[order[0]]),
        "max_gram_length": longest,
        "max_skip_count": 0,
        "ngram_counts": starts.tolist(),
        "ngram_indexes": order,
        "pool_strings": [letter for place in order for letter in groups[place]],
    }
    return apply("TfIdfVectorizer", x, **told).astype(np.float64)


def tf_idf(found: Symbolic, rarity: Any) -> Symbolic:
    """Weights (1 + ln count) rarity of what is there, of length one for each row."""
    return scaled(np.where(found > 0, (1 + np.log(np.maximum(found, 1))) * rarity, 0.0))


def scaled(weights: Symbolic) -> Symbolic:
    """Rows of length one; zeros stay.

    Squares are added one by one, as scikit-learn adds them: a tree may have a threshold between two sums of the same.
    """
    length = np.sqrt(apply("CumSum", weights * weights, axis=1)[:, [-1]])
    return weights / np.where(length > 0, length, 1.0)


# --- words ------------------------------------------------------------------------------------------------------------


def words(x: Symbolic, known: Iterable[str]) -> Symbolic:
    """The words of texts, rows x words; those that are not known may be any others that are not."""
    alphabet = frozenset("".join(known))
    if alphabet & {INSIDE, LAST}:
        x = _with_small_sigmas(x)
    found, others = _table(alphabet)
    pieces = letters(x)
    keys, values = np.array(list(found)), np.array(list(found.values()))
    small = apply("LabelEncoder", pieces, keys=keys, values=values, default=" ")
    small = np.where(apply("RegexFullMatch", pieces, pattern=others), constant([OTHER]), small)
    return separated(whole(small, empty(x)))


@lru_cache(maxsize=4)
def _table(alphabet: frozenset[str]) -> tuple[dict[str, str], str]:
    """What becomes of letters that words over an alphabet may come from; and a pattern of other letters of words."""
    found, others, unknown = {"": ""}, [], _unknown()
    for letter, small in _small().items():
        kept = unknown[letter] if alphabet.isdisjoint(small) else _known(small, alphabet)
        if kept == OTHER:
            others.append(letter)
        elif kept != " ":
            found[letter] = kept
    return found, one_of(others)


def _known(small: str, alphabet: frozenset[str]) -> str:
    """Letters of an alphabet, what stands for other letters of words, and blanks."""
    return "".join(c if c in alphabet else OTHER if _in_word(c) else " " for c in small)


@cache
def _unknown() -> dict[str, str]:
    """Every letter, where no letter of words is known."""
    return {letter: _known(small, frozenset()) for letter, small in _small().items()}


@cache
def _small() -> dict[str, str]:
    """Every letter as it is in a word: small, in its parts, without accents."""
    every = map(chr, range(sys.maxunicode + 1))
    return {letter: _plain(letter) for letter in every if unicodedata.category(letter) not in NO_LETTERS}


def _plain(letter: str) -> str:
    small = letter.lower()
    return small if small.isascii() else _without_accents(unicodedata.normalize("NFKD", small))


def _without_accents(text: str) -> str:
    return "".join(c for c in text if not unicodedata.combining(c))


def _in_word(letter: str) -> bool:
    """What a word may hold: letters, digits and the underscore."""
    return letter.isalnum() or letter == "_"


def one_of(many: Iterable[str]) -> str:
    """A pattern that fits one of some letters, by the ranges that they fill."""
    codes = enumerate(sorted(map(ord, many)))
    ranges = [[code for _, code in part] for _, part in groupby(codes, lambda pair: pair[1] - pair[0])]
    written = [f"{chr(part[0])}-{chr(part[-1])}" for part in ranges]
    return f"[{''.join(written)}]"


def _with_small_sigmas(x: Symbolic) -> Symbolic:
    """Texts in which the Greek letter whose small form depends on its neighbours is small.

    It is the last of a word where a letter that has a small and a large form stands before it, and none behind it;
    marks such as accents and apostrophes between them do not count.
    """
    cased, marks = _cased_and_marks()
    parts, count = apply("StringSplit", x, delimiter=SIGMA, maxsplit=-1)
    parts = _of_rows(parts)
    none = empty(x)
    place = apply("CumSum", np.where(parts == parts, 1.0, 1.0), axis=1)  # 1 for the first part
    behind = apply("Slice", np.concatenate([parts, none], axis=1), [1], [sys.maxsize], [1], [1])
    alone = _fits(parts, f"{marks}*"), _fits(behind, f"{marks}*")
    before = _fits(parts, f"(?s).*{cased}{marks}*") | (alone[0] & (place > 1.0))
    after = _fits(behind, f"(?s){marks}*{cased}.*") | (alone[1] & (place + 1.0 < count.astype(np.float64)))
    sign = np.where(before & ~after, constant([LAST]), constant([INSIDE]))
    sign = np.where(place < count.astype(np.float64), sign, EMPTY)
    return whole(joined_pair(parts, sign), none)


def _fits(x: Symbolic, pattern: str) -> Symbolic:
    return apply("RegexFullMatch", x, pattern=pattern)


@cache
def _cased_and_marks() -> tuple[str, str]:
    """Patterns of letters with a small and a large form, and of marks that do not count, as Python tells them."""
    cased, marks = [], []
    for letter in _small():
        if unicodedata.category(letter) == NO_CASE and not letter.islower():
            continue
        if f"{letter}{SIGMA}".lower().endswith(LAST):
            cased.append(letter)
        elif f"a{letter}{SIGMA}".lower().endswith(LAST):
            marks.append(letter)
    return one_of(cased), one_of(marks)


def weights_of_words(x: Symbolic, vectorizer: Any) -> Symbolic:
    """The weights of the words of a fitted ``TfidfVectorizer``."""
    known = vectorizer.get_feature_names_out().tolist()
    return tf_idf(counts(words(x, known), [(word,) for word in known]), np.asarray(vectorizer.idf_))


# --- groups of letters ------------------------------------------------------------------------------------------------

#: A pattern of white space; "" is the end of a text, and counts as such.
BLANK = one_of(map(chr, SPACES.tolist())) + "?"


def weights_of_letters(x: Symbolic, known: Any) -> Symbolic:
    """The weights of `empirisk.tables.encoding.letters.Letters`."""
    units = known.groups[:, None] >> np.arange(0, BITS * LONGEST, BITS, dtype=np.uint64) & np.uint64(2**BITS - 1)
    groups = [tuple(chr(unit) for unit in row if unit) for row in units.tolist()]
    pieces = letters(x)
    pieces = np.where(_fits(pieces, BLANK), SPACE, pieces)
    strange = _fits(pieces, f"[\\x00{chr(2**BITS)}-{chr(sys.maxunicode)}]")
    found = separated(whole(np.where(strange, constant([chr(STRANGE)]), pieces), empty(x)))
    apart = np.where(found == EMPTY, EMPTY, joined_pair(SPACE, found))
    edged = joined_pair(whole(apart, empty(x)), SPACE)
    return tf_idf(counts(letters(edged), groups), known.rarity)


def without_blanks_around(x: Symbolic) -> Symbolic:
    """Texts from their first letter that is no blank to the last."""
    pieces = letters(x)
    seen = (~_fits(pieces, BLANK)).astype(np.float64)
    before = apply("CumSum", seen, axis=1)
    outside = (before == 0) | (before - seen == seen.sum(axis=1, keepdims=True))
    return whole(np.where(outside, EMPTY, pieces), empty(x))


def weights_of_pieces(x: Symbolic, known: Any) -> Symbolic:
    """The indicators of letters at places, and the counts of pieces, of `empirisk.tables.kinds.sequence.Pieces`."""
    pieces, none = letters(x), empty(x)
    found = []
    if known.places:
        told = [name.split(":", 1) for name in known.places]
        padded = np.concatenate([pieces, *[none] * max(int(place) for place, _ in told)], axis=1)
        found += [padded[:, [int(place) - 1]] == constant([letter]) for place, letter in told]
    if known.vectorizer is not None:
        groups = [tuple(piece) for piece in known.vectorizer.get_feature_names_out()]
        if any(letter.isspace() for group in groups for letter in group):
            raise Unsuitable(
                "Sequences with blanks inside cannot be exported; name the column's kind: types={...: 'text'}."
            )
        found.append(scaled(counts(pieces, groups)))
    return np.concatenate([part.astype(np.float64) for part in found] or [np.zeros((1, 0)) * (x == x)], axis=1)
