"""Features that are read some rows at a time are ranked as if all had been there at once."""

import gc
import logging
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from dualrank.data import run_writing
from dualrank.data.features import LATEST, read_features
from dualrank.data.letor.writer import write_letor
from dualrank.data.log.read_log import read_log
from dualrank.data.run_writing import writing_run
from dualrank.data.runs import read_run, write_run
from dualrank.data.scaling import Scaler
from dualrank.data.shards.splitting import write_shards
from dualrank.errors import DataError, SettingsError
from dualrank.learning.model import Model
from dualrank.learning.rank_features import rank_features
from dualrank.rankers.forest import Forest
from dualrank.rankers.network import DNN
from dualrank.rankers.trees import TreeRanker
from dualrank.storage import marked

NAMES = ("a", "b", "c")


def model_of(names=NAMES, seed=0):
    ranker = DNN(hidden=(8,)).build(3, seed=seed)
    for weight in ranker.weights:
        weight.normal_(0, 1, generator=torch.Generator().manual_seed(seed))
    x = np.random.default_rng(seed).normal(size=(100, 3)).astype(np.float32)
    return Model(ranker, Scaler.fit(x), feature_names=names, kind="dnn")


def trees(names=NAMES):
    ranker = TreeRanker(3)
    forest = {
        "feature": [0, -1, 1, -1, -1],
        "threshold": [0.2, 0, -0.3, 0, 0],
        "left": [1, 0, 3, 0, 0],
        "right": [2, 0, 4, 0, 0],
        "missing_left": [True, False, False, False, False],
        "value": [0, 1.5, 0, -0.5, 0.25],
        "roots": [0],
    }
    like = Forest.empty()
    parts = {k: np.array(v, getattr(like, k).dtype) for k, v in forest.items()}
    ranker.load_tensors({k: torch.from_numpy(v) for k, v in parts.items()})
    return Model(ranker, Scaler("none", 3, np.arange(3), np.zeros(3), np.ones(3)),
                 feature_names=names, kind="trees")  # fmt: skip


def table(count=3_000, seed=0, *, queries=120, missing=0.0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 3)).round(1).astype(np.float32)
    features[rng.random(features.shape) < missing] = np.nan
    return pa.table(
        {
            "query_id": [f"q{q}" for q in rng.integers(0, queries, count)],
            "doc_id": [f"d{d}" for d in rng.permutation(count)],
            **{name: features[:, i] for i, name in enumerate(NAMES)},
        }
    )


def all_at_once(model, features, out):
    data = read_features(features, count=model.scaler.input_count, names=model.feature_names)
    write_run(out, data, model.predict(data))


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch):
    monkeypatch.setattr("dualrank.data.feature_batches.rows_at_once", lambda _: 500)
    monkeypatch.setattr("dualrank.data.score_order.ROWS_AT_ONCE", 700)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".run"])
@pytest.mark.parametrize("model", [model_of(), trees()], ids=["network", "trees"])
def test_files_are_those_of_features_held_in_memory(tmp_path, suffix, model):
    pq.write_table(table(), tmp_path / "f.parquet", row_group_size=900)
    all_at_once(model, tmp_path / "f.parquet", tmp_path / f"one{suffix}")
    found = rank_features(model, tmp_path / "f.parquet", tmp_path / f"two{suffix}")
    assert (found.queries, found.documents, found.warning) == (120, 3_000, None)
    one, two = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    # At another place among the rows that are multiplied at once, a score may round otherwise.
    assert one == two or model.kind == "dnn"
    data = read_features(tmp_path / "f.parquet")
    scores = [read_run(tmp_path / f"{name}{suffix}", data) for name in ("one", "two")]
    assert np.allclose(*scores, rtol=1e-6, atol=0)


def _ints(rows):
    return rows.set_column(0, "query_id", pa.array(range(len(rows)), pa.int16()))


def _floats(rows):
    return rows.set_column(1, "doc_id", pa.array([None, *range(1, len(rows))], pa.float64()))


