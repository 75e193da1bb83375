"""Solr's module ltr: the JSON of a model, scored by the rules of its classes.

All is float32. A feature has a value for every document (0 where there is none), which its `norm`
scales first. A tree goes left where x ≤ threshold + 1e-6. In a model with `isNullSameAsZero` false,
a value that is missing stays so, and goes where `missing` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.evaluators.descent import Node, Values, tree_values

SLACK = np.float32(1e-6)
ACTIVATIONS: dict[str, Callable[[Values], Values]] = {
    "identity": lambda a: a,
    "relu": lambda a: np.where(a < 0, np.float32(0), a),
    "leakyrelu": lambda a: np.where(a < 0, np.float32(0.01) * a, a),
    "tanh": lambda a: np.tanh(a.astype(np.float64)).astype(np.float32),
    "sigmoid": lambda a: (1 / (1 + np.exp(-a.astype(np.float64)))).astype(np.float32),
}


def score(model: Any, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    """The scores that a model gives `count` documents."""
    kind, params = model["class"].rpartition(".")[2], model["params"]
    if params.get("isNullSameAsZero", True):
        columns = {name: np.nan_to_num(x, nan=0.0) for name, x in columns.items()}
    values = {each["name"]: _normed(each, columns[each["name"]]) for each in model["features"]}
    total = np.zeros(count, np.float32)
    if kind == "LinearModel":
        for name, x in values.items():
            total += np.float32(params["weights"][name]) * x
    elif kind == "MultipleAdditiveTreesModel":
        for tree in params["trees"]:
            total += np.float32(tree["weight"]) * _tree(tree["root"], values, count)
    else:
        return _network(params["layers"], np.stack(list(values.values()), axis=1))
    return total


def _normed(feature: Any, x: Values) -> Values:
    if "norm" not in feature:
        return x
    params = feature["norm"]["params"]
    return (x - np.float32(params["avg"])) / np.float32(params["std"])


def _network(layers: Any, h: Values) -> NDArray[np.float32]:
    for layer in layers:
        out = np.tile(np.array(layer["bias"], np.float32), (len(h), 1))
        for column, weights in enumerate(np.array(layer["matrix"], np.float32).T):
            out += h[:, column, None] * weights
        h = ACTIVATIONS[layer["activation"]](out)
    return h[:, 0]


def _tree(root: Node, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    def split(node: Node, rows: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Node, Node]:
        x = columns[node["feature"]][rows]
        goes = x <= np.float32(node["threshold"]) + SLACK
        goes = np.where(np.isnan(x), node.get("missing") == "left", goes)
        return goes, node["left"], node["right"]

    def leaf(node: Node) -> float | None:
        return None if "feature" in node else float(node["value"])

    return tree_values(root, count, leaf, split)
