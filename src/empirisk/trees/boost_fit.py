"""The loop of boosting: rounds until the number asked for, early stopping, the clock, Ctrl-C or a callback ends it."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.clock import Clock, Watch
from empirisk.trees.bins import BinnedRows, Binning
from empirisk.trees.boost_loss import Objective
from empirisk.trees.boost_rounds import Rounds, add_to
from empirisk.trees.crew import Crew
from empirisk.trees.hist_grow import BinnedTree
from empirisk.trees.nodes import Nodes

Array = NDArray[np.float64]


@dataclass
class Held:
    """Rows kept out of training: their bins, their loss, and their scores so far."""

    rows: BinnedRows
    objective: Objective
    scores: Array

    def after(self, trees: list[BinnedTree], crew: Crew) -> float:
        """Loss of the rows after one more round."""
        add_to(trees, self.rows, self.scores, crew)
        return self.objective.value(slice(None), self.scores)


@dataclass
class Boosted:
    """The model so far, and how it got there."""

    binning: Binning
    baseline: Array
    rounds: list[list[BinnedTree]] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=lambda: {"loss": [], "seconds": []})
    reason: str = "n_estimators"

    def nodes(self) -> Nodes:
        """All trees, round after round, in each round one for every output."""
        trees = [tree.nodes(self.binning) for trees in self.rounds for tree in trees]
        if trees:
            return Nodes.join(trees)
        nothing = np.zeros((0, 1))
        counts = self.binning.category_counts
        return Nodes.from_splits([], [], [], nothing, len(counts), roots=[], category_counts=counts)

    def fitted(self) -> dict[str, Any]:
        """The attributes of a fitted machine."""
        return {
            "packed_": self.nodes().pack(),
            "baseline_": self.baseline,
            "n_estimators_": len(self.rounds),
            "history_": {name: np.array(values) for name, values in self.history.items()},
            "stopped_by_": self.reason,
        }

    def keep_best(self) -> None:
        """Drop the rounds after the one with the least loss on the rows held out."""
        held = self.history.get("validation_loss")
        if held:
            del self.rounds[int(np.argmin(held)) + 1 :]


def boost(rounds: Rounds, n_estimators: int, held: Held | None, patience: int, clock: Clock, watch: Watch) -> Boosted:
    """Add rounds until one of the limits is reached; the model keeps the best number of them."""
    model = Boosted(rounds.binning, rounds.baseline)
    if held is not None:
        model.history["validation_loss"] = []
    while len(model.rounds) < n_estimators and not clock():
        watch.begin("round")
        with np.errstate(over="ignore"):  # a loss may overflow far from its minimum
            trees = rounds.add()
        if trees is None:
            watch.end()
            break
        _note(model, rounds, held, clock, trees)
        if watch.end(model.fitted):
            model.reason = "callback"
            break
        if held is not None and _stale(model.history["validation_loss"], patience):
            model.reason = "early_stopping"
            break
    model.reason = clock.reason or model.reason
    model.keep_best()
    return model


def _note(model: Boosted, rounds: Rounds, held: Held | None, clock: Clock, trees: list[BinnedTree]) -> None:
    """Add a round to the model and to its history."""
    model.rounds.append(trees)
    model.history["loss"].append(rounds.loss())
    model.history["seconds"].append(time.perf_counter() - clock.start)
    if held is not None:
        model.history["validation_loss"].append(held.after(trees, rounds.crew))


def _stale(loss: list[float], patience: int) -> bool:
    """Whether the least loss is ``patience`` rounds old."""
    return len(loss) - 1 - int(np.argmin(loss)) >= patience
