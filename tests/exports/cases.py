"""Machines of every family, with the target that each is fitted to."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import empirisk as er
from empirisk import kernels, maps, nets, selection
from empirisk.maps import recipes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = {
    "two": np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no"),
    "three": np.array([3, 5, 9])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])],
    "number": X @ [1.0, 2.0, 0.0, -1.0] + 0.1 * RANDOM.normal(size=60),
    "none": None,
}
Y["labels"] = np.column_stack([Y["two"] == "yes", X[:, 2] > 0]).astype(int)
Y["numbers"] = np.column_stack([Y["number"], X[:, 1] ** 2])
Y["positive"] = np.exp(Y["number"] / 4)
#: New rows: near, equal to training rows, and far.
NEW = np.vstack([RANDOM.normal(size=(20, 4)), X[:5], [[1e5, 0.0, -3.0, 0.0]]])


def few(classifier):
    """A classifier of trees on a few of them."""
    return classifier.set_params(n_estimators=7, random_state=0)


def network(*layers, **settings):
    """A network with the weights that it begins with."""
    return er.Network(list(layers), random_state=0, **settings)


CLASSIFIERS = [
    er.SVM(),
    er.LogisticRegression(),
    er.LogisticRegression(multiclass="one_vs_rest"),
    er.SVM(multiclass="one_vs_one"),
    er.SVM(multiclass="error_correcting"),
    er.SVM(multiclass="joint"),
    er.Perceptron(),
    er.NearestCentroid(),
    er.LeastSquaresClassifier(),
    *(er.Classifier(loss=loss) for loss in ("exponential", "squared_hinge", "soft_hinge")),
    er.SVM(features=kernels.Gaussian(1.0)),
    er.SVM(features=kernels.Gaussian("median")),
    er.SVM(features=kernels.Gaussian(0.01)),
    er.SVM(features=kernels.Laplacian(2.0)),
    er.SVM(features=kernels.Laplacian(2.0, 2)),
    er.SVM(features=kernels.Polynomial(3)),
    er.SVM(features=kernels.Gaussian(2.0).on([0, 1]) * kernels.Linear().on([2]) + 0.1 * kernels.Polynomial(3)),
    er.SVM(features=kernels.Polynomial(2).normalised()),
    er.SVM(features=kernels.Gaussian(1.0) ** 2),
    er.SVM(features=kernels.exp(kernels.Linear().normalised())),
    er.SVM(features=kernels.Anova(order=2)),
    er.SVM(features=kernels.Centred(kernels.Gaussian())),
    er.SVM(features=kernels.polynomial(kernels.Linear(), [1.0, 0.0, 2.0])),
    er.SVM(features=er.LearnedKernel("gaussian", rounds=1)),
    er.SVM(features=er.LearnedKernel("gaussian", rounds=1, leaf_size=40)),
    er.LogisticRegression(features=maps.SeveralKernels([kernels.Linear(), kernels.Gaussian()])),
    er.LogisticRegression(features=maps.Nystrom(kernels.Gaussian(), rank=20, random_state=0)),
    er.SVM(features=maps.Nystrom(er.LearnedKernel("gaussian", rounds=1), rank=20, random_state=0)),
    er.LogisticRegression(features=maps.RandomFourier(kernels.Gaussian(), rank=20, random_state=0)),
    er.LogisticRegression(features=maps.Polynomial(2)),
    er.LogisticRegression(features=maps.PolynomialKernel(2)),
    er.LogisticRegression(features=maps.Periodic(2)),
    er.KNNClassifier(),
    er.KNNClassifier(weights="distance"),
    er.KNNClassifier(features=kernels.Gaussian(), weights="distance"),
    er.TreeClassifier(),
    few(er.ForestClassifier()),
    few(er.BoostingClassifier()),
    er.AdditiveClassifier(max_iter=30, interactions=2, random_state=0),
    er.AdaBoostClassifier(n_estimators=5),
    er.AdaBoostClassifier(er.LogisticRegression(), n_estimators=3),
    few(er.BaggingClassifier()),
    er.BaggingClassifier(er.LogisticRegression(), n_estimators=4, max_features=0.5, voting="soft", random_state=0),
    er.VoteClassifier(),
    er.VoteClassifier([er.LogisticRegression(), er.TreeClassifier()], voting="soft"),
    er.VoteClassifier([er.LogisticRegression(), er.TreeClassifier()], voting="soft", temperature=0.7),
    CalibratedClassifierCV(er.SVM(), ensemble=False, cv=3),
    CalibratedClassifierCV(er.TreeClassifier(max_depth=2), method="isotonic", cv=3),
    CalibratedClassifierCV(er.LogisticRegression(), method="temperature", ensemble=False, cv=3),
    CalibratedClassifierCV(er.TreeClassifier(max_depth=2), method="temperature", cv=3),
    make_pipeline(StandardScaler(), RobustScaler(), er.SVM()),
    make_pipeline(SimpleImputer(), MinMaxScaler(), MaxAbsScaler(), PolynomialFeatures(), er.LogisticRegression()),
    make_pipeline(make_union(PowerTransformer(), Normalizer()), FrozenEstimator(er.PCA(3).fit(np.eye(8))), er.SVM()),
    DummyClassifier(),
]
OF_TWO = [
    selection.Threshold(er.LogisticRegression()),
    selection.Balanced(er.LogisticRegression()),
    selection.Search(er.LogisticRegression(), {"C": [0.1, 1.0]}),
]
NETWORKS = [
    network(8, 5),
    network(nets.Dense(6, "gelu"), nets.LayerNorm(), nets.Dropout(0.1), nets.Dense(4, "softplus")),
    network(
        nets.Conv(3, 2, padding=1), nets.BatchNorm(), nets.MaxPool(2, 1, 1), nets.MeanPool(2), nets.Dense(4, "tanh"),
        shape=(2, 2, 1),
    ),
    network(nets.Filter("gaussian", 3), nets.Branch([nets.Conv(2, 1), nets.Conv(3, 1)]), 5, nets.Residual([5, 5]),
            shape=(2, 2, 1)),
]  # fmt: skip
REGRESSORS = [
    er.Ridge(),
    er.Lasso(),
    er.LeastAbsolute(),
    er.SVR(),
    er.LeastSquares(),
    er.Regressor(loss="huber"),
    er.QuantileRegressor(),
    er.Ridge(features=kernels.Gaussian()),
    er.KNNRegressor(weights="distance"),
    er.TreeRegressor(),
    few(er.ForestRegressor()),
    few(er.BoostingRegressor()),
    er.AdditiveRegressor(max_iter=30, interactions=2, random_state=0),
    few(er.BaggingRegressor()),
    er.VoteRegressor(),
    DummyRegressor(),
    recipes.standardised(er.Ridge()),
    make_pipeline(FunctionTransformer(np.tanh), er.Ridge()),
]
POSITIVE = [
    er.Regressor(loss="poisson"),
    er.Regressor(loss="gamma"),
    recipes.log_target(er.Ridge()),
    recipes.box_cox_target(er.Ridge()),
    TransformedTargetRegressor(er.Ridge(), func=np.log1p, inverse_func=np.expm1),
]
OTHERS = [
    er.OneClassSVM(),
    er.OneClassSVM(features=kernels.Gaussian()),
    er.KMeans(3, random_state=0),
    er.KMeans(3, features=kernels.Gaussian(), random_state=0),
    er.GaussianMixture(2, random_state=0),
    er.GaussianMixture(2, covariance_type="diagonal", random_state=0),
    er.GaussianDensity(),
    er.PCA(2),
    er.PCA(2, whiten=True, features=kernels.Gaussian()),
]
TREES_OF = {"labels": [er.TreeClassifier(), few(er.ForestClassifier()), few(er.BoostingClassifier())]}
TREES_OF["numbers"] = [er.TreeRegressor(), few(er.ForestRegressor()), er.Ridge(), er.KNNRegressor()]
CASES = [
    *((machine, target) for machine in CLASSIFIERS for target in ("two", "three")),
    *((machine, "two") for machine in OF_TWO),
    *((machine, "none") for machine in NETWORKS),
    *((machine, "number") for machine in REGRESSORS),
    *((machine, "positive") for machine in POSITIVE),
    *((machine, "none") for machine in OTHERS),
    *((machine, target) for target, machines in TREES_OF.items() for machine in machines),
    *((machine, "labels") for machine in (few(er.BaggingClassifier()), er.KNNClassifier())),
]


def name_of(case):
    """A name for a case that selects it."""
    machine, target = case
    return f"{' '.join(repr(machine).split())[:90]} {target}"
