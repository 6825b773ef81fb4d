"""Groups of two to four letters inside words: what endings, misspellings, prices and sequences have in common."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from empirisk import state, stop

#: Four letters of 16 bits are one number.
BITS, SHORTEST, LONGEST = 16, 2, 4
#: What stands for letters that have no 16 bits, and for zeros.
STRANGE = 0xFFFD
#: What every kind of white space becomes, and their numbers in Unicode.
SPACE = 32
SPACES = np.array(
    [*range(9, 14), *range(28, 33), 133, 160, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    dtype=np.uint32,
)
#: Letters read at a time, some 100 bytes each; and those from which the groups are chosen, a second's work.
BLOCK, READ = 500_000, 3_000_000


def _wrong_order(its) -> str | None:
    return None if np.all(its["groups"][1:] > its["groups"][:-1]) else "groups are not in order"


@dataclass(frozen=True, eq=False)
class Letters:
    """The weights (tf-idf) of groups of letters in texts; capitals count, and a space is the edge of a word.

    With t the times that a group is in a text, in r_g of r texts:  (1 + log t) (1 + log((1 + r) / (1 + r_g))), and the
    weights of a text have length one.

    Attributes
    ----------
    groups : array of uint64
        In order: the letters of each, 16 bits for each of them, the first lowest.
    rarity : array
        What depends on r_g.
    """

    _state = state.State(_wrong_order, groups=state.array("u8", "width"), rarity=state.array("f8", "width"))

    groups: NDArray[np.uint64]
    rarity: NDArray[np.float64]

    @classmethod
    def fit(cls, texts: list[str], most: int, least: int) -> "Letters":
        """Keep the ``most`` frequent groups that ``least`` texts have."""
        every = sum(map(len, texts)) // READ + 1
        texts = texts[::every]
        found = [_times_of_each(block) for block in _blocks(texts)]
        groups, places = np.unique(np.concatenate([groups for groups, _ in found]), return_inverse=True)
        having = np.bincount(places, np.concatenate([having for _, having in found]), len(groups))
        order = np.lexsort((groups, -having))[:most]
        kept = np.sort(order[having[order] >= least])
        return cls(groups[kept], 1 + np.log((1 + len(texts)) / (1 + having[kept])))

    def transform(self, texts: list[str]) -> sparse.csr_matrix:
        """The weights."""
        found = [self._weights(block) for block in _blocks(texts)] if len(self.groups) else []
        return sparse.vstack(found, format="csr") if found else sparse.csr_matrix((len(texts), len(self.groups)))

    def names(self) -> list[str]:
        """The letters, and ... where the word goes on."""
        units = (self.groups[:, None] >> np.arange(0, BITS * LONGEST, BITS, dtype=np.uint64)) & (2**BITS - 1)
        return [_shown("".join(map(chr, filter(None, group)))) for group in units.tolist()]

    def _weights(self, texts: list[str]) -> sparse.csr_matrix:
        groups, rows = _groups(texts)
        places = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
        known = self.groups[places] == groups
        weights = _counts(rows[known], places[known], (len(texts), len(self.groups)))
        weights.data = (1 + np.log(weights.data)) * self.rarity[weights.indices]
        return normalize(weights, copy=False)


def _shown(group: str) -> str:
    """Letters inside a word, at its beginning or at its end."""
    return f"{'' if group[0] == ' ' else '…'}{group.strip(' ')}{'' if group[-1] == ' ' else '…'}"


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    """Texts of so many letters together, one at least."""
    ends = np.cumsum([len(text) + 1 for text in texts]) // BLOCK
    for block in np.split(np.arange(len(texts)), np.flatnonzero(np.diff(ends)) + 1):
        stop.check_stop()
        if len(block):
            yield texts[block[0] : block[-1] + 1]


def _groups(texts: list[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """All groups of letters, each as one number, and the text that each is in.

    >>> groups, rows = _groups(["ab", "c"])
    >>> Letters(groups, np.ones(len(groups))).names(), rows.tolist()
    (['a…', '…ab…', '…b', 'c…', '…c', 'ab…', '…ab', 'c', 'ab'], [0, 0, 0, 1, 1, 0, 0, 1, 0])
    """
    letters = np.frombuffer(" ".join(["", *texts, ""]).encode("utf-32-le", "replace"), dtype=np.uint32)
    letters = np.where(
        (letters == 0) | (letters >> BITS > 0), STRANGE, np.where(np.isin(letters, SPACES), SPACE, letters)
    )
    rows = np.repeat(np.arange(-1, len(texts)), [1, *(len(text) + 1 for text in texts)])
    space = letters == SPACE
    once = np.append(True, ~(space[1:] & space[:-1]))
    letters, rows, space = letters[once].astype(np.uint64), rows[once], space[once]
    found, inside = letters[:-1] | (letters[1:] << np.uint64(BITS)), np.ones(len(letters) - 1, dtype=bool)
    groups, owners = [found], [rows[1:]]
    for length in range(SHORTEST + 1, LONGEST + 1):
        # No space but at the ends: the letter that was last is none.
        inside = inside[:-1] & ~space[length - 2 : -1]
        found = found[:-1] | (letters[length - 1 :] << np.uint64(BITS * (length - 1)))
        groups.append(found[inside])
        owners.append(rows[1 : 1 + len(inside)][inside])
    return np.concatenate(groups), np.concatenate(owners)


def _counts(rows: NDArray, places: NDArray, shape: tuple[int, int]) -> sparse.csr_matrix:
    """How often each group is in each text."""
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, places)), shape=shape)
    counts.sum_duplicates()
    return counts


def _times_of_each(texts: list[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The groups that are in some texts, and in how many of them each is."""
    groups, rows = _groups(texts)
    groups, places = np.unique(groups, return_inverse=True)
    return groups, np.bincount(_counts(rows, places, (len(texts), len(groups))).indices, minlength=len(groups))
