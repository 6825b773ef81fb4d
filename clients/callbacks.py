"""scikit-learn's callbacks: a progress bar on machines of every family."""

import contextlib
import io

from sklearn.callback import ProgressBar

import empirisk as er
from clients._rows import T, X, Y

CLASSIFIERS = (er.SVM, er.LogisticRegression, er.TreeClassifier, er.ForestClassifier, er.BoostingClassifier,
               er.AdaBoostClassifier, er.BaggingClassifier, er.KNNClassifier, er.NearestCentroid, er.Perceptron,
               er.VoteClassifier, er.AdditiveClassifier)  # fmt: skip
REGRESSORS = (er.Ridge, er.Lasso, er.SVR, er.TreeRegressor, er.ForestRegressor, er.BoostingRegressor, er.KNNRegressor,
              er.QuantileRegressor, er.VoteRegressor)  # fmt: skip
OTHERS = (er.KMeans, er.GaussianMixture, er.PCA, er.OneClassSVM, er.Hierarchical, er.Dictionary, er.GaussianDensity)
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for kinds, target in ((CLASSIFIERS, Y), (REGRESSORS, T), (OTHERS, None)):
        for kind in kinds:
            machine = kind().set_callbacks(ProgressBar())
            assert machine.fit(X, target) is machine
print(f"{len(CLASSIFIERS + REGRESSORS + OTHERS)} machines")
