"""Trees as Elasticsearch's own Learning To Rank takes them: what eland would upload.

The file is the body of `PUT _ml/trained_models/ID`; its feature extractors wait for queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualrank.engines.compared_json import write_compared
from dualrank.engines.contents import kept_names
from dualrank.engines.evaluators import elasticsearch_rules
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import nodes_of_tree, require_trees, used_features
from dualrank.rankers.forest import LEAF, Forest


def to_elasticsearch(asked: Export) -> Written:
    """The target `elasticsearch`."""
    forest = require_trees(asked.model, "Elasticsearch")
    columns = used_features(forest)
    names = [kept_names(asked.model)[column] for column in columns]
    common = {"target_type": "regression", "feature_names": names}
    trees = [
        {"tree": {**common, "tree_structure": _structure(forest, root, columns.tolist())}}
        for root in forest.roots.tolist()
    ]
    ensemble = {**common, "trained_models": trees, "aggregate_output": {"weighted_sum": {}}}
    content = {
        "inference_config": {"learning_to_rank": {"feature_extractors": _extractors(names)}},
        "definition": {"trained_model": {"ensemble": ensemble}},
    }
    apart = write_compared(asked, "Elasticsearch's model", content, elasticsearch_rules.score)
    return Written(
        f"the body of PUT _ml/trained_models/ID; its scores differ from the model's by at most "
        f"{apart:.2g} of the score; put the queries of its {len(names)} features in first",
        {"max_difference": apart, "features": names},
    )


def _structure(forest: Forest, root: int, columns: list[int]) -> list[dict[str, Any]]:
    """The nodes of a tree, numbered from 0 as they are met from the root on."""
    order = nodes_of_tree(forest, root)
    index = {node: number for number, node in enumerate(order)}
    place = {column: number for number, column in enumerate(columns)}
    return [
        {"node_index": index[node], "leaf_value": float(forest.value[node])}
        if forest.feature[node] == LEAF
        else {
            "node_index": index[node],
            "decision_type": "lte",
            "left_child": index[int(forest.left[node])],
            "right_child": index[int(forest.right[node])],
            "split_feature": place[int(forest.feature[node])],
            "threshold": float(np.float64(forest.threshold[node])),
            "default_left": bool(forest.missing_left[node]),
        }
        for node in order
    ]


def _extractors(names: list[str]) -> list[dict[str, Any]]:
    """Queries are placeholders, of a kind that the upload does not know, lest one be forgotten."""
    return [
        {
            "query_extractor": {
                "feature_name": name,
                "query": {f"put the query of {name} here": {}},
            }
        }
        for name in names
    ]
