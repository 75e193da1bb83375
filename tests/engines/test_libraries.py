"""LightGBM and XGBoost load what is written for them, and score as the model does."""

import json

import lightgbm
import numpy as np
import pytest
import xgboost

from dualrank.engines import compared_library, export
from dualrank.errors import DataError, SettingsError
from dualrank.rankers.network import Linear

WAYS = pytest.mark.parametrize("how", ["random", "grown"])
MISSING = pytest.mark.parametrize("missing", ["own", "zero"])


@WAYS
@MISSING
def test_lightgbm_scores_as_the_model_does(tree_model, awkward_documents, tmp_path, how, missing):
    model = tree_model(how, missing=missing, names=(*"abcdefg", "[h]", "of two words"))
    written = export(model, "lightgbm", tmp_path / "m.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    assert booster.num_trees() == len(model.ranker.forest())
    assert booster.feature_name() == [*"abcdefg", "_h_", "of_two_words"]
    x = awkward_documents(model, above=1e-34)  # what is nearer to 0, LightGBM takes for 0
    np.testing.assert_allclose(booster.predict(x), model.predict(x), rtol=1e-5, atol=1e-5)
    assert written.facts["max_difference"] <= 1e-5
    assert "at most" in written.sentence


def test_lightgbm_writes_the_model_again_as_it_was(tree_model, awkward_documents, tmp_path):
    model = tree_model()
    export(model, "lightgbm", tmp_path / "m.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    again = lightgbm.Booster(model_str=booster.model_to_string())
    x = awkward_documents(model, 50)
    assert np.array_equal(again.predict(x), booster.predict(x))
    assert len(booster.dump_model()["tree_info"]) == len(model.ranker.forest())


@WAYS
@MISSING
def test_xgboost_scores_as_the_model_does(tree_model, awkward_documents, tmp_path, how, missing):
    model = tree_model(how, missing=missing)
    export(model, "xgboost", tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    x = awkward_documents(model)
    names = [f"f{i + 1}" for i in range(9)]
    found = booster.predict(xgboost.DMatrix(x, feature_names=names))
    np.testing.assert_allclose(found, model.predict(x), rtol=1e-5, atol=1e-5)
    assert booster.num_boosted_rounds() == len(model.ranker.forest())


def test_xgboost_writes_the_model_again_as_it_was(tree_model, tmp_path):
    export(tree_model(), "xgboost", tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    first, again = (
        json.loads((tmp_path / "m.json").read_text()),
        json.loads(booster.save_raw("json")),
    )
    for one, two in zip(
        first["learner"]["gradient_booster"]["model"]["trees"],
        again["learner"]["gradient_booster"]["model"]["trees"],
        strict=True,
    ):
        for part in ("left_children", "right_children", "default_left", "split_indices", "parents"):
            assert one[part] == two[part]
        np.testing.assert_array_equal(
            np.float32(one["split_conditions"]), np.float32(two["split_conditions"])
        )
    assert again["learner"]["feature_types"] == ["float"] * 9


def test_names_that_xgboost_refuses_are_changed(tree_model, tmp_path):
    export(tree_model(names=(*"abcdefgh", "i[0]<1")), "xgboost", tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.feature_names == [*"abcdefgh", "i_0__1"]


def test_names_that_become_the_same_stay_different(tree_model, tmp_path):
    names = ("a[b", "a]b", "a_b_2", "a b", "a_b", *"fghi")
    export(tree_model(names=names), "xgboost", tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.feature_names == ["a_b_3", "a_b_4", "a_b_2", "a b", "a_b", *"fghi"]
    names = ("a[b", "a<b", *"cdefghi")
    export(tree_model(names=names), "xgboost", tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.feature_names == ["a_b", "a_b_2", *"cdefghi"]
    export(tree_model(names=("a b", "a_b", *"cdefghi")), "lightgbm", tmp_path / "m.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    assert booster.feature_name() == ["a_b_2", "a_b", *"cdefghi"]


def test_names_of_any_alphabet_are_taken(tree_model, tmp_path):
    model = tree_model(names=("ü,x", "価格", *"cdefghi"))
    export(model, "xgboost", tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.feature_names == ["ü,x", "価格", *"cdefghi"]
    export(model, "lightgbm", tmp_path / "m.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    assert booster.feature_name() == ["ü_x", "価格", *"cdefghi"]


@pytest.mark.parametrize("target", ["lightgbm", "xgboost"])
def test_without_the_library_a_file_is_written_and_said_to_be_unchecked(
    tree_model, tmp_path, monkeypatch, target
):
    monkeypatch.setattr(compared_library, "find_spec", lambda module: None)
    written = export(tree_model(), target, tmp_path / "m.json")
    assert f"not compared with the model, because {target} is not installed" in written.sentence
    assert written.facts["max_difference"] is None
    assert (tmp_path / "m.json").exists()


@pytest.mark.parametrize("target", ["lightgbm", "xgboost", "opensearch", "elasticsearch", "vespa"])
def test_what_does_not_score_as_the_model_does_is_not_written(
    tree_model, tmp_path, monkeypatch, target
):
    model = tree_model()
    monkeypatch.setattr(type(model), "predict", lambda self, data: np.full(len(data), 9.0))
    with pytest.raises(DataError, match=r"not written: .* and the model differ by"):
        export(model, target, tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["lightgbm", "xgboost"])
def test_only_trees_can_be_held(layer_model, tmp_path, target):
    with pytest.raises(SettingsError, match=r"holds trees, .* train with ranker='trees'"):
        export(layer_model(Linear())[0], target, tmp_path / "m.json")
