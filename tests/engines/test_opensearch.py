"""What OpenSearch's plugin would make of the file, by its rules, document by document."""

import json

import numpy as np
import pytest

from dualrank.engines import export
from dualrank.errors import SettingsError
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM

from .conftest import named

F = np.float32


def score_tree(node, document):
    while "leaf" not in node:
        yes, no = node["children"]
        assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"])
        x = F(document[node["split"]])
        if np.isnan(x):
            node = yes if node["missing"] == node["yes"] else no
        else:
            node = yes if x < F(node["split_condition"]) else no
    return F(node["leaf"])


def score_trees(body, document):
    total = F(0)
    for tree in body["model"]["model"]["definition"]["splits"]:
        total += score_tree(tree, document)
    return total


def score_linear(body, document):
    model, total = body["model"]["model"], F(0)
    for name, weight in model["definition"].items():
        x = F(document[name])
        if "feature_normalizers" in model:
            norm = model["feature_normalizers"][name]["standard"]
            x = (x - F(norm["mean"])) / F(norm["standard_deviation"])
        total += F(weight) * x
    return total


@pytest.mark.parametrize("how", ["random", "grown"])
@pytest.mark.parametrize("missing", ["own", "zero"])
def test_trees_score_as_the_model_does(tree_model, awkward_documents, tmp_path, how, missing):
    model = tree_model(how, missing=missing)
    written = export(model, "opensearch", tmp_path / "m.json")
    body = json.loads((tmp_path / "m.json").read_text())
    assert body["model"]["name"] == "m"
    assert body["model"]["model"]["type"] == "model/xgboost+json"
    x = awkward_documents(model)
    found = [score_trees(body, named(row)) for row in x]
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)
    assert written.facts["max_difference"] <= 1e-5


def test_what_older_versions_make_of_missing_values_is_said(tree_model, tmp_path):
    own = export(tree_model(missing="own"), "opensearch", tmp_path / "a.json")
    assert "go their own way, which needs OpenSearch 3.8 or o19s 1.5.9" in own.sentence
    zero = export(tree_model(missing="zero"), "opensearch", tmp_path / "b.json")
    assert "count as 0, but not in OpenSearch 3.2 to 3.7" in zero.sentence


def test_only_keys_that_the_parser_knows_are_written(tree_model, tmp_path):
    export(tree_model(), "opensearch", tmp_path / "m.json")
    ahead = json.loads((tmp_path / "m.json").read_text())["model"]["model"]["definition"]["splits"]
    keys = set()
    while ahead:
        node = ahead.pop()
        keys.add(tuple(sorted(node)))
        ahead += node.get("children", [])
    inner = ["children", "depth", "missing", "no", "nodeid", "split", "split_condition", "yes"]
    assert keys == {("leaf", "nodeid"), tuple(inner)}


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("ranker", [Linear(), RankingSVM()])
def test_linear_models_rank_as_the_model_does(layer_model, tmp_path, ranker, scaling):
    model, features = layer_model(ranker, scaling)
    written = export(model, "opensearch", tmp_path / "m.json")
    body = json.loads((tmp_path / "m.json").read_text())
    found = np.array([score_linear(body, named(row)) for row in features], np.float64)
    expected = model.predict(features)
    # There is no bias: all scores differ by the same number.
    shift = np.median(expected - found)
    size = np.abs(expected - shift).max()
    np.testing.assert_allclose(found + shift, expected, atol=1e-5 * size)
    assert "f3" not in written.facts["features"]  # constant in training


def test_the_feature_set_names_what_the_model_looks_at_and_waits_for_queries(tree_model, tmp_path):
    names = tuple("abcdefghi")
    model = tree_model(names=names)
    written = export(model, "opensearch", tmp_path / "m.json")
    template = json.loads((tmp_path / "m.featureset.json").read_text())
    found = [each["name"] for each in template["featureset"]["features"]]
    assert found == written.facts["features"] == list("abdefhi")
    # The upload refuses a feature without a template, and would store one with any.
    assert all("template" not in each for each in template["featureset"]["features"])


def test_a_feature_set_that_is_there_keeps_its_queries(tree_model, tmp_path):
    export(tree_model(), "opensearch", tmp_path / "m.json")
    path = tmp_path / "m.featureset.json"
    mine = json.loads(path.read_text())
    for each in mine["featureset"]["features"]:
        each["template"] = {"match": {"title": "{{keywords}}"}}
    path.write_text(json.dumps(mine))
    written = export(tree_model(), "opensearch", tmp_path / "m.json")
    assert json.loads(path.read_text()) == mine
    said = "m.featureset.json was there and was kept; it has the 7 features that SET must have"
    assert said in written.sentence


def test_a_feature_set_that_was_made_for_another_model_is_said_to_lack_features(
    tree_model, tmp_path
):
    export(tree_model(names=tuple("abcdefghi")), "opensearch", tmp_path / "m.json")
    other = tree_model(names=(*"abcdefgh", "name"))
    written = export(other, "opensearch", tmp_path / "m.json")
    assert (
        "m.featureset.json was there and was kept, and lacks name: add them, or remove the file "
        "and export again" in written.sentence
    )
    (tmp_path / "m.featureset.json").write_text("mine")
    written = export(other, "opensearch", tmp_path / "m.json")
    assert "was kept, and lacks a, b, d, e, f and 2 more: add them" in written.sentence
    assert (tmp_path / "m.featureset.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("ranker", "scaling", "sentence"),
    [
        (DNN((4,)), "standard", "runs linear models and trees, .* train with ranker='trees'"),
        (Linear(), "log", "no logarithmic scaling: train with scaling='standard'"),
    ],
)
def test_what_it_cannot_hold_is_refused(layer_model, tmp_path, ranker, scaling, sentence):
    model, _ = layer_model(ranker, scaling)
    with pytest.raises(SettingsError, match=sentence):
        export(model, "opensearch", tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []
