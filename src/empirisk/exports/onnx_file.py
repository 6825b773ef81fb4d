"""Graphs as models of ONNX: opset 20, and 5 of its operations for machine learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import __version__
from empirisk.exports.graph import Graph
from empirisk.exports.tensor import Node, Tensor, kind_of
from empirisk.exports.words import trimmed_by_parts
from empirisk.extras import need

#: Versions of the operations: the first that have what graphs use, so that older runtimes read them too.
OPSET, ML_OPSET, IR_VERSION = 20, 5, 10
#: Where ONNX Runtime has the operation that finds the letters of a text, which ONNX itself does not have.
RUNTIME = "com.microsoft"
#: Attributes that are inputs in ONNX.
AS_INPUTS = {"ReduceSum": ("axes",), "ReduceMax": ("axes",), "ReduceMin": ("axes",), "ReduceMean": ("axes",)}
AS_INPUTS |= {"Reshape": ("shape",), "TopK": ("k",), "CumSum": ("axis",)}
#: Attributes that ONNX would have otherwise by default.
FIXED: dict[str, dict[str, Any]] = {"ArgMax": {"keepdims": 0}}
#: How a node of a tree decides: by a threshold, or by a set of values.
AT_MOST, MEMBER = 0, 6
#: What a node of no categories, where missing values alone go one way, asks for: ONNX has no empty sets.
NO_CODE = -1.0


def library() -> Any:
    """The package ``onnx``."""
    need("ONNX", "export", "onnx", "onnxruntime")
    import onnx
    import onnx.helper
    import onnx.numpy_helper

    return onnx


def onnx_model(graph: Graph) -> Any:
    """The model as ``onnx.ModelProto``.

    >>> from empirisk.exports.tensor import entry
    >>> x = entry("x", np.ones((1, 2)))
    >>> [node.op_type for node in onnx_model(Graph((x,), {"y": np.exp(x)})).graph.node]
    ['Exp', 'Identity']
    """
    return _OnnxWriter(library()).model(graph)


class _OnnxWriter:
    """Names the tensors of a graph, and writes its nodes."""

    def __init__(self, onnx: Any):
        self.onnx, self.help = onnx, onnx.helper
        self.names: dict[tuple[int, int], str] = {}
        self.constants: list[Any] = []
        self.nodes: list[Any] = []
        self.kept: list[Tensor] = []  # so that no id is given twice

    def model(self, graph: Graph) -> Any:
        for tensor in graph.inputs:
            self.names[id(tensor.node), 0] = tensor.node.attributes["name"]
        for node in graph.nodes():
            self.write(node)
        for name, tensor in graph.outputs.items():
            self.nodes.append(self.help.make_node("Identity", [self.name(tensor)], [name]))
        inputs = [self.described(tensor.node.attributes["name"], tensor) for tensor in graph.inputs]
        outputs = [self.described(name, tensor) for name, tensor in graph.outputs.items()]
        made = self.help.make_graph(self.nodes, "empirisk", inputs, outputs, self.constants, doc_string=graph.about)
        sets = [self.help.make_opsetid("", OPSET), self.help.make_opsetid("ai.onnx.ml", ML_OPSET)]
        if any(node.domain == RUNTIME for node in self.nodes):
            sets.append(self.help.make_opsetid(RUNTIME, 1))
        return self.help.make_model(
            made, producer_name="empirisk", producer_version=__version__, opset_imports=sets, ir_version=IR_VERSION
        )

    def described(self, name: str, tensor: Tensor) -> Any:
        """An input or output with its type and shape, in which the number of rows is open."""
        kinds = {"double": "DOUBLE", "int64": "INT64", "bool": "BOOL", "string": "STRING"}
        kind = getattr(self.onnx.TensorProto, kinds[kind_of(tensor.value)])
        return self.help.make_tensor_value_info(name, kind, ["rows", *tensor.shape[1:]])

    def name(self, tensor: Tensor) -> str:
        """The name of a tensor; a constant becomes part of the model where it is first asked for."""
        key = id(tensor.node), tensor.output
        if key not in self.names:
            self.names[key] = f"c{len(self.constants)}"
            self.kept.append(tensor)
            self.constants.append(self.array(tensor.value, self.names[key]))
        return self.names[key]

    def array(self, value: Any, name: str = "") -> Any:
        array = np.asarray(value)
        return self.onnx.numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, name)

    def write(self, node: Node) -> None:
        if node.operation in LOWERED:
            made = LOWERED[node.operation](*node.inputs, **node.attributes)
            self.kept.append(made)
            for inner in Graph((), {"": made}).nodes():
                if (id(inner), 0) not in self.names:
                    self.write(inner)
            self.names[id(node), 0] = self.name(made)
            return
        special = SPECIAL.get(node.operation)
        domain, attributes, more = ("", dict(node.attributes), []) if special is None else special(self, node)
        for name in AS_INPUTS.get(node.operation, ()):
            value = np.atleast_1d(np.asarray(attributes.pop(name), dtype=np.int64))
            more.append(f"c{len(self.constants)}")
            self.constants.append(self.array(value, more[-1]))
        outputs = [f"v{len(self.nodes)}_{k}" for k in range(OUTPUTS.get(node.operation, 1))]
        for k, output in enumerate(outputs):
            self.names[id(node), k] = output
        inputs = [self.name(each) for each in node.inputs] + more
        attributes |= FIXED.get(node.operation, {})
        made = [f"{outputs[0]}_single"] if node.operation in SINGLE else outputs
        self.nodes.append(self.help.make_node(node.operation, inputs, made, domain=domain, **attributes))
        if made != outputs:
            self.nodes.append(self.help.make_node("Cast", made, outputs, to=self.onnx.TensorProto.DOUBLE))

    # --- operations whose attributes have another form in ONNX ------------------------------------------------------

    def cast(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        kinds = {"double": "DOUBLE", "int64": "INT64", "bool": "BOOL"}
        return "", {"to": getattr(self.onnx.TensorProto, kinds[node.attributes["to"]])}, []

    def split(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        told = {"delimiter": node.attributes["delimiter"]} if node.attributes["delimiter"] is not None else {}
        return "", told | {"maxsplit": node.attributes["maxsplit"]}, []

    def encoder(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        told = {f"{name}_tensor": self.array(node.attributes[name], name) for name in ("keys", "values")}
        default = np.array([node.attributes["default"]])
        return "ai.onnx.ml", told | {"default_tensor": self.array(default, "default")}, []

    def trees(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        told = _with_splits(node.attributes)
        members, count = told["members"], len(told["feature"])
        modes = np.full(count, AT_MOST, dtype=np.uint8)
        modes[list(members)] = MEMBER
        sets = [value for number in sorted(members) for value in (*(members[number] or [NO_CODE]), np.nan)]
        written: dict[str, Any] = {
            "n_targets": int(told["n_targets"]),
            "aggregate_function": 1,
            "post_transform": 0,
            "tree_roots": told["roots"].tolist(),
            "nodes_featureids": told["feature"].tolist(),
            "nodes_modes": self.array(modes, "modes"),
            "nodes_splits": self.array(told["split"], "splits"),
            "nodes_missing_value_tracks_true": told["missing_true"].astype(int).tolist(),
            "leaf_targetids": told["target"].tolist(),
            "leaf_weights": self.array(told["weight"], "weights"),
        }
        for name in ("true", "false"):
            written[f"nodes_{name}leafs"] = (told[name] < 0).astype(int).tolist()
            written[f"nodes_{name}nodeids"] = np.where(told[name] < 0, -1 - told[name], told[name]).tolist()
        if sets:
            written["membership_values"] = self.array(np.array(sets), "members")
        return "ai.onnx.ml", written, []

    def letters(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        return RUNTIME, {"mark": 0, "mincharnum": 1, "pad_value": "", "separators": [""]}, []


#: Operations that are several in ONNX.
LOWERED: dict[str, Callable[..., Tensor]] = {"Trim": trimmed_by_parts}
#: Operations that count in single precision: whole numbers up to 2^24 are exact there.
SINGLE = {"TfIdfVectorizer"}
OUTPUTS = {"TopK": 2, "StringSplit": 2}
SPECIAL = {
    "Cast": _OnnxWriter.cast,
    "StringSplit": _OnnxWriter.split,
    "LabelEncoder": _OnnxWriter.encoder,
    "TreeEnsemble": _OnnxWriter.trees,
    "Tokenizer": _OnnxWriter.letters,
}


def _with_splits(told: dict[str, Any]) -> dict[str, Any]:
    """Trees that are a single leaf get a split whose two sides are that leaf: in ONNX a tree begins with a split."""
    bare = np.flatnonzero(told["roots"] < 0)
    if not len(bare):
        return told
    added, roots = len(bare), told["roots"].copy()
    leaves = roots[bare]
    roots[bare] = len(told["feature"]) + np.arange(added)

    def longer(name: str, more: NDArray) -> NDArray:
        return np.concatenate([told[name], more.astype(told[name].dtype)])

    return told | {
        "roots": roots,
        "feature": longer("feature", np.zeros(added)),
        "split": longer("split", np.zeros(added)),
        "missing_true": longer("missing_true", np.zeros(added)),
        "true": longer("true", leaves),
        "false": longer("false", leaves),
    }
