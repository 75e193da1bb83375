"""A log in shards holds what the log holds; damaged shards are refused in a sentence."""

import errno
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.cli.outputs import NewLog
from dualrank.data.click_log import ClickLog
from dualrank.data.features import read_features
from dualrank.data.log.read_log import read_log
from dualrank.data.log.reading_report import BadLogError
from dualrank.data.log.saved import to_table, write_log
from dualrank.data.shards import shard_writing, sharded_reduction
from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.shard import Shard
from dualrank.data.shards.shard_writing import ShardWriter, new_shards
from dualrank.data.shards.sharded_log import ShardedLog, digest_of, is_sharded, shard_of
from dualrank.data.shards.splitting import write_shards
from dualrank.errors import DataError, SettingsError

from .conftest import OPTIONS, features_of_documents, rows_of_sessions


def files_of(sharded):
    return [{name: file.sha256 for name, file in shard.files.items()} for shard in sharded.shards]


def test_shards_read_as_one_log_are_the_log(files, sharded):
    plain = read_log(files / "log.parquet", **OPTIONS)
    whole = read_log(sharded.folder)
    assert to_table(whole).equals(to_table(plain))
    assert whole.reading.rows == plain.reading.rows
    assert is_sharded(sharded.folder)
    assert not is_sharded(files)


def test_shards_of_a_partial_log_are_the_log_though_few_have_gaps(tmp_path):
    rows = rows_of_sessions()
    shown = [
        row
        for row, (query, place) in enumerate(zip(rows["query_id"], rows["position"], strict=True))
        if (query, place) != ("q 0", 2)
    ]
    rows = {name: [values[row] for row in shown] for name, values in rows.items()}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    plain = read_log(tmp_path / "log.parquet", partial=True, **OPTIONS)
    assert plain.lists.have_gaps.any()
    options = {"partial": True, **OPTIONS}
    sharded = reduce_to_shards(tmp_path / "log.parquet", tmp_path / "log", 4, **options)
    assert to_table(read_log(sharded.folder)).equals(to_table(plain))


@pytest.mark.parametrize("shards", [1, 3, 100])
def test_an_engine_writes_the_bytes_that_a_log_in_memory_is_cut_into(files, tmp_path, shards):
    data = read_features(files / "features.parquet")
    log = read_log(files / "log.parquet", data, **OPTIONS)
    cut = write_shards(log, tmp_path / "cut", shards, data)
    args = files / "log.parquet", tmp_path / "engine", shards, files / "features.parquet"
    reduced = reduce_to_shards(*args, **OPTIONS)
    assert files_of(cut) == files_of(reduced)
    assert sum(shard.sessions for shard in reduced.shards) == log.sessions
    for shard in reduced.shards:
        shard.verify()


def test_without_features_documents_are_the_pairs_that_are_shown(files, tmp_path):
    plain = read_log(files / "log.parquet", **OPTIONS)
    sharded = reduce_to_shards(files / "log.parquet", tmp_path / "log", 5, **OPTIONS)
    assert sharded.documents == len(plain.catalogue.doc_ids)
    assert to_table(sharded.read()).equals(to_table(plain))
    with pytest.raises(DataError, match="these shards have no features; reduce the log again"):
        _ = sharded.shards[0].dataset


def test_a_shard_is_a_log_of_its_own_with_its_features(files, sharded):
    data = read_features(files / "features.parquet")
    row_of = {pair: row for row, pair in enumerate(data.pairs())}
    for shard in sharded.shards:
        catalogue, log, dataset = shard.catalogue(), shard.log, shard.dataset
        pairs = catalogue.pairs()
        assert pairs == sorted(pairs)
        assert {shard_of(query, 4) for query in catalogue.query_ids} <= {shard.number}
        rows = [row_of[pair] for pair in pairs]
        np.testing.assert_array_equal(dataset.features, data.features[rows])
        assert dataset.feature_names == ("age", "shard", "bm25")
        np.testing.assert_array_equal(dataset.query_of_document, catalogue.query_of_document)
        alone = read_log(shard.folder / "log.parquet", data)
        assert alone.sessions == log.sessions == shard.cumulative[-1]
        first = log.lists.documents[:, 0]
        np.testing.assert_array_equal(catalogue.query_of_document[first], log.lists.queries)
        for number in (0, len(log.lists) - 1):
            rows = slice(shard.starts[number], shard.starts[number + 1])
            assert (log.list_of[rows] == number).all()
            before = shard.cumulative[number - 1] if number else 0
            assert log.counts[rows].sum() == shard.cumulative[number] - before


