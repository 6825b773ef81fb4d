"""Bins: quantile edges, one byte per value, categories and missing values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empirisk.settings import config
from empirisk.trees.binned.bins import MISSING, SAMPLE, Binning, find_edges, middles

pytestmark = [pytest.mark.row("T6"), pytest.mark.row("T8")]


def bins_of(X, weights=None, categories=None, **options):
    X = np.asarray(X, dtype=float)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    counts = np.zeros(X.shape[1], dtype=np.int32) if categories is None else np.asarray(categories, dtype=np.int32)
    return Binning.of(X, weights, counts, **options)


def test_few_distinct_values_have_a_bin_each():
    X = np.array([[3.0], [1.0], [3.0], [2.0], [np.nan]])
    binning = bins_of(X)
    assert binning.counts.tolist() == [3]
    assert binning.edges[0, :3].tolist() == [1.5, 2.5, np.inf]
    assert binning.codes(X).by_row.ravel().tolist() == [2, 0, 2, 1, MISSING]


def test_codes_are_the_naive_search_in_both_layouts():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 7)) * 10.0 ** np.arange(7)
    X[random.random(X.shape) < 0.1] = np.nan
    X[:, 3] = np.round(X[:, 3] / 1000)
    binning = bins_of(X)
    codes = binning.codes(X)
    for column in range(7):
        edges = binning.edges[column, : binning.counts[column] - 1]
        expected = np.where(np.isnan(X[:, column]), MISSING, np.searchsorted(edges, X[:, column]))
        assert np.array_equal(codes.by_row[:, column], expected)
    assert np.array_equal(codes.by_row[:, :7], codes.by_column.T)


def test_many_values_share_the_bins_equally():
    values = np.random.default_rng(1).normal(size=(20_000, 1))
    codes = bins_of(values).codes(values).by_row.ravel()
    masses = np.bincount(codes)
    assert len(masses) == 255
    assert masses.min() > 0.8 * masses.max()


def test_a_heavy_value_does_not_use_up_the_bins_of_the_others():
    random = np.random.default_rng(2)
    values = np.where(random.random(20_000) < 0.9, 0.0, random.exponential(size=20_000))[:, None]
    binning = bins_of(values)
    codes = binning.codes(values).by_row.ravel()
    assert binning.counts[0] > 240
    assert len(np.unique(codes[values.ravel() == 0.0])) == 1
    assert np.bincount(codes)[1:].max() < 30


@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 4)), min_size=1, max_size=60),
    st.integers(2, 12),
)
def test_weight_is_repetition(pairs, most):
    values = np.array([[value / 3] for value, _ in pairs])
    weights = np.array([float(weight) for _, weight in pairs])
    once = bins_of(values, weights, max_bins=most)
    often = bins_of(np.repeat(values, weights.astype(int), axis=0), max_bins=most)
    assert np.array_equal(once.edges, often.edges)
    assert once.counts[0] <= most


def test_large_tables_are_sampled_and_still_balanced():
    values = np.random.default_rng(3).normal(size=(3 * SAMPLE, 1))
    masses = np.bincount(bins_of(values).codes(values).by_row.ravel(), minlength=255)
    assert masses.min() > 0.6 * masses.mean()


def test_bits_do_not_depend_on_threads():
    X = np.random.default_rng(4).normal(size=(70_000, 3))
    with config(threads=1):
        alone = bins_of(X)
        codes = alone.codes(X).by_row[:, :3]
    with config(threads=2):
        both = bins_of(X)
        assert np.array_equal(alone.edges, both.edges)
        assert np.array_equal(codes, both.codes(X).by_row[:, :3])


def test_all_missing_and_constant_columns():
    X = np.array([[np.nan, 5.0], [np.nan, 5.0]])
    binning = bins_of(X)
    assert binning.counts.tolist() == [0, 1]
    assert binning.codes(X).by_row.tolist() == [[MISSING, 0], [MISSING, 0]]


def test_rare_categories_beyond_255_count_as_missing():
    codes = np.concatenate([np.repeat(np.arange(255.0), 2), np.arange(255.0, 300.0), [np.nan]])[:, None]
    binning = bins_of(codes, categories=[300])
    found = binning.codes(codes).by_row.ravel()
    assert binning.counts.tolist() == [255]
    assert np.array_equal(found[:510], np.repeat(np.arange(255), 2))
    assert (found[510:] == MISSING).all()


def test_a_set_of_bins_becomes_a_set_of_categories():
    codes = np.arange(70.0)[:, None]
    binning = bins_of(codes, categories=[70])
    left = np.zeros(256, dtype=bool)
    left[[0, 63, 64, 69]] = True
    words = binning.category_set(0, left)
    assert [code for code in range(70) if words[code // 64] >> np.uint64(code % 64) & np.uint64(1)] == [0, 63, 64, 69]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_an_edge_separates_its_neighbours(a, b):
    low, high = min(a, b), max(a, b)
    if low < high:
        found = middles(np.array([low]), np.array([high]))[0]
        assert low <= found < high


def test_edges_rise_and_stay_within_the_limit():
    random = np.random.default_rng(5)
    for size in (1, 2, 300, 1000):
        values = np.sort(random.choice(random.normal(size=400), size=size))
        edges = find_edges(values, random.exponential(size=size), 255)
        assert len(edges) < 255
        assert (np.diff(edges) > 0).all()
        assert np.isfinite(edges).all()
