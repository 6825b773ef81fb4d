"""The best split that one column offers a node of more than two classes.

A row carries its class in the upper 32 bits of its packed number, and how often it was drawn in the lower 32. A set
with class sums s and W = sum s has the score  sum s^2 / W  (Gini) or  sum s log2 (s / W)  (entropy). The rows are put
in the order of their bins: moving one across changes the sum of one class, so a step costs the same for any number of
classes.
"""

import numpy as np

from empirisk.trees.binned.cuts import (
    CATEGORICAL,
    ENTROPY,
    FEATURE,
    HALF,
    LEAST,
    LOW,
    MARKS,
    MISSING,
    START,
    STOP,
    WIDTH,
    WORDS,
    mark_up_to,
)
from empirisk.trees.compiled import draw, inner

NODE, ONE_SIDE, OTHER_SIDE, GONE = range(4)  # rows of the class sums: node, left, right, rows with a missing value


@inner
def term(amount, entropy):
    """What one class adds to the score, but for the division by W."""
    if entropy > 0.0:
        return amount * np.log2(amount) if amount > 0.0 else 0.0
    return amount * amount


@inner
def class_score(packed, start, stop, rules, amounts):
    """Sum the classes of a node; its score, its weight, and whether it holds one class alone."""
    sums, total, weight, entropy = amounts[NODE], 0.0, 0.0, rules[ENTROPY]
    for label in range(len(sums)):
        sums[label] = 0.0
    for k in range(start, stop):
        sums[packed[k] >> HALF] += packed[k] & LOW
    for amount in sums:
        total += term(amount, entropy)
        weight += amount
    score = total - term(weight, entropy) if entropy > 0.0 else total / weight
    return score, weight, sums[packed[start] >> HALF] == weight


@inner
def order_rows(codes, order, start, stop):
    """Write to ``order`` the places from ``start`` to ``stop`` by rising code, equal ones as they come."""
    starts = np.zeros(WIDTH + 1, dtype=np.int64)
    for k in range(start, stop):
        starts[codes[k] + 1] += 1
    starts[0] = start
    for code in range(WIDTH):
        starts[code + 1] += starts[code]
    for k in range(start, stop):
        order[starts[codes[k]]] = k
        starts[codes[k]] += 1


@inner
def rank_categories(codes, packed, start, stop, chosen, ranks):
    """Replace category bins by their rank in the share of the class ``chosen``; missing values are one more category.

    ``ranks`` receives the rank of each bin, -1 where there is no row. The last number is left free: it stands for
    missing values of numeric columns.
    """
    amount, weight, bins = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH, dtype=np.int64)
    for k in range(start, stop):
        weight[codes[k]] += packed[k] & LOW
        if packed[k] >> HALF == chosen:
            amount[codes[k]] += packed[k] & LOW
    count = 0
    for b in range(WIDTH):
        ranks[b] = -1
        if weight[b] > 0.0:
            place = count
            while place > 0 and amount[bins[place - 1]] * weight[b] > amount[b] * weight[bins[place - 1]]:
                bins[place] = bins[place - 1]
                place -= 1
            bins[place] = b
            count += 1
    for rank in range(count):
        ranks[bins[rank]] = min(rank, MISSING - 1)
    for k in range(start, stop):
        codes[k] = ranks[codes[k]]


@inner
def try_classes(table, number, rows, packed, rules, at, seed, several, bar):
    """As `empirisk.trees.binned.cuts.try_column`, for classes; NaN where the column is constant in the node.

    Categories are ordered by the share of a class drawn at random. ``order`` holds places of rows, then their bins.
    """
    (columns, kinds), (nodes, node), (order, amounts, ranks) = table, at, several
    start, stop, least, entropy = nodes[node, START], nodes[node, STOP], rules[LEAST], rules[ENTROPY]
    column, places, codes, differ = columns[number], order[0], order[1], False
    for k in range(start, stop):
        codes[k] = column[np.uint64(rows[k])]
        differ |= codes[k] != codes[start]
    if not differ:
        return np.nan
    categorical = kinds[number, CATEGORICAL] != 0
    if categorical:
        rank_categories(codes, packed, start, stop, draw(seed, amounts.shape[1]), ranks)
    order_rows(codes, places, start, stop)
    left, right, gone, present = amounts[ONE_SIDE], amounts[OTHER_SIDE], amounts[GONE], stop
    for label in range(len(gone)):
        gone[label] = 0.0
    while codes[places[present - 1]] == MISSING:
        present -= 1
        row = places[present]
        gone[packed[row] >> HALF] += packed[row] & LOW
    for way in range(1 if present == stop else 2):  # missing values on the right, then on the left
        left_weight, right_weight, left_part, right_part = 0.0, 0.0, 0.0, 0.0
        for label in range(len(gone)):
            left[label] = gone[label] * way
            right[label] = amounts[NODE, label] - left[label]
            left_weight += left[label]
            right_weight += right[label]
            left_part += term(left[label], entropy)
            right_part += term(right[label], entropy)
        for k in range(start, present):
            row = places[k]
            label, amount = packed[row] >> HALF, float(packed[row] & LOW)
            left_part += term(left[label] + amount, entropy) - term(left[label], entropy)
            right_part += term(right[label] - amount, entropy) - term(right[label], entropy)
            left[label] += amount
            right[label] -= amount
            left_weight += amount
            right_weight -= amount
            after = codes[places[k + 1]] if k + 1 < stop else np.int32(MISSING)
            if (k + 1 < stop and after == codes[row]) or left_weight < least or right_weight < least:
                continue
            if entropy > 0.0:
                score = left_part - term(left_weight, entropy) + right_part - term(right_weight, entropy)
            else:
                score = left_part / left_weight + right_part / right_weight
            if score > bar:
                bar = score
                last, heavier = np.int64(codes[row]), left_weight > right_weight
                nodes[node, FEATURE] = number
                if categorical:
                    for word in range(WORDS):
                        nodes[node, MARKS + word] = 0
                    for b in range(WIDTH):  # bins that hold nothing here follow the heavier side
                        if (ranks[b] >= 0 and ranks[b] <= last) or (ranks[b] < 0 and heavier):
                            nodes[node, MARKS + (b >> 6)] |= np.int64(1) << (b & 63)
                else:
                    if after != MISSING:
                        last = (last + np.int64(after) - 1) // 2
                    mark_up_to(nodes, node, last, way == 1 or (present == stop and heavier))
    return bar
