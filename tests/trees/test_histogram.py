"""Packed histograms and the trees grown on them, against obvious references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empirisk.trees import hist_grow, hist_run
from empirisk.trees.binned.bins import Binning
from empirisk.trees.crew import Crew
from empirisk.trees.hist_grow import Grower
from empirisk.trees.hist_loops import add_values, join_rows, part_rows, take_columns
from empirisk.trees.histogram import ROOM, Limits, Table, accumulate, pack, subtract, unit
from tests.trees import naive_boost

pytestmark = pytest.mark.row("T8")

NOBODY = np.zeros(0, dtype=np.int32)
FREE = 1 << 30


def packed_of(g, h, times=NOBODY, first=-1):
    count = len(g) if not len(times) else int(times.sum())
    units = unit(float(np.abs(g).sum()), count), unit(float(h.sum()), count)
    packed = np.empty(len(g), dtype=np.int64)
    pack(np.asarray(g, dtype=float), np.asarray(h, dtype=float), units, times, first, packed)
    return packed, units


def limits_of(units, l2=0.0, leaf=1.0, gain=0.0, smoothing=0.0, depth=FREE):
    return Limits(l2 / units[1], leaf, gain, smoothing / units[1], depth, units[0] / units[1])


class Bench:
    """A table in bins with a grower on it."""

    def __init__(self, X, max_leaves, threads=1, categories=None, monotone=None, stop=lambda: False):
        counts = np.zeros(X.shape[1], dtype=np.int32) if categories is None else np.array(categories, dtype=np.int32)
        self.binning = Binning.of(X, np.ones(len(X)), counts)
        codes = self.binning.codes(X)
        signs = np.zeros(X.shape[1], dtype=np.int8) if monotone is None else np.array(monotone, dtype=np.int8)
        self.table = Table(codes.by_row, codes.by_column, self.binning.counts, self.binning.categorical, signs)
        self.crew = Crew(threads)
        self.grower = Grower(self.table, NOBODY, X.shape[1], max_leaves, self.crew, stop)

    def grow(self, g, h, **limits):
        packed, units = packed_of(g, h)
        self.grower.growth.packed[:] = packed
        rows, features = np.arange(len(g), dtype=np.int32), np.arange(self.table.by_row.shape[1], dtype=np.int32)
        return self.grower.grow(self.table.by_row, rows, features, limits_of(units, **limits))


def leaves_of(tree):
    """The sets of rows in the leaves."""
    return {
        tuple(np.sort(tree.rows[tree.start[k] : tree.stop[k]]).tolist())
        for k in range(len(tree.left))
        if tree.left[k] < 0
    }


# --- packing --------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_sums_of_packed_numbers_are_sums_of_both_parts(values):
    g = np.array(values)
    h = np.abs(g) + 1.0
    packed, units = packed_of(g, h)
    total = int(packed.sum())
    assert abs((total >> 32) * units[0] - g.sum()) <= len(g) * units[0]
    assert abs((total & 0xFFFFFFFF) * units[1] - h.sum()) <= len(g) * units[1]


def test_no_sum_leaves_its_half():
    g = np.full(1000, -1e300)
    packed, units = packed_of(g, np.full(1000, 1e-300))
    assert -ROOM <= int(packed.sum()) >> 32 < 0
    assert 0 < int(packed.sum()) & 0xFFFFFFFF < ROOM
    assert np.isfinite(units).all()


def test_a_row_that_stands_for_several_packs_to_their_sum():
    random = np.random.default_rng(0)
    g, h, times = random.normal(size=20), random.random(20), random.integers(1, 5, 20).astype(np.int32)
    once, units = packed_of(g * times, h * times, times)
    often, same = packed_of(np.repeat(g, times), np.repeat(h, times))
    assert units == same
    assert np.array_equal(once, np.add.reduceat(often, np.cumsum(times) - times))


def test_spread_rounding_cancels_where_rounding_to_the_nearest_does_not():
    g = np.full(4096, 0.3)
    packed = np.empty(4096, dtype=np.int64)
    pack(g, g, (1.0, 1.0), NOBODY, 0, packed)
    assert abs((int(packed.sum()) >> 32) - g.sum()) <= 2
    pack(g, g, (1.0, 1.0), NOBODY, -1, packed)
    assert int(packed.sum()) >> 32 == 0


# --- histograms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 300, 5000])
@pytest.mark.parametrize("first", [0, 2])
def test_accumulate_is_the_naive_sum(size, first):
    random = np.random.default_rng(size)
    codes = random.integers(0, 256, (20_000, 5), dtype=np.uint8)
    packed = random.integers(-(2**40), 2**40, 20_000)
    rows = np.sort(random.choice(20_000, size, replace=False)).astype(np.int32)
    histogram = np.full((3, 256), 7, dtype=np.int64)
    accumulate(codes, packed, rows, first, histogram)
    expected = np.zeros_like(histogram)
    for k in range(3):
        np.add.at(expected[k], codes[rows, first + k], packed[rows])
    assert np.array_equal(histogram, expected)
    subtract(expected, histogram)
    assert not expected.any()


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_rows_are_divided_in_order(blocks):
    random = np.random.default_rng(blocks)
    column = random.integers(0, 256, 500, dtype=np.uint8)
    marks = random.integers(0, 2**63, 4).astype(np.uint64)
    goes_left = np.array([bool(marks[code // 64] >> np.uint64(code % 64) & np.uint64(1)) for code in column])
    rows = np.sort(random.choice(500, 200, replace=False)).astype(np.int32)
    expected = np.concatenate([rows[goes_left[rows]], rows[~goes_left[rows]]])
    spare = np.empty_like(rows)
    bounds = np.linspace(0, 200, blocks + 1).astype(np.int64)
    sizes = [part_rows(column, rows, spare, bounds[k], bounds[k + 1], marks) for k in range(blocks)]
    middle = join_rows(rows, spare, bounds[:-1], *np.array(sizes).T.copy())
    assert middle == goes_left[expected].sum()
    assert np.array_equal(rows, expected)


def test_some_columns_side_by_side():
    codes = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(take_columns(codes, np.array([3, 1], dtype=np.int32)), codes[:, [3, 1]])


# --- trees ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_tree_is_the_naive_one(seed):
    random = np.random.default_rng(seed)
    n, d = int(random.integers(2, 70)), int(random.integers(1, 5))
    X = random.normal(size=(n, d)).round(int(random.integers(0, 3)))
    X[random.random(X.shape) < 0.15 * (seed % 3)] = np.nan
    g, h = random.normal(size=n), random.random(n) + 0.1 if seed % 2 else np.ones(n)
    l2, leaves = (0.0, 0.7)[seed % 2], int(random.integers(2, 12))
    least = 1 if seed % 2 else int(random.integers(1, 4))  # the number of rows is exact for equal curvatures
    tree = Bench(X, leaves).grow(g, h, l2=l2, leaf=least * (1 - 1e-9))
    expected = naive_boost.grow(X, g, h, leaves, l2=l2, least=least)
    assert leaves_of(tree) == {tuple(np.sort(rows).tolist()) for rows in expected}


@pytest.mark.parametrize("seed", range(6))
def test_categorical_splits_are_the_naive_ones(seed):
    random = np.random.default_rng(seed)
    X = np.column_stack([random.integers(0, 7, 80), random.normal(size=80), random.integers(0, 3, 80)]).astype(float)
    X[random.random(X.shape) < 0.1] = np.nan
    g, h = random.normal(size=80) + np.nan_to_num(X[:, 0]) % 2, random.random(80) + 0.5
    tree = Bench(X, 6, categories=[7, 0, 3]).grow(g, h, l2=0.5, leaf=0.0, smoothing=2.0)
    kinds = np.array([True, False, True])
    expected = naive_boost.grow(X, g, h, 6, l2=0.5, least=1, categorical=kinds, smoothing=2.0)
    assert leaves_of(tree) == {tuple(np.sort(rows).tolist()) for rows in expected}


def test_depth_and_gain_limit_the_tree():
    random = np.random.default_rng(0)
    X, g, h = random.normal(size=(200, 3)), random.normal(size=200), np.ones(200)
    assert len(Bench(X, 64).grow(g, h, depth=2).left) == 7
    assert len(Bench(X, 64).grow(g, h, gain=1e30).left) == 1
    assert len(Bench(X, 1).grow(g, h).left) == 1


def test_codes_lead_to_the_leaf_of_the_training_rows():
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 4))
    X[random.random(X.shape) < 0.2] = np.nan
    bench = Bench(X, 20)
    tree = bench.grow(random.normal(size=300), np.ones(300))
    value = np.arange(len(tree.left), dtype=float)
    found = np.zeros(300)
    add_values(tree.left, tree.feature, tree.marks, value, bench.table.by_row, found)
    expected = np.zeros(300)
    for leaf in np.flatnonzero(tree.left < 0):
        expected[tree.rows[tree.start[leaf] : tree.stop[leaf]]] = leaf
    assert np.array_equal(found, expected)


def arrays_of(tree):
    return [tree.feature, tree.bin, tree.left, tree.marks, tree.gain, tree.start, tree.stop]


def test_threads_do_not_change_a_bit(monkeypatch):
    random = np.random.default_rng(2)
    X = random.normal(size=(30_000, 20))
    g, h = np.sin(3 * X[:, 0]) * X[:, 1] + random.normal(size=30_000), random.random(30_000)
    alone = Bench(X, 31, threads=1).grow(g, h, leaf=5.0)
    for threads in (2, 3):
        other = Bench(X, 31, threads=threads).grow(g, h, leaf=5.0)
        assert all(np.array_equal(a, b) for a, b in zip(arrays_of(alone), arrays_of(other), strict=True))
        assert np.array_equal(alone.rows, other.rows)
    # Small pieces, so that several threads split many nodes ahead of time.
    monkeypatch.setattr(hist_run, "TOGETHER", 1 << 12)
    monkeypatch.setattr(hist_run, "LONGEST", 1 << 14)
    monkeypatch.setattr(hist_run, "TURN", 1)
    other = Bench(X, 31, threads=3).grow(g, h, leaf=5.0)
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(alone), arrays_of(other), strict=True))


def test_scarce_memory_does_not_change_a_bit(monkeypatch):
    random = np.random.default_rng(3)
    X, g, h = random.normal(size=(2000, 5)), random.normal(size=2000), random.random(2000)
    plenty = Bench(X, 40).grow(g, h)
    monkeypatch.setattr(hist_grow, "POOL", 1)
    scarce = Bench(X, 40).grow(g, h)
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(plenty), arrays_of(scarce), strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_growth_can_be_stopped(threads):
    random = np.random.default_rng(4)
    asked = []

    def stop():
        asked.append(True)
        return len(asked) > 2

    bench = Bench(random.normal(size=(3000, 5)), 200, threads=threads, stop=stop)
    assert bench.grow(random.normal(size=3000), np.ones(3000)) is None


def test_an_error_in_a_thread_does_not_hang(monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    random = np.random.default_rng(5)
    bench = Bench(random.normal(size=(3000, 5)), 31, threads=2)
    monkeypatch.setattr(hist_run, "expand", broken)
    with pytest.raises(RuntimeError, match="broken"):
        bench.grow(random.normal(size=3000), np.ones(3000))


def test_monotone_trees_keep_their_order():
    random = np.random.default_rng(6)
    X = random.normal(size=(2000, 2))
    g = -(X[:, 0] ** 2) + random.normal(size=2000)
    bench = Bench(X, 31, monotone=[1, 0])
    tree = bench.grow(g, np.ones(2000), l2=0.1)
    value = np.zeros(len(tree.left))
    for leaf in np.flatnonzero(tree.left < 0):
        rows = tree.rows[tree.start[leaf] : tree.stop[leaf]]
        value[leaf] = np.clip(-g[rows].sum() / (len(rows) + 0.1), tree.low[leaf], tree.high[leaf])
    grid = np.column_stack([np.linspace(-4, 4, 200), np.zeros(200)])
    found = np.zeros(200)
    add_values(tree.left, tree.feature, tree.marks, value, bench.binning.codes(grid).by_row, found)
    assert (np.diff(found) >= 0).all()
    assert found[-1] > found[0]
