"""Compiled search for the split of a forest's node: one column at a time, on the bins of the node's rows.

A row carries one packed number: its target in the upper 32 bits, how often it was drawn in the lower 32. For numbers
and two classes the target is multiplied by the draws, so that sums of packed numbers are sums of both; a set with sums
G and W has purity G^2 / W, or that of the entropy. For more classes the target is the class.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.bins import MISSING, WIDTH
from empirisk.trees.compiled import loop
from empirisk.trees.histogram import curvature_of as weight_in
from empirisk.trees.histogram import gradient_of as target_in

SMALL = 16  # rows up to which sorting beats counting


class Scratch(NamedTuple):
    """Room for the search in one column; ``histogram`` is all zero between calls.

    ``bins`` and ``sums`` list non-empty bins and their packed sums; ``codes`` and ``order`` belong to the rows;
    ``node``, ``left``, ``right`` and ``missing`` hold sums by class.
    """

    histogram: NDArray[np.int64]
    bins: NDArray[np.uint8]
    sums: NDArray[np.int64]
    ranks: NDArray[np.int64]
    codes: NDArray[np.uint8]
    order: NDArray[np.int32]
    node: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    missing: NDArray[np.float64]


def new_scratch(rows: int, classes: int) -> Scratch:
    """Room for nodes of so many rows."""
    many = rows if classes > 0 else 0
    return Scratch(
        np.zeros(WIDTH, dtype=np.int64),
        np.zeros(WIDTH, dtype=np.uint8),
        np.zeros(WIDTH, dtype=np.int64),
        np.zeros(WIDTH, dtype=np.int64),
        np.zeros(many, dtype=np.uint8),
        np.zeros(many, dtype=np.int32),
        *(np.zeros(max(classes, 1)) for _ in range(4)),
    )


# --- sums: numbers and two classes ----------------------------------------------------------------------------------


@loop
def entropy_purity(packed):
    """amount log2(amount / weight) for both classes of a set."""
    weight, amount = float(weight_in(packed)), float(target_in(packed))
    other = weight - amount
    total = amount * np.log2(amount / weight) if amount > 0.0 else 0.0
    return total + (other * np.log2(other / weight) if other > 0.0 else 0.0)


@loop
def sums_by_bin(column, rows, packed, scratch):
    """List the non-empty bins in rising order (the missing bin last) and their packed sums; returns how many."""
    bins, sums, count = scratch.bins, scratch.sums, 0
    if rows.shape[0] > SMALL:
        histogram = scratch.histogram
        for k in range(rows.shape[0]):
            histogram[column[np.uint64(rows[k])]] += packed[k]
        for b in range(WIDTH):
            bins[count], sums[count] = b, histogram[b]
            count += histogram[b] != 0
            histogram[b] = 0
        return count
    for k in range(rows.shape[0]):
        code, place = column[np.uint64(rows[k])], count
        while place > 0 and bins[place - 1] > code:
            place -= 1
        if place > 0 and bins[place - 1] == code:
            sums[place - 1] += packed[k]
            continue
        for j in range(count, place, -1):
            bins[j], sums[j] = bins[j - 1], sums[j - 1]
        bins[place], sums[place] = code, packed[k]
        count += 1
    return count


@loop
def scan_sums(sums, count, node, missing, leaf, entropy):
    """Best cut after one of the first ``count`` sums, with ``missing`` on the left: its purity and place, or -1."""
    best, best_place, left = -np.inf, -1, missing
    weight, total = weight_in(node), float(target_in(node))
    for place in range(count):
        left += sums[place]
        part = weight_in(left)
        if part < leaf:
            continue
        if weight - part < leaf:
            break
        if entropy:
            score = entropy_purity(left) + entropy_purity(node - left)
        else:
            # As in `histogram_split.scan`: the part of  g^2 / w + (G - g)^2 / (W - w)  that differs between cuts.
            distance = float(target_in(left)) * weight - total * part
            score = distance * distance / (float(part) * (weight - part))
        if score > best:
            best, best_place = score, place
    if best_place >= 0 and not entropy:
        best = (total * total + best) / weight
    return best, best_place


@loop
def cut_sums(scratch, count, node, leaf, entropy):
    """Best cut of a numeric column: purity, last bin on the left, whether missing values go left."""
    bins, sums, missing = scratch.bins, scratch.sums, np.int64(0)
    if bins[count - 1] == MISSING:
        count -= 1
        missing = sums[count]
    # Without missing values the last cut would leave nothing on the right.
    score, place = scan_sums(sums, count if missing != 0 else count - 1, node, np.int64(0), leaf, entropy)
    missing_left = False
    if missing != 0:
        other, other_place = scan_sums(sums, count - 1, node, missing, leaf, entropy)
        if other > score:
            score, place, missing_left = other, other_place, True
    if place < 0:
        return -np.inf, 0, False
    if missing == 0:
        left = np.int64(0)
        for k in range(place + 1):
            left += sums[k]
        missing_left = 2 * weight_in(left) > weight_in(node)  # unseen here: to the heavier side
    # A threshold half way between the values on both sides errs less on new rows.
    last = np.int64(bins[place])
    return score, last if place + 1 >= count else (last + np.int64(bins[place + 1]) - 1) // 2, missing_left


@loop
def cut_categories(scratch, count, node, leaf, entropy):
    """Best cut of a categorical column, its bins ordered by mean target: purity, whether the left is the heavier side.

    ``ranks`` receives 0 for bins on the left, 1 for those on the right, -1 for those without rows.
    """
    bins, sums = scratch.bins, scratch.sums
    for k in range(1, count):
        code, packed, place = bins[k], sums[k], k
        mean = target_in(packed) / weight_in(packed)
        while place > 0 and target_in(sums[place - 1]) / weight_in(sums[place - 1]) > mean:
            bins[place], sums[place] = bins[place - 1], sums[place - 1]
            place -= 1
        bins[place], sums[place] = code, packed
    score, cut = scan_sums(sums, count - 1, node, np.int64(0), leaf, entropy)
    scratch.ranks[:] = -1
    left = np.int64(0)
    for k in range(count):
        scratch.ranks[bins[k]] = 0 if k <= cut else 1
        left += sums[k] if k <= cut else 0
    return score, 2 * weight_in(left) > weight_in(node)


# --- more than two classes ------------------------------------------------------------------------------------------


@loop
def class_term(amount, entropy):
    """What one class adds: amount^2, or amount log2 amount."""
    if entropy:
        return amount * np.log2(amount) if amount > 0.0 else 0.0
    return amount * amount


@loop
def class_part(sums, entropy):
    """Sum of `class_term` over the classes."""
    total = 0.0
    for amount in sums:
        total += class_term(amount, entropy)
    return total


@loop
def gather(column, rows, codes):
    """Copy the bins of the rows; whether they differ."""
    differ = False
    for k in range(rows.shape[0]):
        codes[k] = column[np.uint64(rows[k])]
        differ |= codes[k] != codes[0]
    return differ


@loop
def order_rows(codes, order):
    """Positions of the rows by rising bin, equal bins in the order given."""
    count = codes.shape[0]
    if count <= SMALL:
        for k in range(count):
            place = k
            while place > 0 and codes[order[place - 1]] > codes[k]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
        return
    starts = np.zeros(WIDTH + 1, dtype=np.int64)
    for k in range(count):
        starts[np.int64(codes[k]) + 1] += 1
    for b in range(WIDTH):
        starts[b + 1] += starts[b]
    for k in range(count):
        order[starts[codes[k]]] = k
        starts[codes[k]] += 1


@loop
def scan_classes(codes, packed, order, stop, scratch, begin, leaf, entropy):
    """Best cut of rows in order, before ``stop``, with the class sums ``begin`` on the left from the start.

    Moving a row across changes the sums of one class only, so each step costs the same however many classes there are.
    Returns the purity and the bin after which to cut, or -1.
    """
    left, right = scratch.left, scratch.right
    for label in range(left.shape[0]):
        left[label], right[label] = begin[label], scratch.node[label] - begin[label]
    left_weight, right_weight = left.sum(), right.sum()
    left_part, right_part = class_part(left, entropy), class_part(right, entropy)
    best, best_bin = -np.inf, np.int64(-1)
    for k in range(stop):
        row = order[k]
        label, amount = target_in(packed[row]), float(weight_in(packed[row]))
        left_part += class_term(left[label] + amount, entropy) - class_term(left[label], entropy)
        right_part += class_term(right[label] - amount, entropy) - class_term(right[label], entropy)
        left[label] += amount
        right[label] -= amount
        left_weight += amount
        right_weight -= amount
        if k + 1 < order.shape[0] and codes[order[k + 1]] == codes[row]:
            continue
        if left_weight < leaf or right_weight < leaf:
            continue
        if entropy:
            score = left_part - class_term(left_weight, entropy) + right_part - class_term(right_weight, entropy)
        else:
            score = left_part / left_weight + right_part / right_weight
        if score > best:
            best, best_bin = score, np.int64(codes[row])
    return best, best_bin


@loop
def cut_classes(codes, packed, order, scratch, leaf, entropy):
    """Best cut of a column: purity, last bin on the left, whether missing values go left, which side is heavier."""
    order_rows(codes, order)
    present, nothing = codes.shape[0], np.zeros(scratch.node.shape[0])
    scratch.missing[:] = 0.0
    while present > 0 and codes[order[present - 1]] == MISSING:
        present -= 1
        row = order[present]
        scratch.missing[target_in(packed[row])] += weight_in(packed[row])
    score, cut = scan_classes(codes, packed, order, present, scratch, nothing, leaf, entropy)
    missing_left, holes = False, present < codes.shape[0]
    if holes:
        other, other_cut = scan_classes(codes, packed, order, present, scratch, scratch.missing, leaf, entropy)
        if other > score:
            score, cut, missing_left = other, other_cut, True
    left, after = scratch.missing.sum() if missing_left else 0.0, np.int64(MISSING)
    for k in range(codes.shape[0]):
        if np.int64(codes[k]) <= cut:
            left += weight_in(packed[k])
        elif np.int64(codes[k]) < after:
            after = np.int64(codes[k])
    heavier = 2 * left > scratch.node.sum()
    last = cut if after == MISSING else (cut + after - 1) // 2
    return score, last, missing_left if holes else heavier, heavier


@loop
def rank_categories(codes, packed, chosen, ranks):
    """Replace category bins by their rank in the share of the class ``chosen``; missing values are one more category.

    ``ranks`` receives the rank of each bin, -1 where there is no row. The last number is left free: it stands for
    missing values of numeric columns.
    """
    amount, weight = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(codes.shape[0]):
        amount[codes[k]] += weight_in(packed[k]) if target_in(packed[k]) == chosen else 0
        weight[codes[k]] += weight_in(packed[k])
    order, count = np.empty(WIDTH, dtype=np.int64), 0
    ranks[:] = -1
    for b in range(WIDTH):
        if weight[b] == 0.0:
            continue
        place = count
        while place > 0 and amount[order[place - 1]] * weight[b] > amount[b] * weight[order[place - 1]]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = b
        count += 1
    for rank in range(count):
        ranks[order[rank]] = min(rank, MISSING - 1)
    for k in range(codes.shape[0]):
        codes[k] = np.uint8(ranks[codes[k]])
