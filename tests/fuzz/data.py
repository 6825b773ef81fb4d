"""Small data of every nasty kind: rows, targets and weights, drawn from one generator."""

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tests.fuzz.parts import MISSING

Rows = np.ndarray
Random = np.random.Generator
#: How often a size is drawn that no machine takes: the refusal is looked at too, but it is one sentence.
TOO_FAR = 0.1


def size(random: Random, inside: tuple[int, ...], outside: tuple[int, ...]) -> float:
    """A power of ten, most often one that the machines take."""
    return 10.0 ** random.choice(outside if random.random() < TOO_FAR else inside)


def _plain(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d))


def _offset(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d)) + 10.0 ** random.integers(3, 9)


def _scaled(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d)) * 10.0 ** random.integers(-9, 10, d)


def _tiny(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d)) * size(random, (-10, -20, -30, -40, -48), (-52, -100, -160, -200))


def _huge(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d)) * size(random, (10, 20, 30, 40, 48), (52, 160, 300))


def _one_huge_entry(random: Random, n: int, d: int) -> Rows:
    X = random.normal(size=(n, d))
    X[random.integers(n), random.integers(d)] = size(random, (9, 20, 30, 45), (80, 200, 307))
    return X


def _subnormal(random: Random, n: int, d: int) -> Rows:
    X = random.integers(-9, 10, (n, d)) * 5e-324
    if random.random() > TOO_FAR:
        X[:, random.integers(d)] = random.normal(size=n)
    return X


def _collinear(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, 1)) * random.integers(-5, 6, d)


def _nearly_collinear(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, 1)) + 10.0 ** random.choice([-5, -8, -12, -15]) * random.normal(size=(n, d))


def _constant_columns(random: Random, n: int, d: int) -> Rows:
    X = random.normal(size=(n, d))
    X[:, random.random(d) < 0.6] = random.choice([0.0, 1.0, -3.7, 1e6])
    return X


def _duplicates(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d))[random.integers(0, max(n // 4, 1), n)]


def _all_zero(random: Random, n: int, d: int) -> Rows:
    return np.zeros((n, d))


def _mostly_zero(random: Random, n: int, d: int) -> Rows:
    return random.normal(size=(n, d)) * (random.random((n, d)) < 0.2)


def _one_hot(random: Random, n: int, d: int) -> Rows:
    return np.eye(d)[random.integers(0, d, n)]


def _whole(random: Random, n: int, d: int) -> Rows:
    return random.integers(-3, 4, (n, d))


def _yes_no(random: Random, n: int, d: int) -> Rows:
    return random.random((n, d)) < 0.5


def _heavy_tails(random: Random, n: int, d: int) -> Rows:
    return random.standard_cauchy((n, d)) ** 3


ROWS: tuple[Callable[[Random, int, int], Rows], ...] = (
    _plain,
    _offset,
    _scaled,
    _tiny,
    _huge,
    _one_huge_entry,
    _subnormal,
    _collinear,
    _nearly_collinear,
    _constant_columns,
    _duplicates,
    _all_zero,
    _mostly_zero,
    _one_hot,
    _whole,
    _yes_no,
    _heavy_tails,
)

FORMATS: dict[str, Callable[[Rows], object]] = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "fortran": lambda X: np.asfortranarray(X),
    "read-only": lambda X: np.frombuffer(X.astype(float).tobytes()).reshape(X.shape),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "list": lambda X: X.tolist(),
    "csr": lambda X: sparse.csr_matrix(X),
    "csc": lambda X: sparse.csc_array(X),
    "coo": lambda X: sparse.coo_matrix(X),
    "dia": lambda X: sparse.dia_matrix(X.astype(float)),
    "lil": lambda X: sparse.lil_matrix(X),
}
SPARSE = ("csr", "csc", "coo", "dia", "lil")


def _memory_map(X: Rows) -> Rows:
    with tempfile.TemporaryFile() as file:  # the map holds on to it
        out = np.memmap(file, X.dtype, "w+", shape=X.shape)
    out[:] = X
    return out


def _frame(X: Rows, names: list | None = None) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])] if names is None else names)


def _with_words(X: Rows) -> Any:
    """The last column tells the sign of what it held, in words; a few are missing."""
    words = [[None, "low", "high"][0 if i % 9 == 8 else 1 + int(x > 0)] for i, x in enumerate(X[:, -1].tolist())]
    return _frame(X).assign(word=words)


def _polars(X: Rows) -> Any:
    import polars as pl

    return pl.DataFrame({f"column {j}": X[:, j] for j in range(X.shape[1])})


def _with_zeros(X: Rows) -> Any:
    """Zeros that are stored, and indices of 64 bits."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    out = sparse.csr_array((X.astype(float).ravel(), (rows, columns)), shape=X.shape)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def _in_pieces(X: Rows) -> Any:
    """Every entry stored twice, as two halves, in no order."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    order = np.random.default_rng(0).permutation(2 * X.size)
    half = np.tile(X.astype(float).ravel() / 2, 2)[order]
    return sparse.coo_matrix((half, (np.tile(rows, 2)[order], np.tile(columns, 2)[order])), shape=X.shape)


def _masked(X: Rows) -> Any:
    """A row in seven has no last column: a fit refuses that, or takes it for missing."""
    mask = np.zeros(X.shape, dtype=bool)
    mask[::7, -1] = True
    return np.ma.array(X, mask=mask)


#: What users bring besides; some of it only where a library is installed.
MORE_FORMATS: dict[str, Callable[[Rows], object]] = FORMATS | {
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "reversed": lambda X: X[::-1].copy()[::-1],
    "memory map": _memory_map,
    "masked nowhere": lambda X: np.ma.array(X, mask=False),
    "masked": _masked,
    "bsr": lambda X: sparse.bsr_matrix(X.astype(float)),
    "dok": lambda X: sparse.dok_matrix(X),
    "csr32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "stored zeros": _with_zeros,
    "halves": _in_pieces,
}
if "pandas" not in MISSING:
    MORE_FORMATS |= {
        "pandas": _frame,
        "pandas with twins": lambda X: _frame(X, ["twin"] * X.shape[1]),
        "pandas with numbers": lambda X: _frame(X, list(range(X.shape[1]))),
        "pandas nullable": lambda X: _frame(X).astype("Float64"),
        "pandas of float32": lambda X: _frame(X).astype(np.float32),
        "pandas with words": _with_words,
    }
if "polars" not in MISSING:
    MORE_FORMATS |= {"polars": _polars}
#: Formats that are sparse, and those in single or half precision, which has to hold the numbers.
THIN = (*SPARSE, "bsr", "dok", "csr32", "stored zeros", "halves")
NARROW = ("float32", "float16", "csr32", "pandas of float32")
#: Formats in which rows are not numbers alone: most machines refuse them.
ODD = ("masked", "pandas with words", "object")
USUAL = 0.5


def plain(X: Any) -> np.ndarray:
    """Rows as an array, whatever format they had; NaN where they are masked."""
    if sparse.issparse(X):
        return X.toarray()
    if np.ma.is_masked(X):
        return X.astype(float).filled(np.nan)
    return np.asarray(X)


def shape(random: Random) -> tuple[int, int]:
    """Rows and columns: few of both, now and then one only, or more columns than rows."""
    n = int(random.choice([1, 2, 3, 5, 8, 13, 20, 30], p=[0.02, 0.04, 0.06, 0.12, 0.2, 0.2, 0.2, 0.16]))
    return n, int(random.choice([1, 2, 3, 5, 12]))


def rows(random: Random) -> tuple[Rows, str]:
    """Rows of some kind, and its name."""
    make = ROWS[random.integers(len(ROWS))]
    with np.errstate(over="ignore"):
        X = make(random, *shape(random))
    X = np.nan_to_num(X, nan=0.0, posinf=1e308, neginf=-1e308) if X.dtype == float else X
    return X, make.__name__.strip("_")


def formatted(random: Random, X: Rows, takes_sparse: bool) -> tuple[object, str]:
    """The rows in some format, and its name; half of them as they are."""
    name = "dense" if random.random() < USUAL else str(random.choice(list(FORMATS)))
    if name in SPARSE and not takes_sparse and random.random() > TOO_FAR:
        name = "dense"
    return _written(X, name)


def reformatted(random: Random, X: Rows, takes_sparse: bool) -> tuple[object, str]:
    """The rows in any format that users bring, and its name; a third of them as they are."""
    name = "dense" if random.random() < 1 / 3 else str(random.choice(list(MORE_FORMATS)))
    refused = name in ODD or (name in THIN and not takes_sparse)
    return _written(X, "dense" if refused and random.random() > 4 * TOO_FAR else name)


def _written(X: Rows, name: str) -> tuple[object, str]:
    with np.errstate(over="ignore"):
        narrow = np.all(np.isfinite(X.astype(np.float16 if name == "float16" else np.float32)))
        return (X, "dense") if name in NARROW and not narrow else (MORE_FORMATS[name](X), name)


