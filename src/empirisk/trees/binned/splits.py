"""What a node is, the best split that one column offers it, and how it is divided.

A row carries one int64: g in the upper 32 bits, h > 0 in the lower 32. Sums of such numbers are sums of both, exact in
any order and so the same on any number of threads. Boosting: g is the gradient, h the curvature. Forests: h is how
often the row was drawn, g that times the target: a number, or 1 for the second of two classes. With G and H the sums
of a set, its best constant is  v = -G / (H + l2)  and its score

    -(2 G v + (H + l2) v^2)  =  G^2 / (H + l2)          (or the entropy of shares G / H, where asked)

so that a split gains  score(left) + score(right) - score(node):  for l2 = 0 the decrease of squared error or of the
Gini impurity. All quantities here are in the units of the packed numbers.

The rows of a node lie side by side, each with its packed number. A split moves them from one of two buffers to the
other, in order, so that a node at depth k lives in buffer k mod 2.

A forest's row of more than two classes carries its class in the upper 32 bits, and how often it was drawn in the lower.
A set with class sums s and W = sum s has the score  sum s^2 / W  (Gini) or  sum s log2 (s / W)  (entropy). The rows are
put in the order of their bins: moving one across changes the sum of one class, so a step costs the same for any number
of classes.

A forest's row of several outputs carries its place in the sample in the upper 32 bits: there its targets times its
count are found, in whole units. A set with the sums G_1, G_2, ... and the weight W has the score  sum_j G_j^2 / W:  a
split gains the decrease of squared error over all outputs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import ODD, draw, mix, plain
from empirisk.trees.binned.bins import MISSING, WIDTH, Binning

Array = NDArray[np.float64]

HALF = 32  # bits of each of the two sums in one number
LOW = (1 << HALF) - 1  # mask of the lower one
WORDS = WIDTH // 64  # in the set of the bins that go left
ROOM = 1 << 31  # units that the sum over all rows may reach

#: One node: its split (column, last bin on the left, bins that go left, sign of the constraint, packed sum on the left,
#: gain), its first child, its rows; its histogram, for how many rows it stands, what a child must weigh, the packed sum
#: of the rows; bounds of the value under monotone constraints, and the value. In the k-th node, ``waiting`` is the k-th
#: node that waits for its split. ``groups`` has a bit for each group of columns that may still be split below the node
#: together, and ``below`` those that are left once it is split.
NODE = np.dtype(
    [("marks", np.int64, (WORDS,))]
    + [(name, np.int64) for name in ("feature", "bin", "sign", "left_sum", "left", "start", "stop", "depth")]
    + [(name, np.int64) for name in ("slot", "count", "least", "sum", "waiting", "groups", "below")]
    + [(name, np.float64) for name in ("gain", "lowest", "highest", "value")]
)
#: One column that is looked at: its number, its bins of present values, whether it holds categories, and +1 (-1) where
#: predictions may only rise (fall) with it; a bit for each group of columns that it may be split with.
COLUMN = np.dtype([(name, np.int64) for name in ("number", "bins", "categorical", "monotone", "groups")])
#: Rules of growth: what is added to the weight of a child; its least weight, or in boosting its least number of rows;
#: what a split must gain, and as a part of the node's score; what is added to the weight of a category where
#: categories are ordered; the depth at which nodes stay whole; most leaves, or 0; whether the score is that of entropy;
#: how many columns a node of a forest looks at. Boosting: units of gradient and curvature, l2 in no units, the rate.
#: Forests: the least weight of a child as a part of all, and of a node that is split. Last, the seed of the cuts, one
#: drawn at random for each node and column; 0 where the best of all is taken.
RULE_NAMES = ["l2", "least", "least_gain", "noise", "smoothing", "max_depth", "max_leaf_nodes", "entropy", "columns"]
RULE_NAMES += ["gradient_unit", "curvature_unit", "true_l2", "rate", "least_part", "split", "cuts"]
RULES = np.dtype([(name, np.float64) for name in RULE_NAMES])
#: The rules, and how far a tree has grown: nodes so far, those that wait for a split. Alone: those searched for one.
#: What a team shares: what the chunks do now; the node being split; its children, the smaller and the larger one; bit 0
#: (1) where the smaller (larger) one may be split; free histograms, pieces of leaves; whether all rows are in the
#: sample, rounding alternates, leaves get values; how many rows there are, and how many in a chunk; steps since the
#: last pause; how often histograms were filled.
STATE = np.dtype(
    [(name, np.float64) for name in RULE_NAMES]
    + [(name, np.int64) for name in ("nodes", "open", "looked", "phase", "node", "smaller", "larger")]
    + [
        (name, np.int64)
        for name in ("live", "free", "pieces", "every", "alternate", "values", "rows", "step", "spent", "filling")
    ]
)
#: Lines of what boosting knows of the rows: gradient, curvature, score, target, weight and, where rows stand for
#: several, for how many.
GRADIENT, CURVATURE, SCORE, TARGET, WEIGHT, TIMES = range(6)


def describe_columns(
    binning: Binning, monotone: NDArray[np.int8] | None = None, groups: NDArray[np.int64] | None = None
) -> NDArray[np.void]:
    """What compiled code knows of the columns; without groups every column may be split with every other."""
    columns = np.zeros(len(binning.counts), dtype=COLUMN)
    columns["number"], columns["bins"] = np.arange(len(columns)), binning.counts
    columns["categorical"] = binning.categorical
    if monotone is not None:
        columns["monotone"] = monotone
    columns["groups"] = -1 if groups is None else groups
    return columns


def unit(total: float, rows: int) -> float:
    """The finest power of two in which ``rows`` numbers of absolute sum ``total`` stay below 2^31 units.

    >>> unit(total=3.0, rows=3)
    1.862645149230957e-09
    """
    if not 0.0 < total < np.inf:
        return 1.0
    # Not finer than 2^-1000: divided by a smaller unit, numbers would overflow.
    return float(2.0 ** max(np.ceil(np.log2(max(total, 2.0**-1000) / (ROOM - 2 * rows - 2))), -1000.0))


@plain
def score_of(packed, rules, low, high):
    """The score of a set whose constant must lie between the bounds, and that constant."""
    gradient, weight = float(packed >> HALF), (packed & LOW) + rules.l2
    if rules.entropy > 0.0:
        rest, total = weight - gradient, 0.0
        if gradient > 0.0:
            total = gradient * np.log2(gradient / weight)
        if rest > 0.0:
            total += rest * np.log2(rest / weight)
        return total, 0.0
    value = -gradient / weight if weight > 0.0 else 0.0
    value = low if value < low else high if value > high else value
    return -(2.0 * gradient + weight * value) * value, value


@plain
def order_bins(bins, sums, count, smoothing):
    """Put listed bins of a categorical column in the order of G / H.

    Some prefix is then the best of all subsets (Fisher; Breiman); missing values are one more category. Smoothing keeps
    rare categories near the middle. Equal ones stay as they come.
    """
    for k in range(1, count):
        code, packed, at = bins[k], sums[k], k
        ratio = (packed >> HALF) / ((packed & LOW) + smoothing)
        while at > 0 and (sums[at - 1] >> HALF) / ((sums[at - 1] & LOW) + smoothing) > ratio:
            bins[at] = bins[at - 1]
            sums[at] = sums[at - 1]
            at -= 1
        bins[at] = code
        sums[at] = packed


@plain
def random_cut(rules, node, column, low, high):
    """A whole number from ``low`` on, below ``high`` where that is more: the same wherever and whenever it is asked."""
    bits = mix(np.uint64(node.sum) ^ mix(np.uint64(rules.cuts) + np.uint64(column.number) * ODD))
    room = high - low if high > low else np.int64(1)
    return low + np.int64(((bits >> np.uint64(32)) * np.uint64(room)) >> np.uint64(32))


@plain
def try_column(column, bins, sums, count, missing, rules, node, bar):
    """Look for a split of a node in the first ``count`` bins of a column, listed with their sums.

    ``missing`` is the sum of the missing values of a numeric column. A split whose score exceeds ``bar`` is noted in
    the node; returns the score to beat from now on. With random cuts one place alone is looked at. Of equal splits the
    one with the lowest bin and missing values on the right wins. Bins without rows cost time, but change nothing.
    """
    if column.groups & node.groups == 0:  # it may not meet the columns that were split above
        return bar
    sign, total, marks, least = column.monotone, node.sum, node.marks, node.least
    if column.categorical != 0:
        sign = 0
        order_bins(bins, sums, count, rules.smoothing)
    weight, gradient, low, high = total & LOW, float(total >> HALF), node.lowest, node.highest
    both = weight + 2.0 * rules.l2
    free = sign == 0 and low == -np.inf and high == np.inf and rules.entropy == 0.0
    begin, end, before = np.int64(0), np.int64(count), np.int64(0)
    if rules.cuts > 0.0:
        while begin < end - 1 and sums[begin] == 0:
            begin += 1
        while end - 1 > begin and sums[end - 1] == 0:
            end -= 1
        begin = random_cut(rules, node, column, begin, end - 1)
        end = begin + 1
        for place in range(begin):
            before += sums[place]
    for way in range(1 if missing == 0 else 2):  # missing values on the right, then on the left
        # The best so far is top / bottom: a product costs less than a division.
        top, bottom, at, best, left = -np.inf, 1.0, -1, np.int64(0), missing * way + before
        for place in range(begin, end):
            left += sums[place]
            part = left & LOW
            if part < least:
                continue
            if weight - part < least:
                break
            if free:
                # With h the curvature of the left side plus l2, and H that of both,
                #     g^2 / h + (G - g)^2 / (H - h)  =  (G^2 + (g H - G h)^2 / (h (H - h))) / H,
                # of which only the middle part differs from cut to cut.
                h = part + rules.l2
                distance = float(left >> HALF) * both - gradient * h
                above, below = distance * distance, h * (both - h)
            else:
                one, value = score_of(left, rules, low, high)
                other, next_value = score_of(total - left, rules, low, high)
                above, below = one + other, 1.0
                if (next_value - value) * sign < 0.0:
                    continue
            if above * bottom > top * below:
                top, bottom, at, best = above, below, place, left
        score = (gradient * gradient + top / bottom) / both if free else top
        if at < 0 or not score > bar:
            continue
        bar = score
        heavier = 2 * (best & LOW) > weight
        node.feature = column.number
        node.sign = sign
        node.below = node.groups & column.groups
        node.left_sum = best
        last, after = np.int64(bins[at]), at + 1
        if column.categorical != 0:
            for word in range(WORDS):  # bins that hold nothing here follow the heavier side
                marks[word] = -1 if heavier else 0
            for k in range(count):
                if (k > at) == heavier:
                    marks[bins[k] >> 6] ^= np.int64(1) << (bins[k] & 63)
            continue
        # A threshold half way between the values on both sides errs less on new rows than one close to one.
        while after < count and sums[after] == 0:
            after += 1
        if after < count:
            last = (last + bins[after] - 1) // 2
        node.bin = last
        # Where there were none, missing values follow the heavier side.
        mark_up_to(marks, last, way == 1 or (missing == 0 and heavier))
    return bar


@plain
def score_to_beat(rules, own):
    """What the two sides of a split must score together, where the node scores so much on its own."""
    noise = rules.noise * abs(own)
    return own + (noise if noise > rules.least_gain else rules.least_gain)


@plain
def leaf_value(rules, node, g, h):
    """The value of a leaf with these sums in no units: a Newton step, within the bounds of the constraints."""
    bound, weight = rules.gradient_unit / rules.curvature_unit, h + rules.true_l2
    low, high, value = node.lowest * bound, node.highest * bound, -g / weight if weight > 0.0 else 0.0
    return rules.rate * (low if value < low else high if value > high else value)


@plain
def least_weight(rules, node):
    """What a child of a node must weigh.

    In boosting a least number of rows is asked, and rows are taken to be in proportion to the curvature, which is exact
    where all have the same; forests count by weight.
    """
    least = np.int64(np.ceil(rules.least * (node.sum & LOW) / node.count))
    return least if rules.least > 1.0 and least > 1 else np.int64(1)


@plain
def mark_up_to(marks, last, missing_left):
    """The bins up to ``last`` go left, and the missing bin where asked."""
    for word in range(WORDS):
        bits = last + 1 - 64 * word
        marks[word] = -1 if bits >= 64 else 0 if bits < 0 else (np.int64(1) << bits) - 1
    if missing_left:
        marks[WORDS - 1] |= np.int64(1) << 63


@plain
def clear(column, histogram):
    """Make the bins of a column's histogram zero."""
    for b in range(column.bins):
        histogram[b] = 0
    histogram[MISSING] = 0


