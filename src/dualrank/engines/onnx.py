"""A trained model as ONNX, for serving: scaling and network, or trees, in one graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.engines.contents import feature_names
from dualrank.engines.parity import Features, draw_sample, require_parity
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import LARGEST, nodes_of_tree, require_splits
from dualrank.errors import SettingsError
from dualrank.extras import require
from dualrank.learning.model import Model
from dualrank.rankers.activations import LEAK
from dualrank.rankers.forest import LEAF, Forest
from dualrank.storage import atomic_file
from dualrank.version import __version__

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

OPSET, TREE_OPSET, IR_VERSION = 17, 3, 8
ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "elu": ("Elu", {}),
    "relu": ("Relu", {}),
    "leaky-relu": ("LeakyRelu", {"alpha": LEAK}),
    "tanh": ("Tanh", {}),
    "sigmoid": ("Sigmoid", {}),
}


def export_onnx(
    model: Model,
    path: Path,
    documents: Dataset | Features | None = None,
    *,
    seed: int = 0,
) -> float:
    """Write the model with its scaling as ONNX: `features` in, `score` out.

    Returns the largest difference between the two, relative to the score, on `documents` or on
    some that are drawn around the training data. Above 1e-5 nothing is written.
    """
    onnxruntime = require("onnx", "onnxruntime")
    graph = _graph(model)
    require("onnx", "onnx.checker").check_model(graph)
    content = graph.SerializeToString()
    sample = draw_sample(model, documents, seed=seed)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"features": sample.features})
    apart = require_parity(path, "ONNX", sample, found, model.predict(sample.features))
    with atomic_file(path) as file:
        file.write(content)
    return apart


def to_onnx(asked: Export) -> Written:
    """The target `onnx`: compared on the documents that are given, if there are some."""
    apart = export_onnx(asked.model, asked.out, asked.documents, seed=asked.seed)
    return Written(
        f"its scores differ from the model's by at most {apart:.2g} of the score",
        {"max_difference": apart, "features": feature_names(asked.model)},
    )


def _graph(model: Model) -> ModelProto:
    """The graph with what a reader needs to know: the names of its features, in their order."""
    from onnx import TensorProto, helper

    forest = model.ranker.forest()
    if forest is None:
        nodes, constants = _layers(model)
    else:
        nodes, constants = [_trees(require_splits(forest), model.scaler.kept)], []
    last = helper.make_tensor("last", TensorProto.INT64, [1], [1])
    nodes.append(helper.make_node("Squeeze", ["sum", "last"], ["score"]))
    graph = helper.make_graph(
        nodes,
        "dualrank",
        [
            helper.make_tensor_value_info(
                "features", TensorProto.FLOAT, ["n", model.scaler.input_count]
            )
        ],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n"])],
        [*constants, last],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    if forest is not None:
        opsets.append(helper.make_opsetid("ai.onnx.ml", TREE_OPSET))
    made = helper.make_model(
        graph,
        producer_name="dualrank",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=opsets,
    )
    helper.set_model_props(made, {"feature_names": json.dumps(feature_names(model))})
    return made


def _trees(forest: Forest, kept: NDArray[np.int64]) -> NodeProto:
    """One operator for all trees; a node is told by its tree and its number in it."""
    from onnx import helper

    trees = [nodes_of_tree(forest, root) for root in forest.roots.tolist()]
    order = np.concatenate(trees)
    tree = np.repeat(np.arange(len(trees)), [len(nodes) for nodes in trees])
    number = np.concatenate([np.arange(len(nodes)) for nodes in trees])
    number_of = np.zeros(len(forest.feature), np.int64)
    number_of[order] = number
    feature = forest.feature[order]
    inner = feature != LEAF
    left, right = (np.where(inner, each[order], 0) for each in (forest.left, forest.right))
    # Every number is at most the largest, even infinity, as the model cuts that off.
    threshold = forest.threshold[order]
    threshold = np.where(threshold == LARGEST, np.float32(np.inf), threshold)
    return helper.make_node(
        "TreeEnsembleRegressor",
        ["features"],
        ["sum"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=number.tolist(),
        nodes_featureids=np.where(inner, kept[feature], 0).tolist(),
        nodes_values=np.where(inner, threshold, 0).tolist(),
        nodes_modes=np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
        nodes_truenodeids=np.where(inner, number_of[left], 0).tolist(),
        nodes_falsenodeids=np.where(inner, number_of[right], 0).tolist(),
        nodes_missing_value_tracks_true=(inner & forest.missing_left[order]).astype(int).tolist(),
        target_treeids=tree[~inner].tolist(),
        target_nodeids=number[~inner].tolist(),
        target_ids=[0] * int((~inner).sum()),
        target_weights=forest.value[order][~inner].tolist(),
    )


def _layers(model: Model) -> tuple[list[Any], list[Any]]:
    """Scaling in double precision, as the model does it, then the network in single."""
    from onnx import TensorProto, helper, numpy_helper

    constants: list[Any] = []
    nodes: list[Any] = []

    def constant(name: str, values: NDArray[Any]) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(kind: str, *inputs: str, out: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    scaler = model.scaler
    x = node("Gather", "features", constant("kept", scaler.kept), out="chosen", axis=1)
    x = node("Cast", x, out="wide", to=TensorProto.DOUBLE)
    if scaler.kind == "log":
        size = node("Abs", x, out="size")
        size = node("Log", node("Add", size, constant("one", np.array(1.0)), out="more"), out="log")
        x = node("Mul", node("Sign", x, out="sign"), size, out="signed")
    if scaler.kind != "none":
        x = node("Sub", x, constant("shift", scaler.shift), out="shifted")
        x = node("Mul", x, constant("scale", scaler.scale), out="scaled")
    largest = float(np.finfo(np.float32).max)
    bounds = constant("least", np.array(-largest)), constant("most", np.array(largest))
    x = node("Cast", node("Clip", x, *bounds, out="clipped"), out="h", to=TensorProto.FLOAT)
    layers = model.ranker.layers()
    if layers is None:
        raise SettingsError(
            f"a ranker of kind {model.kind} has no layers or trees that ONNX could hold"
        )
    last = len(layers) - 1
    for number, layer in enumerate(layers):
        weight, bias = constant(f"W{number}", layer.weight), constant(f"b{number}", layer.bias)
        ends = number == last and layer.activation is None
        x = node("Gemm", x, weight, bias, out="sum" if ends else f"a{number}", transB=1)
        if layer.activation is not None:
            kind, options = ACTIVATIONS[layer.activation]
            x = node(kind, x, out="sum" if number == last else f"h{number}", **options)
    return nodes, constants
