"""A model as Solr's module ltr takes it: linear, a network, or trees.

The file goes to `schema/model-store`; beside it a template of the feature store is written, which
has the names that the model expects and waits for queries.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.compared_json import write_compared
from dualrank.engines.contents import FloatScaling, is_linear, kept_names
from dualrank.engines.evaluators import solr_rules
from dualrank.engines.left_to_fill_in import Template, features_by_name
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import (
    missing_counts_as_zero,
    nested,
    require_splits,
    used_features,
)
from dualrank.errors import SettingsError
from dualrank.learning.model import Model
from dualrank.rankers.forest import Forest
from dualrank.rankers.ranker import Layer

ACTIVATIONS = {
    None: "identity",
    "relu": "relu",
    "leaky-relu": "leakyrelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
}
SLACK = np.float32(1e-6)
"""What Solr adds to every threshold."""
NULLS = "; missing values go their own way, which needs Solr 9.2 and features that default to NaN"


def to_solr(asked: Export) -> Written:
    """The target `solr`."""
    model = asked.model
    content, constant = _content(model, asked.out.stem)
    apart = write_compared(
        asked, "Solr's model", content, solr_rules.score, constant=constant, gap=float(SLACK)
    )
    names = [each["name"] for each in content["features"]]
    has_nulls = "isNullSameAsZero" in content["params"]
    text = json.dumps(_feature_store(names, has_nulls), indent=1) + "\n"

    def lacking(kept: str) -> list[str]:
        return _lacking(kept, names, has_nulls)

    template = Template.write(asked.out, "features.json", text, lacking)
    needed = f"the {len(names)} features that schema/feature-store must have"
    kind = content["class"].rpartition(".")[2]
    return Written(
        f"a {kind} for schema/model-store; its scores differ from the model's by at most "
        f"{apart:.2g} of the score; {template.sentence(needed)}{NULLS if has_nulls else ''}",
        {
            "max_difference": apart,
            "class": kind,
            "features": names,
            "feature_store": str(template.path),
        },
    )


def _content(model: Model, name: str) -> tuple[dict[str, Any], float]:
    """The JSON of a model, and the constant that it leaves out."""
    forest, layers = model.ranker.forest(), model.ranker.layers()
    if forest is not None:
        return _trees(require_splits(forest), kept_names(model), name), 0.0
    if layers is None:
        raise SettingsError(
            f"Solr runs linear models, networks and trees, and a ranker of kind {model.kind} is "
            "none of them"
        )
    unknown = {each.activation for each in layers} - ACTIVATIONS.keys()
    if unknown:
        how = "without elu_output" if layers[-1].activation else "with activation='relu'"
        raise SettingsError(f"Solr has no {unknown.pop()}: train {how}")
    scaling = FloatScaling.of(model, "Solr")
    features = [{"name": each} for each in kept_names(model)]
    if model.scaler.kind != "none":
        for feature, mean, spread in zip(features, scaling.shift, scaling.spread, strict=True):
            feature["norm"] = _norm(mean, spread)  # type: ignore[assignment]
    first = layers[0].weight.astype(np.float64)
    weight = (first * scaling.ratio).astype(np.float32)
    bias = layers[0].bias + first @ scaling.rest
    if is_linear(layers):
        weights = dict(zip(kept_names(model), weight[0].tolist(), strict=True))
        return _model("LinearModel", name, features, {"weights": weights}), float(bias[0])
    folded = [Layer(weight, bias.astype(np.float32), layers[0].activation), *layers[1:]]
    params = {
        "layers": [
            {
                "matrix": layer.weight.tolist(),
                "bias": layer.bias.tolist(),
                "activation": ACTIVATIONS[layer.activation],
            }
            for layer in folded
        ]
    }
    return _model("NeuralNetworkModel", name, features, params), 0.0


def _trees(forest: Forest, names: list[str], name: str) -> dict[str, Any]:
    """Missing values are 0 to Solr, unless a model says otherwise and every split where they go."""
    as_zero = missing_counts_as_zero(forest)
    thresholds = before_slack(forest.threshold)

    def leaf(node: int) -> dict[str, Any]:
        return {"value": str(float(forest.value[node]))}

    def split(node: int, left: Any, right: Any) -> dict[str, Any]:
        goes = {} if as_zero else {"missing": "left" if forest.missing_left[node] else "right"}
        return {
            "feature": names[forest.feature[node]],
            "threshold": str(float(thresholds[node])),
            **goes,
            "left": left,
            "right": right,
        }

    trees = [{"weight": "1.0", "root": root} for root in nested(forest, leaf, split)]
    features = [{"name": names[column]} for column in used_features(forest)]
    nulls = {} if as_zero else {"isNullSameAsZero": False}
    return _model("MultipleAdditiveTreesModel", name, features, {**nulls, "trees": trees})


def before_slack(thresholds: NDArray[np.float32]) -> NDArray[np.float32]:
    """u such that u + 1e-6, in float32, is the threshold, or the least number above it.

    Just inside a power of two it can be off by the last bit, and nearer to 0 than 1e-6 by some
    1e-13. It stays on its side of 0, which many documents have: LightGBM splits them from others
    at 1e-35 and at −1e-35.
    """
    best = np.full(thresholds.shape, np.nan, np.float32)
    reached = np.full(thresholds.shape, np.inf, np.float32)
    trial = thresholds - SLACK
    for _ in range(3):
        trial = np.nextafter(trial, np.float32(-np.inf))
    first = trial
    for _ in range(8):
        to = trial + SLACK
        nearer = (to >= thresholds) & (to < reached) & ((to < 0) | (thresholds >= 0))
        best, reached = np.where(nearer, trial, best), np.where(nearer, to, reached)
        trial = _next(trial)
    return np.where(np.isnan(best), _just_below_zero(first), best)


def _just_below_zero(trial: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest u from here on whose u + 1e-6 is less than 0."""
    best = trial
    for _ in range(8):
        best = np.where(trial + SLACK < 0, trial, best)
        trial = _next(trial)
    return best


def _next(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.nextafter(numbers, np.float32(np.inf))


def _model(kind: str, name: str, features: list[Any], params: Any) -> dict[str, Any]:
    return {
        "class": f"org.apache.solr.ltr.model.{kind}",
        "name": name,
        "features": features,
        "params": params,
    }


def _norm(mean: np.float32, spread: np.float32) -> dict[str, Any]:
    return {
        "class": "org.apache.solr.ltr.norm.StandardNormalizer",
        "params": {"avg": str(float(mean)), "std": str(float(spread))},
    }


def _feature_store(names: list[str], has_nulls: bool) -> list[dict[str, Any]]:
    """Features with an empty query, which the upload refuses, so that none is forgotten.

    A placeholder would not do: the upload looks whether there is a query, and only a search parses.
    """
    default = {"defaultValue": "NaN"} if has_nulls else {}
    return [
        {
            "name": name,
            "class": "org.apache.solr.ltr.feature.SolrFeature",
            "params": {"q": "", **default},
        }
        for name in names
    ]


def _lacking(kept: str, names: list[str], has_nulls: bool) -> list[str]:
    """What a store lacks of the features, and of the default that tells a gap from 0."""
    stored = features_by_name(kept)
    absent = [name for name in names if name not in stored]
    params = [stored[name].get("params") for name in names if name in stored]
    defaults = [each.get("defaultValue") if isinstance(each, dict) else None for each in params]
    zeros = sum(str(default).lower() != "nan" for default in defaults) if has_nulls else 0
    return [f'"defaultValue": "NaN" in {zeros} features', *absent] if zeros else absent