@plain
def list_bins(column, histogram, bins, sums):
    """List the bins of a column's histogram that hold something, and their sums; returns how many."""
    count = 0
    for k in range(column.bins + 1):
        b = k if k < column.bins else np.int64(MISSING)
        bins[count] = b
        sums[count] = histogram[b]
        count += histogram[b] != 0
    return count


@plain
def move_rows(column, marks, rows, packed, here, start, stop, left, right):
    """Move the rows between two places, in order: those that go left to ``left`` on, the others to ``right`` on.

    Returns where the next one that goes left would be moved to.
    """
    from_rows, to_rows, from_packed, to_packed = rows[here], rows[1 - here], packed[here], packed[1 - here]
    for k in range(start, stop):
        row = from_rows[k]
        code = column[np.uint64(row)]
        step = (marks[code >> 6] >> (code & 63)) & 1
        place = left if step else right  # chosen without a branch that the processor would mispredict
        to_rows[place] = row
        to_packed[place] = from_packed[k]
        left += step
        right += 1 - step
    return left


@plain
def count_left(column, marks, rows, start, stop):
    """How many of the rows between two places go left."""
    count = np.int64(0)
    for k in range(start, stop):
        code = column[np.uint64(rows[k])]
        count += (marks[code >> 6] >> (code & 63)) & 1
    return count


