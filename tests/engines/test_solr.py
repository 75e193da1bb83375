"""What Solr would make of the file, by the rules of its classes, document by document."""

import json
import math

import numpy as np
import pytest

from dualrank.engines import export
from dualrank.engines.solr import before_slack
from dualrank.errors import SettingsError
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM

from .conftest import named

F = np.float32
UNITS = {
    "identity": lambda a: a,
    "relu": lambda a: F(0) if a < 0 else a,
    "leakyrelu": lambda a: F(0.01) * a if a < 0 else a,
    "tanh": lambda a: F(math.tanh(a)),
    "sigmoid": lambda a: F(1 / (1 + math.exp(-float(a)))) if a > -700 else F(0),
}


def values_of(model, document):
    values = []
    for feature in model["features"]:
        x = F(document[feature["name"]])
        if "norm" in feature:
            assert feature["norm"]["class"].endswith(".norm.StandardNormalizer")
            params = feature["norm"]["params"]
            x = (x - F(params["avg"])) / F(params["std"])
        values.append(x)
    return values


def score_network(model, document):
    h = values_of(model, document)
    for layer in model["params"]["layers"]:
        out = []
        for row, bias in zip(layer["matrix"], layer["bias"], strict=True):
            a = F(bias)
            for weight, x in zip(row, h, strict=True):
                assert isinstance(weight, float)
                a += F(weight) * x
            out.append(UNITS[layer["activation"]](a))
        h = out
    (score,) = h
    return score


def score_linear(model, document):
    total = F(0)
    for feature, x in zip(model["features"], values_of(model, document), strict=True):
        total += F(model["params"]["weights"][feature["name"]]) * x
    return total


def score_trees(model, document):
    total = F(0)
    for tree in model["params"]["trees"]:
        node = tree["root"]
        while "feature" in node:
            x = F(document[node["feature"]])
            goes_left = x <= F(node["threshold"]) + F(1e-6)
            if np.isnan(x):
                goes_left = node["missing"] == "left"
            node = node["left"] if goes_left else node["right"]
        total += F(tree["weight"]) * F(node["value"])
    return total


@pytest.mark.parametrize("how", ["random", "grown"])
def test_trees_score_as_the_model_does(tree_model, awkward_documents, tmp_path, how):
    model = tree_model(how, missing="zero")
    written = export(model, "solr", tmp_path / "m.json")
    stored = json.loads((tmp_path / "m.json").read_text())
    assert stored["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    assert "missing" not in stored["params"]["trees"][0]["root"]
    x = awkward_documents(model, missing=False, above=3e-6)
    found = [score_trees(stored, named(row)) for row in x]
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)
    assert written.facts["max_difference"] <= 1e-5


def test_missing_values_that_count_as_zero_are_zeros_in_solr(tree_model, tmp_path):
    model = tree_model("grown", missing="zero")
    export(model, "solr", tmp_path / "m.json")
    stored = json.loads((tmp_path / "m.json").read_text())
    x = np.full((1, 9), np.nan, np.float32)
    zeros = score_trees(stored, named(np.zeros(9)))
    assert zeros == pytest.approx(float(model.predict(x)[0]), rel=1e-5)


@pytest.mark.parametrize("how", ["random", "grown"])
def test_missing_values_go_their_own_way_where_trees_know_one(
    tree_model, awkward_documents, tmp_path, how
):
    model = tree_model(how, missing="own")
    written = export(model, "solr", tmp_path / "m.json")
    stored = json.loads((tmp_path / "m.json").read_text())
    assert stored["params"]["isNullSameAsZero"] is False
    x = awkward_documents(model, above=3e-6)
    found = [score_trees(stored, named(row)) for row in x]
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)
    assert "needs Solr 9.2 and features that default to NaN" in written.sentence
    template = json.loads((tmp_path / "m.features.json").read_text())
    assert {each["params"]["defaultValue"] for each in template} == {"NaN"}


