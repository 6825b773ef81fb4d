"""The best split that one column offers a node of more than two classes.

A row carries its class in the upper 32 bits of its packed number, and how often it was drawn in the lower 32. A set
with class sums s and W = sum s has the score  sum s^2 / W  (Gini) or  sum s log2 (s / W)  (entropy). The rows are put
in the order of their bins: moving one across changes the sum of one class, so a step costs the same for any number of
classes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import draw, plain
from empirisk.trees.binned.bins import MISSING, WIDTH
from empirisk.trees.binned.splits import HALF, LOW, WORDS, list_bins, mark_up_to, order_bins

Array = NDArray[np.float64]

NODE, ONE_SIDE, OTHER_SIDE, GONE = range(4)  # rows of the class sums: node, left, right, rows with a missing value


class Several(NamedTuple):
    """Room to work in: places of rows in the order of their bins, and the bins; class sums; ranks of categories."""

    places: NDArray[np.int64]
    amounts: Array
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, rows: int, classes: int) -> "Several":
        """Room for so many rows."""
        return cls(np.empty((2, rows), np.int64), np.zeros((4, classes)), np.empty((4, WIDTH), np.int64))


@plain
def term(amount, entropy):
    """What one class adds to the score, but for the division by W."""
    if entropy > 0.0:
        return amount * np.log2(amount) if amount > 0.0 else 0.0
    return amount * amount


@plain
def class_score(rules, several, packed, node):
    """Sum the classes of a node; its score, its weight, and whether it holds one class alone."""
    sums, total, weight, entropy = several.amounts[NODE], 0.0, np.int64(0), rules.entropy
    for label in range(len(sums)):
        sums[label] = 0.0
    for k in range(node.start, node.stop):
        sums[packed[k] >> HALF] += packed[k] & LOW
        weight += packed[k] & LOW
    for label in range(len(sums)):
        total += term(sums[label], entropy)
    score = total - term(float(weight), entropy) if entropy > 0.0 else total / weight
    return score, weight, sums[packed[node.start] >> HALF] == weight


@plain
def order_rows(codes, places, starts, start, stop):
    """Write to ``places`` the places from ``start`` to ``stop`` by rising code, equal ones as they come."""
    for code in range(WIDTH):
        starts[code] = 0
    for k in range(start, stop):
        starts[codes[k]] += 1
    begin = start
    for code in range(WIDTH):
        count = starts[code]
        starts[code] = begin
        begin += count
    for k in range(start, stop):
        places[starts[codes[k]]] = k
        starts[codes[k]] += 1


@plain
def rank_categories(column, codes, packed, start, stop, chosen, room):
    """Replace category bins by their rank in the share of the class ``chosen``; missing values are one more category.

    ``room`` receives the rank of each bin, -1 where there is no row. The last number is left free: it stands for
    missing values of numeric columns.
    """
    ranks, histogram, bins, sums = room[0], room[1], room[2], room[3]
    for b in range(WIDTH):
        ranks[b] = -1
        histogram[b] = 0
    for k in range(start, stop):
        times = packed[k] & LOW
        histogram[codes[k]] += (times << HALF) + times if packed[k] >> HALF == chosen else times
    count = list_bins(column, histogram, bins, sums)
    order_bins(bins, sums, count, 0.0)
    for rank in range(count):
        ranks[bins[rank]] = rank if rank < MISSING - 1 else MISSING - 1
    for k in range(start, stop):
        codes[k] = ranks[codes[k]]


@plain
def try_classes(rules, several, column, bins, rows, packed, node, seed, bar):
    """As `empirisk.trees.binned.splits.try_column`, for classes; NaN where the column is constant in the node.

    Categories are ordered by the share of a class drawn at random.
    """
    places, codes, amounts, marks = several.places[0], several.places[1], several.amounts, node.marks
    start, stop, least, entropy, differ = node.start, node.stop, rules.least, rules.entropy, False
    for k in range(start, stop):
        codes[k] = bins[np.uint64(rows[k])]
        differ |= codes[k] != codes[start]
    if not differ:
        return np.nan
    categorical, ranks = column.categorical != 0, several.ranks[0]
    if categorical:
        rank_categories(column, codes, packed, start, stop, draw(seed, amounts.shape[1]), several.ranks)
    order_rows(codes, places, several.ranks[1], start, stop)
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
            after = codes[places[k + 1]] if k + 1 < stop else np.int64(MISSING)
            if (k + 1 < stop and after == codes[row]) or left_weight < least or right_weight < least:
                continue
            if entropy > 0.0:
                score = left_part - term(left_weight, entropy) + right_part - term(right_weight, entropy)
            else:
                score = left_part / left_weight + right_part / right_weight
            if score > bar:
                bar = score
                last, heavier = codes[row], left_weight > right_weight
                node.feature = column.number
                node.sign = 0
                if categorical:
                    for word in range(WORDS):
                        marks[word] = 0
                    for b in range(WIDTH):  # bins that hold nothing here follow the heavier side
                        if (ranks[b] >= 0 and ranks[b] <= last) or (ranks[b] < 0 and heavier):
                            marks[b >> 6] |= np.int64(1) << (b & 63)
                else:
                    if after != MISSING:
                        last = (last + after - 1) // 2
                    node.bin = last
                    mark_up_to(marks, last, way == 1 or (present == stop and heavier))
    return bar
