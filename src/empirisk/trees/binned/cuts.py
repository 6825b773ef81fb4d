"""The best split that one column offers a node: numeric or categorical, missing values, monotone constraints.

A row carries one int64: g in the upper 32 bits, h > 0 in the lower 32. Sums of such numbers are sums of both, exact in
any order and so the same on any number of threads. Boosting: g is the gradient, h the curvature. Forests: h is how
often the row was drawn, g that times the target: a number, or 1 for the second of two classes. With G and H the sums
of a set, its best constant is  v = -G / (H + l2)  and its score

    -(2 G v + (H + l2) v^2)  =  G^2 / (H + l2)          (or the entropy of shares G / H, where asked)

so that a split gains  score(left) + score(right) - score(node):  for l2 = 0 the decrease of squared error or of the
Gini impurity. All quantities here are in the units of the packed numbers.
"""

import numpy as np

from empirisk.trees.compiled import inner

HALF = 32
LOW = (1 << HALF) - 1
MISSING = 255  # the bin of missing values, after at most 255 bins of present ones
WIDTH = 256  # bins of a histogram
WORDS = WIDTH // 64

#: What a node holds, as places in its row of whole numbers: the split; the rows; packed sums; bins that go left.
FEATURE, BIN, LEFT, START, STOP, DEPTH, SLOT, COUNT, SUM, LEFT_SUM, MARKS = range(11)
INTS = MARKS + WORDS
#: ... and in its row of reals: bounds of the value under monotone constraints, and the value where it is known.
GAIN, LOWEST, HIGHEST, VALUE = range(4)
REALS = 4
#: What is known of a column: whether it holds categories; +1 (-1) where predictions may only rise (fall) with it.
CATEGORICAL, MONOTONE = range(2)
#: Rules of growth, as places in an array of reals: what is added to the weight of a child; its least weight, or in
#: boosting its least number of rows; what a split must gain, and as a part of the node's score; what is added to the
#: weight of a category where categories are ordered; the depth at which nodes stay whole; most leaves, or 0; whether
#: the score is that of entropy; how many columns a node of a forest looks at.
L2, LEAST, LEAST_GAIN, NOISE, SMOOTHING, MAX_DEPTH, MAX_LEAVES, ENTROPY, COLUMNS = range(9)
RULES = 9


@inner
def score_of(packed, rules, low, high):
    """The score of a set whose constant must lie between the bounds, and that constant."""
    gradient, weight = float(packed >> HALF), (packed & LOW) + rules[L2]
    if rules[ENTROPY] > 0.0:
        rest, total = weight - gradient, 0.0
        if gradient > 0.0:
            total = gradient * np.log2(gradient / weight)
        if rest > 0.0:
            total += rest * np.log2(rest / weight)
        return total, 0.0
    value = -gradient / weight if weight > 0.0 else 0.0
    value = min(max(value, low), high)
    return -(2.0 * gradient + weight * value) * value, value


@inner
def scan(sums, stop, node, left, least, rules, low, high, sign):
    """Best cut after one of the first ``stop`` sums, with ``left`` on the left from the start.

    Returns the score of the pair (-inf where no cut is allowed), the place, and the packed sum of the left side.
    """
    best, best_place, best_left = -np.inf, -1, np.int64(0)
    weight, l2 = node & LOW, rules[L2]
    both, gradient = weight + 2.0 * l2, float(node >> HALF)
    free = sign == 0 and low == -np.inf and high == np.inf and rules[ENTROPY] == 0.0
    for place in range(stop):
        left += sums[place]
        part = left & LOW
        if part < least:
            continue
        if weight - part < least:
            break
        if free:
            # With h the curvature of the left side plus l2, and H that of both,
            #     g^2 / h + (G - g)^2 / (H - h)  =  (G^2 + (g H - G h)^2 / (h (H - h))) / H,
            # of which only the middle part differs from cut to cut: one division where the left-hand side needs two.
            h = part + l2
            distance = float(left >> HALF) * both - gradient * h
            score = distance * distance / (h * (both - h))
        else:
            score, below = score_of(left, rules, low, high)
            other, above = score_of(node - left, rules, low, high)
            score += other
            if (above - below) * sign < 0.0:
                continue
        if score > best:
            best = score
            best_place = place
            best_left = left
    if free:
        best = (gradient * gradient + best) / both
    return best, best_place, best_left


