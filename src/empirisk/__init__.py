"""Empirisk: classical machine learning on one equation.

    minimise   R(w)  +  C * sum_i  c_i * loss( y_i , <w, phi(x_i)> + b )

Choose a loss, a feature map phi, a penalty R and a scale C; every convex fit ends with a certificate.
Names are imported when they are first used, so ``import empirisk`` itself costs nothing.
"""

from importlib import import_module

__version__ = "0.1.0"

#: The modules that a user reaches as ``er.kernels``.
_MODULES = (
    "errors",
    "evaluation",
    "kernels",
    "losses",
    "maps",
    "nets",
    "penalties",
    "plots",
    "scales",
    "selection",
    "solvers",
    "tables",
    "theory",
)

#: Where every other public name lives.
_HOMES = {
    "AdaBoostClassifier": "empirisk.trees.adaboost",
    "BaggingClassifier": "empirisk.trees.bagging",
    "BaggingRegressor": "empirisk.trees.bagging",
    "BoostingClassifier": "empirisk.trees.boosting",
    "BoostingRegressor": "empirisk.trees.boosting",
    "Classifier": "empirisk.machines.equation",
    "ContrastiveMetric": "empirisk.projections.metric",
    "Dictionary": "empirisk.projections.dictionary",
    "ElasticNet": "empirisk.machines.regressors",
    "ForestClassifier": "empirisk.trees.forest",
    "ForestRegressor": "empirisk.trees.forest",
    "GaussianDensity": "empirisk.clusters.density",
    "GaussianMixture": "empirisk.clusters.mixture",
    "Hierarchical": "empirisk.clusters.hierarchical",
    "Hyperplane": "empirisk.machines.geometry",
    "KMeans": "empirisk.clusters.kmeans",
    "KNNClassifier": "empirisk.machines.neighbors.machines",
    "KNNRegressor": "empirisk.machines.neighbors.machines",
    "LargeMarginMetric": "empirisk.projections.metric",
    "Lasso": "empirisk.machines.regressors",
    "LeastAbsolute": "empirisk.machines.regressors",
    "LeastSquares": "empirisk.machines.regressors",
    "LeastSquaresClassifier": "empirisk.machines.classifiers",
    "LogisticRegression": "empirisk.machines.classifiers",
    "NearestCentroid": "empirisk.machines.centroid",
    "Network": "empirisk.nets.network",
    "OneClassSVM": "empirisk.machines.oneclass",
    "PCA": "empirisk.projections.pca",
    "Perceptron": "empirisk.machines.perceptron",
    "Regressor": "empirisk.machines.equation",
    "Ridge": "empirisk.machines.regressors",
    "SVM": "empirisk.machines.classifiers",
    "SVR": "empirisk.machines.regressors",
    "TreeClassifier": "empirisk.trees.tree",
    "TreeRegressor": "empirisk.trees.tree",
    "VoteClassifier": "empirisk.trees.votes",
    "VoteRegressor": "empirisk.trees.votes",
    "compare": "empirisk.evaluation.compare",
    "config": "empirisk.settings",
    "evaluate": "empirisk.evaluation.evaluate",
    "learn": "empirisk.league.learn",
    "load": "empirisk.files.models",
    "luck": "empirisk.theory.luck",
    "save": "empirisk.files.models",
    "solve": "empirisk.fits.fit",
}


__all__ = [*_MODULES, *_HOMES]


def __getattr__(name: str):
    if name in _MODULES:
        return import_module(f"empirisk.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # the next access does not come here
        return value
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "dir(empirisk) lists the names it has."
    raise AttributeError(f"empirisk has no {name!r}; {hint}", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
