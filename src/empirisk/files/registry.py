"""The classes a model file may name: our public ones, a few of our own records, and the steps of scikit-learn we use.

A file names a class by its public name. The name is looked up here and nowhere else, so that no file can make the
loader import a module or build an object that is not in these tables.
"""

import dataclasses
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

import empirisk
from empirisk.errors import EmpiriskError

#: Our records that fitted machines hold, by the name that files use and the module where they live.
RECORDS = {
    "Certificate": "empirisk.certificate",
    "Choice": "empirisk.fits.choice",
    "Columns": "empirisk.trees.columns",
    "Nodes": "empirisk.trees.nodes",
    "Pruned": "empirisk.trees.prune",
    "maps.BoxCox": "empirisk.maps.recipes",
    "maps.Logarithm": "empirisk.maps.recipes",
    "tables.Letters": "empirisk.tables.letters",
    "tables.Means": "empirisk.tables.words",
    "tables.Numbers": "empirisk.tables.blocks",
    "tables.Texts": "empirisk.tables.blocks",
    "tables.Words": "empirisk.tables.words",
}

#: Steps of scikit-learn, by the module that exports them. None of them runs what a file says.
STEPS = {
    "sklearn.calibration": (
        "CalibratedClassifierCV",
        "_CalibratedClassifier",
        "_SigmoidCalibration",
        "_TemperatureScaling",
    ),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor"),
    "sklearn.dummy": ("DummyClassifier", "DummyRegressor"),
    "sklearn.feature_extraction.text": ("CountVectorizer", "TfidfTransformer", "TfidfVectorizer"),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.model_selection": ("GroupKFold", "KFold", "ShuffleSplit", "StratifiedKFold", "TimeSeriesSplit"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "FunctionTransformer",  # only the identity, which a column passed through becomes: functions are refused
        "KBinsDiscretizer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
        "TargetEncoder",
    ),
}
_STEP_HOMES = {f"sklearn.{name}": (home, name) for home, names in STEPS.items() for name in names}

#: Classes that have moved: the name in older files, and the name now.
MOVED = {
    **{
        f"selection.{name}": f"evaluation.{name}"
        for name in (
            "Comparison",
            "Difference",
            "EvaluationResult",
            "Fold",
            "LearningCurve",
            "Score",
            "ValidationCurve",
        )
    },
    "solvers.DualNewton": "solvers.Envelope",
    "solvers.JointNewton": "solvers.Newton",
    "solvers.KernelNewton": "solvers.Newton",
    "solvers.KernelPerceptron": "solvers.Perceptron",
    "solvers.SmoothingNewton": "solvers.Envelope",
}

#: Attributes that have another name now, in whatever class knows the new one and not the old one.
RENAMED = {
    "machine": "estimator",
    "machine_": "estimator_",
    "stopped_by_": "stopped_",
    "Cs": "values",
    "C": "chosen",
}

#: Attributes that objects of older files have and none has now: what they said is said by others.
GONE = {
    "selection.Search": ("best_estimator_",),
    "KNNClassifier": ("ks_", "losses_"),
    "KNNRegressor": ("ks_", "losses_"),
    "solvers.SGD": ("validation_fraction", "patience"),
}

#: Attributes that would make a loaded object touch the disk: the only value they may have. None is written in place of
#: any other value: where this process kept its work is no part of the model.
ONLY = {
    ("Network", "checkpoint"): None,  # a file that training would read and write
    ("sklearn.Pipeline", "memory"): None,  # a folder of pickles
    ("selection.Search", "journal"): None,  # a file that a new fit would write
    ("sklearn.CountVectorizer", "input"): "content",  # else the rows are names of files to read
    ("sklearn.TfidfVectorizer", "input"): "content",
}


def name_of(cls: type) -> str | None:
    """The name that files use for a class, None for a class that files may not hold.

    >>> name_of(er.SVM), name_of(er.losses.Hinge), name_of(dict)
    ('SVM', 'losses.Hinge', None)
    """
    name, home = cls.__name__, cls.__module__
    if home.split(".")[0] == "sklearn":
        candidates = [f"sklearn.{name}"]
    elif home.split(".")[0] == "empirisk":
        public = [module for module in empirisk._MODULES if home.startswith(f"empirisk.{module}")]
        candidates = [name, *(f"{module}.{name}" for module in public)]
    else:
        return None
    return next((candidate for candidate in candidates if find(candidate) is cls), None)


def class_of(name: Any) -> type:
    """The class that a file means by a name, or an error: only names in the tables are looked up.

    >>> class_of("losses.Hinge")
    <class 'empirisk.losses.margin.Hinge'>
    """
    found = find(MOVED.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise EmpiriskError(
            f"The model file holds an object of kind {str(name)[:80]!r}, which this version of Empirisk does not load; "
            "write the file again with Empirisk's own machines, or update Empirisk."
        )
    return found


def find(name: str) -> type | None:
    """The class behind a name of the tables, None if there is none."""
    if name in RECORDS:
        return getattr(import_module(RECORDS[name]), name.rpartition(".")[2])
    if name in _STEP_HOMES:
        home, step = _STEP_HOMES[name]
        return getattr(import_module(home), step)
    module, _, part = name.rpartition(".")
    if module in empirisk._MODULES:
        exported = getattr(empirisk, module)
        return _holdable(getattr(exported, part, None)) if part in getattr(exported, "__all__", ()) else None
    return _holdable(getattr(empirisk, name)) if name in empirisk._HOMES else None


def _holdable(value: Any) -> type | None:
    """A public class that has a state to keep: an estimator, a part or a record."""
    if isinstance(value, type) and (issubclass(value, BaseEstimator) or dataclasses.is_dataclass(value)):
        return value
    return None
