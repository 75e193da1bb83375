"""A small clean log that tests bend."""

import pyarrow as pa
import pytest

COLUMNS = ("session_id", "query_id", "doc_id", "position", "clicked")


def long_table(rows, names=COLUMNS):
    """Rows as an Arrow table."""
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in names]
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})


@pytest.fixture
def clean():
    """Three sessions on two lists of two queries."""
    return [
        ("s1", "q1", "a", 1, 0),
        ("s1", "q1", "b", 2, 1),
        ("s2", "q2", "c", 1, 0),
        ("s3", "q1", "a", 1, 0),
        ("s3", "q1", "b", 2, 1),
    ]
