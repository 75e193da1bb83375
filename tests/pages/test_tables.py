import json
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.errors import DataError
from dualrank.pages.tables import read_pairs, read_queries


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.tsv", 'query_id\tquery\n007\t"big data\n8\tnull\n'),
        ("q.csv", 'query,query_id\n"""big data",007\nnull,8\n'),
        (
            "q.jsonl",
            '{"query_id": "007", "query": "\\"big data"}\n{"query_id": "8", "query": "null"}',
        ),
    ],
)
def test_queries_of_any_format(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    queries = read_queries(tmp_path / name)
    assert queries.query_ids == ["007", "8"]
    assert queries.texts == ['"big data', "null"]


def test_numbers_are_names_too(tmp_path):
    pq.write_table(pa.table({"query_id": [1, 2], "query": ["a", "b"]}), tmp_path / "q.parquet")
    assert read_queries(tmp_path / "q.parquet").query_ids == ["1", "2"]


def test_pairs_of_a_query_stand_together_and_once(tmp_path):
    (tmp_path / "l.csv").write_text("query_id,doc_id,grade\nb,1,2\na,9,0\nb,2,0\nb,1,3\na,1,1\n")
    pairs = read_pairs(tmp_path / "l.csv")
    assert pairs.query_ids.tolist() == ["b", "b", "a", "a"]
    assert pairs.doc_ids.tolist() == ["1", "2", "9", "1"]
    assert pairs.grades.tolist() == [2, 0, 0, 1]


def test_trec_files(tmp_path):
    (tmp_path / "x.qrels").write_text("q1 0 d1 2\nq1 0 d2 0\n\n")
    (tmp_path / "x.run").write_text("q1 Q0 d1 1 9.5 me\n")
    assert read_pairs(tmp_path / "x.qrels").grades.tolist() == [2, 0]
    assert read_pairs(tmp_path / "x.run").doc_ids.tolist() == ["d1"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "q.tsv",
            "query_id\twords\n1\tx\n",
            "column 'query' is missing; there are query_id, words",
        ),
        ("q.tsv", "query_id\tquery\n1\tx\n1\ty\n", "query '1' stands there more than once"),
        ("q.tsv", "query_id\tquery\n", "there are no queries"),
        ("q.txt", "x", "expected .parquet, .csv"),
        ("q.jsonl", "{broken", "q.jsonl:1: the line is not a JSON object"),
        ("q.jsonl", '{"query_id": null, "query": "x"}', "query_id is missing in row 1"),
        ("q.parquet", "PAR1", "cannot be read"),
        ("lists.csv", "query_id,doc_id,grade\na,1,-1\n", "below 0"),
        ("lists.csv", "query_id,doc_id,grade\na,1,good\n", "not a number"),
        ("lists.qrels", "a 0 d\n", "lists.qrels:1: found 3 words; a line has 4"),
        ("lists.csv", "query_id,doc_id\n", "no lists"),
    ],
)
def test_bad_queries_and_lists_are_refused_with_a_reason(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    read = read_pairs if name.startswith("lists") else read_queries
    with pytest.raises(DataError, match=message):
        read(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_queries(tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("l.qrels", b"q 0 \xff 1\n", "l.qrels:1: the line is not UTF-8 text"),
        ("l.qrels", b"q 0 d good\n", "l.qrels:1: the grade is 'good'"),
        ("l.qrels", b"q 0 d nan\n", "a grade is missing, below 0 or above 1000"),
        ("l.qrels", b"\0" * (1 << 21), "l.qrels:1: the line is longer than 1048576 bytes"),
        ("l.qrels.gz", b"\x1f\x8b\x08damaged", "the gzip data are damaged"),
        ("l.csv", b"query_id,doc_id,doc_id\na,1,1\n", "'doc_id' stands there more than once"),
        ("l.csv", b"query_id,\xff\xfe\na,1\n", "cannot be read"),
        ("l.csv", b'query_id,"doc\n_id"\na,1\n', r"there are query_id, doc\n_id"),
        ("l.jsonl", b"[" * 100_000, "l.jsonl:1: the line is not a JSON object"),
        ("l.jsonl", b'{"query_id": [1], "doc_id": "d"}', "query_id is [1]; expected text or a"),
        ("l.jsonl", b'{"query_id": true, "doc_id": "d"}', "query_id is true; expected text"),
        ("l.jsonl", b'{"query_id": "a", "doc_id": "\\ud800"}', "the table cannot be read"),
        ("l.jsonl", b'{"query_id": "a", "doc_id": "d", "grade": "2"}', 'grade is "2"; expected a'),
        (
            "l.jsonl",
            b'{"query_id": "a", "doc_id": "d", "grade": ' + b"9" * 400 + b"}",
            "the table cannot be read",
        ),
    ],
)
def test_hostile_tables_are_refused_in_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_pairs(tmp_path / name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["2020-01-01", "2020-01-01 00:00:00", "1e3", "NA", "true"])
def test_ids_that_look_like_something_else_stay_text(tmp_path, name):
    rows = pa.table({"query_id": [name], "doc_id": [name], "note": ["x"]})
    pq.write_table(rows, tmp_path / "l.parquet")
    (tmp_path / "l.csv").write_text(f"query_id,doc_id,note\n{name},{name},x\n")
    (tmp_path / "l.jsonl").write_text(f'{{"query_id": "{name}", "doc_id": "{name}"}}\n')
    for suffix in ("parquet", "csv", "jsonl"):
        pairs = read_pairs(tmp_path / f"l.{suffix}")
        assert (pairs.query_ids.tolist(), pairs.doc_ids.tolist()) == ([name], [name])


def test_columns_that_nobody_asked_for_may_hold_anything(tmp_path):
    noise = "".join(f"a,{i},{i}\n" for i in range(100_000)) + "a,x,not a number\n"
    (tmp_path / "l.csv").write_text("query_id,doc_id,other\n" + noise)
    assert len(read_pairs(tmp_path / "l.csv").doc_ids) == 100_001


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv", "jsonl", "qrels"])
def test_mutated_tables_are_read_or_refused(tmp_path, suffix):
    rows = [{"query_id": f"q{i % 3}", "doc_id": f"d{i}", "grade": float(i % 3)} for i in range(9)]
    path = tmp_path / f"l.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif suffix == "qrels":
        path.write_text("".join(f"{r['query_id']} 0 {r['doc_id']} {r['grade']}\n" for r in rows))
    else:
        sign = "," if suffix == "csv" else "\t"
        lines = [sign.join(rows[0]), *(sign.join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines))
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(1)
    for _ in range(60):
        content = whole.copy()
        places = rng.integers(len(content), size=rng.integers(1, 4))
        content[places] = rng.integers(256, size=len(places))
        path.write_bytes(content.tobytes()[: rng.integers(1, 2 * len(content))])
        with suppress(DataError):
            read_pairs(path)


def test_a_column_without_a_name_is_left_alone(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"query_id": "1", "query": "words", "": 2}\n')
    assert read_queries(tmp_path / "q.jsonl").texts == ["words"]
    (tmp_path / "q.csv").write_text("query_id,query,\n1,words,2\n")
    assert read_queries(tmp_path / "q.csv").texts == ["words"]
