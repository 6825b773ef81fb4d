"""Compiled search for the split of a forest's node: one column at a time, on the bins of the node's rows.

A row carries ``packed`` and ``label``. For numbers and two classes packed is (level << 32) * count + count, where count
says how often the row was drawn and level is its target in whole units; a set with sums G and W has purity G^2 / W, or
that of the entropy. For more classes packed is the count and label the class.
"""

import numpy as np
from numba import njit

from empirisk.trees.bins import MISSING, WIDTH
from empirisk.trees.criteria import ENTROPY
from empirisk.trees.histogram import curvature_of, gradient_of

SMALL = 32  # rows up to which sorting beats counting


@njit(cache=True, nogil=True, error_model="numpy")
def purity_of(packed, entropy):
    """Purity of a set from its packed sum; zero for an empty one."""
    weight = float(curvature_of(packed))
    if weight <= 0.0:
        return 0.0
    amount = float(gradient_of(packed))
    if not entropy:
        return amount * amount / weight
    other = weight - amount
    total = amount * np.log2(amount / weight) if amount > 0.0 else 0.0
    return total + (other * np.log2(other / weight) if other > 0.0 else 0.0)


@njit(cache=True, nogil=True)
def gather(column, rows, codes):
    """Copy the bins of the rows; return the least and the largest of them."""
    low, high = np.uint8(255), np.uint8(0)
    for k in range(rows.shape[0]):
        code = column[np.uint64(rows[k])]
        codes[k] = code
        low, high = min(low, code), max(high, code)
    return np.int64(low), np.int64(high)


@njit(cache=True, nogil=True)
def sums_by_bin(codes, packed, low, high, bins, sums):
    """Non-empty bins in rising order and their packed sums, the missing bin last if present; returns how many."""
    count = 0
    if codes.shape[0] > SMALL:
        histogram = np.zeros(WIDTH, dtype=np.int64)
        for k in range(codes.shape[0]):
            histogram[codes[k]] += packed[k]
        for b in range(low, high + 1):
            if histogram[b] != 0:
                bins[count], sums[count] = b, histogram[b]
                count += 1
        return count
    for k in range(codes.shape[0]):
        code, place = codes[k], count
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


@njit(cache=True, nogil=True)
def scan_sums(sums, count, node, missing, leaf, entropy):
    """Best cut after one of the first ``count`` sums, with ``missing`` on the left: its purity and place, or -1."""
    best, best_place, left = -np.inf, -1, missing
    for place in range(count):
        left += sums[place]
        weight = curvature_of(left)
        if weight < leaf:
            continue
        if curvature_of(node) - weight < leaf:
            break
        score = purity_of(left, entropy) + purity_of(node - left, entropy)
        if score > best:
            best, best_place = score, place
    return best, best_place


@njit(cache=True, nogil=True)
def order_rows(codes, low, high, order):
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
    for b in range(low, high + 1):
        starts[b + 1] += starts[b]
    for k in range(count):
        order[starts[codes[k]]] = k
        starts[codes[k]] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def scan_classes(codes, packed, labels, order, stop, sums, begin, leaf, entropy):
    """Best cut of rows in order, before ``stop``, with the class sums ``begin`` on the left and ``sums`` in the node.

    Moving a row across changes the sums of one class only, so each step costs the same however many classes there are.
    Returns the purity and the bin after which to cut, or -1.
    """
    left, right = begin.copy(), sums - begin
    left_weight, right_weight = left.sum(), right.sum()
    left_part, right_part = class_part(left, entropy), class_part(right, entropy)
    best, best_bin = -np.inf, -1
    for k in range(stop):
        row = order[k]
        label, amount = labels[row], float(packed[row])
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
            score = left_part - class_term(left_weight, True) + right_part - class_term(right_weight, True)
        else:
            score = left_part / left_weight + right_part / right_weight
        if score > best:
            best, best_bin = score, np.int64(codes[row])
    return best, best_bin


@njit(cache=True, nogil=True)
def class_term(amount, entropy):
    """What one class adds: amount^2, or amount log2 amount."""
    if entropy:
        return amount * np.log2(amount) if amount > 0.0 else 0.0
    return amount * amount


@njit(cache=True, nogil=True)
def class_part(sums, entropy):
    """Sum of `class_term` over the classes."""
    total = 0.0
    for amount in sums:
        total += class_term(amount, entropy)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def rank_categories(codes, packed, labels, chosen, ranks):
    """Replace category bins by their rank: by mean target, or by the share of the class ``chosen`` if it is >= 0.

    Missing values are a category like others. ``ranks`` receives the rank of each bin, -1 where there is no row.
    Returns the largest rank.
    """
    amount, weight = np.zeros(WIDTH), np.zeros(WIDTH)
    for k in range(codes.shape[0]):
        if chosen >= 0:
            amount[codes[k]] += packed[k] if labels[k] == chosen else 0
            weight[codes[k]] += packed[k]
        else:
            amount[codes[k]] += gradient_of(packed[k])
            weight[codes[k]] += curvature_of(packed[k])
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
        ranks[order[rank]] = min(rank, MISSING - 1)  # the last number stands for missing values of numeric columns
    for k in range(codes.shape[0]):
        codes[k] = np.uint8(ranks[codes[k]])
    return min(count, MISSING) - 1


@njit(cache=True, nogil=True)
def middle_bin(codes, chosen):
    """The middle of the empty bins after ``chosen`` (see `histogram_split.mark_numbers`)."""
    after = MISSING
    for k in range(codes.shape[0]):
        if codes[k] > chosen:
            after = min(after, np.int64(codes[k]))
    return chosen if after == MISSING else (chosen + after - 1) // 2
