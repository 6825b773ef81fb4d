"""Selection: choosing what the equation leaves open."""

from empirisk.selection.balance import Balanced
from empirisk.selection.column_choice import GreedySelection, L1Selection, Step
from empirisk.selection.hypotheses import HypothesisSearch
from empirisk.selection.information import InformationSelection
from empirisk.selection.path import Path, path
from empirisk.selection.search import Search, search
from empirisk.selection.structural import NestedClass, StructuralRisk, structural_risk
from empirisk.selection.subset import BestSubset
from empirisk.selection.threshold import Threshold, ThresholdChoice, choose_threshold

__all__ = [
    "Balanced",
    "BestSubset",
    "GreedySelection",
    "HypothesisSearch",
    "InformationSelection",
    "L1Selection",
    "NestedClass",
    "Path",
    "Search",
    "Step",
    "StructuralRisk",
    "Threshold",
    "ThresholdChoice",
    "choose_threshold",
    "path",
    "search",
    "structural_risk",
]
