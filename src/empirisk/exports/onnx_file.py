"""Graphs as models of ONNX: opset 20, and 5 of its operations for machine learning, or 3 for programs that need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import __version__
from empirisk.errors import Unsuitable
from empirisk.exports import operations
from empirisk.exports.graph import Graph
from empirisk.exports.tensor import Node, Symbolic, Tensor, constant, kind_of
from empirisk.exports.words import trimmed_by_parts
from empirisk.extras import need

#: Versions of the operations: the first that have what graphs use, so that older runtimes read them too.
OPSET, ML_OPSET, IR_VERSION = 20, 5, 10
#: The version of the operations for machine learning that programs of before 2024 have.
OLDER_ML_OPSET = 3
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


def onnx_model(graph: Graph, ml_opset: int = ML_OPSET) -> Any:
    """The model as ``onnx.ModelProto``; ``ml_opset`` is 5, or 3, in which words have no form, nor sets of categories.

    >>> from empirisk.exports.tensor import entry
    >>> x = entry("x", np.ones((1, 2)))
    >>> [node.op_type for node in onnx_model(Graph((x,), {"y": np.exp(x)})).graph.node]
    ['Exp', 'Identity']
    """
    return _OnnxWriter(library(), ml_opset).model(graph)


class _OnnxWriter:
    """Names the tensors of a graph, and writes its nodes."""

    def __init__(self, onnx: Any, ml_opset: int):
        self.onnx, self.help, self.ml_opset = onnx, onnx.helper, ml_opset
        self.lowered = LOWERED if ml_opset >= ML_OPSET else LOWERED | OLDER
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
        sets = [self.help.make_opsetid("", OPSET), self.help.make_opsetid("ai.onnx.ml", self.ml_opset)]
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
        if node.operation in self.lowered:
            made = self.lowered[node.operation](*node.inputs, **node.attributes)
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
        if self.ml_opset < ML_OPSET:
            raise Unsuitable(f"Words and categories have no form in ai.onnx.ml {self.ml_opset}.")
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

    def older_trees(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        """Splits keep their numbers, leaves come after them; the nodes of a tree stand together, its root first."""
        told, splits = node.attributes, len(node.attributes["feature"])
        if told["members"]:
            raise Unsuitable(f"Sets of categories have no form in ai.onnx.ml {self.ml_opset}.")
        leaves = len(told["weight"])
        tree = np.concatenate([_tree_of_splits(told["roots"], splits), told["target"]])
        order = np.argsort(tree, kind="stable")
        filler = np.zeros(leaves)
        true, false = (np.where(told[side] < 0, splits - 1 - told[side], told[side]) for side in ("true", "false"))

        def both(values: NDArray) -> NDArray:
            return np.concatenate([values, filler.astype(np.asarray(values).dtype)])[order]

        written: dict[str, Any] = {
            "n_targets": int(told["n_targets"]),
            "aggregate_function": "SUM",
            "post_transform": "NONE",
            "nodes_treeids": tree[order].tolist(),
            "nodes_nodeids": order.tolist(),
            "nodes_featureids": both(told["feature"]).tolist(),
            "nodes_modes": ["BRANCH_LEQ" if place < splits else "LEAF" for place in order],
            "nodes_values_as_tensor": self.array(both(told["split"]), "splits"),
            "nodes_truenodeids": both(true).tolist(),
            "nodes_falsenodeids": both(false).tolist(),
            "nodes_missing_value_tracks_true": both(told["missing_true"].astype(int)).tolist(),
            "target_treeids": told["target"].tolist(),
            "target_nodeids": (splits + np.arange(leaves)).tolist(),
            "target_ids": told["target"].tolist(),
            "target_weights_as_tensor": self.array(told["weight"], "weights"),
        }
        return "ai.onnx.ml", written, []

    def letters(self, node: Node) -> tuple[str, dict[str, Any], list[str]]:
        return RUNTIME, {"mark": 0, "mincharnum": 1, "pad_value": "", "separators": [""]}, []


def _tree_of_splits(roots: NDArray, count: int) -> NDArray[np.int64]:
    """The tree of each split; those of a tree stand together, the root first."""
    grown = np.flatnonzero(roots >= 0)
    return grown[np.searchsorted(roots[grown], np.arange(count), side="right") - 1]


def trees_by_leaves(x: Symbolic, **told: Any) -> Symbolic:
    """Trees in ai.onnx.ml 3, which adds up in single precision: it tells leaves (exact up to 2^24) of a table.

    Every target has as many trees.
    """
    roots, target, weight = told["roots"], told["target"], told["weight"]
    owner = np.empty(len(weight), dtype=np.int64)
    for side in (told["true"], told["false"]):
        owner[-1 - side[side < 0]] = _tree_of_splits(roots, len(side))[side < 0]
    owner[-1 - roots[roots < 0]] = np.flatnonzero(roots < 0)
    leaves = told | {"n_targets": len(roots), "target": owner, "weight": np.arange(len(weight), dtype=np.float64)}
    reached = Tensor(Node("TreeEnsembleRegressor", (x,), leaves), operations.find("TreeEnsemble")(x.value, **leaves))
    by_tree = np.empty(len(roots), dtype=np.int64)
    by_tree[owner] = target
    values = constant(weight)[reached.astype(np.int64)][:, np.argsort(by_tree, kind="stable").tolist()]
    return values.reshape(0, told["n_targets"], len(roots) // told["n_targets"]).sum(axis=2)


#: Operations that are several in ONNX.
LOWERED: dict[str, Callable[..., Tensor]] = {"Trim": trimmed_by_parts}
#: Those that are several in older versions alone.
OLDER: dict[str, Callable[..., Tensor]] = {"TreeEnsemble": trees_by_leaves}
#: Operations that count in single precision: whole numbers up to 2^24 are exact there.
SINGLE = {"TfIdfVectorizer", "TreeEnsembleRegressor"}
OUTPUTS = {"TopK": 2, "StringSplit": 2}
SPECIAL = {
    "Cast": _OnnxWriter.cast,
    "StringSplit": _OnnxWriter.split,
    "LabelEncoder": _OnnxWriter.encoder,
    "TreeEnsemble": _OnnxWriter.trees,
    "TreeEnsembleRegressor": _OnnxWriter.older_trees,
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