def test_pairs_are_counted_where_they_stood(sharded):
    for shard in sharded.shards:
        log, counts = shard.log, shard.pair_counts
        sessions, clicks = {}, {}
        for row in range(len(log.counts)):
            for place, document in enumerate(log.lists.documents[log.list_of[row]], start=1):
                if document >= 0:
                    key = (document, place)
                    sessions[key] = sessions.get(key, 0) + log.counts[row]
                    clicks[key] = clicks.get(key, 0) + log.counts[row] * log.clicks[row, place - 1]
        expected = [(*key, sessions[key], clicks[key]) for key in sorted(sessions)]
        assert counts.tolist() == [list(map(int, each)) for each in expected]


def test_values_of_a_context_have_one_number_in_all_shards(sharded):
    assert sharded.columns["device"] == ("desk", "phone")
    assert {shard.log.columns["device"].names for shard in sharded.shards} == {("desk", "phone")}
    assert len(sharded.columns["period"]) == 2
    assert sharded.events == ("cart",)


def test_a_reduced_log_is_cut(files, sharded, tmp_path):
    plain = read_log(files / "log.parquet", **OPTIONS)
    write_log(plain, tmp_path / "reduced.parquet")
    cut = reduce_to_shards(
        tmp_path / "reduced.parquet", tmp_path / "cut", 4, files / "features.parquet"
    )
    assert files_of(cut) == files_of(sharded)


@pytest.mark.parametrize("with_features", [True, False])
def test_a_log_in_shards_is_cut_anew_with_the_features_that_it_has(files, tmp_path, with_features):
    features = files / "features.parquet" if with_features else None
    three, two = (
        reduce_to_shards(files / "log.parquet", tmp_path / str(n), n, features, **OPTIONS)
        for n in (3, 2)
    )
    again = reduce_to_shards(three.folder, tmp_path / "again", 2)
    assert files_of(again) == files_of(two)
    assert again.feature_names == two.feature_names
    assert again.reading == three.reading


def test_shards_are_not_cut_anew_with_damaged_features(sharded, tmp_path):
    path = sharded.folder / "00001" / "features.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DataError, match=r"features.npy: damaged, or a shard of another log"):
        reduce_to_shards(sharded.folder, tmp_path / "again", 2)


def test_lists_without_features_are_left_out_and_counted(files, tmp_path):
    columns = features_of_documents()
    rows = [i for i, document in enumerate(columns["doc_id"]) if document != "d3"]
    table = pa.table({name: [values[i] for i in rows] for name, values in columns.items()})
    pq.write_table(table, tmp_path / "features.parquet")
    log, given = files / "log.parquet", tmp_path / "features.parquet"
    with pytest.raises(BadLogError, match="document without features"):
        reduce_to_shards(log, tmp_path / "log", 4, given)
    assert not (tmp_path / "log").exists()
    sharded = reduce_to_shards(log, tmp_path / "log", 4, given, max_bad_share=1)
    data = read_features(given)
    plain = read_log(log, data, max_bad_share=1)
    assert sharded.sessions == plain.sessions
    counts = {problem.kind: (problem.count, problem.clicked) for problem in plain.reading.problems}
    found = {problem.kind: (problem.count, problem.clicked) for problem in sharded.reading.problems}
    assert found == counts
    assert sharded.reading.bad == plain.reading.bad
    assert files_of(write_shards(plain, tmp_path / "cut", 4, data)) == files_of(sharded)


def write_features(path, **changed):
    columns = features_of_documents()
    columns.update({name: change(columns) for name, change in changed.items()})
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"doc_id": lambda c: ["d0" if d == "d1" else d for d in c["doc_id"]]},
            "document 'd0' of query 'q 0' stands there twice; expected one row of features",
        ),
        (
            {"age": lambda c: np.where(np.arange(len(c["age"])) == 3, np.inf, c["age"])},
            r"age of document .* of query .* is inf; features are finite",
        ),
        ({"doc_id": lambda c: [None, *c["doc_id"][1:]]}, "1 rows have no doc_id"),
        ({"query_id": lambda c: [np.nan, *range(len(c["age"]) - 1)]}, "1 rows have no query_id"),
        ({"age": lambda c: ["old"] * len(c["age"])}, "column 'age' holds string; features are"),
    ],
)
def test_features_that_are_none_are_refused(files, tmp_path, changed, sentence):
    given = write_features(tmp_path / "f.parquet", **changed)
    with pytest.raises(DataError, match=sentence):
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 4, given)
    assert not (tmp_path / "log").exists()


