"""Machines of the equation as graphs: every loss, link and scheme of classes, with any map or kernel."""

from typing import Any

import numpy as np

from empirisk.exports.families.maps import products
from empirisk.exports.registry import Answers, answers, refused, told_by, write_answers
from empirisk.exports.tensor import Symbolic
from empirisk.machines.centroid import NearestCentroid
from empirisk.machines.equation import Classifier, Regressor
from empirisk.machines.oneclass import OneClassSVM
from empirisk.machines.parametric import Parametric
from empirisk.machines.quantiles import QuantileRegressor


@write_answers.register(Classifier)
@write_answers.register(NearestCentroid)
def _(machine: Any, x: Symbolic) -> Answers:
    scores = products(machine, x) + machine.intercept_
    return told_by(machine, "predict predict_proba decision_function", _scores=scores)


@write_answers.register
def _(machine: Regressor, x: Symbolic) -> Answers:
    return told_by(machine, "predict", _scores=products(machine, x) + machine.intercept_)


@write_answers.register
def _(machine: OneClassSVM, x: Symbolic) -> Answers:
    return told_by(machine, "predict decision_function", _products=products(machine, x))


@write_answers.register
def _(machine: QuantileRegressor, x: Symbolic) -> Answers:
    found = np.column_stack([answers(member, x)["predict"] for member in machine.estimators_])
    return told_by(machine, "predict", predict_quantiles=np.sort(found, axis=1))


@write_answers.register
def _(machine: Parametric, x: Symbolic) -> Answers:
    raise refused(machine, "its function is code of its user")
