"""The walk from rows to leaves: many rows side by side, so that they share what a tree takes to fetch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.threads import parallel_map

Array = NDArray[np.float64]

CROWD = 1024  # rows that walk down a tree together
TASK = 1 << 13  # rows of one call
RIGHT = 1 << 30  # added to the column of a split that sends missing values right
COLUMN = RIGHT - 1  # mask of the column
#: What a walk gets that does not use them.
NO_VALUES, NO_LEAVES, NO_COLUMNS = np.zeros((0, 1)), np.zeros((0, 0), dtype=np.int32), np.zeros(0, dtype=np.int64)

#: What a step needs to know of a node, in one place of 16 bytes.
RECORD = np.dtype([("threshold", np.float64), ("feature", np.int32), ("left", np.int32)])


class Flat(NamedTuple):
    """Joined trees for compiled code; node k is a leaf where ``left == k``.

    A leaf has column 0 and an infinite threshold, so that a row that has arrived stays. ``value`` is the prediction of
    a leaf, or its row in ``table``. ``category_start`` is empty where no split is categorical.
    """

    roots: NDArray[np.int32]
    node: NDArray[np.void]
    value: Array
    category_start: NDArray[np.int32]
    category_bits: NDArray[np.uint64]
    category_counts: NDArray[np.int32]
    table: Array


def flat_nodes(feature: NDArray, threshold: Array, left: NDArray, missing_left: NDArray) -> NDArray[np.void]:
    """The records of nodes, of which leaves have ``feature`` -1."""
    leaf = feature < 0
    node = np.empty(len(feature), dtype=RECORD)
    node["threshold"] = np.where(leaf, np.inf, threshold)
    # Leaves send missing values "left": to themselves.
    node["feature"] = np.where(leaf, 0, feature + np.where(missing_left, 0, RIGHT))
    node["left"] = np.where(leaf, np.arange(len(feature)), left)
    return node


def walk(
    flat: Flat,
    X: Array,
    out: Array = NO_VALUES,
    leaves: NDArray[np.int32] = NO_LEAVES,
    first: int = 0,
    last: int | None = None,
) -> None:
    """Add the values of the trees ``first : last`` to ``out``, and write the leaves, where asked."""
    end = len(flat.roots) if last is None else last

    def run(start: int) -> None:
        rows = slice(start, start + TASK)
        walk_rows(flat, X[rows], out[None, rows], leaves[rows], first, end, NO_COLUMNS, NO_VALUES, _room())

    parallel_map(run, range(0, len(X), TASK))


def walk_swapped(flat: Flat, X: Array, columns: NDArray[np.int64], values: Array, out: Array) -> None:
    """Add the values of the trees to line k of ``out`` as if the column ``columns[k]`` held line k of ``values``."""
    walk_rows(flat, X, out, NO_LEAVES, 0, len(flat.roots), columns, values, _room())


def _room() -> NDArray[np.int32]:
    """Two numbers for each row of a crowd."""
    return np.empty((2, CROWD), dtype=np.int32)


@plain_loop
def walk_rows(flat, X, lines, leaves, first, last, columns, values, room):
    """`walk` and `walk_swapped` on one thread."""
    node, sets, outputs = flat.node, flat.category_start.shape[0] > 0, lines.shape[2]
    place, walkers, rows = room[0], room[1], X.shape[0]
    for line in range(lines.shape[0]):
        out, swapped = lines[line], columns[line] if line < len(columns) else np.int64(-1)
        for start in range(0, rows, CROWD):
            size = CROWD if rows - start > CROWD else rows - start
            for tree in range(first, last):
                for r in range(size):
                    place[r] = flat.roots[tree]
                    walkers[r] = r
                count = size
                while count > 0:
                    walking, count = count, 0
                    for k in range(walking):
                        r = np.uint64(walkers[k])
                        before = place[r]
                        here = np.uint64(before)
                        at = node[here]
                        feature = at.feature
                        column, right = feature & COLUMN, feature >= RIGHT
                        x = X[np.uint64(start) + r, np.uint64(column)]
                        if column == swapped:
                            x = values[line, start + np.int64(r)]
                        step = (x > at.threshold) | ((x != x) & right)
                        if sets and flat.category_start[here] >= 0:
                            step = right  # missing or unknown categories go as the split says
                            if x >= 0 and x < flat.category_counts[column]:
                                code = np.int64(x)
                                word = flat.category_bits[flat.category_start[here] + (code >> 6)]
                                step = (word >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(0)
                        goal = at.left + np.int32(step)
                        walkers[count] = r  # those that have not arrived move to the front
                        count += goal != before
                        place[r] = goal
                for r in range(size):
                    leaf, row = place[r], start + r
                    if len(leaves) > 0:
                        leaves[row, tree] = leaf
                    if len(out) > 0 and len(flat.table) == 0:
                        out[row, tree % outputs] += flat.value[leaf]
                    elif len(out) > 0:
                        shares = np.int64(flat.value[leaf])
                        for output in range(outputs):
                            out[row, output] += flat.table[shares, output]
