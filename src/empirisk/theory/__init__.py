"""Theory: what can be said about the true error, in numbers and in one sentence each."""

from empirisk.theory.bayes import FiniteBayes, GaussianBayes, Risk
from empirisk.theory.bound import Bound
from empirisk.theory.calibration import Calibration, is_calibrated
from empirisk.theory.luck import ErrorInterval, error_bound, error_interval, luck
from empirisk.theory.lunch import NoFreeLunch, no_free_lunch
from empirisk.theory.margins import (
    adaboost_bound,
    adaboost_margin_bound,
    cover_hart,
    majority_vote,
    majority_vote_bound,
    margin_bound,
    margin_dimension,
)
from empirisk.theory.pac import description_bound, finite_class_bound, sample_size
from empirisk.theory.vc import tree_bound, vc_bound, vc_dimension

__all__ = [
    "Bound",
    "Calibration",
    "ErrorInterval",
    "FiniteBayes",
    "GaussianBayes",
    "NoFreeLunch",
    "Risk",
    "adaboost_bound",
    "adaboost_margin_bound",
    "cover_hart",
    "description_bound",
    "error_bound",
    "error_interval",
    "finite_class_bound",
    "is_calibrated",
    "luck",
    "majority_vote",
    "majority_vote_bound",
    "margin_bound",
    "margin_dimension",
    "no_free_lunch",
    "sample_size",
    "tree_bound",
    "vc_bound",
    "vc_dimension",
]
