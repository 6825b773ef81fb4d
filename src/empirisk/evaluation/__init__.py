"""Evaluation: how good a machine is on rows it has not seen, and how sure that is."""

from empirisk.evaluation.compare import Comparison, Difference, compare
from empirisk.evaluation.curves import LearningCurve, ValidationCurve, learning_curve, validation_curve
from empirisk.evaluation.evaluate import evaluate
from empirisk.evaluation.intervals import Score
from empirisk.evaluation.results import EvaluationResult, Fold

__all__ = [
    "Comparison",
    "Difference",
    "EvaluationResult",
    "Fold",
    "LearningCurve",
    "Score",
    "ValidationCurve",
    "compare",
    "evaluate",
    "learning_curve",
    "validation_curve",
]
