"""ONNX that scores as the model does, or is not written."""

import json

import numpy as np
import onnxruntime
import pytest
import torch

from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.engines.onnx import export_onnx
from dualrank.errors import DataError, SettingsError
from dualrank.learning.model import Model
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.rankers.trees import TreeRanker


def random_model(dataset, ranker, scaling):
    scaler = Scaler.fit(dataset.features, kind=scaling)
    network = ranker.build(scaler.output_count, seed=1)
    rng = np.random.default_rng(0)
    for tensor in network.tensors().values():
        tensor.copy_(torch.from_numpy(rng.normal(0, 0.3, tensor.shape)))
    return Model(network, scaler, kind=ranker.kind)


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax", "log"])
@pytest.mark.parametrize(
    "ranker",
    [
        Linear(),
        DNN((8, 4)),
        DNN((8,), elu_output=True),
        DNN((8, 4), activation="relu"),
        DNN((8,), activation="leaky-relu", elu_output=True),
        DNN((8, 4), activation="tanh"),
        DNN((8, 4), activation="sigmoid"),
        RankingSVM(),
    ],
)
def test_onnx_scores_as_the_model_does(dataset, tmp_path, ranker, scaling):
    model = random_model(dataset, ranker, scaling)
    difference = export_onnx(model, tmp_path / "m.onnx")
    assert difference <= 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (scores,) = session.run(["score"], {"features": dataset.features})
    assert scores.shape == (dataset.document_count,)
    np.testing.assert_allclose(scores, model.predict(dataset), atol=1e-5)


def test_onnx_drops_the_same_constant_columns(dataset, tmp_path):
    wide = np.insert(dataset.features, 2, np.float32(3.5), axis=1)
    model = random_model(Dataset.from_arrays(wide, np.arange(len(wide))), DNN((4,)), "standard")
    assert export_onnx(model, tmp_path / "m.onnx", wide) <= 1e-5


def test_a_ranker_without_layers_is_refused(dataset, tmp_path, monkeypatch):
    model = random_model(dataset, Linear(), "standard")
    monkeypatch.setattr(type(model.ranker), "layers", lambda self: None)
    with pytest.raises(SettingsError, match="kind linear has no layers or trees that ONNX"):
        export_onnx(model, tmp_path / "m.onnx")


def test_a_model_that_onnx_does_not_match_is_not_written(dataset, tmp_path, monkeypatch):
    model = random_model(dataset, Linear(), "standard")
    monkeypatch.setattr(type(model), "predict", lambda self, data: np.full(len(data), 9.0))
    with pytest.raises(DataError, match="not written: ONNX and the model differ by"):
        export_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["random", "grown"])
@pytest.mark.parametrize("missing", ["own", "zero"])
def test_trees_score_as_the_model_does(tree_model, awkward_documents, tmp_path, how, missing):
    model = tree_model(how, missing=missing)
    assert export_onnx(model, tmp_path / "m.onnx") <= 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    x = awkward_documents(model)
    for rows in (x, x[:1], x[:0]):
        (scores,) = session.run(["score"], {"features": rows})
        assert scores.shape == (len(rows),)
        np.testing.assert_allclose(scores, model.predict(rows), rtol=1e-5, atol=1e-5)


def test_infinity_goes_where_the_largest_number_goes(tree_model, tmp_path):
    model = tree_model("grown")
    export_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    x = np.full((2, 9), np.inf, np.float32)
    x[1] = np.finfo(np.float32).max
    (scores,) = session.run(["score"], {"features": x})
    assert scores[0] == scores[1] == pytest.approx(float(model.predict(x)[0]), rel=1e-5)


def test_the_names_of_the_features_are_in_the_file(tree_model, tmp_path):
    export_onnx(tree_model(names=tuple("abcdefghi")), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    held = session.get_modelmeta().custom_metadata_map["feature_names"]
    assert json.loads(held) == list("abcdefghi")


def test_trees_that_have_learned_nothing_are_refused(tree_model, tmp_path):
    model = tree_model()
    model.ranker.load_tensors(TreeRanker(7).tensors())
    with pytest.raises(SettingsError, match="no tree of the model has a split"):
        export_onnx(model, tmp_path / "m.onnx")
