"""Steps of scikit-learn as graphs: those that `learn` and the recipes use, and the usual ones before a machine."""

from functools import reduce
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
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

from empirisk.exports.families.maps import monomials
from empirisk.exports.registry import Answers, answers, refused, transformed, write_answers
from empirisk.exports.tensor import Symbolic, constant, expit, softmax
from empirisk.maps.recipes import BoxCox, Logarithm

#: Steps of a pipeline that stand for none.
NO_STEP = (None, "passthrough")
#: What is added to probabilities, which may be zero, before their logarithm is taken.
NO_CHANCE = 1e-12


@write_answers.register
def _(model: Pipeline, x: Any) -> Answers:
    *steps, last = [step for _, step in model.steps if step not in NO_STEP]
    return answers(last, reduce(lambda rows, step: transformed(step, rows), steps, x))


@write_answers.register
def _(model: FeatureUnion, x: Any) -> Answers:
    weights = model.transformer_weights or {}
    parts = [
        (x if step == "passthrough" else transformed(step, x)) * float(weights.get(name, 1.0))
        for name, step in model.transformer_list
        if step != "drop"
    ]
    return {"transform": np.concatenate(parts, axis=1)}


@write_answers.register
def _(model: FrozenEstimator, x: Any) -> Answers:
    return answers(model.estimator, x)


@write_answers.register
def _(model: BaseSearchCV, x: Any) -> Answers:
    return answers(model.best_estimator_, x)


# --- preprocessing ----------------------------------------------------------------------------------------------------


@write_answers.register
def _(step: StandardScaler, x: Symbolic) -> Answers:
    x = x - step.mean_ if step.with_mean else x
    return {"transform": x / step.scale_ if step.with_std else x}


@write_answers.register
def _(step: RobustScaler, x: Symbolic) -> Answers:
    x = x - step.center_ if step.with_centering else x
    return {"transform": x / step.scale_ if step.with_scaling else x}


@write_answers.register
def _(step: MinMaxScaler, x: Symbolic) -> Answers:
    scaled = x * step.scale_ + step.min_
    return {"transform": np.clip(scaled, *step.feature_range) if step.clip else scaled}


@write_answers.register
def _(step: MaxAbsScaler, x: Symbolic) -> Answers:
    return {"transform": x / step.scale_}


@write_answers.register
def _(step: Normalizer, x: Symbolic) -> Answers:
    size = {"l1": lambda: np.abs(x).sum(1, True), "l2": lambda: np.sqrt((x * x).sum(1, True))}
    length = size.get(step.norm, lambda: np.abs(x).max(1, True))()
    return {"transform": x / np.where(length == 0, 1.0, length)}


@write_answers.register
def _(step: SimpleImputer, x: Symbolic) -> Answers:
    if isinstance(step.missing_values, str) or not np.isnan(step.missing_values) or step.add_indicator:
        raise refused(step, "it fills other values than NaN, or adds indicators")
    kept = np.flatnonzero(~np.isnan(step.statistics_)).tolist()
    x = x[:, kept]
    return {"transform": np.where(np.isnan(x), step.statistics_[kept], x)}


@write_answers.register
def _(step: PolynomialFeatures, x: Symbolic) -> Answers:
    return {"transform": monomials(x, step.powers_)}


@write_answers.register
def _(step: PowerTransformer, x: Symbolic) -> Answers:
    if step.method != "yeo-johnson":
        raise refused(step, "only its method 'yeo-johnson' is known as a graph; use er.maps.recipes.BoxCox")
    power = step.lambdas_
    above, below = np.maximum(x, 0.0), np.maximum(-x, 0.0)
    up = np.where(
        power == 0,
        np.log1p(above),
        np.expm1(np.where(power == 0, 1.0, power) * np.log1p(above)) / np.where(power == 0, 1.0, power),
    )
    rest = 2 - power
    safe = np.where(rest == 0, 1.0, rest)
    down = np.where(rest == 0, np.log1p(below), np.expm1(safe * np.log1p(below)) / safe)
    found = np.where(x >= 0, up, -down)
    return {"transform": transformed(step._scaler, found) if step.standardize else found}


@write_answers.register
def _(step: FunctionTransformer, x: Symbolic) -> Answers:
    return {"transform": x if step.func is None else step.func(x, **(step.kw_args or {}))}


# --- around machines --------------------------------------------------------------------------------------------------


@write_answers.register
def _(model: TransformedTargetRegressor, x: Any) -> Answers:
    found = answers(model.regressor_, x)["predict"]
    column = found[:, None] if found.ndim == 1 else found
    back = _inverse(model.transformer_, column)
    return {"predict": back[:, 0] if model._training_dim == 1 else back}


