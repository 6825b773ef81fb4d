"""Empirisk: classical machine learning on one equation.

    minimise   R(w)  +  C * sum_i  c_i * loss( y_i , <w, phi(x_i)> + b )

Choose a loss, a feature map phi, a penalty R and a scale C; every convex fit ends with a certificate.
Names are imported when they are first used, so ``import empirisk`` itself costs nothing.
"""

import gc
from importlib import import_module

__version__ = "0.1.0"


def homes_of(package: str, names: dict[str, str]) -> dict[str, str]:
    """The module of each public name of a package, from the names that each of its modules has.

    >>> homes_of("empirisk.plots", {"scores": "roc confusion"})
    {'roc': 'empirisk.plots.scores', 'confusion': 'empirisk.plots.scores'}
    """
    return {name: f"{package}.{module}" for module, listed in names.items() for name in listed.split()}


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
#: Where every other public name lives; ``make stubs`` tells type checkers.
_HOMES = homes_of(
    "empirisk",
    {
        "certificate": "Certificate",
        "clusters.density": "GaussianDensity",
        "clusters.hierarchical": "Hierarchical",
        "clusters.kmeans": "KMeans",
        "clusters.mixture": "GaussianMixture",
        "ensembles.adaboost": "AdaBoostClassifier",
        "ensembles.bagging": "BaggingClassifier BaggingRegressor",
        "ensembles.votes": "VoteClassifier VoteRegressor",
        "evaluation.compare": "compare",
        "evaluation.evaluate": "evaluate",
        "files.models": "load save",
        "exports.write": "export",
        "fits.constraint": "Constraint",
        "fits.fit": "Fit solve",
        "fits.minimise": "minimise",
        "league.learn": "learn",
        "league.verdict.score": "score",
        "machines.centroid": "NearestCentroid",
        "machines.classifiers": "LeastSquaresClassifier LogisticRegression SVM",
        "machines.equation": "Classifier Regressor",
        "machines.geometry": "Hyperplane",
        "machines.neighbors.machines": "KNNClassifier KNNRegressor",
        "machines.oneclass": "OneClassSVM",
        "machines.parametric": "Parametric",
        "machines.perceptron": "Perceptron",
        "machines.quantiles": "QuantileRegressor",
        "machines.regressors": "ElasticNet Lasso LeastAbsolute LeastSquares Ridge SVR",
        "nets.network": "Network",
        "problem": "Point Problem",
        "projections.contrastive": "ContrastiveMetric",
        "projections.dictionary": "Dictionary",
        "projections.learned_kernel": "LearnedKernel",
        "projections.metric": "LargeMarginMetric",
        "projections.pca": "PCA",
        "scale.scan": "scan",
        "settings": "config",
        "theory.luck": "luck",
        "trees.additive.machines": "AdditiveClassifier AdditiveRegressor",
        "trees.boosting": "BoostingClassifier BoostingRegressor",
        "trees.forest": "ForestClassifier ForestRegressor",
        "trees.tree": "TreeClassifier TreeRegressor",
        "warming": "warm",
    },
)

__all__ = [*_MODULES, *_HOMES]


def _imported(module: str):
    """A module of the package. What an import makes stays: to look for garbage in it would take a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if collecting:
            gc.enable()


def __getattr__(name: str):
    if name in _MODULES:
        return _imported(f"empirisk.{name}")
    if name in _HOMES:
        value = getattr(_imported(_HOMES[name]), name)
        globals()[name] = value  # the next access does not come here
        return value
    from empirisk.errors import did_you_mean
    from empirisk.names import CLASSES

    if name in CLASSES:
        raise AttributeError(f"empirisk has no {name!r}; write er.{CLASSES[name]}", name=name)
    hint = did_you_mean(name, __all__, "dir(empirisk) lists the names it has.")
    raise AttributeError(f"empirisk has no {name!r}; {hint}", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
