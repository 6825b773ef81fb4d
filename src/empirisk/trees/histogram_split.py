"""The best split that a histogram shows: numeric and categorical columns, missing values, monotone constraints.

With G and H the gradient and curvature of a set, its best constant is  v = -G / (H + l2)  and lowers the objective by
half of  score = -(2 G v + (H + l2) v^2),  which is  G^2 / (H + l2)  for a v that nothing bounds. A split gains
score(left) + score(right) - score(node).  All quantities here are in packed units.
"""

import numpy as np

from empirisk.trees.bins import MISSING, WIDTH
from empirisk.trees.compiled import loop
from empirisk.trees.histogram import curvature_of, gradient_of

NOISE = 1e-12  # a gain below this part of the score is rounding


@loop
def best_value(packed, limits, low, high):
    """-G / (H + l2) within the bounds, in units; 0 for a set without curvature."""
    weight = curvature_of(packed) + limits.l2
    free = -gradient_of(packed) / weight if weight > 0 else 0.0
    return min(max(free, low), high)


@loop
def score_at(packed, limits, value):
    """Decrease of twice the objective by a constant ``value``."""
    return -(2.0 * gradient_of(packed) + (curvature_of(packed) + limits.l2) * value) * value


@loop
def bounded_score(left, right, limits, low, high, sign):
    """Score of a pair of children whose values lie in [low, high]; -inf where they break the order that sign asks."""
    left_value, right_value = best_value(left, limits, low, high), best_value(right, limits, low, high)
    if (right_value - left_value) * sign < 0:
        return -np.inf
    return score_at(left, limits, left_value) + score_at(right, limits, right_value)


@loop
def scan(bins, last, node, missing, limits, leaf, bounds, sign):
    """Best numeric split after one of the bins 0..last, with ``missing`` (a packed sum) on the left.

    ``leaf`` is the least curvature of a child. Returns the score, the bin and the packed sum of the left child; score
    -inf if no split is allowed.
    """
    if sign != 0 or bounds[0] > -np.inf or bounds[1] < np.inf:
        return scan_bounded(bins, last, node, missing, limits, leaf, bounds, sign)
    best, best_bin, best_left, left = -1.0, -1, np.int64(0), missing
    all_gradient, all_curvature = float(gradient_of(node)), curvature_of(node)
    both = all_curvature + 2.0 * limits.l2
    # With h the curvature of the left child plus l2, and H that of both,
    #     g^2 / h + (G - g)^2 / (H - h)  =  (G^2 + (g H - G h)^2 / (h (H - h))) / H,
    # of which only the middle part differs from bin to bin: one division where the left-hand side needs two.
    for b in range(last + 1):
        left += bins[b]
        curvature = curvature_of(left)
        if curvature < leaf:
            continue
        if all_curvature - curvature < leaf:
            break
        h = curvature + limits.l2
        distance = float(gradient_of(left)) * both - all_gradient * h
        score = distance * distance / (h * (both - h))
        if score > best:
            best, best_bin, best_left = score, b, left
    if best_bin < 0:
        return -np.inf, -1, best_left
    return (all_gradient * all_gradient + best) / both, best_bin, best_left


@loop
def scan_bounded(bins, last, node, missing, limits, leaf, bounds, sign):
    """`scan` for children whose values are bounded, or must be in the order that ``sign`` asks."""
    # A bound can keep a node so far from its own best value that scores are negative.
    best, best_bin, best_left, left = -np.inf, -1, np.int64(0), missing
    for b in range(last + 1):
        left += bins[b]
        curvature = curvature_of(left)
        if bins[b] == 0 or curvature < leaf:
            continue
        if curvature_of(node) - curvature < leaf:
            break
        score = bounded_score(left, node - left, limits, bounds[0], bounds[1], sign)
        if score > best:
            best, best_bin, best_left = score, b, left
    return best, best_bin, best_left


