"""Which data an experiment runs on, and which seeds it takes."""

import gzip
from pathlib import Path

import pytest

from dualrank.data.generator import Preset, generate_splits
from dualrank.errors import DataError, SettingsError
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.oracle_mode import OracleMode
from dualrank.reproduce.text_collection import TextCollection, TextSplits


def test_texts_keep_a_tenth_of_their_training_queries_for_validation(monkeypatch, tmp_path):
    (tmp_path / "msrd_movies").mkdir()
    whole = generate_splits(Preset(8, 100, 1, 20))
    texts = TextSplits(whole.train, whole.test)
    monkeypatch.setattr(TextCollection, "load", lambda self, seed: texts)
    collection = Collection("msrd-movies", tmp_path)
    splits = collection.load(0)
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [90, 10, 20]
    both = [*splits.valid.query_ids, *splits.train.query_ids]
    assert both == whole.train.query_ids.tolist()
    assert (collection.describe((0, 1)), collection.scaling) == ("msrd-movies", "log")
    assert not collection.new_for_every_seed


@pytest.mark.parametrize("seeds", [6, 10])
def test_no_fold_is_tested_twice(seeds):
    with pytest.raises(SettingsError, match="test one twice"):
        OracleMode(data="mq2008", root=Path("folder"), fold="all", seeds=seeds)


def test_a_set_without_folds_has_none_to_go_through():
    with pytest.raises(SettingsError, match="yahoo-set1 has no folds"):
        OracleMode(data="yahoo-set1", root=Path("folder"), fold="all")


def test_the_folds_that_were_used_are_named():
    assert Collection("mq2008", Path("folder"), fold=None).describe((0, 2)) == "mq2008, folds 1, 3"
    assert Collection("mq2008", Path("folder"), fold=2).describe((0, 1)) == "mq2008, fold 2"
    assert Collection("tiny", world=3).describe((0,)) == "generated, preset tiny, world 3"


@pytest.mark.parametrize("collection", ["msrd-movies", "nfcorpus", "stanford-web"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\x28\xb5\x2f\xfd cut", gzip.compress(b"[]\n{", mtime=0)[:20]],
    ids=["empty", "cut zstd", "cut gzip"],
)
def test_a_damaged_collection_is_refused_in_one_sentence(tmp_path, collection, content):
    folder = tmp_path / collection.replace("-", "_")
    folder.mkdir()
    names = ["movies-corpus.jsonl.gz", "movies-judgments.tsv.gz", "dev.docs.zst"]
    for name in (*names, "matched_bodies.jsonl.zst", "pairs.jsonl.zst"):
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{folder.name}: not {collection} as it was published"):
        TextCollection(collection, tmp_path).load(0)
