"""A tree grown by trying every split with exact fractions: slow, obvious, and what the fast one must equal."""

import itertools
import math
from functools import partial


def badness(criterion, y, w):
    """Weight times impurity of a set of rows."""
    total = sum(w)
    if total == 0:
        return 0
    if criterion == "squared":
        mean = sum(a * b for a, b in zip(w, y, strict=True)) / total
        return sum(a * (b - mean) ** 2 for a, b in zip(w, y, strict=True))
    if criterion == "absolute":
        return min(sum(a * abs(b - m) for a, b in zip(w, y, strict=True)) for m in y)
    shares = [sum(a for a, b in zip(w, y, strict=True) if b == k) / total for k in sorted(set(y))]
    if criterion == "gini":
        return total * sum(p * (1 - p) for p in shares)
    if criterion == "error":
        return total * (1 - max(shares))
    return float(total) * -sum(float(p) * math.log2(p) for p in shares if p > 0)


def value(criterion, y, w, classes):
    if criterion == "squared":
        return [sum(a * b for a, b in zip(w, y, strict=True)) / sum(w)]
    if criterion == "absolute":
        half, below = sum(w) / 2, 0
        ordered = sorted(zip(y, w, strict=True))
        for place, (point, weight) in enumerate(ordered):
            below += weight
            if below > half:
                return [point]
            if below == half:
                return [(point + ordered[place + 1][0]) / 2]
    return [sum(a for a, b in zip(w, y, strict=True) if b == k) / sum(w) for k in classes]


def category_orders(criterion, column, y, w, classes):
    """The sets of categories that may go left, in the order in which ties are decided."""
    present = sorted({x for x in column if x is not None})
    inside = {c: [i for i, x in enumerate(column) if x == c] for c in present}

    def mean(category, score):
        return sum(w[i] * score(y[i]) for i in inside[category]) / sum(w[i] for i in inside[category])

    def median(category):
        rows = sorted(inside[category], key=lambda i: y[i])
        half = sum(w[i] for i in rows) / 2
        return next(y[i] for k, i in enumerate(rows) if sum(w[j] for j in rows[: k + 1]) >= half)

    if not present:
        return []
    if criterion == "absolute":
        orders = [sorted(present, key=median)]
    elif criterion == "squared":
        orders = [sorted(present, key=lambda c: mean(c, lambda t: t))]
    elif len(classes) == 2:
        orders = [sorted(present, key=lambda c: mean(c, lambda t: t == classes[1]))]
    elif len(present) <= 8:
        subsets = (
            s
            for k in range(2 ** (len(present) - 1))
            for s in [[present[0]] + [c for i, c in enumerate(present[1:]) if k >> i & 1]]
        )
        return [set(s) for s in subsets]
    else:
        orders = [sorted(present, key=partial(mean, score=k.__eq__)) for k in classes]
    return [set(order[:count]) for order in orders for count in range(1, len(order) + 1)]


def divisions(criterion, column, categorical, y, w, classes):
    """Every split of a column: (threshold or set of categories, whether missing rows go left, left mask)."""
    missing = any(x is None for x in column)
    present = sorted({x for x in column if x is not None})
    if categorical:
        sets = category_orders(criterion, column, y, w, classes)
        tests = [(s, [x in s for x in column]) for s in sets]
    else:
        middles = [(a + b) / 2 for a, b in itertools.pairwise(present)] + [math.inf]
        tests = [(t, [x is not None and x <= t for x in column]) for t in middles]
    for test, mask in tests:
        for missing_left in (True, False) if missing else (None,):
            yield (
                test,
                missing_left,
                [bool(missing_left) if x is None else m for x, m in zip(column, mask, strict=True)],
            )


def grow(
    X, y, w, *, criterion, categorical=(), classes=(), max_depth=math.inf, least=0, min_impurity_decrease=0, depth=0
):
    """Nested dictionaries; X is a list of rows with None for a missing value, w are positive fractions."""
    node = {"value": value(criterion, y, w, classes), "weight": sum(w), "impurity": badness(criterion, y, w) / sum(w)}
    best = None
    if depth < max_depth and len(set(y)) > 1:
        for feature in range(len(X[0])):
            column = [row[feature] for row in X]
            for test, missing_left, mask in divisions(criterion, column, feature in categorical, y, w, classes):
                sides = [[i for i, m in enumerate(mask) if m is wanted] for wanted in (True, False)]
                weights = [sum(w[i] for i in side) for side in sides]
                if min(weights) == 0 or min(weights) < least:
                    continue
                parts = sum(badness(criterion, [y[i] for i in s], [w[i] for i in s]) for s in sides)
                gain = badness(criterion, y, w) - parts
                slack = 1e-10 if criterion == "entropy" else 0  # logarithms are rounded
                if best is None or gain > best[0] + slack:
                    heavier = weights[0] >= weights[1]
                    best = gain, feature, test, heavier if missing_left is None else missing_left, sides
    if best is None or best[0] < min_impurity_decrease:
        return node
    gain, feature, test, missing_left, sides = best
    rules = {"criterion": criterion, "categorical": categorical, "classes": classes, "max_depth": max_depth}
    rules |= {"least": least, "min_impurity_decrease": min_impurity_decrease, "depth": depth + 1}
    left, right = (grow([X[i] for i in s], [y[i] for i in s], [w[i] for i in s], **rules) for s in sides)
    present = {row[feature] for row in X} - {None}
    return node | {
        "feature": feature,
        "test": test,
        "missing_left": missing_left,
        "gain": gain,
        "left": left,
        "right": right,
        "present": present,
    }
