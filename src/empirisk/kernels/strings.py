"""Kernels on strings and other sequences: shared substrings, and shared subsequences with gaps."""

import sys
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.kernels.algebra import Wrapper
from empirisk.kernels.base import require_whole
from empirisk.kernels.counts import CountKernel, number
from empirisk.kernels.items import Ragged, as_floats, as_objects
from empirisk.kernels.tiles import by_rows
from empirisk.kernels.wrappers import Cosine
from empirisk.linalg.compiled import loop
from empirisk.linalg.threads import parallel_map
from empirisk.parts import is_number

MOST_LETTERS = 10_000  # of a substring that a file may ask for: more would be hours of work
SURROGATES = 0xD800, 0xDFFF  # halves of letters, which stand for none alone
CELLS = 2e7  # of the table filled by one call of the compiled loop: some hundredths of a second


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (str, bytes, list, tuple))


def _sequences(X: Any) -> list:
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        raise EmpiriskError(
            "X is a table of numbers, and this kernel compares strings; use one on vectors: 'gaussian'."
        )
    return as_objects(X, "strings or sequences", _is_sequence)


@dataclass(eq=False, repr=False)
class Spectrum(CountKernel):
    """k(x, z) = sum over all substrings u of a length of (occurrences of u in x) (occurrences of u in z).

    Parameters
    ----------
    length : int
        The length of the substrings.
    blended : bool
        Whether all lengths from 1 to ``length`` count.
    normalise : bool
        Whether to divide by sqrt(k(x, x) k(z, z)).

    Examples
    --------
    >>> er.kernels.Spectrum(2)(["abab", "abc"])
    array([[5., 2.],
           [2., 2.]])
    """

    _state = state.State(length=state.whole(1, MOST_LETTERS))

    takes = "strings"

    length: int = 3
    _: KW_ONLY
    blended: bool = False

    def check(self):
        require_whole(self.length, "length", 1)

    def bags(self, X):
        lengths = range(1 if self.blended else int(self.length), int(self.length) + 1)
        for value in _sequences(X):
            x = tuple(value) if isinstance(value, list) else value
            yield Counter(x[i : i + p] for p in lengths for i in range(len(x) - p + 1))


def _codes(value: Any) -> NDArray:
    if isinstance(value, str):
        return np.frombuffer(value.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8).astype(np.int64)
    return np.array([number(token) for token in value], dtype=np.int64)


@dataclass(eq=False, repr=False)
class Subsequence(Cosine):
    """Shared subsequences of a length, each weighted by decay^(the lengths that it spans in x and in z).

    k(x, z) = sum over u, over occurrences i of u in x and j of u in z, of decay^(span(i) + span(j)); the letters of an
    occurrence need not be neighbours. Computed by a recursion over prefixes in length |x| |z| steps.

    Parameters
    ----------
    length : int
        The number of letters of a subsequence.
    decay : float
        Between 0 and 1; what each letter inside a span, matched or skipped, costs.
    blended : bool
        Whether all lengths from 1 to ``length`` count.
    normalise : bool
        Whether to divide by sqrt(k(x, x) k(z, z)).

    Examples
    --------
    >>> er.kernels.Subsequence(2, 0.5)(["cat"], ["car"])
    array([[0.0625]])
    """

    _state = state.State(length=state.whole(1, MOST_LETTERS), decay=state.number(0, 1))

    takes = "strings"

    length: int = 3
    decay: float = 0.5
    _: KW_ONLY
    blended: bool = False

    def check(self):
        require_whole(self.length, "length", 1)
        if not (is_number(self.decay) and 0 < self.decay <= 1):
            raise EmpiriskError(f"decay={self.decay!r} must be above 0 and at most 1.")

    def plain_items(self, X):
        words = [_codes(value) for value in _sequences(X)]
        return Ragged(np.concatenate(words), [len(word) for word in words])

    def plain_block(self, A, B, out):
        others = A if B is None else B

        def fill_row(i: int, first: int, line: NDArray) -> None:
            word = A.part(i, i + 1)
            for start, stop in others.ranges(CELLS / max(int(self.length) * len(word), 1), first):
                self._row(word, others, start, stop, line)

        return by_rows(A, B, out, fill_row)

    def _row(self, word: NDArray, others: Ragged, start: int, stop: int, line: NDArray) -> None:
        weights = np.ones(int(self.length)) if self.blended else np.append(np.zeros(int(self.length) - 1), 1.0)
        starts = others.starts[start : stop + 1]
        _subsequences(word, others.values, starts, float(self.decay), weights, line[start:stop])

    def plain_diagonals(self, A):
        out = np.empty(len(A))
        parallel_map(lambda i: self._row(A.part(i, i + 1), A, i, i + 1, out), range(len(A)))
        return out


@dataclass(eq=False, repr=False)
class Spelled(Wrapper):
    """A kernel on strings, for rows of numbers that spell them: the code points of their letters, zeros after the end.

    So strings stand in a table beside numbers, and a sum of kernels compares both.

    Parameters
    ----------
    kernel : Kernel
        The kernel on strings.

    Examples
    --------
    >>> Spelled(er.kernels.Spectrum(2))([[97, 98, 97, 98], [97, 98, 99, 0]])
    array([[5., 2.],
           [2., 2.]])
    """

    @property
    def takes(self) -> str:
        return "vectors"

    def check(self):
        self.child("kernel").check()

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        self.kernel_ = clone(self.kernel).fit(_spelled(X))
        return self

    def prepare(self, X):
        self.check()
        return self.child("kernel").prepare(_spelled(X))

    def apply(self, values):
        """The block of the strings is the result."""

    def expression(self, A):
        return None


def _spelled(X: Any) -> list[str]:
    """The strings that rows spell; what is no code point of a letter is left out."""
    rows = as_floats(X, "X")
    codes = np.where((rows >= 1) & (rows <= sys.maxunicode), rows, 0).astype(np.uint32)
    codes[(codes >= SURROGATES[0]) & (codes <= SURROGATES[1])] = 0
    return [row[row > 0].tobytes().decode("utf-32-le") for row in codes]


@loop
def _subsequences(x, codes, starts, decay, weights, line):
    """Into line, the sum over lengths p of weights[p - 1] times the kernel of length p, for each word of a list."""
    for w in range(len(starts) - 1):
        z = codes[starts[w] : starts[w + 1]]
        # ends[i, j]: weight of the common subsequences that end exactly at x[i] and z[j]
        ends = np.empty((len(x), len(z)))
        found = 0.0
        for i in range(len(x)):
            for j in range(len(z)):
                ends[i, j] = decay * decay if x[i] == z[j] else 0.0
                found += ends[i, j]
        total = weights[0] * found
        for p in range(1, len(weights)):
            total += weights[p] * _longer(x, z, decay, ends)
        line[w] = total


@loop
def _longer(x, z, decay, ends):
    """Replace the ends of subsequences by those that are one letter longer; return their sum."""
    square = decay * decay
    above, here = np.zeros(len(z) + 1), np.zeros(len(z) + 1)
    found = 0.0
    for i in range(len(x)):
        running = 0.0
        for j in range(len(z)):
            shorter = ends[i, j]
            ends[i, j] = square * above[j] if x[i] == z[j] else 0.0
            found += ends[i, j]
            # the shorter ones over all ends up to here, discounted by the letters since
            running = decay * running + (shorter + decay * above[j + 1] - square * above[j])
            here[j + 1] = running
        above, here = here, above
    return found
