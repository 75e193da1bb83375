"""What Elasticsearch's inference would make of the file, and what eland makes of the same trees."""

import json

import numpy as np
import pytest
from eland.ml._model_serializer import Ensemble, Tree, TreeNode
from eland.ml.ltr import LTRModelConfig, QueryFeatureExtractor
from eland.ml.transformers import get_model_transformer
from xgboost import XGBRanker

from dualrank.engines import export
from dualrank.errors import SettingsError
from dualrank.rankers.network import DNN, Linear

from .conftest import named

TESTS = {"lt": lambda x, t: x < t, "lte": lambda x, t: x <= t}


def score(trained_model, document):
    total = 0.0
    ensemble = trained_model["ensemble"]
    assert ensemble["aggregate_output"] == {"weighted_sum": {}}
    for each in ensemble["trained_models"]:
        nodes = {node["node_index"]: node for node in each["tree"]["tree_structure"]}
        node = nodes[0]
        while "leaf_value" not in node:
            x = float(document[each["tree"]["feature_names"][node["split_feature"]]])
            left = node["default_left"]
            if not np.isnan(x):
                left = TESTS[node["decision_type"]](x, node["threshold"])
            node = nodes[node["left_child"] if left else node["right_child"]]
        total += float(np.sum(node["leaf_value"]))
    return total


@pytest.mark.parametrize("how", ["random", "grown"])
@pytest.mark.parametrize("missing", ["own", "zero"])
def test_trees_score_as_the_model_does(tree_model, awkward_documents, tmp_path, how, missing):
    model = tree_model(how, missing=missing)
    written = export(model, "elasticsearch", tmp_path / "m.json")
    body = json.loads((tmp_path / "m.json").read_text())
    x = awkward_documents(model)
    found = [score(body["definition"]["trained_model"], named(row)) for row in x]
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)
    assert written.facts["max_difference"] <= 1e-5


def test_eland_would_write_the_same(tree_model, tmp_path):
    """Its classes, given the same nodes, serialise to the file's own content."""
    export(tree_model(), "elasticsearch", tmp_path / "m.json")
    body = json.loads((tmp_path / "m.json").read_text())
    held = body["definition"]["trained_model"]["ensemble"]
    trees = [
        Tree(
            feature_names=held["feature_names"],
            target_type="regression",
            tree_structure=[
                TreeNode(
                    node["node_index"],
                    node.get("default_left"),
                    node.get("decision_type"),
                    node.get("left_child"),
                    node.get("right_child"),
                    node.get("split_feature"),
                    node.get("threshold"),
                    [node["leaf_value"]] if "leaf_value" in node else None,
                )
                for node in each["tree"]["tree_structure"]
            ],
        )
        for each in held["trained_models"]
    ]
    again = Ensemble(held["feature_names"], trees, {"weighted_sum": {}}, "regression")
    assert again.serialize_model() == body["definition"]
    extractors = [
        QueryFeatureExtractor(name, {f"put the query of {name} here": {}})
        for name in held["feature_names"]
    ]
    assert LTRModelConfig(extractors).to_dict() == body["inference_config"]


def test_eland_reads_the_xgboost_file_and_scores_the_same(tree_model, tmp_path):
    """The features have names of their own: eland would take one called f1 for the second.

    No document lies on a threshold, of which eland's way through XGBoost keeps nine digits.
    """
    names = list("abcdefghi")
    model = tree_model(names=tuple(names))
    export(model, "xgboost", tmp_path / "m.json")
    ranker = XGBRanker(base_score=0.0)
    ranker.load_model(tmp_path / "m.json")
    made = get_model_transformer(ranker, feature_names=names).transform().serialize_model()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 9)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    found = [score(made["trained_model"], dict(zip(names, row, strict=True))) for row in x]
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ranker", [Linear(), DNN((4,))])
def test_what_it_cannot_hold_is_refused(layer_model, tmp_path, ranker):
    model, _ = layer_model(ranker)
    with pytest.raises(SettingsError, match=r"Elasticsearch holds trees.* ranker='trees'"):
        export(model, "elasticsearch", tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []
