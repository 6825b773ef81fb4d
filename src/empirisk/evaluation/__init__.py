"""Evaluation: how good a machine is on rows it has not seen, and how sure that is."""

from empirisk.evaluation.compare import compare as compare
from empirisk.evaluation.evaluate import evaluate as evaluate
from empirisk.lazy import lazy_names

_HOMES, __getattr__, __dir__ = lazy_names(
    "empirisk.evaluation",
    {
        "compare": "Comparison Difference compare",
        "curves": "LearningCurve ValidationCurve learning_curve validation_curve",
        "evaluate": "evaluate",
        "intervals": "Score",
        "ranking": "CostCurve Dominance Gains ROCHull Randomised cost_curve dominance gains precision_at_k roc_hull",
        "results": "EvaluationResult Fold",
    },
)

__all__ = list(_HOMES)
