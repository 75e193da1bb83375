"""A trained model for other programs: ONNX for serving, and debiased labels for other learners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.extras import require
from dualrank.learning.model import Model
from dualrank.propensity.propensity import Propensity
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


def debiased_labels(
    log: ClickLog, dataset: Dataset, propensity: Propensity, max_weight: float = np.inf
) -> Dataset:
    """The displayed documents, graded by their inverse-propensity-weighted clicks per session.

        y(x) = Σ_l Σ_i w_i c_{l,i}  /  Σ_l n_l        over lists l that show x at position i

    w_i = P(o_1)/P(o_i), where the propensity has curves by a column of the log that of the
    session's own context. In expectation this is P(o_1) P(r_x): relevance, up to one factor for
    all.
    """
    depth = log.lists.depth
    if propensity.depth < depth:
        raise DataError(
            f"lists show {depth} documents, but the propensity knows {propensity.depth} positions"
        )
    mask, sessions = log.lists.mask, log.sessions_per_list
    weighted = np.zeros(mask.shape)
    for part, curve in _by_context(log, propensity):
        weighted += part.clicks_per_list * np.minimum(curve.weights[:depth], max_weight)
    shown = log.lists.documents[mask]
    clicks = np.bincount(shown, weighted[mask], dataset.document_count)
    times = np.bincount(
        shown, np.broadcast_to(sessions[:, None], mask.shape)[mask], dataset.document_count
    )
    labels = np.divide(clicks, times, out=np.zeros_like(clicks), where=times > 0)
    grades = labels.astype(np.float32)
    graded = replace(dataset, grades=grades, max_grade=float(grades.max()))
    return _displayed(graded, times > 0)


def _by_context(log: ClickLog, propensity: Propensity) -> list[tuple[ClickLog, Propensity]]:
    """The parts of a log that have curves of their own, or the whole with the common one."""
    if propensity.context is None:
        return [(log, propensity)]
    curves, column = propensity.by_context, log.column(propensity.context)
    return [
        (log.take_rows(np.flatnonzero(column.codes == code)), curves.get(name, propensity))
        for code, name in enumerate(column.names)
    ]


def _displayed(dataset: Dataset, shown: NDArray[np.bool_]) -> Dataset:
    """Only these documents; queries of which none is left go too."""
    queries = dataset.query_of_document[shown]
    return Dataset.from_arrays(
        dataset.features[shown],
        dataset.query_ids[queries],
        dataset.require_grades()[shown],
        doc_ids=dataset.ids_of_documents()[shown],
        max_grade=dataset.max_grade,
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

    scaler, network = model.scaler, model.ranker
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
    layers = len(network.weights)
    for layer in range(layers):
        weight = constant(f"W{layer}", network.weights[layer].detach().numpy())
        bias = constant(f"b{layer}", network.biases[layer].detach().numpy())
        x = node("Gemm", x, weight, bias, out=f"a{layer}", transB=1)
        if layer < layers - 1 or network.elu_output:
            x = node("Elu", x, out=f"h{layer}")
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
