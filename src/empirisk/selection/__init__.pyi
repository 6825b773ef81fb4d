"""The public names of empirisk.selection, and where they live."""

from empirisk.selection.balance import Balanced as Balanced
from empirisk.selection.column_choice import GreedySelection as GreedySelection
from empirisk.selection.column_choice import L1Selection as L1Selection
from empirisk.selection.column_choice import Step as Step
from empirisk.selection.combined import CombinedColumns as CombinedColumns
from empirisk.selection.hypotheses import HypothesisSearch as HypothesisSearch
from empirisk.selection.information import InformationSelection as InformationSelection
from empirisk.selection.path import Path as Path
from empirisk.selection.path import path as path
from empirisk.selection.search import Search as Search
from empirisk.selection.search import search as search
from empirisk.selection.structural import NestedClass as NestedClass
from empirisk.selection.structural import StructuralRisk as StructuralRisk
from empirisk.selection.structural import structural_risk as structural_risk
from empirisk.selection.subset import BestSubset as BestSubset
from empirisk.selection.threshold import Threshold as Threshold
from empirisk.selection.threshold import ThresholdChoice as ThresholdChoice
from empirisk.selection.threshold import choose_threshold as choose_threshold

__all__: list[str]
