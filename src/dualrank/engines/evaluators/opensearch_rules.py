"""OpenSearch Learning to Rank: a request to create a model, scored by the plugin's rules.

All is float32. A linear model is Σ w x over its features, after their normalisers. A tree goes to
`yes` where x < split_condition, to `no` otherwise; a missing value goes to `missing` (OpenSearch
3.8 and later; before, see docs/engines/opensearch.md). In linear models a missing value is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.evaluators.descent import Node, Values, tree_values


def score(body: Any, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    """The scores that a request's model gives `count` documents."""
    model = body["model"]["model"]
    if model["type"] == "model/linear":
        return _linear(model, columns, count)
    total = np.zeros(count, np.float32)
    for tree in model["definition"]["splits"]:
        total += _tree(tree, columns, count)
    return total


def _linear(model: Any, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    total = np.zeros(count, np.float32)
    normalisers = model.get("feature_normalizers", {})
    for name, weight in model["definition"].items():
        x = np.nan_to_num(columns[name], nan=0.0)
        if name in normalisers:
            by = normalisers[name]["standard"]
            x = (x - np.float32(by["mean"])) / np.float32(by["standard_deviation"])
        total += np.float32(weight) * x
    return total


def _tree(tree: Node, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    def split(node: Node, rows: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Node, Node]:
        x = columns[node["split"]][rows]
        if_missing = node.get("missing") == node["yes"]
        yes = np.where(np.isnan(x), if_missing, np.float32(node["split_condition"]) > x)
        return yes, node["children"][0], node["children"][1]

    return tree_values(tree, count, lambda node: node.get("leaf"), split)
