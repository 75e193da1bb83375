"""Runs: what is written is read back, and what is no run is refused with its place."""

import gzip
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.runs import is_run, read_rankings, read_run, write_run
from dualrank.errors import DataError

SCORES = np.array([0.5, -1.25, 1e-7])
ROWS = "query_id,doc_id,score\n"


def data(*doc_ids, query="q"):
    return Dataset.from_arrays(np.zeros((3, 1)), [query] * 3, doc_ids=doc_ids)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".run"])
@pytest.mark.parametrize(
    "doc_ids",
    [
        ("007", "7", "7.0"),
        ("1e5", "100000", "NA"),
        ("2020-01-01", "null", "true"),
        ('a"b', "a,b", "=1+1"),
        ("no\u00a0break", "\u3000wide", "line\u2028end"),
    ],
)
def test_ids_are_read_back_as_they_were_written(tmp_path, suffix, doc_ids):
    dataset = data(*doc_ids, query="01")
    path = tmp_path / f"scores{suffix}"
    write_run(path, dataset, SCORES)
    assert read_run(path, dataset).tolist() == SCORES.tolist()


@pytest.mark.parametrize("name", ["two words", "", "tab\there", "line\nend", "\r"])
def test_ids_that_are_no_word_are_not_written_as_trec(tmp_path, name):
    dataset = data(name, "b", "c")
    with pytest.raises(DataError, match=r"document id .* a TREC file cannot hold; write .parquet"):
        write_run(tmp_path / "scores.run", dataset, SCORES)
    with pytest.raises(DataError, match="query id"):
        write_run(tmp_path / "scores.run", data("a", "b", "c", query="two words"), SCORES)
    assert list(tmp_path.iterdir()) == []
    for suffix in (".csv", ".parquet"):
        write_run(tmp_path / f"scores{suffix}", dataset, SCORES)
        assert read_run(tmp_path / f"scores{suffix}", dataset).tolist() == SCORES.tolist()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r.run", b"q Q0 a 1 0.5 x\nq Q0 b 2\n", "r.run:2: found 4 words; a line has 6"),
        ("r.run", b"q Q0 a 1 good x\n", "r.run:1: the score is 'good'"),
        ("r.run", b"q Q0 a 1 nan x\n", "r.run:1: the score is nan"),
        ("r.run", b"q Q0 \xff 1 0.5 x\n", "r.run:1: the line is not UTF-8 text"),
        ("r.run", b"q Q0 a 1 1 x\nq Q0 a 2 2 x\n", "r.run:2: document 'a' of query 'q' stands"),
        ("r.run", b"x" * (1 << 21), "r.run:1: the line is longer than"),
        ("r.run", b"\n" * 200_000, "r.run:100001: 100001 empty lines, one after the other"),
        ("r.run", b"\x1f\x8b\x08broken", "the gzip data are damaged"),
        ("r.csv", b"query_id,doc_id\nq,a\n", "column 'score' is missing; there are query_id, doc_"),
        ("r.csv", b"query_id,doc_id,score,score\nq,a,1,1\n", "'score' stands there more than once"),
        ("r.csv", ROWS.encode() + b"q,a,1,2\n", "the table cannot be read (CSV parse error"),
        ("r.csv", ROWS.encode() + b"q,a,good\n", "the score in row 1 is not a number"),
        ("r.csv", ROWS.encode() + b"q,a,\n", "r.csv, row 1: the score is missing"),
        ("r.csv", ROWS.encode() + b"q,a,inf\n", "r.csv, row 1: the score is inf"),
        ("r.csv", ROWS.encode() + b"q,\xff\xfe,1\n", "the table cannot be read"),
        ("r.csv", b"", "the table cannot be read"),
        ("r.parquet", b"PAR1 and so on PAR1", "the table cannot be read"),
    ],
)
def test_what_is_no_run_is_refused_with_its_place(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_run(tmp_path / name, data("a", "b", "c"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mutated_runs_are_read_or_refused(tmp_path):
    dataset = data("a", "b", "c")
    rng = np.random.default_rng(5)
    for suffix in (".csv", ".run", ".parquet"):
        path = tmp_path / f"scores{suffix}"
        write_run(path, dataset, SCORES)
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        for _ in range(60):
            content = whole.copy()
            places = rng.integers(len(content), size=rng.integers(1, 4))
            content[places] = rng.integers(256, size=len(places))
            path.write_bytes(content.tobytes()[: rng.integers(1, 2 * len(content))])
            with suppress(DataError):
                scores = read_run(path, dataset)
                assert np.isfinite(scores[scores > -np.inf]).all()


def test_a_document_that_stands_twice_in_the_data_is_not_told_from_itself(tmp_path):
    dataset = data("a", "a", "c")
    (tmp_path / "r.run").write_text("q Q0 a 1 0.5 x\n")
    with pytest.raises(DataError, match="stands there twice; a run cannot tell"):
        read_run(tmp_path / "r.run", dataset)


def test_runs_may_be_compressed(tmp_path):
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(ROWS.encode() + b"q,a,1\nq,b,2\nq,c,3\n"))
    (tmp_path / "r.run.gz").write_bytes(gzip.compress(b"q Q0 a 1 1 x\nq Q0 b 1 2 x\nq Q0 c 1 3 x"))
    for name in ("r.csv.gz", "r.run.gz"):
        assert read_run(tmp_path / name, data("a", "b", "c")).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("rows", "name", "said"),
    [
        (5_000_000, "q", "unpacks to far more than tables of its"),
        (1000, "q" * 1_000_000, "unpacks to far more than tables of its"),
    ],
)
def test_a_table_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path, rows, name, said):
    shared = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), [name])
    table = pa.table({"query_id": shared, "doc_id": shared, "score": shared.indices})
    pq.write_table(table, tmp_path / "r.parquet", compression="zstd")
    with pytest.raises(DataError, match=said):
        read_run(tmp_path / "r.parquet", data("a", "b", "c"))


