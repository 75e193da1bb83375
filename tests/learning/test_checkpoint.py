"""Checkpoints are whole or refused; nothing that fails harms the one that stood before."""

import errno
import json
import os
import random
import struct
import subprocess

import pytest
import torch
from safetensors.torch import save

from dualrank.errors import CheckpointError
from dualrank.learning.checkpoint import (
    Checkpoint,
    read_checkpoint,
    require_same_run,
    write_checkpoint,
)


def example(value=0.5):
    tensors = {
        "ranker.parameter.0": torch.full((2, 3), value),
        "ranker.sum.0": torch.full((2, 3), 0.1),
        "propensity.step": torch.tensor(7.0),
        "best.weights.0": torch.arange(3, dtype=torch.float64),
    }
    return Checkpoint(tensors, {"step": 3, "identity": {"seed": 0}, "history": [1.5, None]})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, example())
    return path


def test_what_is_written_is_read(path):
    found, expected = read_checkpoint(path), example()
    assert found.values == expected.values
    assert found.tensors.keys() == expected.tensors.keys()
    for name, tensor in expected.tensors.items():
        assert torch.equal(found.tensors[name], tensor)
        assert found.tensors[name].dtype == tensor.dtype


def test_a_group_is_the_tensors_under_a_prefix():
    assert set(example().group("ranker")) == {"parameter.0", "sum.0"}
    assert example().group("nothing") == {}


def test_random_state_and_infinities_survive(tmp_path):
    values = {"state": 2**127 + 1, "best": float("-inf"), "text": "ü → ∞"}
    write_checkpoint(tmp_path / "c", Checkpoint({"t": torch.zeros(1)}, values))
    assert read_checkpoint(tmp_path / "c").values == values


def test_every_truncation_is_refused(path):
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors"):
            read_checkpoint(path)


def test_a_flipped_bit_is_found_in_any_byte(path):
    """In the length, the header and the tensors: nothing is read, nothing but the error raised."""
    whole = path.read_bytes()
    bits = random.Random(0)
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bits.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors"):
            read_checkpoint(path)


def test_bytes_appended_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        read_checkpoint(path)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint at all", b"\xff" * 64])
def test_a_file_of_something_else_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        read_checkpoint(path)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere: not a readable checkpoint"):
        read_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        read_checkpoint(tmp_path)


def test_a_safetensors_file_of_others_is_refused(path):
    path.write_bytes(save({"weight": torch.zeros(2)}))
    with pytest.raises(CheckpointError, match="checkpoint format None, this version reads 2"):
        read_checkpoint(path)


def test_another_format_version_is_refused(path):
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])
    header["__metadata__"]["format"] = "1"
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + length :])
    with pytest.raises(CheckpointError, match="checkpoint format '1', this version reads 2"):
        read_checkpoint(path)


def test_damage_is_called_damage_and_says_what_to_do(path):
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"damaged .* delete it to start anew"):
        read_checkpoint(path)


def test_the_same_run_is_accepted_and_another_named(tmp_path):
    require_same_run(tmp_path, {"seed": 1, "rate": 0.1}, {"rate": 0.1, "seed": 1})
    with pytest.raises(CheckpointError) as caught:
        require_same_run(tmp_path, {"seed": 1, "old": 2}, {"seed": 3, "new": "x"})
    sentence = str(caught.value)
    assert "new was None and is 'x'; old was 2 and is None; seed was 1 and is 3" in sentence
    assert sentence.endswith("delete it or choose another directory")


def test_of_nested_values_only_those_are_named_that_differ(tmp_path):
    saved = {"settings": {"seed": 1, "rates": {"a": 0.1}}, "details": {}}
    require_same_run(tmp_path, saved, saved)
    now = {"settings": {"seed": 2, "rates": {"a": 0.1}}, "details": {}}
    with pytest.raises(CheckpointError, match=r"run: settings\.seed was 1 and is 2; delete"):
        require_same_run(tmp_path, saved, now)


def only_checkpoint_in(folder):
    return [entry.name for entry in folder.iterdir()] == ["checkpoint.safetensors"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_failing_disk_leaves_the_previous_checkpoint(path, monkeypatch, call, error):
    before = path.read_bytes()

    def fail(*arguments, **options):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(CheckpointError) as caught:
        write_checkpoint(path, example(0.9))
    assert str(caught.value) == (
        f"{path}: the checkpoint could not be written ({os.strerror(error)}); "
        "the previous one is untouched"
    )
    assert path.read_bytes() == before
    assert only_checkpoint_in(path.parent)


@pytest.fixture
def small_disk(tmp_path):
    """A file system with room for 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "dualrank-test", folder], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_leaves_the_previous_checkpoint(small_disk):
    path = small_disk / "checkpoint.safetensors"
    write_checkpoint(path, example())
    before = path.read_bytes()
    large = Checkpoint({"ranker.parameter.0": torch.zeros(100_000)}, {"step": 4})
    with pytest.raises(CheckpointError, match="No space left on device"):
        write_checkpoint(path, large)
    assert path.read_bytes() == before
    assert only_checkpoint_in(small_disk)
    write_checkpoint(path, example(0.9))
    assert read_checkpoint(path).tensors["ranker.parameter.0"][0, 0] == 0.9


def test_an_interrupted_writing_leaves_the_previous_checkpoint(path, monkeypatch):
    before = path.read_bytes()

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(path, example(0.9))
    assert path.read_bytes() == before
    assert only_checkpoint_in(path.parent)


def test_a_folder_that_is_missing_is_made(tmp_path):
    write_checkpoint(tmp_path / "a" / "b" / "c", example())
    assert read_checkpoint(tmp_path / "a" / "b" / "c").values["step"] == 3


def test_a_folder_that_cannot_be_made_is_an_error_with_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="could not be written"):
        write_checkpoint(tmp_path / "file" / "checkpoint", example())


def test_tensors_that_are_views_are_written_as_they_look(tmp_path):
    base = torch.arange(12.0).view(3, 4)
    write_checkpoint(tmp_path / "c", Checkpoint({"a": base.t(), "b": base[:, 1]}, {}))
    found = read_checkpoint(tmp_path / "c").tensors
    assert torch.equal(found["a"], base.t())
    assert torch.equal(found["b"], base[:, 1])


def test_a_single_element_of_any_stride_is_written(tmp_path):
    single = torch.zeros(1, dtype=torch.int32).as_strided((1,), (0,))
    write_checkpoint(tmp_path / "c", Checkpoint({"a": single, "b": torch.empty(0, 5)}, {}))
    found = read_checkpoint(tmp_path / "c").tensors
    assert found["a"].tolist() == [0]
    assert found["b"].shape == (0, 5)
