import numpy as np
import pyarrow.parquet as pq
import pytest

from dualrank.errors import DataError
from dualrank.pages.candidates import extract
from dualrank.pages.sources import HeldPages
from dualrank.pages.tables import Pairs, Queries
from dualrank.pages.text_features import FEATURE_NAMES

PAGES = HeldPages(
    [
        {"doc_id": "1", "url": "x/cats", "title": "Cats", "content": "about cats"},
        {"doc_id": "2", "url": "x/dogs", "title": "Dogs", "content": "dogs and cats"},
        {"doc_id": "3", "url": "x/sun", "title": "Sun", "content": "shines"},
    ]
)
QUERIES = Queries(["a", "b", "c"], ["cats", "dogs", "!?"])


def pairs(*rows):
    queries, documents, grades = zip(*rows, strict=True)
    return Pairs(np.array(queries), np.array(documents), np.array(grades, np.float32))


def test_the_best_pages_become_a_data_set():
    found = extract(PAGES, QUERIES, 2, jobs=1)
    data = found.dataset()
    assert found.candidates.without == ["c"]
    assert data.query_ids.tolist() == ["a", "b"]
    assert data.doc_ids.tolist() == ["1", "2", "2"]
    assert data.feature_names == FEATURE_NAMES


def test_given_pairs_keep_their_order_and_grades():
    wanted = pairs(("b", "3", 0), ("b", "2", 3), ("c", "1", 1))
    found = extract(PAGES, QUERIES, wanted, jobs=1)
    data = found.dataset()
    assert data.doc_ids.tolist() == ["3", "2", "1"]
    assert data.grades.tolist() == [0, 3, 1]
    assert found.candidates.without == ["a"]


def test_pairs_of_unknown_pages_and_queries_are_left_out_and_named():
    wanted = pairs(("a", "9", 1), ("a", "1", 1), ("z", "1", 1))
    found = extract(PAGES, QUERIES, wanted, jobs=1)
    assert found.candidates.unknown == [("a", "9"), ("z", "1")]
    assert found.dataset().document_count == 1


def test_if_nothing_is_left_the_reason_is_said():
    with pytest.raises(DataError, match=r"none of the 1 candidates is there: .* no page '9'"):
        extract(PAGES, QUERIES, pairs(("a", "9", 1)), jobs=1)
    with pytest.raises(DataError, match="no query 'z'"):
        extract(PAGES, QUERIES, pairs(("z", "1", 1)), jobs=1)
    with pytest.raises(DataError, match="none of the 1 queries has a word that any page has"):
        extract(PAGES, Queries(["a"], ["elephant"]), 5, jobs=1)


def test_the_table_has_the_same_values(tmp_path, monkeypatch):
    monkeypatch.setattr("dualrank.pages.candidates.BLOCK_PAIRS", 2)
    found = extract(PAGES, QUERIES, pairs(("a", "1", 1), ("a", "2", 0), ("b", "2", 2)), jobs=1)
    found.write(tmp_path / "f.parquet")
    table = pq.read_table(tmp_path / "f.parquet")
    assert table.column_names == ["query_id", "doc_id", "grade", *FEATURE_NAMES]
    values = np.column_stack([table[name].to_numpy() for name in FEATURE_NAMES])
    np.testing.assert_array_equal(values, found.dataset().features)
    assert table["grade"].to_pylist() == [1, 0, 2]
