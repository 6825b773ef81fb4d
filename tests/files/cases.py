"""Fitted objects of every kind that a model file holds, and the answers they give."""

import inspect
import warnings
from operator import attrgetter

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)

import empirisk as er
from tests.public import EXPORTS

ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "block")


def built(cls):
    """An object of a public class; parameters without a default get a value by their name."""
    needed = {
        "kernel": er.kernels.Gaussian(2.0),
        "left": er.kernels.Linear(),
        "right": er.kernels.Polynomial(2),
        "factor": 2.0,
        "exponent": 2,
        "coefficients": [1.0, 0.5],
        "columns": [0, 2],
        "estimator": er.LogisticRegression(),
        "space": {"C": [0.1, 1.0]},
        "schema": er.tables.understand(rows()),
    }
    parameters = inspect.signature(cls).parameters.values()
    return cls(**{p.name: needed[p.name] for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD})


def holding(value):
    """A step that may hold any value: the arguments of a function that it does not have."""
    return FunctionTransformer(kw_args={"value": value})


def rows(n=60, columns=3):
    return np.random.default_rng(7).normal(size=(n, columns)).round(3)


def target(machine, X):
    score = X[:, 0] - X[:, 1] ** 2
    return np.where(score > 0, "high", "low") if is_classifier(machine) else score


def public_classes() -> list[str]:
    """Every public class with parameters: machines, trees, maps, kernels, losses and whatever comes."""
    values = {attrgetter(name)(er): name for name in EXPORTS if inspect.isclass(attrgetter(name)(er))}  # one name each
    classes = [cls for cls in values if issubclass(cls, BaseEstimator) and not inspect.isabstract(cls)]
    # A class that is made of a function of the user is refused; that has its own test.
    return [values[cls] for cls in classes if not takes_function(cls)]


def takes_function(cls) -> bool:
    found = inspect.signature(cls).parameters
    return any(name in found and found[name].default is inspect.Parameter.empty for name in ("function", "draw"))


def public_estimators() -> list[str]:
    """The public classes that learn from rows and answer about rows."""
    return [name for name in public_classes() if any(hasattr(attrgetter(name)(er), answer) for answer in ANSWERS[:-1])]


def fitted(estimator, X=None):
    X = rows() if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, target(estimator, X))


def answers(estimator, X):
    """Everything an estimator says about rows, as plain arrays."""
    found = {name: getattr(estimator, name)(X) for name in ANSWERS if hasattr(estimator, name)}
    assert found
    return {name: value.toarray() if sparse.issparse(value) else np.asarray(value) for name, value in found.items()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype
        np.testing.assert_array_equal(first[name], second[name], strict=True)


def step_pipelines():
    """The steps of scikit-learn in the ways that they are used around our machines."""
    columns = ColumnTransformer(
        [
            ("codes", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), [0]),
            ("kept", "passthrough", [1]),
            ("gone", "drop", [2]),
        ],
        remainder=StandardScaler(),
    )
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=True)
    union = FeatureUnion([("power", PowerTransformer()), ("scaled", StandardScaler(with_mean=False))])
    bins = KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")
    return {
        "numbers": make_pipeline(SimpleImputer(add_indicator=True), VarianceThreshold(), bins, er.SVM(C=0.3)),
        "columns": make_pipeline(columns, er.TreeClassifier(max_depth=3)),
        "one-hot": make_pipeline(one_hot, er.LogisticRegression()),
        "union": make_pipeline(union, er.Ridge(C="loo")),
        "sigmoid": CalibratedClassifierCV(er.SVM(), cv=3),
        "isotonic": CalibratedClassifierCV(er.SVM(), method="isotonic", cv=StratifiedKFold(3)),
        "frozen": CalibratedClassifierCV(FrozenEstimator(fitted(er.SVM())), method="sigmoid"),
        "log target": TransformedTargetRegressor(er.Lasso(C=5.0), transformer=PowerTransformer()),
        "most frequent": DummyClassifier(),
        "mean": DummyRegressor(),
        "map": er.SVM(features=make_pipeline(StandardScaler(), er.maps.Polynomial(degree=2))),
        "nested": er.BaggingClassifier(er.LogisticRegression(C=2.0), n_estimators=3, random_state=0),
    }


def text_steps():
    return [TfidfVectorizer(ngram_range=(1, 2), stop_words=["the"]), CountVectorizer(binary=True, dtype=np.float32)]