@plain
def open_node(nodes, number, parent, start, stop, total):
    """A new node, as yet a leaf."""
    node, before = nodes[number], nodes[parent]
    node.feature = node.left = node.slot = -1
    node.depth = before.depth + 1
    node.start = start
    node.stop = stop
    node.sum = total
    node.lowest = before.lowest
    node.highest = before.highest
    node.groups = before.below


@plain
def open_root(nodes, count, total):
    """The node of all rows."""
    root = nodes[0]
    root.depth = -1
    root.lowest = -np.inf
    root.highest = np.inf
    root.below = -1
    first = np.int64(0)
    open_node(nodes, first, first, first, count, total)


@plain
def open_children(nodes, number, child, middle, rules):
    """Give a split node its children; the rows of the right one begin at ``middle``."""
    node, left, right = nodes[number], nodes[child], nodes[child + 1]
    node.left = child
    open_node(nodes, child, number, node.start, middle, node.left_sum)
    open_node(nodes, child + 1, number, middle, node.stop, node.sum - node.left_sum)
    if node.sign != 0:
        # Under a constraint the children keep to their own sides of the cut, and so do all nodes below them.
        _, below = score_of(left.sum, rules, node.lowest, node.highest)
        _, above = score_of(right.sum, rules, node.lowest, node.highest)
        cut = 0.5 * (below + above)
        if node.sign > 0:
            left.highest = right.lowest = cut
        else:
            left.lowest = right.highest = cut


