"""Selection: choosing what the equation leaves open."""

from empirisk.lazy import lazy_names
from empirisk.selection.path import path as path
from empirisk.selection.search import search as search

_HOMES, __getattr__, __dir__ = lazy_names(
    "empirisk.selection",
    {
        "balance": "Balanced",
        "column_choice": "GreedySelection L1Selection Step",
        "combined": "CombinedColumns",
        "hypotheses": "HypothesisSearch",
        "information": "InformationSelection",
        "path": "Path path",
        "search": "Search search",
        "structural": "NestedClass StructuralRisk structural_risk",
        "subset": "BestSubset",
        "threshold": "Threshold ThresholdChoice choose_threshold",
    },
)

__all__ = list(_HOMES)
