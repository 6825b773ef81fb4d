"""Growth of a tree of a forest by one thread: each node looks at a few columns drawn at random."""

import numpy as np

from empirisk.trees.binned.classes import class_score, try_classes
from empirisk.trees.binned.cuts import (
    COLUMNS,
    DEPTH,
    FEATURE,
    GAIN,
    HALF,
    LEAST,
    LEAST_GAIN,
    LOW,
    MAX_DEPTH,
    START,
    STOP,
    SUM,
    WIDTH,
    list_bins,
    score_of,
    try_column,
)
from empirisk.trees.binned.grow import LOOKED, NODES, OPEN, count_left, move_rows, open_children, open_root, take_next
from empirisk.trees.compiled import draw, inner, loop

SMALL = 16  # rows up to which sorting beats counting


@inner
def sums_by_bin(column, rows, packed, start, stop, room):
    """List the non-empty bins of the rows between two places, in rising order, and their sums; returns how many.

    ``room`` holds the bins, the sums, and a histogram that is all zero between calls.
    """
    bins, sums, histogram, count = room[0], room[1], room[2], 0
    if stop - start > SMALL:
        for k in range(start, stop):
            histogram[column[np.uint64(rows[k])]] += packed[k]
        count = list_bins(histogram, room)
        for b in range(WIDTH):
            histogram[b] = 0
        return count
    for k in range(start, stop):
        code, place = np.int64(column[np.uint64(rows[k])]), count
        while place > 0 and bins[place - 1] > code:
            place -= 1
        if place > 0 and bins[place - 1] == code:
            sums[place - 1] += packed[k]
            continue
        for j in range(count, place, -1):
            bins[j] = bins[j - 1]
            sums[j] = sums[j - 1]
        bins[place] = code
        sums[place] = packed[k]
        count += 1
    return count


@inner
def look(table, rules, rows, packed, tree, node, room, random, several):
    """Find a split of a node among columns drawn at random; columns that are constant here do not count."""
    (columns, kinds), (nodes, reals), (chosen, seed) = table, tree, random
    start, stop, least = nodes[node, START], nodes[node, STOP], np.int64(rules[LEAST])
    # Pure nodes stay whole: one class, or numbers equal but for the rounding of both.
    if several is not None:
        own, weight, pure = class_score(packed, start, stop, rules, several[1])
    else:
        own, _ = score_of(nodes[node, SUM], rules, -np.inf, np.inf)
        weight, pure, first, times = nodes[node, SUM] & LOW, True, float(packed[start] >> HALF), packed[start] & LOW
        for k in range(start + 1, stop):
            own_times = packed[k] & LOW
            pure &= 2.0 * abs((packed[k] >> HALF) * float(times) - first * own_times) < times + own_times
    if pure or nodes[node, DEPTH] >= rules[MAX_DEPTH] or weight < 2 * least:
        return
    best, looked, place = -np.inf, 0, 0
    while looked < rules[COLUMNS] and place < len(chosen):
        other = place + draw(seed, len(chosen) - place)
        column = chosen[other]
        chosen[other] = chosen[place]
        chosen[place] = column
        place += 1
        if several is not None:
            score = try_classes(table, column, rows, packed, rules, (nodes, node), seed, several, best)
            if score == score:
                looked += 1
                best = score
        else:
            count = sums_by_bin(columns[column], rows, packed, start, stop, room)
            if count > 1:
                looked += 1
                best = try_column(column, kinds, room, count, least, rules, tree, (node, node), best)
    reals[node, GAIN] = max(best - own, 0.0)
    if best - own < rules[LEAST_GAIN]:
        nodes[node, FEATURE] = -1


@loop
def grow_alone(table, rules, bag, tree, waiting, room, random, several, work):
    """Grow for about ``work`` steps; whether the tree is complete. The next call goes on where this one stood.

    ``table``: bins by column, kinds of columns. ``bag``: rows and their packed numbers. ``tree``: nodes and reals.
    ``waiting``: frontier and counters. ``random``: a list of the columns, the state of the random numbers. ``several``:
    order, class sums and ranks for more than two classes, else None.
    """
    (columns, kinds), (rows, packed), (nodes, reals), (frontier, counters) = table, bag, tree, waiting
    if counters[NODES] == 0:
        total = np.int64(0)
        for k in range(rows.shape[1]):
            total += packed[0, k]
        open_root(nodes, reals, counters, rows.shape[1], total)
    spent = np.int64(0)
    while True:
        while counters[LOOKED] < counters[NODES]:
            node = counters[LOOKED]
            counters[LOOKED] += 1
            here = nodes[node, DEPTH] & 1
            look(table, rules, rows[here], packed[here], tree, node, room, random, several)
            spent += nodes[node, STOP] - nodes[node, START] + WIDTH
            if nodes[node, FEATURE] >= 0:
                frontier[counters[OPEN]] = node
                counters[OPEN] += 1
        if spent > work:
            return False
        node = take_next(nodes, reals, counters, frontier, rules)
        if node < 0:
            return True
        start, stop, column = nodes[node, START], nodes[node, STOP], columns[nodes[node, FEATURE]]
        middle = start + count_left(column, nodes, node, rows, start, stop)
        move_rows(column, nodes, node, rows, packed, start, stop, start, middle)
        open_children(nodes, reals, counters, node, middle, kinds, rules)
