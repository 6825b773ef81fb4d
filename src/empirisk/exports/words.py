"""Operations on text, as column kinds write them in a graph: `empirisk.tables.kinds` is given this module.

Text is a tensor with one column of words, "" where a value is missing.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from empirisk.exports.tensor import Symbolic, apply, constant

#: A number as a table writes it without signs of money and the like.
NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
#: Two blanks inside a text, or white space of another kind.
ODD_BLANKS = r"(?s).*([^ ] {2,}[^ ]|[\t\n\r\f\v]).*"
MONTHS = ("January", "February", "March", "April", "May", "June", "July")
MONTHS += ("August", "September", "October", "November", "December")
SHORT = "|".join(name[:3] for name in MONTHS)
LONG = "|".join(f"{name[:3]}({name[3:]})?" for name in MONTHS)
#: The fields of a format of dates: a pattern, and an example that fits. A blank may stand before a number.
FIELDS = {
    "%Y": ("[ ]?[1-9][0-9]{3}", "2000"),
    "%y": ("[ ]?[0-9]{2}", "00"),
    "%m": ("[ ]?(0?[1-9]|1[0-2])", "01"),
    "%d": ("[ ]?(0?[1-9]|[12][0-9]|3[01])", "01"),
    "%b": (f"(?i:{SHORT})", "Jan"),
    "%B": (f"(?i:{LONG})", "January"),
    "%H": ("[ ]?([01]?[0-9]|2[0-3])", "00"),
    "%I": ("[ ]?(0?[1-9]|1[0-2])", "12"),
    "%M": ("[ ]?[0-5]?[0-9]", "00"),
    "%S%.f": ("[ ]?([0-5]?[0-9]|60)([.][0-9]+)?", "00"),
    "%S": ("[ ]?([0-5]?[0-9]|60)", "00"),
    "%p": ("(?i:[ap]m)", "AM"),
    "%:z": ("[ ]?[+-]([01][0-9]|2[0-3]):?[0-5][0-9]", "+00:00"),
}
TOKEN = re.compile("|".join(sorted(map(re.escape, FIELDS), key=len, reverse=True)))
#: Years that a month without a day may have, as where tables are read.
MONTH_YEARS = (1800, 2199)
#: Years of two digits up to this one are in this century.
CENTURY = 69


def lookup(x: Symbolic, values: Mapping[Any, float], default: float = np.nan) -> Symbolic:
    """The value of each word or number, and the default for others.

    >>> from empirisk.exports.tensor import entry
    >>> lookup(entry("x", np.array([["a"], ["b"]], dtype=object)), {"a": 1.0}, 0.0).value.ravel()
    array([1., 0.])
    """
    if not values:
        return np.where(x == x, default, default)
    found = np.array(list(values.values()), dtype=np.float64)
    return apply("LabelEncoder", x, keys=np.array(list(values)), values=found, default=float(default))


def matches(x: Symbolic, pattern: str) -> Symbolic:
    """Whether the whole text fits a pattern."""
    return apply("RegexFullMatch", x, pattern=pattern)


def without(x: Symbolic, markers: Sequence[str]) -> Symbolic:
    """The text, "" where it stands for a missing value."""
    return np.where(np.isnan(lookup(x, dict.fromkeys(markers, 0.0))), x, constant([""]))


def trimmed(x: Symbolic, blanks: int = 0) -> Symbolic:
    """Text without blanks around it; ``blanks`` is how many there are inside of any text that matters."""
    return apply("Trim", x, blanks=blanks)


def trimmed_by_parts(x: Symbolic, blanks: int) -> Symbolic:
    """`trimmed` in operations of ONNX, which has one that splits texts at blanks, and one that joins two.

    More blanks inside, or two of them in a row, leave a text as it is: there is no known one that it could be.
    """
    parts, _ = apply("StringSplit", x, delimiter=None, maxsplit=-1)
    none = np.where(x == x, constant([""]), constant([""]))[:, :, None]
    padded = np.concatenate([parts, *[none] * (blanks + 2)], axis=2)
    pieces = [padded[:, :, k] for k in range(blanks + 2)]

    def joined(text: Symbolic, piece: Symbolic) -> Symbolic:
        more = np.where(piece == constant([""]), constant([""]), apply("StringConcat", constant([" "]), piece))
        return apply("StringConcat", text, more)

    plain = (pieces[-1] == constant([""])) & ~matches(x, ODD_BLANKS)
    return np.where(plain, reduce(joined, pieces[:-1]), x)


def where_number(x: Symbolic, of_number: Callable[[Symbolic], Symbolic], other: Symbolic) -> Symbolic:
    """A function of the number that a text is, or the other value where it is none."""
    are = matches(x, NUMBER)
    return np.where(are, of_number(_number(np.where(are, x, constant(["0"])))), other)


def _number(x: Symbolic) -> Symbolic:
    return apply("Cast", x, to="double")


def holding(x: Symbolic, levels: Sequence[str], separator: str) -> Symbolic:
    """An indicator of each of some words: whether it is one of those that the separator separates."""
    if not levels:
        return np.zeros((1, 0)) * lookup(x, {}, 0.0)
    mark = re.escape(separator)
    found = [matches(x, f"(?s)(.*{mark})?[ ]*{_literal(word)}[ ]*({mark}.*)?") for word in levels]
    return np.concatenate(found, axis=1).astype(np.float64)


def _literal(word: str) -> str:
    """A pattern that fits a word alone, in the syntax of Python and of RE2."""
    return "".join(f"\\{c}" if c in string.punctuation else c for c in word)


def weights_of_text(x: Symbolic, block: Any) -> Symbolic:
    """The weights of the words and of the groups of letters in a text; see `empirisk.tables.encoding`."""
    from empirisk.exports import texts  # which asks for the tables' packages

    found = [np.zeros((1, 0)) * lookup(x, {}, 0.0)]
    if block.vectorizer is not None:
        found.append(texts.weights_of_words(x, block.vectorizer))
    if block.letters is not None and len(block.letters.groups):
        found.append(texts.weights_of_letters(x, block.letters))
    return np.concatenate(found[1:] or found, axis=1)


def weights_of_sequence(x: Symbolic, markers: Sequence[str], block: Any) -> Symbolic:
    """The letters at places and the pieces of a sequence, which stands for a missing one if it is a marker."""
    from empirisk.exports import texts

    return texts.weights_of_pieces(without(texts.without_blanks_around(x), markers), block)


# --- dates ------------------------------------------------------------------------------------------------------------


def days(x: Symbolic, forms: Sequence[str]) -> Symbolic:
    """Days since 1970 of dates in one of some formats, NaN where they are in none.

    >>> from empirisk.exports.tensor import entry
    >>> x = entry("x", np.array([["2. 1.1970"], ["1970-01-03"], ["31.2.2000"]], dtype=object))
    >>> days(x, ["%d.%m.%Y", "%Y-%m-%d"]).value.ravel()
    array([ 1.,  2., nan])
    """
    text = _single_blanks(x, max(len(TOKEN.findall(form)) for form in forms))
    found = lookup(x, {}, np.nan)
    for form in reversed(forms):
        fits, value = _days_in(text, form)
        found = np.where(fits, value, found)
    return found


def _single_blanks(x: Symbolic, words: int) -> Symbolic:
    """The words of each text with one blank between two; "" where there are more than so many words."""
    parts, _ = apply("StringSplit", x, delimiter=None, maxsplit=-1)
    none = np.where(x == x, constant([""]), constant([""]))[:, :, None]
    padded = np.concatenate([parts, *[none] * (words + 1)], axis=2)
    text, *more = (padded[:, :, k] for k in range(words + 1))
    for piece in more:
        blank = np.where(piece == constant([""]), constant([""]), constant([" "]))
        text = apply("StringConcat", apply("StringConcat", text, blank), piece)
    return np.where(more[-1] == constant([""]), text, constant([""]))


def _days_in(x: Symbolic, form: str) -> tuple[Symbolic, Symbolic]:
    """Which texts are dates of a format, and their days. Others are read as an example, and do not count."""
    fits = matches(x, _pattern(form))
    example = TOKEN.sub(lambda found: FIELDS[found[0]][1], form)
    fields = _fields(np.where(fits, x, constant([example])), form)
    year = fields.get("%Y")
    if year is None:
        year = fields["%y"] + np.where(fields["%y"] <= CENTURY, 2000.0, 1900.0)
    month = next(fields[name] for name in ("%m", "%b", "%B") if name in fields)
    first = _first_of(year, month)
    if "%d" in fields:
        valid = fields["%d"] <= _first_of(year, month + 1.0) - first
    else:  # the first of a month
        valid = (year >= MONTH_YEARS[0]) & (year <= MONTH_YEARS[1])
    hour = fields.get("%H", 0.0)
    if "%I" in fields:
        hour = np.where(fields["%I"] == 12, 0.0, fields["%I"]) + fields["%p"]
    second = fields.get("%S%.f", fields.get("%S", 0.0))
    time = 3600.0 * hour + 60.0 * fields.get("%M", 0.0) + second - 60.0 * fields.get("%:z", 0.0)
    return fits & valid, first + fields.get("%d", 1.0) - 1.0 + time * (1 / 86400)


def _pattern(form: str) -> str:
    """What a text of a format looks like. A blank of the format may be absent beside another sign, and before AM."""
    tokens, between = TOKEN.findall(form), TOKEN.split(form)
    written = [_literal(between[0])]
    for token, mark, following in zip(tokens, between[1:], [*tokens[1:], ""], strict=True):
        blank = "[ ]?" if following == "%p" else _literal(mark.strip() or mark)
        written.append(FIELDS[token][0] + blank)
    return "".join(written)


def _fields(rest: Symbolic, form: str) -> dict[str, Any]:
    """The numbers that stand in a text of a format."""
    found: dict[str, Any] = {}
    tokens, between = TOKEN.findall(form), TOKEN.split(form)
    for token, mark, following in zip(tokens, between[1:], [*tokens[1:], ""], strict=True):
        if following == "%p":
            found["%p"] = np.where(matches(rest, "(?i:.*pm)"), 12.0, 0.0)
            for letter in "AaPp":
                rest = _cut(apply("StringConcat", rest, constant([letter])), letter)[0]
            piece = rest
        elif token == "%p":
            break
        elif mark:
            ahead = matches(rest, "[ ].*")
            rest = np.where(ahead, _cut(np.where(ahead, rest, constant([" "])), " ")[1], rest)
            piece, rest = _cut(rest, mark.strip() or mark)
        elif token.startswith("%S") and form.endswith("%:z"):
            # What follows the seconds begins with its sign.
            plus = matches(rest, "[^+]*[+].*")
            pairs = [_cut(np.where(plus == truth, rest, constant([f"0{sign}00:00"])), sign) for truth, sign in SIGNS]
            piece = np.where(plus, pairs[0][0], pairs[1][0])
            found["%:z"] = np.where(plus, _minutes(pairs[0][1]), -_minutes(pairs[1][1]))
            found[token] = _number(_word(piece))
            break
        else:
            piece = rest
        found[token] = _month(piece) if token in ("%b", "%B") else _number(_word(piece))
    return found


#: Whether a time zone is ahead, and its sign.
SIGNS = ((True, "+"), (False, "-"))


def _cut(x: Symbolic, mark: str) -> tuple[Symbolic, Symbolic]:
    """What stands before a mark, and after it; every text has one."""
    parts, _ = apply("StringSplit", x, delimiter=mark, maxsplit=1)
    return parts[:, :, 0], parts[:, :, 1]


def _word(x: Symbolic) -> Symbolic:
    """The first word of each text; every text has one."""
    return apply("StringSplit", x, delimiter=None, maxsplit=-1)[0][:, :, 0]


def _minutes(x: Symbolic) -> Symbolic:
    """Minutes of hours and minutes, with a colon or without."""
    hours, minutes = _cut(np.where(matches(x, ".*:.*"), x, constant(["00:00"])), ":")
    plain = _number(np.where(matches(x, "[0-9]{4}"), x, constant(["0"])))
    whole = np.floor(plain / 100.0)
    return 60.0 * (_number(hours) + whole) + _number(minutes) + plain - 100.0 * whole


def _month(x: Symbolic) -> Symbolic:
    """The number of a month by its name, in capitals or not."""
    numbers = (np.where(matches(x, f"(?i:{name[:3]}.*)"), k, 0.0) for k, name in enumerate(MONTHS, 1))
    return reduce(np.add, numbers)


def _first_of(year: Symbolic, month: Symbolic) -> Symbolic:
    """Days since 1970 of the first of a month of the Gregorian calendar, from a year that begins in March."""
    early = (month <= 2).astype(np.float64)
    year = year - early
    era = np.floor(year / 400.0)
    of_era = year - 400.0 * era
    of_year = np.floor((153.0 * (month - 3.0 + 12.0 * early) + 2.0) / 5.0)
    return 146097.0 * era + 365.0 * of_era + np.floor(of_era / 4.0) - np.floor(of_era / 100.0) + of_year - 719468.0
