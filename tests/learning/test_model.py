"""A model directory gives back the same model, or says which file is damaged."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import dualrank
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.errors import CheckpointError, DataError
from dualrank.learning.model import Model
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Network

FILES = ["ranker.safetensors", "propensity.json", "manifest.json"]


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32) * 7 + 3


@pytest.fixture
def model(features):
    network = Network((4, 5, 1), elu_output=True, seed=2)
    for tensor in network.tensors().values():
        tensor += 0.3 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1))
    return Model(
        network,
        Scaler.fit(features),
        Propensity.of([1.0, 0.7, 0.4], "dual learning", 1_000),
        ("a", "b", "c", "d"),
        {"method": "dla", "history": {"values": [0.1, 0.2]}},
    )


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_gives_identical_scores(model, folder, features):
    loaded = Model.load(folder)
    assert np.array_equal(loaded.predict(features), model.predict(features))
    assert loaded.predict(features).std() > 0.1


def test_everything_else_comes_back_too(model, folder):
    loaded = Model.load(str(folder))
    assert loaded.feature_names == model.feature_names
    assert loaded.training == model.training
    assert loaded.propensity.examination.tolist() == [1.0, 0.7, 0.4]
    assert (loaded.propensity.method, loaded.propensity.sessions) == ("dual learning", 1_000)
    assert loaded.ranker.elu_output


def test_a_model_without_propensity_and_names(features, tmp_path):
    model = Model(Network((4, 1)), Scaler.fit(features))
    model.save(tmp_path)
    loaded = Model.load(tmp_path)
    assert loaded.propensity is None
    assert loaded.feature_names is None
    assert not (tmp_path / "propensity.json").exists()


def test_saving_twice_gives_the_same_bytes(model, tmp_path):
    model.save(tmp_path / "a")
    model.save(tmp_path / "b")
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(FILES)


def test_a_model_saved_over_another_replaces_it(model, folder, features):
    Model(Network((4, 1)), Scaler.fit(features)).save(folder)
    loaded = Model.load(folder)
    assert loaded.propensity is None
    assert not loaded.predict(features).any()


def test_the_manifest_holds_what_the_contract_says(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == 2
    assert manifest["ranker"]["kind"] == "dnn"
    assert manifest["feature_count"] == 4
    assert manifest["feature_names"] == ["a", "b", "c", "d"]
    assert manifest["sha256"].keys() == {"ranker.safetensors", "propensity.json"}


@pytest.mark.parametrize("name", ["ranker.safetensors", "propensity.json"])
def test_a_flipped_bit_is_found_and_the_file_named(folder, name):
    path = folder / name
    whole = path.read_bytes()
    bits = random.Random(0)
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bits.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{name}: damaged"):
            Model.load(folder)


@pytest.mark.parametrize("name", ["ranker.safetensors", "propensity.json"])
def test_a_truncated_or_missing_file_is_named(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=f"{name}: damaged"):
        Model.load(folder)
    path.unlink()
    with pytest.raises(CheckpointError, match=f"{name}: No such file"):
        Model.load(folder)


def vouched_for(manifest):
    """With a digest of all the rest, as one who changes a manifest on purpose would write it."""
    rest = {name: value for name, value in manifest.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return {**rest, "digest": digest}


def test_a_flipped_bit_of_the_manifest_is_found(folder):
    """Above all in a number: a scale that is off by a digit would give other scores."""
    path = folder / "manifest.json"
    whole = path.read_bytes()
    bits, refused = random.Random(0), 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bits.randrange(8)
        path.write_bytes(damaged)
        try:
            Model.load(folder)
        except CheckpointError:
            refused += 1
        else:  # white space, or another spelling of the same
            assert json.loads(damaged) == json.loads(whole)
    assert refused > len(whole) / 2


def test_every_truncated_manifest_is_refused(folder):
    path = folder / "manifest.json"
    whole = path.read_bytes().rstrip()
    for length in range(0, len(whole), 5):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"manifest\.json: not JSON"):
            Model.load(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (key, value)
        for key in ("ranker", "scaler", "feature_names", "sha256")
        for value in (None, 3, "text", [], {}, {"sizes": "x"}, {"kind": 1}, [1, 2])
        if key != "feature_names" or not isinstance(value, list | None)
    ],
)
def test_a_manifest_that_holds_something_else_is_refused_by_name(folder, key, value):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(CheckpointError, match=r"model/\w"):
        Model.load(folder)


@pytest.mark.parametrize("key", ["ranker", "scaler", "feature_names", "training", "sha256"])
def test_a_manifest_without_a_part_is_refused(folder, key):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest[key]
    path.write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=f"manifest.json: damaged: '{key}' is missing"):
        Model.load(folder)


@pytest.mark.parametrize("content", ["[]", "3", '{"format": 3}', '{"format": 0}', "{}", "null"])
def test_a_manifest_of_another_format_is_refused(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"manifest\.json: model format .* reads up to 2"):
        Model.load(folder)


def test_weights_of_another_network_are_refused(folder):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["ranker"]["sizes"] = [4, 6, 1]
    path.write_text(json.dumps(vouched_for(manifest)))
    with pytest.raises(CheckpointError, match=r"ranker\.safetensors: not this model's weights"):
        Model.load(folder)


def test_a_scaling_that_does_not_fit_the_network_is_refused(folder, features):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["scaler"] = Scaler.fit(features[:, :3]).to_dict()
    path.write_text(json.dumps(vouched_for(manifest)))
    with pytest.raises(CheckpointError, match=r"manifest\.json: damaged: "):
        Model.load(folder)


def test_a_ranker_of_an_unknown_kind_is_refused_and_needs_its_settings(folder, model, features):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["ranker"]["kind"] = "forest"
    path.write_text(json.dumps(vouched_for(manifest)))
    with pytest.raises(CheckpointError, match="of kind 'forest', which is not one of dnn, linear"):
        Model.load(folder)

    class Forest(DNN):
        kind = "forest"

    loaded = Model.load(folder, ranker=Forest)
    assert np.array_equal(loaded.predict(features), model.predict(features))
    with pytest.raises(CheckpointError, match="of kind 'forest'"):
        Model.load(folder, ranker=DNN)


@pytest.mark.parametrize("description", [{"sizes": [4, 5]}, {"sizes": "x"}, {"inputs": 4}])
def test_a_ranker_that_cannot_be_restored_is_refused(folder, description):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["ranker"] = {"kind": "dnn", **description}
    path.write_text(json.dumps(vouched_for(manifest)))
    with pytest.raises(CheckpointError, match=r"model/\w"):
        Model.load(folder)


def test_a_folder_that_holds_no_model_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"not a model directory: no manifest\.json in it"):
        Model.load(tmp_path)
    with pytest.raises(CheckpointError, match="nowhere: not a model directory"):
        Model.load(tmp_path / "nowhere")


def test_another_number_of_features_is_refused_with_both_numbers(model):
    with pytest.raises(DataError, match="3 features; the scaling was learned on 4"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(DataError, match="5 features; the scaling was learned on 4"):
        model.predict(Dataset.from_arrays(np.zeros((2, 5)), [1, 1]))


def test_features_must_be_a_matrix(model):
    with pytest.raises(DataError, match="must be a matrix, not of 1 dimensions"):
        model.predict(np.zeros(4))


def test_data_sets_and_arrays_are_scored_alike(model, features):
    data = Dataset.from_arrays(features, np.zeros(len(features)))
    assert np.array_equal(model.predict(data), model.predict(features.astype(np.float64)))


def test_no_pickle_is_ever_written_or_read():
    forbidden = ("import pickle", "torch.load", "torch.save", "allow_pickle=True", "joblib", "dill")
    sources = list(Path(dualrank.__file__).parent.rglob("*.py"))
    assert len(sources) > 30
    for source in sources:
        text = source.read_text(encoding="utf-8")
        found = [word for word in forbidden if word in text]
        assert not found, f"{source} uses {found}"


@pytest.mark.parametrize("name", ["/dev/zero", "../other", "notes.txt", "manifest.json"])
def test_a_manifest_names_no_other_files(folder, name):
    path = folder / "manifest.json"
    (folder.parent / "other").write_text("secret")
    manifest = json.loads(path.read_text())
    manifest["sha256"][name] = hashlib.sha256(b"secret").hexdigest()
    path.write_text(json.dumps(vouched_for(manifest)))
    with pytest.raises(CheckpointError, match="which is no file of a model"):
        Model.load(folder)


def test_a_model_without_a_ranker_is_refused(folder):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]["ranker.safetensors"]
    path.write_text(json.dumps(vouched_for(manifest)))
    with pytest.raises(CheckpointError, match=r"does not name ranker\.safetensors"):
        Model.load(folder)


@pytest.mark.parametrize("name", FILES)
def test_links_out_of_the_directory_are_not_followed(folder, name):
    elsewhere = folder.parent / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(CheckpointError, match="leads out of"):
        Model.load(folder)
    folder.with_name("live").symlink_to(folder)
    (folder / name).unlink()
    elsewhere.rename(folder / name)
    Model.load(folder.with_name("live"))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": 1e999}', '{"format": ' + "9" * 10_000 + "}"]
)
def test_json_that_nobody_wrote_is_one_sentence(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"manifest\.json: not JSON") as told:
        Model.load(folder)
    assert len(str(told.value)) < 300