def test_features_as_lists_and_an_index_that_is_none(files, sharded, tmp_path, caplog):
    columns = features_of_documents()
    lists = np.stack([columns.pop(name) for name in ("age", "shard", "bm25")], axis=1)
    pq.write_table(pa.table({**columns, "features": lists.tolist()}), tmp_path / "lists.parquet")
    log = files / "log.parquet"
    other = reduce_to_shards(log, tmp_path / "log", 4, tmp_path / "lists.parquet", **OPTIONS)
    assert other.feature_names is None
    assert files_of(other) == files_of(sharded)
    given = write_features(tmp_path / "f.parquet", index=lambda c: list(range(len(c["age"]))))
    numbered = reduce_to_shards(log, tmp_path / "numbered", 4, given, **OPTIONS)
    assert numbered.feature_names == ("age", "shard", "bm25")
    assert "index" in caplog.text
    (tmp_path / "f.txt").write_text("1 qid:1 1:0.5\n")
    with pytest.raises(DataError, match=r"f.txt: features that go into shards are Parquet files"):
        reduce_to_shards(log, tmp_path / "letor", 4, tmp_path / "f.txt")


@pytest.mark.parametrize("rows", [200, 389])  # of the second, the last file has one row
def test_a_number_of_rows_that_begins_anew_in_every_file_is_no_feature(
    files, sharded, tmp_path, caplog, rows
):
    table = pa.table(features_of_documents())
    parts = table.slice(0, rows), table.slice(rows)
    (tmp_path / "f").mkdir()
    for number, part in enumerate(parts):
        numbered = part.append_column("index", pa.array(range(len(part)), pa.int64()))
        pq.write_table(numbered, tmp_path / "f" / f"{number}.parquet")
    args = files / "log.parquet", tmp_path / "numbered", 4, tmp_path / "f"
    found = reduce_to_shards(*args, **OPTIONS)
    assert "column 'index' is left out" in caplog.text
    assert found.feature_names == ("age", "shard", "bm25")
    assert files_of(found) == files_of(sharded)


def test_a_column_called_index_that_repeats_itself_in_a_file_is_a_feature(files, tmp_path):
    table = pa.table(features_of_documents())
    (tmp_path / "f").mkdir()
    for number, values in enumerate((range(200), [7] * 190)):
        part = table.slice(200 * number, len(values)).append_column("index", pa.array(values))
        pq.write_table(part, tmp_path / "f" / f"{number}.parquet")
    found = reduce_to_shards(files / "log.parquet", tmp_path / "log", 1, tmp_path / "f")
    assert found.feature_names == ("age", "shard", "bm25", "index")


def test_features_of_other_documents_are_refused_before_a_shard_is_written(
    files, tmp_path, monkeypatch
):
    monkeypatch.setattr(ShardWriter, "add", None)
    given = write_features(
        tmp_path / "f.parquet", doc_id=lambda c: [name[1:] for name in c["doc_id"]]
    )
    sentence = (
        "f.parquet: no document of the log has features; the log shows document 'd0' of query "
        "'q 0', the features begin with document '0' of query 'q 0': the ids must be written alike"
    )
    with pytest.raises(DataError, match=sentence):
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 2, given)


@pytest.mark.parametrize("where", [0, 1])
@pytest.mark.parametrize("other", [None, [], [1.0]])
def test_lists_of_features_of_another_length_are_refused(files, tmp_path, other, where):
    columns = features_of_documents()
    ids = {name: columns[name] for name in ("query_id", "doc_id")}
    lists = [other if shard_of(query, 2) == where else [1.0, 2.0] for query in ids["query_id"]]
    pq.write_table(pa.table({**ids, "features": lists}), tmp_path / "f.parquet")
    least = len(other or ())
    with pytest.raises(DataError, match=f"f.parquet: documents have {least} to 2 features"):
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 2, tmp_path / "f.parquet")


