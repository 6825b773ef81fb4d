"""Empirisk: classical machine learning on one equation.

    minimise   R(w)  +  C * sum_i  c_i * loss( y_i , <w, phi(x_i)> + b )

Choose a loss, a feature map phi, a penalty R and a scale C; every convex fit ends with a certificate.
Names are imported when they are first used, so ``import empirisk`` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empirisk import (
        errors,
        evaluation,
        kernels,
        losses,
        maps,
        nets,
        penalties,
        plots,
        scales,
        selection,
        solvers,
        tables,
        theory,
    )
    from empirisk.evaluation.compare import compare
    from empirisk.evaluation.evaluate import evaluate
    from empirisk.files.load import load
    from empirisk.files.save import save
    from empirisk.fits.fit import solve
    from empirisk.league.learn import learn
    from empirisk.machines.centroid import NearestCentroid
    from empirisk.machines.classifiers import SVM, LeastSquaresClassifier, LogisticRegression
    from empirisk.machines.equation import Classifier, Regressor
    from empirisk.machines.geometry import Hyperplane
    from empirisk.machines.neighbors.machines import KNNClassifier, KNNRegressor
    from empirisk.machines.oneclass import OneClassSVM
    from empirisk.machines.perceptron import Perceptron
    from empirisk.machines.regressors import SVR, ElasticNet, Lasso, LeastAbsolute, LeastSquares, Ridge
    from empirisk.nets.network import Network
    from empirisk.settings import config
    from empirisk.theory.luck import luck
    from empirisk.trees.adaboost import AdaBoostClassifier
    from empirisk.trees.bagging import BaggingClassifier, BaggingRegressor
    from empirisk.trees.boosting import BoostingClassifier, BoostingRegressor
    from empirisk.trees.forest import ForestClassifier, ForestRegressor
    from empirisk.trees.tree import TreeClassifier, TreeRegressor

__version__ = "0.1.0"

__all__ = [
    "SVM",
    "SVR",
    "AdaBoostClassifier",
    "BaggingClassifier",
    "BaggingRegressor",
    "BoostingClassifier",
    "BoostingRegressor",
    "Classifier",
    "ElasticNet",
    "ForestClassifier",
    "ForestRegressor",
    "Hyperplane",
    "KNNClassifier",
    "KNNRegressor",
    "Lasso",
    "LeastAbsolute",
    "LeastSquares",
    "LeastSquaresClassifier",
    "LogisticRegression",
    "NearestCentroid",
    "Network",
    "OneClassSVM",
    "Perceptron",
    "Regressor",
    "Ridge",
    "TreeClassifier",
    "TreeRegressor",
    "compare",
    "config",
    "errors",
    "evaluate",
    "evaluation",
    "kernels",
    "learn",
    "load",
    "losses",
    "luck",
    "maps",
    "nets",
    "penalties",
    "plots",
    "save",
    "scales",
    "selection",
    "solve",
    "solvers",
    "tables",
    "theory",
]

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

_HOMES = {
    "AdaBoostClassifier": "empirisk.trees.adaboost",
    "BaggingClassifier": "empirisk.trees.bagging",
    "BaggingRegressor": "empirisk.trees.bagging",
    "BoostingClassifier": "empirisk.trees.boosting",
    "BoostingRegressor": "empirisk.trees.boosting",
    "Classifier": "empirisk.machines.equation",
    "ElasticNet": "empirisk.machines.regressors",
    "ForestClassifier": "empirisk.trees.forest",
    "ForestRegressor": "empirisk.trees.forest",
    "Hyperplane": "empirisk.machines.geometry",
    "KNNClassifier": "empirisk.machines.neighbors.machines",
    "KNNRegressor": "empirisk.machines.neighbors.machines",
    "Lasso": "empirisk.machines.regressors",
    "LeastAbsolute": "empirisk.machines.regressors",
    "LeastSquares": "empirisk.machines.regressors",
    "LeastSquaresClassifier": "empirisk.machines.classifiers",
    "LogisticRegression": "empirisk.machines.classifiers",
    "NearestCentroid": "empirisk.machines.centroid",
    "Network": "empirisk.nets.network",
    "OneClassSVM": "empirisk.machines.oneclass",
    "Perceptron": "empirisk.machines.perceptron",
    "Regressor": "empirisk.machines.equation",
    "Ridge": "empirisk.machines.regressors",
    "SVM": "empirisk.machines.classifiers",
    "SVR": "empirisk.machines.regressors",
    "TreeClassifier": "empirisk.trees.tree",
    "TreeRegressor": "empirisk.trees.tree",
    "compare": "empirisk.evaluation.compare",
    "config": "empirisk.settings",
    "evaluate": "empirisk.evaluation.evaluate",
    "learn": "empirisk.league.learn",
    "load": "empirisk.files.load",
    "luck": "empirisk.theory.luck",
    "save": "empirisk.files.save",
    "solve": "empirisk.fits.fit",
}


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