def test_thresholds_are_met_exactly_wherever_float32_can():
    rng = np.random.default_rng(0)
    wanted = (rng.normal(size=5_000) * 10.0 ** rng.integers(-5, 7, 5_000)).astype(np.float32)
    wanted = np.append(wanted, np.float32([0, 1, -1, 8, -8, 16, -16, 16.5, 1e30]))
    reached = before_slack(wanted) + F(1e-6)
    assert (reached >= wanted).all()
    assert np.mean(reached == wanted) > 0.97
    last_bit = np.spacing(np.abs(wanted))
    assert (reached - wanted <= np.maximum(last_bit, 2e-13)).all()


@pytest.mark.parametrize("threshold", [1e-35, -1e-35, 1e-9, -1e-9, 0.0])
def test_a_threshold_beside_zero_stays_on_its_side(threshold):
    reached = before_slack(np.float32([threshold])) + F(1e-6)
    assert (F(0) <= reached[0]) == (threshold >= 0)
    assert abs(reached[0] - threshold) < 2e-13


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("activation", ["relu", "leaky-relu", "tanh", "sigmoid"])
def test_networks_score_as_the_model_does(layer_model, tmp_path, activation, scaling):
    model, features = layer_model(DNN((6, 4), activation=activation), scaling)
    export(model, "solr", tmp_path / "m.json")
    stored = json.loads((tmp_path / "m.json").read_text())
    assert stored["class"] == "org.apache.solr.ltr.model.NeuralNetworkModel"
    found = [score_network(stored, named(row)) for row in features]
    expected = model.predict(features)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("ranker", [Linear(), RankingSVM()])
def test_linear_models_rank_as_the_model_does(layer_model, tmp_path, ranker, scaling):
    model, features = layer_model(ranker, scaling)
    export(model, "solr", tmp_path / "m.json")
    stored = json.loads((tmp_path / "m.json").read_text())
    found = np.array([score_linear(stored, named(row)) for row in features], np.float64)
    expected = model.predict(features)
    shift = np.median(expected - found)  # LinearModel has no bias
    np.testing.assert_allclose(found + shift, expected, atol=1e-5 * np.abs(expected - shift).max())


def test_the_feature_store_names_what_the_model_needs(tree_model, tmp_path):
    written = export(tree_model("random", missing="zero"), "solr", tmp_path / "m.json")
    template = json.loads((tmp_path / "m.features.json").read_text())
    assert [each["name"] for each in template] == written.facts["features"]
    # The upload refuses an empty query, and would store any other without parsing it.
    assert {each["params"]["q"] for each in template} == {""}


def test_a_store_that_was_made_for_another_model_is_said_to_lack_what_this_one_needs(
    tree_model, tmp_path
):
    names = tuple("abcdefghi")
    first = export(tree_model(missing="zero", names=names), "solr", tmp_path / "m.json")
    assert "; m.features.json has the 7 features that schema/feature-store" in first.sentence
    again = export(tree_model(missing="zero", names=names), "solr", tmp_path / "m.json")
    assert "m.features.json was there and was kept; it has the 7 features" in again.sentence
    other = tree_model(missing="own", names=(*"abcdefg", "x", "y"))
    written = export(other, "solr", tmp_path / "m.json")
    lacks = 'was there and was kept, and lacks "defaultValue": "NaN" in 5 features, x, y'
    assert f"m.features.json {lacks}: add them, or remove the file" in written.sentence
    (tmp_path / "m.features.json").unlink()
    export(other, "solr", tmp_path / "m.json")
    written = export(other, "solr", tmp_path / "m.json")
    assert "m.features.json was there and was kept; it has the 7 features" in written.sentence


@pytest.mark.parametrize(
    ("ranker", "scaling", "sentence"),
    [
        (DNN((4,)), "standard", "Solr has no elu: train with activation='relu'"),
        (
            DNN((4,), elu_output=True, activation="relu"),
            "standard",
            "Solr has no elu: train without elu_output",
        ),
        (DNN((4,), activation="relu"), "log", "no logarithmic scaling"),
    ],
)
def test_what_it_cannot_hold_is_refused(layer_model, tmp_path, ranker, scaling, sentence):
    model, _ = layer_model(ranker, scaling)
    with pytest.raises(SettingsError, match=sentence):
        export(model, "solr", tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []
