"""Trees on histograms, grown by a team of threads, against obvious references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empirisk.trees.binned import together
from empirisk.trees.binned.bins import Binning
from empirisk.trees.binned.splits import ROOM, RULES, unit
from empirisk.trees.binned.together import TeamGrower
from empirisk.trees.linear_leaves import GrownTree
from empirisk.trees.rounds import add_trees
from empirisk.trees.target_statistics import Packing
from tests.trees import naive_boost

pytestmark = pytest.mark.row("T8")

NOBODY = np.zeros(0, dtype=np.int32)
#: Every column may be split with every other.
FREE = np.full(100, -1, dtype=np.int64)


class Bench:
    """A table in bins with a grower on it."""

    def __init__(self, X, max_leaf_nodes, threads=1, categories=None, monotone=None, times=NOBODY, stop=lambda: False):
        counts = np.zeros(X.shape[1], dtype=np.int32) if categories is None else np.array(categories, dtype=np.int32)
        self.X, self.leaves = X, max_leaf_nodes
        self.binning = Binning.of(X, np.ones(len(X)), counts)
        signs = np.zeros(X.shape[1], dtype=np.int8) if monotone is None else np.array(monotone, dtype=np.int8)
        codes, free = self.binning.codes(X), FREE[: X.shape[1]]
        self.grower = TeamGrower(self.binning, codes, signs, free, X.shape[1], max_leaf_nodes, 1, stop)
        if threads > 1:  # also on small tables, for which one thread would be enough
            share, together.SHARE = together.SHARE, 1
            self.grower = TeamGrower(self.binning, codes, signs, free, X.shape[1], max_leaf_nodes, threads, stop)
            together.SHARE = share
        self.scores, self.times = np.zeros(len(X)), times
        self.count = int(times.sum()) if len(times) else len(X)

    def grow(self, g, h, rows=None, l2=0.0, leaf=1.0, gain=0.0, smoothing=0.0, depth=np.inf):
        rules = np.zeros(1, dtype=RULES)
        rules["gradient_unit"] = unit(float(np.abs(g).sum()), self.count)
        rules["curvature_unit"] = step = unit(float(h.sum()), self.count)
        rules["l2"], rules["true_l2"], rules["rate"], rules["smoothing"] = l2 / step, l2, 1.0, smoothing / step
        rules["least"], rules["least_gain"], rules["noise"] = leaf, gain, 1e-12
        rules["max_depth"], rules["max_leaf_nodes"] = depth, self.leaves
        data = np.stack([g, h, self.scores, g, g, *([self.times] if len(self.times) else [])]).astype(float)
        tree = self.grower.grow(data, rows, np.arange(self.X.shape[1], dtype=np.int32), rules, values=True)
        self.scores = data[2]
        return tree

    def rows(self, tree):
        """The sets of rows in the leaves."""
        return {tuple(np.sort(self.grower.rows(leaf)).tolist()) for leaf in tree[tree["left"] < 0]}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_no_sum_in_units_leaves_its_half(values):
    step = unit(float(np.abs(values).sum()), len(values))
    assert np.abs(np.rint(np.array(values) / step)).sum() < ROOM
    assert step == 2.0 ** np.log2(step)


@pytest.mark.parametrize("seed", range(12))
def test_the_tree_is_the_naive_one(seed):
    random = np.random.default_rng(seed)
    n, d = int(random.integers(2, 70)), int(random.integers(1, 5))
    X = random.normal(size=(n, d)).round(int(random.integers(0, 3)))
    X[random.random(X.shape) < 0.15 * (seed % 3)] = np.nan
    g, h = random.normal(size=n), random.random(n) + 0.1 if seed % 2 else np.ones(n)
    l2, leaves = (0.0, 0.7)[seed % 2], int(random.integers(2, 12))
    least = 1 if seed % 2 else int(random.integers(1, 4))  # the number of rows is exact for equal curvatures
    bench = Bench(X, leaves)
    tree = bench.grow(g, h, l2=l2, leaf=least * (1 - 1e-9))
    expected = naive_boost.grow(X, g, h, leaves, l2=l2, least=least)
    assert bench.rows(tree) == {tuple(np.sort(rows).tolist()) for rows in expected}
    np.testing.assert_allclose(bench.scores, naive_boost.predict(expected, g, h, l2), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_categorical_splits_are_the_naive_ones(seed):
    random = np.random.default_rng(seed)
    X = np.column_stack([random.integers(0, 7, 80), random.normal(size=80), random.integers(0, 3, 80)]).astype(float)
    X[random.random(X.shape) < 0.1] = np.nan
    g, h = random.normal(size=80) + np.nan_to_num(X[:, 0]) % 2, random.random(80) + 0.5
    bench = Bench(X, 6, categories=[7, 0, 3])
    tree = bench.grow(g, h, l2=0.5, leaf=0.0, smoothing=2.0)
    kinds = np.array([True, False, True])
    expected = naive_boost.grow(X, g, h, 6, l2=0.5, least=1, categorical=kinds, smoothing=2.0)
    assert bench.rows(tree) == {tuple(np.sort(rows).tolist()) for rows in expected}


def test_depth_and_gain_limit_the_tree():
    random = np.random.default_rng(0)
    X, g, h = random.normal(size=(200, 3)), random.normal(size=200), np.ones(200)
    assert len(Bench(X, 64).grow(g, h, depth=2)) == 7
    assert len(Bench(X, 64).grow(g, h, gain=1e30)) == 1
    assert len(Bench(X, 1).grow(g, h)) == 1


@pytest.mark.parametrize("some", [False, True])
def test_the_finished_tree_leads_rows_to_their_leaves(some):
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 4))
    X[:, 3] = random.integers(0, 80, 300)
    X[random.random(X.shape) < 0.2] = np.nan
    rows = np.flatnonzero(random.random(300) < 0.5).astype(np.int32) if some else None
    bench = Bench(X, 20, categories=[0, 0, 0, 80])
    tree = bench.grow(random.normal(size=300), np.ones(300), rows)
    found, expected = np.zeros((1, 300)), np.zeros(300)
    add_trees([GrownTree(tree)], Packing(bench.binning), X, found)
    for leaf in tree[tree["left"] < 0]:
        expected[bench.grower.rows(leaf)] = leaf["value"]
    seen = slice(None) if rows is None else rows
    assert np.array_equal(found[0, seen], expected[seen])
    if rows is None:
        assert np.array_equal(bench.scores, expected)


def test_rows_that_stand_for_several_grow_the_tree_of_them_all():
    random = np.random.default_rng(7)
    X, g, times = random.normal(size=(120, 3)), random.normal(size=120), random.integers(1, 4, 120).astype(np.int32)
    once, often = Bench(X, 12, times=times), Bench(np.repeat(X, times, axis=0), 12)
    one = once.grow(g * times, np.ones(120) * times, leaf=6 * (1 - 1e-9))
    many = often.grow(np.repeat(g, times), np.ones(times.sum()), leaf=6 * (1 - 1e-9))
    inside = one["left"] >= 0
    assert np.array_equal(one["left"], many["left"])
    assert np.array_equal(one["marks"][inside], many["marks"][inside])


def same(one, other):
    """Whether two trees are the same to the last bit."""
    if not np.array_equal(one["left"], other["left"]):
        return False
    inside, leaf = one["left"] >= 0, one["left"] < 0
    split, end = ("feature", "marks", "sum", "left_sum", "gain"), ("start", "stop", "sum", "count", "value")
    return all(
        np.array_equal(one[name][nodes], other[name][nodes])
        for nodes, names in ((inside, split), (leaf, end))
        for name in names
    )


@pytest.mark.parametrize("threads", [2, 3, 5, 16])
def test_threads_do_not_change_a_bit(threads):
    random = np.random.default_rng(2)
    X = random.normal(size=(30_000, 12))
    g, h = np.sin(3 * X[:, 0]) * X[:, 1] + random.normal(size=30_000), random.random(30_000)
    alone, team = Bench(X, 31), Bench(X, 31, threads=threads)
    assert team.grower.threads == threads
    for _ in range(3):  # the same memory serves tree after tree
        one, other = alone.grow(g, h, leaf=5.0), team.grow(g, h, leaf=5.0)
        assert same(one, other)
        assert np.array_equal(alone.scores, team.scores)


@pytest.mark.parametrize("threads", [1, 3])
def test_scarce_memory_does_not_change_a_bit(monkeypatch, threads):
    random = np.random.default_rng(3)
    X, g, h = random.normal(size=(2000, 5)), random.normal(size=2000), random.random(2000)
    plenty = Bench(X, 40).grow(g, h)
    monkeypatch.setattr(together, "POOL", 1)
    scarce = Bench(X, 40, threads=threads).grow(g, h)
    assert same(plenty, scarce)


@pytest.mark.parametrize("seed", range(4))
def test_threads_change_no_bit_on_small_tables_of_all_kinds(seed):
    random = np.random.default_rng(seed)
    X = np.column_stack([random.normal(size=(400, 3)).round(1), random.integers(0, 9, 400)])
    X[random.random(X.shape) < 0.1] = np.nan
    times = random.integers(1, 4, 400).astype(np.int32) if seed % 2 else NOBODY
    g, h, rows = random.normal(size=400), random.random(400) + 0.1, None
    if seed > 1:
        rows = np.flatnonzero(random.random(400) < 0.7).astype(np.int32)
    grown = []
    for threads in (1, 3):
        bench = Bench(X, 15, threads, categories=[0, 0, 0, 9], monotone=[1, 0, 0, 0], times=times)
        grown.append((bench.grow(g, h, rows, l2=0.3, leaf=5.0, smoothing=2.0), bench.scores))
    (one, scores), (other, of_the_other) = grown
    assert same(one, other)
    assert np.array_equal(scores, of_the_other)


def test_growth_can_be_stopped():
    random = np.random.default_rng(4)
    X = random.normal(size=(3000, 5))
    bench = Bench(X, 200, stop=lambda: True)
    assert bench.grow(random.normal(size=3000), np.ones(3000)) is not None  # too short to be asked
    bench.grower._run = lambda *_: False
    assert bench.grow(random.normal(size=3000), np.ones(3000)) is None


def test_monotone_trees_keep_their_order():
    random = np.random.default_rng(6)
    X = random.normal(size=(2000, 2))
    g = -(X[:, 0] ** 2) + random.normal(size=2000)
    bench = Bench(X, 31, monotone=[1, 0])
    tree = bench.grow(g, np.ones(2000), l2=0.1)
    grid, found = np.column_stack([np.linspace(-4, 4, 200), np.zeros(200)]), np.zeros((1, 200))
    add_trees([GrownTree(tree)], Packing(bench.binning), grid, found)
    assert (np.diff(found[0]) >= 0).all()
    assert found[0, -1] > found[0, 0]