@pytest.mark.parametrize("from_memory", [False, True])
def test_one_shard_is_in_memory_while_it_is_written(files, tmp_path, monkeypatch, from_memory):
    written, add = list[weakref.ref](), ShardWriter.add

    def alone(writer, log, features=None):
        gc.collect()
        assert not any(held() is not None for held in written)
        add(writer, log, features)
        written.extend(map(weakref.ref, (log, features)))

    made = []

    def watched(make):
        def watching(*args):
            gc.collect()
            assert not any(held() is not None for held in written)
            made.append(args)
            return make(*args)

        return watching

    monkeypatch.setattr(ShardWriter, "add", alone)
    if from_memory:
        monkeypatch.setattr(ClickLog, "take_lists", watched(ClickLog.take_lists))
        data = read_features(files / "features.parquet")
        write_shards(read_log(files / "log.parquet", data), tmp_path / "log", 3, data)
    else:
        fetch = watched(sharded_reduction.fetch_reduced)
        monkeypatch.setattr(sharded_reduction, "fetch_reduced", fetch)
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 3, files / "features.parquet")
    assert len(written) == 6
    assert len(made) >= 3


def test_useless_logs_are_refused_as_ever(tmp_path):
    rows = rows_of_sessions()
    rows["position"] = [place + 1 for place in rows["position"]]
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    with pytest.raises(DataError, match="gap in the positions"):
        reduce_to_shards(tmp_path / "log.parquet", tmp_path / "log", 2)
    with pytest.raises(DataError, match="no session shows a document at position 1"):
        reduce_to_shards(tmp_path / "log.parquet", tmp_path / "log", 2, partial=True)
    assert not (tmp_path / "log").exists()


def test_a_log_in_shards_takes_the_place_of_an_earlier_one_and_of_nothing_else(files, sharded):
    (sharded.folder / "notes.txt").write_text("mine")
    (sharded.folder / ".dualrank-unfinished").mkdir()
    reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    (sharded.folder / "10115").mkdir()
    (sharded.folder / "10115" / "streets.csv").write_text("mine")
    (sharded.folder / ".unfinished").mkdir()
    reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    found = sorted(path.name for path in sharded.folder.iterdir())
    assert found == [".unfinished", "00000", "00001", "10115", "notes.txt", "shards.json"]


@pytest.mark.parametrize("is_shard", [True, False])
def test_what_stands_where_a_shard_would_be_is_not_replaced(files, sharded, tmp_path, is_shard):
    out = sharded.folder if is_shard else tmp_path / "other"
    (out / "00001").mkdir(parents=True, exist_ok=True)
    (out / "00001" / "diary.txt").write_text("mine")
    with pytest.raises(SettingsError, match="00001: stands where a shard would be written"):
        reduce_to_shards(files / "log.parquet", out, 2)
    assert (out / "00001" / "diary.txt").read_text() == "mine"
    assert is_sharded(out) == is_shard


def test_a_log_of_which_a_shard_is_missing_is_reduced_again(files, sharded):
    shutil.rmtree(sharded.folder / "00002")
    shutil.rmtree(sharded.folder / "00000")
    args = files / "log.parquet", sharded.folder, 4, files / "features.parquet"
    assert files_of(reduce_to_shards(*args, **OPTIONS)) == files_of(sharded)
    # A log of more shards leaves none of them behind.
    reduce_to_shards(files / "log.parquet", sharded.folder, 1)
    assert sorted(path.name for path in sharded.folder.iterdir()) == ["00000", "shards.json"]


def test_what_is_reduced_already_takes_no_columns(sharded):
    with pytest.raises(SettingsError, match="reduced already; columns, positions, periods"):
        read_log(sharded.folder, first_position=0)


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


def test_queries_are_named_whatever_batch_their_first_document_is_in(files, tmp_path, monkeypatch):
    monkeypatch.setattr(shard_writing, "NAMES_AT_ONCE", 5)
    args = files / "log.parquet", tmp_path / "log", 1, files / "features.parquet"
    (shard,) = reduce_to_shards(*args).shards
    assert len(list(shard.names())) == 78
    catalogue = shard.catalogue()
    assert sorted(catalogue.query_ids) == sorted({f"q {number}" for number in range(30)})
    held = [
        pair for batch in shard.names() for pair in zip(*batch.to_pydict().values(), strict=True)
    ]
    assert catalogue.pairs() == held