def _inverse(step: Any, x: Symbolic) -> Symbolic:
    """The numbers that a transformer of targets has turned into these."""
    if isinstance(step, Logarithm):
        return np.expm1(x) if step.plus_one else np.exp(x)
    if isinstance(step, StandardScaler):
        return x * step.scale_ + step.mean_
    if isinstance(step, FunctionTransformer):
        return x if step.inverse_func is None else step.inverse_func(x, **(step.inv_kw_args or {}))
    if isinstance(step, BoxCox):
        power = np.where(step.lambdas_ == 0, 1.0, step.lambdas_)
        plain = x * step.scale_ + step.mean_
        inner = plain * power + 1.0
        ends = step.seen_[(step.lambdas_ < 0).astype(int), np.arange(len(power))]
        grown = np.where(inner > 0, np.exp(np.log(np.where(inner > 0, inner, 1.0)) / power), ends)
        return np.where(step.lambdas_ == 0, np.exp(plain), grown)
    raise refused(step, "what it did to the targets is not known as a graph")


@write_answers.register
def _(model: DummyRegressor, x: Symbolic) -> Answers:
    found = x[:, [0]] * 0.0 + model.constant_.reshape(1, -1)
    return {"predict": found if model.n_outputs_ > 1 else found[:, 0]}


@write_answers.register
def _(model: DummyClassifier, x: Symbolic) -> Answers:
    if model._strategy not in ("prior", "most_frequent"):
        raise refused(model, f"strategy={model._strategy!r} draws at random, or is told the class")
    prior = np.asarray(model.class_prior_)
    shares = prior if model._strategy == "prior" else np.eye(len(prior))[prior.argmax()]
    p = np.where(np.isnan(x[:, [0]]), 0.0, 0.0 * x[:, [0]]) + shares
    return {"predict": constant(model.classes_)[p.argmax(axis=1)], "predict_proba": p}


@write_answers.register
def _(model: CalibratedClassifierCV, x: Any) -> Answers:
    each = [_calibrated(one, x) for one in model.calibrated_classifiers_]
    p = reduce(np.add, each) / float(len(each))
    return {"predict": constant(model.classes_)[p.argmax(axis=1)], "predict_proba": p}


def _calibrated(one: Any, x: Any) -> Symbolic:
    """The probabilities of a machine whose scores go through a curve for each class."""
    told = answers(one.estimator, x)
    if one.method == "temperature":
        return _tempered(one.calibrators[0], told)
    scores = told["decision_function"] if "decision_function" in told else told["predict_proba"]
    if scores.ndim == 2 and scores.shape[1] == 2 and len(one.classes) == 2:
        scores = scores[:, 1]
    scores = scores[:, None] if scores.ndim == 1 else scores
    if len(one.calibrators) != scores.shape[1]:
        raise refused(one, f"its method {one.method!r} is not known as a graph")
    curves = [_curve(curve, scores[:, k]) for k, curve in enumerate(one.calibrators)]
    if len(one.classes) == 2:
        return np.column_stack([1.0 - curves[0], curves[0]])
    p = np.column_stack(curves)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total == 0, 1.0 / len(one.classes), p / np.where(total == 0, 1.0, total))


def _tempered(curve: Any, told: Answers) -> Symbolic:
    """The softmax of scores, or of the logarithms of probabilities, over a temperature."""
    if "decision_function" in told:
        scores = told["decision_function"]
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    else:
        scores = np.log(told["predict_proba"] + NO_CHANCE)
    return softmax(scores * float(curve.beta_), 1)


def _curve(curve: Any, scores: Symbolic) -> Symbolic:
    if isinstance(curve, _SigmoidCalibration):
        return expit(-(scores * float(curve.a_) + float(curve.b_)))
    if isinstance(curve, IsotonicRegression):
        return interpolated(scores, curve.X_thresholds_, curve.y_thresholds_)
    raise refused(curve, "its curve is not known as a graph")


def interpolated(x: Symbolic, knots: Any, values: Any) -> Symbolic:
    """Straight lines between knots, and constant outside.

    >>> from empirisk.exports.tensor import entry
    >>> interpolated(entry("x", np.array([0.5, 9.0])), np.array([0.0, 1.0]), np.array([0.0, 2.0])).value
    array([1., 2.])
    """
    knots, values = np.asarray(knots, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(knots) == 1:
        return 0.0 * x + values[0]
    inside = np.clip(x, knots[0], knots[-1])
    place = (inside[:, None] >= knots[1:-1]).astype(np.float64).sum(axis=1).astype(int)
    slope = np.diff(values) / np.diff(knots)
    return constant(values[:-1])[place] + constant(slope)[place] * (inside - constant(knots[:-1])[place])
