"""A model as plain arrays, and its scores by numpy alone, for machines that have no more than that.

Spark sends these functions to its executors as they stand here, where dualrank is not installed:
they use numpy and pyarrow, each other, and nothing else of this package. Arrays travel as their
bytes, which every version of numpy reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dualrank.learning.model import Model

Plain = dict[str, Any]
"""What scoring takes of a model: numbers, names, and arrays by name."""

ROWS_AT_ONCE = 4_096
"""So that what a layer makes of them stays in the processor's cache."""
REFUSED = "dualrank: "
"""What begins the sentence of an error that the user can mend."""


def plain_model(model: Model) -> Plain | None:
    """A model as it travels; None of a ranker that is neither layers nor trees."""
    layers, forest, scaler = model.ranker.layers(), model.ranker.forest(), model.scaler
    if model.ranker.by_list or (layers is None and forest is None):
        return None
    arrays: dict[str, Any] = {"kept": scaler.kept, "shift": scaler.shift, "scale": scaler.scale}
    activations: list[str | None] = []
    if forest is not None:
        parts = ("feature", "threshold", "left", "right", "missing_left", "value", "roots")
        arrays |= {name: getattr(forest, name) for name in parts}
    else:
        for number, layer in enumerate(layers or ()):
            arrays |= {f"weight.{number}": layer.weight, f"bias.{number}": layer.bias}
            activations.append(layer.activation)
    return {
        "kind": model.kind,
        "takes_missing": model.ranker.takes_missing,
        "names": model.feature_names,
        "inputs": scaler.input_count,
        "scaling": scaler.kind,
        "activations": activations,
        "trees": forest is not None,
        "arrays": {
            name: (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())
            for name, array in arrays.items()
        },
    }