@inner
def try_column(column, kinds, room, count, least, rules, tree, places, bar):
    """Look for a split of a node in the ``count`` non-empty bins of a column, listed with their sums in ``room``.

    ``places`` are the node, and the row of the tree's nodes where a split is noted whose score exceeds ``bar``; returns
    the score to beat from now on. Of equal splits the one with the lowest bin and missing values on the right wins.
    """
    (nodes, reals), (node, place), bins, sums = tree, places, room[0], room[1]
    total, missing, ways, sign = nodes[node, SUM], np.int64(0), 1, kinds[column, MONOTONE]
    categorical = kinds[column, CATEGORICAL] != 0
    if categorical:
        # Some prefix in the order of G / H is the best of all subsets (Fisher; Breiman); missing values are one more
        # category. Smoothing keeps rare categories near the middle. Equal ones stay as they come.
        sign = 0
        for k in range(1, count):
            code = bins[k]
            packed = sums[k]
            at = k
            ratio = (packed >> HALF) / ((packed & LOW) + rules[SMOOTHING])
            while at > 0 and (sums[at - 1] >> HALF) / ((sums[at - 1] & LOW) + rules[SMOOTHING]) > ratio:
                bins[at] = bins[at - 1]
                sums[at] = sums[at - 1]
                at -= 1
            bins[at] = code
            sums[at] = packed
    elif bins[count - 1] == MISSING:
        count -= 1
        missing = sums[count]
        ways = 2
    for way in range(ways):  # missing values on the right, then on the left
        # With missing values on the right, "present" against "missing" is a cut too.
        stop = count if ways == 2 and way == 0 else count - 1
        score, at, left = scan(
            sums, stop, total, missing * way, least, rules, reals[node, LOWEST], reals[node, HIGHEST], sign
        )
        if score > bar:
            bar = score
            heavier = 2 * (left & LOW) > total & LOW
            last = np.int64(bins[at])
            nodes[place, FEATURE] = column
            nodes[place, LEFT_SUM] = left
            if categorical:
                for word in range(WORDS):  # bins that hold nothing here follow the heavier side
                    nodes[place, MARKS + word] = -1 if heavier else 0
                for k in range(count):
                    if (k > at) == heavier:
                        code = np.int64(bins[k])
                        nodes[place, MARKS + (code >> 6)] ^= np.int64(1) << (code & 63)
            else:
                # A threshold half way between the values on both sides errs less on new rows than one close to one.
                if at + 1 < count:
                    last = (last + np.int64(bins[at + 1]) - 1) // 2
                # Where there were none, missing values follow the heavier side.
                mark_up_to(nodes, place, last, way == 1 or (ways == 1 and heavier))
    return bar


@inner
def mark_up_to(nodes, place, last, missing_left):
    """Keep a numeric split: the bins up to ``last`` go left, and the missing bin where asked."""
    nodes[place, BIN] = last
    for word in range(WORDS):
        bits = min(max(last + 1 - 64 * word, 0), 64)
        nodes[place, MARKS + word] = -1 if bits == 64 else (np.int64(1) << bits) - 1
    if missing_left:
        nodes[place, MARKS + WORDS - 1] |= np.int64(1) << 63


@inner
def list_bins(histogram, room):
    """List in ``room`` the bins of a histogram that hold something, and their sums; returns how many."""
    bins, sums, count = room[0], room[1], 0
    for b in range(WIDTH):
        bins[count] = b
        sums[count] = histogram[b]
        count += histogram[b] != 0
    return count
