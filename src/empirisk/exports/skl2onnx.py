"""Empirisk's machines inside pipelines that skl2onnx converts, once `register` was called.

skl2onnx writes ai.onnx.ml 3, in which trees tell their leaves alone, and words and sets of categories have no form:
`er.export` writes whole pipelines with both.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.exports.onnx_file import OLDER_ML_OPSET, OPSET, onnx_model
from empirisk.exports.rows import rows_for
from empirisk.exports.write import graph_of

#: What is registered: every estimator that takes a matrix of numbers.
MACHINES = (
    "AdaBoostClassifier AdditiveClassifier AdditiveRegressor BaggingClassifier BaggingRegressor BoostingClassifier "
    "BoostingRegressor Classifier ElasticNet ForestClassifier ForestRegressor GaussianDensity GaussianMixture "
    "KMeans KNNClassifier KNNRegressor Lasso LeastAbsolute LeastSquares LeastSquaresClassifier LogisticRegression "
    "NearestCentroid OneClassSVM PCA Perceptron QuantileRegressor Regressor Ridge SVM SVR TreeClassifier "
    "TreeRegressor VoteClassifier VoteRegressor"
)


def register() -> list[str]:
    """Register the converters; returns the names of the machines."""
    try:
        update_registered_converter = import_module("skl2onnx").update_registered_converter
    except ImportError as error:
        raise EmpiriskError("empirisk.exports.skl2onnx needs the package skl2onnx: pip install skl2onnx.") from error
    for name in MACHINES.split():
        update_registered_converter(getattr(er, name), f"Empirisk{name}", _shapes, _convert, overwrite=True)
    return [*MACHINES.split()]


def _shapes(operator: Any) -> None:
    """Types and shapes of the outputs: those of the graph."""
    known = import_module("skl2onnx.common.data_types")
    types = {"f": known.DoubleTensorType, "i": known.Int64TensorType, "O": known.StringTensorType}
    graph = _graph(operator.raw_operator)
    if len(operator.outputs) > len(graph.outputs):
        name = type(operator.raw_operator).__name__
        raise Unsuitable(
            f"{name} says labels alone, and skl2onnx asks classifiers for probabilities too; set voting='soft', or "
            "write the pipeline with er.export."
        )
    for variable, tensor in zip(operator.outputs, graph.outputs.values(), strict=False):
        variable.type = types[tensor.dtype.kind]([None, *tensor.shape[1:]])


def _graph(model: Any) -> Any:
    return graph_of(model, rows_for(model, np.zeros((3, model.n_features_in_))))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Put the nodes of the graph into the model that is made, each under a name of its own."""
    proto = onnx_model(_graph(operator.raw_operator), OLDER_ML_OPSET).graph
    names = {proto.input[0].name: scope.get_unique_variable_name("rows")}
    container.add_node("Cast", operator.inputs[0].full_name, names[proto.input[0].name], to=11, op_version=13)
    for output, variable in zip(proto.output, operator.outputs, strict=False):
        names[output.name] = variable.full_name

    def named(name: str) -> str:
        return names.setdefault(name, scope.get_unique_variable_name(name))

    for array in proto.initializer:
        array.name = named(array.name)
        container.initializers.append(array)
    for node in proto.node:
        node.input[:], node.output[:] = map(named, list(node.input)), map(named, list(node.output))
        node.name = scope.get_unique_operator_name(node.op_type)
        container.nodes.append(node)
    versions = {"": OPSET, "ai.onnx.ml": OLDER_ML_OPSET}
    container.node_domain_version_pair_sets.update((node.domain, versions[node.domain]) for node in proto.node)
