"""Empirisk: classical machine learning on one equation.

    minimise   R(w)  +  C * sum_i  c_i * loss( y_i , <w, phi(x_i)> + b )

Choose a loss, a feature map phi, a penalty R and a scale C; every convex fit ends with a certificate.
Names are imported when they are first used, so ``import empirisk`` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empirisk import errors, kernels, losses, maps, penalties, plots, scales, selection, solvers, tables, theory
    from empirisk.files.load import load
    from empirisk.files.save import save
    from empirisk.league.learn import learn
    from empirisk.machines.base import Classifier, Regressor
    from empirisk.machines.centroid import NearestCentroid
    from empirisk.machines.geometry import Hyperplane
    from empirisk.machines.margin import SVM, LeastSquaresClassifier, LogisticRegression
    from empirisk.machines.neighbors import KNNClassifier, KNNRegressor
    from empirisk.machines.oneclass import OneClassSVM
    from empirisk.machines.perceptron import Perceptron
    from empirisk.machines.regression import SVR, ElasticNet, Lasso, LeastAbsolute, LeastSquares, Ridge
    from empirisk.selection.compare import compare
    from empirisk.selection.evaluate import evaluate
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
    "kernels",
    "learn",
    "load",
    "losses",
    "luck",
    "maps",
    "penalties",
    "plots",
    "save",
    "scales",
    "selection",
    "solvers",
    "tables",
    "theory",
]

_MODULES = (
    "errors",
    "kernels",
    "losses",
    "maps",
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
    "Classifier": "empirisk.machines.base",
    "ElasticNet": "empirisk.machines.regression",
    "ForestClassifier": "empirisk.trees.forest",
    "ForestRegressor": "empirisk.trees.forest",
    "Hyperplane": "empirisk.machines.geometry",
    "KNNClassifier": "empirisk.machines.neighbors",
    "KNNRegressor": "empirisk.machines.neighbors",
    "Lasso": "empirisk.machines.regression",
    "LeastAbsolute": "empirisk.machines.regression",
    "LeastSquares": "empirisk.machines.regression",
    "LeastSquaresClassifier": "empirisk.machines.margin",
    "LogisticRegression": "empirisk.machines.margin",
    "NearestCentroid": "empirisk.machines.centroid",
    "OneClassSVM": "empirisk.machines.oneclass",
    "Perceptron": "empirisk.machines.perceptron",
    "Regressor": "empirisk.machines.base",
    "Ridge": "empirisk.machines.regression",
    "SVM": "empirisk.machines.margin",
    "SVR": "empirisk.machines.regression",
    "TreeClassifier": "empirisk.trees.tree",
    "TreeRegressor": "empirisk.trees.tree",
    "compare": "empirisk.selection.compare",
    "config": "empirisk.settings",
    "evaluate": "empirisk.selection.evaluate",
    "learn": "empirisk.league.learn",
    "load": "empirisk.files.load",
    "luck": "empirisk.theory.luck",
    "save": "empirisk.files.save",
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