@plain
def take_next(nodes, state):
    """Take the node to split next, or -1: the last, or with a limit on the leaves the one with the largest gain."""
    # Two nodes a split: with a limit of L leaves the tree is complete at 2 L - 1 nodes.
    if state.open == 0 or (state.max_leaf_nodes > 0.0 and state.nodes >= 2 * state.max_leaf_nodes - 1):
        return np.int64(-1)
    state.open -= 1
    last = nodes[state.open]
    chosen = last
    for k in range(state.open if state.max_leaf_nodes > 0.0 else 0):
        node, best = nodes[nodes[k].waiting], nodes[chosen.waiting]
        # Of equal gains the node further left goes first.
        if node.gain > best.gain or (node.gain == best.gain and node.start < best.start):
            chosen = nodes[k]
    number = chosen.waiting
    chosen.waiting = last.waiting
    return number


# --- more than two classes, or several outputs ------------------------------------------------------------------------

OWN, ONE_SIDE, OTHER_SIDE, GONE = range(4)  # rows of the class sums: node, left, right, rows with a missing value


class SplitWorkspace(NamedTuple):
    """Room to work in: places of rows in the order of their bins, and the bins; sums by class; ranks of categories.

    ``targets`` is None for classes; else what each row of the sample adds to the sums of the outputs.
    """

    places: NDArray[np.int64]
    amounts: Array
    ranks: NDArray[np.int64]
    targets: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, rows: int, sums: int, targets: NDArray[np.int64] | None = None) -> "SplitWorkspace":
        """Room for so many rows, and classes or outputs."""
        return cls(np.empty((2, rows), np.int64), np.zeros((4, sums)), np.empty((4, WIDTH), np.int64), targets)


@plain
def term(amount, entropy):
    """What one class adds to the score, but for the division by W."""
    if entropy > 0.0:
        return amount * np.log2(amount) if amount > 0.0 else 0.0
    return amount * amount


