"""Kernels on strings against the listing of all substrings and subsequences."""

import numpy as np
import pandas as pd
import pytest

from empirisk.errors import EmpiriskError
from empirisk.kernels import Linear, Spectrum, Subsequence, strings
from empirisk.kernels.items import size
from tests.kernel_catalog import words
from tests.kernels import naive_kernels as naive

pytestmark = pytest.mark.row("K5")

X, Z = [*words(14, 8), "", "ä€𝄞a"], words(6, 8, seed=1)


def table(function, rows, columns, *arguments):
    return np.array([[function(x, z, *arguments) for z in columns] for x in rows], dtype=float)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_spectrum_counts_equal_substrings(length):
    kernel = Spectrum(length)
    np.testing.assert_array_equal(kernel(X), table(naive.spectrum, X, X, length))
    np.testing.assert_array_equal(kernel(X, Z), table(naive.spectrum, X, Z, length))
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel(X)))
    blended = sum(table(naive.spectrum, X, Z, shorter) for shorter in range(1, length + 1))
    np.testing.assert_array_equal(Spectrum(length, blended=True)(X, Z), blended)


@pytest.mark.parametrize("decay", [0.4, 1.0])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_subsequence_sums_over_all_choices_of_places(length, decay):
    kernel = Subsequence(length, decay)
    np.testing.assert_allclose(kernel(X), table(naive.subsequences, X, X, length, decay), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X, Z), table(naive.subsequences, X, Z, length, decay), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel(X)))
    blended = sum(table(naive.subsequences, X, Z, shorter, decay) for shorter in range(1, length + 1))
    np.testing.assert_allclose(Subsequence(length, decay, blended=True)(X, Z), blended, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", [Spectrum, Subsequence])
def test_the_option_and_the_method_normalise_alike(kind):
    np.testing.assert_allclose(kind(2, normalise=True)(X, Z), kind(2).normalised()(X, Z), rtol=1e-14)
    K = kind(2, normalise=True)(X)
    assert np.array_equal(K, K.T)
    assert set(np.diag(K)) == {0.0, 1.0}  # words too short to hold anything are similar to nothing
    np.testing.assert_array_equal(kind(2, normalise=True).diagonal(X), np.diag(K))


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(3, normalise=True)], ids=repr)
def test_rows_that_spell_strings_are_compared_as_these_beside_numbers(kernel):
    rows = np.zeros((len(X), 9))
    for row, word in zip(rows, X, strict=True):
        row[: len(word)] = [ord(letter) for letter in word]
    np.testing.assert_array_equal(strings.Spelled(kernel)(rows), kernel(X))
    numbers = np.random.default_rng(0).normal(size=(len(X), 2))
    both = strings.Spelled(kernel).on(slice(0, 9)) + 0.5 * Linear().on([9, 10])
    np.testing.assert_allclose(both(np.hstack([rows, numbers])), kernel(X) + 0.5 * numbers @ numbers.T, rtol=1e-12)
    odd = [[97.0, -3.0, 98.0, 1e9, 0xD800, 99.0]]  # what stands for no letter is left out
    np.testing.assert_array_equal(strings.Spelled(kernel)(odd), kernel(["abc"]))


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2), Spectrum(2, normalise=True)], ids=repr)
def test_items_are_taken_by_rows(kernel):
    A, B = kernel.prepare(X), kernel.prepare(Z)
    mask = np.arange(len(X)) % 3 == 0
    assert size(A) == len(X)
    for chosen in (slice(2, 9), [5, 1, 1], mask):
        np.testing.assert_array_equal(kernel.between(A[chosen], B), kernel(X, Z)[chosen])
    np.testing.assert_array_equal(kernel.between(A[:5]), kernel(X)[:5, :5])


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2)], ids=repr)
def test_sequences_of_anything_and_columns_of_tables(kernel):
    tokens = {"a": "ant", "b": 7, "c": ("bee", 1)}
    some = X[:14]
    np.testing.assert_array_equal(kernel([[tokens[letter] for letter in word] for word in some]), kernel(some))
    column = np.array(some, dtype=object)[:, None]
    for given in (np.array(some), column, pd.DataFrame({"word": some}), pd.Series(some), [w.encode() for w in some]):
        np.testing.assert_array_equal(kernel(given), kernel(some))


def test_long_words_are_worked_on_in_slices(monkeypatch):
    kernel = Subsequence(2)
    expected = kernel(X, Z)
    monkeypatch.setattr(strings, "CELLS", 10.0)
    np.testing.assert_array_equal(kernel(X, Z), expected)
    np.testing.assert_array_equal(kernel(X), kernel(X, X))


@pytest.mark.parametrize(
    ("kernel", "data", "message"),
    [
        (Spectrum(0), ["a"], "length=0"),
        (Subsequence(2, 0.0), ["a"], "decay=0.0 must be above 0"),
        (Subsequence(2, 1.5), ["a"], "decay=1.5"),
        (Spectrum(), "abc", "wrap it in a list"),
        (Spectrum(), [], "X is empty"),
        (Subsequence(), ["a", 3.0], "entry 1 is of type float"),
    ],
)
def test_bad_input_is_refused(kernel, data, message):
    with pytest.raises(EmpiriskError, match=message):
        kernel(data)


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2)], ids=repr)
def test_a_table_of_numbers_is_no_list_of_strings(kernel):
    with pytest.raises(EmpiriskError, match="table of numbers"):
        kernel(np.eye(3))
    assert kernel(np.array([[1, 2, 1], [2, 1, 2]])).shape == (2, 2)  # codes are letters