@pytest.mark.parametrize(
    ("name", "row"), [("r.csv.gz", b"q,a,1\n"), ("r.run.gz", b"q Q0 a 1 1 x\n")]
)
def test_text_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path, monkeypatch, name, row):
    monkeypatch.setattr("dualrank.data.letor.source.UNPACKED_UNASKED", 1 << 16)
    start = ROWS.encode() if ".csv" in name else b""
    (tmp_path / name).write_bytes(gzip.compress(start + row * 1_000_000))
    with pytest.raises(DataError, match="unpack to more than 200 times their size"):
        read_run(tmp_path / name, data("a", "b", "c"))


def test_rankings_of_a_run_are_by_score_and_ties_as_they_stand(tmp_path):
    (tmp_path / "a.run").write_text(
        "q1 Q0 x 1 0.5 n\nq1 Q0 y 2 0.9 n\nq2 Q0 x 1 1 n\nq1 Q0 z 3 0.5 n\n"
    )
    (tmp_path / "a.csv").write_text("query_id,doc_id,score\nq1,x,0.5\nq1,y,0.9\nq2,x,1\nq1,z,0.5\n")
    for name in ("a.run", "a.csv"):
        assert read_rankings(tmp_path / name, 10) == {"q1": ("y", "x", "z"), "q2": ("x",)}
        assert read_rankings(tmp_path / name, 1) == {"q1": ("y",), "q2": ("x",)}
    (tmp_path / "b.run").write_text("")
    with pytest.raises(DataError, match=r"b\.run: the run is empty"):
        read_rankings(tmp_path / "b.run", 10)
    with pytest.raises(DataError, match="there is no such file"):
        read_rankings(tmp_path / "c.run", 10)


def parts(folder, *tables):
    folder.mkdir()
    for number, rows in enumerate(tables):
        columns = dict(zip(("query_id", "doc_id", "score"), zip(*rows, strict=True), strict=True))
        pq.write_table(pa.table(columns), folder / f"part-{number:05d}.zstd.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.parquet.crc").write_bytes(b"crc")
    return folder


FIRST, SECOND = [("q", "a", 1.0), ("other", "a", 5.0)], [("q", "c", 3.0), ("q", "x", 0.0)]