@plain
def class_score(rules, several, packed, node):
    """Sum the classes of a node; its score, its weight, and whether it holds one class alone."""
    sums, total, weight, entropy = several.amounts[OWN], 0.0, np.int64(0), rules.entropy
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
def read_codes(bins, rows, codes, node):
    """Write the bins of a node's rows to their places; whether they differ."""
    differ = False
    for k in range(node.start, node.stop):
        codes[k] = bins[np.uint64(rows[k])]
        differ |= codes[k] != codes[node.start]
    return differ


@plain
def share_of(targets, packed, chosen):
    """What a row adds to the class, or the output, ``chosen``, packed with its weight."""
    times = packed & LOW
    if targets is None:
        return (times << HALF) + times if packed >> HALF == chosen else times
    return (targets[packed >> HALF, chosen] << HALF) + times


@plain
def rank_categories(several, column, codes, packed, start, stop, chosen):
    """Replace category bins by their rank in the mean of one class or output; missing values are one more category.

    The ranks of bins are noted, -1 where there is no row. The last number is left free: it stands for missing values of
    numeric columns.
    """
    room = several.ranks
    ranks, histogram, bins, sums = room[0], room[1], room[2], room[3]
    for b in range(WIDTH):
        ranks[b] = -1
        histogram[b] = 0
    for k in range(start, stop):
        histogram[codes[k]] += share_of(several.targets, packed[k], chosen)
    count = list_bins(column, histogram, bins, sums)
    order_bins(bins, sums, count, 0.0)
    for rank in range(count):
        ranks[bins[rank]] = rank if rank < MISSING - 1 else MISSING - 1
    for k in range(start, stop):
        codes[k] = ranks[codes[k]]


@plain
def try_classes(rules, several, column, bins, rows, packed, node, seed, bar):
    """As `try_column`, for classes; NaN where the column is constant in the node.

    Categories are ordered by the share of a class drawn at random.
    """
    places, codes, amounts = several.places[0], several.places[1], several.amounts
    start, stop, least, entropy = node.start, node.stop, rules.least, rules.entropy
    if not read_codes(bins, rows, codes, node):
        return np.nan
    if column.categorical != 0:
        rank_categories(several, column, codes, packed, start, stop, draw(seed, amounts.shape[1]))
    order_rows(codes, places, several.ranks[1], start, stop)
    left, right, gone, present, gone_sum = amounts[ONE_SIDE], amounts[OTHER_SIDE], amounts[GONE], stop, np.int64(0)
    for label in range(len(gone)):
        gone[label] = 0.0
    while codes[places[present - 1]] == MISSING:
        present -= 1
        row = places[present]
        gone[packed[row] >> HALF] += packed[row] & LOW
        gone_sum += packed[row]
    cut = np.int64(-1)
    if rules.cuts > 0.0:
        cut = random_cut(rules, node, column, codes[places[start]], codes[places[max(present - 1, start)]])
    for way in range(1 if present == stop else 2):  # missing values on the right, then on the left
        left_weight, right_weight, left_part, right_part, left_sum = 0.0, 0.0, 0.0, 0.0, gone_sum * way
        for label in range(len(gone)):
            left[label] = gone[label] * way
            right[label] = amounts[OWN, label] - left[label]
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
            left_sum += packed[row]
            after = codes[places[k + 1]] if k + 1 < stop else np.int64(MISSING)
            if cut >= 0 and (codes[row] > cut or after <= cut):
                continue
            if (k + 1 < stop and after == codes[row]) or left_weight < least or right_weight < least:
                continue
            if entropy > 0.0:
                score = left_part - term(left_weight, entropy) + right_part - term(right_weight, entropy)
            else:
                score = left_part / left_weight + right_part / right_weight
            if score > bar:
                bar, heavier = score, left_weight > right_weight
                missing_left = way == 1 or (present == stop and heavier)
                note_split(several, column, node, left_sum, codes[row], after, heavier, missing_left)
    return bar


@plain
def note_split(several, column, node, left_sum, last, after, heavier, missing_left):
    """Note a split behind the code ``last``, which ``after`` follows; bins without rows follow the heavier side.

    ``left_sum`` is the packed sum on the left, by which random cuts know the node.
    """
    marks, ranks = node.marks, several.ranks[0]
    node.feature = column.number
    node.sign = 0
    node.left_sum = left_sum
    if column.categorical != 0:
        for word in range(WORDS):
            marks[word] = 0
        for b in range(WIDTH):
            if (ranks[b] >= 0 and ranks[b] <= last) or (ranks[b] < 0 and heavier):
                marks[b >> 6] |= np.int64(1) << (b & 63)
    else:
        if after != MISSING:
            last = (last + after - 1) // 2
        node.bin = last
        mark_up_to(marks, last, missing_left)


