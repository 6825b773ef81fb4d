"""Theory: what can be said about the true error, in numbers and in one sentence each."""

from empirisk.theory.bound import Bound
from empirisk.theory.luck import ErrorInterval, error_bound, error_interval, luck
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
    "ErrorInterval",
    "adaboost_bound",
    "adaboost_margin_bound",
    "cover_hart",
    "description_bound",
    "error_bound",
    "error_interval",
    "finite_class_bound",
    "luck",
    "majority_vote",
    "majority_vote_bound",
    "margin_bound",
    "margin_dimension",
    "sample_size",
    "tree_bound",
    "vc_bound",
    "vc_dimension",
]
