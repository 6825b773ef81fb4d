"""Sets of equal rows, against a search of every row among those before it."""

import hashlib

import numpy as np
import pytest

from empirisk.linalg.hashes import distinct_rows, equal_keys, equal_rows, row_digests, row_hashes

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(0, 3, size=(60, 3)).astype(np.float64)
Y = RANDOM.integers(0, 2, size=60).astype(np.float64)


def first_equal(rows):
    """The first row that equals each one."""
    return [next(i for i, other in enumerate(rows) if np.array_equal(other, row)) for row in rows]


@pytest.mark.parametrize("keys", [X, row_hashes(X), row_digests(X)], ids=["rows", "hashes", "digests"])
def test_equal_keys_are_those_of_equal_rows(keys):
    first, member = equal_keys(keys)
    assert first[member].tolist() == first_equal(X)
    assert len(first) == len(np.unique(X, axis=0))


def test_rows_themselves_are_sets_in_their_own_order():
    first, member = equal_keys(X)
    np.testing.assert_array_equal(X[first], np.unique(X, axis=0))
    np.testing.assert_array_equal(X[first][member], X)


def test_the_target_tells_rows_apart():
    first, member = equal_rows(X, Y)
    assert first[member].tolist() == first_equal(np.column_stack([X, Y]))


def test_the_order_of_sets_does_not_depend_on_that_of_the_rows():
    order = RANDOM.permutation(len(X))
    for found in (equal_rows(X, Y), equal_keys(row_digests(X, Y))):
        assert len(found[0]) < len(X)
    np.testing.assert_array_equal(X[equal_rows(X, Y)[0]], X[order][equal_rows(X[order], Y[order])[0]])
    digested, shuffled = equal_keys(row_digests(X, Y))[0], equal_keys(row_digests(X[order], Y[order]))[0]
    np.testing.assert_array_equal(X[digested], X[order][shuffled])


def test_a_digest_is_that_of_the_bytes_of_a_row():
    expected = hashlib.blake2b(X[5].tobytes() + Y[5:6].tobytes(), digest_size=16).digest()
    assert row_digests(X, Y[:, None])[5].tobytes() == expected


def test_distinct_rows_have_the_weight_of_their_set():
    weights = RANDOM.uniform(size=60) * (Y > 0)
    rows, total = distinct_rows(X, weights)
    for row, weight in zip(rows, total, strict=True):
        assert weight == pytest.approx(weights[(X[row] == X).all(axis=1)].sum())
    assert total.sum() == pytest.approx(weights.sum())


def test_numbers_as_objects_have_the_hashes_of_numbers():
    X = np.random.default_rng(0).normal(size=(9, 3))
    np.testing.assert_array_equal(row_hashes(X.astype(object)), row_hashes(X))
    words = np.array([["1"], ["1.0"], ["one"]], dtype=object)
    assert len(set(row_hashes(words))) == 3
