"""Vespa: LightGBM's dump, as Vespa turns it into a ranking expression and evaluates that.

It becomes if(x < t, left, right), or if(!(x >= t), left, right) where missing values go left: a
missing value is nan, and so lies below no threshold. Values and thresholds are float32, the sum
over trees is double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.evaluators.descent import Node, Values, tree_values


def score(dump: Any, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    """The scores that `lightgbm("file.json")` gives `count` documents."""
    names = dump["feature_names"]

    def split(node: Node, rows: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Node, Node]:
        x = columns[names[node["split_feature"]]][rows]
        threshold = np.float32(node["threshold"])
        goes = ~(x >= threshold) if node["default_left"] else x < threshold
        return goes, node["left_child"], node["right_child"]

    total = np.zeros(count)
    for tree in dump["tree_info"]:
        root = tree["tree_structure"]
        total += tree_values(root, count, lambda node: node.get("leaf_value"), split)
    return total.astype(np.float32)
