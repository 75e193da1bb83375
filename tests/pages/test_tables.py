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
    ],
)
def test_bad_queries_are_refused_with_a_reason(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_queries(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.csv", "query_id,doc_id,grade\na,1,-1\n", "below 0"),
        ("l.csv", "query_id,doc_id,grade\na,1,good\n", "not a number"),
        ("l.qrels", "a 0 d\n", "l.qrels:1: found 3 words; a line has 4"),
        ("l.csv", "query_id,doc_id\n", "no lists"),
    ],
)
def test_bad_lists_are_refused_with_a_reason(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_pairs(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_queries(tmp_path / "none.tsv")