@pytest.mark.parametrize(
    "changed",
    [
        lambda rows: rows.select(["c", "doc_id", "b", "query_id", "a"]),
        _ints,
        lambda rows: _floats(rows).slice(1),
        lambda rows: rows.set_column(0, "query_id", rows["query_id"].dictionary_encode()),
        lambda rows: rows.append_column("text", pa.array(["x"] * len(rows))),
        lambda rows: rows.append_column("grade", pa.array([1.0] * len(rows))),
        lambda rows: rows.set_column(2, "a", rows["a"].cast(pa.float64())),
        lambda rows: rows.slice(0, 1),
    ],
    ids=["other order", "numbers", "floats", "dictionary", "text", "grades", "doubles", "one row"],
)
def test_tables_of_all_kinds_are_ranked_alike(tmp_path, changed):
    pq.write_table(changed(table(1_200)), tmp_path / "f.parquet")
    all_at_once(trees(), tmp_path / "f.parquet", tmp_path / "one.csv")
    rank_features(trees(), tmp_path / "f.parquet", tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_lists_and_several_files_are_ranked_alike(tmp_path):
    rows = table(2_000)
    lists = pa.array(np.stack([rows[name].to_numpy() for name in NAMES], axis=1).tolist())
    (tmp_path / "lists").mkdir()
    (tmp_path / "columns" / "below").mkdir(parents=True)
    keyed = rows.select(["query_id", "doc_id"]).append_column("features", lists)
    for number, part in enumerate((slice(0, 700), slice(700, 2_000))):
        pieces = [each.slice(part.start, part.stop - part.start) for each in (keyed, rows)]
        pq.write_table(pieces[0], tmp_path / "lists" / f"{number}.parquet")
        pq.write_table(pieces[1], tmp_path / "columns" / "below" / f"{number}.parquet")
    (tmp_path / "columns" / "_SUCCESS").touch()
    for name, names in (("lists", None), ("columns", NAMES), ("columns/below/*.parquet", None)):
        all_at_once(trees(names), tmp_path / name, tmp_path / "one.csv")
        rank_features(trees(names), tmp_path / name, tmp_path / "two.csv")
        assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_features_that_a_file_lacks_are_missing_there(tmp_path):
    (tmp_path / "f").mkdir()
    pq.write_table(table(50).drop_columns(["c"]), tmp_path / "f" / "1.parquet")
    more = table(50, seed=1).set_column(0, "query_id", pa.array(["other"] * 50))
    pq.write_table(more, tmp_path / "f" / "2.parquet")
    all_at_once(trees(None), tmp_path / "f", tmp_path / "one.csv")
    rank_features(trees(None), tmp_path / "f", tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_an_index_is_left_out_with_the_same_warning(tmp_path, caplog):
    rows = table(1_200)
    rows = rows.append_column("index", pa.array(range(len(rows))))
    pq.write_table(rows, tmp_path / "f.parquet")
    said = []
    for rank in (all_at_once, rank_features):
        with caplog.at_level(logging.WARNING):
            rank(trees(None), tmp_path / "f.parquet", tmp_path / f"{rank.__name__}.csv")
        said.append(caplog.messages[:])
        caplog.clear()
    assert said[0] == said[1]
    assert "column 'index' is left out" in said[0][0]
    one, two = (tmp_path / f"{rank.__name__}.csv" for rank in (all_at_once, rank_features))
    assert one.read_bytes() == two.read_bytes()


def _with(column, row, value):
    def change(rows):
        values = rows[column].to_pylist()
        values[row] = value
        return rows.set_column(rows.column_names.index(column), column, pa.array(values))

    return change


def _listed(lengths):
    def change(rows):
        lists = [[0.5] * lengths[row % len(lengths)] for row in range(len(rows))]
        return rows.select(["query_id", "doc_id"]).append_column("features", pa.array(lists))

    return change


def _twice(rows):
    return pa.concat_tables([rows, rows.slice(700, 2), rows.slice(30, 1)])


BAD = [
    (_with("b", 700, float("inf")), "b of document .* of query .* is inf; features are finite"),
    (_with("a", 700, None), "feature 'a' is missing in 1 of 1200 documents; a ranker of kind dnn"),
    (_with("doc_id", 701, None), "row 701 has no doc_id"),
    (_twice, "stands there twice; expected one row of features"),
    (lambda rows: rows.drop_columns(["c"]), "feature 'c' is missing"),
    (lambda rows: rows.drop_columns(["query_id"]), "column 'query_id' is missing"),
    (lambda rows: rows.slice(0, 0), "there are no documents"),
    (_listed([2]), "2 features; expected 3"),
    (_listed([3, 3, 3, 4]), "documents have 3 to 4 features"),
    (_listed([0]), "there are no features in the lists"),
    (_listed([3] * 600 + [2]), "documents have 2 to 3"),
    (
        lambda rows: rows.set_column(2, "a", pa.array(["x"] * len(rows))),
        "column 'a' holds string; features are numbers",
    ),
    (
        lambda rows: rows.set_column(1, "doc_id", pa.array([b"\xff"] * len(rows))),
        "column 'doc_id' holds what is no text",
    ),
]


@pytest.mark.parametrize(("change", "said"), BAD)
def test_what_is_wrong_is_said_in_the_same_words_and_nothing_is_written(tmp_path, change, said):
    pq.write_table(change(table(1_200)), tmp_path / "f.parquet")
    told = []
    for rank in (all_at_once, rank_features):
        with pytest.raises(DataError, match=said) as caught:
            rank(model_of(), tmp_path / "f.parquet", tmp_path / "out.csv")
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert [path.name for path in tmp_path.iterdir()] == ["f.parquet"]


def test_scores_that_are_not_finite_are_counted_to_the_end(tmp_path):
    rows = table(1_200)
    for row in (5, 900, 1_100):
        rows = _with("a", row, 3e38)(rows)
    pq.write_table(rows, tmp_path / "f.parquet")
    model = model_of()
    for weight in model.ranker.weights:
        weight *= 1e20
    told = []
    for rank in (all_at_once, rank_features):
        with pytest.raises(DataError, match="its score is no finite number") as caught:
            rank(model, tmp_path / "f.parquet", tmp_path / "out.csv")
        told.append(str(caught.value).partition("its score")[2])
    assert told[0] == told[1]


@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing", None])
def test_damaged_files_are_refused(tmp_path, content):
    pq.write_table(table(1_200), tmp_path / "f.parquet")
    whole = (tmp_path / "f.parquet").read_bytes()
    cut = whole[:2_000] + bytes(3_000) + whole[5_000:]
    (tmp_path / "f.parquet").write_bytes(cut if content is None else content)
    with pytest.raises(DataError, match=r"f\.parquet") as caught:
        rank_features(model_of(), tmp_path / "f.parquet", tmp_path / "out.csv")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out.csv").exists()


def test_a_long_name_that_every_row_has_is_refused_before_it_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.data.memory_limits.memory_of_machine", lambda: 1 << 23)
    rows = table(1_200).set_column(0, "query_id", pa.array(["x" * (1 << 15)] * 1_200))
    pq.write_table(rows, tmp_path / "f.parquet")
    with pytest.raises(DataError, match="rows with a query_id of up to 32,768 characters"):
        rank_features(model_of(), tmp_path / "f.parquet", tmp_path / "out.csv")


def test_a_ranker_that_tells_nothing_apart_is_warned_of(tmp_path):
    model = model_of()
    model.ranker.weights[-1].zero_()
    pq.write_table(table(1_200), tmp_path / "f.parquet")
    found = rank_features(model, tmp_path / "f.parquet", tmp_path / "out.parquet")
    assert "100% of all pairs of documents of one query have equal scores" in found.warning


def test_what_a_service_displayed_and_text_are_ranked_as_ever(tmp_path):
    rows = pa.concat_tables([table(60), table(60)])
    schema = marked(rows.schema, LATEST)
    pq.write_table(rows.replace_schema_metadata(schema.metadata), tmp_path / "f.parquet")
    found = rank_features(trees(), tmp_path / "f.parquet", tmp_path / "two.csv")
    assert found.documents == 60
    data = read_features(tmp_path / "f.parquet")
    write_letor(data.with_grades(np.zeros(60)), tmp_path / "f.txt")
    assert rank_features(trees(), tmp_path / "f.txt", tmp_path / "text.csv").documents == 60


def test_a_folder_holds_parts_that_are_one_run(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.data.run_writing.ROWS_OF_GROUP", 400)
    monkeypatch.setattr("dualrank.data.run_writing.ROWS_OF_PART", 1_000)
    pq.write_table(table(2_500), tmp_path / "f.parquet")
    rank_features(trees(), tmp_path / "f.parquet", tmp_path / "one.parquet")
    for _ in range(2):  # the second time it replaces its own
        rank_features(trees(), tmp_path / "f.parquet", tmp_path / "run")
    parts = sorted((tmp_path / "run").iterdir())
    assert [pq.read_metadata(part).num_rows for part in parts] == [1_000, 1_000, 500]
    assert pa.concat_tables(map(pq.read_table, parts)) == pq.read_table(tmp_path / "one.parquet")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(SettingsError, match="holds something else than a run"):
        rank_features(trees(), tmp_path / "f.parquet", tmp_path / "run")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    for name in (".secret", "_mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("mine")
        with pytest.raises(SettingsError, match="holds something else than a run"):
            rank_features(trees(), tmp_path / "f.parquet", tmp_path / name)
        assert (tmp_path / name / name).exists()


def test_a_run_that_is_not_finished_is_not_there(tmp_path):
    for name in ("run.parquet", "run.csv", "run.trec", "run"):
        with suppress(KeyboardInterrupt), writing_run(tmp_path / name) as write:
            write(pa.table({"query_id": ["q"], "doc_id": ["d"], "score": [0.5], "rank": [1]}))
            raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_a_run_that_fails_holds_nothing_open(tmp_path, monkeypatch):
    monkeypatch.setattr(run_writing, "ROWS_OF_GROUP", 2)  # so that files are begun
    monkeypatch.setattr(run_writing, "ROWS_OF_PART", 3)
    rows = pa.table(
        {"query_id": ["q"] * 4, "doc_id": list("abcd"), "score": [0.5] * 4, "rank": [1, 2, 3, 4]}
    )

    def fail(name):
        with writing_run(tmp_path / name) as write:
            write(rows)
            write(rows.slice(0, 1))
            raise KeyboardInterrupt

    for name in ("run.parquet", "run.csv", "run.trec", "run"):
        with pytest.raises(KeyboardInterrupt):
            fail(name)
    if os.path.exists("/proc/self/fd"):
        numbers = os.listdir("/proc/self/fd")
        links = [Path("/proc/self/fd", number) for number in numbers]
        held = [os.readlink(link) for link in links if link.is_symlink()]
        assert not [file for file in held if str(tmp_path) in file]
    gc.collect()  # where something says that it could not be closed


def test_shards_are_ranked_with_the_features_that_they_hold(tmp_path):
    rows = table(400, queries=20)
    pq.write_table(rows, tmp_path / "f.parquet")
    shown = rows.slice(0, 200)
    log = {
        "session_id": [f"s{q}" for q in shown["query_id"].to_pylist()],
        "query_id": shown["query_id"],
        "doc_id": shown["doc_id"],
        "clicked": [row % 3 == 0 for row in range(200)],
    }
    before = log["session_id"]
    log["position"] = [before[:row].count(session) + 1 for row, session in enumerate(before)]
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    data = read_features(tmp_path / "f.parquet")
    write_shards(read_log(tmp_path / "log.parquet", data), tmp_path / "shards", 3, data)
    other = trees(("c", "a", "b"))  # picked by name
    for model in (trees(), other):
        found = rank_features(model, tmp_path / "shards", tmp_path / "run.parquet")
        assert found.documents == 400
        scores = read_run(tmp_path / "run.parquet", data)
        assert np.array_equal(scores.astype(np.float32), model.predict(data))
    with pytest.raises(DataError, match="shards: feature 'x' is missing"):
        rank_features(trees(("a", "b", "x")), tmp_path / "shards", tmp_path / "run.parquet")
    features = tmp_path / "shards" / "00001" / "features.npy"
    np.save(features, np.load(features)[::-1])
    with pytest.raises(DataError, match=r"features.npy: damaged, or a shard of another log"):
        rank_features(trees(), tmp_path / "shards", tmp_path / "run.parquet")
