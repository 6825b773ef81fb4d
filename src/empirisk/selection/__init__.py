"""Selection: choosing what the equation leaves open, and judging the choice honestly."""

from empirisk.selection.balance import Balanced
from empirisk.selection.compare import Comparison, Difference, compare
from empirisk.selection.curves import LearningCurve, ValidationCurve, learning_curve, validation_curve
from empirisk.selection.evaluate import evaluate
from empirisk.selection.features import GreedySelection, L1Selection, Step
from empirisk.selection.intervals import Score
from empirisk.selection.path import Path, path
from empirisk.selection.recipes import (
    bag_of_words,
    box_cox_features,
    box_cox_target,
    log_features,
    log_target,
    standardised,
)
from empirisk.selection.results import EvaluationResult, Fold
from empirisk.selection.search import Search, search
from empirisk.selection.threshold import Threshold, ThresholdChoice, choose_threshold

__all__ = [
    "Balanced",
    "Comparison",
    "Difference",
    "EvaluationResult",
    "Fold",
    "GreedySelection",
    "L1Selection",
    "LearningCurve",
    "Path",
    "Score",
    "Search",
    "Step",
    "Threshold",
    "ThresholdChoice",
    "ValidationCurve",
    "bag_of_words",
    "box_cox_features",
    "box_cox_target",
    "choose_threshold",
    "compare",
    "evaluate",
    "learning_curve",
    "log_features",
    "log_target",
    "path",
    "search",
    "standardised",
    "validation_curve",
]