@loop
def order_categories(bins, limits, order):
    """Bins that hold something (missing values too), by rising gradient over curvature; returns how many."""
    ratio = np.empty(WIDTH, dtype=np.float64)
    count = 0
    for b in range(WIDTH):
        if bins[b] == 0:
            continue
        key = gradient_of(bins[b]) / (curvature_of(bins[b]) + limits.smoothing)
        k = count
        while k > 0 and ratio[k - 1] > key:
            ratio[k], order[k] = ratio[k - 1], order[k - 1]
            k -= 1
        ratio[k], order[k] = key, b
        count += 1
    return count


@loop
def search(histogram, table, features, limits, about, bounds, found, place):
    """Write into ``found`` at ``place`` the best split of a node; gain 0 where there is none.

    ``about`` is the packed sum of the node and its number of rows. How many rows a child has is not in the histogram;
    it is taken to be in proportion to the curvature, which is exact where all rows have the same. Of equal splits
    the one in the first column, with the lowest bin and missing values on the right, wins.
    """
    node, rows = about
    leaf = np.int64(1)
    if limits.leaf > 1.0:
        leaf = max(leaf, np.int64(np.ceil(limits.leaf * curvature_of(node) / rows)))
    value = best_value(node, limits, bounds[0], bounds[1])
    own = score_at(node, limits, value)
    best = own + max(limits.gain, NOISE * abs(own))
    found.gain[place] = 0.0
    order = np.empty(WIDTH, dtype=np.int64)
    ordered = np.empty(WIDTH, dtype=np.int64)
    for j in range(features.shape[0]):
        f = features[j]
        bins = histogram[j]
        if table.categorical[f]:
            count = order_categories(bins, limits, order)
            for k in range(count):
                ordered[k] = bins[order[k]]
            score, k, left = scan(ordered, count - 2, node, np.int64(0), limits, leaf, bounds, np.int64(0))
            if score > best:
                best = score
                keep(found, place, score - own, f, k, left)
                mark_categories(order, k, count, curvature_of(left) * 2 > curvature_of(node), found.left[place])
            continue
        missing = bins[MISSING]
        # Present values on the left against missing ones on the right is a split too.
        last = table.counts[f] - (2 if missing == 0 else 1)
        sign = np.int64(table.monotone[f])
        score, b, left = scan(bins, last, node, np.int64(0), limits, leaf, bounds, sign)
        if score > best:
            best = score
            keep(found, place, score - own, f, b, left)
            heavier = missing == 0 and curvature_of(left) * 2 > curvature_of(node)
            found.bin[place] = mark_numbers(bins, b, table.counts[f], heavier, found.left[place])
        if missing != 0:
            score, b, left = scan(bins, last - 1, node, missing, limits, leaf, bounds, sign)
            if score > best:
                best = score
                keep(found, place, score - own, f, b, left)
                found.bin[place] = mark_numbers(bins, b, table.counts[f], missing != 0, found.left[place])


@loop
def keep(found, place, gain, feature, split_bin, left):
    """Note a split."""
    found.gain[place] = gain
    found.feature[place] = feature
    found.bin[place] = split_bin
    found.left_sum[place] = left


@loop
def mark_numbers(bins, split_bin, count, missing_left, marks):
    """Mark the bins that go left; return the last of them: the middle of the empty bins after ``split_bin``.

    A threshold half way between the values on both sides errs less on new rows than one close to the left side.
    """
    after = split_bin + 1
    while after < count and bins[after] == 0:
        after += 1
    last = split_bin if after == count else (split_bin + after - 1) // 2
    marks[:] = 0
    for b in range(last + 1):
        mark(marks, b)
    if missing_left:
        mark(marks, MISSING)
    return last


@loop
def mark_categories(order, last, count, empty_left, marks):
    """Mark the first ``last + 1`` bins in the order, and if ``empty_left`` also those that hold nothing here."""
    marks[:] = 0
    if empty_left:
        marks[:] = ~np.uint64(0)
        for k in range(last + 1, count):
            marks[order[k] >> 6] ^= np.uint64(1) << np.uint64(order[k] & 63)
        return
    for k in range(last + 1):
        mark(marks, order[k])


@loop
def mark(marks, b):
    """Set the bit of a bin."""
    marks[b >> 6] |= np.uint64(1) << np.uint64(b & 63)


@loop
def is_marked(marks, b):
    """Whether the bit of a bin is set."""
    return (marks[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != np.uint64(0)
