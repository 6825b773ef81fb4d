"""What each operation of a graph computes, in NumPy: names and meaning are those of ONNX.

`python_file` copies the functions that a graph uses into the file that it writes, so that each stands alone: it may
use ``np`` and the imports of `IMPORTS`, and nothing else of this module. Tracing runs them too, on a few rows, which
is how the shape and the type of every tensor are known.
"""

import re

import numpy as np

__all__ = ["IMPORTS", "find"]

#: What the functions import.
IMPORTS = ("import re", "import numpy as np")


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


def CumSum(x, axis):
    return np.cumsum(x, axis=axis)


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
    known = dict(zip(keys.tolist(), values.tolist()))  # noqa: B905
    found = [known.get(key, default) for key in x.ravel().tolist()]
    return np.array(found, dtype=object if values.dtype.kind in "OU" else values.dtype).reshape(x.shape)


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


def Slice(x, starts, ends, axes, steps):
    """Entries from a start to an end along axes."""
    for start, end, axis, step in zip(starts, ends, axes, steps):  # noqa: B905
        x = np.take(x, range(*slice(start, end, step).indices(x.shape[axis])), axis=axis)
    return x


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


def TfIdfVectorizer(x, *, ngram_counts, ngram_indexes, pool_strings, **limits):
    """How often each group of the pool is among the neighbours in a row; groups of a length stand together."""
    groups, ends = [], [*ngram_counts[1:], len(pool_strings)]
    for size, (start, end) in enumerate(zip(ngram_counts, ends), 1):  # noqa: B905
        groups += [tuple(pool_strings[k : k + size]) for k in range(start, end, size)]
    place, found = dict(zip(groups, ngram_indexes)), np.zeros((len(x), len(groups)))  # noqa: B905
    for row, items in enumerate(x.tolist()):
        for size in range(1, len(ngram_counts) + 1):
            for group in zip(*(items[k:] for k in range(size))):  # noqa: B905
                if group in place:
                    found[row, place[group]] += 1
    return found


def Tokenizer(x):
    """The letters of texts along a new last axis, "" after the end."""
    most = max(map(len, x.ravel()), default=0)
    padded = [[*text, *[""] * (most - len(text))] for text in x.ravel()]
    return np.array(padded, dtype=object).reshape(*x.shape, most)


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
