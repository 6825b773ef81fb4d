"""What each operation of a graph computes, in NumPy: names and meaning are those of ONNX.

`python_file` copies the functions that a graph uses into the file that it writes, so that each stands alone: it may
use ``np`` and the imports of `IMPORTS`, and nothing else of this module. Tracing runs them too, on a few rows, which
is how the shape and the type of every tensor are known.
"""

import re
import unicodedata

import numpy as np

__all__ = ["IMPORTS", "find"]

#: What the functions import.
IMPORTS = ("import re", "import unicodedata", "import numpy as np")


def Abs(x):
    return np.abs(x)


def Add(a, b):
    return a + b


def And(a, b):
    return a & b


def ArgMax(x, axis):
    return np.argmax(x, axis=axis)


def Cast(x, to):
    """Numbers of another type; text becomes a number as `float` reads it."""
    types = {"double": np.float64, "int64": np.int64, "bool": np.bool_}
    return (
        np.array([float(text) for text in x.ravel()]).reshape(x.shape) if x.dtype.kind in "OU" else x.astype(types[to])
    )


def Concat(*parts, axis):
    return np.concatenate(parts, axis=axis)


def Cos(x):
    return np.cos(x)


def Div(a, b):
    return a / b


def Equal(a, b):
    return np.equal(a, b).astype(bool)


def Exp(x):
    return np.exp(x)


def Floor(x):
    return np.floor(x)


def Gather(x, places, axis):
    return np.take(x, places, axis=axis)


def GatherElements(x, places, axis):
    return np.take_along_axis(x, places, axis=axis)


def Greater(a, b):
    return a > b


def GreaterOrEqual(a, b):
    return a >= b


def IsInf(x):
    return np.isinf(x)


def IsNaN(x):
    return np.isnan(x)


def LabelEncoder(x, keys, values, default):
    """The value of each key, and the default of what is none of them."""
    order = np.argsort(keys)
    words = x.astype(str) if keys.dtype.kind == "U" else x
    places = order[np.minimum(np.searchsorted(keys[order], words), len(keys) - 1)]
    return np.where(keys[places] == words, values[places], default)


def Less(a, b):
    return a < b


def LessOrEqual(a, b):
    return a <= b


def Log(x):
    return np.log(x)


def MatMul(a, b):
    return a @ b


def Max(a, b):
    return np.maximum(a, b)


def Min(a, b):
    return np.minimum(a, b)


def Mul(a, b):
    return a * b


def Neg(x):
    return -x


def Not(x):
    return ~x


def Or(a, b):
    return a | b


def Pow(a, b):
    return np.power(a, b)


def ReduceMax(x, axes, keepdims):
    return x.max(axis=tuple(axes), keepdims=bool(keepdims))


def ReduceMean(x, axes, keepdims):
    return x.mean(axis=tuple(axes), keepdims=bool(keepdims))


def ReduceMin(x, axes, keepdims):
    return x.min(axis=tuple(axes), keepdims=bool(keepdims))


def ReduceSum(x, axes, keepdims):
    return x.sum(axis=tuple(axes), keepdims=bool(keepdims))


def RegexFullMatch(x, pattern):
    """Whether the whole of a text has a pattern."""
    known = re.compile(pattern)
    return np.array([known.fullmatch(text) is not None for text in x.ravel()], dtype=bool).reshape(x.shape)


def Reshape(x, shape):
    """Another shape; 0 keeps the length that was there, -1 is what is left."""
    return x.reshape([x.shape[k] if length == 0 else length for k, length in enumerate(shape)])


def Sign(x):
    return np.sign(x)


def Sin(x):
    return np.sin(x)


def Sqrt(x):
    return np.sqrt(x)


def StringConcat(a, b):
    """Texts joined."""
    a, b = np.broadcast_arrays(a, b)
    return np.array([one + two for one, two in zip(a.ravel(), b.ravel())], dtype=object).reshape(a.shape)  # noqa: B905


