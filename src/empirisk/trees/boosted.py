"""Rounds of boosting: trees are added to a model until one of the limits is reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from empirisk.contract.inputs import Array
from empirisk.contract.progress import FitCallbacks
from empirisk.stop import Deadline, Ending
from empirisk.trees.binned.bins import Binning
from empirisk.trees.binned.splits import NODE
from empirisk.trees.linear_leaves import GrownTree
from empirisk.trees.objectives import Objective
from empirisk.trees.rounds import add_trees
from empirisk.trees.target_statistics import Packing, TargetStatistics


class RoundsOfTrees(Protocol):
    """Rounds of boosting, wherever the rows are."""

    binning: Binning
    baseline: Array
    stop: Callable[[], bool]

    def add(self) -> list[GrownTree] | None:
        """One round: a tree for each output, already added to the scores; None if it was stopped."""
        ...

    def loss(self) -> float:
        """Mean loss of training rows."""
        ...


@dataclass
class HeldOutRows:
    """Rows kept out of training, their loss, and their scores so far."""

    X: Array
    objective: Objective
    scores: Array

    def after(self, trees: list[GrownTree], pack: Packing) -> float:
        """The mean loss once these trees are added."""
        add_trees(trees, pack, self.X, self.scores)
        return self.objective.value(slice(None), self.scores)


@dataclass
class Boosted:
    """The model so far, and how it got there."""

    pack: Packing
    baseline: Array
    rounds: list[list[GrownTree]] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=lambda: {"loss": [], "seconds": []})
    reason: str = Ending.FINISHED
    start: float = 0.0

    def fitted(self) -> dict[str, Any]:
        """The attributes of a fitted machine: all trees, round after round, in each round one for every output."""
        trees = [tree for trees in self.rounds for tree in trees]
        return {
            "packed_": self.pack(trees),
            "baseline_": self.baseline,
            "n_estimators_": len(self.rounds),
            "history_": {name: np.array(values) for name, values in self.history.items()},
            "stopped_": self.reason,
            "feature_importances_": self.importances(trees),
        }

    def importances(self, trees: list[GrownTree]) -> Array:
        """Share of each column in the gain of all splits; zero where there is none."""
        nodes = np.concatenate([np.zeros(0, NODE), *(tree.nodes for tree in trees)], dtype=NODE)
        split = nodes["left"] >= 0
        columns = self.pack.sources[nodes["feature"][split]]
        gains = np.bincount(columns, nodes["gain"][split], minlength=int(self.pack.sources.max()) + 1)
        return gains / max(gains.sum(), np.finfo(np.float64).tiny)

    def keep_best(self) -> None:
        """Drop the rounds after the one with the least loss on the rows held out."""
        held = self.history.get("validation_loss")
        if held:
            del self.rounds[int(np.argmin(held)) + 1 :]


@dataclass
class BoostingWork:
    """The model so far, and how to add rounds to it; ``share`` is the part of the rows that it learns from."""

    rounds: RoundsOfTrees
    held: HeldOutRows | None = None
    share: float = 1.0
    statistics: TargetStatistics | None = None
    model: Boosted = field(init=False)

    def __post_init__(self) -> None:
        self.model = Boosted(Packing(self.rounds.binning, self.statistics), self.rounds.baseline)


def boost(
    work: BoostingWork, n_estimators: int, n_iter_no_change: int, deadline: Deadline, watch: FitCallbacks
) -> Boosted:
    """Add rounds until one of the limits is reached; the model keeps the best number of them."""
    rounds, held, model = work.rounds, work.held, work.model
    seconds = model.history["seconds"]
    model.start = deadline.start - (seconds[-1] if seconds else 0.0)
    if held is not None:
        model.history.setdefault("validation_loss", [])
    while len(model.rounds) < n_estimators and not deadline():
        watch.begin("round")
        with np.errstate(over="ignore"):  # a loss may overflow far from its minimum
            trees = rounds.add()
        if trees is None:
            watch.end()
            break
        _note(model, rounds, held, trees)
        if watch.end(model.fitted):
            model.reason = Ending.CALLBACK
            break
        if held is not None and _stale(model.history["validation_loss"], n_iter_no_change):
            model.reason = Ending.EARLY_STOPPING
            break
    model.reason = deadline.reason or model.reason
    model.keep_best()
    return model


def _note(model: Boosted, rounds: RoundsOfTrees, held: HeldOutRows | None, trees: list[GrownTree]) -> None:
    """Add a round to the model and to its history."""
    model.rounds.append(trees)
    model.history["loss"].append(rounds.loss())
    model.history["seconds"].append(time.perf_counter() - model.start)
    if held is not None:
        model.history["validation_loss"].append(held.after(trees, model.pack))


def _stale(loss: list[float], n_iter_no_change: int) -> bool:
    """Whether the least loss is ``n_iter_no_change`` rounds old."""
    return len(loss) - 1 - int(np.argmin(loss)) >= n_iter_no_change
