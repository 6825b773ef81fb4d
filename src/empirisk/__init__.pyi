"""The public names of empirisk, and where they live."""

from empirisk import errors as errors
from empirisk import evaluation as evaluation
from empirisk import kernels as kernels
from empirisk import losses as losses
from empirisk import maps as maps
from empirisk import nets as nets
from empirisk import penalties as penalties
from empirisk import plots as plots
from empirisk import scales as scales
from empirisk import selection as selection
from empirisk import solvers as solvers
from empirisk import tables as tables
from empirisk import theory as theory
from empirisk.certificate import Certificate as Certificate
from empirisk.clusters.density import GaussianDensity as GaussianDensity
from empirisk.clusters.hierarchical import Hierarchical as Hierarchical
from empirisk.clusters.kmeans import KMeans as KMeans
from empirisk.clusters.mixture import GaussianMixture as GaussianMixture
from empirisk.ensembles.adaboost import AdaBoostClassifier as AdaBoostClassifier
from empirisk.ensembles.bagging import BaggingClassifier as BaggingClassifier
from empirisk.ensembles.bagging import BaggingRegressor as BaggingRegressor
from empirisk.ensembles.votes import VoteClassifier as VoteClassifier
from empirisk.ensembles.votes import VoteRegressor as VoteRegressor
from empirisk.evaluation.compare import compare as compare
from empirisk.evaluation.evaluate import evaluate as evaluate
from empirisk.exports.write import export as export
from empirisk.files.models import load as load
from empirisk.files.models import save as save
from empirisk.fits.constraint import Constraint as Constraint
from empirisk.fits.fit import Fit as Fit
from empirisk.fits.fit import solve as solve
from empirisk.fits.minimise import minimise as minimise
from empirisk.league.learn import learn as learn
from empirisk.league.verdict.score import score as score
from empirisk.machines.centroid import NearestCentroid as NearestCentroid
from empirisk.machines.classifiers import SVM as SVM
from empirisk.machines.classifiers import LeastSquaresClassifier as LeastSquaresClassifier
from empirisk.machines.classifiers import LogisticRegression as LogisticRegression
from empirisk.machines.equation import Classifier as Classifier
from empirisk.machines.equation import Regressor as Regressor
from empirisk.machines.geometry import Hyperplane as Hyperplane
from empirisk.machines.neighbors.machines import KNNClassifier as KNNClassifier
from empirisk.machines.neighbors.machines import KNNRegressor as KNNRegressor
from empirisk.machines.oneclass import OneClassSVM as OneClassSVM
from empirisk.machines.parametric import Parametric as Parametric
from empirisk.machines.perceptron import Perceptron as Perceptron
from empirisk.machines.quantiles import QuantileRegressor as QuantileRegressor
from empirisk.machines.regressors import SVR as SVR
from empirisk.machines.regressors import ElasticNet as ElasticNet
from empirisk.machines.regressors import Lasso as Lasso
from empirisk.machines.regressors import LeastAbsolute as LeastAbsolute
from empirisk.machines.regressors import LeastSquares as LeastSquares
from empirisk.machines.regressors import Ridge as Ridge
from empirisk.nets.network import Network as Network
from empirisk.problem import Point as Point
from empirisk.problem import Problem as Problem
from empirisk.projections.contrastive import ContrastiveMetric as ContrastiveMetric
from empirisk.projections.dictionary import Dictionary as Dictionary
from empirisk.projections.learned_kernel import LearnedKernel as LearnedKernel
from empirisk.projections.metric import LargeMarginMetric as LargeMarginMetric
from empirisk.projections.pca import PCA as PCA
from empirisk.scale.scan import scan as scan
from empirisk.settings import config as config
from empirisk.theory.luck import luck as luck
from empirisk.trees.additive.machines import AdditiveClassifier as AdditiveClassifier
from empirisk.trees.additive.machines import AdditiveRegressor as AdditiveRegressor
from empirisk.trees.boosting import BoostingClassifier as BoostingClassifier
from empirisk.trees.boosting import BoostingRegressor as BoostingRegressor
from empirisk.trees.forest import ForestClassifier as ForestClassifier
from empirisk.trees.forest import ForestRegressor as ForestRegressor
from empirisk.trees.tree import TreeClassifier as TreeClassifier
from empirisk.trees.tree import TreeRegressor as TreeRegressor
from empirisk.warming import warm as warm

__version__: str
_MODULES: tuple[str, ...]
_HOMES: dict[str, str]

def homes_of(package: str, names: dict[str, str]) -> dict[str, str]: ...

__all__: list[str]