def test_a_run_may_lie_in_parts(tmp_path, monkeypatch):
    folder = parts(tmp_path / "run", FIRST, SECOND)
    for path in (folder, folder / "part-*.parquet", folder / "part-0000?.zstd.parquet"):
        assert is_run(path)
        assert read_run(path, data("a", "b", "c")).tolist() == [1, -np.inf, 3]
    monkeypatch.chdir(folder)
    assert read_run(folder.relative_to(folder), data("a", "b", "c")).tolist() == [1, -np.inf, 3]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (
            [("q", "b", 2.0), ("q", "a", 2.0)],
            "part-00001.zstd.parquet, row 2: document 'a' of quer",
        ),
        ([("q", "b", float("nan"))], "part-00001.zstd.parquet, row 1: the score is nan; expected"),
        ([("unjudged", "b", None), ("q", "a", 1.0)], "row 1: the score is missing; expected a fin"),
        (
            [("q", None, 1.0), ("q", "a", 1.0)],
            "part-00001.zstd.parquet: doc_id is missing in row 1",
        ),
    ],
)
def test_what_is_wrong_in_a_part_is_said_with_its_row(tmp_path, second, said):
    folder = parts(tmp_path / "run", FIRST, second)
    with pytest.raises(DataError) as caught:
        read_run(folder, data("a", "b", "c"))
    assert said in str(caught.value)


def test_rows_are_counted_over_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.data.table_files.ROWS_AT_ONCE", 3)
    monkeypatch.setattr("dualrank.data.table_files.table_batches.__defaults__", (3,))
    rows = [("q", str(number), 1.0) for number in range(10)]
    for wrong, said in ((("q", "x", None), "row 11: the score"), ((None, "x", 1.0), "in row 11")):
        folder = parts(tmp_path / said[-3:], [*rows, wrong])
        with pytest.raises(DataError, match=said):
            read_run(folder, data("a", "b", "1"))


def test_a_document_with_the_same_score_again_is_no_contradiction(tmp_path):
    folder = parts(tmp_path / "run", FIRST, FIRST)
    assert read_run(folder, data("a", "b", "c"))[0] == 1


@pytest.mark.parametrize("name", ["e.run", "e.csv", "e.parquet"])
def test_an_empty_run_is_called_empty(tmp_path, name):
    rows = pa.table({"query_id": ["q"], "doc_id": ["x"], "score": [1.0]})
    written = {
        "e.run": lambda path, some: path.write_text("q Q0 x 1 1.0 n\n" if some else ""),
        "e.csv": lambda path, some: path.write_text(ROWS + ("q,x,1.0\n" if some else "")),
        "e.parquet": lambda path, some: pq.write_table(rows if some else rows[:0], path),
    }
    for some, said in ((False, "the run is empty"), (True, "none of its documents is in")):
        written[name](tmp_path / name, some)
        with pytest.raises(DataError, match=f"{name}: {said}"):
            read_run(tmp_path / name, data("a", "b", "c"))


def test_parts_that_are_no_run_are_refused(tmp_path):
    folder = parts(tmp_path / "run", FIRST, SECOND)
    part = folder / "part-00001.zstd.parquet"
    whole = part.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:4] + bytes(60) + whole[64:]):
        part.write_bytes(damaged)
        with pytest.raises(DataError, match="part-00001") as caught:
            read_run(folder, data("a", "b", "c"))
        assert "\n" not in str(caught.value)
    pq.write_table(pa.table({"query_id": ["q"], "doc_id": ["a"], "rank": [1]}), part)
    with pytest.raises(
        DataError, match=r"part-00001.*: column 'score' is missing; there are query"
    ):
        read_run(folder, data("a", "b", "c"))
    part.unlink()
    with pytest.raises(DataError, match="run: none of its documents is in this data set"):
        read_run(folder, data("x", "y", "z"))
    with pytest.raises(DataError, match="stands there twice; a run cannot tell"):
        read_run(folder, data("a", "a", "c"))
    with pytest.raises(DataError, match="no file fits this pattern"):
        read_run(tmp_path / "run" / "port-*.parquet", data("a", "b", "c"))
    (folder / "_temporary").mkdir()
    with pytest.raises(DataError, match="Spark has not finished this run"):
        read_run(folder, data("a", "b", "c"))


def test_a_folder_without_parts_is_no_run(tmp_path):
    (tmp_path / "_hidden.parquet").touch()
    assert not is_run(tmp_path)
    (tmp_path / "part.parquet").touch()
    assert is_run(tmp_path)
    (tmp_path / "manifest.json").touch()
    assert not is_run(tmp_path), "a model is no run"


def test_a_folder_that_is_no_run_is_called_what_it_is(tmp_path):
    (tmp_path / "shards.json").write_text("{}")
    data = Dataset.from_arrays([[0.0]], qid=["q"], doc_ids=["d"])
    with pytest.raises(DataError, match="a log in shards, and no run; rank its documents"):
        read_run(tmp_path, data)
    with pytest.raises(DataError, match="a folder; rankings are taken from one run file"):
        read_rankings(tmp_path, 3)
