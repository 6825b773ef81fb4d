"""Growth of a tree of boosting by a team of threads that meet inside compiled code.

Every column has a histogram of packed sums in each node. Of two siblings only the smaller one's is summed up from its
rows: the other is what remains of the parent's. The work is cut into phases of chunks (`empirisk.trees.binned.team`);
sums of whole numbers are exact, and what is summed in floats is summed in fixed pieces: the number of threads changes
no bit.
"""

import numpy as np

from empirisk.trees.binned.cuts import (
    BIN,
    COUNT,
    DEPTH,
    FEATURE,
    GAIN,
    HALF,
    HIGHEST,
    INTS,
    LEAST,
    LEAST_GAIN,
    LEFT,
    LEFT_SUM,
    LOW,
    LOWEST,
    MARKS,
    MAX_DEPTH,
    MAX_LEAVES,
    NOISE,
    SLOT,
    START,
    STOP,
    SUM,
    VALUE,
    WIDTH,
    list_bins,
    score_of,
    try_column,
)
from empirisk.trees.binned.grow import NODES, OPEN, count_left, move_rows, open_children, open_root, take_next
from empirisk.trees.binned.team import ENDED, atomic_swap, claim, fetch_row, is_last, open_phase
from empirisk.trees.compiled import inner, loop

#: Places of the whole numbers that a team shares, after the counters of a growing tree (see `binned.grow`):
#: what the chunks do now; the node being split; its children, the smaller and the larger one; bit 0 (1) where the
#: smaller (larger) one may be split; how many histograms are free; whether all rows are in the sample; whether rounding
#: alternates; steps since the last pause; pieces of leaves; how often histograms were filled; whether leaves get
#: values; the number of rows.
PHASE, NODE, SMALLER, LARGER, LIVE, FREE, EVERY, ALTERNATE, SPENT, PIECES, FILLING, VALUES, ROWS = range(3, 16)
STATE = 16
#: Phases: pack the rows and sum the root's; count the rows that go left; sum a node's; move rows and sum those of the
#: smaller child; search columns for splits; sum the pieces of the leaves; add leaf values to the scores; choose a node.
PACK, TALLY, BUILD, MOVE, SEARCH, SUM_LEAVES, ADD, CHOOSE = range(8)
DONE, PAUSED = 1, 2  # why a team stopped
#: Reals that a team shares: units of gradient and curvature, l2, learning rate.
GRADIENT_UNIT, CURVATURE_UNIT, TRUE_L2, RATE = range(4)

SCRATCH = 2  # histograms for nodes that cannot keep theirs, after one for each thread
COLUMNS = 2  # columns searched in one chunk
STEPS = 1 << 16  # additions in one chunk of rows, about: a small part of a millisecond
LEAST_ROWS = 512  # rows in a chunk at least
PIECE = 1 << 14  # rows of a leaf summed at once: a fixed number, so that sums do not depend on threads
PATIENCE = 1 << 28  # additions between two returns to Python
GOLDEN = 40503  # 2^16 / golden ratio: its multiples spread evenly over 16 bits
AHEAD = 32  # rows asked of memory before they are summed
APART = 8  # distance of numbers that different threads write: a processor's cache line


@inner
def sum_rows(codes, rows, packed, start, stop, histogram):
    """Add the packed numbers of rows to the bins of every column."""
    width, k = np.uint64(codes.shape[1]), start
    # Four rows at a time: their additions overlap instead of waiting for one another. Unsigned numbers index without
    # a test for negative ones.
    while k + 4 <= stop:
        a, b, c, d = np.uint64(rows[k]), np.uint64(rows[k + 1]), np.uint64(rows[k + 2]), np.uint64(rows[k + 3])
        at_a, at_b, at_c, at_d = packed[k], packed[k + 1], packed[k + 2], packed[k + 3]
        for ahead in range(k + AHEAD, min(k + AHEAD + 4, stop)):
            fetch_row(codes, np.int64(rows[ahead]))
        for j in range(width):
            histogram[j, codes[a, j]] += at_a
            histogram[j, codes[b, j]] += at_b
            histogram[j, codes[c, j]] += at_c
            histogram[j, codes[d, j]] += at_d
        k += 4
    while k < stop:
        row = np.uint64(rows[k])
        for j in range(width):
            histogram[j, codes[row, j]] += packed[k]
        k += 1


