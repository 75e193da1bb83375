"""Trees as XGBoost's own model file, written without XGBoost and compared with it."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from dualrank.engines.compared_library import compare_if_installed, said
from dualrank.engines.contents import feature_names, names_without
from dualrank.engines.parity import Features, Scores
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import next_above, nodes_of_tree, require_trees
from dualrank.learning.model import Model
from dualrank.rankers.forest import LEAF, Forest
from dualrank.storage import require_suffix, write_text

NOT_IN_NAMES = re.compile(r"[\[\]<]")
NO_PARENT = 2_147_483_647


def to_xgboost(asked: Export) -> Written:
    """The target `xgboost`: what `xgboost.Booster(model_file=…)` loads."""
    require_suffix(asked.out, "a model of XGBoost", ".json")
    names = names_without(asked.model, NOT_IN_NAMES)
    # XGBoost takes UTF-8, and does not decode \u00fc.
    text = json.dumps(model_json(asked.model), allow_nan=False, ensure_ascii=False) + "\n"

    def score(features: Features) -> Scores:
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(bytearray(text.encode()))
        matrix = xgboost.DMatrix(features, feature_names=names, nthread=1)
        return np.asarray(booster.predict(matrix))

    apart = compare_if_installed(asked, "xgboost", "XGBoost", score)
    write_text(asked.out, text)
    return Written(
        f"a model file of XGBoost; {said(apart, 'xgboost')}",
        {"max_difference": apart, "features": feature_names(asked.model)},
    )


def model_json(model: Model) -> dict[str, Any]:
    """What `save_model` writes, of version 3; the objective says that scores are sums of leaves."""
    forest = require_trees(model, "XGBoost's model file")
    names, count = names_without(model, NOT_IN_NAMES), len(forest)
    trees = [
        _tree(forest, root, number, model.scaler.kept.tolist(), len(names))
        for number, root in enumerate(forest.roots.tolist())
    ]
    booster = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(count)},
        "iteration_indptr": list(range(count + 1)),
        "tree_info": [0] * count,
        "trees": trees,
    }
    learner = {
        "attributes": {},
        "feature_names": names,
        "feature_types": ["float"] * len(names),
        "gradient_booster": {"model": booster, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(len(names)),
            "num_target": "1",
        },
        "objective": {"name": "rank:pairwise", "lambdarank_param": {}},
    }
    return {"learner": learner, "version": [3, 0, 0]}


def _tree(forest: Forest, root: int, number: int, kept: list[int], inputs: int) -> dict[str, Any]:
    """A tree as arrays over its nodes; a leaf's value stands in the place of its condition."""
    order = nodes_of_tree(forest, root)
    index = {node: place for place, node in enumerate(order)}
    nodes = np.array(order)
    inner = forest.feature[nodes] != LEAF
    left = [index[int(forest.left[n])] if i else -1 for n, i in zip(order, inner, strict=True)]
    right = [index[int(forest.right[n])] if i else -1 for n, i in zip(order, inner, strict=True)]
    parents = [NO_PARENT] * len(order)
    for place, children in enumerate(zip(left, right, strict=True)):
        for child in children:
            if child >= 0:
                parents[child] = place
    conditions = np.where(inner, next_above(forest.threshold[nodes]), forest.value[nodes])
    zeros = [0.0] * len(order)
    return {
        "base_weights": zeros,
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": (inner & forest.missing_left[nodes]).astype(int).tolist(),
        "id": number,
        "left_children": left,
        "loss_changes": zeros,
        "parents": parents,
        "right_children": right,
        "split_conditions": conditions.tolist(),
        "split_indices": [kept[c] if c >= 0 else 0 for c in forest.feature[nodes].tolist()],
        "split_type": [0] * len(order),
        "sum_hessian": zeros,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(inputs),
            "num_nodes": str(len(order)),
            "size_leaf_vector": "1",
        },
    }