# --- several outputs --------------------------------------------------------------------------------------------------


@plain
def output_score(several, packed, node):
    """Sum the targets of a node; its score, its weight, and whether all rows have the same but for rounding."""
    sums, targets, weight, score, pure = several.amounts[OWN], several.targets, np.int64(0), 0.0, True
    first, often = packed[node.start] >> HALF, float(packed[node.start] & LOW)
    for j in range(len(sums)):
        sums[j] = 0.0
    for k in range(node.start, node.stop):
        row, times = packed[k] >> HALF, packed[k] & LOW
        weight += times
        for j in range(len(sums)):
            sums[j] += targets[row, j]
            pure &= 2.0 * abs(targets[row, j] * often - targets[first, j] * float(times)) < often + times
    for j in range(len(sums)):
        score += sums[j] * sums[j]
    return score / weight, weight, pure


@plain
def try_outputs(rules, several, column, bins, rows, packed, node, seed, bar):
    """As `try_classes`, for several outputs; categories are ordered by the mean of an output drawn at random."""
    places, codes, amounts, targets = several.places[0], several.places[1], several.amounts, several.targets
    start, stop, least, outputs = node.start, node.stop, rules.least, amounts.shape[1]
    if not read_codes(bins, rows, codes, node):
        return np.nan
    if column.categorical != 0:
        rank_categories(several, column, codes, packed, start, stop, draw(seed, outputs))
    order_rows(codes, places, several.ranks[1], start, stop)
    left, gone, total, present, weight, gone_weight = amounts[ONE_SIDE], amounts[GONE], amounts[OWN], stop, 0.0, 0.0
    gone_sum = np.int64(0)
    for j in range(outputs):
        gone[j] = 0.0
    for k in range(start, stop):
        weight += packed[k] & LOW
    while codes[places[present - 1]] == MISSING:
        present -= 1
        row = packed[places[present]]
        gone_weight += row & LOW
        gone_sum += row
        for j in range(outputs):
            gone[j] += targets[row >> HALF, j]
    cut = np.int64(-1)
    if rules.cuts > 0.0:
        cut = random_cut(rules, node, column, codes[places[start]], codes[places[max(present - 1, start)]])
    for way in range(1 if present == stop else 2):  # missing values on the right, then on the left
        left_weight, left_sum = gone_weight * way, gone_sum * way
        for j in range(outputs):
            left[j] = gone[j] * way
        for k in range(start, present):
            row = packed[places[k]]
            left_weight += row & LOW
            left_sum += row
            for j in range(outputs):
                left[j] += targets[row >> HALF, j]
            after = codes[places[k + 1]] if k + 1 < stop else np.int64(MISSING)
            right_weight = weight - left_weight
            if cut >= 0 and (codes[places[k]] > cut or after <= cut):
                continue
            if (k + 1 < stop and after == codes[places[k]]) or left_weight < least or right_weight < least:
                continue
            one, other = 0.0, 0.0
            for j in range(outputs):
                one += left[j] * left[j]
                other += (total[j] - left[j]) * (total[j] - left[j])
            score = one / left_weight + other / right_weight
            if score > bar:
                bar, heavier, last = score, left_weight > right_weight, codes[places[k]]
                missing_left = way == 1 or (present == stop and heavier)
                note_split(several, column, node, left_sum, last, after, heavier, missing_left)
    return bar


@plain
def set_score(rules, several, targets, packed, node):
    """The score of a node's rows, their weight, and whether they have one class, or one target, alone."""
    if targets is None:
        return class_score(rules, several, packed, node)
    return output_score(several, packed, node)


@plain
def try_several(rules, several, targets, column, bins, lines, node, seed, bar):
    """`try_classes`, or `try_outputs` where there are targets; ``lines`` are the rows and their packed numbers."""
    rows, packed = lines
    if targets is None:
        return try_classes(rules, several, column, bins, rows, packed, node, seed, bar)
    return try_outputs(rules, several, column, bins, rows, packed, node, seed, bar)
