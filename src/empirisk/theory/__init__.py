"""Theory: what can be said about the true error, in numbers and in one sentence each."""

from empirisk.lazy import lazy_names
from empirisk.theory.luck import luck as luck

_HOMES, __getattr__, __dir__ = lazy_names(
    "empirisk.theory",
    {
        "bayes": "FiniteBayes GaussianBayes Risk",
        "bound": "Bound",
        "calibration": "Calibration is_calibrated",
        "luck": "ErrorInterval error_bound error_interval luck",
        "lunch": "NoFreeLunch no_free_lunch",
        "margins": "adaboost_bound adaboost_margin_bound cover_hart "
        "majority_vote majority_vote_bound margin_bound margin_dimension",
        "pac": "description_bound finite_class_bound sample_size",
        "vc": "tree_bound vc_bound vc_dimension",
    },
)

__all__ = list(_HOMES)
