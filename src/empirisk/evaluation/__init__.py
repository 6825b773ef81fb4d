"""Evaluation: how good a machine is on rows it has not seen, and how sure that is."""

from empirisk.evaluation.compare import Comparison, Difference, compare
from empirisk.evaluation.curves import LearningCurve, ValidationCurve, learning_curve, validation_curve
from empirisk.evaluation.evaluate import evaluate
from empirisk.evaluation.intervals import Score
from empirisk.evaluation.ranking import (
    CostCurve,
    Dominance,
    Gains,
    Randomised,
    ROCHull,
    cost_curve,
    dominance,
    gains,
    precision_at_k,
    roc_hull,
)
from empirisk.evaluation.results import EvaluationResult, Fold

__all__ = [
    "Comparison",
    "CostCurve",
    "Difference",
    "Dominance",
    "EvaluationResult",
    "Fold",
    "Gains",
    "LearningCurve",
    "ROCHull",
    "Randomised",
    "Score",
    "ValidationCurve",
    "compare",
    "cost_curve",
    "dominance",
    "evaluate",
    "gains",
    "learning_curve",
    "precision_at_k",
    "roc_hull",
    "validation_curve",
]
