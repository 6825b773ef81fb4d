"""A graph: what a model computes, as operations in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from empirisk.exports.tensor import Node, Tensor


@dataclass(frozen=True)
class Graph:
    """The inputs, the named outputs, and what leads from one to the other.

    Attributes
    ----------
    inputs : tuple of Tensor
        With the rows that were traced.
    outputs : dict of Tensor
        By name.
    about : str
        What it is, for people.
    """

    inputs: tuple[Tensor, ...]
    outputs: dict[str, Tensor]
    about: str = ""

    def nodes(self) -> list[Node]:
        """All operations that the outputs need, each after those that it is applied to; without inputs and constants.

        >>> import numpy as np
        >>> from empirisk.exports.tensor import entry
        >>> x = entry("x", np.ones((1, 1)))
        >>> [node.operation for node in Graph((x,), {"y": np.exp(x) * x}).nodes()]
        ['Exp', 'Mul']
        """
        return [node for node in _in_order(tensor.node for tensor in self.outputs.values()) if node.inputs]


def _in_order(ends: Iterable[Node]) -> list[Node]:
    """Nodes after what they need. A list instead of calls within calls: sums of many members are deep."""
    done: dict[int, Node] = {}
    for end in ends:
        waiting = [end]
        while waiting:
            node = waiting[-1]
            missing = [each.node for each in node.inputs if id(each.node) not in done]
            if missing:
                waiting += missing
            else:
                done[id(waiting.pop())] = node
    return list(done.values())
