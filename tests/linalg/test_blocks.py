"""Blocks of rows: they cover the rows once, depend on the shape alone, and grow with the data within limits."""

import itertools

import numpy as np
import pytest

from empirisk.linalg.blocks import (
    BLOCK_BYTES,
    GROUPS,
    LARGEST_BLOCK,
    blocks,
    groups,
    over_rows,
    stable_order,
    sum_over_rows,
)
from empirisk.settings import config


@pytest.mark.parametrize(("rows", "row_bytes"), [(0, 8), (1, 8), (1000, 480), (400_000, 480), (4_000_000, 480)])
def test_blocks_cover_the_rows(rows, row_bytes):
    found = blocks(rows, row_bytes)
    assert sum(block.stop - block.start for block in found) == rows
    assert all(a.stop == b.start for a, b in itertools.pairwise(found))
    assert all((block.stop - block.start) * row_bytes <= LARGEST_BLOCK for block in found)
    if rows * row_bytes > 2 * BLOCK_BYTES:
        assert (found[0].stop - found[0].start) * row_bytes >= BLOCK_BYTES - row_bytes
        assert 2 < len(groups(rows, row_bytes)) <= GROUPS
    with config(threads=5):
        assert blocks(rows, row_bytes) == found


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_and_outputs(threads):
    values = np.random.default_rng(0).normal(size=300_000)
    out = np.empty_like(values)
    with config(threads=threads):
        total = sum_over_rows(lambda group: sum(values[rows].sum() for rows in group), len(values), 64)
        over_rows(lambda rows: np.multiply(values[rows], 2, out=out[rows]), len(values), 64)
    assert total == pytest.approx(values.sum(), rel=1e-12)
    np.testing.assert_array_equal(out, 2 * values)


def test_the_order_in_threads_is_numpys():
    random = np.random.default_rng(0)
    normal = random.normal(size=100_000)
    for values in (normal, random.integers(0, 5, 100_000) * 1.0, np.zeros(100_000), np.where(normal < 1, 0.0, normal)):
        np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))
