"""The public names of empirisk.theory, and where they live."""

from empirisk.theory.bayes import FiniteBayes as FiniteBayes
from empirisk.theory.bayes import GaussianBayes as GaussianBayes
from empirisk.theory.bayes import Risk as Risk
from empirisk.theory.bound import Bound as Bound
from empirisk.theory.calibration import Calibration as Calibration
from empirisk.theory.calibration import is_calibrated as is_calibrated
from empirisk.theory.luck import ErrorInterval as ErrorInterval
from empirisk.theory.luck import error_bound as error_bound
from empirisk.theory.luck import error_interval as error_interval
from empirisk.theory.luck import luck as luck
from empirisk.theory.lunch import NoFreeLunch as NoFreeLunch
from empirisk.theory.lunch import no_free_lunch as no_free_lunch
from empirisk.theory.margins import adaboost_bound as adaboost_bound
from empirisk.theory.margins import adaboost_margin_bound as adaboost_margin_bound
from empirisk.theory.margins import cover_hart as cover_hart
from empirisk.theory.margins import majority_vote as majority_vote
from empirisk.theory.margins import majority_vote_bound as majority_vote_bound
from empirisk.theory.margins import margin_bound as margin_bound
from empirisk.theory.margins import margin_dimension as margin_dimension
from empirisk.theory.pac import description_bound as description_bound
from empirisk.theory.pac import finite_class_bound as finite_class_bound
from empirisk.theory.pac import sample_size as sample_size
from empirisk.theory.vc import tree_bound as tree_bound
from empirisk.theory.vc import vc_bound as vc_bound
from empirisk.theory.vc import vc_dimension as vc_dimension

__all__: list[str]
