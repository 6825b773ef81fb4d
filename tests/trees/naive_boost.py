"""A tree on gradients and curvatures grown by trying every split: slow, obvious, and what histograms must equal."""

import numpy as np


def score(g, h, l2):
    return g * g / (h + l2) if h + l2 > 0 else 0.0


def cuts(column, categorical, g, h, smoothing):
    """All ways to divide the rows by one column, as masks of the rows that go left."""
    missing = np.isnan(column)
    if categorical:
        groups = [column == code for code in np.unique(column[~missing])] + ([missing] if missing.any() else [])
        groups.sort(key=lambda rows: g[rows].sum() / (h[rows].sum() + smoothing))
        return [np.any(groups[:k], axis=0) for k in range(1, len(groups))]
    below = [column <= value for value in np.unique(column[~missing])]
    if not missing.any():
        return below[:-1]
    return below + [rows | missing for rows in below[:-1]]


def best_split(X, rows, g, h, categorical, l2, least, smoothing):
    """(gain, left rows, right rows) of the best split, or None."""
    best = None
    own = score(g[rows].sum(), h[rows].sum(), l2)
    for column in range(X.shape[1]):
        for mask in cuts(X[rows, column], categorical[column], g[rows], h[rows], smoothing):
            left, right = rows[mask], rows[~mask]
            if min(len(left), len(right)) < least:
                continue
            gain = score(g[left].sum(), h[left].sum(), l2) + score(g[right].sum(), h[right].sum(), l2) - own
            if gain > 1e-9 * own and (best is None or gain > best[0] * (1 + 1e-9)):
                best = gain, left, right
    return best


def grow(X, g, h, max_leaf_nodes, l2=0.0, least=1, categorical=None, smoothing=0.0):
    """The leaves (arrays of rows) of the tree grown best first."""
    categorical = np.zeros(X.shape[1], dtype=bool) if categorical is None else categorical

    def node(rows):
        return rows, best_split(X, rows, g, h, categorical, l2, least, smoothing)

    leaves = [node(np.arange(len(X)))]
    while len(leaves) < max_leaf_nodes:
        open_leaves = [k for k, (_, split) in enumerate(leaves) if split is not None]
        if not open_leaves:
            break
        chosen = max(open_leaves, key=lambda k: leaves[k][1][0])
        _, (_, left, right) = leaves.pop(chosen)
        leaves += [node(left), node(right)]
    return [rows for rows, _ in leaves]


def predict(leaves, g, h, l2=0.0):
    """-G / (H + l2) of each row's leaf."""
    f = np.zeros(len(g))
    for rows in leaves:
        f[rows] = -g[rows].sum() / (h[rows].sum() + l2)
    return f
