"""The public names of empirisk.evaluation, and where they live."""

from empirisk.evaluation.compare import Comparison as Comparison
from empirisk.evaluation.compare import Difference as Difference
from empirisk.evaluation.compare import compare as compare
from empirisk.evaluation.curves import LearningCurve as LearningCurve
from empirisk.evaluation.curves import ValidationCurve as ValidationCurve
from empirisk.evaluation.curves import learning_curve as learning_curve
from empirisk.evaluation.curves import validation_curve as validation_curve
from empirisk.evaluation.evaluate import evaluate as evaluate
from empirisk.evaluation.intervals import Score as Score
from empirisk.evaluation.ranking import CostCurve as CostCurve
from empirisk.evaluation.ranking import Dominance as Dominance
from empirisk.evaluation.ranking import Gains as Gains
from empirisk.evaluation.ranking import Randomised as Randomised
from empirisk.evaluation.ranking import ROCHull as ROCHull
from empirisk.evaluation.ranking import cost_curve as cost_curve
from empirisk.evaluation.ranking import dominance as dominance
from empirisk.evaluation.ranking import gains as gains
from empirisk.evaluation.ranking import precision_at_k as precision_at_k
from empirisk.evaluation.ranking import roc_hull as roc_hull
from empirisk.evaluation.results import EvaluationResult as EvaluationResult
from empirisk.evaluation.results import Fold as Fold

__all__: list[str]
