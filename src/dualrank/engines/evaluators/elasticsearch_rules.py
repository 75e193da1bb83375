"""Elasticsearch: the definition of a trained model, scored by the rules of its inference.

Values are doubles. A node compares its feature with the threshold by `decision_type`; a feature
that a document lacks goes by `default_left`. Trees are added up.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.evaluators.descent import Node, Values, tree_values

DECISIONS = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}


def score(body: Any, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    """The scores that a trained model gives `count` documents."""
    total = np.zeros(count)
    for each in body["definition"]["trained_model"]["ensemble"]["trained_models"]:
        total += _tree(each["tree"], columns, count)
    return total.astype(np.float32)


def _tree(tree: Any, columns: dict[str, Values], count: int) -> NDArray[np.float32]:
    nodes = {node["node_index"]: node for node in tree["tree_structure"]}

    def split(node: Node, rows: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Node, Node]:
        x = columns[tree["feature_names"][node["split_feature"]]][rows].astype(np.float64)
        goes = DECISIONS[node["decision_type"]](x, node["threshold"])
        goes = np.where(np.isnan(x), node["default_left"], goes)
        return goes, nodes[node["left_child"]], nodes[node["right_child"]]

    return tree_values(nodes[0], count, lambda node: node.get("leaf_value"), split)
