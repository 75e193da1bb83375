"""A model as OpenSearch Learning to Rank takes it, and the o19s plugin for Elasticsearch.

The file is the body of `POST _ltr/_featureset/SET/_createmodel`; beside it a template of the
feature set SET is written, which has the names that the model expects and waits for queries.
Linear models (the Ranking SVM is one) and trees can be held; networks cannot.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dualrank.engines.compared_json import write_compared
from dualrank.engines.contents import FloatScaling, is_linear, kept_names
from dualrank.engines.evaluators import opensearch_rules
from dualrank.engines.left_to_fill_in import Template, features_by_name
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import (
    missing_counts_as_zero,
    nested,
    next_above,
    require_splits,
    used_features,
)
from dualrank.errors import SettingsError
from dualrank.learning.model import Model
from dualrank.rankers.forest import Forest

WHAT = "OpenSearch's model"


def to_opensearch(asked: Export) -> Written:
    """The target `opensearch`."""
    model, constant = asked.model, 0.0
    forest = model.ranker.forest()
    if forest is not None:
        names = [kept_names(model)[column] for column in used_features(require_splits(forest))]
        definition = _trees(forest, kept_names(model))
    else:
        names = kept_names(model)
        definition, constant = _linear(model, names)
    apart = write_compared(
        asked,
        WHAT,
        {"model": {"name": asked.out.stem, "model": definition}},
        opensearch_rules.score,
        constant=constant,
    )
    text = json.dumps(_feature_set(names), indent=1) + "\n"

    def lacking(kept: str) -> list[str]:
        stored = features_by_name(kept)
        return [name for name in names if name not in stored]

    template = Template.write(asked.out, "featureset.json", text, lacking)
    needed = f"the {len(names)} features that SET must have"
    return Written(
        f"the body of POST _ltr/_featureset/SET/_createmodel; its scores differ from the model's "
        f"by at most {apart:.2g} of the score; {template.sentence(needed)}{_about_missing(forest)}",
        {
            "max_difference": apart,
            "type": definition["type"],
            "features": names,
            "feature_set": str(template.path),
        },
    )


def _linear(model: Model, names: list[str]) -> tuple[dict[str, Any], float]:
    """Weights and normalisers, and the constant that is left out: it is the same for everyone."""
    layers = model.ranker.layers()
    if layers is None or not is_linear(layers):
        raise SettingsError(
            f"OpenSearch runs linear models and trees, and this is a ranker of kind {model.kind}: "
            "train with ranker='trees' or ranker='linear'"
        )
    scaling = FloatScaling.of(model, "OpenSearch")
    weights = layers[0].weight[0].astype(np.float64)
    scaled = (weights * scaling.ratio).astype(np.float32)
    definition: dict[str, Any] = {
        "type": "model/linear",
        "definition": dict(zip(names, scaled.tolist(), strict=True)),
    }
    if model.scaler.kind != "none":
        definition["feature_normalizers"] = {
            name: {"standard": {"mean": float(mean), "standard_deviation": float(spread)}}
            for name, mean, spread in zip(names, scaling.shift, scaling.spread, strict=True)
        }
    return definition, float(layers[0].bias[0] + weights @ scaling.rest)


def _trees(forest: Forest, names: list[str]) -> dict[str, Any]:
    """XGBoost's dump: `yes` is where x < split_condition, so thresholds are the next float up."""
    conditions = next_above(forest.threshold).tolist()
    depth = np.zeros(len(forest.feature), np.int64)
    for node in range(len(depth)):
        for child in (forest.left[node], forest.right[node]):
            if forest.feature[node] >= 0:
                depth[child] = depth[node] + 1

    def leaf(node: int) -> dict[str, Any]:
        return {"nodeid": node, "leaf": float(forest.value[node])}

    def split(node: int, left: Any, right: Any) -> dict[str, Any]:
        yes, no = int(forest.left[node]), int(forest.right[node])
        return {
            "nodeid": node,
            "depth": int(depth[node]),
            "split": names[forest.feature[node]],
            "split_condition": conditions[node],
            "yes": yes,
            "no": no,
            "missing": yes if forest.missing_left[node] else no,
            "children": [left, right],
        }

    trees = nested(forest, leaf, split)
    return {
        "type": "model/xgboost+json",
        "definition": {"objective": "rank:pairwise", "splits": trees},
    }


def _feature_set(names: list[str]) -> dict[str, Any]:
    """Features without a `template`, which the upload asks for, so that no query is forgotten.

    A placeholder would not do: the upload stores any template, and only a search finds it wrong.
    """
    return {
        "featureset": {
            "features": [
                {"name": name, "params": ["keywords"], "template_language": "mustache"}
                for name in names
            ]
        }
    }


def _about_missing(forest: Forest | None) -> str:
    if forest is None:
        return ""
    if missing_counts_as_zero(forest):
        return "; missing values count as 0, but not in OpenSearch 3.2 to 3.7"
    return "; missing values go their own way, which needs OpenSearch 3.8 or o19s 1.5.9"
