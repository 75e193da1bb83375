"""A log in shards holds what the log holds."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.features import read_features
from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import to_table, write_log
from dualrank.data.shards import shard_writing, sharded_reduction
from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.shard import Shard
from dualrank.data.shards.shard_writing import ShardWriter
from dualrank.data.shards.sharded_log import is_sharded, shard_of
from dualrank.data.shards.splitting import write_shards
from dualrank.errors import DataError, SettingsError

from .conftest import OPTIONS, files_of, rows_of_sessions


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


@pytest.mark.parametrize("shards", [1, 3, 16])
def test_an_engine_writes_the_bytes_that_a_log_in_memory_is_cut_into(files, tmp_path, shards):
    data = read_features(files / "features.parquet")
    log = read_log(files / "log.parquet", data, **OPTIONS)
    cut = write_shards(log, tmp_path / "cut", shards, data)
    args = files / "log.parquet", tmp_path / "engine", shards, files / "features.parquet"
    reduced = reduce_to_shards(*args, **OPTIONS)
    assert files_of(cut) == files_of(reduced)
    assert sum(shard.sessions for shard in reduced.shards) == log.sessions
    assert (min(shard.sessions for shard in reduced.shards) == 0) == (shards == 16)
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


@pytest.mark.parametrize("from_memory", [False, True])
def test_one_shard_is_in_memory_while_it_is_written(
    files, tmp_path, monkeypatch, request, from_memory
):
    written, add = list[weakref.ref](), ShardWriter.add
    gc.freeze()  # Looking at what other tests hold would take most of the time.
    request.addfinalizer(gc.unfreeze)

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


def test_what_is_reduced_already_takes_no_columns(sharded):
    with pytest.raises(SettingsError, match="reduced already; columns, positions, periods"):
        read_log(sharded.folder, first_position=0)


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
