"""Trees as LightGBM's own model file, written without LightGBM and compared with it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from dualrank.engines.compared_library import compare_if_installed, said
from dualrank.engines.contents import feature_names, names_without
from dualrank.engines.parity import Features, Scores
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import nodes_of_tree, require_trees
from dualrank.learning.model import Model
from dualrank.rankers.forest import LEAF, Forest
from dualrank.storage import write_text

MISSING_IS_NAN, MISSING_GOES_LEFT = 8, 2
"""Bits of a node's decision type."""
NOT_IN_NAMES = re.compile(r'[\s",:\[\]{}]')
TAKEN_FOR_ZERO = 1e-34
"""More than 1e-35, below which LightGBM takes values for 0."""


def to_lightgbm(asked: Export) -> Written:
    """The target `lightgbm`: what `lightgbm.Booster(model_file=…)` loads."""
    text = model_text(asked.model)

    def score(features: Features) -> Scores:
        import lightgbm

        booster = lightgbm.Booster(model_str=text)
        return np.asarray(booster.predict(features, num_threads=1))

    apart = compare_if_installed(asked, "lightgbm", "LightGBM", score, gap=TAKEN_FOR_ZERO)
    write_text(asked.out, text)
    return Written(
        f"a model file of LightGBM; {said(apart, 'lightgbm')}",
        {"max_difference": apart, "features": feature_names(asked.model)},
    )


def model_text(model: Model) -> str:
    """LightGBM's text format, version 4: a header, and a block for every tree."""
    forest = require_trees(model, "LightGBM's model file")
    names = names_without(model, NOT_IN_NAMES)
    header = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "feature_names": " ".join(names),
        "feature_infos": " ".join(["[-inf:inf]"] * len(names)),
    }
    kept = model.scaler.kept.tolist()
    trees = [
        f"Tree={number}\n{_lines(_tree(forest, root, kept))}\n\n"
        for number, root in enumerate(forest.roots.tolist())
    ]
    return f"tree\n{_lines(header)}\n{''.join(trees)}end of trees\n\npandas_categorical:null\n"


def _tree(forest: Forest, root: int, kept: list[int]) -> dict[str, object]:
    """Splits and leaves are numbered apart; a child that is the leaf k is written as −k − 1."""
    order = nodes_of_tree(forest, root)
    splits = [node for node in order if forest.feature[node] != LEAF]
    leaves = [node for node in order if forest.feature[node] == LEAF]
    number = {node: k for k, node in enumerate(splits)}
    number |= {node: -k - 1 for k, node in enumerate(leaves)}
    found: dict[str, object] = {"num_leaves": len(leaves), "num_cat": 0}
    if splits:
        nothing = _listed([0] * len(splits))
        found |= {
            "split_feature": _listed(kept[forest.feature[node]] for node in splits),
            "split_gain": nothing,
            "threshold": _listed(float(forest.threshold[node]) for node in splits),
            "decision_type": _listed(
                MISSING_IS_NAN | (MISSING_GOES_LEFT if forest.missing_left[node] else 0)
                for node in splits
            ),
            "left_child": _listed(number[int(forest.left[node])] for node in splits),
            "right_child": _listed(number[int(forest.right[node])] for node in splits),
            "internal_value": nothing,
            "internal_weight": nothing,
            "internal_count": nothing,
        }
    nothing = _listed([0] * len(leaves))
    return found | {
        "leaf_value": _listed(float(forest.value[node]) for node in leaves),
        "leaf_weight": nothing,
        "leaf_count": nothing,
        "is_linear": 0,
        "shrinkage": 1,
    }


def _listed(values: Iterable[object]) -> str:
    return " ".join(str(value) for value in values)


def _lines(values: dict[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())
