"""A trained model as ONNX, for serving: scaling and network in one graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.target import Export, Written
from dualrank.errors import DataError, SettingsError
from dualrank.extras import require
from dualrank.learning.model import Model
from dualrank.storage import atomic_file
from dualrank.version import __version__

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET, IR_VERSION = 17, 8
TOLERANCE = 1e-5
SAMPLE = 1_000


def export_onnx(
    model: Model, path: Path, sample: NDArray[np.floating] | None = None, *, seed: int = 0
) -> float:
    """Write the model with its scaling as ONNX: `features` in, `score` out.

    Returns the largest difference between the two on `sample`, by default on documents that are
    drawn around the training data. Above 1e-5 nothing is written.
    """
    onnxruntime = require("onnx", "onnxruntime")
    graph = _graph(model)
    require("onnx", "onnx.checker").check_model(graph)
    content = graph.SerializeToString()
    features = _around_training(model, seed) if sample is None else sample.astype(np.float32)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"features": features})
    difference = float(np.abs(found - model.predict(features)).max())
    if not difference <= TOLERANCE:
        raise DataError(
            f"{path}: not written: ONNX and the model differ by {difference:.2g} on "
            f"{len(features)} documents, more than {TOLERANCE:g}"
        )
    with atomic_file(path) as file:
        file.write(content)
    return difference


def to_onnx(asked: Export) -> Written:
    """The target `onnx`: compared on the documents that are given, if there are some."""
    sample = None if asked.documents is None else asked.documents.features
    difference = export_onnx(asked.model, asked.out, sample, seed=asked.seed)
    return Written(
        f"differs from the model by at most {difference:.2g}", {"max_difference": difference}
    )


def _graph(model: Model) -> ModelProto:
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
        raise SettingsError(f"a ranker of kind {model.kind} has no layers that ONNX could hold")
    for number, layer in enumerate(layers):
        weight, bias = constant(f"W{number}", layer.weight), constant(f"b{number}", layer.bias)
        x = node("Gemm", x, weight, bias, out=f"a{number}", transB=1)
        if layer.activation is not None:
            x = node(layer.activation.capitalize(), x, out=f"h{number}")
    node("Squeeze", x, constant("last", np.array([1], np.int64)), out="score")
    graph = helper.make_graph(
        nodes,
        "dualrank",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", scaler.input_count])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n"])],
        constants,
    )
    return helper.make_model(
        graph,
        producer_name="dualrank",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )


def _around_training(model: Model, seed: int) -> NDArray[np.float32]:
    """Documents like those of the training data, as far as the scaling remembers them."""
    scaler = model.scaler
    rng = np.random.default_rng(seed)
    features = np.zeros((SAMPLE, scaler.input_count))
    drawn = rng.normal(size=(SAMPLE, scaler.output_count)) / scaler.scale + scaler.shift
    if scaler.kind == "log":
        drawn = np.sign(drawn) * np.expm1(np.minimum(np.abs(drawn), 80.0))
    features[:, scaler.kept] = drawn
    return features.astype(np.float32)
