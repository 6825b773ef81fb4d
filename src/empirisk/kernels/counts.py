"""Items that are bags of features: counts by a name that means the same in every call."""

from collections import Counter
from collections.abc import Hashable, Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from empirisk.kernels.tiles import products, squared_norms
from empirisk.kernels.wrappers import Cosine


class Counts:
    """A CSR matrix of counts and the name of each of its columns."""

    def __init__(self, matrix: sparse.csr_matrix, columns: dict[Hashable, int]):
        self.matrix = matrix
        self.columns = columns

    @classmethod
    def of(cls, bags: Iterable[Counter]) -> "Counts":
        """One row for every bag; the columns are numbered in the order of their first appearance."""
        columns: dict[Hashable, int] = {}
        indices, values, starts = [], [], [0]
        for bag in bags:
            indices.extend(columns.setdefault(feature, len(columns)) for feature in bag)
            values.extend(bag.values())
            starts.append(len(indices))
        shape = (len(starts) - 1, max(len(columns), 1))
        matrix = sparse.csr_matrix((np.array(values, dtype=np.float64), indices, starts), shape=shape)
        matrix.sort_indices()
        return cls(matrix, columns)

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def __getitem__(self, chosen) -> "Counts":
        return Counts(self.matrix[chosen], self.columns)

    def over(self, columns: dict[Hashable, int]) -> sparse.csr_matrix:
        """The counts over the columns of others; what they do not have can match nothing and is left out."""
        if columns is self.columns:
            return self.matrix
        known = [(here, columns[name]) for name, here in self.columns.items() if name in columns]
        here, there = np.array(known, dtype=np.intp).reshape(-1, 2).T
        shape = (self.matrix.shape[1], max(len(columns), 1))
        return (self.matrix @ sparse.csr_matrix((np.ones(len(here)), (here, there)), shape=shape)).tocsr()


class CountKernel(Cosine):
    """A kernel that is the inner product of counts of features."""

    def bags(self, X: Any) -> Iterable[Counter]:
        """The features of every item."""
        raise NotImplementedError

    def plain_items(self, X):
        return Counts.of(self.bags(X))

    def plain_block(self, A, B, out):
        return products(A.matrix, None, out) if B is None else products(A.over(B.columns), B.matrix, out)

    def plain_diagonals(self, A):
        return squared_norms(A.matrix)


def digest(*names: Any) -> str:
    """A short name for a list of names; two lists get the same one with probability 2^-128."""
    return blake2b(repr(names).encode(), digest_size=16).hexdigest()


def number(name: Any) -> int:
    """A number that stands for a name in compiled loops; two names share one with probability 2^-63."""
    name = name.item() if isinstance(name, np.generic) else name
    return int.from_bytes(blake2b(repr(name).encode(), digest_size=8).digest(), "little", signed=True)
