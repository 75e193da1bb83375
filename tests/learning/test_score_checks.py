"""Scores that cannot rank end in a sentence, wherever they come from."""

import hashlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.data.scaling import Scaler
from dualrank.engines import export
from dualrank.errors import CheckpointError, DataError, SettingsError
from dualrank.learning.fit import fit
from dualrank.learning.model import Model
from dualrank.learning.score_checks import tied_share
from dualrank.rankers.kinds import RANKERS
from dualrank.rankers.network import Network

QUERIES, DOCUMENTS = 30, 6


def graded(scale=1.0):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(QUERIES * DOCUMENTS, 3)).astype(np.float32)
    grades = (features[:, 0] > 0.5).astype(float)
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    return Dataset.from_arrays(features * np.float32(scale), query, grades)


@pytest.fixture(scope="module")
def log():
    data, rng = graded(), np.random.default_rng(1)
    lists = top_lists(data, rng.normal(size=data.document_count), DOCUMENTS)
    return sample_log(data, lists, PositionBasedUser(epsilon=0.1), 2_000, rng)


def quick(kind):
    return {"ranker": kind, "method": "naive"} | ({} if kind == "svm" else {"steps": 5})


def rewritten(folder, change, name="ranker.safetensors"):
    """Change what was learned, and vouch for it as one who does so on purpose would."""
    path, manifest = folder / name, json.loads((folder / "manifest.json").read_text())
    if name == "manifest.json":
        change(manifest)
    else:
        tensors = load(path.read_bytes())
        change(tensors)
        path.write_bytes(save(tensors))
        manifest["sha256"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    del manifest["digest"]
    text = json.dumps(manifest, sort_keys=True).encode()
    manifest["digest"] = hashlib.sha256(text).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def without_a_number(tensors):
    real = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
    max(real, key=lambda tensor: tensor.numel()).view(-1)[-1] = float("nan")


@pytest.mark.parametrize("kind", RANKERS)
def test_a_model_with_weights_that_are_no_numbers_is_not_loaded(kind, log, tmp_path):
    fit(log, graded(), **quick(kind)).save(tmp_path)
    Model.load(tmp_path)
    rewritten(tmp_path, without_a_number)
    with pytest.raises(CheckpointError, match=r"ranker\.safetensors: "):
        Model.load(tmp_path)


@pytest.mark.parametrize("kind", RANKERS)
def test_a_model_with_weights_of_another_kind_is_not_loaded(kind, log, tmp_path):
    fit(log, graded(), **quick(kind)).save(tmp_path)
    rewritten(tmp_path, lambda held: held.update({k: v.bfloat16() for k, v in held.items()}))
    with pytest.raises(
        CheckpointError, match=r"not this model's weights|need more than the file has"
    ):
        Model.load(tmp_path)


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        ("shift", [0.0, float("nan"), 0.0], "a number that is not finite"),
        ("scale", [1.0, float("inf"), 1.0], "a number that is not finite"),
        ("scale", [1.0, 0.0, 1.0], "a scale that is not above 0"),
        ("kept", [0, 0, 1], "contradicts itself"),
        ("input_count", 10**15, "3 features, and its scaling 1000000000000000"),
    ],
)
def test_a_scaling_that_is_no_scaling_is_not_loaded(part, value, sentence, tmp_path):
    Model(Network((3, 1)), Scaler.fit(graded().features)).save(tmp_path)
    rewritten(tmp_path, lambda m: m["scaler"].update({part: value}), "manifest.json")
    with pytest.raises(CheckpointError, match=sentence):
        Model.load(tmp_path)


@pytest.mark.parametrize(
    "sizes", [[3, 10**6, 10**6, 1], [3, 2**62, 1], [3, 0, 1], [3], [4, 1], [3, 2]]
)
def test_nothing_is_made_as_large_as_a_manifest_claims(sizes, tmp_path):
    Model(Network((3, 1)), Scaler.fit(graded().features)).save(tmp_path)
    rewritten(tmp_path, lambda m: m["ranker"].update(sizes=sizes), "manifest.json")
    with pytest.raises(CheckpointError, match=r"manifest\.json: damaged"):
        Model.load(tmp_path)


def test_a_score_that_overflows_names_document_and_feature():
    network = Network((2, 1))
    network.weights[0][:] = torch.tensor([[10.0, 1.0]])
    features = np.array([[0, 1], [1, 0], [3e38, 7]], np.float32)
    data = Dataset.from_arrays(
        features, ["q1", "q1", "q2"], doc_ids=["a", "b", "c"], feature_names=("size", "age")
    )
    scaler = Scaler.fit(features[:2], kind="none")
    model = Model(network, scaler, feature_names=("size", "age"))
    with pytest.raises(DataError, match=r"document c of query q2: .* feature 'size' is 3e\+38"):
        model.predict(data)
    with pytest.raises(DataError, match=r"document 3: its score is no finite number"):
        model.predict(features)
    network.weights[0][0, 1] = float("nan")
    with pytest.raises(DataError, match="the ranker's weights are no finite numbers"):
        model.predict(data)


@pytest.mark.parametrize("kind", ["dnn", "linear"])
def test_training_that_overflows_is_one_sentence_with_advice(kind, log):
    with pytest.raises(SettingsError, match="scale the features, or lower the learning rate"):
        fit(log, graded(5e37), scaling="none", **quick(kind))


def test_a_ranker_that_tells_nothing_apart_is_warned_of(log, tmp_path, caplog):
    model = fit(log, graded(), method="naive", learning_rate=1_000.0, steps=60)
    (told,) = model.training["warnings"]
    assert "tells hardly any documents apart" in told
    assert told.endswith("lower the learning rate (it was 1000)")
    sums = fit(log, graded(), method="auto", steps=5)
    assert "warnings" not in sums.training
    flat = Model(Network((3, 1)), Scaler.fit(graded().features), kind="linear")
    export(flat, "opensearch", tmp_path / "m.json", documents=graded())
    assert "tells hardly any documents apart" in caplog.text


def test_equal_features_are_named_as_the_reason(log):
    data = graded()
    features = np.zeros_like(data.features)
    features[::50, 0] = 1.0
    same = Dataset.from_arrays(features, np.repeat(np.arange(QUERIES), DOCUMENTS))
    (told,) = fit(log, same, method="naive", steps=5).training["warnings"]
    assert "have equal features" in told


@pytest.mark.parametrize(
    ("scores", "groups", "share"),
    [
        ([1.0, 1.0, 2.0], [0, 0, 0], 1 / 3),
        ([1.0, 2.0, 1.0], [0, 0, 1], 0.0),
        ([5.0, 5.0000001, 1.0, 2.0], [0, 0, 1, 1], 1 / 2),
        ([1.0, 1.0], [0, 1], 0.0),
        ([0.0, 0.0, 0.0], [4, 4, 4], 1.0),
        ([], [], 0.0),
    ],
)
def test_ties_are_counted_within_lists(scores, groups, share):
    found = tied_share(np.array(scores), np.array(groups, dtype=int))
    assert found == pytest.approx(share)