def test_names_of_queries_are_made_once_a_query(sharded, monkeypatch):
    made = []

    class Watched:
        def __init__(self, array):
            self.array = array

        def take(self, rows):
            return Watched(self.array.take(rows))

        def to_pylist(self):
            made.append(len(self.array))
            return self.array.to_pylist()

    class Batch:
        def __init__(self, batch):
            self.batch = batch

        def __len__(self):
            return len(self.batch)

        def column(self, name):
            return Watched(self.batch.column(name))

    names = Shard.names
    monkeypatch.setattr(Shard, "names", lambda shard: map(Batch, names(shard)))
    shard = sharded.shards[0]
    shard.catalogue()
    assert sum(made) == shard.documents + shard.queries


def test_a_shard_is_mapped_and_not_read(sharded):
    arrays = [sharded.shards[0].dataset.features, sharded.shards[0].log.clicks]
    assert all(not array.flags.owndata and not array.flags.writeable for array in arrays)


def test_a_full_disk_leaves_the_log_as_it_was(files, sharded, monkeypatch):
    calls = []

    def full_after_ten(number):
        calls.append(number)
        if len(calls) > 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dualrank.storage.os.fsync", full_after_ten)
    with pytest.raises(OSError, match="No space left on device"):
        reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    assert ShardedLog.open(sharded.folder).digest == sharded.digest
    assert not (sharded.folder / ".dualrank-unfinished").exists()


def write_log_of(folder, shards, text):
    for number in range(shards):
        (folder / f"0000{number}").mkdir(parents=True)
        (folder / f"0000{number}" / "log.parquet").write_text(text)
    (folder / "shards.json").write_text(text)


def contents(folder):
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("problem", [KeyboardInterrupt, PermissionError])
@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupt_while_logs_are_exchanged_leaves_the_earlier_one(
    tmp_path, monkeypatch, problem, at, late
):
    write_log_of(tmp_path, 4, "old")
    before, renamed, rename = contents(tmp_path), [], os.rename

    def interrupted(source, target):
        renamed.append(source)
        now = len(renamed) == at + 1
        if now and not late:
            raise problem
        rename(source, target)
        if now:
            raise problem

    def exchange():
        with new_shards(tmp_path, 2) as new:
            write_log_of(new, 2, "new")

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(problem):
        exchange()
    assert contents(tmp_path) == before
    exchange()
    assert set(contents(tmp_path).values()) == {"new"}
    assert len(contents(tmp_path)) == 3


def test_an_interrupt_while_the_earlier_log_is_deleted_leaves_the_new_one(
    files, sharded, monkeypatch
):
    remove, calls = shutil.rmtree, []

    def interrupted(path, **options):
        calls.append(path)
        if len(calls) == 2:  # the first removes what an earlier writer left
            raise KeyboardInterrupt
        remove(path, **options)

    monkeypatch.setattr("dualrank.data.shards.shard_writing.shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    assert len(ShardedLog.open(sharded.folder).shards) == 2
    monkeypatch.undo()
    reduce_to_shards(files / "log.parquet", sharded.folder, 1)
    assert not (sharded.folder / ".dualrank-unfinished").exists()


KILLED = """
import os, signal, types
from dualrank.data.shards import shard_writing
from dualrank.cli.app import main
rename, calls = os.rename, []
def killed(*paths):
    calls.append(paths)
    if len(calls) == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*paths)
shard_writing.os = types.SimpleNamespace(rename=killed, path=os.path)
main()
"""


@pytest.mark.parametrize(("at", "is_whole"), [(1, True), (3, False)])
def test_a_killed_writer_leaves_the_log_or_none(files, sharded, at, is_whole):
    words = ["reduce", str(files / "log.parquet"), "--shards", "2", "--out", str(sharded.folder)]
    done = subprocess.run([sys.executable, "-c", KILLED.format(at=at), *words], check=False)
    assert done.returncode == -signal.SIGKILL
    assert is_sharded(sharded.folder) == is_whole
    if is_whole:
        assert ShardedLog.open(sharded.folder).digest == sharded.digest
    assert NewLog().refuses(sharded.folder) is None
    reduce_to_shards(files / "log.parquet", sharded.folder, 2)
    found = sorted(path.name for path in sharded.folder.iterdir())
    assert found == ["00000", "00001", "shards.json"]


def test_a_folder_that_a_killed_writer_left_is_no_log(sharded):
    (sharded.folder / "shards.json").unlink()
    with pytest.raises(DataError, match="a reduced log among 4 files"):
        read_log(sharded.folder)
