"""Shards that are cut, changed, missing or of another log are refused in a sentence."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from dualrank.data.shards.shard import Shard
from dualrank.data.shards.sharded_log import ShardedLog, digest_of
from dualrank.errors import DataError

FILES = [
    *("log.parquet", "names.arrow", "features.npy", "offsets.npy", "documents.npy", "queries.npy"),
    *("list_of.npy", "clicks.npy", "counts.npy", "starts.npy", "cumulative.npy"),
    *("pair_counts.npy", "column_0.npy", "column_1.npy", "event_0.npy"),
]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_missing_or_changed_is_named(sharded, name):
    assert set(FILES) == set(sharded.shards[0].files)
    path = sharded.folder / "00002" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DataError, match=rf"00002.{name}: has .* bytes, and had .* cut off, or a"):
        ShardedLog.open(sharded.folder)
    path.unlink()
    with pytest.raises(DataError, match=rf"00002.{name}: cannot be read \(No such file"):
        ShardedLog.open(sharded.folder)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (damaged,) = [s for s in ShardedLog.open(sharded.folder).shards if s.number == 2]
    with pytest.raises(DataError, match=rf"00002.{name}: damaged, or a shard of another log"):
        damaged.verify()


def test_a_missing_shard_and_one_of_another_log_are_named(sharded):
    other = sharded.folder / "00001" / "clicks.npy"
    clicks = np.load(other)
    np.save(other, ~clicks)
    with pytest.raises(DataError, match=r"00001.clicks.npy: damaged, or a shard of another log"):
        ShardedLog.open(sharded.folder).shards[1].verify()
    shutil.rmtree(sharded.folder / "00003")
    with pytest.raises(DataError, match="00003: this shard is missing; copy it here"):
        ShardedLog.open(sharded.folder)
    assert ShardedLog.open(sharded.folder, only=[0]).shards[0].verify() is None


def sealed(folder, change):
    path = folder / "shards.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(format=9), "of format 9, which a newer dualrank wrote; this version"),
        (lambda m: m.update(format=0), r"damaged: not a log in shards \(format 0; this version"),
        (lambda m: m.update(format="2"), r"damaged: not a log in shards \(format '2'; this"),
        (lambda m: m.update(depth=0), "0 is no number from 1 to"),
        (lambda m: m["shards"][0].update(lists=-1), "-1 is no number from 0"),
        (lambda m: m["shards"][0]["files"].update({"../x": {}}), "'../x' is no file of a shard"),
        (lambda m: m["features"].update(names=["age"]), "1 names of 3 features"),
        (lambda m: m.update(shards=[]), "0 shards"),
        (lambda m: m.pop("columns"), "columns"),
        (lambda m: m.update(reading=None), "damaged"),
    ],
)
def test_a_manifest_that_lies_is_refused(sharded, change, sentence):
    sealed(sharded.folder, change)
    with pytest.raises(DataError, match=sentence):
        ShardedLog.open(sharded.folder)


def test_a_manifest_with_another_byte_is_refused(sharded):
    path = sharded.folder / "shards.json"
    path.write_text(path.read_text().replace('"depth": ', '"depth":  1'))
    with pytest.raises(DataError, match=r"shards.json: damaged: not a log in shards \(its digest"):
        ShardedLog.open(sharded.folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("documents.npy", 10**6),
        ("queries.npy", -1),
        ("list_of.npy", 10**6),
        ("list_of.npy", 5),
        ("starts.npy", -5),
        ("cumulative.npy", -5),
        ("counts.npy", 0),
        ("column_0.npy", 2),
        ("event_0.npy", -1.0),
        ("event_0.npy", np.nan),
        ("offsets.npy", 10**6),
        ("offsets.npy", 0),
        ("pair_counts.npy", -2),
        ("features.npy", np.inf),
    ],
)
def test_numbers_that_cannot_be_are_refused_though_all_digests_hold(sharded, name, value):
    path = sharded.folder / "00000" / name
    array = np.load(path)
    array.reshape(-1)[1] = value
    np.save(path, array)

    def mend(manifest):
        file = manifest["shards"][0]["files"][name]
        file["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        file["bytes"] = path.stat().st_size

    sealed(sharded.folder, mend)
    with pytest.raises(DataError, match=rf"00000.{name}: damaged: holds numbers that cannot be"):
        ShardedLog.open(sharded.folder).shards[0].verify()


def test_a_shard_with_other_names_than_documents_is_refused(sharded):
    shard = sharded.shards[0]
    fewer = Shard(**{**vars(shard), "documents": shard.documents - 1})
    with pytest.raises(DataError, match=r"names.arrow: damaged \(it names"):
        list(fewer.names())