def StringSplit(x, delimiter, maxsplit):
    """The parts of texts along a new last axis, empty ones where a text has fewer than another; and how many."""
    if delimiter is None:  # what runs of blanks separate
        parts = [[word for word in text.split(" ") if word] for text in x.ravel()]
    else:
        parts = [text.split(delimiter, maxsplit) if text else [] for text in x.ravel()]
    most = max((len(each) for each in parts), default=0)
    padded = np.array([each + [""] * (most - len(each)) for each in parts], dtype=object)
    return padded.reshape(*x.shape, most), np.array([len(each) for each in parts]).reshape(x.shape)


def Sub(a, b):
    return a - b


def Tanh(x):
    return np.tanh(x)


def TopK(x, k, axis, largest):
    """The k largest or smallest numbers, in order, and their places; of equal ones the first."""
    places = np.take(np.argsort(-x if largest else x, axis=axis, kind="stable"), np.arange(k), axis=axis)
    return np.take_along_axis(x, places, axis=axis), places


def Transpose(x, perm):
    return x.transpose(perm)


def Trim(x, blanks):
    """Texts without blanks around them; ``blanks`` is how many a text may have inside that must be told from others."""
    return np.array([text.strip() for text in x.ravel()], dtype=object).reshape(x.shape)


def TreeEnsemble(x, *, n_targets, roots, feature, split, true, false, missing_true, members, target, weight):
    """The sum over the trees of the weights of the leaves that each row reaches, added to the targets of the leaves.

    A row goes to ``true`` where its feature is at most the split, or one of the members of the node; where it is NaN,
    as the node says. Leaf k has the number -1 - k.
    """
    total = np.zeros((len(x), n_targets))
    rows = np.arange(len(x))
    for root in roots:
        place = np.full(len(x), root)
        while (walking := place >= 0).any():
            node, row = place[walking], rows[walking]
            value = x[row, feature[node]]
            with np.errstate(invalid="ignore"):
                step = value <= split[node]
            for k in np.flatnonzero(np.isin(node, list(members))):
                step[k] = value[k] in members[int(node[k])]
            step = np.where(np.isnan(value), missing_true[node], step)
            place[walking] = np.where(step, true[node], false[node])
        leaf = -1 - place
        total[rows, target[leaf]] += weight[leaf]
    return total


def Where(condition, a, b):
    return np.where(condition, a, b)


def find(name: str):
    """The function of an operation.

    >>> find("Add")(1.0, 2.0)
    3.0
    """
    return globals()[name]


def TextLetters(x, groups, rarity):
    """Weighted counts (tf-idf) of groups of two to four letters inside words, of length one."""
    weights = np.zeros((x.size, len(rarity)))
    for row, text in enumerate(x.ravel()):
        plain = "".join("\ufffd" if c == "\0" or ord(c) > 0xFFFF else c for c in text)
        padded = " " + re.sub(r"[\s\x1c-\x1f\x85]+", " ", plain) + " "
        padded = re.sub(" +", " ", padded)
        for length in (2, 3, 4):
            for begin in range(len(padded) - length + 1):
                group = padded[begin : begin + length]
                if group in groups and " " not in group[1:-1]:
                    weights[row, groups[group]] += 1
    weights = np.where(weights > 0, (1 + np.log(np.maximum(weights, 1))) * rarity, 0.0)
    size = np.sqrt((weights**2).sum(axis=1, keepdims=True))
    return weights / np.where(size > 0, size, 1.0)


def TextWords(x, vocabulary, idf):
    """Weighted counts (tf-idf) of the words of texts, of length one; without accents, and in small letters."""
    counts = np.zeros((x.size, len(idf)))
    for row, text in enumerate(x.ravel()):
        plain = unicodedata.normalize("NFKD", text.lower())
        for word in re.findall(r"(?u)\b\w\w+\b", "".join(c for c in plain if not unicodedata.combining(c))):
            if word in vocabulary:
                counts[row, vocabulary[word]] += 1
    weights = np.where(counts > 0, (1 + np.log(np.maximum(counts, 1))) * idf, 0.0)
    length = np.sqrt((weights**2).sum(axis=1, keepdims=True))
    return weights / np.where(length > 0, length, 1.0)
