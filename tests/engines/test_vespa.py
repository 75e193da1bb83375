"""What Vespa would make of the file: a ranking expression for trees, ONNX for the rest."""

import json

import numpy as np
import onnxruntime
import pytest

from dualrank.engines import export
from dualrank.errors import SettingsError
from dualrank.rankers.network import DNN

F = np.float32


def score(dump, document):
    """if(x < t, …) or if(!(x >= t), …), float32 within trees and double over them."""
    total = 0.0
    for tree in dump["tree_info"]:
        node = tree["tree_structure"]
        while "left_child" in node:
            x = F(document[dump["feature_names"][node["split_feature"]]])
            with np.errstate(over="ignore"):
                t = F(node["threshold"])
            left = not x >= t if node["default_left"] else x < t
            node = node["left_child"] if left else node["right_child"]
        total += F(node["leaf_value"])
    return total


@pytest.mark.parametrize("how", ["random", "grown"])
@pytest.mark.parametrize("missing", ["own", "zero"])
def test_trees_score_as_the_model_does(tree_model, awkward_documents, tmp_path, how, missing):
    model = tree_model(how, missing=missing)
    written = export(model, "vespa", tmp_path / "m.json")
    dump = json.loads((tmp_path / "m.json").read_text())
    x = awkward_documents(model)
    found = [score(dump, {f"f{i + 1}": value for i, value in enumerate(row)}) for row in x]
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)
    assert written.facts["max_difference"] <= 1e-5
    # Vespa's reader asks for these without looking whether they are there.
    assert dump["pandas_categorical"] == []
    assert dump["objective"] == "lambdarank"


def test_the_rank_profile_of_trees_names_the_file_and_the_features(tree_model, tmp_path):
    names = ("bm25(title)", "age", "c", "d", "e", "f", "g", "h", "i")
    export(tree_model(names=names), "vespa", tmp_path / "m.json")
    lines = (tmp_path / "m.rank-profile.txt").read_text()
    assert 'expression: lightgbm("m.json")' in lines
    assert "function age() {" in lines
    assert "function bm25" not in lines  # a rank feature already


def test_networks_are_onnx_with_a_profile(layer_model, tmp_path):
    model, features = layer_model(DNN((4,)), names=tuple("abcdef"))
    export(model, "vespa", tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(["score"], {"features": features})
    expected = model.predict(features)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    lines = (tmp_path / "m.rank-profile.txt").read_text()
    assert "tensor<float>(d0[1],d1[6]):[[a, b, c, d, e, f]]" in lines
    assert "file: models/m.onnx" in lines


def test_a_profile_that_was_made_for_another_model_is_said_to_lack_what_this_one_needs(
    tree_model, tmp_path
):
    names = ("bm25(title)", *"bcdefghi")
    export(tree_model(names=names), "vespa", tmp_path / "m.json")
    again = export(tree_model(names=names), "vespa", tmp_path / "m.json")
    said = "m.rank-profile.txt was there and was kept; it has the rank profile, with the 7 features"
    assert said in again.sentence
    path = tmp_path / "m.rank-profile.txt"
    path.write_text(path.read_text().replace("m.json", "old_m.json"))
    other = tree_model(names=("bm25(body)", *"bcdefgh", "age"))
    written = export(other, "vespa", tmp_path / "m.json")
    said = "m.rank-profile.txt was there and was kept, and lacks the model m.json, age: add them"
    assert said in written.sentence


def test_a_profile_of_a_network_must_have_the_features_in_order(layer_model, tmp_path):
    def written(names):
        model, _ = layer_model(DNN((4,)), names=tuple(names))
        return export(model, "vespa", tmp_path / "m.onnx").sentence

    assert "m.rank-profile.txt has the rank profile" in written("abcdef")
    assert "m.rank-profile.txt was there and was kept; it has the rank" in written("abcdef")
    lacks = "kept, and lacks a tensor of the 6 features in the order of the training: add them"
    assert lacks in written("bacdef")


@pytest.mark.parametrize("name", ["title bm25", "ü,x", "1st", "bm25(title", "a-b", "f(g(h(x)))"])
def test_names_that_no_rank_profile_can_have_are_refused(tree_model, layer_model, tmp_path, name):
    said = "Vespa takes no feature called .*: rename the column to letters, digits and _, or to a"
    with pytest.raises(SettingsError, match=said):
        export(tree_model(names=(name, *"bcdefghi")), "vespa", tmp_path / "m.json")
    with pytest.raises(SettingsError, match=said):
        export(layer_model(DNN((4,)), names=(name, *"bcdef"))[0], "vespa", tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "title_bm25",
        "attribute(price)",
        "fieldMatch(title).completeness",
        "distance(field, embedding)",
        'foreach(terms,N,term(N).significance,">0.5",count)',
    ],
)
def test_names_of_functions_and_rank_features_are_taken(tree_model, tmp_path, name):
    export(tree_model(names=(name, *"bcdefghi")), "vespa", tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["feature_names"][0] == name


def test_a_file_is_called_as_what_it_holds(layer_model, tree_model, tmp_path):
    with pytest.raises(SettingsError, match=r"a ranker without trees is written as \.onnx"):
        export(layer_model(DNN((4,)))[0], "vespa", tmp_path / "m.json")
    with pytest.raises(SettingsError, match=r"a ranker of trees is written as \.json"):
        export(tree_model(), "vespa", tmp_path / "m.onnx")
