"""Small data of every nasty kind: rows, targets and weights, drawn from one generator."""

from collections.abc import Callable

import numpy as np
from scipy import sparse

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
USUAL = 0.5


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
    with np.errstate(over="ignore"):
        out = FORMATS[name](X)
    return (X, "dense") if name == "float32" and not np.all(np.isfinite(out)) else (out, name)


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
