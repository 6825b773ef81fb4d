"""Growth of a tree on binned columns: what boosting (a team of threads on one tree) and forests (a tree each) share.

The rows of a node lie side by side, each with its packed number (see `empirisk.trees.binned.cuts`). A split moves them
from one of two buffers to the other, in order, so that a node at depth k lives in buffer k mod 2.
"""

import numpy as np

from empirisk.trees.binned.cuts import (
    CATEGORICAL,
    COUNT,
    DEPTH,
    FEATURE,
    GAIN,
    HIGHEST,
    INTS,
    LEFT,
    LEFT_SUM,
    LOWEST,
    MARKS,
    MAX_LEAVES,
    MONOTONE,
    SLOT,
    START,
    STOP,
    SUM,
    score_of,
)
from empirisk.trees.compiled import inner

#: Places of the counters of a growing tree: its nodes, those that wait for their split, those searched for one.
NODES, OPEN, LOOKED = range(3)
GROWING = 3


@inner
def count_left(column, nodes, node, rows, start, stop):
    """How many of the rows between two places go left."""
    count, rows, marks = np.int64(0), rows[nodes[node, DEPTH] & 1], nodes[node, MARKS:]
    for k in range(start, stop):
        code = column[np.uint64(rows[k])]
        count += (marks[code >> 6] >> (code & 63)) & 1
    return count


@inner
def move_rows(column, nodes, node, rows, packed, start, stop, left, right):
    """Move the rows between two places, in order: those that go left to ``left`` on, the others to ``right`` on.

    Returns where the next one that goes left would be moved to.
    """
    here, marks = nodes[node, DEPTH] & 1, nodes[node, MARKS:]
    rows_from, rows_to, packed_from, packed_to = rows[here], rows[1 - here], packed[here], packed[1 - here]
    for k in range(start, stop):
        row = rows_from[k]
        code = column[np.uint64(row)]
        step = (marks[code >> 6] >> (code & 63)) & 1
        place = left if step else right  # chosen without a branch that the processor would mispredict
        rows_to[place] = row
        packed_to[place] = packed_from[k]
        left += step
        right += 1 - step
    return left


@inner
def open_root(nodes, reals, counters, count, total):
    """The node of all rows."""
    counters[NODES] = 1
    nodes[0, DEPTH] = nodes[0, START] = 0
    nodes[0, FEATURE] = nodes[0, LEFT] = nodes[0, SLOT] = -1
    nodes[0, STOP] = nodes[0, COUNT] = count
    nodes[0, SUM] = total
    reals[0, LOWEST] = -np.inf
    reals[0, HIGHEST] = np.inf


@inner
def open_children(nodes, reals, counters, node, middle, kinds, rules):
    """Give a split node its children; the rows of the right one begin at ``middle``. Returns the left one."""
    child, column = counters[NODES], nodes[node, FEATURE]
    counters[NODES] += 2
    nodes[node, LEFT] = child
    sign = 0 if kinds[column, CATEGORICAL] != 0 else kinds[column, MONOTONE]
    for new in range(child, child + 2):
        for place in range(INTS):
            nodes[new, place] = nodes[node, place]
        reals[new, LOWEST] = reals[node, LOWEST]
        reals[new, HIGHEST] = reals[node, HIGHEST]
        nodes[new, FEATURE] = nodes[new, LEFT] = nodes[new, SLOT] = -1
        nodes[new, DEPTH] += 1
    nodes[child, STOP] = nodes[child + 1, START] = middle
    nodes[child, SUM] = nodes[node, LEFT_SUM]
    nodes[child + 1, SUM] -= nodes[node, LEFT_SUM]
    if sign != 0:
        # Under a constraint the children keep to their own sides of the cut, and so do all nodes below them.
        _, below = score_of(nodes[child, SUM], rules, reals[node, LOWEST], reals[node, HIGHEST])
        _, above = score_of(nodes[child + 1, SUM], rules, reals[node, LOWEST], reals[node, HIGHEST])
        upper = child if sign < 0 else child + 1
        reals[upper, LOWEST] = reals[2 * child + 1 - upper, HIGHEST] = 0.5 * (below + above)
    return child


@inner
def take_next(nodes, reals, counters, frontier, rules):
    """Take the node to split next, or -1: the last, or with a limit on the leaves the one with the largest gain."""
    size = counters[OPEN]
    # Two nodes a split: with a limit of L leaves the tree is complete at 2 L - 1 nodes.
    if size == 0 or (rules[MAX_LEAVES] > 0.0 and counters[NODES] >= 2 * rules[MAX_LEAVES] - 1):
        return np.int64(-1)
    chosen = size - 1
    if rules[MAX_LEAVES] > 0.0:
        for k in range(size):
            gain, best = reals[frontier[k], GAIN], reals[frontier[chosen], GAIN]
            # Of equal gains the node further left goes first.
            if gain > best or (gain == best and nodes[frontier[k], START] < nodes[frontier[chosen], START]):
                chosen = k
    node = np.int64(frontier[chosen])
    counters[OPEN] = size - 1
    frontier[chosen] = frontier[size - 1]
    return node