def scoring_by(plain: Plain) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """What gives one score per row of features."""
    arrays = {
        name: np.frombuffer(content, dtype).reshape(shape)
        for name, (dtype, shape, content) in plain["arrays"].items()
    }
    score = _by_trees(arrays) if plain["trees"] else _by_layers(arrays, plain["activations"])

    def scores(features: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(len(features), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(features), ROWS_AT_ONCE):
                rows = slice(start, start + ROWS_AT_ONCE)
                found[rows] = score(_scaled(features[rows], plain["scaling"], arrays))
        return found

    return scores


def _scaled(features: Any, scaling: str, arrays: dict[str, Any]) -> Any:
    """As `Scaler.transform` does."""
    block = features[:, arrays["kept"]].astype(np.float64)
    if scaling == "log":
        block = np.copysign(np.log1p(np.abs(block)), block)
    if scaling != "none":
        block = (block - arrays["shift"]) * arrays["scale"]
    largest = float(np.finfo(np.float32).max)
    return np.clip(block, -largest, largest).astype(np.float32)


def _by_layers(arrays: dict[str, Any], activations: list[str | None]) -> Callable[[Any], Any]:
    def score(h: Any) -> Any:
        for number, activation in enumerate(activations):
            a = h @ arrays[f"weight.{number}"].T + arrays[f"bias.{number}"]
            h = a if activation is None else _activated(activation, a)
        return h[:, 0]

    return score


def _activated(name: str, a: Any) -> Any:
    """Those of `rankers/activations.py`."""
    if name == "elu":
        return np.maximum(a, np.minimum(np.exp(a) - np.float32(1), np.float32(0)))
    if name == "relu":
        return np.maximum(a, np.float32(0))
    if name == "leaky-relu":
        return np.where(a > 0, a, np.float32(0.01) * a)
    if name == "tanh":
        return np.tanh(a)
    if name == "sigmoid":
        return np.float32(1) / (np.float32(1) + np.exp(-a))
    raise ValueError(f"{REFUSED}no activation is called {name}")


def _by_trees(arrays: dict[str, Any]) -> Callable[[Any], Any]:
    """All documents go down a tree together; one that has come to a leaf stays there."""
    nodes = np.arange(len(arrays["feature"]))
    leaf = arrays["feature"] < 0
    feature = np.where(leaf, 0, arrays["feature"]).astype(np.intp)
    children = np.empty(2 * len(nodes), np.intp)
    children[0::2] = np.where(leaf, nodes, arrays["right"])
    children[1::2] = np.where(leaf, nodes, arrays["left"])
    threshold, missing_left = arrays["threshold"], arrays["missing_left"]
    some_missing = bool(missing_left[~leaf].any())

    def score(x: Any) -> Any:
        total = np.zeros(len(x))
        flat, begins = np.ascontiguousarray(x).ravel(), np.arange(len(x)) * x.shape[1]
        look = some_missing and bool(np.isnan(flat).any())
        for root in arrays["roots"]:
            node = np.full(len(x), root, np.intp)
            while not leaf[node].all():
                value = flat[begins + feature[node]]
                goes_left = value <= threshold[node]
                if look:
                    goes_left |= np.isnan(value) & missing_left[node]
                node = children[2 * node + goes_left]
            total += arrays["value"][node]
        return total

    return score


def scores_of_batches(
    held: Any, columns: list[str] | None, where: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What makes `query_id`, `doc_id` and `score` of batches with float features beside the ids.

    The features are these columns, or the lists of a column `features`; `held.value` is the model,
    and `where` what the user calls the features.
    """

    def scored(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plain = held.value
        score = scoring_by(plain)
        for batch in batches:
            ids = [batch.column("query_id"), batch.column("doc_id")]
            if any(each.null_count for each in ids):
                raise ValueError(f"{REFUSED}{where}: a row has no query_id, or no doc_id")
            features = _matrix(batch, columns, plain["inputs"], where)
            _require_good(features, ids, plain, where)
            scores = score(features)
            bad = np.flatnonzero(~np.isfinite(scores))
            if len(bad):
                raise ValueError(
                    f"{REFUSED}{where}: {_named(ids, bad[0])}: its score is no finite number; "
                    "correct its features, or train with features of ordinary size"
                )
            yield pa.RecordBatch.from_arrays(
                [*ids, pa.array(scores, pa.float32())], ["query_id", "doc_id", "score"]
            )

    return scored


def _matrix(batch: Any, columns: list[str] | None, inputs: int, where: str) -> Any:
    if columns is not None:
        matrix = np.empty((batch.num_rows, len(columns)), np.float32)
        for number, name in enumerate(columns):
            matrix[:, number] = batch.column(name).to_numpy(zero_copy_only=False)
        return matrix
    lists = batch.column("features")
    lengths = np.diff(lists.offsets.to_numpy())
    if lists.null_count or (lengths != inputs).any():
        found = [0] if lists.null_count else lengths[lengths != inputs]
        raise ValueError(f"{REFUSED}{where}: {found[0]} features; expected {inputs}")
    values = lists.flatten().to_numpy(zero_copy_only=False)
    return values.astype(np.float32).reshape(-1, inputs)


def _require_good(features: Any, ids: list[Any], plain: Plain, where: str) -> None:
    """Refuse infinite features and, for a ranker that needs all of them, missing ones."""
    for bad, what in ((np.isinf(features), "infinite"), (np.isnan(features), "missing")):
        if not bad.any() or (what == "missing" and plain["takes_missing"]):
            continue
        row, column = (int(each[0]) for each in np.nonzero(bad))
        feature = plain["names"][column] if plain["names"] else f"feature {column + 1}"
        told = f"{REFUSED}{where}: {feature} of {_named(ids, row)} is {what}; "
        if what == "infinite":
            raise ValueError(f"{told}features are finite, or missing (numbers go up to 3.4e38)")
        raise ValueError(
            f"{told}a ranker of kind {plain['kind']} needs all values: fill them, or train trees"
        )


def _named(ids: list[Any], row: int) -> str:
    query, document = (str(each[int(row)].as_py())[:80] for each in ids)
    return f"document {document!r} of query {query!r}"