def retyped(random: Random, values: Any) -> Any:
    """A target or weights in another container, most often as they are."""
    if values is None or np.ndim(values) != 1 or random.random() < 0.7:
        return values
    kind = str(random.choice(["list", "object", "masked nowhere", "series", "column"]))
    if kind == "list":
        return np.asarray(values).tolist()
    if kind == "series" and "pandas" not in MISSING:
        import pandas as pd

        return pd.Series(values, index=np.arange(len(values))[::-1])
    if kind == "object":
        return np.asarray(values).astype(object)
    return np.ma.array(values, mask=False) if kind == "masked nowhere" else values


def _signal(random: Random, X: Rows) -> Rows:
    """What the first columns say, of size one, with more or less noise."""
    with np.errstate(all="ignore"):
        first = np.nan_to_num(X.astype(float) @ random.normal(size=X.shape[1]))
        first = first / max(float(np.abs(first).max()), 1e-300)
    return first + random.choice([0.0, 0.1, 1.0]) * random.normal(size=len(X))


def numbers(random: Random, X: Rows) -> tuple[Rows, str]:
    """Targets of a regression, and what is odd about them."""
    y = _signal(random, X)
    kind = str(
        random.choice(["plain", "constant", "whole", "tiny", "huge", "outlier", "offset", "noise", "two", "float32"])
    )
    if kind == "constant":
        y = np.full(len(y), random.choice([0.0, 1.0, -7.3, 1e9]))
    elif kind == "whole":
        y = np.round(3 * y).astype(int)
    elif kind == "tiny":
        y = y * size(random, (-20, -40, -48), (-100, -200))
    elif kind == "huge":
        y = y * size(random, (10, 20, 30, 45), (60, 160))
    elif kind == "outlier":
        y[random.integers(len(y))] = size(random, (4, 12, 30, 45), (60, 160))
    elif kind == "offset":
        y = y + 1e8
    elif kind == "noise":
        y = random.standard_cauchy(len(y))
    elif kind == "two":
        y = np.column_stack([y, random.normal(size=len(y))])
    elif kind == "float32":
        y = y.astype(np.float32)
    return y, kind


KINDS_OF_LABELS = ("two", "three", "many", "words", "bools", "floats", "single", "objects") * 6 + (
    "one",
    "mixed",
    "missing",
)


def labels(random: Random, X: Rows) -> tuple[object, str]:
    """Targets of a classification, and what is odd about them."""
    f = _signal(random, X)
    kind = str(random.choice(KINDS_OF_LABELS))
    count = {"three": 3, "many": 6, "words": 3, "single": 3}.get(kind, 2)
    codes = np.searchsorted(np.quantile(f, np.arange(1, count) / count), f)
    if kind == "words":
        return np.array(["no", "yes", "perhaps"])[codes], kind
    if kind == "bools":
        return codes.astype(bool), kind
    if kind == "floats":
        return codes * 2.0 - 1.0, kind
    if kind == "single":  # one row of the last class
        codes = np.minimum(codes, 1)
        codes[random.integers(len(codes))] = 2
    if kind == "one":
        codes = np.zeros_like(codes)
    if kind == "mixed":
        return np.array([["a", 1][code] for code in codes], dtype=object), kind
    if kind == "missing":
        return np.array([["a", None][code] for code in codes], dtype=object), kind
    if kind == "objects":
        return np.array([["a", "b"][code] for code in codes], dtype=object), kind
    return codes, kind


def weights(random: Random, n: int) -> tuple[Rows | None, str]:
    """Weights of the rows, and what is odd about them; half of the time none."""
    kind = (
        "none"
        if random.random() < USUAL
        else str(random.choice(["whole", "zeros", "tiny", "huge", "spread", "one row"]))
    )
    if kind == "none":
        return None, kind
    if kind == "whole":
        return random.integers(1, 4, n), kind
    if kind == "zeros":
        return (random.random(n) < 0.6).astype(float), kind
    if kind == "tiny":
        return np.full(n, size(random, (-6, -20, -45), (-60, -300))), kind
    if kind == "huge":
        return np.full(n, size(random, (6, 9, 18, 30, 45), (60, 200))), kind
    if kind == "spread":
        return 10.0 ** random.uniform(-9, 9, n), kind
    out = np.zeros(n)
    out[random.integers(n)] = 1.0
    return out, kind