@inner
def open_pair(threads, state, table, rules, tree, tally):
    """After PACK or TALLY: the root, or the children of the node that is split; which of them may be split further."""
    (nodes, reals), node, phase = tree, state[NODE], state[PHASE]
    _, _, features, kinds = table
    step = max(STEPS // features.shape[0], LEAST_ROWS)
    size = nodes[node, STOP] - nodes[node, START] if phase == TALLY else state[ROWS]
    left, on_left = np.int64(0), np.int64(0)
    for k in range(size // step + 1):
        count = tally[k, 0]
        tally[k, 0] = left  # where the rows of this chunk that go left begin
        left += count
        on_left += tally[k, 1]
    small, large = np.int64(0), np.int64(-1)
    if phase == PACK:
        open_root(nodes, reals, state, size, left)
        nodes[0, COUNT] = on_left
        nodes[0, SLOT] = threads + SCRATCH
    else:
        small = open_children(nodes, reals, state, node, nodes[node, START] + left, kinds, rules)
        large = small + 1
        nodes[small, COUNT] = on_left
        nodes[large, COUNT] = nodes[node, COUNT] - on_left
        if 2 * left > size:
            small, large = large, small
        nodes[large, SLOT] = nodes[node, SLOT]
    state[SMALLER] = small
    state[LARGER] = large
    state[LIVE] = 0
    full = rules[MAX_LEAVES] > 0.0 and state[NODES] >= 2 * rules[MAX_LEAVES] - 1
    for side in range(2):
        child = large if side else small
        if child < 0 or full or nodes[child, DEPTH] >= rules[MAX_DEPTH] or nodes[child, SUM] & LOW < 2:
            continue
        if nodes[child, COUNT] >= 2 * rules[LEAST] and nodes[child, STOP] - nodes[child, START] > 1:
            state[LIVE] |= 1 << side


@inner
def settle_pair(threads, state, tree, frontier, slots, first):
    """After SEARCH: keep the best offer for each child, and give back the histograms of those that stay leaves."""
    nodes, reals = tree
    for side in range(2):
        child = state[LARGER] if side else state[SMALLER]
        if child < 0:
            continue
        reals[child, GAIN] = 0.0
        best = first + side
        for place in range(first + side, nodes.shape[0] if state[LIVE] >> side & 1 else 0, 2):
            if reals[place, GAIN] > reals[best, GAIN]:
                best = place
        if state[LIVE] >> side & 1 and reals[best, GAIN] > 0.0:
            reals[child, GAIN] = reals[best, GAIN]
            frontier[state[OPEN]] = child
            state[OPEN] += 1
            for place in range(INTS):
                if place <= BIN or place >= LEFT_SUM:
                    nodes[child, place] = nodes[best, place]
        if nodes[child, SLOT] < threads + SCRATCH:
            nodes[child, SLOT] = -1
        elif reals[child, GAIN] == 0.0:
            slots[state[FREE]] = nodes[child, SLOT]
            state[FREE] += 1
            nodes[child, SLOT] = -1


@inner
def value_leaves(state, units, reals, pieces, sums):
    """After SUM_LEAVES: the value of each leaf, a Newton step."""
    g, h = 0.0, 0.0
    for p in range(state[PIECES]):
        g += sums[p, 0]
        h += sums[p, 1]
        leaf = pieces[p, 0]
        if p + 1 == state[PIECES] or pieces[p + 1, 0] != leaf:
            weight, bound = h + units[TRUE_L2], units[GRADIENT_UNIT] / units[CURVATURE_UNIT]
            value = -g / weight if weight > 0.0 else 0.0
            value = min(max(value, reals[leaf, LOWEST] * bound), reals[leaf, HIGHEST] * bound)
            reals[leaf, VALUE] = value * units[RATE]
            g, h = 0.0, 0.0


@inner
def choose(threads, state, rules, tree, frontier, pieces):
    """The phase that splits the next node, or, after the last, the one that sums the leaves."""
    nodes, reals = tree
    node = take_next(nodes, reals, state, frontier, rules)
    state[NODE] = node
    if node >= 0:
        if nodes[node, SLOT] >= 0:
            return TALLY
        nodes[node, SLOT] = threads + 1
        return BUILD
    state[PIECES] = 0
    for leaf in range(state[NODES]):
        if nodes[leaf, LEFT] < 0:
            for start in range(nodes[leaf, START], nodes[leaf, STOP], PIECE):
                pieces[state[PIECES], 0] = leaf
                pieces[state[PIECES], 1] = start
                pieces[state[PIECES], 2] = min(start + PIECE, nodes[leaf, STOP])
                state[PIECES] += 1
    return SUM_LEAVES


@inner
def lead(threads, counters, state, table, rules, memory, tree, lists):
    """What the thread that finished the last chunk of a phase does: draw the sum, and open the next phase."""
    (rules, units), (nodes, reals), width = rules, tree, table[2].shape[0]
    _, _, histograms, stamps, _ = memory
    frontier, tally, pieces, sums, slots = lists
    phase, first = state[PHASE], nodes.shape[0] - 2 * width
    if phase < BUILD:
        open_pair(threads, state, table, rules, tree, tally)
        if phase == TALLY:
            small = state[SMALLER]
            nodes[small, SLOT] = threads
            if state[LIVE] > 0 and state[FREE] > 0:
                state[FREE] -= 1
                nodes[small, SLOT] = slots[state[FREE]]
        phase = MOVE if phase == TALLY else SEARCH
    elif phase == BUILD:
        if threads > 1:
            for j in range(width):
                gather(histograms, stamps, state[FILLING], threads, j, histograms[nodes[state[NODE], SLOT], j])
        phase = TALLY
    elif phase == MOVE:
        phase = SEARCH
    elif phase == SEARCH:
        settle_pair(threads, state, tree, frontier, slots, first)
        phase = CHOOSE
    elif phase == SUM_LEAVES:
        value_leaves(state, units, reals, pieces, sums)
        phase = ADD
    ended = DONE if state[PHASE] == ADD else 0
    if phase == CHOOSE:
        if state[SPENT] > PATIENCE:
            state[SPENT] = 0
            ended = PAUSED
        else:
            phase = choose(threads, state, rules, tree, frontier, pieces)
    if (phase == ADD and state[EVERY] == 0) or (phase >= SUM_LEAVES and phase < CHOOSE and state[VALUES] == 0):
        ended = DONE
    state[PHASE] = phase
    if ended > 0:
        atomic_swap(counters, ENDED, ended)
        return
    chunks = state[PIECES]
    if phase == SEARCH:  # where there is nothing to search, the phase settles the histograms
        chunks = (width + COLUMNS - 1) // COLUMNS if state[LIVE] > 0 else 1
    elif phase <= MOVE:
        size = nodes[state[NODE], STOP] - nodes[state[NODE], START]
        chunks = size // max(STEPS // width, LEAST_ROWS) + 1
        state[SPENT] += size * (width if phase != TALLY else 1)
        state[FILLING] += 1 if phase >= BUILD else 0
    open_phase(counters, chunks)


@inner
def gather(histograms, stamps, filling, threads, j, total):
    """Sum what the threads have summed of a column."""
    for b in range(WIDTH):
        total[b] = 0
    for thread in range(threads):
        if stamps[thread * APART] == filling:
            for b in range(WIDTH):
                total[b] += histograms[thread, j, b]


@inner
def pack_rows(state, units, data, rows, packed, start, stop):
    """Round gradient and curvature of rows to whole units; their packed sum, and how many rows they stand for."""
    derivatives, times, _ = data
    total, count, every, alternate = np.int64(0), np.int64(0), state[EVERY] != 0, state[ALTERNATE] != 0
    per_gradient, per_curvature = 1.0 / units[GRADIENT_UNIT], 1.0 / units[CURVATURE_UNIT]  # powers of two
    for k in range(start, stop):
        row = k if every else np.int64(rows[0, k])
        # Equal rows that one row stands for are rounded as one of them is. With coarse units, rows are rounded up and
        # down in turns: rounding to the nearest would shift all rows of a kind alike.
        often = np.int64(1) if times.shape[0] == 0 else np.int64(times[row])
        offset = ((row * GOLDEN) & 0xFFFF) / 65536.0 if alternate else 0.5
        g, h = derivatives[0, row] * per_gradient, derivatives[1, row] * per_curvature
        if often > 1:
            g, h = g / often, h / often
        both = ((np.int64(np.floor(g + offset)) << HALF) + np.int64(np.floor(h + offset))) * often
        rows[0, k] = row
        packed[0, k] = both
        total += both
        count += often
    return total, count


@inner
def row_chunk(thread, threads, state, table, units, data, memory, nodes, tally):
    """One chunk of a phase over rows; `chunk` is in ``state`` behind the shared numbers."""
    codes, columns, features, _ = table
    rows, packed, histograms, stamps, _ = memory
    times, phase, node, chunk = data[1], state[PHASE], state[NODE], state[STATE + thread * APART]
    step = max(STEPS // features.shape[0], LEAST_ROWS)
    begin, end, here, slot = np.int64(0), state[ROWS], np.int64(0), np.int64(threads + SCRATCH)
    if phase != PACK:
        begin, end, here, slot = nodes[node, START], nodes[node, STOP], nodes[node, DEPTH] & 1, nodes[node, SLOT]
    start, stop = begin + chunk * step, min(begin + (chunk + 1) * step, end)
    if phase == PACK:
        tally[chunk, 0], tally[chunk, 1] = pack_rows(state, units, data, rows, packed, start, stop)
    elif phase == TALLY:
        column, count = columns[nodes[node, FEATURE]], np.int64(0)
        tally[chunk, 0] = tally[chunk, 1] = count_left(column, nodes, node, rows, start, stop)
        for k in range(start, stop if times.shape[0] > 0 else start):
            code = np.int64(column[np.uint64(rows[here, k])])
            count += ((nodes[node, MARKS + (code >> 6)] >> (code & 63)) & 1) * times[rows[here, k]]
        if times.shape[0] > 0:
            tally[chunk, 1] = count
        return
    elif phase == MOVE:
        child, small = nodes[node, LEFT], state[SMALLER]
        left = begin + tally[chunk, 0]
        right = nodes[child + 1, START] + (start - begin) - tally[chunk, 0]
        after = move_rows(columns[nodes[node, FEATURE]], nodes, node, rows, packed, start, stop, left, right)
        # What is summed now: the rows of the smaller child among those moved.
        here, slot = 1 - here, nodes[small, SLOT]
        stop = right + (stop - start) - (after - left) if small > child else after
        start = right if small > child else left
        if state[LIVE] == 0:
            return
    if stop > start:
        histogram = histograms[thread if threads > 1 else slot]
        if stamps[thread * APART] != state[FILLING]:
            stamps[thread * APART] = state[FILLING]
            for j in range(histogram.shape[0]):
                for b in range(WIDTH):
                    histogram[j, b] = 0
        sum_rows(codes, rows[here], packed[here], start, stop, histogram)


@inner
def search_column(threads, state, j, table, rules, memory, tree, room):
    """Look for the best splits of a pair of siblings (or of the root) in one column."""
    _, _, features, kinds = table
    _, _, histograms, stamps, _ = memory
    (nodes, reals), column = tree, np.int64(features[j])
    own = histograms[nodes[state[SMALLER], SLOT], j]
    if threads > 1:
        gather(histograms, stamps, state[FILLING], threads, j, own)
    for side in range(2):
        child = state[LARGER] if side else state[SMALLER]
        place = nodes.shape[0] - 2 * features.shape[0] + 2 * j + side
        reals[place, GAIN] = 0.0
        if not state[LIVE] >> side & 1:
            continue
        histogram = histograms[nodes[child, SLOT], j]
        if side:
            for b in range(WIDTH):
                histogram[b] -= own[b]
        total = nodes[child, SUM]
        # How many rows a side has is not in the histogram: it is taken to be in proportion to the curvature, which is
        # exact where all rows have the same.
        least = np.int64(1)
        if rules[LEAST] > 1.0:
            least = max(least, np.int64(np.ceil(rules[LEAST] * (total & LOW) / nodes[child, COUNT])))
        score, _ = score_of(total, rules, reals[child, LOWEST], reals[child, HIGHEST])
        bar = score + max(rules[LEAST_GAIN], rules[NOISE] * abs(score))
        count = list_bins(histogram, room)
        if count > 1:
            best = try_column(column, kinds, room, count, least, rules, tree, (child, place), bar)
            reals[place, GAIN] = best - score if best > bar else 0.0


@loop
def work(thread, threads, counters, state, table, rules, data, memory, growing):
    """One thread's share in a tree: take chunks until the team has finished, or pauses so that Python can be heard.

    ``table``: bins by row and by column, columns to look at, kinds of columns. ``rules``: rules and units. ``data``:
    derivatives, times, scores. ``memory``: rows, packed numbers, histograms, stamps, room for each thread.
    ``growing``: the tree (nodes, reals), then frontier, tally, pieces, their sums, free slots.
    """
    tree, lists = growing
    nodes, reals = tree
    derivatives, _, scores = data
    while True:
        chunk = claim(counters)
        if chunk < 0:
            return
        phase = state[PHASE]
        if phase <= MOVE:
            state[STATE + thread * APART] = chunk
            row_chunk(thread, threads, state, table, rules[1], data, memory, nodes, lists[1])
        elif phase == SEARCH and state[LIVE] > 0:
            for j in range(chunk * COLUMNS, min((chunk + 1) * COLUMNS, table[2].shape[0])):
                search_column(threads, state, j, table, rules[0], memory, tree, memory[4][thread])
        elif SUM_LEAVES <= phase <= ADD:
            pieces, sums = lists[2], lists[3]
            leaf, g, h = pieces[chunk, 0], 0.0, 0.0
            rows, value = memory[0][nodes[leaf, DEPTH] & 1], reals[leaf, VALUE]
            for k in range(pieces[chunk, 1], pieces[chunk, 2]):
                row = np.uint64(rows[k])
                if phase == ADD:
                    scores[row] += value
                else:
                    g += derivatives[0, row]
                    h += derivatives[1, row]
            sums[chunk, 0] = g
            sums[chunk, 1] = h
        if is_last(counters):
            lead(threads, counters, state, table, rules, memory, tree, lists)
