"""Selection: choosing what the equation leaves open."""

from empirisk.selection.balance import Balanced
from empirisk.selection.columns import GreedySelection, L1Selection, Step
from empirisk.selection.path import Path, path
from empirisk.selection.search import Search, search
from empirisk.selection.threshold import Threshold, ThresholdChoice, choose_threshold

__all__ = [
    "Balanced",
    "GreedySelection",
    "L1Selection",
    "Path",
    "Search",
    "Step",
    "Threshold",
    "ThresholdChoice",
    "choose_threshold",
    "path",
    "search",
]
