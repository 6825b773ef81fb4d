"""A tree as text and as a table of rules."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.outputs import ends_of
from empirisk.extras import data_frame
from empirisk.protocols import TreeModel
from empirisk.trees.nodes import WORD, Nodes
from empirisk.trees.table_columns import Columns

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Labels:
    """Words for the nodes of a tree: the columns' names, and the classes of each label (None for numbers)."""

    nodes: Nodes
    columns: Columns
    classes: list[NDArray] | None = None

    @classmethod
    def of(cls, tree: TreeModel) -> "Labels":
        """Those of a fitted tree."""
        classes = getattr(tree, "classes_", None)
        return cls(tree.nodes_, tree.columns_, [classes] if isinstance(classes, np.ndarray) else classes)

    def condition(self, node: int) -> str:
        """What sends a row left, as in ``age <= 30.5 or missing``."""
        column = int(self.nodes.feature[node])
        name = self.columns.names[column]
        if self.nodes.category_start[node] >= 0:
            test = f"{name} in {_listed(self.columns.describe(column, self.left_codes(node)))}"
        elif np.isinf(self.nodes.threshold[node]):
            return f"{name} is present"
        else:
            test = f"{name} <= {_number(self.nodes.threshold[node])}"
        missing = self.nodes.missing_left[node] and self.columns.missing[column]
        return f"{test} or missing" if missing else test

    def left_codes(self, node: int) -> list[int]:
        """The category codes that go left."""
        start = self.nodes.category_start[node]
        count = self.nodes.category_counts[self.nodes.feature[node]]
        bits = self.nodes.category_bits
        return [code for code in range(count) if int(bits[start + code // WORD]) >> (code % WORD) & 1]

    def prediction(self, node: int) -> str:
        """What the node predicts, as in ``spam (0.93)`` or ``4.2``."""
        if self.classes is None:
            return ", ".join(_number(output) for output in self.nodes.value[node])
        return ", ".join(f"{names[int(p.argmax())]} ({_number(p.max(), 3)})" for names, p in self.shares(node))

    def shares(self, node: int) -> list[tuple[NDArray, NDArray]]:
        """The classes of each label, and their shares in the node."""
        classes = self.classes or []
        return list(zip(classes, np.split(self.nodes.value[node], ends_of(classes)[:-1]), strict=True))


def text(labels: Labels, max_depth: int | None = None) -> str:
    """The tree as indented lines, down to a depth."""
    lines: list[str] = []
    waiting: list[tuple[int, str, str, str, int]] = [(0, "", "", "", 0)]
    while waiting:
        node, first, rest, answer, depth = waiting.pop()
        weight = _number(labels.nodes.weight[node])
        if labels.nodes.feature[node] < 0 or depth == max_depth:
            below = "" if labels.nodes.feature[node] < 0 else " ..."
            lines.append(f"{first}{answer}{labels.prediction(node)}  weight {weight}{below}")
            continue
        lines.append(f"{first}{answer}{labels.condition(node)}  weight {weight}")
        left = int(labels.nodes.left[node])
        waiting.append((left + 1, f"{rest}└─ ", f"{rest}   ", "no:  ", depth + 1))
        waiting.append((left, f"{rest}├─ ", f"{rest}│  ", "yes: ", depth + 1))
    return "\n".join(lines)


@dataclass
class _Range:
    """What a path allows in one column: values in (low, high], or some categories; missing values or not."""

    low: float = -np.inf
    high: float = np.inf
    codes: set[int] | None = None
    missing: bool = True


@dataclass
class _Path:
    node: int
    depth: int = 0
    ranges: dict[int, _Range] = field(default_factory=dict)


def rules(labels: Labels) -> "pl.DataFrame":
    """One row for each leaf, from left to right: its rule, weight, impurity and prediction."""
    nodes, table = labels.nodes, []
    waiting = [_Path(0)]
    while waiting:
        path = waiting.pop()
        if nodes.feature[path.node] >= 0:
            waiting += [_step(labels, path, left=False), _step(labels, path, left=True)]
            continue
        rule = " and ".join(_worded(labels, column, path.ranges[column]) for column in sorted(path.ranges))
        row = {"leaf": path.node, "rule": rule or "always", "depth": path.depth}
        row |= {"weight": nodes.weight[path.node], "impurity": nodes.impurity[path.node]}
        table.append(row | _predicted(labels, path.node))
    return data_frame(table)


def _predicted(labels: Labels, node: int) -> dict:
    if labels.classes is None:
        value = labels.nodes.value[node].tolist()
        names = ["prediction"] if len(value) == 1 else [f"prediction {output}" for output in range(len(value))]
        return dict(zip(names, value, strict=True))
    found = {}
    for number, (classes, shares) in enumerate(labels.shares(node)):
        which = "" if len(labels.classes) == 1 else f" {number}"
        found[f"prediction{which}"] = classes.tolist()[int(np.argmax(shares))]
        found |= {f"P{which}({name})": p for name, p in zip(classes, shares.tolist(), strict=True)}
    return found


def _step(labels: Labels, path: _Path, left: bool) -> _Path:
    """The path one node further."""
    nodes, node = labels.nodes, path.node
    column = int(nodes.feature[node])
    before = path.ranges.get(column, _Range())
    low, high, codes = before.low, before.high, before.codes
    if nodes.category_start[node] >= 0:
        chosen, count = set(labels.left_codes(node)), int(nodes.category_counts[column])
        chosen = chosen if left else set(range(count)) - chosen
        codes = chosen if codes is None else codes & chosen
    elif left:
        high = min(high, nodes.threshold[node])
    else:
        low = max(low, nodes.threshold[node])
    missing = before.missing and bool(nodes.missing_left[node]) == left
    ranges = path.ranges | {column: _Range(low, high, codes, missing)}
    return _Path(int(nodes.left[node]) + (0 if left else 1), path.depth + 1, ranges)


def _worded(labels: Labels, column: int, part: _Range) -> str:
    name = labels.columns.names[column]
    missing = part.missing and labels.columns.missing[column]
    if part.codes is not None:
        test = f"{name} in {_listed(labels.columns.describe(column, sorted(part.codes)))}" if part.codes else ""
    elif part.low == np.inf:
        test = ""
    elif np.isfinite(part.low) and np.isfinite(part.high):
        test = f"{_number(part.low)} < {name} <= {_number(part.high)}"
    elif np.isfinite(part.low):
        test = f"{name} > {_number(part.low)}"
    elif np.isfinite(part.high):
        test = f"{name} <= {_number(part.high)}"
    else:
        test = f"{name} is present"
    if not test:
        return f"{name} is missing"
    return f"({test} or missing)" if missing else test


def _number(value: float, digits: int = 6) -> str:
    return f"{value:.{digits}g}"


def _listed(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"
